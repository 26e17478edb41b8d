"""Dagster's resource on the session of the tests."""

from __future__ import annotations

import dagster as dg
from pyspark.sql import SparkSession

from scd_pipeline.components import DeltaSparkResource, WarehouseResource
from scd_pipeline.components.assets import dimension_assets
from scd_pipeline.spec import Dimension


def given_warehouse(spark: SparkSession, path: str) -> WarehouseResource:
    """The resource `warehouse` with a session that is there already."""

    class GivenSpark(DeltaSparkResource):
        def _init_session(self) -> None:
            self._spark_session = spark

    class GivenWarehouse(WarehouseResource):
        def spark(self) -> GivenSpark:
            return GivenSpark()

    return GivenWarehouse(path=path)


def definitions(spark: SparkSession, path: str, *dimensions: Dimension) -> dg.Definitions:
    """A code location of these dimensions, with the project's job."""
    from scd_pipeline.defs.jobs import load_job

    return dg.Definitions(
        assets=[dimension_assets(dimension) for dimension in dimensions],
        jobs=[load_job],
        resources={"warehouse": given_warehouse(spark, path)},
        executor=dg.in_process_executor,
    )
