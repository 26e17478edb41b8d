"""The tables of a dimension or a fact, and their names."""

from __future__ import annotations

LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX, HISTORY_SUFFIX = "_changes", "_audit", "_keys", "_history"
SUFFIXES = (LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX, HISTORY_SUFFIX)
"""How the names of the other tables of a dimension end; its own table has its plain name."""
KINDS = tuple(suffix.removeprefix("_") for suffix in SUFFIXES)


def table_names(name: str, *, has_history: bool = False) -> tuple[str, ...]:
    """Return the names of a dimension's or a fact's tables: its own, and one for each suffix.

    Args:
        name: The dimension or the fact.
        has_history: Whether a dimension has a history table.
    """
    return (name, *(name + suffix for suffix in SUFFIXES if has_history or suffix != HISTORY_SUFFIX))
