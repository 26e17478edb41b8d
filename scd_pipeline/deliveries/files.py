"""Sizes and times of change of files and folders; a file that vanishes in the meantime is not an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def as_text(name: str) -> str:
    """Return the name of a file as text: a byte that is not UTF-8, which no table can store, becomes an escape."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def last_changed(path: Path) -> int:
    """Return when a file, or anything in a folder, was last changed or placed there, in microseconds since 1970.

    The modification time of a file that is moved or copied may be older than that. The time of its inode change cannot
    be set by users, and also changes with its permissions.

    Raises:
        FileNotFoundError: The path does not exist.
    """
    stats = [stat for each in _contents(path) for stat in _stats(each)]
    if not stats:
        raise FileNotFoundError(path)
    return max(stat.st_mtime_ns if os.name == "nt" else stat.st_ctime_ns for stat in stats) // 1000


def total_size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if the path does not exist."""
    stats = [_stats(each)[-1:] for each in _contents(path) if not each.is_dir()]
    return sum(stat.st_size for file_stats in stats for stat in file_stats)


def file_fingerprint(path: Path) -> str:
    """Return the size, the time of change and the number of a file, or of all files and folders in a folder.

    Raises:
        FileNotFoundError: A file does not exist.
    """
    stats = [each.stat() for each in ([path, *path.rglob("*")] if path.is_dir() else [path])]
    size = sum(stat.st_size for stat in stats)
    time = max(max(stat.st_mtime_ns, stat.st_ctime_ns) for stat in stats)
    return f"{size} {time} {len(stats)}"


def _contents(path: Path) -> Iterator[Path]:
    """Yield the path itself, and all files and folders in it."""
    yield path
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            yield Path(folder, name)


def _stats(path: Path) -> list[os.stat_result]:
    """Return the status of a path, for a link also that of its target; none if it has vanished."""
    try:
        stats = [path.lstat()]
    except FileNotFoundError:
        return []
    try:
        return [*stats, path.stat()]
    except OSError:  # the target of the link does not exist
        return stats
