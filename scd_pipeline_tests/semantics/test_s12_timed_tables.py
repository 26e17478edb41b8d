"""Statements on a table of doctors: the order in which they apply, what they can contain, what rejects them (S12)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scd_pipeline import Base, Pipeline, SourceDataError, TimedTable
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import parse
from scd_pipeline_tests.timed.doctors import LOG, RAW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Numbers = Callable[[str], list[tuple[int | None, str]]]
COLUMNS = {"number": "int", "first_name": "string", "last_name": "string"}


@pytest.fixture
def table(tmp_path: Path) -> TimedTable:
    """Doctors 1, 2 and 6 in two files; the one without a number is Jo."""
    folder = tmp_path / "doctors"
    folder.mkdir()
    rows = [list(row.values())[:3] for row in parse(RAW) if row["number"] in (1, 2, 6)]
    for name, part in (("a.csv", rows[:1]), ("b.csv", [*rows[1:], ["", "Jo", "Martin"]])):
        lines = [",".join(str(value) for value in row) for row in part]
        (folder / name).write_text("\n".join(["number,first_name,last_name", *lines]), encoding="utf-8")
    return TimedTable("doctors", Base(str(folder), COLUMNS, "csv"))


@pytest.fixture
def numbers(spark: SparkSession, warehouse: Path, table: TimedTable) -> Numbers:
    """Return a function that returns number and last name of the doctors after a log."""

    def read(log: str) -> list[tuple[int | None, str]]:
        Path(table.base.path, ".updates").write_text(log, encoding="utf-8")
        rows = Pipeline(warehouse, spark=spark).read(table, at="2014-12-31", columns=["number", "last_name"])
        return sorted(((row[0], row[1]) for row in rows.collect()), key=str)

    return read


@rule("S12")
@requirement("V11", "V12")
def test_each_statement_sees_the_result_of_the_ones_before_it(numbers: Numbers) -> None:
    only_new = "-- time=2014-01-01\nDELETE FROM doctors WHERE number = 2;\n"
    changed = "UPDATE doctors SET number = 12 WHERE number = 2;\nDELETE FROM doctors WHERE number = 12;\n"
    rest = [(1, "Hartnell"), (6, "Baker"), (None, "Martin")]
    assert numbers(changed) == rest
    assert numbers(only_new + changed) == rest
    late = "-- time=2014-02-01\nDELETE FROM doctors WHERE number = 12;\n"
    early = "-- time=2014-01-01\nUPDATE doctors SET number = 12 WHERE number = 2;\n"
    assert numbers(late + early) == rest
    assert numbers(late.replace("02-01", "01-01") + early) == [(1, "Hartnell"), (12, "Troughton"), *rest[1:]]
    unreached = "-- time=2015-01-01\nDELETE FROM doctors;\n-- a comment\nDELETE FROM doctors;\n"
    assert numbers(unreached + early) == [(1, "Hartnell"), (12, "Troughton"), *rest[1:]]


@rule("S12")
@requirement("V15")
def test_statements_are_read_as_spark_reads_sql(numbers: Numbers) -> None:
    log = """
    update Doctors  -- the table is matched without case

       SET `Last_Name` = 'a;b -- c'
     where NUMBER = 1;;

    /* DELETE FROM doctors; */
    UPDATE doctors SET last_name = 'O''Hara' WHERE number = 2;
    DELETE FROM doctors WHERE last_name = "Baker"
    """
    assert numbers(log) == [(1, "a;b -- c"), (2, "O'Hara"), (None, "Martin")]


EXPRESSIONS = {
    "UPDATE doctors SET number = number * 10 + 1, last_name = upper(last_name)": [
        (11, "HARTNELL"),
        (21, "TROUGHTON"),
        (61, "BAKER"),
        (None, "MARTIN"),
    ],
    "UPDATE doctors SET number = CASE WHEN number > 1 THEN -number WHEN number = 1 THEN 0 ELSE 99 END": [
        (-2, "Troughton"),
        (-6, "Baker"),
        (0, "Hartnell"),
        (99, "Martin"),
    ],
    "DELETE FROM doctors WHERE number IN (1, 2) AND NOT (last_name LIKE 'H%' OR first_name IS NULL)": [
        (1, "Hartnell"),
        (6, "Baker"),
        (None, "Martin"),
    ],
    "DELETE FROM doctors WHERE number BETWEEN 2 AND 6 OR first_name = 'Jo'": [(1, "Hartnell")],
    "DELETE FROM doctors WHERE last_name NOT LIKE 'H%' AND last_name NOT ILIKE 'b%'": [(1, "Hartnell"), (6, "Baker")],
    "DELETE FROM doctors WHERE number <> 6": [(6, "Baker"), (None, "Martin")],
    "DELETE FROM doctors WHERE number IS NOT NULL": [(None, "Martin")],
    "DELETE FROM doctors WHERE NULL": [(1, "Hartnell"), (2, "Troughton"), (6, "Baker"), (None, "Martin")],
    "DELETE FROM doctors": [],
    "UPDATE doctors SET number = NULL": [(None, name) for name in ("Baker", "Hartnell", "Martin", "Troughton")],
    "UPDATE doctors SET number = 6, last_name = last_name WHERE coalesce(number, 0) < 6": [
        (6, "Baker"),
        (6, "Hartnell"),
        (6, "Martin"),
        (6, "Troughton"),
    ],
}


@rule("S12")
@requirement("V16")
def test_an_expression_has_the_value_that_spark_gives_it(numbers: Numbers) -> None:
    assert {log: numbers(log) for log in EXPRESSIONS} == EXPRESSIONS


REJECTED = {
    "UPDATE patients SET number = 1": "STATEMENT_TABLE",
    "UPDATE doctors SET nummer = 1": "STATEMENT_COLUMN",
    "UPDATE doctors SET number = 'two'": "STATEMENT_TYPE",
    "UPDATE doctors SET number = = 1": "STATEMENT_SYNTAX",
    "INSERT INTO doctors VALUES (1, 'a', 'b')": "STATEMENT_KIND",
    "MERGE INTO doctors USING d ON true WHEN MATCHED THEN DELETE": "STATEMENT_KIND",
    "DROP TABLE doctors": "STATEMENT_KIND",
    "SELECT * FROM doctors": "STATEMENT_KIND",
    "-- time=2014-13-01\nDELETE FROM doctors": "STATEMENT_TIME",
    "DELETE FROM doctors WHERE number = (SELECT max(number) FROM doctors)": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE number = max(number)": "STATEMENT_EXPRESSION",
}


@rule("S12")
@requirement("V13", "V14", "V17")
def test_a_statement_that_cannot_be_applied_rejects_the_log_with_its_line(table: TimedTable, numbers: Numbers) -> None:
    expected = {text: (code, f"{table.base.path}/.updates:5") for text, code in REJECTED.items()}
    actual = {}
    for text in REJECTED:
        with pytest.raises(SourceDataError) as caught:
            numbers(f"{LOG}\n{text};\nDELETE FROM doctors;")
        actual[text] = caught.value.code, caught.value.location
    assert actual == expected
    same_table = LOG.replace("doctors", "any_name")
    assert numbers(same_table) == [(1, "Hartnell"), (12, "Troughton"), (None, "Martin")]
