"""The change records of a delivery are the same whether it is read alone or with others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.columns import COMMIT, INFO
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, snapshot


@pytest.mark.slow
@rule("S34")
def test_change_records_of_deliveries_read_alone_and_together_are_equal(spark: SparkSession, warehouse: Path) -> None:
    deliveries = [
        snapshot(1, {"a": "Bonn", "b": "Kiel"}),
        feed("1", ("a", 2, "Rom")),
        feed("2", ("b", 3, None), ("c", 3, "Ulm")),
    ]
    alone, together = (Warehouse(spark, warehouse / name) for name in ("alone", "together"))
    for delivery in deliveries:
        ingest_and_apply(alone, CUSTOMER, [delivery]).raise_if_rejected()
    ingest_and_apply(together, CUSTOMER, deliveries).raise_if_rejected()
    logs = [opened.table("dim_customer_changes").read().drop(COMMIT, INFO) for opened in (alone, together)]
    first, second = (sorted(str(sorted(row.asDict().items())) for row in log.collect()) for log in logs)
    assert first == second
    assert len(first) == len(deliveries) + 5
