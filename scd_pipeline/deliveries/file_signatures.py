"""Recognize files that are not in the declared format, or not compressed as their names say, by their first bytes.

Spark reads a ZIP archive as text, and reports others by errors of its libraries that do not name the cause.
"""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path

_TEXT_FORMATS = ("csv", "json", "debezium")
_COMPRESSIONS: Mapping[str, tuple[bytes, str, Callable[[Path], BufferedIOBase]]] = {
    ".gz": (b"\x1f\x8b", "gzip", gzip.GzipFile),
    ".bz2": (b"BZh", "bzip2", bz2.BZ2File),
}
_OTHER_COMPRESSIONS = (".zst", ".lz4", ".snappy", ".deflate")
_COMPRESSED = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}
"""The compressions of files that lack the suffix."""
_ARCHIVE = "a ZIP archive or an Excel workbook; unpack or convert it"
_SIGNATURES = {
    b"PK\x03\x04": _ARCHIVE,
    b"PK\x05\x06": _ARCHIVE,
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; convert it",
    b"\xfd7zXZ\x00": "compressed with xz, which Spark does not read; unpack it",
}
_PARQUET = b"PAR1"
"""The first and the last bytes of a Parquet file."""
_TAR, _TAR_POSITION = b"ustar", 257


def signature_problem(path: str, file_format: str, *, is_recursive: bool = False) -> str:
    """Return why a local file or folder cannot be read; empty if neither its first bytes nor its files show a reason.

    In a folder, its own files are examined, not those in folders below it.

    Args:
        path: The path.
        file_format: The declared format.
        is_recursive: Whether Spark reads the files of all folders below a folder, whatever their names.
    """
    delivered = Path(path)
    try:
        if delivered.is_dir() and (problem := _folder_problem(delivered, is_recursive)):
            return f"{path} is a folder {problem}"
        files = sorted(delivered.iterdir()) if delivered.is_dir() else [delivered]
        files = [file for file in files if _is_data(file.name) and file.is_file()]
        return next((f"{file} is {problem}" for file in files if (problem := _file_problem(file, file_format))), "")
    except OSError:  # Spark reads the file under another account, or reports the error
        return ""


def _is_data(name: str) -> bool:
    """Return whether Spark reads a file of this name in a folder."""
    return not name.startswith(("_", "."))


def _folder_problem(folder: Path, is_recursive: bool) -> str:
    """Return why Spark reads no file of a folder; it ignores folders below it without a value in their names."""
    with_files = (below for below, _, names in os.walk(folder) if any(map(_is_data, names)))
    first = next(with_files, None)
    if first is None:
        return "without files; put the files into it, or replace it by the file"
    if is_recursive or first == str(folder) or any("=" in Path(below).name for below in (first, *with_files)):
        return ""
    option = 'declare `options: {recursiveFileLookup: "true"}` in the channel'
    return f"whose files are in folders below it; move them into it, or {option}"


def _file_problem(file: Path, file_format: str) -> str:
    """Return what a file is that is not in the declared format, and the fix; empty if its bytes do not show it."""
    begin, suffix, is_text = _first_bytes(file.open("rb")), file.suffix.lower(), file_format in _TEXT_FORMATS
    if is_text and suffix in _COMPRESSIONS:
        return _compression_problem(file, begin)
    if (is_text and suffix in _OTHER_COMPRESSIONS) or (not is_text and begin.startswith(_PARQUET)):
        return ""
    if begin.startswith(_PARQUET):  # or text, such as a header that begins with these letters
        return "a Parquet file; declare `format: parquet`" if _ends_as_parquet(file) else ""
    for signature, (name, missing_suffix) in _COMPRESSED.items():
        if begin.startswith(signature):
            renamed = f", or rename it to {file.name}{missing_suffix}, also in the declared path" if is_text else ""
            return f"compressed with {name}; unpack it{renamed}"
    return next((kind for signature, kind in _SIGNATURES.items() if begin.startswith(signature)), _tar_problem(begin))


def _compression_problem(file: Path, begin: bytes) -> str:
    """Return why a file with the suffix of a compression cannot be read; empty if it is empty, as Spark reads it."""
    signature, name, unpack = _COMPRESSIONS[file.suffix.lower()]
    if begin and not begin.startswith(signature):
        renamed = f"rename it to {file.stem}, also in the declared path, or compress it"
        return f"not compressed with {name}, unlike its suffix; {renamed}"
    with suppress(EOFError, zlib.error):  # Spark reports a damaged file
        return _tar_problem(_first_bytes(unpack(file)))
    return ""


def _tar_problem(begin: bytes) -> str:
    return "a tar archive; unpack it" if begin[_TAR_POSITION:].startswith(_TAR) else ""


def _first_bytes(opened: BufferedIOBase) -> bytes:
    with opened:
        return opened.read(_TAR_POSITION + len(_TAR))


def _ends_as_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(max(file.stat().st_size - len(_PARQUET), 0))
        return opened.read() == _PARQUET
