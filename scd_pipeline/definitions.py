"""The code location that `dagster dev -m scd_pipeline.definitions` serves."""

from __future__ import annotations

import warnings
from pathlib import Path

import dagster as dg

import scd_pipeline.defs


def _components() -> dg.Definitions:
    """Return the definitions of the modules and components in `defs`."""
    with warnings.catch_warnings():
        # Dagster warns about its own preview and deprecated features.
        warnings.simplefilter("ignore")
        # With an explicit root it works from an installed wheel too, which has no pyproject.toml.
        tree = dg.ComponentTree.from_module(defs_module=scd_pipeline.defs, project_root=Path(__file__).parent)
        return tree.build_defs()


defs = dg.Definitions.merge(
    _components(),
    # One run is one process with one Spark session: in other executors each step would start a JVM.
    dg.Definitions(executor=dg.in_process_executor),
)
