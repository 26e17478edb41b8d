"""The log of a timed table as a Delta table to which rows are only appended, with author and reason (S12)."""

from __future__ import annotations

from datetime import datetime

from scd_pipeline.delta.table import Table
from scd_pipeline.errors import ConflictError, LoadError
from scd_pipeline.expressions import timestamp_literal
from scd_pipeline.frames import local_frame
from scd_pipeline.instants import from_micros
from scd_pipeline.timed.log import LogText

_COLUMNS = (
    ("position", "bigint", False),
    ("effective_at", "timestamp", False),
    ("statement", "string", False),
    ("author", "string", False),
    ("reason", "string", True),
    ("recorded_at", "timestamp", False),
)
_TEXTS = "position bigint, statement string, author string, reason string"
_ATTEMPTS = 5
_COMMENT = "Timed statements: position in the log, time, statement, author, reason and time of the append"


def read_log_table(table: Table) -> list[LogText]:
    """Return the texts of the table in order; none if the table does not exist."""
    if not table.exists():
        return []
    times = ("unix_millis(effective_at) AS millis", "unix_micros(recorded_at) AS recorded_at")
    columns = ("position", *times, "statement", "author", "reason")
    return [
        LogText(
            f"{table.name} position {row['position']}",
            row["statement"],
            row["millis"],
            row["author"],
            row["reason"] or "",
            row["recorded_at"],
        )
        for row in table.read().selectExpr(*columns).orderBy("position").collect()
    ]


def append_to_log_table(table: Table, text: str, *, millis: int, author: str, reason: str, now: datetime) -> int:
    """Append the statements of a text, which were checked, and return their position.

    Raises:
        LoadError: Other writers committed first each time.
    """
    table.create(_COLUMNS, {"delta.appendOnly": "true"}, _COMMENT)
    for _ in range(_ATTEMPTS):
        commit = table.last_commit_or_zero().next()
        rows = local_frame(table.spark, [(commit.number, text, author, reason or None)], _TEXTS)
        times = {"effective_at": timestamp_literal(from_micros(millis * 1000)), "recorded_at": timestamp_literal(now)}
        try:
            table.append(rows.withColumns(times).select([name for name, _, _ in _COLUMNS]), commit)
            return commit.number
        except ConflictError as error:
            last = error
    raise LoadError("RETRIES_EXHAUSTED", f"table {table.name}", attempts=_ATTEMPTS, last=last)
