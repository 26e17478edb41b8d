"""Instructions for the repair of damaged tables."""

from __future__ import annotations

from scd_pipeline.declaration.tables import AUDIT_SUFFIX, CLOSED_SUFFIXES, LOG_SUFFIX, without_closed_suffix
from scd_pipeline.delta_operations import ENFORCE_TIME_TRAVEL_RETENTION

REBUILT_BY: dict[str, str] = {
    LOG_SUFFIX: "no other table can rebuild it; restore the files that it had",
    AUDIT_SUFFIX: (
        "a load rebuilds it from the change log, without withdrawn transitions, repairs and keys of removed versions"
    ),
    **dict.fromkeys(CLOSED_SUFFIXES, "drop the dimension's table too; a load rebuilds both from the change log"),
    "": "a load rebuilds it from its change log",
}
"""How a missing table is rebuilt, by the suffix of its name; the table of a dimension or a fact has no suffix."""


_OF_AN_OLD_VERSION = (
    f" (if Delta refuses a version of more than a week ago, first `SET {ENFORCE_TIME_TRAVEL_RETENTION} = false`)"
)


def table_kind(table: str) -> str:
    """Return the kind of a table: the suffix of its name."""
    return next(kind for kind in REBUILT_BY if table.endswith(kind))


def repair_instructions(table: str, restore_statement: str, *, is_fact: bool = False) -> str:
    """Return how to repair a table whose rows another program changed."""
    kind, restore = table_kind(table), f"`{restore_statement}`{_OF_AN_OLD_VERSION}"
    if kind == LOG_SUFFIX:
        return f"run {restore}; {REBUILT_BY[LOG_SUFFIX]}"
    if kind in ("", *CLOSED_SUFFIXES) and not is_fact:
        return f"run `scd repair {without_closed_suffix(table)}`, or {restore}"
    return f"run {restore}, or drop the table: {REBUILT_BY[kind]}"


def folded_base_instructions(restore_statement: str) -> str:
    """Return how to repair the folded base of a timed table whose rows another program changed."""
    restore = f"`{restore_statement}`{_OF_AN_OLD_VERSION}"
    return f"run {restore}, or drop the table: reads then apply the whole log to the declared base"


def missing_files_instructions(table: str) -> str:
    """Return how to recover a table without the data files that it has lost, and what cannot be recovered."""
    kind = table_kind(table)
    name = table.removesuffix(kind)
    if kind == LOG_SUFFIX:
        return (
            f"no other table can rebuild them. Without a backup, first make sure that all deliveries of {name} still "
            f"exist: the others cannot be recovered. Then drop every table of {name} and load all deliveries; "
            "the facts of a dimension are loaded after it"
        )
    dropped = f"{table} and {name}" if kind in CLOSED_SUFFIXES else table
    rebuilt = REBUILT_BY[kind].rpartition("too; ")[2]
    return f"or drop {dropped}: {rebuilt}"


def log_repair_instructions(log: str) -> str:
    """Return how to repair a change log that has lost commits."""
    name = log.removesuffix(LOG_SUFFIX)
    return (
        f"restore the files that {log} had, from a backup, or RESTORE it to the version that it had; no other table "
        f"can rebuild it: without a backup drop every table of {name} and load all deliveries"
    )
