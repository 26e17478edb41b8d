"""Recognize files that are not text, or not compressed as their names say, by their first bytes.

Spark reads a ZIP archive as text, and reports others by errors of its libraries that do not name the cause.
"""

from __future__ import annotations

import os
from pathlib import Path

_TEXT_FORMATS = ("csv", "json", "debezium")
_COMPRESSIONS = {".gz": (b"\x1f\x8b", "gzip"), ".bz2": (b"BZh", "bzip2")}
_OTHER_COMPRESSIONS = (".zst", ".lz4", ".snappy", ".deflate")
_PARQUET = b"PAR1"
"""The first and the last bytes of a Parquet file."""
_SIGNATURES = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; unpack or convert it",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; convert it",
    _PARQUET: "a Parquet file; declare `format: parquet`",
    b"\x1f\x8b": "compressed with gzip; give its name the suffix .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; give its name the suffix .zst",
}


def signature_problem(path: str, file_format: str) -> str:
    """Return why a local file of text, or a folder, cannot be read; empty if its first bytes do not show a reason.

    In a folder, its own files are examined, not those in folders below it.
    """
    delivered = Path(path)
    try:
        if delivered.is_dir() and not any(_is_data(name) for _, _, names in os.walk(delivered) for name in names):
            return f"{path} is a folder without files"
        if file_format not in _TEXT_FORMATS:
            return ""
        files = sorted(delivered.iterdir()) if delivered.is_dir() else [delivered]
        return next(filter(None, (_file_problem(file) for file in files if _is_data(file.name) and file.is_file())), "")
    except OSError:  # Spark reads the file under another account, or reports the error
        return ""


def _is_data(name: str) -> bool:
    """Return whether Spark reads a file of this name in a folder."""
    return not name.startswith(("_", "."))


def _file_problem(file: Path) -> str:
    with file.open("rb") as opened:
        begin = opened.read(len(_PARQUET))
        opened.seek(max(file.stat().st_size - len(_PARQUET), 0))
        end = opened.read()
    suffix = file.suffix.lower()
    if suffix in _COMPRESSIONS:
        signature, name = _COMPRESSIONS[suffix]
        is_compressed = not begin or begin.startswith(signature)
        return "" if is_compressed else f"{file} is not compressed with {name}, unlike its suffix; rename it"
    if suffix in _OTHER_COMPRESSIONS:
        return ""
    if begin == _PARQUET and end != _PARQUET:  # text, such as a header that begins with these letters
        return ""
    kinds = (kind for signature, kind in _SIGNATURES.items() if begin.startswith(signature))
    return next((f"{file} is {kind}" for kind in kinds), "")
