"""Divide rows by the tables into which they are loaded (S38)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import functions as F

from scd_pipeline.declaration.names import is_table_name
from scd_pipeline.deliveries.arrow import column_names
from scd_pipeline.deliveries.inputs import is_frame, is_rows, to_known_rows
from scd_pipeline.errors import UsageError
from scd_pipeline.expressions import col
from scd_pipeline.texts import join_names, short_repr

TableOfRow: TypeAlias = str | Callable[[Any], str]
"""The column with the name of a row's table, or a function that returns it for a row."""


def rows_by_table(rows: Any, table: TableOfRow) -> dict[str, Any]:
    """Return the rows of each table, by its name.

    Args:
        rows: Dicts; or a frame, if `table` is a column.
        table: The column with the name of the table, or for dicts a function that returns it.

    Raises:
        UsageError: The rows or `table` are of another kind, or the value for a row is not the name of a table.
    """
    rows = to_known_rows(rows)
    if isinstance(table, str) and is_frame(rows):
        if table not in column_names(rows):
            raise UsageError("NO_SUCH_COLUMN", "rows", names=table, columns=join_names(column_names(rows)))
        divided = _divide_frame(rows, table)
    elif is_rows(rows) and (isinstance(table, str) or callable(table)):
        divided = _divide_rows(rows, table)
    else:
        raise UsageError("NOT_DISPATCHED", "rows", type=type(rows).__name__, table=short_repr(table))
    _check_names(list(divided))
    return divided


def _divide_rows(rows: Sequence[Mapping[str, Any]], table: TableOfRow) -> dict[Any, list[Mapping[str, Any]]]:
    divided: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        divided.setdefault(row.get(table) if isinstance(table, str) else table(row), []).append(row)
    return divided


def _divide_frame(frame: Any, column: str) -> dict[Any, Any]:
    """Return the rows with each value of a column."""
    import pyarrow.compute as pc

    if hasattr(frame, "collect"):  # of Spark
        values = [row[0] for row in frame.select(col(column)).distinct().collect()]
        return {value: frame.where(col(column) == F.lit(value)) for value in values}
    if hasattr(frame, "to_pylist"):  # of pyarrow
        values = frame[column].unique().to_pylist()
        return {value: frame.filter(pc.field(column) == pc.scalar(value)) for value in values}
    return dict(iter(frame.groupby(column, sort=False, dropna=False)))


def _check_names(names: Sequence[Any]) -> None:
    """Raise unless each value is the name of a table, and no two are the same without regard to case."""
    for name in names:
        if not (isinstance(name, str) and is_table_name(name)):
            raise UsageError("NOT_A_DISPATCHED_TABLE", "table", value=short_repr(name))
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(name.casefold(), name)) != name:
            raise UsageError("TABLES_DIFFER_BY_CASE", "table", names=join_names([other, name]))
