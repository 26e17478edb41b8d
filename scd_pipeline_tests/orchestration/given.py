"""Dagster's resource on the session of the tests."""

from __future__ import annotations

import dagster as dg
from pyspark.sql import SparkSession

from scd_pipeline.components import DeltaSparkResource, ScdDimension, WarehouseResource
from scd_pipeline.declaration import Declarations


def given_warehouse(spark: SparkSession, path: str) -> WarehouseResource:
    """The resource `warehouse` with a session that is there already."""

    class GivenSpark(DeltaSparkResource):
        def _init_session(self) -> None:
            self._spark_session = spark

    class GivenWarehouse(WarehouseResource):
        def spark(self) -> GivenSpark:
            return GivenSpark()

    return GivenWarehouse(path=path)


def definitions(spark: SparkSession, path: str, declared: Declarations) -> dg.Definitions:
    """A code location of what is declared, as the component makes it."""
    made = ScdDimension().definitions(declared)
    given = dg.Definitions(resources={"warehouse": given_warehouse(spark, path)}, executor=dg.in_process_executor)
    return dg.Definitions.merge(made, given)
