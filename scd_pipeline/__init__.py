"""Slowly changing dimensions on Spark, Delta Lake and Dagster.

Declarations and errors are imported with the package; names that need Spark are imported on first use, so that a
declaration can be read and validated without Spark. Functions are in `scd_pipeline.load` and `scd_pipeline.reading`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from scd_pipeline.declaration import (
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
from scd_pipeline.errors import BatchRejected, DeclarationError, LoadError, ScdError, SetupError, SourceDataError

if TYPE_CHECKING:
    from scd_pipeline.deliveries.delivery import Delivery as Delivery
    from scd_pipeline.delta.warehouse import Warehouse as Warehouse
    from scd_pipeline.load.dimension import LoadPlan as LoadPlan
    from scd_pipeline.load.dimension import LoadResult as LoadResult
    from scd_pipeline.load.dimension import Retry as Retry

_NEEDS_SPARK = {
    "Delivery": "scd_pipeline.deliveries.delivery",
    "LoadPlan": "scd_pipeline.load.load_plan",
    "LoadResult": "scd_pipeline.load.dimension",
    "Retry": "scd_pipeline.load.dimension",
    "Warehouse": "scd_pipeline.delta.warehouse",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_SPARK:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_NEEDS_SPARK[name]), name)


__all__ = [
    "Attribute",
    "BatchRejected",
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
