"""A described dimension parses back to an equal one, for any valid dimension."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scd_pipeline.declaration import (
    Attribute,
    Begin,
    Column,
    Dimension,
    ExpectedValue,
    Feed,
    RetireGuard,
    SignOff,
    Snapshot,
    Source,
    describe,
    parse,
)
from scd_pipeline.declaration.attribute import PREVIOUS
from scd_pipeline.declaration.governance import SIGN_OFF_ROLES
from scd_pipeline.declaration.names import is_column_name
from scd_pipeline_tests.unit.test_yaml_files import LONG, SHORT

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
MAYBE = st.none() | TEXT
MAYBE_SQL = st.none() | TEXT.filter(lambda text: not set(text) & set("{}"))
"""Braces are placeholders in SQL."""
SQL = TEXT.filter(lambda text: not {"{", "}"} & set(text))
# Each name ends in its number, so that none is another's previous_, current_ or reserved column.
STEMS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
WORDS = [
    "no",
    "on",
    "1",
    "1.5",
    "null",
    "~",
    "2024-01-01",
    "scd",
    "from",
    "0x1f",
    "1:30",
    "=",
    "<<",
    "a: b",
    "# c",
]
NAMES = st.lists(st.sampled_from(WORDS) | STEMS, min_size=1, max_size=7, unique=True).map(
    lambda stems: [name for at, stem in enumerate(stems) if is_column_name(name := f"{stem}{at}x")]
)
TYPES = ["string", "int", "decimal(12,2)", "date", "array<struct<a:int,b:string>>", "map<string,int>"]
TIMES = ["2000-01-01", "2010-06-01 12:30:00", "2010-06-01 12:30:00.000001"]


def given_some(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=strategies)


SIGN_OFFS = st.builds(SignOff, TEXT, st.dates().map(str))
EXPECTED_VALUES = st.builds(ExpectedValue, st.sampled_from(TIMES), TEXT, st.sampled_from([7, 0.5, True, "no", ""]))
CHANNEL: dict[str, st.SearchStrategy[Any]] = {
    "options": st.dictionaries(TEXT.map(str.casefold), TEXT | st.just(""), max_size=2).filter(
        lambda options: len({name.casefold() for name in options}) == len(options)
    ),
    "reason": MAYBE,
    "actor": MAYBE,
    "correlation_id": MAYBE,
}
PATTERNS = ["dd.MM.yyyy HH:mm:ss[.SSS]", "yyyy-MM-dd'T'hh:mm a XXX", "''yyyyDDD''"]
TIME_READINGS = [
    {},
    {"effective_at_unit": "ms", "effective_at_round": True},
    *({"effective_at_format": pattern} for pattern in PATTERNS),
]
PATHS = [
    {},
    {"path": "landing/{date}.csv"},
    {"path": "landing/{date}.csv", "skip_lines": 1, "skip_footer": 2},
    {"path": "landing/{date}.json", "record_path": "data.items"},
    {"path": "landing/{datetime}/part.parquet"},
    {"path": "landing/{date:%d.%m.%Y}.csv", "time_of_day": "23:59:59", "delivery_timezone": "Europe/Vienna"},
    {"path": "lake/changes", "versions": True},
    {"path": "lake/changes", "format": "delta", "partition": "day", "partition_format": "%Y%m%d"},
    {"path": "lake/changes", "format": "parquet", "partition": "day"},
]
ANY_NAME = [{"path": "landing/{delivery}", "format": "json"}]


@st.composite
def channels(draw: st.DrawFn, keys: list[str], kind: str) -> Snapshot | Feed:
    has_row_times = draw(st.booleans())
    paths = [*PATHS, *(ANY_NAME if kind == "feed" and has_row_times else [])]
    options = {**draw(st.sampled_from(paths)), **draw(given_some(**CHANNEL))}
    if has_row_times:
        options |= {"effective_at": draw(TEXT), **draw(st.sampled_from(TIME_READINGS))}
    if (kind == "feed" or "effective_at" in options) and draw(st.booleans()):
        options |= {"sequence": draw(TEXT), "sequence_type": draw(st.sampled_from(["bigint", "timestamp"]))}
    if kind == "snapshot":
        scope = draw(st.lists(st.sampled_from(keys), unique=True))
        options |= {"unreadable_keys": draw(st.sampled_from(["retire_none", "retire"]))}
        return Snapshot(**options, scope=tuple(scope), empty_scope=draw(st.sampled_from([None, "delete", "reject"])))
    updates, nulls = draw(st.sampled_from([("full", "value"), ("partial", "value"), ("partial", "not_provided")]))
    deletes = draw(MAYBE_SQL)
    ties = draw(st.sampled_from(["reject", "delete_wins"] if deletes else ["reject"]))
    return Feed(**options, deletes=deletes, updates=updates, nulls=nulls, ties=ties)


@st.composite
def attributes(draw: st.DrawFn, source: str | None, former: str) -> Attribute:
    options = draw(given_some(personal=st.booleans(), description=st.just("") | TEXT, type=st.sampled_from(TYPES)))
    scd = draw(st.sampled_from([0, 1, 2, 3, 6]))
    choice = draw(
        st.sampled_from(
            [{}, {"retired": True}, {"missing": "not_provided"}, {"missing": "null"}, {"on_bad_value": "null"}]
        )
    )
    names = draw(st.sampled_from([(), (former,)]))
    return Attribute(
        scd,
        source=source,
        previous=scd == 6 and draw(st.booleans() | st.sampled_from(PREVIOUS)),
        former_names=names,
        **options,
        **choice,
    )


@st.composite
def sources(draw: st.DrawFn, name: str, keys: list[str], deciding: bool | None, default: Any) -> Source:
    kinds = draw(st.sampled_from([("snapshot",), ("feed",), ("snapshot", "feed")]))
    options = {kind: draw(channels(keys, kind)) for kind in kinds}
    names = TEXT | st.lists(TEXT, min_size=1, max_size=3, unique_by=str.casefold)
    column = st.one_of(names.map(Column), SQL.map(lambda sql: Column(expression=sql)), st.just(Column(default=default)))
    columns = draw(st.dictionaries(st.sampled_from(keys), column))
    guards = st.sampled_from([0, 1, 0.25, RetireGuard(0.25, at_least=7)])
    shares = {"bad_row_limit": st.floats(0, 1), "retire_guard": guards}
    limits = draw(given_some(**shares, overdue_after_hours=st.sampled_from([1, 0.5]), upstream=st.just("raw/x")))
    zone = draw(st.sampled_from(["UTC", "Europe/Oslo"]))
    return Source(name, existence=deciding, timezone=zone, columns=columns, **options, **limits)


@st.composite
def dimensions(draw: st.DrawFn) -> Dimension:
    names = [f"k{name}" for name in draw(NAMES)] or ["k"]
    keys = [name for name in names if is_column_name(name)][:2] or ["k"]
    attribute_names = [name for name in draw(NAMES) if is_column_name(name)] or ["a"]
    several = draw(st.booleans())
    owners = ["crm", "web"] if several else [None]
    parts = {
        name: draw(attributes(draw(st.sampled_from(owners)), f"former{at}")) for at, name in enumerate(attribute_names)
    }
    if several:
        parts["of_web"] = Attribute(1, source="web")
    options = draw(
        given_some(
            owner=TEXT,
            description=TEXT,
            key_salt=TEXT,
            group=st.just("sales"),
            open_end=st.sampled_from(["9999-12-31", "3000-01-01"]),
            sign_offs=st.dictionaries(st.sampled_from(SIGN_OFF_ROLES), SIGN_OFFS),
            audit_retention_years=st.integers(1, 10),
            product_card=st.just("https://example.com/card"),
            table_properties=st.dictionaries(TEXT.map(lambda name: f"x.{name}".casefold()), TEXT | st.just(True)),
        )
    )
    if any(part.opens_versions for part in parts.values()):
        options |= draw(given_some(expected_values=st.dictionaries(TEXT, EXPECTED_VALUES, max_size=2)))
        options |= draw(given_some(archive_after_years=st.integers(1, 10)))
        options |= draw(given_some(begin=st.builds(Begin, st.just("1999-12-31"), st.sampled_from(TIMES))))
    else:
        options |= draw(st.sampled_from([{}, {"deleted_at": True}, {"deleted_rows": "remove"}]))
    arrays = [name for name, part in parts.items() if part.type.startswith("array")]
    if names := [name for name in arrays if name.isascii() and name.isalnum()]:
        options |= draw(given_some(child_tables=st.lists(st.sampled_from(names), unique=True)))
    types = draw(st.sampled_from([("string", "string"), ("bigint", "decimal(5,0)")]))
    default = "x" if types[0] == "string" else 7
    existence = True if several else draw(st.sampled_from([None, True]))
    both = [draw(sources("crm", keys, existence, default)), draw(sources("web", keys, False, default))]
    return Dimension(
        draw(st.sampled_from(["dim_customer", "Customers", "no", "null"])),
        dict(zip(keys, types, strict=False)),
        parts,
        both if several else both[0],
        surrogate_key=draw(st.sampled_from([None, "the_key", "surrogate_key"])),
        **options,
    )


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(dimensions())
def test_described_and_parsed_is_the_same(dimension: Dimension) -> None:
    assert parse(describe(dimension)) == (dimension,)


def test_examples() -> None:
    for text in (SHORT, LONG):
        (dimension,) = parse(text)
        assert parse(describe(dimension)) == (dimension,)


def test_a_described_dimension_is_short() -> None:
    (dimension,) = parse(SHORT)
    assert len(describe(dimension).splitlines()) <= len(SHORT.splitlines()) + 6
