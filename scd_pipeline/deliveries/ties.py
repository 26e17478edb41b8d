"""Decide between rows of one batch that have the same key, time and sequence: ties (S5)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    BAD,
    BATCH,
    CORRELATION_ID,
    DELETE,
    EFFECTIVE_AT,
    KIND,
    REASON,
    SEQUENCE,
    attribute_types,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.types import has_map
from scd_pipeline.deliveries.row_columns import ROW_ORDER
from scd_pipeline.expressions import any_of, col, to_comparable


def tie_columns(dimension: Dimension) -> list[Column]:
    """Return the columns whose values are equal in a tie."""
    return [col(name) for name in _tie_column_names(dimension)]


def _tie_column_names(dimension: Dimension) -> list[str]:
    return [BATCH, *dimension.key_names, EFFECTIVE_AT, SEQUENCE]


def find_conflicts(rows: DataFrame, dimension: Dimension, limit: int) -> DataFrame:
    """Find keys for which the ties of a batch provide different values of an attribute (S5).

    Returns:
        `_batch`, and the business key as text in `key`; at most `limit` keys for each batch.
    """
    good = rows.where(F.col(KIND) != BAD)
    conditions = [F.min(KIND) != F.max(KIND)]
    for name, data_type in attribute_types(dimension).items():
        value = F.when(col(name).isNotNull(), F.struct(to_comparable(col(name)["v"], data_type).alias("v")))
        conditions.append(~F.min(value).eqNullSafe(F.max(value)))
    groups = good.groupBy(*tie_columns(dimension)).agg(any_of(conditions).alias("_differs"))
    pairs = [F.concat(F.lit(f"{name}="), col(name).cast("string")) for name in dimension.key_names]
    key = F.make_valid_utf8(F.concat_ws(", ", *pairs)).alias("key")  # a binary key may be no text
    keys = groups.where("_differs").select(BATCH, key).distinct()
    number = F.row_number().over(Window.partitionBy(BATCH).orderBy("key"))
    return keys.withColumn("_number", number).where(F.col("_number") <= limit).select(BATCH, "key")


def merge_ties(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Merge each tie into one row that provides every attribute that any of its rows provides (S5).

    Of several reasons, actors and correlation ids the least is used.
    """
    types = attribute_types(dimension)

    def merged(name: str) -> Column:
        if name in types and has_map(types[name]):
            return F.first(quote_name(name), ignorenulls=True)
        return (F.min if name in (REASON, ACTOR, CORRELATION_ID) else F.max)(quote_name(name))

    return _merge(rows, dimension, merged)


def merge_ties_by_row_order(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Merge each tie into one row, as the last one in `_scd_row_order` decides: the last or first of the file (S5).

    If the last row is a delete, the others assert nothing; otherwise each attribute has the value of the last row that
    provides it. Reason, actor and correlation id are those of the last row.
    """
    group = Window.partitionBy(*tie_columns(dimension))
    has_last_kind = F.col(KIND) == F.max_by(KIND, ROW_ORDER).over(group)
    decisive = rows.withColumn("_decides", has_last_kind).where("_decides").drop("_decides")
    types = attribute_types(dimension)

    def merged(name: str) -> Column:
        order = F.when(col(name).isNotNull(), F.col(ROW_ORDER)) if name in types else F.col(ROW_ORDER)
        return F.max_by(quote_name(name), order)

    return _merge(decisive, dimension, merged)


def drop_deleted_ties(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Drop the rows that have a tie with a delete: the delete decides (S5)."""
    group = Window.partitionBy(*tie_columns(dimension))
    is_deleted = (F.col(KIND) != DELETE) & F.max(F.col(KIND) == DELETE).over(group)
    return rows.withColumn("_is_deleted", is_deleted).where(~F.col("_is_deleted")).drop("_is_deleted")


def _merge(rows: DataFrame, dimension: Dimension, merged: Callable[[str], Column]) -> DataFrame:
    names = [name for name in rows.columns if name not in set(_tie_column_names(dimension))]
    single = rows.groupBy(*tie_columns(dimension)).agg(*[merged(name).alias(name) for name in names])
    return single.select(*[col(name) for name in rows.columns])
