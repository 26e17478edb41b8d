"""Fold the statements of a log up to a time into a new base (S12)."""

from __future__ import annotations

from datetime import datetime

from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.timed.append import require_author
from scd_pipeline.timed.folded_base import NO_BASE, base_state, is_retained
from scd_pipeline.timed.read import read_state
from scd_pipeline.timed.stored_rows import write_read
from scd_pipeline.timed.times import from_millis, to_millis

_PROPERTIES = {"delta.logRetentionDuration": "interval 36500 days"}
"""The commits are the record of the folds, and reads need the last one."""
_COMMENT = "Base of a timed table into which its log was folded: its commits have time, author and reason of each fold"


def fold_log(warehouse: Warehouse, table: TimedTable, *, until: int, author: str, reason: str, now: datetime) -> int:
    """Write the rows at a time as the new base of a timed table, and return the number of statements it adds to it.

    Reads at this time or later return what they returned before, reads at an earlier time are rejected. The declared
    base and the log are not changed. Without statements to fold, nothing is written.

    Args:
        warehouse: The warehouse.
        table: The timed table.
        until: The time up to which statements are folded, in milliseconds.
        author: The person or program that folds.
        reason: The reason.
        now: The time of the fold.

    Raises:
        SourceDataError: A statement cannot be applied, or base or log were changed after an earlier fold.
        UsageError: The time is after `now`, or the author is missing.
        SetupError: A table that no fold wrote has the name of the new base.
        ConflictError: Another process folded the log at the same time.
    """
    require_author(table, author)
    at = to_millis(now, table.timezone)
    if until > at:
        raise UsageError("FOLD_TIME", f"log of {table.name}", until=from_millis(until), now=from_millis(at))
    declared_base = base_state(warehouse.spark, table.base)
    state = read_state(warehouse, table)
    folded = [statement for statement in state.statements if statement.millis <= until]
    if folded:
        base = declared_base
        if state.fold is not None:
            # Without the earlier statements, the declared base and the log do not lead to the new base.
            base = state.fold.base if is_retained(warehouse.spark, table, state.log, state.fold) else NO_BASE
        read = state.stored_read(until, base=base, at=at, author=author, reason=reason)
        write_read(warehouse.table(table.base_table), state, read, comment=_COMMENT, properties=_PROPERTIES)
    return len(folded)
