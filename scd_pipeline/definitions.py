"""The code location: what `dagster dev -m scd_pipeline.definitions` serves."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from dagster.components import load_defs

import scd_pipeline.defs

defs = dg.Definitions.merge(
    # Naming the root makes it work from an installed wheel too, where there is no pyproject.toml to be found.
    load_defs(scd_pipeline.defs, project_root=Path(__file__).parent),
    # One run is one process with one Spark: parallel steps would each start a Java machine of their own.
    dg.Definitions(executor=dg.in_process_executor),
)
