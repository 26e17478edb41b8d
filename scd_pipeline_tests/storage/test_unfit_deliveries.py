"""Deliveries that cannot be read as declared are rejected and reported; columns are read by their names.

The plan decides about each delivery, so most tests plan the load and write nothing: `planned`. Where only the decisions
matter, the deliveries alone are read: `judged`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Column, Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries import discovery, tie_rules
from scd_pipeline.deliveries.accept import accept
from scd_pipeline.deliveries.arrow import to_arrow
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover, file_version
from scd_pipeline.deliveries.intake import IntakeResult
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.load_plan import LoadPlan
from scd_pipeline.load.retry import ignore_progress
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline_tests.text_tables import assert_same_rows


def utc(*moment: int) -> datetime:
    return datetime(*moment, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


def planned(spark: SparkSession, folder: Path, dimension: Dimension, deliveries: Sequence[Delivery]) -> LoadPlan:
    """Return the plan of a first load; its `actions` are the rows that the dimension would have."""
    return plan(Warehouse(spark, folder / "warehouse"), dimension, deliveries)


def judged(spark: SparkSession, dimension: Dimension, deliveries: Sequence[Delivery]) -> IntakeResult:
    """Return which deliveries a first load would accept or reject, without planning rows."""
    return accept(spark, dimension, deliveries, (), run_id="", progress=ignore_progress)


def write(folder: Path, files: dict[str, str]) -> None:
    """Write the files by their names."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def rejected(load_plan: LoadPlan | IntakeResult) -> list[BatchResult]:
    """Return the results of the batches that the load would reject."""
    return [batch for batch in load_plan.results if batch.outcome == "rejected"]


@pytest.mark.slow(3)
@pytest.mark.rule("S27")
def test_an_unreadable_file_does_not_block_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """Folders of files, as Spark writes them, are deliveries too, several at once."""
    for month in (1, 2):
        folder = tmp_path / f"c_2024-0{month}-01.parquet"
        folder.mkdir()
        pq.write_table(pa.table({"id": ["a"], "born": [date(2000, month, 1)]}), folder / "part-0.parquet")
    (tmp_path / "c_2024-03-01.parquet").write_bytes(b"PAR1 broken off")
    pq.write_table(pa.table({"id": ["a"], "born": [7]}), tmp_path / "c_2024-04-01.parquet")
    dimension = Dimension(
        "dim_c", "id", {"born": Attribute(2, type="date")}, Source("crm", Snapshot("c_{date}.parquet"))
    )
    opened = Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark, base=tmp_path))
    assert_same_rows(
        """
        | delivery     | outcome  | code                |
        | '2024-01-01' | accepted | ''                  |
        | '2024-02-01' | accepted | ''                  |
        | '2024-03-01' | rejected | UNREADABLE_DELIVERY |
        | '2024-04-01' | rejected | COLUMN_TYPE         |
        """,
        outcomes(done.results),
    )
    broken, mistyped = done.rejected
    assert "c_2024-03-01.parquet: " in broken.problem
    assert "born" in mistyped.problem and "as the declared type" in mistyped.fix
    rows = opened.table("dim_c").read().select("born", "effective_from").toArrow().to_pylist()
    assert [row["born"] for row in rows if row["effective_from"] == utc(2024, 2, 1)] == [date(2000, 2, 1)]


@pytest.mark.rule("S27")
def test_a_file_with_a_declared_column_twice_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would read the columns under other names, and load NULL or another column."""
    files = {
        "2024-01-01": "id,phone,Phone,mobile\na,1,2,3\n",
        "2024-01-02": "id,phone,note,note,,\na,1,2,3,4,5\n",
        "2024-01-03": f"{'x' * 200_000}\na\n",
    }
    write(tmp_path, {f"c_{name}.csv": text for name, text in files.items()})
    source = Source("crm", feed="c_{date}.csv", columns={"phone": ["phone", "mobile"]})
    dimension = Dimension("dim_c", "id", {"phone": Attribute(2, missing="null")}, source)
    intake = judged(spark, dimension, discover(dimension, spark, base=tmp_path))
    assert [(batch.delivery, batch.code) for batch in intake.results] == [
        ("2024-01-01", "DUPLICATE_COLUMN"),
        ("2024-01-02", ""),
        ("2024-01-03", "COLUMN_MISSING"),
    ]
    assert rejected(intake)[0].details == {"columns": "phone and Phone"}


@pytest.mark.rule("S20")
def test_a_column_inside_of_another_is_named_with_the_declaration_that_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In JSON and Parquet. All missing columns are named, also those of an expression, and no header is mentioned."""
    files = {
        "1": '{"customer": {"id": 1, "city": "Graz"}, "note": "x"}',
        "2": '{"op": "c", "before": null, "after": {"id": 1, "city": "Graz"}}',
        "3": '{"next": null, "value": [{"id": 1, "city": "Graz"}]}',
        "4": '{"id": 1, "city": "Graz"}',
    }
    write(tmp_path, {f"{name}.json": text for name, text in files.items()})
    pq.write_table(pa.table({"customer": [{"id": 1, "city": "Graz"}]}), tmp_path / "5.parquet")
    problems: dict[str, tuple[object, str]] = {}
    for file_format in ("json", "parquet"):
        columns = {"address": Column(expression="concat(street, Number, id)")}
        source = Source("crm", feed=Feed(format=file_format), columns=columns)
        dimension = Dimension("dim_c", "id", {"city": 2, "address": 2}, source)
        paths = sorted(tmp_path.glob(f"*.{file_format}"))
        deliveries = [Delivery("crm", path.stem, at=utc(2024, 1, 1), path=str(path)) for path in paths]
        results = judged(spark, dimension, deliveries).results
        problems |= {result.delivery: (result.details["missing"], result.fix) for result in results}
        assert not any("header" in result.problem for result in results)
    inside = "declare `columns: {id: customer.id, city: customer.city}` in the source, as these columns are inside"
    computed = "(in the expression of address)"
    for name, missing, fix in [
        ("1", f"id, city, street, id and number {computed}", inside),
        ("2", f"id, city, street, id and number {computed}", "declare `format: debezium` in the channel"),
        ("3", f"id, city, street, id and number {computed}", "declare `record_path: value` in the channel"),
        ("4", f"street and number {computed}", "deliver the columns; declare `missing"),
        ("5", f"id, city, street, id and number {computed}", inside),
    ]:
        assert (name, problems[name][0]) == (name, missing)
        assert problems[name][1].startswith(fix)


@pytest.mark.rule("S27")
def test_a_parquet_file_with_times_in_nanoseconds_is_rejected_with_its_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"id": ["a"], "seen": pd.to_datetime(["2024-01-01"]).astype("datetime64[ns]")})
    frame.to_parquet(tmp_path / "c_2024-01-01.parquet")
    frame.to_parquet(tmp_path / "c_2024-01-02.parquet", coerce_timestamps="us")
    frame.to_parquet(tmp_path / "c_2024-01-03.parquet", use_deprecated_int96_timestamps=True)
    dimension = Dimension("dim_c", "id", {"seen": Attribute(2, type="timestamp")}, Source("crm", "c_{date}.parquet"))
    intake = judged(spark, dimension, discover(dimension, spark, base=tmp_path))
    (invalid,) = rejected(intake)
    assert (invalid.delivery, invalid.code, invalid.details) == ("2024-01-01", "NANOSECONDS", {"columns": "seen"})


@pytest.mark.slow
@pytest.mark.rule("S20")
def test_parquet_files_of_a_folder_have_the_columns_of_all(spark: SparkSession, tmp_path: Path) -> None:
    """Spark cannot merge integers of different sizes, and reads them as one of the files has them."""
    folder = tmp_path / "c_2024-01-01.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"id": ["a"]}), folder / "part-0.parquet")
    pq.write_table(pa.table({"id": ["b"], "city": ["Graz"], "n": [1]}), folder / "part-1.parquet")
    conflicting = tmp_path / "c_2024-01-02.parquet"
    conflicting.mkdir()
    for number, column_type in enumerate((pa.int64(), pa.int32())):
        rows = pa.table({"id": [str(number)], "city": ["Wien"], "n": pa.array([1], column_type)})
        pq.write_table(rows, conflicting / f"part-{number}.parquet")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", "c_{date}.parquet"))
    load_plan = planned(spark, tmp_path, dimension, discover(dimension, spark, base=tmp_path))
    assert not rejected(load_plan)
    rows = load_plan.changed_rows.where("version = 1").select("id", "city").orderBy("id").collect()
    assert rows == [("0", "Wien"), ("1", "Wien"), ("a", None), ("b", "Graz")]


@pytest.mark.slow
@pytest.mark.rule("S20")
def test_a_column_of_empty_objects_is_not_missing(spark: SparkSession, tmp_path: Path) -> None:
    """Spark does not infer such a column from a JSON file, and it does from other files."""
    files = {
        "2024-01-01": '[{"id": "a", "tags": {}}, {"id": "b", "tags": {}}]',
        "2024-01-02": '{"id": "a", "tags": {"env": "x"}}',
        "2024-01-03": '{"id": "a"}',
        "2024-01-04": '{"id": "a", "Tags": {}}',
    }
    write(tmp_path, {f"c_{name}.json": text for name, text in files.items()})
    tags = Attribute(2, type="map<string,string>")
    dimension = Dimension("dim_c", "id", {"tags": tags}, Source("crm", feed="c_{date}.json"))
    load_plan = planned(spark, tmp_path, dimension, discover(dimension, spark, base=tmp_path))
    assert [batch.code for batch in load_plan.results] == ["", "", "COLUMN_MISSING", ""]
    rows = load_plan.changed_rows.orderBy("id", "version").select("id", "tags").collect()
    assert rows == [("a", {}), ("a", {"env": "x"}), ("a", {}), ("b", {})]


@pytest.mark.rule("S27")
@pytest.mark.parametrize("frame", [[], pd.DataFrame([])], ids=["list", "pandas"])
def test_a_frame_without_rows_and_columns_changes_nothing(spark: SparkSession, frame: object) -> None:
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=Feed()))
    (result,) = judged(spark, dimension, [Delivery("crm", "1", at=utc(2024, 1, 1), frame=frame)]).results
    assert (result.outcome, result.rows) == ("accepted", 0)
    snapshots = Dimension("dim_c", "id", {"city": 2}, Source("crm", Snapshot()))
    (result,) = judged(spark, snapshots, [Delivery("crm", "1", at=utc(2024, 1, 1), frame=frame)]).results
    assert result.code == "COLUMN_MISSING", "a snapshot by mistake would delete every entity"


def outcomes(batches: Sequence[BatchResult]) -> list[dict[str, str]]:
    return [{"delivery": b.delivery, "outcome": b.outcome, "code": b.code} for b in batches]


@pytest.mark.slow
@pytest.mark.rule("S27")
def test_a_file_with_unreadable_rows_does_not_block_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """Of files that are read together, one has a flag for which an expression fails, and one is truncated."""
    feed = Feed("c_{date}.csv.gz", effective_at="at", deletes="flag = 1")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=feed))
    wide = "".join(f"{n},2024-01-01,0,{n * 2_654_435_761 % 2**32}\n" for n in range(20_000))
    for day, rows in enumerate(("a,2024-01-01,0,Rome\n", "a,2024-01-02,n/a,Bari\n", wide, "a,2024-01-04,0,Oslo\n"), 1):
        packed = gzip.compress(f"id,at,flag,city\n{rows}".encode())
        cut = len(packed) // 2 if rows is wide else len(packed)
        (tmp_path / f"c_2024-01-0{day}.csv.gz").write_bytes(packed[:cut])
    load_plan = planned(spark, tmp_path, dimension, discover(dimension, spark, base=tmp_path))
    assert_same_rows(
        """
        | delivery     | outcome  | code                |
        | '2024-01-01' | accepted | ''                  |
        | '2024-01-02' | rejected | BAD_ROWS            |
        | '2024-01-03' | rejected | UNREADABLE_DELIVERY |
        | '2024-01-04' | accepted | ''                  |
        """,
        outcomes(load_plan.results),
    )
    flagged, broken = rejected(load_plan)
    assert flagged.details["example"] == "deletes: the expression fails for the row", "the value is not reported"
    assert "c_2024-01-03.csv.gz" in broken.problem
    rows = load_plan.changed_rows.orderBy("version").select("city").collect()
    assert [row["city"] for row in rows] == ["Rome", "Oslo"]


@pytest.mark.rule("S1")
def test_an_expression_that_would_read_times_in_utc_is_rejected_in_another_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads 10:15 in UTC, and not in Vienna. Instants stay as they are, as does text that a format reads."""
    time = Attribute(2, type="timestamp")
    expressions = {
        "utc": {"posted": "try_to_timestamp(concat(day, time), 'yyyyMMddHHmmss')"},
        "mixed": {"changed": "coalesce(instant, to_timestamp(day))"},
        "zone": {"local": "to_timestamp_ntz(concat(day, time), 'yyyyMMddHHmmss')", "first": "coalesce(instant, other)"},
    }
    sources = [
        Source(
            name,
            feed=Feed(),
            attributes=list(texts),
            existence=name == "zone",
            timezone="Europe/Vienna",
            columns={attribute: Column(expression=text) for attribute, text in texts.items()},
        )
        for name, texts in expressions.items()
    ]
    attributes = {attribute: time for texts in expressions.values() for attribute in texts}
    instant = utc(2024, 1, 31, 23)
    frame = pa.table({"id": ["a"], "day": ["20240131"], "time": ["101500"], "instant": [instant], "other": [instant]})
    deliveries = [Delivery(name, "1", at=utc(2024, 6, 1), frame=frame) for name in expressions]
    load_plan = planned(spark, tmp_path, Dimension("dim_c", "id", attributes, sources), deliveries)
    assert [(each.delivery_key[0], each.code, each.details) for each in rejected(load_plan)] == [
        ("utc", "EXPRESSION_TIME_ZONE", {"columns": "posted", "zone": "Europe/Vienna"}),
        ("mixed", "EXPRESSION_TIME_ZONE", {"columns": "changed", "zone": "Europe/Vienna"}),
    ]
    (row,) = load_plan.changed_rows.select("local", "first").toArrow().to_pylist()
    assert row == {"local": utc(2024, 1, 31, 9, 15), "first": instant}


@pytest.mark.slow
@pytest.mark.rule("S27")
def test_a_table_version_without_its_files_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    """As after VACUUM: the load does not fail. A version by OPTIMIZE is not a delivery, as it has the same rows."""
    path = tmp_path / "customers"
    for city in ("Rome", "Oslo"):
        before = set(path.glob("*.parquet"))
        rows = spark.sql(f"SELECT * FROM VALUES ('a', '{city}'), ('b', '{city}') AS (id, city)").repartition(2, "id")
        rows.write.format("delta").mode("overwrite").save(str(path))
    spark.sql(f"OPTIMIZE delta.`{path}`")
    for file in before:
        file.unlink()
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", Snapshot(str(path), versions=True)))
    intake = judged(spark, dimension, discover(dimension, spark))
    assert_same_rows(
        """
        | delivery | outcome  | code             |
        | '0'      | missing  | TABLE_VERSION_MISSING |
        | '1'      | accepted | ''               |
        """,
        outcomes(intake.results),
    )


@pytest.mark.rule("S27")
def test_a_deleted_file_does_not_block_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """The others include folders with a URL, which only the server recognizes as folders."""
    for day in range(1, 5):
        (tmp_path / f"c_2024-01-0{day}.csv").write_text(f"id,city\n{day},Graz\n")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed="c_{date}.csv"))
    deliveries = discover(dimension, spark, base=tmp_path)
    (tmp_path / "c_2024-01-02.csv").unlink()
    for name in ("a b", "c"):
        folder = tmp_path / name
        folder.mkdir()
        for part in (1, 2):
            (folder / f"part-{part}.csv").write_text(f"id,city\n{name}{part},Linz\n")
        deliveries.append(Delivery("crm", name, at=utc(2024, 2, 1), path=f"file://{folder}/"))
    opened = Warehouse(spark, tmp_path / "warehouse")
    results = plan(opened, dimension, deliveries).results
    (missing,) = [batch for batch in results if batch.outcome == "rejected"]
    assert (missing.delivery, missing.code) == ("2024-01-02", "DELIVERY_MISSING")
    assert {batch.delivery: batch.rows for batch in results if batch.outcome == "accepted"} == {
        "2024-01-01": 1,
        "2024-01-03": 1,
        "2024-01-04": 1,
        "a b": 2,
        "c": 2,
    }


def test_a_file_that_is_deleted_during_discovery_is_not_a_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a load nor a sensor fails."""
    for day in (1, 2):
        (tmp_path / f"c_2024-01-0{day}.csv").write_text("id,city\n")
    listed = discovery.list_paths(str(tmp_path / "c_{date}.csv"))
    monkeypatch.setattr(discovery, "list_paths", lambda _: listed)
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed="c_{date}.csv"))
    first, second = discover(dimension, None, base=tmp_path)
    (tmp_path / "c_2024-01-01.csv").unlink()
    assert [delivery.name for delivery in discover(dimension, None, base=tmp_path)] == [second.name]
    assert file_version(first).endswith("Z, 8 bytes")


@pytest.mark.rule("S27")
def test_an_invalid_frame_does_not_block_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """No value is reported. Unsigned integers are numbers."""
    dimension = Dimension(
        "dim_c", "id", {"mail": Attribute(2, personal=True), "n": 1}, Source("crm", feed=Feed(), bad_row_limit=0.5)
    )
    numbered = pd.DataFrame({"id": ["a"], "mail": ["x"]})
    frames = {
        "good": numbered.assign(n=np.array([7], dtype="uint32")),
        "by case": spark.sql("SELECT 'b' AS id, 'x' AS mail, 'y' AS MAIL, 'z' AS n"),
        "twice": pd.DataFrame([["b", "x", "y", "z"]], columns=["id", "mail", "mail", "n"]),
        "mixed": pd.DataFrame({"id": ["b", "c"], "mail": [5, "ann@secret.com"], "n": [1, 2]}),
        "period": numbered.assign(n=pd.period_range("2024", periods=1, freq="M")),
    }
    deliveries = [Delivery("crm", name, at=utc(2024, 1, 1), frame=frame) for name, frame in frames.items()]
    load_plan = planned(spark, tmp_path, dimension, deliveries)
    errors = {batch.delivery: (batch.code, batch.details) for batch in rejected(load_plan)}
    assert "UNSUPPORTED_DATA_TYPE" in str(errors.pop("period"))
    assert errors == {
        "by case": ("DUPLICATE_COLUMN", {"columns": "mail and MAIL"}),
        "twice": ("DUPLICATE_COLUMN", {"columns": "mail and mail"}),
        "mixed": ("COLUMN_TYPE", {"reason": "the values of column mail have several types (ArrowInvalid)"}),
    }
    assert load_plan.changed_rows.select("id", "n").collect() == [("a", "7")]


def test_unsigned_integers_are_converted_to_the_next_wider_type() -> None:
    widths = {f"uint{bits}": pa.array([2**bits - 1], f"uint{bits}") for bits in (8, 16, 32, 64)}
    table = pa.table(
        {**widths, "coded": widths["uint8"].dictionary_encode(), "deep": pa.array([[1]], pa.list_(pa.uint16()))}
    )
    converted = to_arrow(table)
    assert [str(kind) for kind in converted.schema.types] == [
        "int16",
        "int32",
        "int64",
        "decimal128(20, 0)",
        "int16",
        "list<item: int32>",
    ]
    assert converted.to_pylist()[0]["uint64"] == 2**64 - 1


def test_times_finer_than_microseconds_are_converted_to_text() -> None:
    """At any depth, so that they are validated as text is; other values of their column too."""
    fine, whole = 1_704_067_200_000_000_001, 1_704_067_200_000_001_000
    tokyo = pa.timestamp("ns", "Asia/Tokyo")
    table = pa.table(
        {
            "fine": pa.array([fine, None], tokyo),
            "whole": pa.array([whole, None], tokyo),
            "deep": pa.array([[{"at": fine}], None], pa.list_(pa.struct([("at", tokyo)]))),
        }
    )
    converted = to_arrow(table)
    assert converted.column("fine").to_pylist() == ["2024-01-01 00:00:00.000000001Z", None]
    assert converted.column("whole").type == pa.timestamp("us", "UTC")
    assert converted.column("deep").to_pylist() == [[{"at": "2024-01-01 00:00:00.000000001Z"}], None]
    frame = pd.DataFrame({"at": [pd.Timestamp(fine)]})
    assert to_arrow(frame).to_pylist() == [{"at": "2024-01-01 00:00:00.000000001"}]


@pytest.mark.slow
@pytest.mark.rule("S20", "S27")
def test_json_without_rows_has_no_missing_column(spark: SparkSession, tmp_path: Path) -> None:
    """Only rows name columns: a feed without changes and an empty snapshot are accepted, an empty object is not.

    It might be a delete, so that only the missing key and the column of the condition are an error.
    """
    source = Source("crm", Snapshot("s_{date}.json"), Feed("f_{date}.json", deletes="op = 'D'"))
    dimension = Dimension("dim_c", "id", {"city": 2}, source)
    files = {
        "s_2024-01-01": '{"id": "a", "city": "Rome"}\n',
        "f_2024-01-02": "",
        "f_2024-01-03": "\n",
        "f_2024-01-05": "{}\n",
        "s_2024-01-06": "",
    }
    write(tmp_path, {f"{name}.json": text for name, text in files.items()})
    opened = Warehouse(spark, tmp_path / "warehouse")
    deliveries = discover(dimension, spark, base=tmp_path)
    first = ingest_and_apply(opened, dimension, [delivery for delivery in deliveries if delivery.name != "2024-01-05"])
    assert {batch.delivery: (batch.outcome, batch.rows, batch.deleted) for batch in first.results} == {
        "2024-01-01": ("accepted", 1, 0),
        "2024-01-02": ("accepted", 0, 0),
        "2024-01-03": ("accepted", 0, 0),
        "2024-01-06": ("accepted", 0, 1),
    }
    done = ingest_and_apply(opened, dimension, deliveries)
    (details,) = (batch.details for batch in done.rejected)
    assert details == {"missing": "id, op (in `deletes`)", "existing": "none", "nested": ""}


@pytest.mark.rule("S27", "S29")
def test_a_snapshot_at_the_open_end_does_not_block_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """It would close the versions of omitted entities at the open end, and they would not be current."""
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", Snapshot()), open_end="2999-12-31")
    rows = pa.table({"id": ["a"], "city": ["Rome"]})
    deliveries = [
        Delivery("crm", name, at=at, frame=frame)
        for name, at, frame in (
            ("first", utc(2024, 1, 1), rows),
            ("last", utc(2999, 12, 30), rows),
            ("late", utc(2999, 12, 31), rows.slice(1)),
        )
    ]
    load_plan = planned(spark, tmp_path, dimension, deliveries)
    (late,) = rejected(load_plan)
    assert (late.delivery, late.code) == ("late", "AT_OPEN_END")
    assert late.details["at"] == late.details["open_end"] == "2999-12-31 00:00:00"
    assert load_plan.changed_rows.select("city", "current_flag").collect() == [("Rome", True)]


@pytest.mark.slow
@pytest.mark.rule("S30", "S34")
def test_the_fields_of_a_struct_are_read_by_their_names(spark: SparkSession, tmp_path: Path) -> None:
    """In any order; a missing field is NULL, and a NULL in another field is a change."""
    home = "struct<street:string,city:string>"
    attributes = {"home": Attribute(2, type=home), "others": Attribute(1, type=f"array<{home}>")}
    dimension = Dimension("dim_c", "id", attributes, Source("crm", Snapshot(format="json")))
    opened = Warehouse(spark, tmp_path / "warehouse")

    def delivered(revision: int, *homes: object) -> Delivery:
        path = tmp_path / f"{revision}.json"
        lines = [{"id": str(n), "home": home, "others": [home]} for n, home in enumerate(homes, 1)]
        path.write_text("\n".join(json.dumps(line) for line in lines))
        return Delivery("crm", "d1", at=utc(2024, 1, 1), revision=revision, path=str(path))

    first = ingest_and_apply(opened, dimension, [delivered(1, {"city": "Wien", "street": "Ring 1"}, {"city": "Linz"})])
    assert first.results[0].bad_rows == 0
    rows = opened.table("dim_c").read().select("id", "home", "others").orderBy("id").toArrow().to_pylist()
    assert rows == [
        {"id": "1", "home": {"street": "Ring 1", "city": "Wien"}, "others": [{"street": "Ring 1", "city": "Wien"}]},
        {"id": "2", "home": {"street": None, "city": "Linz"}, "others": [{"street": None, "city": "Linz"}]},
    ]
    moved = [{"city": "Wien", "street": "Ring 1"}, {"street": "Linz", "city": None}]
    assert [b.outcome for b in ingest_and_apply(opened, dimension, [delivered(2, *moved)]).results] == ["accepted"]


@pytest.mark.rule("S26")
def test_a_nested_value_that_does_not_cast_makes_a_bad_row(spark: SparkSession, tmp_path: Path) -> None:
    """At any depth, and also if the whole value is a JSON text."""
    sizes = "array<struct<of:map<string,int>>>"
    dimension = Dimension(
        "dim_c", "id", {"sizes": Attribute(2, type=sizes)}, Source("crm", feed=Feed(), bad_row_limit=0.8)
    )
    values = [
        [{"of": {"small": "1", "large": None}}, None],
        [{"of": None}],
        None,
        [{"of": {"small": "1"}}, {"of": {"small": "2", "large": "two"}}],
    ]
    typed = pa.array(values, pa.list_(pa.struct([("of", pa.map_(pa.string(), pa.string()))])))
    texts = [json.dumps(value).replace('"1"', "1").replace('"2"', "2") if value else None for value in values]
    ids = ["full", "empty", "none", "wrong"]
    deliveries = []
    for day, column in enumerate((typed, pa.array([*texts, '[{"of": {}}', "{}"])), 1):
        table = pa.table({"id": [*ids, "broken", "no array"][: len(column)], "sizes": column})
        deliveries.append(Delivery("crm", f"d{day}", at=utc(2024, 1, day), frame=table))
    load_plan = planned(spark, tmp_path, dimension, deliveries)
    bad = load_plan.change_records.where("_kind = 'bad'").selectExpr(
        "id", "day(_effective_at) day", "_bad_reason reason"
    )
    bad_rows = bad.toArrow().to_pylist()
    assert_same_rows(
        """
        | id       | day |
        | wrong    | 1   |
        | wrong    | 2   |
        | broken   | 2   |
        | no array | 2   |
        """,
        [{"id": row["id"], "day": row["day"]} for row in bad_rows],
    )
    assert f"sizes: cannot cast '{{}}' to {sizes}" in [row["reason"] for row in bad_rows]
    versions = load_plan.changed_rows.selectExpr("id", "to_json(sizes) sizes").toArrow().to_pylist()
    assert sorted((row["id"], row["sizes"]) for row in versions) == [
        ("empty", "[{}]"),
        ("full", '[{"of":{"small":1,"large":null}},null]'),
        ("none", None),
    ]


@pytest.mark.rule("S20")
def test_a_column_may_have_a_name_that_begins_with_an_underscore(spark: SparkSession, tmp_path: Path) -> None:
    """For example a hash of the row by another system."""
    source = Source("crm", feed=Feed(deletes="_kind = 'D'"), columns={"mark": "_hash", "id": "_batch"})
    dimension = Dimension("dim_c", "id", {"mark": 2}, source)
    frame = pa.table({"_batch": ["a"], "_hash": ["4711"], "_kind": ["U"]})
    load_plan = planned(spark, tmp_path, dimension, [Delivery("crm", "d1", at=utc(2024, 1, 1), frame=frame)])
    assert load_plan.changed_rows.select("id", "mark").collect() == [("a", "4711")]


@pytest.mark.rule("S26")
def test_an_object_of_a_json_file_can_be_a_map_or_a_text(spark: SparkSession, tmp_path: Path) -> None:
    """A text keeps the names of its fields; a key or a value of the map that does not cast makes a bad row."""
    types = {"sizes": "map<int,double>", "note": "string"}
    attributes = {name: Attribute(2, type=kind) for name, kind in types.items()}
    dimension = Dimension("dim_c", "id", attributes, Source("crm", feed=Feed(format="json"), bad_row_limit=1.0))
    lines = [
        {"id": "a", "sizes": {"1": 0.5, "2": "7"}, "note": {"x": 1}},
        {"id": "b", "sizes": {}, "note": {"y": 1}},
        {"id": "c", "sizes": None, "note": None},
        {"id": "no number", "sizes": {"one": 1}},
        {"id": "no double", "sizes": {"1": "many"}},
        {"id": "twice", "sizes": {"1": 1, "01": 2}},
    ]
    path = tmp_path / "d1.json"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    keyed = pa.array([[("1", 1.0)], [("one", 1.0)], None], pa.map_(pa.string(), pa.float64()))
    frame = pa.table({"id": ["d", "no number, mapped", "e"], "sizes": keyed, "note": [["x"], [], None]})
    at = utc(2024, 1, 1)
    deliveries = [Delivery("crm", "d1", at=at, path=str(path)), Delivery("crm", "d2", at=at, frame=frame)]
    load_plan = planned(spark, tmp_path, dimension, deliveries)
    assert [b.bad_rows for b in load_plan.results] == [3, 1]
    rows = load_plan.changed_rows.orderBy("id").selectExpr("id", "to_json(sizes)", "note").collect()
    assert rows == [
        ("a", '{"1":0.5,"2":7.0}', '{"x":1}'),
        ("b", "{}", '{"y":1}'),
        ("c", None, None),
        ("d", '{"1":1.0}', '["x"]'),
        ("e", None, None),
    ]


LINES = {
    "csv": [
        'id;city\na;Rome\nb;Kiel\nc\nd;"Bonn;1"\n\n',
        "id;city\na;Oslo\nb;Kiel;1\nd;Bonn\n",
        "id;city\na;Linz;\n7\nd;Bonn\n",
    ],
    "json": [
        '{"id": "a", "city": "Rome"}\n{"id": "b", "city": "Kiel"}\n{"id": "c", "ci\n{"id": "d", "city": "Bonn;1"}\n',
        '{"id": "a", "city": "Oslo"}\n["b", "Kiel"]\n{"id": "d", "city": "Bonn"}\n',
        '{"id": "a", "city": "Linz\n{"id": "b", "city": "Kiel\n{"id": "d", "city": "Bonn"}\n',
    ],
}
FEWER = "the line has fewer fields than the header (1, not 2)"
MORE = "the line has more fields than the header (3, not 2)"
NO_OBJECT = "the line is not a JSON object or an array of objects, or has text after it"
BROKEN = {
    "csv": {"c": FEWER, "b;Kiel;1": MORE, "7": FEWER, "a;Linz;": MORE},
    "json": dict.fromkeys(
        ('{"id": "c", "ci', '["b", "Kiel"]', '{"id": "a", "city": "Linz', '{"id": "b", "city": "Kiel'), NO_OBJECT
    ),
}


@pytest.mark.rule("S26", "S27")
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_line_that_does_not_fit_the_columns_is_a_bad_row(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """It is stored as delivered. Its values may be in other columns, so its key is unknown; no entity is retired."""
    for day, text in enumerate(LINES[kind], 1):
        (tmp_path / f"c_2024-01-0{day}.{kind}").write_text(text, encoding="utf-8")
    channel = Snapshot(f"c_{{date}}.{kind}", options={"sep": ";"})
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", channel, bad_row_limit=1.0))
    load_plan = planned(spark, tmp_path, dimension, discover(dimension, spark, base=tmp_path))
    assert [(b.rows, b.bad_rows, b.deleted, b.undeclared) for b in load_plan.results] == [
        (4, 1, 0, ()),
        (3, 1, 0, ()),
        (3, 2, 0, ()),
    ]
    log = load_plan.change_records.where("_kind = 'bad'").orderBy("_effective_at", "_bad_row")
    assert log.select("id", "_bad_reason", "_bad_row").collect() == [
        (None, reason, line) for line, reason in BROKEN[kind].items()
    ]
    rows = load_plan.changed_rows.where("current_flag").orderBy("id").select("id", "city").collect()
    assert rows == [("a", "Oslo"), ("b", "Kiel"), ("d", "Bonn")]


@pytest.mark.slow
@pytest.mark.rule("S5")
def test_each_batch_is_checked_for_changes_without_an_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many another batch has."""
    monkeypatch.setattr(tie_rules, "_SHOWN_KEYS", 1)
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=Feed()))
    ids = {"d1": ["a", "b", "c"], "d2": ["z"]}
    frames = {
        name: pa.table({"id": keys * 2, "city": ["Rome"] * len(keys) + ["Oslo"] * len(keys)})
        for name, keys in ids.items()
    }
    days = enumerate(frames.items(), 1)
    deliveries = [Delivery("crm", name, at=utc(2024, 1, day), frame=frame) for day, (name, frame) in days]
    done = ingest_and_apply(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries)
    assert [batch.details for batch in done.rejected] == [{"keys": "id=a and more"}, {"keys": "id=z"}]


@pytest.mark.rule("S1", "S26")
def test_a_value_that_would_change_is_a_bad_value_in_every_column(spark: SparkSession, tmp_path: Path) -> None:
    """In the key, the time and the sequence too. With a unit a number is an instant, whatever the source's zone."""
    feed = Feed(effective_at="changed", effective_at_unit="s", sequence="n")
    columns = {"seen": Column("seen", round=True), "paid": Column("paid", default=0.5)}
    source = Source("crm", feed=feed, timezone="Europe/Vienna", columns=columns, bad_row_limit=1.0)
    types = {"seen": "timestamp", "paid": "decimal(4,2)", "note": "string", "at": "timestamp"}
    attributes = {name: Attribute(2, type=kind) for name, kind in types.items()}
    dimension = Dimension("dim_c", {"id": "int"}, attributes, source)
    noon = 1_719_835_200
    table = pa.table(
        {
            "id": [1.0, 2.5, 3.0, 4.0, 5.0, 6.0],
            "changed": [noon, noon, 253_402_300_800, noon, noon, noon],
            "n": [1.0, 1.0, 1.0, 1.5, 1.0, 1.0],
            "seen": pa.array([noon * 10**9 + 1] * 6, pa.timestamp("ns", "UTC")),
            "paid": pa.array([None, 1.0, 1.0, 1.0, 1.005, 1.0]),
            "note": pa.array([b"\xc3\xa4", b"", b"", b"", b"", b"a\xff"]),
            "at": pa.array([None, None, None, None, None, noon]),
        }
    )
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, dimension, [Delivery("crm", "d1", frame=table)])
    (row,) = opened.table("dim_c").read().select("effective_from", "seen", "paid", "note").toArrow().to_pylist()
    assert row == {
        "effective_from": utc(2024, 7, 1, 12),
        "seen": utc(2024, 7, 1, 12),
        "paid": Decimal("0.50"),
        "note": "ä",
    }
    bad = opened.table("dim_c_changes").read().where("_kind = 'bad'").orderBy("_bad_reason").select("_bad_reason")
    assert [row["_bad_reason"] for row in bad.collect()] == [
        "effective_at: cannot cast '253402300800' to timestamp; effective_at is missing",
        "id: cannot cast '2.5' to int; the business key is NULL or cannot be read",
        "note: cannot cast 'a\ufffd' to string; at: cannot cast '1719835200' to timestamp without a unit",
        "paid: cannot cast '1.005' to decimal(4,2)",
        "sequence: cannot cast '1.5' to bigint",
    ]


@pytest.mark.parametrize(
    "source",
    [Source("crm", Snapshot("c_{date}.csv")), Source("crm", feed=Feed("c_{date}.csv", effective_at="at"))],
)
def test_an_invalid_date_in_a_name_is_a_missing_time(tmp_path: Path, source: Source) -> None:
    for day in (28, 30):
        (tmp_path / f"c_2024-02-{day}.csv").write_text("id,city,at\n")
    dimension = Dimension("dim_c", "id", {"city": 2}, source)
    good, bad = discover(dimension, None, base=tmp_path)
    assert (good.at, good.time_problem(dimension)) == (utc(2024, 2, 28), "")
    problem = "2024-02-30 in the name of c_2024-02-30.csv is not a date of the calendar"
    assert (bad.at, bad.time_problem(dimension)) == (None, problem)


@pytest.mark.slow
def test_a_path_is_not_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    """The folder `[1]` is read and not the folder `1`, one file alone and two at once."""
    for name, city in (("1", "Linz"), ("[1]", "Graz")):
        (tmp_path / name).mkdir()
        for month in (1, 2):
            (tmp_path / name / f"c_2024-0{month}-01.csv").write_text(f"id,city\n{month},{city}\n")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed="[1]/c_{date}.csv"))
    deliveries = discover(dimension, spark, base=tmp_path)
    for chosen in (deliveries[:1], deliveries):
        load_plan = planned(spark, tmp_path, dimension, chosen)
        assert not rejected(load_plan)
        rows = load_plan.changed_rows.select("id", "city").collect()
        assert sorted(tuple(row) for row in rows) == [(str(n), "Graz") for n in range(1, len(chosen) + 1)]


@pytest.mark.rule("S26")
def test_a_folder_of_files_with_different_headers_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would use one header for all of them. The other delivery is accepted."""
    for month, header in ((1, "id,city,email"), (2, "id,email,city")):
        folder = tmp_path / f"c_2024-0{month}-01.csv"
        folder.mkdir()
        (folder / "part-0.csv").write_text("id,city,email\n1,Graz,a@x.at\n")
        (folder / "part-1.csv").write_text(f"{header}\n2,Linz,b@x.at\n")
    dimension = Dimension("dim_c", "id", {"city": 2, "email": 1}, Source("crm", Snapshot("c_{date}.csv")))
    intake = judged(spark, dimension, discover(dimension, spark, base=tmp_path))
    assert [(batch.outcome, batch.code) for batch in intake.results] == [
        ("accepted", ""),
        ("rejected", "UNREADABLE_DELIVERY"),
    ]
    assert "c_2024-02-01.csv/part-" in rejected(intake)[0].problem


@pytest.mark.rule("S26")
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_each_pattern_is_read_by_itself(spark: SparkSession, tmp_path: Path, format: str) -> None:
    """Two deliveries of one channel whose paths are glob patterns of several files."""
    write = {"csv": _write_csv, "json": _write_json, "parquet": pq.write_table}[format]
    for month in (1, 2):
        (tmp_path / str(month)).mkdir()
        for part, city in enumerate(("Graz", "Linz")):
            rows = pa.table({"id": [str(part)], "city": [f"{city} {month}"]})
            write(rows, tmp_path / str(month) / f"part-{part}.{format}")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", Snapshot(format=format)))
    load_plan = planned(spark, tmp_path, dimension, [_pattern(tmp_path, month, format) for month in (1, 2)])
    assert [(batch.outcome, batch.rows) for batch in load_plan.results] == [("accepted", 2), ("accepted", 2)]
    cities = load_plan.changed_rows.orderBy("id", "effective_from").select("city").collect()
    assert [row["city"] for row in cities] == ["Graz 1", "Graz 2", "Linz 1", "Linz 2"]


@pytest.mark.rule("S26")
def test_the_files_of_a_pattern_have_one_header(spark: SparkSession, tmp_path: Path) -> None:
    """A pattern of files with different headers is rejected as a folder of them is; a second pattern is loaded."""
    for month, header in ((1, "id,city,email"), (2, "id,email,city")):
        (tmp_path / str(month)).mkdir()
        (tmp_path / str(month) / "part-0.csv").write_text("id,city,email\n1,Graz,a@x.at\n")
        (tmp_path / str(month) / "part-1.csv").write_text(f"{header}\n2,Linz,b@x.at\n")
    dimension = Dimension("dim_c", "id", {"city": 2, "email": 1}, Source("crm", Snapshot(format="csv")))
    intake = judged(spark, dimension, [_pattern(tmp_path, month, "csv") for month in (1, 2)])
    outcomes = [(batch.outcome, batch.code) for batch in intake.results]
    assert outcomes == [("accepted", ""), ("rejected", "UNREADABLE_DELIVERY")]
    assert "2/part-1.csv" in rejected(intake)[0].problem


def _pattern(folder: Path, month: int, format: str) -> Delivery:
    path = str(folder / str(month) / f"*.{format}")
    return Delivery("crm", f"2024-0{month}-01", "snapshot", path=path, at=utc(2024, month, 1))


def _write_csv(table: pa.Table, path: Path) -> None:
    pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style="none"))


def _write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))


@pytest.mark.rule("S34")
@pytest.mark.parametrize("revision", [-1, "1/2"])
def test_an_invalid_revision_is_rejected(revision: int | str) -> None:
    """A negative one would rank above all numbers; with a slash two deliveries could share one name."""
    with pytest.raises(SourceDataError) as caught:
        Delivery("crm", "d1", at=utc(2024, 1, 1), revision=revision)
    assert caught.value.code == "DELIVERY_REVISION"


BY_REGION = Dimension(
    "dim_shop",
    {"region": "string", "id": "int"},
    {"city": 2, "staff": 1},
    [
        Source("pos", Snapshot(scope=("region",)), Feed(), attributes=["city"], existence=True),
        Source("erp", Snapshot(), attributes=["staff"]),
    ],
)


@pytest.mark.rule("S27")
@pytest.mark.parametrize(
    ("source", "channel", "scope", "code", "details"),
    [
        (
            "pos",
            "snapshot",
            [["EU"], ["EU", "US"]],
            "SCOPE_LENGTH",
            {"value": "['EU', 'US']", "count": 2, "expected": 1, "columns": "region"},
        ),
        ("pos", "snapshot", [[]], "SCOPE_LENGTH", {"value": "[]", "count": 0, "expected": 1, "columns": "region"}),
        ("pos", "feed", [["EU"]], "UNDECLARED_SCOPE", {"value": "[['EU']]", "channel": "feed"}),
        ("erp", "snapshot", [], "UNDECLARED_SCOPE", {"value": "[]", "channel": "snapshot"}),
    ],
)
def test_a_scope_fits_the_declaration_of_its_channel(
    source: str, channel: str, scope: list[list[str]], code: str, details: dict[str, object]
) -> None:
    delivery = Delivery(source, "d1", channel, at=utc(2024, 1, 1), scope=scope)
    with pytest.raises(SourceDataError) as error:
        delivery.batch(BY_REGION)
    assert (error.value.code, error.value.location) == (code, f"delivery {source}/d1")
    assert error.value.details == details


@pytest.mark.rule("S27")
def test_a_scope_has_values_of_the_types_of_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    by_id = Source("pos", Snapshot(scope=("id",)))
    shop = Dimension("dim_shop", {"id": "int"}, {"city": 2}, [by_id])
    frame = pa.table({"id": [7], "city": ["Rome"]})
    delivery = Delivery("pos", "d1", at=utc(2024, 1, 1), frame=frame, scope=[[7], ["7a"]])
    with pytest.raises(SourceDataError) as error:
        planned(spark, tmp_path, shop, [delivery])
    assert (error.value.code, error.value.location) == ("SCOPE_VALUE", "dim_shop: pos/snapshot/d1/0")
    assert error.value.details == {"value": "'7a'", "type": "int", "column": "id"}


@pytest.mark.rule("S27")
def test_a_scope_may_be_empty() -> None:
    """Such a snapshot covers no entity, like one without rows whose scope is derived from its rows."""
    delivery = Delivery("pos", "d1", "snapshot", at=utc(2024, 1, 1), scope=[])
    assert delivery.batch(BY_REGION).scope_columns == ("region",)


@pytest.mark.parametrize("key", ["deleted", "New", "changed"])
def test_a_key_may_have_the_name_of_a_count(spark: SparkSession, tmp_path: Path, key: str) -> None:
    """The counts of a batch with a bad row are aggregated by the business key."""
    dimension = Dimension("dim_x", {key: "int"}, {"a": 2}, Source("s", snapshot=Snapshot(), bad_row_limit=1.0))
    rows = [{key: "1", "a": "x"}, {key: "2", "a": "y"}, {key: "none", "a": "z"}]
    load_plan = planned(spark, tmp_path, dimension, [Delivery("s", "2024-01-01", frame=rows)])
    assert [(batch.outcome, batch.bad_rows, batch.new) for batch in load_plan.results] == [("accepted", 1, 2)]


NOON, IN_OSLO = datetime(2024, 1, 2, 12), datetime(2024, 1, 2, 12, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.rule("S1", "S26", "S30")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([date(2024, 1, 1), NOON], ["2024-01-01", "2024-01-02T12:00:00"]),
        ([NOON, IN_OSLO, None], ["2024-01-02T12:00:00", "2024-01-02T12:00:00+01:00", None]),
        ([IN_OSLO, NOON], ["2024-01-02T12:00:00+01:00", "2024-01-02T12:00:00"]),
    ],
)
@pytest.mark.parametrize("in_pandas", [False, True], ids=["dicts", "pandas"])
def test_times_of_several_kinds_are_read_as_texts(values: list[Any], expected: list[Any], *, in_pandas: bool) -> None:
    """Their kinds do not depend on the first row."""
    rows = [{"at": value} for value in values]
    frame = pd.DataFrame({"at": pd.Series(values, dtype=object)}) if in_pandas else rows
    assert [row["at"] for row in to_arrow(frame).to_pylist()] == expected


@pytest.mark.rule("S26")
def test_a_number_in_a_column_of_times_is_an_error() -> None:
    for values in ([date(2024, 1, 1), 45292], [NOON, 5]):
        with pytest.raises(pa.ArrowException):
            to_arrow([{"at": value} for value in values])
