"""The code location: what `dagster dev -m scd_pipeline.definitions` serves."""

from __future__ import annotations

import warnings
from pathlib import Path

import dagster as dg

import scd_pipeline.defs


def _components() -> dg.Definitions:
    """What the modules and components of `defs` define."""
    with warnings.catch_warnings():
        # Of previews and of what is deprecated, all inside Dagster itself.
        warnings.simplefilter("ignore")
        # The root is named so that it works from an installed wheel too, where there is no pyproject.toml to be found.
        tree = dg.ComponentTree.from_module(defs_module=scd_pipeline.defs, project_root=Path(__file__).parent)
        return tree.build_defs()


defs = dg.Definitions.merge(
    _components(),
    # One run is one process with one Spark: parallel steps would each start a Java machine of their own.
    dg.Definitions(executor=dg.in_process_executor),
)
