"""Repair a dimension that another program changed: write what differs from the change log, in one commit (S14, S21).

The repaired rows are those that a rebuild of the table would have. The audit gets a REPAIRED row for each row that is
removed, replaced or added, with all old and new values, before the dimension is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import COMMIT, CURRENT_FLAG
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, HISTORY_SUFFIX
from scd_pipeline.delta.audit_table import AUDIT_ID, repair_rows
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.schema import to_declared_columns
from scd_pipeline.delta.table import Table, TableVersion
from scd_pipeline.delta.upstream import damage, log_mark, raise_first, table_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import PipelineCommitMissing, SetupError, UsageError
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint, union_all
from scd_pipeline.history.actions import ACTION, OPEN, OVERWRITE, REMOVE, changed_columns, differing_pairs
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.overlaps import without_overlaps
from scd_pipeline.history.schema import dimension_columns
from scd_pipeline.history.timeline import build_timeline
from scd_pipeline.history.transitions import CHANGED_COLUMNS
from scd_pipeline.load.log import open_log, records_in_effect
from scd_pipeline.load.retry import Retry, ignore_progress, with_retries
from scd_pipeline.load.run import record

_IN_TABLE = "_table"


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair changes, or would change.

    Attributes:
        table: The dimension.
        rows: The number of rows by row action: "open" for missing ones, "overwrite" and "remove".
        differences: A row for each row that differs: `_action`, the business key, the surrogate key, and
            `changed_columns`, the names of the columns that a repair changes.
        commit: The commit of the repair; None for a dry run, and if nothing differs.
    """

    table: str
    rows: Mapping[str, int]
    differences: DataFrame
    commit: PipelineCommit | None = None

    @property
    def has_differences(self) -> bool:
        """Whether any row differs from the change log."""
        return any(self.rows.values())


@dataclass(frozen=True, slots=True)
class _Stored:
    """The tables of a dimension as they are, whatever program wrote their rows, and what they should contain."""

    dimension: Dimension
    log: ChangeLog
    commits: Mapping[str, PipelineCommit]
    pairs: DataFrame

    @property
    def is_foreign(self) -> bool:
        """Whether another program committed to one of the tables."""
        return any(commit.foreign is not None for commit in self.commits.values())


def repair(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    now: datetime,
    actor: str,
    reason: str = "repair",
    run_id: str = "",
    dry_run: bool = False,
    without_log: bool = False,
    retry: Retry | None = None,
) -> Repair:
    """Replace the rows of a dimension that differ from its change log, and record that in the audit.

    Afterwards, the table has applied the whole log, and loads accept the commits of the other program. The cost is that
    of a rebuild: the whole log and the whole table are read. Only rows that differ are written.

    A table that has no change log is compared with its own versions `without_overlaps`. It may be a table of another
    program, with the columns that the declaration describes.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        now: The current time, which the audit records.
        actor: The person or program that repairs.
        reason: The reason, for the audit.
        run_id: The run, for the commits.
        dry_run: Whether to write nothing.
        without_log: Whether the dimension has no change log.
        retry: How write conflicts are retried.

    Raises:
        SetupError: The dimension or its change log does not exist.
        UsageError: The dimension has a change log, `without_log`.
        ForeignCommitError: Another program changed the change log or the audit, which a repair does not correct.
        HighWaterMarkError: The change log was lost.
        RetriesExhausted: Every attempt met a write conflict.
    """

    def attempt() -> Repair:
        stored = _read(warehouse, dimension, without_log=without_log)
        differences = _differences(stored.pairs, stored.dimension)
        counts = {row[ACTION]: int(row["count"]) for row in differences.groupBy(ACTION).count().collect()}
        result = Repair(dimension.name, counts, differences)
        if dry_run or not (result.has_differences or stored.is_foreign):
            return result
        _append_audit(warehouse, stored, now=now, actor=actor, reason=reason, run_id=run_id)
        return replace(result, commit=_write(warehouse, stored, run_id))

    result = with_retries(dimension.name, lambda number: attempt(), retry or Retry(), ignore_progress)
    if result.commit is not None and not without_log:
        record(warehouse, dimension, run_id=run_id, retry=retry)
    return result


def _read(warehouse: Warehouse, dimension: Dimension, *, without_log: bool) -> _Stored:
    """Read the tables and compare them with the rows that the change log gives, or with versions without overlaps.

    Raises:
        SetupError: The dimension or its change log does not exist.
        ForeignCommitError: Another program changed the change log.
        HighWaterMarkError: The change log was lost.
    """
    names = _tables(dimension)
    newest = {name: _newest(warehouse.table(name), is_foreign=without_log) for name in names}
    log = open_log(warehouse, dimension)
    existing = {name: table for name, table in newest.items() if table is not None}
    if missing := [*(names.keys() - existing.keys()), *([] if log.exists or without_log else [log.table.name])]:
        raise SetupError("TABLE_NOT_LOADED", dimension.name, table=missing[0], warehouse=warehouse.location)
    if without_log and log.exists:
        raise UsageError("LOG_EXISTS", dimension.name, log=log.table.name)
    commits = {name: table.commit for name, table in existing.items()}
    if without_log:
        rows = [to_declared_columns(table.rows, log.dimension) for table in existing.values()]
        expected = checkpoint(without_overlaps(union_all(rows), log.dimension))
    else:
        raise_first(damage(log.commit, [replace(commit, foreign=None) for commit in commits.values()]))
        expected = checkpoint(_expected_rows(warehouse, log))
    pairs = []
    for name, condition in names.items():
        rows = to_declared_columns(existing[name].rows, log.dimension)
        rows = rows.where(~col(dimension.surrogate_key).isin(list(RESERVED_KEYS)))
        differing = differing_pairs(rows, expected.where(condition), log.dimension)
        pairs.append(differing.withColumn(_IN_TABLE, F.lit(name)))
    return _Stored(log.dimension, log, commits, checkpoint(union_all(pairs)))


def _newest(table: Table, *, is_foreign: bool) -> TableVersion | None:
    """Return the table at its newest version, also if it may be foreign, so that it has no pipeline commit."""
    try:
        return table.newest()
    except PipelineCommitMissing:
        if not is_foreign:
            raise
        version = int(table.spark.sql(f"DESCRIBE HISTORY {table.identifier} LIMIT 1").collect()[0]["version"])
        return TableVersion(PipelineCommit(table.name, 0, newest=version), table.read(version))


def _tables(dimension: Dimension) -> dict[str, Column]:
    """Return the tables that store versions, in the order of their commits, and which versions each of them stores."""
    if not dimension.history_table:
        return {dimension.name: F.lit(True)}
    return {dimension.name + HISTORY_SUFFIX: ~F.col(CURRENT_FLAG), dimension.name: F.col(CURRENT_FLAG)}


def _expected_rows(warehouse: Warehouse, log: ChangeLog) -> DataFrame:
    """Return the rows that the whole change log gives."""
    batches = log.batches()
    records = records_in_effect(log.rows(), batches).drop(COMMIT)
    is_row_timed = any(batch.row_times for batch in batches)
    rows = build_timeline(records, log.dimension, row_timed=is_row_timed, key_hash=warehouse.key_hash)
    return rows.select(*[col(name) for name in dimension_columns(log.dimension)])


def _differences(pairs: DataFrame, dimension: Dimension) -> DataFrame:
    """Return `Repair.differences`."""
    old, new = F.col("_old"), F.col("_new")
    names = (*dimension.key_names, dimension.surrogate_key)
    return pairs.select(
        F.when(old.isNull(), OPEN).when(new.isNull(), REMOVE).otherwise(OVERWRITE).alias(ACTION),
        *[F.coalesce(new[name], old[name]).alias(name) for name in names],
        changed_columns(dimension).alias(CHANGED_COLUMNS),
    )


def _append_audit(
    warehouse: Warehouse, stored: _Stored, *, now: datetime, actor: str, reason: str, run_id: str
) -> None:
    """Append the REPAIRED rows to the audit, except those that an attempt before has appended."""
    audit = warehouse.writable(stored.dimension.name + AUDIT_SUFFIX)
    last = audit.last_commit_or_zero()
    if not last.exists:
        return
    version = stored.commits[stored.dimension.name].newest
    rows = repair_rows(stored.pairs, stored.dimension, actor=actor, reason=reason, at=now, version=version)
    rows = checkpoint(rows.join(audit.read(last.newest).select(AUDIT_ID), AUDIT_ID, "left_anti"))
    if not rows.isEmpty():
        ordered = rows.select(*[col(name) for name in audit.columns()])
        audit.append(ordered, last.next(high_water_marks=last.high_water_marks, run_id=run_id))


def _write(warehouse: Warehouse, stored: _Stored, run_id: str) -> PipelineCommit:
    """Write what differs, one commit for each table, and return the last one."""
    log, key = stored.log.commit, stored.dimension.surrogate_key
    marks = log_mark(log, log.number) if log.exists else {}
    commit = stored.commits[stored.dimension.name]
    for name in _tables(stored.dimension):
        table, last = warehouse.writable(name), stored.commits[name]
        commit = last.next_repair(high_water_marks={**last.high_water_marks, **marks}, run_id=run_id)
        pairs = stored.pairs.where(F.col(_IN_TABLE) == name)
        if pairs.isEmpty():
            commit = table.commit_empty(commit)
        else:
            rows = to_stored_columns(_changed_rows(pairs, key), stored.dimension)
            commit = table.rewrite(rows, commit, key=key, removes=f"s.{ACTION} = '{REMOVE}'")
        marks = {**marks, **table_mark(commit)}
    return commit


def _changed_rows(pairs: DataFrame, key: str) -> DataFrame:
    """Return the rows to remove and the rows to insert, one of each for a surrogate key, with their row action."""
    sides = (("_old", REMOVE), ("_new", OPEN))
    rows = [
        pairs.where(F.col(side).isNotNull()).select(f"{side}.*", F.lit(action).alias(ACTION)).dropDuplicates([key])
        for side, action in sides
    ]
    return union_all(rows)
