"""The resource `warehouse`, which ScdDimension components require."""

from __future__ import annotations

import dagster as dg

from scd_pipeline.components import WarehouseResource


@dg.definitions
def resources() -> dg.Definitions:
    """Define the warehouse: the folder SCD_WAREHOUSE (default: `warehouse`), and the Spark of SCD_REMOTE (embedded)."""
    return dg.Definitions(resources={"warehouse": WarehouseResource.from_env()})
