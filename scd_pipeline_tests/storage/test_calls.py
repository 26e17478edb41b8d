"""The budget of a load: how many calls execute something, how many commits it writes, what it asks the server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import narrowing
from scd_pipeline.load.run import load
from scd_pipeline_tests.calls import Calls, counted_calls
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, snapshot

pytestmark = pytest.mark.skipif(
    os.environ.get("SCD_TEST_WRITES") == "merge", reason="a MERGE needs another request, for the columns of its source"
)

SALE = Fact(
    "fct_sale",
    {"sale": "int"},
    "sold_at",
    {"customer": Role(CUSTOMER, "id")},
    Source("till", feed=Feed(format="parquet")),
    {"coins": "int"},
)


def sales(day: int, *customers: str) -> Delivery:
    """One sale to each of these customers, on a day of January 2024."""
    sold_at = datetime(2024, 1, day, 12, tzinfo=timezone.utc)
    numbers = range(100 * day, 100 * day + len(customers))
    rows = [{"sale": n, "sold_at": sold_at, "id": c, "coins": n} for n, c in zip(numbers, customers, strict=True)]
    return Delivery("till", f"2024-01-{day:02}", frame=pa.Table.from_pylist(rows), at=sold_at)


FIRST = dict.fromkeys("abcdefgh", "Rome")
SECOND = {**dict.fromkeys("cdefgh", "Rome"), "a": "Oslo", "i": "Bonn"}
LOADS: Mapping[str, Delivery] = {
    "first load": snapshot(1, FIRST),
    "snapshot in order": snapshot(2, SECOND),
    "snapshot without a change": snapshot(3, SECOND),
    "feed in order": feed("one", ("a", 4, "Kiel"), ("c", 4, None), ("j", 4, "Ulm")),
    "feed with a late record": feed("two", ("d", 2, "Jena")),
    "facts, first load": sales(5, *"abcz"),
    "facts, second load": sales(6, *"bcdz"),
}


@pytest.fixture(scope="module")
def calls_by_load(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Calls]:
    """The calls of each of the loads, one after the other, by the queries for tables of many rows."""
    folder, calls_by_load = tmp_path_factory.mktemp("calls"), {}
    warehouse = Warehouse(spark, folder)
    assert warehouse.capabilities  # the first load of a warehouse probes them
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(narrowing, "NARROWED_FROM", 0)
        for name, delivery in LOADS.items():
            with counted_calls(spark, folder) as calls:
                table = SALE if delivery.source == "till" else CUSTOMER
                result = load(warehouse, table, [delivery], has_facts=True)
            result.raise_if_rejected()
            calls_by_load[name] = calls
    return calls_by_load


@pytest.mark.parametrize(
    ("load_kind", "executing", "commits", "analyzing"),
    [
        ("first load", 14, 3, 1),
        ("snapshot in order", 17, 3, 3),
        ("snapshot without a change", 10, 2, 3),
        ("feed in order", 17, 3, 4),
        ("feed with a late record", 20, 3, 4),
        ("facts, first load", 14, 2, 1),
        ("facts, second load", 15, 2, 3),
    ],
)
def test_a_load_makes_few_calls(
    calls_by_load: dict[str, Calls], load_kind: str, executing: int, commits: int, analyzing: int
) -> None:
    """At most these; lower a number here with the change that saves a call.

    AnalyzePlan requests ask for the schemas of the log, of the dimension and of the delivery, and for the types of
    expressions.
    """
    calls = calls_by_load[load_kind]
    assert len(calls.executing) <= executing, str(calls)
    assert calls.commits.total() <= commits, str(calls)
    assert len(calls.analyzing) <= analyzing, str(calls)
