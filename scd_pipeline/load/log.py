"""What of a dimension's change log counts, and how far its dimension stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, COMMIT
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import stored_declaration, with_former_names
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col, delivery_id
from scd_pipeline.history.batch import Batch, batches_in_effect
from scd_pipeline.history.transitions import SOURCE_BATCH


def open_log(warehouse: Warehouse, dimension: Dimension, commit: PipelineCommit | None = None) -> ChangeLog:
    """The dimension's change log as it stands, one without rows where there is none yet.

    `commit` is the log's last pipeline commit, if it was read already.

    Errors: as of `in_all_names`.
    """
    return log_of(warehouse, dimension, stored_declaration(warehouse.table(dimension.name)), commit)


def log_of(
    warehouse: Warehouse, dimension: Dimension, stored: Mapping[str, Any] | None, commit: PipelineCommit | None = None
) -> ChangeLog:
    """The same where it is known what the dimension's table was made by."""
    table = warehouse.table(dimension.name + LOG_SUFFIX)
    newest = table.newest(commit)
    dimension = with_former_names(dimension, stored)
    if newest is None:
        return ChangeLog(table, dimension, (), PipelineCommit(table.name, 0), None)
    return ChangeLog(table, dimension, tuple(newest.columns()), newest.commit, newest.rows)


def log_high_water_mark(log: PipelineCommit, dimension: PipelineCommit) -> int:
    """Return the number of the last log commit that a dimension has applied, by the last commits of both.

    The log records which of its commits change no row of the dimension.
    """
    applied = dimension.applied(log.table).commit
    if log.unchanged is not None and log.unchanged.dimension_commit == dimension.number:
        return max(applied, log.unchanged.log_commit)
    return applied


def records_in_effect(log: ChangeLog, batches: Sequence[Batch]) -> DataFrame:
    """The log's statements that count: those of standing batches (S34)."""
    counts = {batch.records_batch_id for batch in batches_in_effect(list(batches))}
    ignored = sorted({batch.records_batch_id for batch in batches} - counts)
    rows = log.rows()
    return rows.where(~F.col(BATCH).isin(ignored)) if ignored else rows


def of_batches(rows: DataFrame, ids: set[str]) -> DataFrame:
    """The statements of some batches."""
    return rows.where(F.col(BATCH).isin(sorted(ids))) if ids else rows.limit(0)


def changed_entities(
    log: ChangeLog, batches: Sequence[tuple[int, Batch]], dimension: Dimension, *, after: int, upto: int
) -> DataFrame:
    """The entities of which anything was stated, or unsaid, by the log's pipeline commits after one and up to another.

    Out: the business key, and `source_batch_id`, a delivery that did.
    """
    before = batches_in_effect([batch for number, batch in batches if number <= after])
    now = batches_in_effect([batch for number, batch in batches if number <= upto])
    removed = {batch.records_batch_id for batch in before} - {batch.records_batch_id for batch in now}
    spoke = (F.col(COMMIT) > after) | F.col(BATCH).isin(sorted(removed))
    names = [col(name) for name in dimension.key_names]
    readable = reduce(and_, [name.isNotNull() for name in names])
    delivery = delivery_id(F.min(BATCH))
    told = log.rows().where((F.col(COMMIT) <= upto) & spoke & readable)
    return told.groupBy(*names).agg(delivery.alias(SOURCE_BATCH))
