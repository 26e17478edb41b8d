"""Appends to logs, in files and in Delta tables, and the commands for logs and timed tables (S12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scd_pipeline import Base, Pipeline, ScdError, TimedTable
from scd_pipeline.cli import app as cli
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.timed.append import append_statements
from scd_pipeline.timed.read import read_state
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import parse
from scd_pipeline_tests.timed.doctors import LOG, RAW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARATION = """
timed_table: doctors
log: {log}
base:
  path: {base}
  columns: {{number: int, first_name: string, last_name: string}}
"""
LOGS = ["file", pytest.param("table", marks=pytest.mark.slow(8))]


@pytest.fixture
def doctors(spark: SparkSession, tmp_path: Path) -> Callable[[str], TimedTable]:
    """Return a function that returns the timed table with its log in a file or a table, and writes its declaration."""
    base = tmp_path / "doctors.csv"
    rows = [",".join(str(value) for value in list(row.values())[:3]) for row in parse(RAW)]
    base.write_text("\n".join(["number,first_name,last_name", *rows]), encoding="utf-8")
    folder = tmp_path / "declarations"
    folder.mkdir()

    def declare(log: str) -> TimedTable:
        (folder / "doctors.yaml").write_text(DECLARATION.format(log=log, base=base), encoding="utf-8")
        columns = {"number": "int", "first_name": "string", "last_name": "string"}
        return TimedTable("doctors", Base(str(base), columns), log=log)  # type: ignore[arg-type]

    return declare


@pytest.mark.parametrize("log", LOGS)
@requirement("V28")
def test_a_checked_statement_is_appended_with_author_and_reason(
    spark: SparkSession, warehouse: Path, tmp_path: Path, doctors: Callable[[str], TimedTable], log: str
) -> None:
    table = doctors(log)
    pipeline = Pipeline(warehouse, spark=spark)
    pipeline.append_to_log(table, "UPDATE doctors SET number = 12 WHERE number = 2", at=0, author="Ada", reason="typo")
    statement = "DELETE FROM doctors\nWHERE first_name = 'Colin' -- done"
    pipeline.append_to_log(table, statement, at="2014-09-01", author="Ada\n-- time=5", reason="left")
    assert pipeline.read(table, at="2014-01-01").count() == 11
    assert pipeline.read(table).count() == 10
    hits = pipeline.log_hits(table)
    assert [(each.statement.millis, each.rows) for each in hits] == [(0, 1), (1409529600000, 1)]
    if log == "table":
        rows = pipeline.spark.read.table(pipeline.warehouse.table("doctors_updates").identifier).orderBy("position")
        stored = [(row["author"], row["reason"], row["effective_at"]) for row in rows.collect()]
        assert stored[1] == ("Ada\n-- time=5", "left", datetime(2014, 9, 1))
        assert hits[0].statement.author == "Ada"
    else:
        assert "-- 1970-01-01, by Ada: typo\n" in (tmp_path / ".updates").read_text(encoding="utf-8")


def test_a_statement_without_a_semicolon_is_ended_by_an_append(
    spark: SparkSession, warehouse: Path, tmp_path: Path, doctors: Callable[[str], TimedTable]
) -> None:
    (tmp_path / ".updates").write_text(f"{LOG}DELETE FROM doctors WHERE number = 3 -- last", encoding="utf-8")
    pipeline, table = Pipeline(warehouse, spark=spark), doctors("file")
    pipeline.append_to_log(table, "DELETE FROM doctors WHERE number = 4;", at=5, author="Ada")
    assert [each.rows for each in pipeline.log_hits(table)] == [1, 1, 1, 1]


INVALID = {
    "INSERT INTO doctors VALUES (1)": "STATEMENT_KIND",
    "DELETE FROM doctors WHERE nummer = 1": "STATEMENT_COLUMN",
    "DELETE FROM patients": "STATEMENT_TABLE",
    "DELETE FROM doctors;\n-- time=5\nDELETE FROM doctors": "STATEMENT_TIME_KNOWN",
    " -- nothing": "LOG_TEXT_EMPTY",
}


@pytest.mark.parametrize("log", LOGS)
def test_an_invalid_statement_is_not_appended(
    spark: SparkSession, warehouse: Path, tmp_path: Path, doctors: Callable[[str], TimedTable], log: str
) -> None:
    table, tables = doctors(log), Warehouse(spark, warehouse)

    def append(text: str, author: str = "Ada") -> list[Any]:
        now = datetime(2026, 1, 1, tzinfo=timezone.utc)
        return list(append_statements(tables, table, text, millis=0, author=author, reason="", now=now))

    append("DELETE FROM doctors WHERE number = 1")
    for text, code in INVALID.items():
        with pytest.raises(ScdError) as caught:
            append(text)
        assert caught.value.code == code
    with pytest.raises(ScdError) as caught:
        append("DELETE FROM doctors", author=" ")
    assert caught.value.code == "LOG_AUTHOR_MISSING"
    assert [each.line for each in read_state(tables, table).statements] == [3 if log == "file" else 1]


@requirement("V28", "V29", "V6")
def test_commands_read_a_timed_table_and_its_log(
    remote: str,
    warehouse: Path,
    tmp_path: Path,
    doctors: Callable[[str], TimedTable],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doctors("file")
    (tmp_path / ".updates").write_text(LOG, encoding="utf-8")
    monkeypatch.setenv("SCD_DECLARATIONS", str(tmp_path / "declarations"))
    monkeypatch.setenv("SCD_WAREHOUSE", str(warehouse))
    monkeypatch.setenv("SCD_REMOTE", remote)

    def scd(*arguments: str) -> Any:
        assert cli.main([*arguments, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    count = ("sql", "SELECT count(*) AS n, max(number) AS last FROM doctors")
    assert scd(*count) == [{"n": 10, "last": 12}]
    assert scd(*count, "--time", "2014-01-01") == [{"n": 11, "last": 12}]
    monkeypatch.setenv("SCD_TIME", "-1")
    assert scd(*count) == [{"n": 11, "last": 11}]
    assert scd(*count, "--time", "") == [{"n": 10, "last": 12}]
    monkeypatch.delenv("SCD_TIME")
    assert cli.main(["log", "append", "doctors", "DELETE FROM doctors", "--at", "2999-01-01", "--by", "Ada"]) == 0
    assert capsys.readouterr().out == "doctors: appended 1 statement at 2999-01-01\n"
    listed = scd("log", "show", "doctors")
    assert [(each["position"], each["time"], each["rows"]) for each in listed] == [
        (1, "1970-01-01", 1),
        (2, "2014-09-01", 1),
        (3, "2999-01-01", None),
    ]
    fold = ("log", "fold", "doctors", "--until", "2014-01-01", "--by", "Ada")
    assert cli.main([*fold, "--reason", "closed"]) == 0
    assert cli.main(fold) == 0
    folded = "doctors: folded {} up to 2014-01-01\n"
    assert capsys.readouterr().out == folded.format("1 statement") + folded.format("0 statements")
    listed = scd("log", "show", "doctors")
    assert [each["rows"] for each in listed] == [None, 1, None]
    assert [(each["folded"] or "").partition(" ")[2] for each in listed] == ["by Ada: closed", "", ""]
    assert cli.main([*count, "--time", "2013-01-01"]) == 2
    assert "[READ_BEFORE_FOLD] time: 2013-01-01 is before 2014-01-01" in capsys.readouterr().err
    assert cli.main(["log", "append", "doctors", "DROP TABLE doctors", "--by", "Ada"]) == 3
    assert "[STATEMENT_KIND] statement:1: the statement begins with DROP" in capsys.readouterr().err
    assert cli.main(["sql", "SELECT 1 FROM doctors", "--time", "soon"]) == 2
    assert cli.main(["log", "show", "doctor"]) == 2
    assert "did you mean doctors?" in capsys.readouterr().err
    assert cli.main(["sql"]) == 0
    assert capsys.readouterr().out == "doctors\ndoctors_at\ndoctors_base\ndoctors_states\n"
