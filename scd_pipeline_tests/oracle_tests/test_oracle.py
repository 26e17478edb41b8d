"""Tests of the oracle for what no scenario and no table of `semantics` covers."""

from __future__ import annotations

import datetime as dt
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.text_tables import parse


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (float("nan"), float("nan")),
        (0.0, -0.0),
        ({"x": 1, "y": [{"z": None, "w": 1}]}, {"y": [{"w": 1, "z": None}], "x": 1}),
        ([float("nan")], [float("nan")]),
    ],
)
def test_equal_values(value: object, other: object) -> None:
    """S8."""
    assert o.canon(value) == o.canon(other)


@pytest.mark.parametrize(
    ("value", "other"),
    [(None, ""), (None, 0), ([], None), ([None], []), ({"a": None}, None), (["a", "b"], ["a|b"]), ({}, [])],
)
def test_different_values(value: object, other: object) -> None:
    """S8."""
    assert o.canon(value) != o.canon(other)


def test_two_contents_under_one_revision_raise_an_error() -> None:
    dim = o.Dim("dim", ("id",), (o.Attr("city", 2, "crm"),), (o.Src("crm", True),))
    batch = o.Batch("crm", "snapshot", "1", 1, dt.datetime(2024, 1, 1), (o.Row((1,), {"city": "Bonn"}),))
    other = replace(batch, rows=(o.Row((1,), {"city": "Kiel"}),))
    assert len(o.accepted(dim, [batch, batch])[0]) == 1
    with pytest.raises(ValueError, match="crm/snapshot/1/1: two contents"):
        o.accepted(dim, [batch, other])


def test_the_oracle_imports_only_the_standard_library() -> None:
    """It shares no code with the engine, with which it is compared."""
    names = re.findall(r"^(?:from|import) (\w+)", Path(str(o.__file__)).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(names) <= sys.stdlib_module_names


START = dt.datetime(2024, 1, 1)
CUSTOMER = o.Dim(
    "dim_customer",
    ("id",),
    (o.Attr("city", 2, "crm"),),
    (o.Src("crm", True),),
    begin=(dt.datetime(2023, 1, 1), START),
)
SALE = o.Dim(
    "fct_sale",
    ("id",),
    tuple(o.Attr(name, 1, "till", required=name == "at") for name in ("at", "shop", "customer", "coins")),
    (o.Src("till", True, empty_scope="reject"),),
)
CITIES = """
| id | at         | city |
| a  | 2024-01-01 | Bonn |
| a  | 2024-02-01 | Kiel |
| b  | 2024-03-01 | Graz |
"""


def _sale(shop: str, customer: str | None, at: str, coins: int = 1) -> dict[str, object]:
    return {"at": dt.datetime.fromisoformat(at), "shop": shop, "customer": customer, "coins": coins}


def _snapshot(day: int, *shops: str, rows: dict[int, dict[str, object]], **more: object) -> o.Batch:
    return o.Batch(
        "till",
        "snapshot",
        str(day),
        1,
        START + dt.timedelta(days=day),
        tuple(o.Row((number,), values) for number, values in rows.items()),
        scope_columns=("shop",),
        scope_values=tuple((shop,) for shop in shops),
        **more,  # type: ignore[arg-type]
    )


FIRST = _snapshot(1, "x", "y", rows={1: _sale("x", "a", "2024-01-15"), 2: _sale("y", "a", "2024-02-01")})


@pytest.mark.parametrize(
    ("batch", "rejection", "ids"),
    [
        (_snapshot(2, "x", rows={3: _sale("x", "a", "2024-01-15")}), None, {2, 3}),
        (_snapshot(2, "x", rows={3: _sale("x", "a", "2024-01-15"), 4: _sale("y", "a", "2024-01-15")}), None, {2, 3}),
        (_snapshot(2, "x", rows={2: _sale("x", "a", "2024-01-15")}), None, {2}),
        (_snapshot(2, "x", "y", rows={3: _sale("x", "a", "2024-01-15")}), o.EMPTY_SCOPE, {1, 2}),
        (_snapshot(2, "x", rows={}), o.EMPTY_SCOPE, {1, 2}),
        (replace(FIRST, revision=2, rows=(), withdrawn=True), None, set()),
        (_snapshot(2, "x", rows={3: _sale("x", "a", "2024-01-15", 5)}, totals={"rows": 1, "coins": 5}), None, {2, 3}),
        (
            _snapshot(2, "x", rows={3: _sale("x", "a", "2024-01-15", 5)}, totals={"coins": 6}),
            o.CONTROL_TOTALS,
            {1, 2},
        ),
        (
            _snapshot(
                2,
                "x",
                rows={3: _sale("x", "a", "2024-01-15", 5)},
                totals={"rows": 2},
                allow=frozenset({"control_totals"}),
            ),
            None,
            {2, 3},
        ),
    ],
    ids=[
        "a scope is replaced",
        "a row outside of the scope is bad",
        "a fact moves to another scope",
        "a named scope has no rows",
        "no rows",
        "withdrawn",
        "equal control totals",
        "other control totals",
        "overridden control totals",
    ],
)
def test_facts_by_scope(batch: o.Batch, rejection: str | None, ids: set[int]) -> None:
    """S34, S41."""
    assert o.accepted(SALE, [FIRST, batch])[1].get(batch.id) == rejection
    assert {row["id"] for row in o.replayed_facts(SALE, [batch, FIRST])} == ids


@pytest.mark.parametrize(
    ("customer", "at", "member"),
    [
        ("a", "2024-01-15", "('a',) version 1"),
        ("a", "2024-02-01", "('a',) version 2"),
        ("a", "2023-01-01", "('a',) version 1"),
        ("b", "2024-01-15", "unknown member"),
        ("c", "2024-01-15", "('c',) inferred member"),
        ("c", "2022-12-31", "unknown member"),
        (None, "2024-01-15", "unknown member"),
    ],
)
def test_the_member_that_a_fact_references(customer: str | None, at: str, member: str) -> None:
    """S23: entity a begins at the fixed time; b exists only later, so that it is not inferred."""
    rows = [o.Row((row["id"],), {"city": row["city"]}, effective_at=_time(row["at"])) for row in parse(CITIES)]
    cities = o.Batch("crm", "feed", "1", 1, START, tuple(rows), has_row_times=True)
    fact = o.Fact(SALE, "at", (o.Role("customer", CUSTOMER, ("customer",), infers=True),))
    sales = _snapshot(1, "x", rows={1: _sale("x", customer, at)})
    assert [row["customer_member"] for row in o.fact_rows(fact, [sales], [cities])] == [member]


def _time(value: object) -> dt.datetime:
    return dt.datetime.fromisoformat(str(value)).replace(tzinfo=None)
