"""The rows that deliveries leave, in plain Python: the oracle for landing tables (S38).

It applies the current revision of each delivery in order of their times, and imports nothing of the package under test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A declaration, as far as it matters for the rows: `dedup_sort` is a column, and whether its highest remains."""

    disposition: str
    primary_key: tuple[str, ...] = ()
    merge_key: tuple[str, ...] = ()
    dedup_sort: tuple[str, bool] | None = None
    hard_delete: str | None = None


@dataclass(frozen=True)
class Batch:
    """One revision of a delivery; the name is the position. Without rows it withdraws the delivery."""

    delivery: str
    revision: int
    rows: tuple[Row, ...] | None


def stored_rows(table: Table, batches: Iterable[Batch]) -> list[Row]:
    """Return the rows that the deliveries leave."""
    current = {batch.delivery: batch for batch in sorted(batches, key=lambda batch: batch.revision)}
    stored: list[Row] = []
    for delivery in sorted(current):
        rows = current[delivery].rows
        if rows is not None:
            stored = _after(table, stored, rows)
    return stored


def _after(table: Table, stored: list[Row], delivered: Sequence[Row]) -> list[Row]:
    if table.disposition == "append":
        return [*stored, *delivered]
    if table.disposition == "replace":
        return list(delivered)
    rows = _one_per_key(table, delivered) if table.primary_key else list(delivered)
    inserted = [row for row in rows if not _deletes(table, row)]
    replaced = _all_values(rows, table.primary_key)
    # A row that deletes has the primary key of what it deletes; without one, it has the merge key.
    scopes = _all_values(inserted if table.primary_key else rows, table.merge_key)
    remaining = [
        row
        for row in stored
        if _values(row, table.primary_key) not in replaced and _values(row, table.merge_key) not in scopes
    ]
    return [*remaining, *inserted]


def _one_per_key(table: Table, delivered: Sequence[Row]) -> list[Row]:
    """Return the first row of each key by the declared order, and of rows with equal values the first delivered."""
    chosen: dict[tuple[Any, ...], Row] = {}
    for row in delivered:
        key = _values(row, table.primary_key)
        if key not in chosen or _precedes(table, row, chosen[key]):
            chosen[key] = row
    return list(chosen.values())


def _precedes(table: Table, row: Row, other: Row) -> bool:
    if table.dedup_sort is None:
        return False
    column, is_descending = table.dedup_sort
    value, compared = row[column], other[column]
    if value is None or compared is None:
        return value is not None and compared is None
    return bool(value > compared if is_descending else value < compared)


def _deletes(table: Table, row: Row) -> bool:
    flag = None if table.hard_delete is None else row[table.hard_delete]
    return flag if isinstance(flag, bool) else flag is not None


def _values(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _all_values(rows: Iterable[Row], names: Sequence[str]) -> set[tuple[Any, ...]]:
    return {_values(row, names) for row in rows} if names else set()
