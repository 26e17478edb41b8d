"""The folded base of a timed table: a Delta table of the warehouse with the rows at the time of the fold (S12).

One commit has the rows and the record of the statements that they contain. A reader takes both from one version of the
table: its base and its log belong together, whenever another process folds. The declared base and the folded statements
are not changed; after the fold they may be removed, but nothing may be added to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration.timed_table import Base, TimedTable
from scd_pipeline.deliveries.hash_sums import hash_halves, hash_sum
from scd_pipeline.deliveries.paths import absolute_path
from scd_pipeline.delta.commits import StoredRead, foreign_commit_error
from scd_pipeline.delta.table import Table, is_missing
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.timed.statements import Statement
from scd_pipeline.timed.times import from_millis

NO_BASE = ""
"""The state of a base that was removed, or that was not read because statements before the fold were."""
_VERSION = "@"


@dataclass(frozen=True, slots=True)
class FoldedBase:
    """The rows of one version of a folded base, and the record of the statements that they contain."""

    rows: DataFrame
    fold: StoredRead


def read_folded_base(warehouse: Warehouse, table: TimedTable) -> FoldedBase | None:
    """Return the newest folded base of a timed table; None if its log was not folded.

    Raises:
        ForeignCommitError: Another program changed its rows.
    """
    version = warehouse.table(table.base_table).newest()
    if version is None or version.commit.stored_read is None:
        return None
    if version.commit.foreign is not None:
        raise foreign_commit_error(version.commit, version.commit.foreign)
    return FoldedBase(version.rows, version.commit.stored_read)


def read_folds(warehouse: Warehouse, table: TimedTable) -> list[StoredRead]:
    """Return the folds of the log of a timed table, in order."""
    if read_folded_base(warehouse, table) is None:
        return []
    commits = warehouse.table(table.base_table).commits_since(0)
    return [commit.stored_read for commit in commits if commit.stored_read is not None]


def require_unchanged(spark: SparkSession, table: TimedTable, log: Sequence[Statement], fold: StoredRead) -> None:
    """Check that nothing was added to the declared base and to the folded statements since the fold.

    Raises:
        SourceDataError: The base or the statements differ; if there are none, they were removed.
    """
    details = {"table": table.base_table, "until": from_millis(fold.until)}
    statements = folded(log, fold.until)
    if statements and checksum(statements) != fold.checksum:
        counts = {"statements": len(statements), "folded": fold.statements}
        raise SourceDataError("LOG_CHANGED_AFTER_FOLD", f"log of {table.name}", **counts, **details)
    if _has_changed(spark, table.base, fold.base):
        raise SourceDataError("BASE_CHANGED_AFTER_FOLD", table.base.path, **details)


def is_retained(spark: SparkSession, table: TimedTable, log: Sequence[Statement], fold: StoredRead) -> bool:
    """Return whether the declared base and the folded statements still exist, which may be removed after a fold."""
    has_base = fold.base != NO_BASE and base_state(spark, table.base) != NO_BASE
    return has_base and bool(folded(log, fold.until))


def folded(log: Sequence[Statement], until: int) -> list[Statement]:
    """Return the statements of a log up to the time of a fold."""
    return [statement for statement in log if statement.millis <= until]


def checksum(statements: Sequence[Statement]) -> str:
    """Return a checksum of statements, of their times and their texts."""
    texts = [repr((statement.millis, statement.text)) for statement in statements]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def base_state(spark: SparkSession, base: Base) -> str:
    """Return the state of a base: id and version of a Delta table, or a checksum of names, sizes and times of files.

    It is empty if the base does not exist.
    """
    try:
        if base.format == "delta":
            stored = _delta_table(spark, base)
            return f"{stored.details()['id']}{_VERSION}{stored.newest_version()}"
        files = spark.read.format("binaryFile").options(**base.options).load(absolute_path(base.path))
        name = F.element_at(F.split("path", "/"), -1)
        halves = hash_halves(F.xxhash64(name, "length", "modificationTime"))
        (row,) = files.agg(*[value.alias(half) for half, value in halves.items()]).collect()
    except Exception as error:
        if is_missing(error):
            return NO_BASE
        raise
    return f"{hash_sum(row.asDict()):x}" if row[0] is not None else NO_BASE


def _has_changed(spark: SparkSession, base: Base, state: str) -> bool:
    """Return whether a base that exists has other rows than in an earlier state."""
    current = base_state(spark, base) if state != NO_BASE else NO_BASE
    if current in (NO_BASE, state):
        return False
    table_id, _, version = state.partition(_VERSION)
    if base.format != "delta" or current.partition(_VERSION)[0] != table_id:
        return True
    return bool(_delta_table(spark, base).row_changes_since(int(version)))


def _delta_table(spark: SparkSession, base: Base) -> Table:
    return Table(spark, base.path, absolute_path(base.path))
