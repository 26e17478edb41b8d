"""The declaration of a timed table, in YAML and in Python (S28)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scd_pipeline import Base, BaseColumn, DeclarationError, TimedTable, UsageError
from scd_pipeline.declaration import parse_declarations

DOCTORS = """
timed_table: doctors
base:
  path: data/doctors.avro
  columns: {number: int, given name: string, extra_field: {type: string, default: fishfingers and custard}}
updates: data/log.sql
timezone: Europe/Berlin
business_key: number
"""


def errors(declare: Callable[[], object]) -> list[tuple[str, str]]:
    with pytest.raises(DeclarationError) as caught:
        declare()
    return [(error.field, error.code) for error in caught.value.errors]


def test_yaml_and_python_declare_the_same_table() -> None:
    extra_field = BaseColumn("string", "fishfingers and custard")
    columns = {"number": "int", "given name": "string", "extra_field": extra_field}
    table = TimedTable(
        "doctors",
        Base("data/doctors.avro", columns, "avro"),
        updates="data/log.sql",
        timezone="Europe/Berlin",
        business_key=["number"],
    )
    assert parse_declarations(DOCTORS).timed_tables == (table,)
    assert hash(table) == hash(parse_declarations(DOCTORS).timed_tables[0])


def test_the_path_of_the_base_is_enough() -> None:
    assert parse_declarations("timed_table: d\nbase: d.parquet").timed_tables == (TimedTable("d", "d.parquet"),)
    assert TimedTable("d", "d.AVRO").base.format == "avro"


INVALID: dict[str, list[tuple[str, str]]] = {
    "timed_table: d": [("base", "MISSING_VALUE")],
    "timed_table: d-x\nbase: d.avro": [("timed_table", "INVALID_NAME")],
    "timed_table: d\nbase: d.txt": [("base.format", "MISSING_VALUE")],
    "timed_table: d\nbase: {format: avro}": [("base.path", "MISSING_VALUE")],
    "timed_table: d\nbase: {path: d, format: xml}": [("base.format", "NOT_ALLOWED")],
    "timed_table: d\nbase: d.csv": [("base.columns", "OPTION_REQUIRED")],
    "timed_table: d\nbase: d.avro\nupdate: log": [("update", "UNKNOWN_OPTION")],
    "timed_table: d\nbase: d.avro\nlog: tables": [("log", "NOT_ALLOWED")],
    "timed_table: d\nbase: d.avro\nlog: table\nupdates: log": [("updates", "CONFLICTING_OPTIONS")],
    "timed_table: d\nbase: d.avro\ntimezone: Mars": [("timezone", "INVALID_TIME_ZONE")],
    "timed_table: d\nbase: {path: d.avro, columns: {a: number}}": [("base.columns.a", "INVALID_TYPE")],
    "timed_table: d\nbase: {path: d.avro, columns: {_scd_a: int}}": [("base.columns._scd_a", "INVALID_NAME")],
    "timed_table: d\nbase: {path: d.avro, columns: {a: int, A: int}}": [("base.columns.A", "NAMED_TWICE")],
    "timed_table: d\nbase: {path: d.avro, columns: {a: {type: int, default: x}}}": [
        ("base.columns.a.default", "INVALID_DEFAULT")
    ],
    "timed_table: d\nbase: {path: d.avro, columns: {a: int}}\nbusiness_key: b": [("business_key", "UNKNOWN_NAME")],
    "timed_table: d\nbase: d.avro\nbusiness_key: [a, a]": [("business_key", "NAMED_TWICE")],
    "timed_table: d\nbase: d.avro\n---\ntimed_table: D\nbase: d.avro": [("timed_table", "NAME_IN_USE")],
    "timed_table: d\nbase: d.avro\n---\ntimed_table: d_Base\nbase: d.avro": [("timed_table", "NAME_IN_USE")],
}


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_declaration_is_reported(text: str) -> None:
    assert errors(lambda: parse_declarations(text)) == INVALID[text]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"base": 5}, ("base", "INVALID_KIND")),
        ({"base": Base(5)}, ("base.path", "INVALID_KIND")),  # type: ignore[arg-type]
        ({"base": Base("d.avro", {"a": 5})}, ("base.columns.a", "INVALID_KIND")),  # type: ignore[dict-item]
        ({"base": "d.avro", "timezone": 5}, ("timezone", "INVALID_KIND")),
        ({"base": "d.avro", "name": 5}, ("timed_table", "INVALID_NAME")),
    ],
)
def test_an_invalid_argument_is_reported(arguments: dict[str, Any], error: tuple[str, str]) -> None:
    assert errors(lambda: TimedTable(**{"name": "d", **arguments})) == [error]


def test_a_misspelt_argument_is_suggested() -> None:
    with pytest.raises(UsageError, match="did you mean updates"):
        TimedTable("d", "d.avro", update="log")  # type: ignore[call-arg]
