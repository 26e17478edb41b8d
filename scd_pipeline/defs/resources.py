"""The resources, as the environment sets them: SCD_WAREHOUSE, the folder; SCD_REMOTE, a Spark Connect server."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from scd_pipeline.components import WarehouseResource

DEFAULT_WAREHOUSE = "warehouse"


@dg.definitions
def resources() -> dg.Definitions:
    """`warehouse`, for the assets."""
    path = os.environ.get("SCD_WAREHOUSE") or DEFAULT_WAREHOUSE
    absolute = path if "://" in path else str(Path(path).absolute())
    warehouse = WarehouseResource(path=absolute, remote=os.environ.get("SCD_REMOTE", ""))
    return dg.Definitions(resources={"warehouse": warehouse})
