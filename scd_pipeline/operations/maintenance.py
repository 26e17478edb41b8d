"""Maintenance of tables: OPTIMIZE and VACUUM, and a repeated pipeline commit before the last one expires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.commits import PipelineCommit, UnchangedDimension
from scd_pipeline.delta.schema import require_own_tables
from scd_pipeline.delta.upstream import foreign_problems, log_mark, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load.log import log_high_water_mark
from scd_pipeline.load.retry import Retry, ignore_progress, with_retries

LEAST_HOURS = 168
"""Files that readers of the last week may still need are never removed."""

RENEWED_AFTER = timedelta(days=15)
"""Half of the time for which Delta keeps a table's history by default; a pipeline commit that is older is repeated."""

_RETENTION = "delta.deletedFileRetentionDuration"
_UNITS = {"hour": 1, "day": 24, "week": 168}


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done to one table."""

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
) -> tuple[Maintained, ...]:
    """Compact the tables that are there, and remove files that no version of the last hours needs.

    The hours are `retention_hours`, which become the table's own setting; where none are given those of that setting, a
    week at least. `now` is asked of the caller; it only decides whether a table's last pipeline commit is old enough to
    be repeated.
    A table that another program changed is left alone: removing files could take those that restore it.

    Errors: UsageError for less than a week; SetupError if one of the tables is not ours; ForeignCommitError for a table
    that another program changed, before any of the tables is maintained.
    """
    if retention_hours is not None and retention_hours < LEAST_HOURS:
        raise UsageError(
            f"a retention of {retention_hours} hours would take files from running readers; "
            f"expected {LEAST_HOURS} or more"
        )
    require_own_tables(*[warehouse.table(name) for name in tables])
    commits = [warehouse.table(name).last_commit_or_zero() for name in tables]
    raise_first(foreign_problems(commits))
    there = [commit.table for commit in commits if commit.exists]
    return tuple(_maintained(warehouse, name, now, retention_hours, run_id, retry) for name in there)


def _maintained(
    warehouse: Warehouse, name: str, now: datetime, wanted: int | None, run_id: str, retry: Retry | None
) -> Maintained:
    table = warehouse.writable(name)
    spark = warehouse.spark
    before = spark.sql(f"DESCRIBE DETAIL {table.identifier}").select("numFiles").collect()[0][0]
    with_retries(name, lambda number: table.compact(), retry or Retry(), ignore_progress)
    own = _hours(table.properties().get(_RETENTION, _interval(LEAST_HOURS)))
    hours = max(own, LEAST_HOURS) if wanted is None else wanted
    if own != hours:
        # VACUUM goes by the table's own setting, whatever it is told.
        table.set_properties({_RETENTION: _interval(hours)})
    spark.sql(f"VACUUM {table.identifier} RETAIN {hours} HOURS").collect()
    renewed = with_retries(
        name, lambda number: _renewed(warehouse, name, now, run_id), retry or Retry(), ignore_progress
    )
    after = spark.sql(f"DESCRIBE DETAIL {table.identifier}").select("numFiles", "sizeInBytes").collect()[0]
    return Maintained(name, int(before), int(after[0]), int(after[1]), renewed)


def _interval(hours: int) -> str:
    return f"interval {hours} hours"


def _hours(interval: str) -> int:
    """The whole hours of an interval as Delta's properties have it, as `interval 30 days`; 0 where it has others."""
    parts = interval.lower().split()[1:]
    pairs = list(zip(parts[::2], parts[1::2], strict=False))
    if len(parts) % 2 or not all(number.isdecimal() and unit.rstrip("s") in _UNITS for number, unit in pairs):
        return 0
    return sum(int(number) * _UNITS[unit.rstrip("s")] for number, unit in pairs)


def _renewed(warehouse: Warehouse, name: str, now: datetime, run_id: str) -> bool:
    """Repeat a pipeline commit before Delta's history forgets it: without one nobody could write any more."""
    table = warehouse.writable(name)
    commit = table.last_commit()
    if commit.at is None or now - commit.at < RENEWED_AFTER:
        return False
    table.commit_empty(_repeated(warehouse, name, commit, run_id))
    return True


def _repeated(warehouse: Warehouse, name: str, commit: PipelineCommit, run_id: str) -> PipelineCommit:
    """Return the commit that repeats `commit` without adding to the lag between a dimension and its change log."""
    if name.endswith(LOG_SUFFIX):
        dimension = warehouse.table(name.removesuffix(LOG_SUFFIX)).last_commit_or_zero()
        is_applied = dimension.exists and log_high_water_mark(commit, dimension) == commit.number
        unchanged = UnchangedDimension(dimension.number, commit.number + 1) if is_applied else commit.unchanged
        return commit.next(high_water_marks=commit.high_water_marks, unchanged=unchanged, run_id=run_id)
    log = warehouse.table(name + LOG_SUFFIX).last_commit_or_zero()
    mark = log_mark(log, log_high_water_mark(log, commit)) if log.exists else {}
    return commit.next(high_water_marks={**commit.high_water_marks, **mark}, roles=commit.roles, run_id=run_id)
