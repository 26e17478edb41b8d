"""Row actions: what a load does to the rows of a dimension."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.expressions import any_of, array_where, col, null_safe_equal, to_comparable, values_differ
from scd_pipeline.history.last_versions import IS_LAST
from scd_pipeline.history.schema import dimension_columns, dimension_schema

ACTION = "_action"
OPEN, CLOSE, OVERWRITE, REMOVE = "open", "close", "overwrite", "remove"
CHANGES_ELEMENTS = "_changes_elements"
ACTIONS = (OPEN, CLOSE, OVERWRITE, REMOVE)
UNCHANGED = "unchanged"
"""What `compare_rows` returns for a row that does not differ."""


def row_actions(before: DataFrame, after: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows that differ, with the action that each one needs; arguments and columns of `compare_rows`."""
    return compare_rows(before, after, dimension).where(F.col(ACTION) != UNCHANGED).drop(CHANGES_ELEMENTS)


def compare_rows(
    before: DataFrame, after: DataFrame, dimension: Dimension, *, has_last_flag: bool = False
) -> DataFrame:
    """Return all rows, matched by surrogate key, with the action that each one needs.

    Args:
        before: The existing rows of the affected entities.
        after: The rows that these entities should have.
        dimension: The declaration.
        has_last_flag: Whether both have `_is_last` (`with_last_flag`), which is compared too.

    Returns:
        `_action`, the dimension's columns, `_is_last` if the rows have it, and, if the dimension has child tables,
        `_changes_elements`: whether an array of a child table differs. The actions are:

        - "open": a new key, with the new values;
        - "close": the version was current and no longer is, with the new values;
        - "overwrite": any other difference (NULL equals NULL), with the new values;
        - "remove": a key that no longer exists, with the old values;
        - "unchanged": no difference.
    """
    pairs = _pairs(before, after, dimension, has_last_flag=has_last_flag)
    is_unchanged = _is_unchanged(dimension)
    if has_last_flag:
        is_unchanged &= F.col("_old")[IS_LAST] == F.col("_new")[IS_LAST]
    action = (
        F.when(F.col("_old_key").isNull(), OPEN)
        .when(F.col("_new_key").isNull(), REMOVE)
        .when(_is_closed(dimension), CLOSE)
        .when(~is_unchanged, OVERWRITE)
        .otherwise(UNCHANGED)
    )
    row = F.coalesce(F.col("_new"), F.col("_old"))
    flags = [_changes_elements(dimension).alias(CHANGES_ELEMENTS)] if dimension.child_tables else []
    return pairs.select(action.alias(ACTION), row.alias("_row"), *flags).select(
        ACTION, "_row.*", *[CHANGES_ELEMENTS for _ in flags]
    )


def differing_pairs(before: DataFrame, after: DataFrame, dimension: Dimension, *, is_stale: Column) -> DataFrame:
    """Return pairs of an existing and an expected row that differ, or of which one is missing.

    Surrogate keys of existing rows may repeat.

    Args:
        before: The existing rows.
        after: The rows that should exist, with unique surrogate keys.
        dimension: The declaration.
        is_stale: Whether a row of `before` has to be replaced although the columns of the dimension do not differ.

    Returns:
        `_old`, the existing row, NULL for a missing one; and `_new`, the row that should exist, NULL if none should.
        All rows of a surrogate key are returned if it has several.
    """
    same_key = Window.partitionBy("_old_key")
    pairs = _pairs(before, after, dimension, is_stale.alias("_is_stale"))
    pairs = pairs.withColumn("_count", F.count("_old_key").over(same_key))
    is_equal = F.col("_old").isNotNull() & F.col("_new").isNotNull() & _is_unchanged(dimension)
    differs = ~is_equal | F.col("_is_stale") | (F.col("_count") > 1)
    return pairs.where(differs).select("_old", "_new")


def changed_columns(dimension: Dimension) -> Column:
    """Return the names of the columns that differ between `_old` and `_new` (`differing_pairs`)."""
    old, new = F.col("_old"), F.col("_new")
    types = [(name, parse_type(ddl)) for name, ddl, _ in dimension_schema(dimension)]
    differs = [(values_differ(old[name], new[name], data_type), F.lit(name)) for name, data_type in types]
    return array_where(differs, "string")


def _pairs(
    before: DataFrame, after: DataFrame, dimension: Dimension, *flags: Column, has_last_flag: bool = False
) -> DataFrame:
    """Return the rows of both, `_old` and `_new`, matched by surrogate key; what has no match is NULL.

    `flags` are further columns of `before`.
    """
    key = quote_name(dimension.surrogate_key)
    names = [*dimension_columns(dimension), *([IS_LAST] if has_last_flag else [])]
    old = before.select(F.col(key).alias("_old_key"), F.struct(*[col(n) for n in names]).alias("_old"), *flags)
    new = after.select(F.col(key).alias("_new_key"), F.struct(*[col(n) for n in names]).alias("_new"))
    return old.join(new, F.col("_old_key") == F.col("_new_key"), "full_outer")


def _changes_elements(dimension: Dimension) -> Column:
    """Return whether an array that has a child table differs between `_old` and `_new`."""
    types = {name: parse_type(ddl) for name, ddl, _ in dimension_schema(dimension)}
    arrays = sorted({path.partition(".")[0] for path in dimension.child_tables}.intersection(types))
    return any_of([values_differ(F.col("_old")[name], F.col("_new")[name], types[name]) for name in arrays])


def _is_closed(dimension: Dimension) -> Column:
    if not dimension.has_windows:
        return F.lit(False)
    return F.col("_old")[CURRENT_FLAG] & ~F.col("_new")[CURRENT_FLAG]


def _is_unchanged(dimension: Dimension) -> Column:
    types = [(name, parse_type(ddl)) for name, ddl, _ in dimension_schema(dimension)]
    old = [to_comparable(F.col("_old")[name], data_type) for name, data_type in types]
    new = [to_comparable(F.col("_new")[name], data_type) for name, data_type in types]
    return null_safe_equal(old, new)
