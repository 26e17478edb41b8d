"""A dimension declared in Python: its properties, and that all its errors are reported at once."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from scd_pipeline.declaration import (
    Attribute,
    Begin,
    Column,
    Dimension,
    ExpectedValue,
    Feed,
    KeyColumn,
    Primitive,
    RetireGuard,
    ScdType,
    SignOff,
    Snapshot,
    Source,
    describe,
    parse,
)
from scd_pipeline.declaration.checks.dimension import audit_columns
from scd_pipeline.declaration.table_properties import interval_hours
from scd_pipeline.declaration.times import to_datetime
from scd_pipeline.delta.audit_table import audit_schema
from scd_pipeline.delta.history_table import history_properties
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.unit.test_yaml_faults import located_codes


def customer(**changes: Any) -> Dimension:
    options: dict[str, Any] = {
        "name": "dim_customer",
        "business_key": {"customer_id": "bigint"},
        "attributes": {"birthday": Attribute(0, "date"), "email": 1, "city": 2, "segment": Attribute(6)},
        "sources": Source("crm", snapshot="landing/customers_{date}.csv"),
    }
    return Dimension(**{**options, **changes})


def both(**changes: Any) -> Dimension:
    options: dict[str, Any] = {
        "attributes": {"email": Attribute(1, source="web"), "city": 2, "gone": Attribute(2, retired=True)},
        "sources": [
            Source("crm", snapshot="crm/{date}.csv", attributes=["city"], existence=True),
            Source("web", feed=Feed("web/{date}.json")),
        ],
    }
    return customer(**{**options, **changes})


def test_a_dimension_has_its_declared_properties() -> None:
    dimension = customer()
    assert dimension.business_key == (KeyColumn("customer_id", "bigint"),)
    assert dimension.key_names == ("customer_id",)
    assert dimension.surrogate_key == "customer_key"
    assert dimension.attribute_names == ("birthday", "email", "city", "segment")
    assert dimension.attribute("city").scd is ScdType.ADD_ROW
    assert dimension.attribute("birthday").data_type == Primitive("date")
    assert [a.name for a in dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID)] == ["city", "segment"]
    assert dimension.has_windows
    assert not customer(attributes={"a": 0, "b": 1, "c": 3}).has_windows
    assert dimension.open_end_time == datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    assert dimension.existence_source is dimension.source("crm")
    assert dimension.source_attributes("crm") == dimension.attributes


def test_two_sources() -> None:
    dimension = both()
    assert dimension.existence_source.name == "crm"
    assert [a.name for a in dimension.source_attributes("crm")] == ["city"]
    assert [a.name for a in dimension.source_attributes("web")] == ["email"]


@pytest.mark.parametrize("call", ["attribute", "source", "source_attributes"])
def test_unknown_names(call: str) -> None:
    with pytest.raises(KeyError):
        getattr(customer(), call)("unknown")


def test_channels() -> None:
    source = Source("crm", snapshot="a/{date}.csv.gz", feed=Feed("b/{delivery}.ndjson", options={"b": "1", "a": "2"}))
    assert [kind for kind, _ in source.channels] == ["snapshot", "feed"]
    assert (source.channel("snapshot").format, source.channel("feed").format) == ("csv", "json")
    assert source.channel("feed").placeholder == "delivery"
    assert source.channel("feed").options == (("a", "2"), ("b", "1"))
    assert source.channel("feed").reader_options == {"a": "2", "b": "1"}
    with pytest.raises(KeyError):
        Source("crm", snapshot="a/{date}.csv").channel("feed")


@pytest.mark.parametrize(
    ("channel", "format"),
    [
        (Snapshot(), None),
        (Snapshot("a/{date}.PARQUET"), "parquet"),
        (Snapshot("a/{date}"), None),
        (Snapshot("lake/customers", versions=True), "delta"),
        (Snapshot("a/{date}.txt", format="csv"), "csv"),
    ],
)
def test_formats(channel: Snapshot, format: str | None) -> None:
    assert channel.format == format


def test_columns() -> None:
    columns: dict[str, Column | str] = {"a": "A", "b": Column(expression="x + 1"), "c": Column(default="-")}
    source = Source("crm", snapshot=Snapshot(), columns=columns)
    assert source.column("a") == Column("A")
    assert source.column("b") == Column(expression="x + 1")
    assert source.column("c") == Column("c", default="-")
    assert source.column("d") == Column("d")


def test_generated_columns() -> None:
    names = {
        Attribute(2, name="a"): (),
        Attribute(3, name="a"): ("previous_a", "a_changed_at"),
        Attribute(6, name="a"): ("current_a",),
        Attribute(6, name="a", previous=True): ("current_a", "previous_a"),
    }
    for attribute, columns in names.items():
        assert attribute.generated_columns == columns


def test_a_dimension_is_a_value() -> None:
    dimension = both()
    assert both() == dimension
    assert hash(both()) == hash(dimension)
    assert both(origin="c.yaml:1") == dimension
    assert both(owner="someone") != dimension
    assert pickle.loads(pickle.dumps(dimension)) == dimension
    assert copy.deepcopy(dimension) == dimension
    assert dataclasses.replace(dimension, owner="someone") == both(owner="someone")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dimension.name = "other"  # type: ignore[misc]


def test_types_and_times_are_stored_in_one_form() -> None:
    assert customer(attributes={"a": Attribute(2, "Integer")}) == customer(attributes={"a": Attribute(2, "int")})
    assert customer(open_end="3000-01-01") == customer(open_end="3000-01-01T00:00:00Z")
    begin = Begin("2000-01-01", "2020-01-01 12:00:00.5")
    assert begin == Begin("2000-01-01 00:00:00", "2020-01-01T12:00:00.500+00:00")
    assert to_datetime(begin.at) == datetime(2000, 1, 1, tzinfo=timezone.utc)
    assert to_datetime(begin.for_first_changes_until) == datetime(2020, 1, 1, 12, 0, 0, 500000, tzinfo=timezone.utc)


def test_files_can_be_retained_as_long_as_the_history_of_the_table() -> None:
    for days in (30, 60):
        files, log = "delta.deletedFileRetentionDuration", "DELTA.logRetentionDuration"
        properties = {files: f"interval {days} days", log: f"interval {days} days"}
        assert Dimension("dim_x", "id", {"name": 1}, Source("crm", Snapshot()), table_properties=properties)


FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


@pytest.mark.parametrize(
    ("table", "history", "error"),
    [
        ({LOG: "interval 60 days"}, {FILES: "interval 50 days"}, None),
        ({}, {FILES: "interval 50 days"}, FILES),
        ({LOG: "interval 60 days", FILES: "interval 50 days"}, {LOG: "interval 40 days"}, LOG),
        ({LOG: "interval 60 days", FILES: "interval 50 days"}, {LOG.lower(): "interval 40 days"}, LOG.lower()),
        ({LOG: "interval 60 days", FILES: "interval 50 days"}, {LOG: "interval 50 days"}, None),
        ({}, {FILES: "interval 167 hours"}, FILES),
    ],
)
def test_the_history_table_overrides_properties_of_the_table(
    table: dict[str, str], history: dict[str, str], error: str | None
) -> None:
    def create() -> Dimension:
        source = Source("crm", Snapshot())
        properties = {"table_properties": {"team": "sales", **table}, "history_table_properties": history}
        return Dimension("dim_x", "id", {"name": 2}, source, history_table=True, **properties)  # type: ignore[arg-type]

    if error is None:
        dimension = create()
        assert history_properties(dimension).items() >= {"team": "sales", **table, **history}.items()
        assert parse(describe(dimension)) == (dimension,)
    else:
        with pytest.raises(DeclarationError) as caught:
            create()
        located = [(each.code, each.field) for each in caught.value.errors]
        assert located == [("OUT_OF_RANGE", f"history_table_properties.{error}")]


@pytest.mark.parametrize(
    ("interval", "hours"),
    [("interval 30 days", 720), ("INTERVAL 1 week 2 hours", 170), ("43200 minutes", 720), ("interval 1 second", 1)],
)
def test_an_interval_is_read_in_hours(interval: str, hours: int) -> None:
    assert interval_hours(interval) == hours


def test_all_errors_are_reported_at_once() -> None:
    def create() -> Dimension:
        return Dimension(
            "dim_customer",
            "email",
            {"email": 1, "city": Attribute(4, "dat"), "name": Attribute(2, previous=True)},
            [
                Source("crm", snapshot="a.csv", timezone="Mars/North"),
                Source("CRM", feed=Feed(nulls="not_provided")),
            ],
            owner=3,  # type: ignore[arg-type]
        )

    expected = """
        owner                     INVALID_KIND
        attributes.city.scd       INVALID_SCD_TYPE
        attributes.city.type      INVALID_TYPE
        attributes.name.previous  NOT_APPLICABLE
        sources.crm.snapshot.path PATH_PLACEHOLDER
        sources.crm.timezone      INVALID_TIME_ZONE
        sources.CRM.feed.nulls    CONFLICTING_OPTIONS
        attributes.email          NAME_IN_USE
        sources.CRM               NAME_IN_USE
        sources                   EXISTENCE_SOURCE
        attributes.email          ATTRIBUTE_SOURCE
        attributes.city           ATTRIBUTE_SOURCE
        attributes.name           ATTRIBUTE_SOURCE
        sources.crm               UNUSED_SOURCE
        sources.CRM               UNUSED_SOURCE
    """
    assert located_codes(create) == [("dim_customer", *line.split()) for line in expected.strip().splitlines()]


def crm_and(name: str) -> dict[str, Any]:
    """Options with the source crm, and another one of this name."""
    crm = Source("crm", feed=Feed(), attributes=["email"], existence=True)
    return {"attributes": {"email": 1, "city": 2}, "sources": [crm, Source(name, feed=Feed(), attributes=["city"])]}


# Values that only Python can pass, with the field and the code of their error.
SCOPED_BY_CITY = Source("crm", snapshot=Snapshot("crm/{date}.csv", scope="city"))
PYTHON_ONLY: dict[str, tuple[dict[str, Any], str, str]] = {
    "empty name": ({"name": ""}, "name", "MISSING_VALUE"),
    "key as a number": ({"business_key": 5}, "business_key", "INVALID_KIND"),
    "key column as a number": ({"business_key": [5]}, "business_key", "INVALID_KIND"),
    "attributes as a number": ({"attributes": 5}, "attributes", "INVALID_KIND"),
    "attributes as a list": ({"attributes": ["city"]}, "attributes", "INVALID_KIND"),
    "source as a name": ({"sources": "crm"}, "sources", "INVALID_KIND"),
    "source as a number": ({"sources": [5]}, "sources", "INVALID_KIND"),
    "source named twice": (crm_and("CRM"), "sources.CRM", "NAME_IN_USE"),
    "equal source named twice": (crm_and("crm"), "sources.crm", "NAME_IN_USE"),
    "child tables of one name": (
        {
            "attributes": {
                "city": Attribute(2, "array<struct<a:int,b:array<struct<c:int>>>>"),
                "city__b": Attribute(1, "array<struct<a:int>>"),
            },
            "child_tables": ["city", "city.b", "city__b"],
        },
        "child_tables",
        "NAME_IN_USE",
    ),
    "sign-offs as text": ({"sign_offs": "Ann"}, "sign_offs", "INVALID_KIND"),
    "sign-off in Python as text": ({"sign_offs": {"business": "Ann"}}, "sign_offs.business", "INVALID_KIND"),
    "sign-off in Python of an unknown role": (
        {"sign_offs": {"buisness": SignOff("Ann", "2024-01-31")}},
        "sign_offs.buisness",
        "UNKNOWN_NAME",
    ),
    "sign-off by a number": (
        {"sign_offs": {"business": SignOff(5, "2024-01-31")}},  # type: ignore[arg-type]
        "sign_offs.business.by",
        "INVALID_KIND",
    ),
    "expected value as a number": ({"expected_values": {"cities": 5}}, "expected_values.cities", "INVALID_KIND"),
    "expected value as a list": (
        {"expected_values": {"cities": ExpectedValue("2024-01-31", "collect_set(city)", [])}},  # type: ignore[arg-type]
        "expected_values.cities.value",
        "INVALID_KIND",
    ),
    "labels as text": ({"change_types": "new"}, "change_types", "INVALID_KIND"),
    "label of an unknown change type": ({"change_types": {"DELETE": "x"}}, "change_types.DELETE", "UNKNOWN_NAME"),
    "label as a number": ({"change_types": {"INSERT": 1}}, "change_types.INSERT", "INVALID_NAME"),
    "table property with a list": (
        {"table_properties": {"delta.x": []}},
        "table_properties.delta.x",
        "INVALID_KIND",
    ),
    "scope of a personal attribute": (
        {"attributes": {"city": Attribute(2, personal=True)}, "sources": SCOPED_BY_CITY},
        "sources.crm.snapshot.scope",
        "PERSONAL_SCOPE",
    ),
    "scope of an attribute that may be missing": (
        {"attributes": {"city": Attribute(2, missing="not_provided")}, "sources": SCOPED_BY_CITY},
        "sources.crm.snapshot.scope",
        "NOT_APPLICABLE",
    ),
    "scope of a nested attribute": (
        {"attributes": {"city": Attribute(2, "array<string>")}, "sources": SCOPED_BY_CITY},
        "sources.crm.snapshot.scope",
        "INVALID_TYPE",
    ),
    "begin as a time": ({"begin": "2020-01-01"}, "begin", "INVALID_KIND"),
    "snapshot as a feed": (
        {"sources": Source("crm", snapshot=Feed())},  # type: ignore[arg-type]
        "sources.crm.snapshot",
        "INVALID_KIND",
    ),
    "reader options as a number": (
        {"sources": Source("crm", feed=Feed(options=5))},  # type: ignore[arg-type]
        "sources.crm.feed.options",
        "INVALID_KIND",
    ),
    "reader option as a flag": (
        {"sources": Source("crm", feed=Feed(options={"header": True}))},  # type: ignore[dict-item]
        "sources.crm.feed.options",
        "INVALID_KIND",
    ),
    "columns as a list": (
        {"sources": Source("crm", feed=Feed(), columns=["city"])},  # type: ignore[arg-type]
        "sources.crm.columns",
        "INVALID_KIND",
    ),
    "column as a number": (
        {"sources": Source("crm", feed=Feed(), columns={"city": 5})},  # type: ignore[dict-item]
        "sources.crm.columns.city",
        "INVALID_KIND",
    ),
    "effective_at with a format": (
        {"sources": Source("crm", feed=Feed(effective_at=Column(expression="a", format="yyyy")))},
        "sources.crm.feed.effective_at",
        "CONFLICTING_OPTIONS",
    ),
    "sequence as a number": (
        {"sources": Source("crm", feed=Feed(sequence=7))},  # type: ignore[arg-type]
        "sources.crm.feed.sequence",
        "INVALID_KIND",
    ),
    **{
        f"retire guard as {kind}": (
            {"sources": Source("crm", snapshot="customers_{date}.csv", retire_guard=guard)},  # type: ignore[arg-type]
            "sources.crm.retire_guard",
            "INVALID_KIND",
        )
        for kind, guard in {"a flag": True, "text": "0.1", "NULL": None}.items()
    },
}


@pytest.mark.parametrize("name", PYTHON_ONLY)
def test_errors_that_only_python_can_have(name: str) -> None:
    changes, field, code = PYTHON_ONLY[name]
    location = "dim_customer" if changes.get("name", True) else "dimension ''"
    assert located_codes(lambda: customer(**changes)) == [(location, field, code)]


@pytest.mark.parametrize(
    ("type", "fits", "fails"),
    [
        ("string", ["", "x"], [1, True]),
        ("boolean", [True], ["true", 1]),
        ("tinyint", [-128, 127], [128, 1.0, "1", True]),
        ("bigint", [2**63 - 1], [2**63]),
        ("double", [1, 1.5], ["1", True, float("nan"), float("inf"), 10**400, 2**53 + 1]),
        ("float", [1, 0.1], [1e39, 2**24 + 1]),
        ("decimal(4,2)", [99, -99.99, 0.1, 1e-2], [100, "1", 10**400, 1.005, 99.999]),
        ("date", ["2024-02-29"], ["2023-02-29", "2024-01-01 00:00:00", 20240101]),
        ("timestamp", ["2024-02-29", "2024-02-29 12:00:00"], ["noon"]),
        ("binary", [], ["x"]),
        ("array<int>", [], [1]),
    ],
)
def test_defaults(type: str, fits: list[Any], fails: list[Any]) -> None:
    def create(default: Any) -> Dimension:
        source = Source("crm", snapshot=Snapshot(), columns={"a": Column(default=default)})
        return customer(attributes={"a": Attribute(1, type)}, sources=source)

    for default in fits:
        create(default)
    for default in fails:
        errors = located_codes(lambda default=default: create(default))  # type: ignore[misc]
        assert errors == [("dim_customer", "sources.crm.columns.a.default", "INVALID_DEFAULT")]


ODD = [
    None,
    0,
    -1,
    1.5,
    True,
    "",
    " ",
    "\ud800",
    "a\nb",
    b"x",
    (),
    ("",),
    [1],
    {},
    {1: 2},
    {"a": None},
    object(),
    10**5000,
]
PARTS: list[tuple[type, Callable[[Any], Any]]] = [
    (Attribute, lambda change: customer(attributes={"a": Attribute(**{"scd": 2, **change})})),
    (Column, lambda change: customer(sources=Source("crm", feed=Feed(), columns={"city": Column(**change)}))),
    (Snapshot, lambda change: customer(sources=Source("crm", snapshot=Snapshot(**change)))),
    (Feed, lambda change: customer(sources=Source("crm", feed=Feed(**change)))),
    (Source, lambda change: customer(sources=Source(**{"name": "crm", "feed": Feed(), **change}))),
    (
        Begin,
        lambda change: customer(begin=Begin(**{"at": "2000-01-01", "for_first_changes_until": "2001-01-01", **change})),
    ),
    (SignOff, lambda change: customer(sign_offs={"business": SignOff(**{"by": "A", "date": "2024-01-31", **change})})),
    (
        ExpectedValue,
        lambda change: customer(
            expected_values={
                "n": ExpectedValue(**{"as_of": "2024-01-31", "expression": "count(*)", "value": 3, **change})
            }
        ),
    ),
    (Dimension, lambda change: customer(**change)),
]


@pytest.mark.parametrize(("part", "create"), PARTS, ids=lambda value: getattr(value, "__name__", ""))
def test_odd_values_are_accepted_or_reported(part: type, create: Callable[[Any], Any]) -> None:
    values = [(field.name, value) for field in dataclasses.fields(part) for value in ODD]
    errors = [error for name, value in values if (error := declaration_error(create, {name: value})) is not None]
    for error in errors:
        assert str(error).encode()
        assert len(str(error).splitlines()) == len(error.errors)
    assert len(errors) >= len(dataclasses.fields(part))


def declaration_error(create: Callable[[Any], Any], change: dict[str, Any]) -> DeclarationError | None:
    try:
        create(change)
    except DeclarationError as error:
        return error
    return None


def test_declarations_import_no_engine() -> None:
    code = (
        "import sys, scd_pipeline.declaration, scd_pipeline.errors\n"
        "print(sorted({'pyspark', 'delta', 'dagster', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_business_key_cannot_have_the_names_of_audit_columns() -> None:
    """Declarations list these names without importing the audit."""
    dimension = customer()
    audit_names = {name for name, _, _ in audit_schema(dimension)} - set(dimension.key_names)
    assert audit_names == set(audit_columns(dimension.surrogate_key))


def test_a_retire_guard_is_a_share_or_a_share_with_the_size_from_which_it_applies() -> None:
    """S27: only the default begins at 20 entities."""
    path = "customers_{date}.csv"
    assert Source("crm", snapshot=path).retire_guard == RetireGuard(0.25, at_least=20)
    assert Source("crm", snapshot=path, retire_guard=0.25).retire_guard == RetireGuard(0.25, at_least=1)
    guard = RetireGuard(at_least=5)
    assert Source("crm", snapshot=path, retire_guard=guard).retire_guard == RetireGuard(0.25, at_least=5)
