"""The rows of a delivery of a landing table: which of a key remains, and what identifies a row without a key (S38)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD_REASON
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.batch_values import BATCH_VALUES
from scd_pipeline.declaration.landing_rows import ROW_DELIVERY, ROW_HASH, ROW_NUMBER
from scd_pipeline.deliveries.row_columns import DELIVERY, HASH, ROW_ORDER
from scd_pipeline.expressions import col

_RANK = "_dedup_rank"


def with_row_identity(typed: DataFrame, dimension: Dimension, is_counted: Column) -> DataFrame:
    """Add the derived columns of the business key: delivery, number among equal rows, and the hash of a bad row.

    Equal rows of a delivery are numbered, so that each remains, and two deliveries with the same rows have the same
    numbers. A bad row has a key that no other row has: its values are not known.

    Args:
        typed: The cast columns of rows, `_scd`, `_scd_hash` and `_bad_reason`. A column that the deliveries lack is
            missing.
        dimension: The declaration; nothing is added for one that identifies its entities by delivered columns.
        is_counted: Whether a row can be a row of the table.
    """
    if dimension.landing is None or not dimension.has_row_identity:
        return typed
    row_hash = F.when(F.col(BAD_REASON).isNull(), F.col(ROW_HASH.name)).otherwise(F.hex(HASH))
    group = [F.col(DELIVERY)["batch"], *[col(name) for name in dimension.delivered_key_names], F.col(ROW_HASH.name)]
    number = F.row_number().over(Window.partitionBy(*group, is_counted).orderBy(F.lit(0)))
    typed = typed.withColumn(ROW_HASH.name, row_hash).withColumn(ROW_NUMBER.name, number)
    return typed.withColumn(ROW_DELIVERY.name, F.expr(BATCH_VALUES["load_run_id"]))


def is_outranked(typed: DataFrame, dimension: Dimension, is_counted: Column) -> tuple[DataFrame, Column]:
    """Return the rows, and whether another row of the same key and delivery precedes a row by `dedup_sort`.

    NULL is after all values in both orders. Of rows with equal values, the first in the file precedes the others; if
    the rows have no order, none does.
    """
    order = dimension.landing.dedup_sort if dimension.landing else None
    if order is None or order[0] not in typed.columns:
        return typed, F.lit(False)
    value = col(order[0])
    sort = value.desc_nulls_last() if order[1] == "desc" else value.asc_nulls_last()
    keys = [col(name) for name in dimension.key_names]
    window = Window.partitionBy(F.col(DELIVERY)["batch"], *keys, is_counted).orderBy(sort, F.col(ROW_ORDER).desc())
    return typed.withColumn(_RANK, F.rank().over(window)), is_counted & (F.col(_RANK) > 1)
