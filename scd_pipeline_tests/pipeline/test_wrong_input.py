"""Each argument of each public constructor and method rejects invalid values with an error of the package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scd_pipeline import (
    Attribute,
    Begin,
    Column,
    Delivery,
    Dimension,
    Fact,
    Feed,
    KeyColumn,
    Pipeline,
    RetireGuard,
    Role,
    ScdError,
    Snapshot,
    Source,
    UsageError,
    read_declarations,
    read_dimension,
    read_dimensions,
)

CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot={}))
TWO_SOURCES = Dimension(
    "dim_customer",
    "id",
    {"city": Attribute(2, source="crm"), "tier": Attribute(2, source="erp")},
    [Source("crm", snapshot={}, existence=True), Source("erp", feed={})],
)
SALE = Fact("fct_sale", {"sale": "string"}, "sold_at", {"customer": Role(CUSTOMER, "id")}, Source("shop", feed={}))

VALUES = {
    "none": None,
    "true": True,
    "number": 5,
    "negative": -1,
    "float": float("nan"),
    "decimal": Decimal("1.5"),
    "empty text": "",
    "text": "no such thing",
    "surrogate": "\ud800",
    "bytes": b"x",
    "date": date(2024, 1, 1),
    "time": datetime(1, 1, 1, tzinfo=timezone.utc),
    "list": [],
    "nested list": [[None]],
    "tuple of objects": (object(), 1),
    "dict": {},
    "dict of objects": {1: object()},
    "set": {1},
    "object": object(),
    "type": dict,
    "function": len,
    "dimension": CUSTOMER,
    "attribute": Attribute(2),
    "source": Source("crm", snapshot={}),
    "channel": Snapshot("in/{date}.csv"),
}


def dimension(**arguments: Any) -> Dimension:
    return Dimension(**{"name": "d", "business_key": "id", "attributes": {"a": 2}, "sources": source(), **arguments})


def source(**arguments: Any) -> Source:
    return Source(**{"name": "crm", "snapshot": Snapshot(), **arguments})


def with_channel(channel: type[Snapshot] | type[Feed]) -> Callable[..., object]:
    return lambda **arguments: dimension(sources=Source("crm", **{channel.name: channel(**arguments)}))


def fact(**arguments: Any) -> Fact:
    valid = {"name": "f", "grain": {"n": "int"}, "event_time": "t", "source": Source("s", feed={})}
    return Fact(**{**valid, "dimensions": {"customer": CUSTOMER}, **arguments})


# A dimension is built with each part that it validates.
CONSTRUCTORS: dict[type, Callable[..., object]] = {
    Dimension: dimension,
    Source: lambda **arguments: dimension(sources=source(**arguments)),
    Attribute: lambda **arguments: dimension(attributes={"a": Attribute(**{"scd": 2, **arguments})}),
    Column: lambda **arguments: dimension(sources=source(columns={"a": Column(**arguments)})),
    KeyColumn: lambda **arguments: dimension(business_key=[KeyColumn(**{"name": "id", **arguments})]),
    Begin: lambda **arguments: dimension(begin=Begin(**{"at": "2000-01-01", **arguments})),
    RetireGuard: lambda **arguments: dimension(sources=source(retire_guard=RetireGuard(**arguments))),
    Snapshot: with_channel(Snapshot),
    Feed: with_channel(Feed),
    Role: lambda **arguments: fact(dimensions={"customer": Role(**{"dimension": CUSTOMER, **arguments})}),
    Fact: fact,
    Delivery: lambda **arguments: Delivery(**{"source": "crm", "name": "1", **arguments}).batch(CUSTOMER),
}
FUNCTIONS = {function.__name__: function for function in (read_declarations, read_dimension, read_dimensions)}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("constructed", CONSTRUCTORS)
def test_a_constructor_accepts_or_rejects_any_value(constructed: type, kind: str) -> None:
    for name in inspect.signature(constructed).parameters:
        expect_no_bare_error(lambda name=name: CONSTRUCTORS[constructed](**{name: VALUES[kind]}), name)  # type: ignore[misc]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_reader_of_declarations_accepts_or_rejects_any_value(name: str, kind: str) -> None:
    expect_no_bare_error(lambda: FUNCTIONS[name](VALUES[kind]), name)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: Fact("f", {"n": "int"}, "t", {"c": CUSTOMER}, sources=Source("s", feed={})), "did you mean source? "),
        (lambda: Dimension("d", key="id", attributes={"a": 2}, sources=source()), ""),
        (lambda: Attribute(2, personel=True), "did you mean personal? "),
        (lambda: Snapshot(paths="in/{date}.csv"), "did you mean path? "),
        (lambda: Delivery("crm", "1", frames=[]), "did you mean frame? "),
        (lambda: Delivery("crm"), ""),
    ],
)
def test_an_unknown_or_missing_argument_is_reported_with_the_nearest_one(call: Callable[[], object], hint: str) -> None:
    with pytest.raises(UsageError) as error:
        call()
    assert (error.value.code, error.value.details["hint"]) == ("ARGUMENTS", hint)


@pytest.mark.parametrize("allow", ["retire-guard", ["retire_guard"], {"retire-guard"}])
def test_the_name_of_a_rule_has_hyphens_or_underscores(allow: Any) -> None:
    assert Delivery("crm", "1", allow=allow).allow == frozenset({"retire_guard"})


def test_a_relative_path_starts_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = ["in/1.csv", "/in/1.csv", "file:/in/1.csv", "s3a://bucket/in/1.csv"]
    deliveries = [Delivery("crm", "1", path=path).path for path in paths]
    assert deliveries == [str(tmp_path / "in/1.csv"), *paths[1:]]


def expect_no_bare_error(call: Callable[[], object], name: str) -> None:
    """Call, and expect a result or an error of the package with a code and a text."""
    try:
        call()
    except ScdError as error:
        if not (error.code and str(error)):
            pytest.fail(f"{name}: an error without code or text")
    except Exception as error:
        pytest.fail(f"{name}: {type(error).__name__}: {error}")


@pytest.fixture
def pipeline(tmp_path: Any) -> Pipeline:
    """A pipeline whose session has only settings: invalid arguments are rejected before Spark is used."""
    settings = {"spark.sql.session.timeZone": "UTC"}
    conf = SimpleNamespace(get=settings.get, set=settings.__setitem__)
    spark = SimpleNamespace(createDataFrame=None, conf=conf)
    return Pipeline(tmp_path, spark=spark)  # type: ignore[arg-type]


ROWS = [{"id": "7", "city": "Rome"}]
INVALID_CALLS: dict[str, Callable[[Pipeline], object]] = {
    "NOT_A_DECLARATION": lambda pipeline: pipeline.load(5),  # type: ignore[arg-type]
    "NOT_DELIVERIES": lambda pipeline: pipeline.load(CUSTOMER, 5),  # type: ignore[arg-type]
    "DELIVERY_NOT_NAMED": lambda pipeline: pipeline.load(CUSTOMER, ROWS),
    "SOURCE_NOT_NAMED": lambda pipeline: pipeline.load(TWO_SOURCES, ROWS, at="2024-01-01"),
    "DELIVERY_DESCRIBED_TWICE": lambda pipeline: pipeline.load(CUSTOMER, [Delivery("crm", 1)], at="2024-01-01"),
    "DELIVERY_WITHOUT_ROWS": lambda pipeline: pipeline.load(CUSTOMER, at="2024-01-01"),
    "NOT_A_TIME": lambda pipeline: pipeline.load(CUSTOMER, ROWS, at="31.01.2024"),
    "DELIVERY_TIME": lambda pipeline: pipeline.load(CUSTOMER, ROWS, name=1, at=5),  # type: ignore[arg-type]
    "DELIVERY_NAME": lambda pipeline: pipeline.load(CUSTOMER, ROWS, name=1.5),  # type: ignore[arg-type]
    "DELIVERY_ALLOW": lambda pipeline: pipeline.load(CUSTOMER, allow=5),  # type: ignore[arg-type]
    "DELIVERY_TOTALS": lambda pipeline: pipeline.load(CUSTOMER, Delivery("crm", 1, totals={"rows": 1.5})),  # type: ignore[dict-item]
    "WITHDRAWAL_NOT_EXPLAINED": lambda pipeline: pipeline.withdraw(CUSTOMER, "2024-01-01", by="", reason="test"),
    "NOT_A_TEXT": lambda pipeline: pipeline.load(CUSTOMER, [], run_id=5),  # type: ignore[arg-type]
    "NOT_A_TABLE_NAME": lambda pipeline: pipeline.current("no such table"),
    "NOT_A_DIMENSION": lambda pipeline: pipeline.join_as_of(None, "x", time="t"),  # type: ignore[arg-type]
    "NOT_A_SPARK_FRAME": lambda pipeline: pipeline.join_as_of(ROWS, CUSTOMER, time="t"),  # type: ignore[arg-type]
    "NOT_A_DURATION": lambda pipeline: pipeline.join_as_of(None, CUSTOMER, time="t", tolerance=7),  # type: ignore[arg-type]
    "NOT_A_LIST": lambda pipeline: pipeline.sql("SELECT 1", facts=SALE),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("code", INVALID_CALLS)
def test_an_invalid_call_of_the_pipeline_is_rejected(pipeline: Pipeline, code: str) -> None:
    with pytest.raises(ScdError) as caught:
        INVALID_CALLS[code](pipeline)
    assert caught.value.code == code
    assert f"[{code}]" in str(caught.value)


@pytest.mark.parametrize("method", ["current", "history", "audit", "batches", "quarantine", "check", "status", "sql"])
@pytest.mark.parametrize(
    "kind", [kind for kind in VALUES if kind not in ("text", "empty text", "dimension", "surrogate")]
)
def test_a_query_rejects_what_is_not_a_table(pipeline: Pipeline, method: str, kind: str) -> None:
    with pytest.raises(UsageError):
        getattr(pipeline, method)(VALUES[kind])


@pytest.mark.parametrize("kind", sorted(VALUES.keys() - {"date", "time"}))
def test_a_query_as_of_what_is_not_a_time_is_rejected(pipeline: Pipeline, kind: str) -> None:
    with pytest.raises(UsageError, match="NOT_A_TIME"):
        pipeline.as_of(CUSTOMER, VALUES[kind])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"warehouse": 5}, "NOT_A_WAREHOUSE"),
        ({"warehouse": ""}, "NOT_A_WAREHOUSE"),
        ({"spark": 5}, "NOT_A_SPARK_SESSION"),
        ({"remote": 5}, "NOT_A_TEXT"),
        ({"schema": 5}, "NOT_A_TEXT"),
        ({"schemas": ["audit"]}, "NOT_A_MAPPING"),
        ({"spark": SimpleNamespace(createDataFrame=None, conf=None), "remote": "sc://x"}, "TWO_SPARK_SESSIONS"),
    ],
)
def test_a_pipeline_rejects_invalid_arguments(arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        Pipeline(**arguments)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("path", "is_supported"), [("a/b.csv", True), ("a/b.jsonl.gz", True), ("a/b.txt", False), ("b", False)]
)
def test_the_format_of_a_path_is_inferred_from_its_ending(path: str, is_supported: bool) -> None:
    delivery = Delivery("crm", 1, at="2024-01-01", path=path)
    if is_supported:
        assert delivery.declared_channel(CUSTOMER).format in ("csv", "json")
        return
    with pytest.raises(ScdError) as caught:
        delivery.declared_channel(CUSTOMER)
    assert caught.value.code == "UNKNOWN_FORMAT"
