"""The resources, as the environment sets them."""

from __future__ import annotations

import dagster as dg

from scd_pipeline.components import WarehouseResource


@dg.definitions
def resources() -> dg.Definitions:
    """Define `warehouse` for the assets."""
    return dg.Definitions(resources={"warehouse": WarehouseResource.from_env()})
