"""Combine the small files that loads write, so that a load takes as long after thousands of loads as after the first.

Each commit adds a file or more to a table. Their number has a bound, as every fiftieth commit is followed by an
OPTIMIZE of small files. Its cost follows the rows of those fifty commits, not the rows stored: larger files stay as
they are, and so do those with deleted rows. Maintenance, which is scheduled, rewrites these as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ConflictError

COMMITS_BETWEEN = 50


def is_compaction_due(before: int, after: int) -> bool:
    """Return whether a table is to be compacted.

    Args:
        before: The number of its last commit before a load.
        after: The number of its last commit after the load.
    """
    return before // COMMITS_BETWEEN < after // COMMITS_BETWEEN


def compact_small_files(warehouse: Warehouse, tables: Iterable[str]) -> None:
    """Combine the small files of the tables that exist.

    A table that another writer changes meanwhile is left to a later load, or to maintenance.
    """
    for name in tables:
        table = warehouse.table(name)
        if table.exists():
            with suppress(ConflictError):
                table.combine_small_files()
