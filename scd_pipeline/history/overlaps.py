"""Versions without overlaps, of rows for which no change log exists."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO, LAST_UPDATED, VERSION
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import col
from scd_pipeline.history.schema import open_end


def without_overlaps(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the versions of each entity so that none begins before the one before it ends (S2, S3).

    The version with the latest `effective_from` keeps its end; each other one ends at the latest where the next one
    begins. Of several rows with one `effective_from` the last updated one stays. Versions are numbered from 1, and
    those with the open end are current.

    Args:
        rows: The columns of the dimension. A NULL end is the open end.
        dimension: The declaration, with windows.
    """
    end, key = open_end(dimension), col(dimension.surrogate_key)
    entity = [col(name) for name in dimension.key_names]
    same_start = Window.partitionBy(*entity, EFFECTIVE_FROM).orderBy(F.col(LAST_UPDATED).desc(), key.desc())
    first = rows.withColumn("_row", F.row_number().over(same_start)).where(F.col("_row") == 1).drop("_row")
    by_time = Window.partitionBy(*entity).orderBy(EFFECTIVE_FROM)
    limits = [F.coalesce(value, end) for value in (F.col(EFFECTIVE_TO), F.lead(EFFECTIVE_FROM).over(by_time))]
    numbered = first.withColumns({EFFECTIVE_TO: F.least(*limits), VERSION: F.row_number().over(by_time)})
    return numbered.withColumn(CURRENT_FLAG, F.col(EFFECTIVE_TO) == end)
