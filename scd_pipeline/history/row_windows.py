"""Spark window specifications over the rows of one entity."""

from __future__ import annotations

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_AT, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import col, position_order


def business_key(dimension: Dimension) -> list[Column]:
    """Return the columns of the business key."""
    return [col(name) for name in dimension.key_names]


def position_window(dimension: Dimension) -> WindowSpec:
    """Return the window of an entity's change records of all sources, in order of position (S5)."""
    return Window.partitionBy(*business_key(dimension)).orderBy(*position_order())


def time_window(dimension: Dimension) -> WindowSpec:
    """Return the window of an entity's states in order of time; each time has one state."""
    return Window.partitionBy(*business_key(dimension)).orderBy(F.col(EFFECTIVE_AT).asc())


def rows_before(dimension: Dimension) -> WindowSpec:
    """Return the window of the rows of the same source and entity before each row, presence rows included."""
    window = Window.partitionBy(SOURCE, *business_key(dimension)).orderBy(*position_order(with_presence=True))
    return window.rowsBetween(Window.unboundedPreceding, -1)


def whole_partition(window: WindowSpec) -> WindowSpec:
    """Return the same window with all rows of the partition as its frame."""
    return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
