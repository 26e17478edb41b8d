"""Declarations with everything: Spark Connect limits the depth of a plan, whatever its queries compute."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Begin, Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.text_tables import assert_same_rows

EVERYTHING = {
    "store": 2,
    "birth_date": 0,
    "mail": 1,
    "manager": 3,
    "tier": Attribute(6, previous="last_different_value"),
    "note": Attribute(1, untracked="latest_in_version"),
    "score": Attribute(2, type="double"),
    "scores": Attribute(2, type="array<double>"),
    "created": Attribute(1, type="timestamp"),
}


def extract(day: int, **stores: str) -> Delivery:
    """The customers of their stores on a day of January, or, without stores of a scope, of store S1."""
    rows = [
        {
            **dict.fromkeys(EVERYTHING, "x"),
            "id": key,
            "at": f"2024-01-{day:02}",
            "store": store,
            "score": 1.5,
            "scores": [day],
            "created": "2023-12-31",
        }
        for key, store in stores.items()
    ]
    at = datetime(2024, 1, day, tzinfo=timezone.utc)
    return Delivery("pos", str(day), channel="snapshot", at=at, frame=rows)


@pytest.mark.slow
@pytest.mark.rule("S27")
@pytest.mark.parametrize(
    "channel",
    [
        pytest.param(Snapshot(), id="plain"),
        pytest.param(Snapshot(scope="store"), id="scope"),
        pytest.param(Snapshot(effective_at="at"), id="row times"),
    ],
)
def test_a_declaration_with_everything_is_loaded(spark: SparkSession, warehouse: Path, channel: Snapshot) -> None:
    source = Source("pos", channel, Feed(effective_at="at"))
    dimension = Dimension("dim_shopper", "id", EVERYTHING, source, begin=Begin(column="created"))
    opened = Warehouse(spark, warehouse)
    load(opened, dimension, [extract(1, a="S1", b="S1")])
    load(opened, dimension, [extract(4, b="S1"), extract(2, b="S2")])
    becomes = """
    | id | store | version | effective_from | effective_to |
    | a  | S1    | 1       | 2023-12-31     | 2024-01-04   |
    | b  | S1    | 1       | 2023-12-31     | 2024-01-02   |
    | b  | S2    | 2       | 2024-01-02     | 2024-01-04   |
    | b  | S1    | 3       | 2024-01-04     | OPEN         |
    """
    if not channel.scope:
        becomes = becomes.replace(
            "| a  | S1    | 1       | 2023-12-31     | 2024-01-04   |",
            "| a  | S1    | 1       | 2023-12-31     | 2024-01-02   |",
        )
    assert_same_rows(becomes, opened.table("dim_shopper").read().toArrow().to_pylist())
