"""Keeping tables small and their own commits at hand: OPTIMIZE, VACUUM, and an own commit repeated in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scd_pipeline.delta.audit_table import AUDIT_SUFFIX, KEYS_SUFFIX
from scd_pipeline.errors import UsageError
from scd_pipeline.load import Retry, silent, with_retries
from scd_pipeline.reading import LOG_SUFFIX
from scd_pipeline.warehouse import Warehouse

LEAST_HOURS = 168
"""Files that readers of the last week may still need are never removed."""

RENEWED_AFTER = timedelta(days=15)
"""Half of the time for which Delta keeps a table's history by default; an own commit that is older is repeated."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done to one table."""

    table: str
    files_before: int
    files_after: int
    bytes_after: int
    renewed: bool


def tables_of(name: str) -> tuple[str, ...]:
    """The tables that belong to a dimension or a fact."""
    return (name, *(name + suffix for suffix in (LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX)))


def maintain(
    warehouse: Warehouse,
    tables: Sequence[str],
    *,
    now: datetime,
    retention_hours: int = LEAST_HOURS,
    run_id: str = "",
    retry: Retry | None = None,
) -> tuple[Maintained, ...]:
    """Compact the tables that are there, and remove files that no version of the last hours needs.

    `now` is asked of the caller; it only decides whether a table's last own commit is old enough to be repeated.
    Errors: UsageError for less than a week.
    """
    if retention_hours < LEAST_HOURS:
        raise UsageError(
            f"a retention of {retention_hours} hours would take files from running readers; "
            f"expected {LEAST_HOURS} or more"
        )
    there = [name for name in tables if warehouse.table(name).exists()]
    return tuple(_maintained(warehouse, name, now, retention_hours, run_id, retry) for name in there)


def _maintained(
    warehouse: Warehouse, name: str, now: datetime, hours: int, run_id: str, retry: Retry | None
) -> Maintained:
    table = warehouse.writable(name)
    spark = warehouse.spark
    before = spark.sql(f"DESCRIBE DETAIL {table.identifier}").select("numFiles").collect()[0][0]
    with_retries(name, table.compact, retry or Retry(), silent)
    spark.sql(f"VACUUM {table.identifier} RETAIN {hours} HOURS").collect()
    renewed = with_retries(name, lambda: _renewed(warehouse, name, now, run_id), retry or Retry(), silent)
    after = spark.sql(f"DESCRIBE DETAIL {table.identifier}").select("numFiles", "sizeInBytes").collect()[0]
    return Maintained(name, int(before), int(after[0]), int(after[1]), renewed)


def _renewed(warehouse: Warehouse, name: str, now: datetime, run_id: str) -> bool:
    """Repeat an own commit before Delta's history forgets it: without one nobody could write any more."""
    table = warehouse.writable(name)
    commit = table.last_commit()
    if commit.at is None or now - commit.at < RENEWED_AFTER:
        return False
    table.mark(commit.next(took=dict(commit.took), batches=(), run_id=run_id))
    return True
