"""The tables of a dimension or a fact, and their names."""

from __future__ import annotations

LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX, HISTORY_SUFFIX = "_changes", "_audit", "_keys", "_history"
UPDATES_SUFFIX, BASE_SUFFIX, PRESENT_SUFFIX = "_updates", "_base", "_present"
"""How the names of the tables with the log, with the folded base and with the stored rows of a timed table end."""
SUFFIXES = (LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX, HISTORY_SUFFIX)
"""How the names of the other tables of a dimension, and of the view of its surrogate keys, end."""
KINDS = tuple(suffix.removeprefix("_") for suffix in SUFFIXES)


def table_names(name: str, *, has_history: bool = False) -> tuple[str, ...]:
    """Return the names of a dimension's or a fact's tables: its own, and one for each suffix but that of the view.

    Args:
        name: The dimension or the fact.
        has_history: Whether a dimension has a history table.
    """
    return (name, name + LOG_SUFFIX, name + AUDIT_SUFFIX, *([name + HISTORY_SUFFIX] if has_history else []))
