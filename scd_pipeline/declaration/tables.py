"""The tables of a dimension or a fact, and their names."""

from __future__ import annotations

from collections.abc import Sequence

LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX, HISTORY_SUFFIX = "_changes", "_audit", "_keys", "_history"
ARCHIVE_SUFFIX = "_archive"
CLOSED_SUFFIXES = (HISTORY_SUFFIX, ARCHIVE_SUFFIX)
"""How the names of the tables end that only store closed versions, of which a dimension has one at most."""
UPDATES_SUFFIX, BASE_SUFFIX, PRESENT_SUFFIX = "_updates", "_base", "_present"
"""How the names of the tables with the log, with the folded base and with the stored rows of a timed table end."""
SUFFIXES = (LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX, *CLOSED_SUFFIXES)
"""How the names of the other tables of a dimension, and of the view of its surrogate keys, end."""
HIST_SUFFIX = "_hist"
"""How the names of the histories of existing tables end."""
KINDS = tuple(suffix.removeprefix("_") for suffix in SUFFIXES)


def table_names(name: str, closed_suffixes: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of a dimension's or a fact's tables: its own, and one for each suffix but that of the view.

    Args:
        name: The dimension or the fact.
        closed_suffixes: The suffixes of the tables that only store closed versions of a dimension.
    """
    return (name, name + LOG_SUFFIX, name + AUDIT_SUFFIX, *(name + suffix for suffix in closed_suffixes))


def closed_suffix(*, history_table: bool, archive: bool) -> str:
    """Return the suffix of the table that only stores closed versions; empty if a dimension has none."""
    return HISTORY_SUFFIX if history_table else ARCHIVE_SUFFIX if archive else ""


def without_closed_suffix(table: str) -> str:
    """Return the dimension of a table that only stores closed versions; the name of any other table unchanged."""
    suffix = next((suffix for suffix in CLOSED_SUFFIXES if table.endswith(suffix)), "")
    return table.removesuffix(suffix)
