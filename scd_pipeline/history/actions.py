"""What a load does to the rows of a dimension: versions before and after become row actions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.expressions import col, null_safe_equal, quote_name, to_comparable
from scd_pipeline.history.timeline import dimension_columns, dimension_schema

ACTION = "_action"
OPEN, CLOSE, OVERWRITE, REMOVE = "open", "close", "overwrite", "remove"


def row_actions(before: DataFrame, after: DataFrame, dimension: Dimension) -> DataFrame:
    """The rows that differ, with `_action`.

    In: the dimension's rows of the affected entities as they stand, and as they should be.
    Out: `_action` and the dimension's columns: "open" (a key that was not there), "close" (it was current and no
    longer is), "overwrite" (any other difference; NULL equals NULL) with the new values, and "remove" (a key that
    vanishes) with the old ones.
    """
    key = quote_name(dimension.surrogate_key)
    names = dimension_columns(dimension)
    old = before.select(F.col(key).alias("_old_key"), F.struct(*[col(n) for n in names]).alias("_old"))
    new = after.select(F.col(key).alias("_new_key"), F.struct(*[col(n) for n in names]).alias("_new"))
    pairs = old.join(new, F.col("_old_key") == F.col("_new_key"), "full_outer")
    action = (
        F.when(F.col("_old_key").isNull(), OPEN)
        .when(F.col("_new_key").isNull(), REMOVE)
        .when(_closes(dimension), CLOSE)
        .when(~_same(dimension), OVERWRITE)
    )
    row = F.coalesce(F.col("_new"), F.col("_old"))
    return (
        pairs.withColumn(ACTION, action)
        .where(F.col(ACTION).isNotNull())
        .select(ACTION, row.alias("_row"))
        .select(ACTION, "_row.*")
    )


def _closes(dimension: Dimension) -> Column:
    if not dimension.has_windows:
        return F.lit(False)
    return F.col("_old")[CURRENT_FLAG] & ~F.col("_new")[CURRENT_FLAG]


def _same(dimension: Dimension) -> Column:
    types = [(name, parse_type(ddl)) for name, ddl, _ in dimension_schema(dimension)]
    old = [to_comparable(F.col("_old")[name], data_type) for name, data_type in types]
    new = [to_comparable(F.col("_new")[name], data_type) for name, data_type in types]
    return null_safe_equal(old, new)


def current_rows(versions: DataFrame, dimension: Dimension) -> DataFrame:
    """The version of each entity that has no end; every row where the dimension shows no windows."""
    return versions.where(F.col(CURRENT_FLAG)) if dimension.has_windows else versions
