"""A dimension of many attributes: expressions over all of them stay below the depth that Spark Connect allows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load, plan

NAMES = [f"a{number}" for number in range(100)]
TYPES = (0, 1, 2, 3, 6)
ATTRIBUTES = {name: Attribute(TYPES[number % 5], on_bad_value="null") for number, name in enumerate(NAMES)}
FEED = Feed(effective_at="at")


def delivery(name: str, day: int, value: str) -> Delivery:
    """Return a feed with one row twice, so that its ties are merged."""
    row = {"id": "x", "at": f"2024-01-0{day}", **dict.fromkeys(NAMES, value)}
    return Delivery("crm", name, "feed", frame=[row, row])


@pytest.mark.slow
def test_a_load_of_a_hundred_attributes_can_be_planned(spark: SparkSession, warehouse: Path) -> None:
    dimension = Dimension("dim_wide", "id", ATTRIBUTES, Source("crm", feed=FEED))
    planned = plan(Warehouse(spark, warehouse), dimension, [delivery("1", 1, "old"), delivery("2", 2, "new")])
    assert [result.outcome for result in planned.results] == ["accepted", "accepted"]
    assert planned.row_counts == {"open": 2}


@pytest.mark.slow
@pytest.mark.rule("S21")
def test_a_hundred_attributes_are_audited(spark: SparkSession, warehouse: Path) -> None:
    dimension, site = Dimension("dim_wide", "id", ATTRIBUTES, Source("crm", feed=FEED)), Warehouse(spark, warehouse)
    load(site, dimension, [delivery("1", 1, "old")]).raise_if_rejected()
    result = load(site, dimension, [delivery("2", 2, "new")])
    assert result.audit is not None
    assert dict(result.audit.counts.transitions) == {"UPDATE": 1, "OVERWRITE": 1, "REFUSED": 1}
