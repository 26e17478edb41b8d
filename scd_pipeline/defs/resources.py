"""The resources, as the environment sets them: SCD_WAREHOUSE, the folder; SCD_REMOTE, a Spark Connect server."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from scd_pipeline.components import DeltaSparkResource, WarehouseResource

DEFAULT_WAREHOUSE = "warehouse"


@dg.definitions
def resources() -> dg.Definitions:
    """`warehouse` for the assets; `spark` for steps of your own, in place of a LazyPySparkResource."""
    spark = DeltaSparkResource(remote=os.environ.get("SCD_REMOTE", ""))
    path = os.environ.get("SCD_WAREHOUSE") or DEFAULT_WAREHOUSE
    absolute = path if "://" in path else str(Path(path).absolute())
    return dg.Definitions(resources={"spark": spark, "warehouse": WarehouseResource(path=absolute, spark=spark)})
