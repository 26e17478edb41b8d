"""Stored rows of a table as change records: what a load needs to know of the past if it is later than all of it.

A row of a table without windows shows the last value of each attribute, which is what later records are compared with
and continue. A load in order can therefore read the rows of its entities, whose number does not grow with the number of
deliveries, instead of their records in the change log.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    BATCH,
    CHANGE_REASON,
    CHANGE_RECORD_TYPES,
    CHANGE_SOURCE,
    CHANNEL,
    COMMIT,
    EFFECTIVE_AT,
    KIND,
    LAST_UPDATED,
    LOAD_RUN_ID,
    REASON,
    SOURCE,
    UPSERT,
    attribute_types,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import batch_of_delivery, col
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.snapshots import BatchChanges, are_newest


def can_replace_records(batches: BatchChanges, in_effect: Sequence[Batch], dimension: Dimension) -> bool:
    """Return whether the rows of the table show all of the past that matters to new batches.

    This is decided from the batches alone: they are rows of a feed that never deletes, later than all stored ones. An
    entity without a row then has no records. A landing table has one source with one channel, and no audit.

    Args:
        batches: The batches of the load.
        in_effect: The stored batches in effect.
        dimension: The declaration.
    """
    feed = dimension.existence_source.feed
    return (
        dimension.landing is not None
        and feed is not None
        and not dimension.has_deletes(feed)
        and not batches.removed
        and all(batch.channel == feed.name and not batch.withdrawn for batch in (*batches.new, *in_effect))
        and are_newest(batches.new, in_effect)
    )


def rows_as_records(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return an upsert with the values and the origin of each row, at the time of its last change.

    Args:
        rows: Rows of a table without windows, with the columns of `dimension_schema`.
        dimension: The declaration, for whose batches `can_replace_records` is true.

    Returns:
        The columns of the change log: a value that the row lacks is NULL, whether or not it was provided (S8).
    """
    types = {**CHANGE_RECORD_TYPES, COMMIT: "bigint"}
    columns: dict[str, Column] = {name: F.lit(None).cast(ddl) for name, ddl in types.items()}
    columns |= {
        SOURCE: F.col(CHANGE_SOURCE),
        CHANNEL: F.lit("feed"),
        BATCH: batch_of_delivery(LOAD_RUN_ID),
        EFFECTIVE_AT: F.col(LAST_UPDATED),
        KIND: F.lit(UPSERT),
        REASON: F.col(CHANGE_REASON),
        COMMIT: F.lit(0).cast("bigint"),
    }
    values = [F.struct(col(name).alias("v")).alias(name) for name in attribute_types(dimension)]
    keys = [col(name) for name in dimension.key_names]
    return rows.select(*keys, *[column.alias(name) for name, column in columns.items()], *values)
