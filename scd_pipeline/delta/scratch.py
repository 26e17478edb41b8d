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

_KILLED_AFTER_SECONDS = 600
"""The age from which a scratch table belongs to a killed load: no load needs one for longer."""


@contextlib.contextmanager
def scratch_table_path(folder: str) -> Iterator[str]:
    """Yield the path of a new scratch table in the folder, which is removed at the end."""
    path = f"{folder}/{uuid.uuid4().hex}"
    try:
        yield path
    finally:
        if _is_local(folder):
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):  # other scratch tables are in it
                Path(folder).rmdir()


def remove_abandoned_tables(folder: str) -> None:
    """Remove the scratch tables of killed loads."""
    if not _is_local(folder) or not Path(folder).is_dir():
        return
    oldest = time.time() - _KILLED_AFTER_SECONDS
    for table in Path(folder).iterdir():
        with contextlib.suppress(OSError):  # another load has just removed it
            if table.stat().st_mtime < oldest:
                shutil.rmtree(table)
    with contextlib.suppress(OSError):
        Path(folder).rmdir()


def _is_local(folder: str) -> bool:
    return "://" not in folder
