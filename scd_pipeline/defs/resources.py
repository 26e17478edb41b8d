"""The resources, as the environment sets them.

SCD_WAREHOUSE is the folder, SCD_REMOTE a Spark Connect server, SCD_SCHEMA a schema of its catalog in place of the
folder; SCD_SCHEMA_CHANGES, SCD_SCHEMA_AUDIT and SCD_SCHEMA_KEYS name others for these kinds of table.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from scd_pipeline.components import WarehouseResource
from scd_pipeline.landing import schemas

DEFAULT_WAREHOUSE = "warehouse"


@dg.definitions
def resources() -> dg.Definitions:
    """`warehouse`, for the assets."""
    path = os.environ.get("SCD_WAREHOUSE") or DEFAULT_WAREHOUSE
    absolute = path if "://" in path else str(Path(path).absolute())
    warehouse = WarehouseResource(path=absolute, remote=os.environ.get("SCD_REMOTE", ""), **schemas(os.environ))
    return dg.Definitions(resources={"warehouse": warehouse})
