"""Reads of a timed table at a time, from files and Delta tables (S12)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scd_pipeline import Base, BaseColumn, Pipeline, SourceDataError, TimedTable, UsageError
from scd_pipeline.delta.table import new_session
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import parse, same_rows
from scd_pipeline_tests.timed.doctors import AT_2014_01_01, DEFAULT, FIELDS, LOG, NOW, RAW
from scd_pipeline_tests.timed.files import hashes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {"number": "int", "first_name": "string", "last_name": "string"}
WITH_DEFAULT = {**COLUMNS, "extra_field": BaseColumn("string", DEFAULT)}


@pytest.fixture(scope="session")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the doctors in each format, without `extra_field`; do not change it."""
    folder = tmp_path_factory.mktemp("doctors")
    rows = spark.createDataFrame([tuple(row.values())[:3] for row in parse(RAW)], FIELDS)
    for name in ("avro", "parquet", "json", "csv", "delta"):
        writer = rows.write.format(name)
        (writer.option("header", "true") if name == "csv" else writer).save(str(folder / name))
    return folder


@pytest.fixture
def base(written: Path, tmp_path: Path) -> Path:
    """A copy of the doctors in each format, each with the log."""
    folder = tmp_path / "doctors"
    shutil.copytree(written, folder)
    for each in folder.iterdir():
        (each / ".updates").write_text(LOG, encoding="utf-8")
    return folder


@pytest.fixture
def pipeline(spark: SparkSession, warehouse: Path) -> Pipeline:
    return Pipeline(warehouse, spark=spark)


def doctors(base: Path, file_format: str = "avro", **options: Any) -> TimedTable:
    return TimedTable("doctors", Base(str(base / file_format), WITH_DEFAULT, file_format), **options)


def assert_rows(expected: str, rows: DataFrame) -> None:
    actual = [row.asDict() for row in rows.collect()]
    names = list(parse(expected)[0])
    assert rows.columns == names
    assert same_rows(parse(expected), actual, names) == ""


@requirement("V1", "V2", "V5")
def test_the_base_has_the_default_of_a_column_that_its_file_lacks(base: Path, pipeline: Pipeline) -> None:
    table = doctors(base)
    rows = pipeline.read(table, at=-1)
    assert_rows(RAW, rows)
    assert [field.dataType.simpleString() for field in rows.schema] == ["int", "string", "string", "string"]
    assert_rows(RAW, pipeline.read(table, at="raw"))
    (base / "avro" / ".updates").write_text("", encoding="utf-8")
    assert_rows(RAW, pipeline.read(table))
    (base / "avro" / ".updates").unlink()
    assert_rows(RAW, pipeline.read(table))


@requirement("V3", "V4", "V6")
def test_a_read_applies_the_statements_up_to_its_time(base: Path, pipeline: Pipeline) -> None:
    table = doctors(base)
    assert_rows(NOW, pipeline.read(table))
    assert_rows(AT_2014_01_01, pipeline.read(table, at="2014-01-01"))
    assert_rows(NOW, pipeline.read(table, at=""))


@requirement("V8", "X22")
def test_a_statement_applies_from_its_own_millisecond_on(base: Path, pipeline: Pipeline) -> None:
    table = doctors(base)
    for millis, expected in ((1409529600000, NOW), (1409529599999, AT_2014_01_01), (0, AT_2014_01_01)):
        assert_rows(expected, pipeline.read(table, at=millis))
        assert_rows(expected, pipeline.read(table, at=str(millis)))


@requirement("V9", "V10")
def test_a_time_without_an_offset_is_in_the_zone_of_the_table(base: Path, pipeline: Pipeline) -> None:
    berlin = doctors(base, timezone="Europe/Berlin")
    for time, expected in {
        "2014-08-31T22:00:00Z": NOW,
        "2014-08-31T21:59:59Z": AT_2014_01_01,
        "2014-09-01T00:00:00+02:00": NOW,
        "2014-09-01": NOW,
        "2014-08-31T23:59:59": AT_2014_01_01,
    }.items():
        assert_rows(expected, pipeline.read(berlin, at=time))
    assert_rows(AT_2014_01_01, pipeline.read(doctors(base), at="2014-09-01T00:00:00+02:00"))
    assert_rows(NOW, pipeline.read(doctors(base), at=datetime(2014, 9, 1, tzinfo=timezone.utc)))
    assert_rows(NOW, pipeline.read(doctors(base), at=date(2014, 9, 1)))
    with pytest.raises(UsageError) as caught:
        pipeline.read(doctors(base), at="1 September")
    assert (caught.value.code, caught.value.location) == ("READ_TIME", "at")


@requirement("V7")
def test_a_statement_of_the_future_is_visible_only_to_a_read_of_its_time(base: Path, pipeline: Pipeline) -> None:
    log = base / "avro" / ".updates"
    log.write_text(f"{LOG}-- time=2999-01-01\nDELETE FROM doctors WHERE number > 1;\n", encoding="utf-8")
    table = doctors(base)
    now, future = pipeline.read(table), pipeline.read(table, at="2999-01-01")
    assert_rows("\n".join(RAW.splitlines()[:3]), future)
    assert_rows(NOW, now)
    query = "SELECT * FROM doctors"
    with new_session(pipeline.spark) as spark:
        other = Pipeline(pipeline.warehouse.path, spark=spark).sql(query, timed_tables=[table], at="2999-01-01")
        own = pipeline.sql(query, timed_tables=[table])
        assert (own.count(), other.count()) == (10, 1)


@requirement("V22", "V18")
@pytest.mark.parametrize("file_format", ["parquet", "csv", "json", "delta"])
def test_every_format_gives_the_same_rows(base: Path, pipeline: Pipeline, file_format: str) -> None:
    table = doctors(base, file_format)
    assert_rows(NOW, pipeline.read(table))
    moved = base / "log.sql"
    (base / file_format / ".updates").rename(moved)
    assert_rows(RAW, pipeline.read(table))
    assert_rows(NOW, pipeline.read(doctors(base, file_format, updates=str(moved))))


@requirement("V19")
def test_any_query_reads_it_as_a_table_and_changes_no_file(base: Path, pipeline: Pipeline) -> None:
    before = hashes(base)
    pipeline.spark.createDataFrame([(12, 1), (6, 2)], "doctor int, visit int").createOrReplaceTempView("visits")
    table = doctors(base)

    def values(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in pipeline.sql(query, timed_tables=[table], at="2014-01-01").collect()]

    assert values("SELECT count(*), max(number) FROM doctors") == [(11, 12)]
    joined = "SELECT visit, last_name FROM visits JOIN doctors ON doctor = number ORDER BY visit"
    assert values(joined) == [(1, "Troughton"), (2, "Baker")]
    counts = "SELECT (SELECT count(*) FROM doctors_at('{}'))"
    times = ("raw", "-1", "2014-01-01", "1409529599999", "1409529600000", "2014-09-01T01:00:00+02:00", "")
    assert [values(counts.format(time))[0][0] for time in times] == [11, 11, 11, 11, 10, 11, 10]
    assert values("SELECT last_name FROM doctors_at('2014-09-01') WHERE number IN (2, 12)") == [("Troughton",)]
    assert values("SELECT last_name FROM doctors_at('raw') WHERE number = 2") == [("Troughton",)]
    with pytest.raises(Exception, match="the time is invalid"):
        values(counts.format("September"))
    assert hashes(base) == before


@requirement("V20", "V28")
def test_rows_that_are_added_later_are_hit_too(base: Path, pipeline: Pipeline) -> None:
    table = doctors(base)
    assert [(each.statement.line, each.rows) for each in pipeline.log_hits(table)] == [(1, 1), (3, 1)]
    later = [(2, "Colin", "Morgan"), (13, "Jodie", "Whittaker")]
    pipeline.spark.createDataFrame(later, FIELDS).write.format("avro").mode("append").save(table.base.path)
    assert_rows(f"{NOW}\n| 13 | Jodie | Whittaker | {DEFAULT} |", pipeline.read(table))
    assert [(each.statement.line, each.rows) for each in pipeline.log_hits(table)] == [(1, 2), (3, 2)]
    assert [each.rows for each in pipeline.log_hits(table, at="2014-01-01")] == [2]


@requirement("V26")
def test_a_read_uses_one_state_of_the_log(base: Path, pipeline: Pipeline) -> None:
    rows = pipeline.read(doctors(base))
    (base / "avro" / ".updates").write_text("DELETE FROM doctors;", encoding="utf-8")
    assert_rows(NOW, rows)
    delta = doctors(base, "delta")
    rows = pipeline.read(delta)
    rows.limit(0).select(*COLUMNS).write.format("delta").mode("overwrite").save(delta.base.path)
    assert_rows(NOW, rows)
    assert pipeline.read(delta).count() == 0


@requirement("V23")
def test_statements_on_columns_that_are_not_read_are_not_evaluated(base: Path, pipeline: Pipeline) -> None:
    (base / "avro" / ".updates").write_text(f"{LOG}UPDATE doctors SET extra_field = last_name;", encoding="utf-8")
    table = doctors(base)
    rows = pipeline.read(table, columns=["NUMBER"])
    assert (rows.columns, rows.count()) == (["number"], 10)
    assert sorted(row[0] for row in rows.collect()) == [1, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    with pytest.raises(UsageError) as caught:
        pipeline.read(table, columns=["nummer"])
    assert caught.value.code == "COLUMN_NOT_FOUND"


@requirement("V23")
@pytest.mark.slow(60)
def test_ten_thousand_statements_give_the_exact_rows(spark: SparkSession, tmp_path: Path, pipeline: Pipeline) -> None:
    rows = 10_000
    spark.range(rows).selectExpr("id", "id AS value").coalesce(1).write.parquet(str(tmp_path / "base"))
    statements = [f"UPDATE t SET value = value + {i} WHERE id = {i};" for i in range(0, rows, 2)]
    statements += [f"UPDATE t SET value = -value WHERE id BETWEEN {i} AND {i + 1};" for i in range(0, rows, 2)]
    log = [f"-- time={number}\n{statement}" for number, statement in enumerate(statements)]
    (tmp_path / "base" / ".updates").write_text("\n".join(log), encoding="utf-8")
    read = pipeline.read(TimedTable("t", Base(str(tmp_path / "base"), format="parquet")))
    expected = f"CASE WHEN id < {rows} THEN IF(id % 2 = 0, -2, -1) * id END"
    assert read.selectExpr("count(*)", f"count_if(value = {expected})").collect()[0][:] == (rows, rows)


EVERY_TYPE = {
    "small": ("int", 1, "2", 2),
    "large": ("bigint", 1, "9223372036854775807", 9223372036854775807),
    "single": ("float", 1.5, "2.5", 2.5),
    "pair": ("double", 1.5, "pair / 2", 0.75),
    "flag": ("boolean", True, "NOT flag", False),
    "text": ("string", "x" * 40_000, "concat(text, 'y')", "x" * 40_000 + "y"),
    "price": ("decimal(20,2)", None, "1.25", Decimal("1.25")),
    "day": ("date", date(2014, 1, 1), "'1850-02-03'", date(1850, 2, 3)),
    "moment": ("timestamp", None, "TIMESTAMP '2014-01-01 01:02:03.000004'", datetime(2014, 1, 1, 1, 2, 3, 4)),
    "photo": ("binary", bytearray(b"a"), "X'00FF'", bytearray(b"\x00\xff")),
    "given name": ("string", "a", "upper(`given name`)", "A"),
    "order": ("int", 1, "order + 1", 2),
}


@requirement("V21")
@pytest.mark.parametrize("file_format", ["avro", "parquet"])
def test_a_column_of_each_type_is_set(
    spark: SparkSession, tmp_path: Path, pipeline: Pipeline, file_format: str
) -> None:
    nested = "address struct<city:string>, tags array<string>, names map<string,string>"
    types = {name if file_format == "parquet" else name.replace(" ", "_"): each for name, each in EVERY_TYPE.items()}
    ddl = ", ".join(f"`{name}` {each[0]}" for name, each in types.items())
    rows = [(*(each[1] for each in types.values()), ("Rome",), ["a"], {"a": "b"})]
    spark.createDataFrame(rows, f"{ddl}, {nested}").write.format(file_format).save(str(tmp_path / "base"))
    values = ", ".join(f"`{name}` = {each[2].replace('given name', name)}" for name, each in types.items())
    log = f"UPDATE t SET {values} WHERE address.city = 'Rome';\nUPDATE t SET tags = NULL;"
    (tmp_path / "base" / ".updates").write_text(log, encoding="utf-8")
    (row,) = pipeline.read(TimedTable("t", Base(str(tmp_path / "base"), format=file_format))).collect()
    assert row.asDict() == {name: each[3] for name, each in types.items()} | {
        "address": row["address"],
        "tags": None,
        "names": {"a": "b"},
    }
    assert row["address"]["city"] == "Rome"


def test_a_base_that_does_not_fit_its_declaration_is_rejected(base: Path, pipeline: Pipeline) -> None:
    def error(path: Path, columns: Mapping[str, str], file_format: str = "csv", **options: Any) -> tuple[str, str]:
        with pytest.raises(SourceDataError) as caught:
            pipeline.read(TimedTable("doctors", Base(str(path), columns, file_format), **options)).collect()
        return caught.value.code, caught.value.location

    csv = base / "csv"
    assert error(csv, {**COLUMNS, "extra": "string"}) == ("BASE_COLUMN_MISSING", str(csv))
    assert error(base / "xml", COLUMNS) == ("BASE_NOT_READABLE", str(base / "xml"))
    assert error(csv, COLUMNS, "avro") == ("BASE_NOT_READABLE", str(csv))
    assert error(csv, COLUMNS, updates=str(base / "none")) == ("LOG_NOT_READABLE", str(base / "none"))
    (csv / ".updates").write_bytes(b"\xff")
    assert error(csv, COLUMNS) == ("LOG_NOT_READABLE", str(csv / ".updates"))
    (base / "json" / ".updates").unlink()
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|MALFORMED|FAILED_READ_FILE"):
        pipeline.read(TimedTable("d", Base(str(base / "json"), {"first_name": "int"}, "json"))).collect()


def test_an_invalid_statement_rejects_the_read_with_its_line(base: Path, pipeline: Pipeline) -> None:
    log = base / "avro" / ".updates"
    log.write_text(f"{LOG}\nINSERT INTO doctors VALUES (1);\n", encoding="utf-8")
    with pytest.raises(SourceDataError) as caught:
        pipeline.read(doctors(base), at="raw")
    assert (caught.value.code, caught.value.location) == ("STATEMENT_KIND", f"{log}:5")
