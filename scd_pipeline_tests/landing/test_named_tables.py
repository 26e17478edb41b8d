"""S38: landing tables without a declaration file, whose options the first load declares and the table stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pandas
import polars
import pyarrow
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Dimension, LandingTable, Pipeline, Source, UsageError
from scd_pipeline.deliveries.dispatch import rows_by_table
from scd_pipeline.errors import BatchRejected
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows, header


@pytest.fixture
def pipeline(spark: SparkSession, warehouse: Path) -> Pipeline:
    """The pipeline of an empty warehouse."""
    return Pipeline(warehouse, spark=spark)


def assert_rows(pipeline: Pipeline, table: str, expected: str) -> None:
    """Fail unless a table has these rows."""
    assert_same_rows(expected, pipeline.current(table).toArrow().to_pylist(), header(expected))


def write_pages(folder: Path) -> None:
    """Write eight lists of 150 issues as two pages of 100 each, of which 50 are the same."""
    for number in range(8):
        issues = [
            {"id": number * 1000 + each, "list": f"list{number}", "title": f"issue {each}"} for each in range(150)
        ]
        for page, rows in enumerate((issues[:100], issues[50:]), 1):
            (folder / f"list{number}_page{page}.json").write_text(json.dumps(rows), "utf-8")


def read_pages(folder: Path) -> list[dict[str, Any]]:
    """Return the records of all pages."""
    return [record for page in sorted(folder.glob("*.json")) for record in json.loads(page.read_text("utf-8"))]


@requirement("D10")
@rule("S38")
def test_overlapping_pages_have_each_record_once(pipeline: Pipeline, tmp_path: Path) -> None:
    write_pages(tmp_path)
    records = read_pages(tmp_path)
    assert len(records) == 8 * 200
    pipeline.load("raw_issues", records, at="2024-01-31", disposition="merge", primary_key={"id": "bigint"})
    rows = pipeline.current("raw_issues").toArrow().to_pylist()
    assert sorted(row["id"] for row in rows) == sorted({record["id"] for record in records})
    assert len(rows) == 8 * 150
    repeated = [{**record, "title": "new", "state": "open"} for record in records[:1]]
    result = pipeline.load("raw_issues", repeated, at="2024-02-01")
    assert result.row_counts == {"overwrite": 1}
    assert pipeline.current("raw_issues").where("state = 'open'").count() == 1


@pytest.mark.slow(6)
@rule("S38")
def test_rows_of_other_libraries_are_loaded(pipeline: Pipeline) -> None:
    options: dict[str, Any] = {"disposition": "merge", "primary_key": {"id": "int"}}
    categories = polars.Series(["de"], dtype=polars.Categorical)
    frame = polars.DataFrame({"id": [1], "town": ["Bonn"], "land": categories, "tags": [["a"]], "logo": [b"x"]})
    pipeline.load("raw_shops", frame, at="2024-01-01", **options)
    query = duckdb.sql("SELECT 2 AS id, 'Ulm' AS town, 'de' AS land, ['b'] AS tags, 'y'::BLOB AS logo")
    pipeline.load("raw_shops", query, at="2024-01-02")
    rows = ({"id": id_, "town": town, "token": UUID(int=id_)} for id_, town in ((3, "Wien"), (2, "Neu-Ulm")))
    pipeline.load("raw_shops", rows, at="2024-01-03")
    reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("id", pyarrow.int64())]), [])
    pipeline.load("raw_shops", reader, at="2024-01-04")
    stored = pipeline.current("raw_shops").orderBy("id").toArrow().to_pylist()
    assert [tuple(row[name] for name in ("id", "town", "land", "tags", "logo", "token")) for row in stored] == [
        (1, "Bonn", "de", ["a"], b"x", None),
        (2, "Neu-Ulm", None, None, None, "00000000-0000-0000-0000-000000000002"),
        (3, "Wien", None, None, None, "00000000-0000-0000-0000-000000000003"),
    ]


def test_rows_of_other_libraries_are_divided_by_table() -> None:
    frame = polars.DataFrame({"kind": ["raw_a", "raw_b"], "id": [1, 2]})
    assert {name: rows.to_pylist() for name, rows in rows_by_table(frame, "kind").items()} == {
        "raw_a": [{"kind": "raw_a", "id": 1}],
        "raw_b": [{"kind": "raw_b", "id": 2}],
    }


@pytest.mark.slow(6)
@rule("S38", "S36")
def test_a_column_gets_its_type_with_its_first_value(pipeline: Pipeline) -> None:
    """Records of JSON lack fields, have others as NULL or empty, and write whole numbers without a point."""
    first = [{"id": 1, "votes": None, "tags": [], "owner": {}, "price": 5.5, "user": {"name": "ann", "team": None}}]
    second = [{"id": 2, "votes": 7, "tags": [{"n": 1}], "owner": {"id": 9}, "price": 5, "user": {"team": "core"}}]
    pipeline.load("raw_posts", first, at="2024-01-31", disposition="merge", primary_key={"id": "bigint"})
    result = pipeline.load("raw_posts", second, at="2024-02-29")
    assert sorted(map(str, result.attribute_changes)) == [
        "attribute owner: added as struct<id:bigint>",
        "attribute tags: added as array<struct<n:bigint>>",
        "attribute user: widened from struct<name:string> to struct<name:string,team:string>",
        "attribute votes: added as bigint",
    ]
    stored = {row["id"]: row for row in pipeline.current("raw_posts").toArrow().to_pylist()}
    unknown = dict.fromkeys(("votes", "tags", "owner"))
    assert stored[1].items() >= {**unknown, "price": 5.5, "user": {"name": "ann", "team": None}}.items()
    assert stored[2].items() >= {**second[0], "price": 5.0, "user": {"name": None, "team": "core"}}.items()


def issue(number: int, *, is_closed: bool) -> dict[str, Any]:
    """An issue as an API has it: twenty columns of text, and people with twenty fields each."""
    person = {"id": number % 7, "site_admin": False, **{f"url_{each}": f"/users/{number % 7}" for each in range(18)}}
    texts = {f"text_{each}": f"{each} of {number}" for each in range(20)}
    closed = {"closed_by": person, "assignees": [person]} if is_closed else {"closed_by": None, "assignees": []}
    return {"id": number, **texts, "user": person, "labels": [{"name": "bug", "default": True}], **closed}


@rule("S38", "S36")
def test_wide_records_are_loaded(pipeline: Pipeline) -> None:
    """Spark's plan must not need time and memory that double with each column."""
    options: dict[str, Any] = {"disposition": "merge", "primary_key": {"id": "bigint"}}
    first = [issue(number, is_closed=False) for number in range(100)]
    second = [issue(number, is_closed=True) for number in range(50, 150)]
    assert pipeline.load("raw_issues", first, at="2024-01-01", **options).row_counts == {"open": 100}
    assert pipeline.load("raw_issues", second, at="2024-01-02").row_counts == {"open": 50, "overwrite": 50}
    rows = {row["id"]: row for row in pipeline.current("raw_issues").toArrow().to_pylist()}
    assert rows[75]["assignees"] == [second[25]["user"]] and rows[25]["closed_by"] is None


@pytest.mark.slow(8)
@rule("S38", "S36", "S26")
def test_numbers_of_frames_fit_the_types_of_the_table(pipeline: Pipeline) -> None:
    """pandas has whole numbers as floats if one is missing, and Arrow gives decimals the digits of their values."""
    options: dict[str, Any] = {"disposition": "merge", "primary_key": {"id": "bigint"}}
    first = pandas.DataFrame({"id": [1, 2], "stars": [10, 20], "price": [Decimal("1.50"), Decimal("2.25")]})
    pipeline.load("raw_hotels", first, at="2024-01-01", **options)
    second = pandas.DataFrame({"id": [2, 3], "stars": [float("nan"), 30], "price": [Decimal("1000.5"), Decimal(7)]})
    pipeline.load("raw_hotels", second, at="2024-01-02")
    pipeline.load("raw_hotels", second.iloc[:0], at="2024-01-03")
    assert_rows(
        pipeline,
        "raw_hotels",
        """
        | id | stars | price   |
        | 1  | 10    | 1.50    |
        | 2  | NULL  | 1000.50 |
        | 3  | 30    | 7.00    |
        """,
    )
    half = pandas.DataFrame({"id": [4], "stars": [4.5], "price": [Decimal(1)]})
    with pytest.raises(BatchRejected, match=r"cannot cast '4\.5' to bigint"):
        pipeline.load("raw_hotels", half, at="2024-01-04")


@requirement("D11")
@rule("S38")
def test_records_are_loaded_into_the_table_that_each_names(pipeline: Pipeline) -> None:
    """With one copy of an id in each table."""
    records = [
        {"type": "Push", "id": 1, "commits": 2},
        {"type": "Issue", "id": 1, "title": "a"},
        {"type": "Push", "id": 1, "commits": 2},
        {"type": "Push", "id": 2, "commits": 1},
    ]
    results = pipeline.load_each(
        records, table=lambda row: f"raw_{row['type'].lower()}", name=1, at="2024-01-31", disposition="merge",
        primary_key="id",
    )  # fmt: skip
    assert list(results) == ["raw_push", "raw_issue"]
    assert_rows(
        pipeline,
        "raw_push",
        """
        | type | id  | commits |
        | Push | '1' | 2       |
        | Push | '2' | 1       |
        """,
    )
    assert_rows(pipeline, "raw_issue", "| type | id | title |\n| Issue | '1' | a |")


@requirement("D36")
@rule("S38")
@pytest.mark.slow(8)
def test_a_later_load_has_the_options_of_the_first(pipeline: Pipeline) -> None:
    """It may repeat them; other ones are rejected before anything is written."""
    first = [{"id": 1, "size": 1, "deleted": None}, {"id": 2, "size": 1, "deleted": None}]
    options: dict[str, Any] = {
        "disposition": "merge",
        "primary_key": {"id": "int"},
        "dedup_sort": {"size": "desc"},
        "hard_delete": "deleted",
        "columns": {"deleted": "boolean"},
    }
    pipeline.load("raw_users", first, at="2024-01-01", **options)
    changes: dict[str, Any] = {
        "disposition": "append",
        "strategy": "upsert",
        "primary_key": ["id", "size"],
        "merge_key": "size",
        "dedup_sort": {"size": "asc"},
        "hard_delete": "size",
        "columns": {"size": "int"},
    }
    before = pipeline.warehouse.table("raw_users_changes").newest_version()
    for option, value in changes.items():
        with pytest.raises(UsageError) as caught:
            pipeline.load("raw_users", first, at="2024-01-02", **{option: value})
        assert (caught.value.code, caught.value.details["options"]) == ("LANDING_OPTIONS_CHANGED", option)
    assert pipeline.warehouse.table("raw_users_changes").newest_version() == before
    later = [{"id": 1, "size": 5}, {"id": 1, "size": 7}, {"id": 2, "deleted": True}]
    pipeline.load("raw_users", later, at="2024-01-02", primary_key="id", columns={"deleted": "boolean"})
    assert_rows(pipeline, "raw_users", "| id | size |\n| 1 | 7 |")


@rule("S38")
def test_a_table_with_a_declaration_is_not_loaded_by_its_name(pipeline: Pipeline) -> None:
    declared = LandingTable("raw_lines", "append", ["line"], Source("api", feed={}))
    pipeline.load(declared, [{"line": "a"}], at="2024-01-01")
    with pytest.raises(UsageError) as caught:
        pipeline.load("raw_lines", [{"line": "b"}], at="2024-01-02")
    assert (caught.value.code, caught.value.details["source"]) == ("DECLARED_TABLE", "api")


CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot={}))
ROWS = [{"type": "push", "id": 1}, {"type": "issue", "id": 2}, {"type": "push", "id": 3}]


def test_options_are_those_of_a_table_without_a_declaration(pipeline: Pipeline) -> None:
    with pytest.raises(UsageError) as caught:
        pipeline.load(CUSTOMER, ROWS, at="2024-01-01", disposition="merge")
    assert (caught.value.code, caught.value.details["options"]) == ("OPTIONS_OF_DECLARED_TABLE", "disposition")
    with pytest.raises(UsageError) as caught:
        pipeline.load("raw_new", ROWS, at="2024-01-01")
    assert caught.value.code == "DISPOSITION_MISSING"


def _ids(rows: Any) -> list[int]:
    listed = rows if isinstance(rows, list) else rows.to_pylist() if hasattr(rows, "to_pylist") else None
    return [row["id"] for row in (rows.to_dict("records") if listed is None else listed)]


def test_rows_of_each_kind_are_divided_by_a_column() -> None:
    table = pyarrow.Table.from_pylist(ROWS)
    for rows in (ROWS, table, table.to_pandas()):
        assert {name: _ids(part) for name, part in rows_by_table(rows, "type").items()} == {
            "push": [1, 3],
            "issue": [2],
        }


def test_a_spark_frame_is_divided_by_a_column(spark: SparkSession) -> None:
    divided = rows_by_table(spark.createDataFrame(ROWS), "type")
    ids = {name: sorted(row["id"] for row in part.collect()) for name, part in divided.items()}
    assert ids == {"push": [1, 3], "issue": [2]}


NOT_DIVIDED: dict[str, Callable[[], object]] = {
    "NOT_DISPATCHED": lambda: rows_by_table(pyarrow.Table.from_pylist(ROWS), lambda row: "raw"),
    "NO_SUCH_COLUMN": lambda: rows_by_table(pyarrow.Table.from_pylist(ROWS), "kind"),
    "NOT_A_DISPATCHED_TABLE": lambda: rows_by_table([*ROWS, {"id": 4}], "type"),
    "TABLES_DIFFER_BY_CASE": lambda: rows_by_table([*ROWS, {"type": "Push", "id": 4}], "type"),
}


@pytest.mark.parametrize("code", NOT_DIVIDED)
def test_rows_without_the_name_of_a_table_are_rejected(code: str) -> None:
    with pytest.raises(UsageError) as caught:
        NOT_DIVIDED[code]()
    assert caught.value.code == code


@pytest.mark.slow(6)
@rule("S38")
@pytest.mark.parametrize("columns", [{"id": "bigint", "amount": "double"}, ["title"], "mirror"])
def test_a_load_may_repeat_the_options_of_the_first_one(pipeline: Pipeline, columns: Any) -> None:
    rows = [{"id": 1, "amount": 1.5, "title": "a"}]
    options: dict[str, Any] = {"disposition": "merge", "primary_key": {"id": "bigint"}, "columns": columns}
    pipeline.load("raw", rows, at="2024-01-01", **options)
    pipeline.load("raw", [{**rows[0], "amount": 2.5}], at="2024-01-02", **options)
    assert [row["amount"] for row in pipeline.current("raw").collect()] == [2.5]
    with pytest.raises(UsageError, match="columns"):
        pipeline.load("raw", rows, at="2024-01-03", **{**options, "columns": {"amount": "int"}})
