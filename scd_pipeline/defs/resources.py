"""The resources, configured by the environment."""

from __future__ import annotations

import dagster as dg

from scd_pipeline.components import WarehouseResource


@dg.definitions
def resources() -> dg.Definitions:
    """Define the resource `warehouse`, which the assets require."""
    return dg.Definitions(resources={"warehouse": WarehouseResource.from_env()})
