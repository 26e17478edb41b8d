"""Appends to the log of a timed table, of statements that were checked (S12)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from scd_pipeline.declaration.source import is_address, without_file_scheme
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.timed.log import LogText
from scd_pipeline.timed.log_table import append_to_log_table
from scd_pipeline.timed.read import read_log, read_state
from scd_pipeline.timed.statements import Statement, parse_log
from scd_pipeline.timed.times import from_millis


def append_statements(
    warehouse: Warehouse, table: TimedTable, text: str, *, millis: int, author: str, reason: str, now: datetime
) -> list[Statement]:
    """Append statements to the log of a timed table, and return them.

    They are parsed and checked together with the log; if one of them cannot be applied, nothing is appended.

    Args:
        warehouse: The warehouse.
        table: The timed table.
        text: One statement or several.
        millis: Their time.
        author: The person or program that appends.
        reason: The reason.
        now: The time of the append.

    Raises:
        SourceDataError: A statement cannot be applied.
        UsageError: The text has no statement, the author is missing, or the log is folded up to this time.
        SetupError: The log is a file that is not on this machine.
    """
    require_author(table, author)
    new = LogText("statement", text, millis, author, reason)
    state = read_state(warehouse, table)
    if state.fold is not None and millis <= state.fold.until:
        times = {"time": from_millis(millis), "until": from_millis(state.fold.until)}
        raise UsageError("STATEMENT_FOLDED", f"log of {table.name}", **times)
    logs = read_log(warehouse, table)
    statements = parse_log([*logs, new], state.columns, table.timezone)
    if len(statements) == len(state.log):
        raise UsageError("LOG_TEXT_EMPTY", f"log of {table.name}")
    if table.log == "table":
        log_table = warehouse.table(table.log_table)
        append_to_log_table(log_table, text, millis=millis, author=author, reason=reason, now=now)
    else:
        _append_to_file(table.log_path, logs, new)
    return [statement for statement in statements if statement.position > len(state.log)]


def require_author(table: TimedTable, author: str) -> None:
    """Check that a change of a timed table has an author.

    Raises:
        UsageError: It has none.
    """
    if not author.strip():
        raise UsageError("LOG_AUTHOR_MISSING", f"log of {table.name}")


def _append_to_file(path: str, logs: list[LogText], new: LogText) -> None:
    """Append the statements to a file by one write, after a line with their time and a comment."""
    file = Path(without_file_scheme(path))
    if is_address(path) and path == without_file_scheme(path):
        raise SetupError("LOG_NOT_LOCAL", path)
    before = "".join(log.text for log in logs)
    separator = "\n;\n" if any(log.is_open for log in logs) else "" if not before or before.endswith("\n") else "\n"
    comment = " ".join(f"{new.author}: {new.reason}".split())
    end = "\n;" if new.is_open else ""
    time = f"-- time={new.millis}"
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"{separator}{time}\n-- {from_millis(new.millis or 0)}, by {comment}\n{new.text.strip()}{end}\n")
