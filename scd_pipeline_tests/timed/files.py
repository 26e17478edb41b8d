"""Hashes of files, to show that they are not changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path


def hashes(folder: Path) -> Mapping[str, str]:
    """Return a hash of each file in a folder and the folders below it."""
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}
