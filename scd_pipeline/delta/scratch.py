"""Scratch tables: tables of random names in a folder of the warehouse, removed after their use.

Only a folder of this machine can be removed without Spark. In a bucket, scratch tables remain; they have no readers.
"""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from scd_pipeline.declaration.source import is_address, without_file_scheme

_KILLED_AFTER_SECONDS = 600
"""The age from which a scratch table belongs to a killed load: no load needs one for longer."""


@contextlib.contextmanager
def scratch_table_path(folder: str) -> Iterator[str]:
    """Yield the path of a new scratch table in the folder, which is removed at the end."""
    table = uuid.uuid4().hex
    try:
        yield f"{folder}/{table}"
    finally:
        if local := _local_folder(folder):
            shutil.rmtree(local / table, ignore_errors=True)
            with contextlib.suppress(OSError):  # other scratch tables are in it
                local.rmdir()


def remove_abandoned_tables(folder: str) -> None:
    """Remove the scratch tables of killed loads."""
    local = _local_folder(folder)
    if local is None or not local.is_dir():
        return
    oldest = time.time() - _KILLED_AFTER_SECONDS
    for table in local.iterdir():
        with contextlib.suppress(OSError):  # another load has just removed it
            if table.stat().st_mtime < oldest:
                shutil.rmtree(table)
    with contextlib.suppress(OSError):
        local.rmdir()


def _local_folder(folder: str) -> Path | None:
    """Return a folder of this machine, whose path may have the scheme `file:`; None for another one."""
    path = without_file_scheme(folder)
    return None if is_address(path) else Path(path)
