"""What a batch contains does not depend on the query that counts it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries import batch_summary
from scd_pipeline.deliveries.accept import accept
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.intake import IntakeResult
from scd_pipeline.frames import local_frame

SHOP = Dimension(
    "dim_shop",
    {"region": "string", "id": "int"},
    {"name": 2},
    Source("crm", Snapshot(scope=["region"]), Feed(rows="name <> 'test'", deletes="gone"), bad_row_limit=1.0),
)
JANUARY = datetime(2024, 1, 1, tzinfo=timezone.utc)
SHOPS = [("north", "1", "Ulm"), ("north", "2", "Bonn"), ("south", "2", "Bonn"), ("south", "x", "Kiel"), (None, "3", "")]
CHANGES = [("east", "7", "Rome", False), ("east", "7", "Rome", False), ("east", "8", "test", False)]
DELIVERIES = [
    Delivery(
        "crm",
        "1",
        "snapshot",
        at=JANUARY,
        frame=[dict(zip(("region", "id", "name"), row, strict=True)) for row in SHOPS],
    ),
    *[
        Delivery(
            "crm",
            name,
            channel="feed",
            at=JANUARY,
            frame=[dict(zip(("region", "id", "name", "gone"), row, strict=True)) for row in rows],
        )
        for name, rows in {"a": CHANGES, "b": [*CHANGES[:1], ("west", "9", "Riga", True)]}.items()
    ],
]


def accepted(spark: SparkSession, deliveries: Sequence[Delivery]) -> IntakeResult:
    return accept(spark, SHOP, deliveries, [], run_id="", progress=lambda message: None)


def test_contents_are_the_same_by_one_query_and_by_several(spark: SparkSession) -> None:
    contents = [delivery.content for delivery in accepted(spark, DELIVERIES).measured]
    shops, first, second = contents
    assert (shops.rows, shops.entities, shops.bad_rows, shops.unreadable) == (5, 3, 2, 2)
    assert (shops.scope, shops.latest, bool(shops.bad_reason)) == (("5:north", "5:south"), JANUARY, True)
    assert (first.rows, first.filtered, first.entities, first.repeated) == (2, 1, 1, 1)
    assert (second.rows, second.entities, second.deletes, second.repeated) == (2, 2, 1, 0)
    for limit, value in (("_MAX_OBSERVED_BATCHES", 2), ("_LISTED_POSITIONS", 2), ("_LISTED_TASKS", 0)):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(batch_summary, limit, value)
            assert [delivery.content for delivery in accepted(spark, DELIVERIES).measured] == contents


def test_the_range_of_keys_has_every_delivered_key_and_few_others(spark: SparkSession) -> None:
    """The keys of filtered rows are not in it."""
    stored = local_frame(
        spark, [("east", 7), ("east", 8), ("west", 9), ("west", 7), ("north", 7)], "region string, id int"
    )
    condition = accepted(spark, DELIVERIES[1:]).key_range
    rows = sorted((row["region"], row["id"]) for row in stored.where(condition).collect())
    assert rows == [("east", 7), ("west", 7), ("west", 9)]
