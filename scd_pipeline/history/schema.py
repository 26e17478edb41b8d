"""Columns of a dimension table, and the limits of its validity windows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    CHANGE_REASON,
    CHANGE_SOURCE,
    CURRENT_FLAG,
    DELETED_AT,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    IS_DELETED,
    LAST_UPDATED,
    LOAD_RUN_ID,
    VERSION,
    VERSION_STATE,
    attribute_types,
)
from scd_pipeline.declaration import Attribute, Begin, Dimension, ScdType
from scd_pipeline.declaration.column_names import ROW_HASH, TABLE_COLUMNS, ColumnLayout
from scd_pipeline.declaration.times import EARLIEST_TIME
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.expressions import col
from scd_pipeline.history.row_windows import RowWindow

_BEGIN_VALUE = "_begin_value"
COMPUTED_COLUMNS = tuple(name for name in TABLE_COLUMNS if name != ROW_HASH)
"""The generated columns of `dimension_schema` that can have other names in the table."""


def dimension_schema(dimension: Dimension) -> list[tuple[str, str, bool]]:
    """Return name, Spark type and nullability of each column of a dimension, in order."""
    surrogate_key = (dimension.surrogate_key, "bigint", False)
    # Only the row of the unknown member has NULL here (S23): a row with NULL in its business key is a bad row (S26).
    keys = {key: (key.name, parse_type(key.type).ddl(), True) for key in dimension.business_key}
    attributes = [
        (name, ddl, True)
        for attribute, data_type in zip(dimension.attributes, attribute_types(dimension).values(), strict=True)
        for name, ddl in _attribute_columns(attribute, data_type.ddl())
    ]
    if dimension.landing is not None:  # the columns of the source are first, as readers expect of its copy
        derived = [column for key, column in keys.items() if key.derived]
        columns = [*(keys[key] for key in dimension.delivered_key), *attributes, *derived, surrogate_key]
    else:
        columns = [surrogate_key, *keys.values(), *attributes]
    if dimension.has_windows:
        columns += [
            (EFFECTIVE_FROM, "timestamp", False),
            (EFFECTIVE_TO, "timestamp", False),
            (CURRENT_FLAG, "boolean", False),
            (VERSION, "int", False),
            *([(IS_DELETED, "boolean", False)] if dimension.has_deleted_versions else []),
            *([(VERSION_STATE, "string", True)] if dimension.has_version_state else []),
        ]
    elif dimension.deleted_at:
        columns.append((DELETED_AT, "timestamp", True))
    texts = [CHANGE_REASON, CHANGE_SOURCE, LOAD_RUN_ID]
    return [*columns, *[(name, "string", True) for name in texts], (LAST_UPDATED, "timestamp", False)]


def stored_schema(dimension: Dimension) -> list[tuple[str, str, bool]]:
    """Return name, Spark type and nullability of each column of the table of a dimension, in order.

    It differs from `dimension_schema`, in which rows are computed, if names of generated columns are declared, or NULL
    as the open end.
    """
    columns = [
        (stored, ddl, nullable or (name == EFFECTIVE_TO and dimension.column_layout.has_null_end))
        for name, ddl, nullable in dimension_schema(dimension)
        if (stored := stored_name(name, dimension.column_layout)) is not None
    ]
    row_hash = dimension.column_layout.name(ROW_HASH)
    return [*columns, *([(row_hash, "string", True)] if row_hash else [])]


def stored_name(column: str, layout: ColumnLayout) -> str | None:
    """Return the name in the table of a column of `dimension_schema`; None if the table does not have it."""
    # An attribute may have the default name of a column that the table lacks.
    return (layout.names.get(column, column) or None) if column in COMPUTED_COLUMNS else column


def dimension_columns(dimension: Dimension) -> Sequence[str]:
    """Return the names of a dimension's columns, in order."""
    return [name for name, _, _ in dimension_schema(dimension)]


def _attribute_columns(attribute: Attribute, ddl: str) -> list[tuple[str, str]]:
    """Return name and type of an attribute's column and of the columns that its type adds (S9, S10)."""
    name = attribute.name
    columns = [(name, ddl), (attribute.current_column, ddl), (attribute.previous_column, ddl)]
    columns.append((attribute.changed_at_column, "timestamp"))
    return [(column, column_type) for column, column_type in columns if column is not None]


def open_end(dimension: Dimension) -> Column:
    """Return the `effective_to` of a current version wherever rows are computed, as a timestamp."""
    return declared_time(dimension.computed_open_end)


def beginning() -> Column:
    """Return the `effective_from` of every entity of a dimension without windows, as a timestamp (S33)."""
    return declared_time(EARLIEST_TIME)


def with_begin_value(states: DataFrame, dimension: Dimension, window: RowWindow) -> DataFrame:
    """Add the value of the attribute at which histories begin, if one is declared, for `version_start` (S29).

    Args:
        states: One row per entity and time, with each attribute, wrapped, as of that time.
        dimension: The declaration.
        window: The window of an entity's states in order of time.
    """
    if dimension.begin is None or not dimension.begin.column:
        return states
    value, attribute = col(dimension.begin.column)["v"], dimension.attribute(dimension.begin.column)
    first = window.first(value) if attribute.scd is ScdType.RETAIN_ORIGINAL else value
    return states.withColumn(_BEGIN_VALUE, first.cast("timestamp"))


def version_start(change_time: Column, dimension: Dimension) -> Column:
    """Return the `effective_from` of a version: the time of its change, or the declared begin (S29).

    The declared begin applies to the first version of an entity whose first change is early enough, or later than the
    value of the declared attribute. Needs `version`, and the column of `with_begin_value`.
    """
    if dimension.begin is None:
        return change_time
    start, is_early = _first_start(dimension.begin, change_time)
    return F.when((F.col(VERSION) == 1) & is_early, start).otherwise(change_time)


def _first_start(begin: Begin, change_time: Column) -> tuple[Column, Column]:
    """Return the declared start of a first version, and whether it applies."""
    if begin.column:
        return F.col(_BEGIN_VALUE), F.col(_BEGIN_VALUE) < change_time
    return declared_time(begin.at), change_time <= declared_time(begin.for_first_changes_until)


def declared_time(text: str) -> Column:
    """Return a time of the declaration as a timestamp; the session's time zone is UTC."""
    return F.lit(text).cast("timestamp")
