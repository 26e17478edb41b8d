"""The rows of a timed table now, stored as a Delta table for readers that do not apply the log (S12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.timed.folded_base import base_state
from scd_pipeline.timed.read import read_state
from scd_pipeline.timed.statements import Statement
from scd_pipeline.timed.stored_rows import write_read
from scd_pipeline.timed.times import to_millis

_COMMENT = "Rows of a timed table at the time of the last commit that replaced them"

_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
"""The format of times; that of Spark ends with milliseconds."""
_JSON = {"ignoreNullFields": "false", "timestampFormat": _TIME, "timestampNTZFormat": _TIME}


@dataclass(frozen=True, slots=True)
class StoredPresent:
    """The stored rows of a timed table.

    Attributes:
        commit: The commit that stored them.
        rows: Their number.
        statements: The statements that they contain, in the order in which they apply.
        next_statement: The first statement with a later time, if any.
    """

    commit: PipelineCommit
    rows: int
    statements: Sequence[Statement]
    next_statement: Statement | None


@dataclass(frozen=True, slots=True)
class PresentDifferences:
    """How stored rows differ from the rows of a read at their time.

    Attributes:
        until: The time of the read, in milliseconds.
        missing: The number of rows that are not stored.
        additional: The number of stored rows that the read does not return.
    """

    until: int
    missing: int
    additional: int


def store_present(warehouse: Warehouse, table: TimedTable, *, now: datetime, run_id: str = "") -> StoredPresent:
    """Replace the rows of `<table>_present` by the rows of a read, by one commit.

    Args:
        warehouse: The warehouse.
        table: The timed table.
        now: The time of the read.
        run_id: The id of the run.

    Raises:
        SourceDataError: As for a read.
        SetupError: A table that has other rows has the name of the stored table.
        ConflictError: Another process stored the rows at the same time.
    """
    until, base = to_millis(now, table.timezone), base_state(warehouse.spark, table.base)
    state, stored = read_state(warehouse, table), warehouse.table(table.present_table)
    read = state.stored_read(until, base=base, at=until)
    commit = write_read(stored, state, read, comment=_COMMENT, run_id=run_id)
    following = state.log[read.statements :]
    rows = stored.read(commit.table_version).count()
    return StoredPresent(commit, rows, state.log[: read.statements], following[0] if following else None)


def compare_present(warehouse: Warehouse, table: TimedTable) -> PresentDifferences | None:
    """Return how the stored rows differ from the rows of a read at the same time; None if none are stored.

    If the log was folded up to a later time, the read is at this time: it is the earliest possible one.

    Raises:
        SourceDataError: As for a read.
    """
    version = warehouse.table(table.present_table).newest()
    if version is None or version.commit.stored_read is None:
        return None
    state, until = read_state(warehouse, table), version.commit.stored_read.until
    until = until if state.fold is None else max(until, state.fold.until)
    expected = state.rows(until)
    expected_texts, stored_texts = _texts(expected, expected.columns), _texts(version.rows, version.rows.columns)
    missing, additional = expected_texts.exceptAll(stored_texts), stored_texts.exceptAll(expected_texts)
    return PresentDifferences(until, missing.count(), additional.count())


def _texts(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return each row as a text: rows with maps cannot be compared."""
    values: list[Column] = [col(name) for name in columns]
    return rows.select(F.to_json(F.struct(*values), _JSON))
