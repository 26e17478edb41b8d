"""A timed table as the source of a dimension: the history has the rows of a read at every time (S12, S14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scd_pipeline import Dimension, Pipeline, Source, TimedTable
from scd_pipeline.deliveries.accept import pending_deliveries
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.log import read_log
from scd_pipeline.load.timed_deliveries import timed_deliveries
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows, header, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASE = """
| number | name   | city |
| 1      | Ada    | Rome |
| 2      | Grace  | Oslo |
| 3      | Edsger | Rome |
"""
LOG = """
-- time=2020-01-01
UPDATE people SET city = 'Bern' WHERE number = 1;
UPDATE people SET city = 'Oslo' WHERE number = 1;
-- time=2021-01-01
UPDATE people SET city = 'Oslo' WHERE number = 1;
-- time=2022-01-01
UPDATE people SET number = 4 WHERE number = 2;
-- time=2023-01-01
DELETE FROM people WHERE number = 3 OR city = 'Lima';
-- time=2024-01-01
UPDATE people SET number = number + 1;
"""
HISTORY = """
| number | name   | city | effective_from      | effective_to        |
| 1      | Ada    | Rome |                     | 2020-01-01 00:00:00 |
| 1      | Ada    | Oslo | 2020-01-01 00:00:00 | 2024-01-01 00:00:00 |
| 2      | Grace  | Oslo |                     | 2022-01-01 00:00:00 |
| 2      | Ada    | Oslo | 2024-01-01 00:00:00 |                     |
| 3      | Edsger | Rome |                     | 2023-01-01 00:00:00 |
| 4      | Grace  | Oslo | 2022-01-01 00:00:00 | 2024-01-01 00:00:00 |
| 5      | Grace  | Oslo | 2024-01-01 00:00:00 |                     |
"""
EARLIER = """
-- time=2019-01-01
UPDATE people SET city = 'Lima' WHERE name = 'Grace';
"""
HISTORY_WITH_EARLIER = """
| number | name   | city | effective_from      | effective_to        |
| 1      | Ada    | Rome |                     | 2020-01-01 00:00:00 |
| 1      | Ada    | Oslo | 2020-01-01 00:00:00 | 2024-01-01 00:00:00 |
| 2      | Grace  | Oslo |                     | 2019-01-01 00:00:00 |
| 2      | Grace  | Lima | 2019-01-01 00:00:00 | 2022-01-01 00:00:00 |
| 2      | Ada    | Oslo | 2024-01-01 00:00:00 |                     |
| 3      | Edsger | Rome |                     | 2023-01-01 00:00:00 |
| 4      | Grace  | Lima | 2022-01-01 00:00:00 | 2023-01-01 00:00:00 |
"""
TIMES = ("1970-01-01", "2019-01-01", "2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01", "2024-01-01")


@pytest.fixture
def people(spark: SparkSession, tmp_path: Path) -> Callable[..., TimedTable]:
    """Create a timed table with the log, and other options."""

    def create(base: str = BASE, **options: Any) -> TimedTable:
        rows = [tuple(row.values()) for row in parse(base)]
        frame = spark.createDataFrame(rows, "number int, name string, city string")
        frame.coalesce(1).write.parquet(str(tmp_path / "people.parquet"))
        (tmp_path / "log").write_text(LOG, encoding="utf-8")
        log = {} if options else {"updates": str(tmp_path / "log")}
        return TimedTable("people", str(tmp_path / "people.parquet"), **log, **options, business_key="number")

    return create


def dimension(table: TimedTable) -> Dimension:
    key, attributes = {"number": "int"}, {"name": 2, "city": 2}
    return Dimension("dim_person", key, attributes, Source("people", timed_table=table), single_scd_type=True)


def assert_history(expected: str, pipeline: Pipeline) -> None:
    rows = pipeline.history("dim_person").select(list(header(expected))).collect()
    assert_same_rows(expected, [row.asDict() for row in rows])


def assert_equal_to_reads(table: TimedTable, pipeline: Pipeline) -> None:
    read = " UNION ALL ".join(f"SELECT '{time}', * FROM people_at('{time}')" for time in TIMES)
    as_of = " UNION ALL ".join(f"SELECT '{t}', number, name, city FROM dim_person_as_of('{t}')" for t in TIMES)
    differences = f"(({read}) EXCEPT ALL ({as_of})) UNION ALL (({as_of}) EXCEPT ALL ({read}))"
    assert pipeline.sql(differences, timed_tables=[table]).collect() == []


@requirement("V27")
@pytest.mark.slow(60)
def test_the_history_has_the_rows_of_a_read_at_every_time(
    people: Callable[..., TimedTable], spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    table, pipeline = people(), Pipeline(warehouse, spark=spark)
    person = dimension(table)
    result = pipeline.load(person)
    assert [each.delivery for each in result.results] == ["base", *TIMES[2:]]
    assert_history(HISTORY, pipeline)
    assert_equal_to_reads(table, pipeline)
    repeated = pipeline.load(person)
    assert {each.outcome for each in repeated.results} == {"unchanged"}
    assert repeated.log_version == result.log_version
    with (tmp_path / "log").open("a", encoding="utf-8") as log:
        log.write(EARLIER)
    accepted = [each.delivery for each in pipeline.load(person).results if each.outcome == "accepted"]
    assert accepted == ["2019-01-01", "2022-01-01", "2023-01-01", "2024-01-01"]
    assert_history(HISTORY_WITH_EARLIER, pipeline)
    assert_equal_to_reads(table, pipeline)
    (tmp_path / "log").write_text(LOG, encoding="utf-8")
    pipeline.load(person)
    assert_history(HISTORY, pipeline)


@requirement("V25", "V27")
@pytest.mark.slow(40)
def test_a_history_keeps_what_was_folded_and_what_was_then_removed_from_the_log(
    people: Callable[..., TimedTable], spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """The fold contains statements that no load has seen: their versions come from the log, as long as it has them."""
    table, pipeline = people(), Pipeline(warehouse, spark=spark)
    person, whole = dimension(table), (tmp_path / "log").read_text(encoding="utf-8")
    before, _, after = whole.partition("-- time=2023-01-01")
    (tmp_path / "log").write_text(before, encoding="utf-8")
    pipeline.load(person)
    (tmp_path / "log").write_text(whole, encoding="utf-8")
    pipeline.fold_log(table, until="2023-06-01", author="Ada")
    pipeline.load(person)
    assert_history(HISTORY, pipeline)
    (tmp_path / "log").write_text(f"-- time=2024-01-01{after.partition('-- time=2024-01-01')[2]}", encoding="utf-8")
    assert {each.outcome for each in pipeline.load(person).results} <= {"unchanged"}
    assert_history(HISTORY, pipeline)
    new = replace(person, name="dim_later")
    pipeline.load(new)
    rows = [row.asDict() for row in pipeline.history("dim_later").where("number < 4").collect()]
    assert_same_rows(
        """
        | number | name | city | effective_from      | effective_to        |
        | 1      | Ada  | Oslo |                     | 2024-01-01 00:00:00 |
        | 2      | Ada  | Oslo | 2024-01-01 00:00:00 |                     |
        """,
        rows,
    )


@requirement("V27")
@pytest.mark.slow(40)
def test_a_statement_is_a_delivery_with_its_author_after_those_that_do_not_depend_on_it(
    people: Callable[..., TimedTable], spark: SparkSession, warehouse: Path
) -> None:
    table, pipeline = people(log="table"), Pipeline(warehouse, spark=spark)
    person = dimension(table)
    for year in (2020, 2022):
        statement = f"UPDATE people SET city = '{year}' WHERE number = 1"
        pipeline.append_to_log(table, statement, at=f"{year}-01-01", author="Ada", reason="moved")
    pipeline.load(person)
    pipeline.append_to_log(table, "DELETE FROM people WHERE number = 3", at="2021-01-01", author="Max")
    stored = read_log(pipeline.warehouse, person).batches()
    assert {(each.delivery, each.actor, each.reason) for each in stored} == {
        ("base", None, None),
        ("2020-01-01", "Ada", "moved"),
        ("2022-01-01", "Ada", "moved"),
    }
    pending = pending_deliveries(person, timed_deliveries(pipeline.warehouse, person), stored)
    assert [(each.name, each.actor) for each in pending] == [("2021-01-01", "Max"), ("2022-01-01", "Ada")]


@requirement("V27")
def test_a_row_without_a_business_key_is_quarantined_and_two_rows_of_one_are_rejected(
    people: Callable[..., TimedTable], spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    table = people(BASE.replace("3     ", "      "))
    log = "-- time=2020-01-01\nUPDATE people SET number = 1 WHERE number = 2;"
    (tmp_path / "log").write_text(log, encoding="utf-8")
    planned = Pipeline(warehouse, spark=spark).plan(dimension(table), allow="bad_rows")
    base, later = planned.results
    assert (base.delivery, base.outcome, base.rows, base.bad_rows) == ("base", "accepted", 3, 1)
    assert (later.delivery, later.code) == ("2020-01-01", "TIMED_TABLE_KEY")


@requirement("V25", "V27")
@pytest.mark.slow(30)
def test_a_history_keeps_what_was_folded_and_removed_before_another_fold(
    people: Callable[..., TimedTable], spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """The second fold has only the statements since the first one: the declared base does not lead to it."""
    table, pipeline = people(), Pipeline(warehouse, spark=spark)
    person, whole = dimension(table), (tmp_path / "log").read_text(encoding="utf-8")
    _, _, last = whole.partition("-- time=2024-01-01")
    pipeline.load(person)
    pipeline.fold_log(table, until="2023-06-01", author="Ada")
    (tmp_path / "log").write_text(f"-- time=2024-01-01{last}", encoding="utf-8")
    pipeline.fold_log(table, until="2024-06-01", author="Ada")
    assert {each.outcome for each in pipeline.load(person).results} <= {"unchanged"}
    assert_history(HISTORY, pipeline)
    with (tmp_path / "log").open("a", encoding="utf-8") as log:
        log.write("-- time=2025-01-01\nUPDATE people SET city = 'Bern' WHERE number = 5;\n")
    pipeline.fold_log(table, until="2025-06-01", author="Ada")
    with pytest.raises(SourceDataError, match="2025-01-01 were folded before dim_person has loaded them"):
        pipeline.load(person)
