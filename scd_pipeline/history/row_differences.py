"""Differences between the rows of two tables with the same columns and a key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration.types import parse_type
from scd_pipeline.expressions import col, to_comparable
from scd_pipeline.frames import column_types
from scd_pipeline.history.actions import ACTION, OVERWRITE, REMOVE


def row_differences(expected: DataFrame, stored: DataFrame, key: str) -> DataFrame:
    """Return the row actions by which the stored rows become the expected ones, which have the same columns.

    Args:
        expected: The rows that should exist, with unique keys.
        stored: The rows that exist.
        key: The column of the key.

    Returns:
        The columns of the rows, and `_action`: "overwrite" for an expected row that is missing or has other values,
        and "remove" for a stored row whose key is not expected.
    """
    unexpected = stored.join(expected.select(col(key)), key, "left_anti").withColumn(ACTION, F.lit(REMOVE))
    return _differing(expected, stored, key).withColumn(ACTION, F.lit(OVERWRITE)).unionByName(unexpected)


def _differing(rows: DataFrame, others: DataFrame, key: str) -> DataFrame:
    """Return the rows that `others`, which has the same columns, does not have or has with other values."""
    types = {name: parse_type(ddl) for name, ddl in column_types(rows.schema).items()}
    columns = [F.struct(*[to_comparable(col(name), ddl) for name, ddl in types.items()]).alias("_values")]
    existing = others.select(col(key).alias("_key"), *columns)
    joined = rows.withColumn("_row", *columns).join(existing, col(key) == F.col("_key"), "left")
    return joined.where(~F.col("_row").eqNullSafe(F.col("_values"))).select(*[col(name) for name in types])
