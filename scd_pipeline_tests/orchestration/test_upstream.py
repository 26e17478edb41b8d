"""A history whose base is a table that another asset writes: one run loads both, the base first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from scd_pipeline import queries
from scd_pipeline.components.assets import table_assets
from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.orchestration.code_locations import warehouse_resource
from scd_pipeline_tests.semantics.specification import requirement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASE = dg.AssetKey(["raw", "customers"])
LOG, TABLE, AUDIT = (dg.AssetKey(f"customers_hist{suffix}") for suffix in ("_changes", "", "_audit"))
Run = Callable[[str | None], dg.ExecuteInProcessResult]


@pytest.fixture
def history(tmp_path: Path) -> Dimension:
    """The declaration of the history."""
    source = Source("erp", Snapshot(str(tmp_path / "customers"), versions=True), upstream="raw/customers")
    return Dimension("customers_hist", "id", {"city": 2}, source)


@pytest.fixture
def run(spark: SparkSession, warehouse: Path, history: Dimension) -> Iterator[Run]:
    """Run base and history; the base then has a customer in a city, or fails without one."""
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("customers_hist_deliveries", [EVERYTHING])

        def run_both(city: str | None) -> dg.ExecuteInProcessResult:
            @dg.asset(key=BASE)
            def base() -> None:
                if city is None:
                    raise ValueError("the base cannot be written")
                write(spark, history, city)

            return dg.materialize(
                [table_assets(history), base],
                resources={"warehouse": warehouse_resource(spark, str(warehouse))},
                instance=instance,
                partition_key=EVERYTHING,
                raise_on_error=False,
            )

        yield run_both


def write(spark: SparkSession, history: Dimension, city: str) -> None:
    """Write a version of the base."""
    rows = spark.sql(f"SELECT '1' AS id, '{city}' AS city")
    rows.write.format("delta").mode("overwrite").save(str(history.sources[0].channel("snapshot").path))


def test_each_asset_of_a_history_depends_on_the_assets_that_write_its_sources(history: Dimension) -> None:
    """A run in which only one of them is selected loads all of them, and has the same order."""
    deps = {spec.key: {dep.asset_key for dep in spec.deps} for spec in table_assets(history).specs}
    assert deps == {LOG: {BASE}, TABLE: {LOG, BASE}, AUDIT: {TABLE, BASE}}


@requirement("H25")
def test_a_run_loads_the_version_of_the_base_that_it_wrote(
    spark: SparkSession, warehouse: Path, history: Dimension, run: Run
) -> None:
    """If the base fails, its history is not loaded, although an earlier version of it exists."""
    write(spark, history, "Graz")
    failed = run(None)
    assert not failed.success
    assert Warehouse(spark, warehouse).tables() == []
    assert run("Linz").success
    versions = queries.history(Warehouse(spark, warehouse), history).orderBy("version").collect()
    assert [(row["city"], row["load_run_id"], row["current_flag"]) for row in versions] == [
        ("Graz", "erp/snapshot/0", False),
        ("Linz", "erp/snapshot/1", True),
    ]
