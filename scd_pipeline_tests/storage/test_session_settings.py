"""A load of few records changes settings of its session, and restores them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.storage.customers import CUSTOMER, feed

PARTITIONS, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings of its own."""
    before = {name: spark.conf.get(name) for name in (PARTITIONS, ADAPTIVE)}
    spark.conf.set(PARTITIONS, "3")
    spark.conf.set(ADAPTIVE, "true")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")


def test_a_load_of_few_records_is_planned_once_and_in_one_partition(session: SparkSession, warehouse: Path) -> None:
    during = set()

    def remember(message: str) -> None:
        if "wrote commit" in message:
            during.add((session.conf.get(PARTITIONS), session.conf.get(ADAPTIVE)))

    load(Warehouse(session, warehouse), CUSTOMER, [feed("one", ("a", 1, "Rome"))], progress=remember)
    assert during == {("1", "false")}
    assert (session.conf.get(PARTITIONS), session.conf.get(ADAPTIVE)) == ("3", "true")
