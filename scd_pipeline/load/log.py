"""Queries of a change log: records in effect, changed entities, and the dimension's high-water mark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, COMMIT
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.change_log import ChangeLog, log_schema
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import as_stored
from scd_pipeline.delta.stored_declaration import StoredDeclaration, stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import all_of, col, delivery_id
from scd_pipeline.history.batch import Batch, batches_in_effect
from scd_pipeline.history.snapshots import business_times
from scd_pipeline.history.transitions import SOURCE_BATCH


def read_log(warehouse: Warehouse, dimension: Dimension, commit: PipelineCommit | None = None) -> ChangeLog:
    """Return the change log of a dimension at its newest version; if it does not exist, a log without rows.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        commit: The last pipeline commit of the log, if it was read already.

    Raises:
        DeclarationError: As for `with_former_names`.
    """
    stored = stored_declaration(warehouse, dimension.name)
    return build_log(warehouse, dimension, stored, commit)


def build_log(
    warehouse: Warehouse, dimension: Dimension, stored: StoredDeclaration | None, commit: PipelineCommit | None = None
) -> ChangeLog:
    """Return the change log as `read_log` does, with the declaration that the dimension's table stores."""
    table = warehouse.table(dimension.name + LOG_SUFFIX)
    newest = table.newest(commit)
    dimension = as_stored(dimension, stored)
    if newest is None:
        return ChangeLog(table, dimension, {}, PipelineCommit(table.name, 0), None)
    columns = newest.columns()
    if stored is None:
        # The table was dropped; the log has the columns that were mirrored.
        other_columns = dict(log_schema(dimension))
        dimension = dimension.with_mirrored({n: each for n, each in columns.items() if n not in other_columns})
    return ChangeLog(table, dimension, columns, newest.commit, newest.rows)


def log_high_water_mark(log: PipelineCommit, dimension: PipelineCommit) -> int:
    """Return the number of the last log commit that a dimension has applied, by the last commits of both.

    The log records which of its commits change no row of the dimension.
    """
    applied = dimension.applied(log.table).commit
    if log.unchanged is not None and log.unchanged.dimension_commit == dimension.number:
        return max(applied, log.unchanged.log_commit)
    return applied


def records_in_effect(rows: DataFrame, batches: Sequence[Batch]) -> DataFrame:
    """Return the change records of the batches in effect, of rows of the log (S34)."""
    in_effect = {batch.records_batch_id for batch in batches_in_effect(list(batches))}
    ignored = sorted({batch.records_batch_id for batch in batches} - in_effect)
    return rows.where(~F.col(BATCH).isin(ignored)) if ignored else rows


def records_in_batches(rows: DataFrame, ids: set[str]) -> DataFrame:
    """Return the change records of the batches with these ids."""
    return rows.where(F.col(BATCH).isin(sorted(ids))) if ids else rows.limit(0)


def in_effect_at(batches: Sequence[tuple[int, Batch]], commit: int) -> list[Batch]:
    """Return the batches in effect after a commit of the log; `batches` have the numbers of their commits."""
    return batches_in_effect([batch for number, batch in batches if number <= commit])


def may_have_removed_versions(batches: Sequence[tuple[int, Batch]], dimension: Dimension) -> bool:
    """Return whether a commit of the log may have removed a version that the dimension had before it.

    A commit whose changes are later than all before it only closes and opens versions. It removes versions if it
    replaces or withdraws a batch, if it is late, or if a delete removes the row of an entity.

    Args:
        batches: All batches of the log, each with the number of its commit.
        dimension: The declaration.
    """
    if dimension.deleted_rows == "remove" or len(batches_in_effect([batch for _, batch in batches])) < len(batches):
        return True
    last = None
    for _, group in groupby(sorted(batches, key=itemgetter(0)), key=itemgetter(0)):
        times = [time for _, batch in group for time in business_times(batch)]
        if last is not None and times and min(times) <= last:
            return True
        last = max(times, default=last)
    return False


def changed_batches(batches: Sequence[tuple[int, Batch]], *, after: int) -> list[Batch]:
    """Return the batches that the commits after `after` added to those in effect, or removed from them.

    Args:
        batches: All batches of the log, each with the number of its commit.
        after: The number of a commit.
    """
    before = {batch.id: batch for batch in in_effect_at(batches, after)}
    now = {batch.id: batch for batch in batches_in_effect([batch for _, batch in batches])}
    return [(before | now)[name] for name in before.keys() ^ now.keys()]


def changed_records(rows: DataFrame, batches: Sequence[tuple[int, Batch]], *, after: int) -> DataFrame:
    """Return the change records that the commits after `after` added to those in effect, or removed from them.

    Args:
        rows: Change records of the log.
        batches: All its batches, each with the number of its commit.
        after: The number of a commit.
    """
    changed = {batch.records_batch_id for batch in in_effect_at(batches, after)}
    changed ^= {batch.records_batch_id for batch in batches_in_effect([batch for _, batch in batches])}
    return rows.where((F.col(COMMIT) > after) | F.col(BATCH).isin(sorted(changed)))


def changed_entities(records: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the entities of changed records.

    Returns:
        The business key, and `source_batch_id`, a delivery with such a change record.
    """
    names = [col(name) for name in dimension.key_names]
    readable = all_of([name.isNotNull() for name in names])
    return records.where(readable).groupBy(*names).agg(delivery_id(F.min(BATCH)).alias(SOURCE_BATCH))
