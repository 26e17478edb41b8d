"""The declaration of a timed table, in YAML and in Python (S28)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scd_pipeline import Base, BaseColumn, DeclarationError, Dimension, Source, TimedTable, UsageError
from scd_pipeline.declaration import describe, parse_declarations, read_declarations

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
    "timed_table: d\nbase: d.avro\n---\ntimed_table: D\nbase: d/d.avro": [("timed_table", "NAME_IN_USE")],
    "timed_table: d\nbase: d.avro\n---\ntimed_table: d_Base\nbase: d/d.avro": [("timed_table", "NAME_IN_USE")],
    "timed_table: d\nbase: d.avro\n---\ntimed_table: e\nbase: ./e.avro": [("updates", "LOG_IN_USE")],
    "timed_table: d\nbase: d.avro\nupdates: a/log\n---\ntimed_table: e\nbase: d.avro\nupdates: a//log": [
        ("updates", "LOG_IN_USE")
    ],
}


SOURCE = """
dimension: dim_doctor
business_key: {number: int}
attributes: {first_name: 2}
sources: {doctors: {timed_table: doctors}}
"""


def test_a_timed_table_is_a_source_of_a_dimension_whatever_their_order() -> None:
    (dimension,) = parse_declarations(f"{SOURCE}---{DOCTORS}").dimensions
    (table,) = parse_declarations(DOCTORS).timed_tables
    key, attributes = {"number": "int"}, {"first_name": 2}
    assert dimension == Dimension("dim_doctor", key, attributes, Source("doctors", timed_table=table))
    assert parse_declarations(f"{describe(dimension)}---{DOCTORS}").dimensions == (dimension,)


def test_a_timed_table_may_be_declared_in_a_further_folder(tmp_path: Path) -> None:
    (tmp_path / "dimension.yaml").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "timed.yaml").write_text(DOCTORS, encoding="utf-8")
    declared = read_declarations(tmp_path / "dimension.yaml", dimension_paths=[tmp_path])
    assert (len(declared.dimensions), declared.timed_tables) == (1, ())


INVALID_SOURCES: dict[tuple[str, str], tuple[str, str]] = {
    ("{timed_table: doctors", "{timed_table: doctor"): ("sources.doctors.timed_table", "UNKNOWN_NAME"),
    ("{timed_table: doctors", "{timed_table: [doctors]"): ("sources.doctors.timed_table", "INVALID_KIND"),
    ("{timed_table: doctors", "{timed_table: doctors, feed: {}"): (
        "sources.doctors.timed_table",
        "CONFLICTING_OPTIONS",
    ),
    ("{timed_table: doctors", "{timed_table: doctors, snapshot: {}"): (
        "sources.doctors.timed_table",
        "CONFLICTING_OPTIONS",
    ),
    ("{timed_table: doctors", "{timed_table: doctors, columns: {number: name}"): (
        "sources.doctors.timed_table",
        "CONFLICTING_OPTIONS",
    ),
    ("business_key: number", "description: Doctors"): ("sources.doctors.timed_table", "OPTION_REQUIRED"),
    ("timezone: Europe/Berlin", "timezone: Mars"): ("timezone", "INVALID_TIME_ZONE"),
}


@pytest.mark.parametrize("change", INVALID_SOURCES, ids=lambda change: change[1])
def test_an_invalid_source_is_reported_once(change: tuple[str, str]) -> None:
    text = f"{SOURCE}---{DOCTORS}".replace(*change)
    assert errors(lambda: parse_declarations(text)) == [INVALID_SOURCES[change]]


def test_a_timed_table_is_no_source_of_a_fact() -> None:
    fact = """
fact: fct_visit
grain: [visit]
event_time: at
dimensions: {doctor: {dimension: dim_doctor, key: number}}
sources: {doctors: {timed_table: doctors}}
"""
    text = f"{SOURCE}---{DOCTORS}---{fact}"
    assert errors(lambda: parse_declarations(text)) == [("sources.doctors.timed_table", "NOT_APPLICABLE")]


def test_only_a_timed_table_is_a_timed_table() -> None:
    source = Source("doctors", timed_table="doctors")  # type: ignore[arg-type]
    declare = partial(Dimension, "dim_doctor", "number", {"first_name": 2}, source)
    assert errors(declare) == [("sources.doctors.timed_table", "INVALID_KIND")]


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
