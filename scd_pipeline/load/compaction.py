"""Combine the small files that loads write, so that a load takes as long after thousands of loads as after the first.

Each commit adds a file or more to a table. Every fiftieth commit is followed by an OPTIMIZE of small files, whose cost
follows the rows of those fifty commits, not the rows stored: it reads no file of 16 MB or more. Maintenance, which is
scheduled, also combines larger files and removes the deleted rows from them.
"""

from __future__ import annotations

from collections.abc import Iterable

from scd_pipeline.delta.schema import FORMAT
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import first_line
from scd_pipeline.load.retry import Progress

COMMITS_BETWEEN = 50


def is_compaction_due(before: int, after: int) -> bool:
    """Return whether a table is to be compacted.

    Args:
        before: The number of its last commit before a load.
        after: The number of its last commit after the load.
    """
    return before // COMMITS_BETWEEN < after // COMMITS_BETWEEN


def compact_small_files(warehouse: Warehouse, names: Iterable[str], progress: Progress) -> None:
    """Combine the small files of the tables that exist, after the load has committed.

    A failure, such as a conflict with another writer, is a progress message: the rows are written, and a later load or
    maintenance combines the files. A table of another program that has such a name is not changed.
    """
    for name in names:
        table = warehouse.table(name)
        try:
            if FORMAT in table.properties():
                table.combine_small_files()
        except Exception as error:  # whatever it is, it must not hide the result of the load
            progress(f"{name}: its rows are written, but its small files are not combined: {first_line(error)}")
