"""Maintenance of tables: OPTIMIZE and VACUUM, and a repeated pipeline commit before the last one expires."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.child_tables import is_child_name
from scd_pipeline.declaration.table_properties import (
    FILE_RETENTION,
    LOG_RETENTION,
    MIN_HOURS,
    hours_interval,
    interval_hours,
    log_retention_hours,
)
from scd_pipeline.declaration.tables import LOG_SUFFIX, without_closed_suffix
from scd_pipeline.delta.child_tables import roll_back_child
from scd_pipeline.delta.commits import PipelineCommit, UnchangedDimension
from scd_pipeline.delta.history_table import roll_back
from scd_pipeline.delta.schema import require_pipeline_tables
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.upstream import foreign_commit_errors, log_mark, raise_first, table_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load.log import log_high_water_mark
from scd_pipeline.load.retry import Result, Retry, ignore_progress, with_retries
from scd_pipeline.operations.z_order import z_order_columns

RENEWED_AFTER = timedelta(days=15)
"""Half of Delta's default retention of a table's history; an older pipeline commit is repeated."""


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The result of the maintenance of one table.

    Attributes:
        table: The table.
        files_before: The number of its files before.
        files_after: The number of its files after.
        bytes_after: Their size.
        renewed: Whether the last pipeline commit was repeated.
    """

    table: str
    files_before: int
    files_after: int
    bytes_after: int
    renewed: bool


def maintain(
    warehouse: Warehouse,
    tables: Sequence[str],
    *,
    now: datetime,
    retention_hours: int | None = None,
    run_id: str = "",
    retry: Retry | None = None,
    tables_to_compact: Collection[str] | None = None,
    dimension: Dimension | None = None,
) -> tuple[MaintenanceResult, ...]:
    """Compact the tables that exist, remove files that no recent version needs, and repeat commits before they expire.

    No table is maintained if another program changed one of them: the removed files could be those that restore it.

    Args:
        tables: The names of the tables.
        now: The current time, which decides whether the last pipeline commit of a table is repeated.
        retention_hours: The hours for which files are retained, which become the table's setting; None for the hours of
            that setting, at least a week. Delta retains the history of a table at least as long (30 days by default).
        run_id: The run that repeats a pipeline commit.
        retry: How write conflicts are retried.
        tables_to_compact: The tables to compact and to remove files from, by default all; only the last pipeline
            commits of the others are repeated.
        dimension: The declaration of the dimension among the tables, if any, which decides on the arrangement of its
            rows (`z_order`).

    Returns:
        The result of each table that exists.

    Raises:
        UsageError: The retention is less than a week, or longer than that of the history of a table.
        SetupError: A table was not created by this package.
        ForeignCommitError: Another program changed a table.
    """
    if retention_hours is not None and retention_hours < MIN_HOURS:
        raise UsageError("RETENTION_TOO_SHORT", ", ".join(tables), hours=retention_hours, least=MIN_HOURS)
    require_pipeline_tables(*[warehouse.table(name) for name in tables])
    commits = [warehouse.table(name).last_commit_or_zero() for name in tables]
    raise_first(foreign_commit_errors(commits))
    existing = [commit for commit in commits if commit.exists]
    if retention_hours is not None:
        for name in (commit.table for commit in existing):
            if tables_to_compact is None or name in tables_to_compact:
                _require_log_retention(warehouse, name, retention_hours)
    run = _Maintenance(warehouse, now, retention_hours, run_id, retry or Retry(), tables_to_compact, dimension)
    return tuple(run.maintain_table(commit.table, _root(commit)) for commit in existing)


@dataclass(frozen=True, slots=True)
class _Maintenance:
    """The arguments of `maintain`, for each of its tables."""

    warehouse: Warehouse
    now: datetime
    retention_hours: int | None
    run_id: str
    retry: Retry
    tables_to_compact: Collection[str] | None
    dimension: Dimension | None

    def maintain_table(self, name: str, root: str) -> MaintenanceResult:
        """Maintain a table; `root` is the dimension of a history table, an archive or a child table (`_root`)."""
        warehouse = self.warehouse
        if name != root:
            # VACUUM may remove the files of the earlier version that readers use while the table is ahead.
            self._attempt(name, lambda: _undo_unrecorded_commits(warehouse, name, root, self.run_id))
        before, _ = _files(warehouse, name)
        if self.tables_to_compact is None or name in self.tables_to_compact:
            self._compact(name)
            _vacuum(warehouse, name, self.retention_hours)
        renewed = self._attempt(name, lambda: _repeat_commit(warehouse, name, self.now, self.run_id))
        return MaintenanceResult(name, before, *_files(warehouse, name), renewed)

    def _compact(self, name: str) -> None:
        """Compact a table; arrange the rows of a large dimension, unless none was written since they were arranged."""
        table = self.warehouse.writable(name)
        columns: tuple[str, ...] = ()
        if self.dimension is not None and self.dimension.name == without_closed_suffix(name):
            # Delta arranges the rows of a table with clustering columns by these, and rejects a Z-order.
            is_clustered = bool(table.details()["clusteringColumns"])
            columns = () if is_clustered else z_order_columns(self.dimension, table.read().count())
        if not (columns and table.is_z_ordered(columns, table.last_commit().table_version)):
            self._attempt(name, lambda: table.compact(columns))

    def _attempt(self, name: str, action: Callable[[], Result]) -> Result:
        """Return the result of an action on a table, which is repeated after write conflicts."""
        return with_retries(name, lambda number: action(), self.retry, ignore_progress)


def _root(commit: PipelineCommit) -> str:
    """Return the dimension of a history table, an archive or a child table; otherwise the name of the table."""
    return without_closed_suffix(commit.root)


def _files(warehouse: Warehouse, name: str) -> tuple[int, int]:
    """Return the number of a table's files, and their size."""
    details = warehouse.table(name).details()
    return int(details["numFiles"]), int(details["sizeInBytes"])


def _vacuum(warehouse: Warehouse, name: str, retention_hours: int | None) -> None:
    table = warehouse.writable(name)
    properties = table.properties()
    current = interval_hours(properties.get(FILE_RETENTION, hours_interval(MIN_HOURS)))
    hours = max(current, MIN_HOURS) if retention_hours is None else retention_hours
    if current != hours:
        # VACUUM uses the setting of the table instead of its own argument. Delta compares it with the retention of the
        # history in the same statement, or with the default.
        log_retention = {name: value for name, value in properties.items() if name == LOG_RETENTION}
        table.set_properties({**log_retention, FILE_RETENTION: hours_interval(hours)})
    warehouse.spark.sql(f"VACUUM {table.identifier} RETAIN {hours} HOURS").collect()


def _require_log_retention(warehouse: Warehouse, name: str, hours: int) -> None:
    """Check that Delta retains the history of a table as long as files should be retained, which Delta requires."""
    log_hours = log_retention_hours(warehouse.table(name).properties())
    if 0 < log_hours < hours:
        details = {"hours": hours, "log_hours": log_hours, "property": LOG_RETENTION}
        raise UsageError("RETENTION_TOO_LONG", f"table {name}", **details)


def _repeat_commit(warehouse: Warehouse, name: str, now: datetime, run_id: str) -> bool:
    """Repeat the last pipeline commit before it expires from Delta's history: no load can write without one."""
    table = warehouse.writable(name)
    commit = table.last_commit()
    if commit.at is None or now - commit.at < RENEWED_AFTER:
        return False
    if _root(commit) == name:
        table.commit_empty(repeat_of(warehouse, name, commit, run_id))
        return True
    dimension = warehouse.table(_root(commit)).last_commit_or_zero()
    if commit.number != dimension.applied(name).commit:
        return False  # a running writer has committed to the table, and its commit is new
    _record_history(warehouse, table.commit_empty(repeat_of(warehouse, name, commit, run_id)), dimension, run_id)
    return True


def _undo_unrecorded_commits(warehouse: Warehouse, name: str, root: str, run_id: str) -> None:
    """Roll a history table, an archive or a child table back that a killed writer has left ahead of its dimension."""
    dimension = warehouse.table(root)
    stored = StoredDeclaration.from_properties(dimension.properties())
    if stored is None:
        return
    last = dimension.last_commit()
    if is_child_name(name, root):
        done = roll_back_child(warehouse, last, name, run_id)
    else:
        done = roll_back(warehouse, last, name, stored.surrogate_key, run_id=run_id)
    if done.number != last.applied(name).commit:
        _record_history(warehouse, done, last, run_id)


def _record_history(warehouse: Warehouse, history: PipelineCommit, last: PipelineCommit, run_id: str) -> None:
    """Record a commit of another table that changed no rows in the dimension, by a commit without rows.

    Args:
        history: The commit.
        last: The last commit of the dimension before it: `history` does not have the rows of a later one.
        run_id: The id of the run.

    Raises:
        ConflictError: A load has committed to the dimension since then.
    """
    commit = repeat_of(warehouse, last.table, last, run_id)
    commit = replace(commit, high_water_marks={**commit.high_water_marks, **table_mark(history)})
    warehouse.writable(last.table).commit_empty(commit)


def repeat_of(warehouse: Warehouse, name: str, commit: PipelineCommit, run_id: str) -> PipelineCommit:
    """Return the commit that repeats `commit` without adding to the lag between a dimension and its change log."""
    if name.endswith(LOG_SUFFIX):
        dimension = warehouse.table(name.removesuffix(LOG_SUFFIX)).last_commit_or_zero()
        is_applied = dimension.exists and log_high_water_mark(commit, dimension) == commit.number
        unchanged = UnchangedDimension(dimension.number, commit.number + 1) if is_applied else commit.unchanged
        return commit.next(
            high_water_marks=commit.high_water_marks, unchanged=unchanged, run_id=run_id, records=commit.records
        )
    log = warehouse.table(_root(commit) + LOG_SUFFIX).last_commit_or_zero()
    mark = log_mark(log, log_high_water_mark(log, commit)) if log.exists else {}
    return commit.next(
        high_water_marks={**commit.high_water_marks, **mark},
        roles_checksum=commit.roles_checksum,
        run_id=run_id,
        records=commit.records,
        stored_read=commit.stored_read,
    )
