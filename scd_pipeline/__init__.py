"""Slowly changing dimensions on Spark, Delta Lake and Dagster.

The names of declarations and the errors are here at once; those that need Spark come when they are asked for, so that a
declaration can be read, and refused, without it. Functions are found in their modules: `load.load`, `load.plan`,
`reading.current`, `reading.as_of` and others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from scd_pipeline.errors import BatchStopped, DeclarationError, LoadError, ScdError, SetupError, SourceDataError
from scd_pipeline.spec import (
    Attribute,
    Begin,
    Column,
    Dimension,
    Feed,
    RetireGuard,
    ScdType,
    Snapshot,
    Source,
    describe,
    load_dimension,
    load_dimensions,
)

if TYPE_CHECKING:
    from scd_pipeline.deliveries import Delivery as Delivery
    from scd_pipeline.load import LoadPlan as LoadPlan
    from scd_pipeline.load import LoadResult as LoadResult
    from scd_pipeline.load import Retry as Retry
    from scd_pipeline.warehouse import Warehouse as Warehouse

_NEEDS_SPARK = {
    "Delivery": "scd_pipeline.deliveries",
    "LoadPlan": "scd_pipeline.plan",
    "LoadResult": "scd_pipeline.load",
    "Retry": "scd_pipeline.load",
    "Warehouse": "scd_pipeline.warehouse",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_SPARK:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_NEEDS_SPARK[name]), name)


__all__ = [
    "Attribute",
    "BatchStopped",
    "Begin",
    "Column",
    "DeclarationError",
    "Delivery",
    "Dimension",
    "Feed",
    "LoadError",
    "LoadPlan",
    "LoadResult",
    "RetireGuard",
    "Retry",
    "ScdError",
    "ScdType",
    "SetupError",
    "Snapshot",
    "Source",
    "SourceDataError",
    "Warehouse",
    "describe",
    "load_dimension",
    "load_dimensions",
]
