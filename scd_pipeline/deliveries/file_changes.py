"""Detection of files that change while a load reads them.

Spark lists a file, scans its header and reads its rows at different moments. Rows of a file that is replaced meanwhile
may be those of neither content: Spark reads as many bytes of the new file as the old one had.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from scd_pipeline.declaration.source import is_address, is_in_bucket
from scd_pipeline.deliveries.entries import entry_at
from scd_pipeline.deliveries.paths import is_pattern
from scd_pipeline.deliveries.pending import PendingDelivery

Fingerprints = Mapping[int, tuple[str, ...]]
"""For each delivery, by number, the fingerprints of its files and folders that this process sees."""


def fingerprint_deliveries(pending: Iterable[PendingDelivery]) -> Fingerprints:
    """Return the fingerprints of the deliveries in files.

    The cost is that of the status of each file, and of a list of the folders of each table with partitions.
    """
    tables: dict[tuple[str, str], _Folders] = {}
    return {delivery.number: tuple(_fingerprints(_paths(delivery, tables))) for delivery in pending}


def changed_deliveries(pending: Iterable[PendingDelivery], before: Fingerprints) -> list[PendingDelivery]:
    """Return the deliveries whose files have changed since their fingerprints were computed."""
    deliveries = list(pending)
    after = fingerprint_deliveries(deliveries)
    return [each for each in deliveries if after[each.number] != before.get(each.number, ())]


_Folders = Mapping[str, Sequence[str]]
"""The folders of a table by the value of its partition column."""


def _fingerprints(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield f"{path} {entry_at(path).fingerprint()}"


def _paths(delivery: PendingDelivery, tables: dict[tuple[str, str], _Folders]) -> Sequence[str]:
    """Return the files and folders of a delivery: none of a frame, and of tables whose versions never change.

    Args:
        delivery: The delivery.
        tables: The folders of tables by path and partition column, to which this function adds.
    """
    path, partition = delivery.delivery.path, delivery.delivery.partition
    if path is None or delivery.channel.format == "delta" or (is_address(path) and not is_in_bucket(path)):
        return []
    if partition is not None:
        key = (path, str(delivery.channel.partition).casefold())
        if key not in tables:
            tables[key] = _folders_by_value(Path(path), key[1])
        return tables[key].get(partition, ())
    if is_in_bucket(path) or not is_pattern(path):
        return [path]
    return sorted(map(str, Path("/").glob(str(Path(path).absolute())[1:])))


def _folders_by_value(table: Path, column: str) -> _Folders:
    """Return the folders of a partition column, which may be inside of those of other columns."""
    folders: dict[str, list[str]] = {}
    for folder in _partition_folders(table, column):
        folders.setdefault(_folder_value(folder)[1], []).append(str(folder))
    return folders


def _partition_folders(folder: Path, column: str) -> Iterator[Path]:
    """Yield the folders of a partition column at any depth, sorted; what is inside of them is not listed."""
    try:
        inner = sorted(entry.path for entry in os.scandir(folder) if "=" in entry.name and entry.is_dir())
    except OSError:  # a folder that vanishes in the meantime has no files
        return
    for each in map(Path, inner):
        if _folder_value(each)[0] == column:
            yield each
        else:
            yield from _partition_folders(each, column)


def _folder_value(folder: Path) -> tuple[str, str]:
    """Return the column, in lower case, and the value in the name of a folder such as `day=2024-01-31`."""
    column, _, value = unquote(folder.name).partition("=")
    return column.casefold(), value
