"""Archive: move closed versions that ended before a time to `<dimension>_archive` (S42).

Every reader sees the same versions before, during and after the move: both tables are read as one, at the table
versions that belong together (`delta.history_table`). The audit, the facts and the surrogate keys do not change. A load
that changes an archived version moves it back by the commit that changes it.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import ARCHIVE_SUFFIX
from scd_pipeline.delta.commits import Archiving, PipelineCommit
from scd_pipeline.delta.data_files import missing_files_reported
from scd_pipeline.delta.generated_columns import computed_columns
from scd_pipeline.delta.history_table import move_to_archive
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.expressions import col, timestamp_literal
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.instants import to_instant, to_utc
from scd_pipeline.load.retry import Retry, ignore_progress, with_retries
from scd_pipeline.load.schema_steps import archive_steps, execute_steps, schema_steps
from scd_pipeline.load.state import StoredState, read_state
from scd_pipeline.operations.maintenance import repeat_of
from scd_pipeline.texts import pluralize, short_repr


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The result of an archive run.

    Attributes:
        table: The dimension.
        closed_before: The time before which the moved versions ended.
        moved: The number of moved versions.
        commit: The commit of the dimension; None if no version was moved, and nothing written.
    """

    table: str
    closed_before: datetime
    moved: int = 0
    commit: PipelineCommit | None = None

    def __str__(self) -> str:
        time = self.closed_before.isoformat()
        state = "nothing was written" if self.commit is None else f"table version {self.commit.table_version}"
        return f"{self.table}: moved {pluralize(self.moved, 'version')} closed before {time} to the archive; {state}"


def archive_time(dimension: Dimension, closed_before: str | date | datetime | None, *, now: datetime) -> datetime:
    """Return the time before which archived versions ended.

    Args:
        dimension: The declaration.
        closed_before: The time in any accepted form, in UTC without a zone; None for the declared number of years
            before `now`, on the 28th of February where that year lacks the 29th.
        now: The current time.

    Raises:
        UsageError: The dimension declares no archive, or `closed_before` is not a time.
    """
    _require_archive(dimension)
    if closed_before is None:
        year = max(now.year - (dimension.archive_after_years or 0), 1)
        return now.replace(year=year, day=min(now.day, monthrange(year, now.month)[1]))
    time = to_instant(closed_before)
    if time is None:
        raise UsageError("NOT_A_TIME", "closed_before", value=short_repr(closed_before))
    return time


def archive(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    closed_before: datetime,
    by: str,
    reason: str,
    run_id: str = "",
    retry: Retry | None = None,
) -> ArchiveResult:
    """Move the closed versions that ended before a time to the archive of a dimension.

    The dimension's table is read at the end of its versions, and the moved versions are written; the archive is
    appended to, and not read. Without a version to move, nothing is written.

    Args:
        closed_before: The time, in UTC without a zone. A version that ended exactly then is not moved.
        by: The person or program that archives, for the metadata of the commit.
        reason: The reason, for the metadata of the commit.
        run_id: The run, for the commits.
        retry: How write conflicts are retried.

    Raises:
        UsageError: The dimension declares no archive, or `by` or `reason` is missing.
        SetupError: The dimension does not exist, or this package did not create it.
        ScdError: As `load`.
    """
    _require_archive(dimension)
    for argument, text in (("by", by), ("reason", reason)):
        if not text.strip():
            raise UsageError("ARCHIVE_NOT_EXPLAINED", dimension.name, argument=argument)
    closed_before = to_utc(closed_before)
    archiving = Archiving(closed_before.isoformat(), by, reason)

    def attempt() -> ArchiveResult:
        state = read_state(warehouse, dimension)
        if state.table_rows is None:
            raise SetupError("TABLE_NOT_LOADED", dimension.name, table=dimension.name, warehouse=warehouse.location)
        if _ended_before(state.table_rows, dimension, closed_before).isEmpty():
            return ArchiveResult(dimension.name, closed_before)
        commit, rows = _prepare(warehouse, state)
        moved = checkpoint(_ended_before(rows, dimension, closed_before))
        following = replace(repeat_of(warehouse, dimension.name, commit, run_id), archiving=archiving)
        done = move_to_archive(warehouse, moved, dimension, following, commit, state.history_commit)
        return ArchiveResult(dimension.name, closed_before, moved.count(), done)

    with missing_files_reported(warehouse, dimension.table_names):
        return with_retries(dimension.name, lambda number: attempt(), retry or Retry(), ignore_progress)


def _require_archive(dimension: Dimension) -> None:
    if dimension.closed_suffix != ARCHIVE_SUFFIX:
        raise UsageError("ARCHIVE_NOT_DECLARED", dimension.name, dimension=dimension.name)


def _prepare(warehouse: Warehouse, state: StoredState) -> tuple[PipelineCommit, DataFrame]:
    """Create the archive if it does not exist, and alter both tables as a load would.

    Returns:
        The last commit of the dimension's table, and its rows, with the columns of the archive.
    """
    dimension = state.dimension
    steps = schema_steps(dimension, state.log, state.columns, state.columns_of_history, state.properties)
    if not state.columns_of_history:
        steps += archive_steps(dimension, {})
    execute_steps(warehouse, dimension, steps, state.properties)
    newest = warehouse.table(dimension.name).newest()
    assert newest is not None
    return newest.commit, newest.rows


def _ended_before(rows: DataFrame, dimension: Dimension, time: datetime) -> DataFrame:
    """Return the closed versions that ended before a time, of rows of the dimension's table."""
    computed = computed_columns(dimension.column_layout, rows.columns)
    is_version = ~col(dimension.surrogate_key).isin(list(RESERVED_KEYS))
    is_closed = ~F.expr(computed[CURRENT_FLAG]) & (F.expr(computed[EFFECTIVE_TO]) < timestamp_literal(time))
    return rows.where(is_version & is_closed)
