"""When the files of a folder changed, and how large they are. One that vanishes meanwhile is no error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def changed(path: Path) -> int:
    """Return when a file, or anything in a folder, last changed or was put there, in microseconds since 1970.

    A file that is moved or copied there may bring an older time of its content along. So what counts is when its
    system noted a change of it, which nobody can set back or ahead. A change of its permissions counts as well.
    Errors: FileNotFoundError where nothing is there.
    """
    noted = [stat for part in _parts(path) for stat in _stats(part)]
    if not noted:
        raise FileNotFoundError(path)
    return max(stat.st_mtime_ns if os.name == "nt" else stat.st_ctime_ns for stat in noted) // 1000


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 where nothing is there."""
    stats = [_stats(part)[-1:] for part in _parts(path) if not part.is_dir()]
    return sum(stat.st_size for found in stats for stat in found)


def _parts(path: Path) -> Iterator[Path]:
    """The path itself, and all files and folders in it."""
    yield path
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            yield Path(folder, name)


def _stats(path: Path) -> list[os.stat_result]:
    """What the system notes of a path; of a link also of what it leads to; nothing of what has vanished."""
    try:
        noted = [path.lstat()]
    except FileNotFoundError:
        return []
    try:
        return [*noted, path.stat()]
    except OSError:  # a link that leads nowhere
        return noted
