"""Code locations and resources on the Spark session of the tests."""

from __future__ import annotations

import dagster as dg
from pyspark.sql import SparkSession

from scd_pipeline.components import DeltaSparkResource, ScdDimension, WarehouseResource
from scd_pipeline.declaration import Declarations


def warehouse_resource(spark: SparkSession, path: str) -> WarehouseResource:
    """Return the resource `warehouse` with an existing session."""

    class ExistingSession(DeltaSparkResource):
        def _init_session(self) -> None:
            self._spark_session = spark

    class ExistingWarehouse(WarehouseResource):
        def spark(self) -> ExistingSession:
            return ExistingSession()

    return ExistingWarehouse(path=path)


def definitions(spark: SparkSession, path: str, declared: Declarations) -> dg.Definitions:
    """Return a code location of declarations, as the component builds it."""
    definitions_of_component = ScdDimension().definitions(declared)
    shared = dg.Definitions(resources={"warehouse": warehouse_resource(spark, path)}, executor=dg.in_process_executor)
    return dg.Definitions.merge(definitions_of_component, shared)
