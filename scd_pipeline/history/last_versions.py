"""Values that all versions of an entity have in common, stored once for each entity (S11).

They are in its last version: the current one or, if the entity no longer exists, the last closed one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import col

IS_LAST = "_is_last"


def has_common_values(dimension: Dimension) -> bool:
    """Return whether values that the versions of an entity have in common are stored once."""
    return dimension.history_columns != "all"


def with_last_flag(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Add `_is_last`, true for the last version of each entity; with `history_columns: all` add nothing.

    Args:
        rows: All versions of some entities.
        dimension: The declaration.
    """
    if not has_common_values(dimension):
        return rows
    latest_first = Window.partitionBy(*[col(name) for name in dimension.key_names]).orderBy(F.desc(EFFECTIVE_FROM))
    return rows.withColumn(IS_LAST, F.row_number().over(latest_first) == 1)


def without_common_values(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Replace the values that the versions of an entity have in common by NULL, except in its last version.

    Args:
        rows: Rows of the dimension, with what `with_last_flag` adds.
        dimension: The declaration.

    Returns:
        The rows without `_is_last`.
    """
    if IS_LAST not in rows.columns:
        return rows
    values = {name: F.when(F.col(IS_LAST), col(name)) for name in dimension.common_columns}
    return rows.withColumns(values).drop(IS_LAST)
