"""Reads of timed tables: the base and the log as they are now, and the rows at a time (S12)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration.source import is_address, without_file_scheme
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.deliveries.files import last_changed
from scd_pipeline.delta.commits import StoredRead
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError, UsageError
from scd_pipeline.expressions import col
from scd_pipeline.texts import did_you_mean
from scd_pipeline.timed import evaluate
from scd_pipeline.timed.base import base_types, fit_folded_base, read_base
from scd_pipeline.timed.expressions import Columns, find_column
from scd_pipeline.timed.folded_base import checksum, folded, is_retained, read_folded_base, require_unchanged
from scd_pipeline.timed.log import LogText
from scd_pipeline.timed.log_table import read_log_table
from scd_pipeline.timed.program import Program, applied, relevant
from scd_pipeline.timed.statements import Statement, parse_log
from scd_pipeline.timed.times import from_millis


@dataclass(frozen=True, slots=True)
class StatementHits:
    """A statement, and the number of rows of the base that it hits."""

    statement: Statement
    rows: int


@dataclass(frozen=True, slots=True)
class TimedState:
    """The base and the log of a timed table at one moment.

    Attributes:
        base: The rows of the base: of the folded one, if the log was folded.
        columns: The types of its columns.
        log: The statements of the log, in the order in which they apply.
        fold: The last fold, whose statements the base contains; None if the log was not folded.
    """

    base: DataFrame
    columns: Columns
    log: Sequence[Statement]
    fold: StoredRead | None = None

    @property
    def statements(self) -> Sequence[Statement]:
        """The statements that apply to the base: those after the last fold."""
        return self.log if self.fold is None else self.log[len(folded(self.log, self.fold.until)) :]

    def require_readable(self, time: int | str) -> None:
        """Check that the rows at a time are not before the last fold.

        Raises:
            UsageError: They are.
        """
        if self.fold is not None and not isinstance(time, str) and time < self.fold.until:
            raise UsageError("READ_BEFORE_FOLD", "time", time=from_millis(time), until=from_millis(self.fold.until))

    def rows(self, time: int | str, columns: Collection[str] | None = None) -> DataFrame:
        """Return the rows at a time.

        Args:
            time: The milliseconds, or `RAW`.
            columns: The columns to return; by default all. Statements on which they do not depend are not evaluated.

        Raises:
            UsageError: The time is before the last fold, or a column does not exist.
        """
        names = list(self.columns) if columns is None else [self._column(name) for name in columns]
        statements = relevant(self._applied(time), names)
        return evaluate.last_rows(self.base, Program(self.columns, statements)).select(*map(col, names))

    def states(self) -> DataFrame:
        """Return every state that rows have at some time, as `evaluate.all_rows`."""
        return evaluate.all_rows(self.base, Program(self.columns, self.statements))

    def stored_read(self, until: int, *, base: str, at: int, author: str = "", reason: str = "") -> StoredRead:
        """Return the record of a read up to a time, whose rows are stored."""
        contained = folded(self.log, until)
        return StoredRead(until, len(contained), checksum(contained), base, at, author, reason)

    def hits(self, time: int | str) -> list[StatementHits]:
        """Return the statements that apply at a time in their order, each with the number of rows that it hits."""
        program = Program(self.columns, self._applied(time))
        counts = evaluate.hits(self.base, program)
        return [StatementHits(each, counts[number]) for number, each in enumerate(program.statements, start=1)]

    def _applied(self, time: int | str) -> list[Statement]:
        self.require_readable(time)
        return [] if isinstance(time, str) else applied(self.statements, time)

    def _column(self, name: str) -> str:
        column = find_column(name, self.columns)
        if column is None:
            raise UsageError("COLUMN_NOT_FOUND", "columns", column=name, hint=did_you_mean(name, self.columns))
        return column


def read_state(warehouse: Warehouse, table: TimedTable) -> TimedState:
    """Return the base and the log of a timed table as they are now.

    Raises:
        SourceDataError: A statement cannot be applied, the base does not fit its declaration, or base or log were
            changed after a fold.
        ForeignCommitError: Another program changed the folded base.
    """
    spark, folded_base = warehouse.spark, read_folded_base(warehouse, table)
    base = read_base(spark, table) if folded_base is None else fit_folded_base(spark, table, folded_base.rows)
    columns = base_types(table, base)
    log = parse_log(read_log(warehouse, table), columns, table.timezone)
    if folded_base is None:
        return TimedState(base, columns, log)
    require_unchanged(spark, table, log, folded_base.fold)
    return TimedState(base, columns, log, folded_base.fold)


def read_whole_state(warehouse: Warehouse, table: TimedTable) -> TimedState:
    """Return the declared base and the whole log, also of a folded log, which a history needs.

    If the declared base or the folded statements were removed after a fold, return the state since the fold.

    Raises:
        SourceDataError: As for `read_state`.
        ForeignCommitError: Another program changed the folded base.
    """
    state = read_state(warehouse, table)
    if state.fold is None or not is_retained(warehouse.spark, table, state.log, state.fold):
        return state
    base = read_base(warehouse.spark, table)
    return TimedState(base, base_types(table, base), state.log)


def read_log(warehouse: Warehouse, table: TimedTable) -> list[LogText]:
    """Return the texts of a log in order.

    Raises:
        SourceDataError: The file of the log cannot be read.
    """
    if table.log == "table":
        return read_log_table(warehouse.table(table.log_table))
    path = table.log_path
    if is_address(path) and path == without_file_scheme(path):
        columns = ("value", F.unix_micros("_metadata.file_modification_time"))
        rows = warehouse.spark.read.text(path, wholetext=True).select(*columns).collect()
        return [LogText(path, text, recorded_at=time) for text, time in rows]
    file = Path(without_file_scheme(path))
    if not file.exists() and not table.updates:
        return []
    try:
        changed_at = last_changed(file)
        return [LogText(path, file.read_text(encoding="utf-8-sig"), recorded_at=changed_at)]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SourceDataError("LOG_NOT_READABLE", path, reason=reason) from error
