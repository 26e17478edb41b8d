"""A lock of two small jars, for the tests of the cache and of the download."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

COORDINATES = ("io.delta:delta-storage:4.4.0", "org.locationtech.jts:jts-core:1.20.0")
NAMES = ("delta-storage-4.4.0.jar", "jts-core-1.20.0.jar")


def write_lock(file: Path) -> Path:
    """Write the lock. The content of each jar is its file name."""
    checksums = {
        coordinates: hashlib.sha256(name.encode()).hexdigest()
        for coordinates, name in zip(COORDINATES, NAMES, strict=True)
    }
    file.write_text(json.dumps(checksums))
    return file


def store(folder: Path, names: tuple[str, ...] = NAMES) -> None:
    """Write the locked jars into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
