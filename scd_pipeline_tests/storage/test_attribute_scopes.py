"""Snapshots whose scope is an attribute: the work follows the entities that change, not entities times snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import differences
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.snapshots import BatchChanges, snapshots_to_recheck
from scd_pipeline.load.run import load
from scd_pipeline_tests.text_tables import assert_same_rows

STORES = [f"S{number:02}" for number in range(20)]
FIRST_LIST = """
    ('a', 'S1', 'EU', 'old', 'upsert'), ('b', 'S2', 'EU', 'old', 'upsert'), ('c', NULL, 'EU', 'old', 'upsert'),
    ('d', 'S1', 'EU', 'old', 'upsert'), ('d', 'S2', '-', 'web', 'upsert'), ('d', '-', 'US', 'web2', 'upsert'),
    ('e', '-', '-', 'old', 'delete'), ('f', 'S1', 'EU', 'pos/snapshot/1/1', 'upsert')
"""
"""Shopper d moved from S1 to S2 and then from EU to US; - is not provided. The new snapshot lists only shopper f."""


def shopper(scope: Sequence[str]) -> Dimension:
    """A dimension whose snapshots are scoped by these columns."""
    source = Source("pos", Snapshot(scope=tuple(scope)), Feed(effective_at="at", updates="partial"))
    return Dimension("dim_shopper", "id", {"store": 2, "region": 2}, source)


def snapshot(delivery: str, columns: Sequence[str], *values: Sequence[str], day: int = 9) -> Batch:
    """A snapshot on a day of January, whose scope is these values of the columns."""
    encoded = tuple("".join(f"{len(part)}:{part}" for part in value) for value in values)
    at = datetime(2024, 1, day, tzinfo=timezone.utc)
    names = ("store", "region")
    return Batch("pos", "snapshot", delivery, "1", at, names, scope_columns=tuple(columns), scope=encoded, retires=True)


def change_records(spark: SparkSession, rows: str) -> DataFrame:
    """Change records of shoppers, with the columns that absences and rechecks read."""
    return spark.sql(
        "SELECT 'pos' AS _source, id, IF(store = '-', NULL, struct(store AS v)) AS store,"
        " IF(region = '-', NULL, struct(region AS v)) AS region, _batch, _kind, 'delivered' AS _origin,"
        f" timestamp'2024-01-02' AS _effective_at FROM {rows} AS t(id, store, region, _batch, _kind)"
    )


def test_an_absence_is_derived_once_for_each_customer_of_the_scope(spark: SparkSession) -> None:
    """400 customers of 20 stores, each of which delivers one snapshot, and then five that a late change affects."""
    rows = "(SELECT id, format_string('S%02d', id % 20), 'EU', 'old', 'upsert' FROM range(400))"
    records, dimension = change_records(spark, rows), shopper(["store"])
    new = [snapshot(f"new-{store}", ["store"], [store]) for store in STORES]
    assert differences._absences(spark, records, new, dimension).count() == 400
    stored = [snapshot(f"{day}-{store}", ["store"], [store], day=day) for day in range(3, 8) for store in STORES]
    late = Batch("pos", "feed", "late", "1", datetime(2024, 1, 2, tzinfo=timezone.utc))
    affected = snapshots_to_recheck(BatchChanges((late,), (), tuple(stored)), dimension)
    assert len(affected) == 100
    assert differences._rechecks(spark, records, affected, dimension).count() == 400 * 5


@pytest.mark.parametrize(
    ("columns", "scope", "omitted"),
    [
        pytest.param(["store"], [["S1"]], "a d", id="former value"),
        pytest.param(["store"], [["S1"], ["S2"]], "a b d", id="several values"),
        pytest.param(["store"], [], "", id="no value"),
        pytest.param(["store", "region"], [["S2", "US"], ["S1", "US"]], "d", id="attributes of several records"),
        pytest.param(["id", "store"], [["a", "S1"], ["b", "S1"], ["d", "S2"]], "a d", id="key and attribute"),
        pytest.param(["id"], [["a"], ["c"], ["e"], ["f"]], "a c e", id="key"),
    ],
)
def test_absences_are_of_all_entities_that_may_have_belonged_to_the_scope(
    spark: SparkSession, columns: Sequence[str], scope: Sequence[Sequence[str]], omitted: str
) -> None:
    records, new = change_records(spark, f"VALUES {FIRST_LIST}"), snapshot("1", columns, *scope)
    absences = differences._absences(spark, records, [new], shopper(columns))
    assert Counter(row["id"] for row in absences.collect()) == Counter(omitted.split())


@pytest.mark.slow
@pytest.mark.rule("S27")
def test_an_entity_belongs_to_a_scope_by_attributes_of_different_records(spark: SparkSession, warehouse: Path) -> None:
    """The feed moves shopper a to the US, whose snapshot of store S1 omits it; it does not move shopper b."""

    def extract(day: int, region: str, *ids: str) -> Delivery:
        at = datetime(2024, 1, day, tzinfo=timezone.utc)
        rows = [{"id": key, "store": "S1", "region": region} for key in ids]
        return Delivery("pos", str(day), channel="snapshot", at=at, frame=rows)

    opened = Warehouse(spark, warehouse)
    moved = Delivery("pos", "2", channel="feed", frame=[{"id": "a", "at": "2024-01-02", "region": "US"}])
    load(opened, shopper(["store", "region"]), [extract(1, "EU", "a", "b"), moved, extract(3, "US", "c")])
    assert_same_rows(
        """
        | id | store | region | effective_from | effective_to |
        | a  | S1    | EU     | 2024-01-01     | 2024-01-02   |
        | a  | S1    | US     | 2024-01-02     | 2024-01-03   |
        | b  | S1    | EU     | 2024-01-01     | OPEN         |
        | c  | S1    | US     | 2024-01-03     | OPEN         |
        """,
        opened.table("dim_shopper").read().toArrow().to_pylist(),
    )
