"""The jobs; schedules and sensors will lie beside this module."""

from __future__ import annotations

import dagster as dg

load_job = dg.define_asset_job(
    "load_job",
    selection=dg.AssetSelection.all(),
    description="Takes in everything that was delivered, for all dimensions; what is there already changes nothing.",
)
