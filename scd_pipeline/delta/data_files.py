"""Lost data files: those that the newest version of a table needs and that its folder lacks.

Only metadata is read: the table's list of files, and the listing of its folder. The files of deletion vectors are not
in that list; a query that needs a missing one fails, and names the data file that it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import unquote

from scd_pipeline.delta.repair_instructions import missing_files_instructions
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DataFilesLost, ScdError

_FILE_MISSING = re.compile(r"FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND|FileNotFoundException")
_FILE = re.compile(r"(?P<folder>[^\s`'\"]*)/(?P<name>[^/\s`'\"]+\.(?:parquet|bin))\b")
_GLOB = re.compile(r"([\\*?\[\]{}])")


def missing_files(table: Table) -> list[str]:
    """Return the names of the missing data files of a table; none if the table does not exist."""
    files = _newest_files(table)
    if not files:
        return []
    reader = table.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    listing = reader.load(_GLOB.sub(r"\\\1", _location(table))).inputFiles()
    return sorted(files - {_file_name(unquote(file)) for file in listing})


def _newest_files(table: Table) -> set[str]:
    """Return the names of the data files of the newest version that the table's folder should have."""
    if not table.exists():
        return set()
    # The list and the listing write the scheme differently.
    folder = _location(table).split(":", 1)[-1].strip("/") + "/"
    # A file of a table from which this one was cloned is in another folder.
    return {_file_name(file) for file in map(unquote, table.read().inputFiles()) if folder in file}


def _location(table: Table) -> str:
    return unquote(table.path or table.details()["location"])


def missing_files_errors(warehouse: Warehouse, names: Sequence[str]) -> list[DataFilesLost]:
    """Return an error for each of the tables of a dimension or a fact that has missing data files."""
    with ThreadPoolExecutor() as pool:  # each waits for several small answers of the server
        missing_by_table = zip(names, pool.map(missing_files, map(warehouse.table, names)), strict=True)
        return [_error(name, missing) for name, missing in missing_by_table if missing]


@contextmanager
def missing_files_reported(warehouse: Warehouse, names: Sequence[str]) -> Iterator[None]:
    """Replace the error of Spark about a missing data file of one of these tables by one that names the way back.

    Raises:
        DataFilesLost: A data file of one of the tables is missing.
    """
    try:
        yield
    except ScdError:
        raise
    except Exception as error:
        text = unquote(str(error))
        if not _FILE_MISSING.search(text):
            raise
        missing = None
        with suppress(Exception):  # its queries may fail for the same reason, which the first error names
            missing = _named_in(text, warehouse, names)
        if missing is None:
            raise
        raise missing from error


def _named_in(text: str, warehouse: Warehouse, names: Sequence[str]) -> DataFilesLost | None:
    """Return the error about the table whose file a message names.

    None if no table needs the file: it is a delivered one, or one of an older version, which a VACUUM has deleted.
    """
    file = _FILE.search(text)
    folders = file["folder"].split("/") if file else []
    table = next((name for name in names if name in folders), None)
    if file is None or table is None:  # a catalog may name folders otherwise
        return next(iter(missing_files_errors(warehouse, names)), None)
    missing = missing_files(warehouse.table(table))
    if not missing and (file["name"].endswith(".bin") or file["name"] in _newest_files(warehouse.table(table))):
        missing = [file["name"]]  # its deletion vector
    return _error(table, missing) if missing else None


def _error(table: str, missing: Sequence[str]) -> DataFilesLost:
    details = {"count": len(missing), "example": missing[0], "repair": missing_files_instructions(table)}
    return DataFilesLost("DATA_FILES_LOST", f"table {table}", **details)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
