"""Windows over the rows of one entity.

`RowWindows` gives each window by its name. Its functions are those of Spark, with one exception: if every entity is
known to have one record, they are computed from that record alone. Spark then neither shuffles nor sorts the rows, as
it must for a window, and the first load of a table is several times faster. The results are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, EFFECTIVE_AT, EFFECTIVE_FROM, EFFECTIVE_TO, SOURCE, VERSION
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import col, position_order


class RowWindow(Protocol):
    """Functions of the rows in a window, relative to one row; `whole` has all rows of the entity as its frame."""

    def lag(self, value: Column) -> Column:
        """Return the value of the preceding row, NULL in the first one."""

    def lead(self, value: Column) -> Column:
        """Return the value of the following row, NULL in the last one."""

    def first(self, value: Column) -> Column:
        """Return the first value that is not NULL."""

    def last(self, value: Column, *, ignore_nulls: bool = True) -> Column:
        """Return the last value that is not NULL; with `ignore_nulls=False`, that of the last row."""

    def max(self, value: Column) -> Column:
        """Return the greatest value."""

    def sum(self, value: Column) -> Column:
        """Return the sum as a bigint."""

    def row_number(self) -> Column:
        """Return the number of the row, from 1."""

    def whole(self) -> RowWindow:
        """Return the window with all rows of the entity as its frame."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """A window of Spark."""

    specification: WindowSpec

    def lag(self, value: Column) -> Column:
        return F.lag(value).over(self.specification)

    def lead(self, value: Column) -> Column:
        return F.lead(value).over(self.specification)

    def first(self, value: Column) -> Column:
        return F.first(value, ignorenulls=True).over(self.specification)

    def last(self, value: Column, *, ignore_nulls: bool = True) -> Column:
        return F.last(value, ignorenulls=ignore_nulls).over(self.specification)

    def max(self, value: Column) -> Column:
        return F.max(value).over(self.specification)

    def sum(self, value: Column) -> Column:
        return F.sum(value).over(self.specification)

    def row_number(self) -> Column:
        return F.row_number().over(self.specification)

    def whole(self) -> SortedRows:
        return SortedRows(
            self.specification.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing),
        )


@dataclass(frozen=True, slots=True)
class OnlyRow:
    """The window of an entity with one row; `is_in_frame` is whether the frame has it."""

    is_in_frame: bool = True

    def lag(self, value: Column) -> Column:
        return _null(value)

    def lead(self, value: Column) -> Column:
        return _null(value)

    def first(self, value: Column) -> Column:
        return value if self.is_in_frame else _null(value)

    def last(self, value: Column, *, ignore_nulls: bool = True) -> Column:  # noqa: ARG002 (one value is the last one)
        return value if self.is_in_frame else _null(value)

    def max(self, value: Column) -> Column:
        return value if self.is_in_frame else _null(value)

    def sum(self, value: Column) -> Column:
        return (value if self.is_in_frame else _null(value)).cast("bigint")

    def row_number(self) -> Column:
        return F.lit(1)

    def whole(self) -> OnlyRow:
        return OnlyRow()


def _null(value: Column) -> Column:
    """Return NULL of the type of a value."""
    return F.when(F.lit(False), value)


class RowWindows:
    """The windows over the rows of one entity of a dimension.

    Args:
        dimension: The declaration.
        has_one_record_per_entity: Whether every entity has exactly one row in each frame to which the windows are
            applied.
    """

    def __init__(self, dimension: Dimension, *, has_one_record_per_entity: bool = False) -> None:
        self._key = business_key(dimension)
        self.has_one_record_per_entity = has_one_record_per_entity

    def by_position(self) -> RowWindow:
        """Return the window of the change records of all sources, in order of position (S5)."""
        return self._sorted(self._key, position_order())

    def by_time(self) -> RowWindow:
        """Return the window of the states in order of time; each time has one state."""
        return self._sorted(self._key, [F.col(EFFECTIVE_AT).asc()])

    def by_version(self) -> RowWindow:
        """Return the window of the versions in their order."""
        return self._sorted(self._key, [F.col(VERSION).asc()])

    def by_window(self) -> RowWindow:
        """Return the window of the versions in order of their validity windows."""
        return self._sorted(self._key, [F.col(EFFECTIVE_FROM).asc(), F.col(EFFECTIVE_TO).asc()])

    def rows_before(self) -> RowWindow:
        """Return the window of the rows of the same source before each row, presence rows included."""
        if self.has_one_record_per_entity:
            return OnlyRow(is_in_frame=False)
        window = Window.partitionBy(SOURCE, *self._key).orderBy(*position_order(with_presence=True))
        return SortedRows(window.rowsBetween(Window.unboundedPreceding, -1))

    def same_batch(self) -> RowWindow:
        """Return the window of all rows of the same batch."""
        return (
            OnlyRow() if self.has_one_record_per_entity else SortedRows(Window.partitionBy(SOURCE, *self._key, BATCH))
        )

    def _sorted(self, keys: list[Column], order: list[Column]) -> RowWindow:
        return OnlyRow() if self.has_one_record_per_entity else SortedRows(Window.partitionBy(*keys).orderBy(*order))


def business_key(dimension: Dimension) -> list[Column]:
    """Return the columns of the business key."""
    return [col(name) for name in dimension.key_names]
