"""The ways back from damage to a table: what restores it, and what a load can rebuild."""

from __future__ import annotations

LOG, AUDIT, KEYS, ROWS = "_changes", "_audit", "_keys", ""
"""The kinds of table by the suffix of their names; the last is a dimension or a fact itself."""

REBUILT_BY: dict[str, str] = {
    LOG: "no other table can rebuild it; restore the files that it had",
    AUDIT: "a load rebuilds it from the change log, without what was withdrawn",
    KEYS: "a load rebuilds it from the audit",
    ROWS: "a load rebuilds it from its change log",
}
"""What rebuilds a table that does not exist."""


def kind_of(table: str) -> str:
    """Return the kind of a table: the suffix of its name."""
    return next(kind for kind in REBUILT_BY if table.endswith(kind))


def ways_back(table: str, restore_statement: str) -> str:
    """Return how a table whose rows were changed gets them back."""
    kind = kind_of(table)
    if kind == LOG:
        return f"run `{restore_statement}`; {REBUILT_BY[LOG]}"
    return f"run `{restore_statement}`, or drop the table: {REBUILT_BY[kind]}"


def lost_log(log: str) -> str:
    """Return how a change log whose commits are lost is repaired."""
    name = log.removesuffix(LOG)
    return (
        f"restore the files that {log} had, from a backup, or RESTORE it to the version that it had; no other table "
        f"can rebuild it: without a backup drop every table of {name} and load all deliveries"
    )
