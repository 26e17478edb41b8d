"""Detection of files that change while a load reads them.

Spark lists a file, scans its header and reads its rows at different moments. Rows of a file that is replaced meanwhile
may be those of neither content: Spark reads as many bytes of the new file as the old one had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from scd_pipeline.declaration.source import is_address
from scd_pipeline.deliveries.files import file_fingerprint
from scd_pipeline.deliveries.paths import is_pattern
from scd_pipeline.deliveries.pending import PendingDelivery

Fingerprints = Mapping[int, tuple[str, ...]]
"""For each delivery, by number, the fingerprints of its files and folders that this process sees."""


def fingerprint_deliveries(pending: Iterable[PendingDelivery]) -> Fingerprints:
    """Return the fingerprints of the deliveries in files; the cost is that of the status of each file."""
    return {delivery.number: tuple(_fingerprints(_paths(delivery))) for delivery in pending}


def changed_deliveries(pending: Iterable[PendingDelivery], before: Fingerprints) -> list[PendingDelivery]:
    """Return the deliveries whose files have changed since their fingerprints were computed."""
    return [each for each in pending if tuple(_fingerprints(_paths(each))) != before.get(each.number, ())]


def _fingerprints(paths: Iterable[Path]) -> Iterable[str]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield f"{path} {file_fingerprint(path)}"


def _paths(delivery: PendingDelivery) -> list[Path]:
    """Return the files and folders of a delivery: none of a frame, and of tables whose versions never change."""
    path, partition = delivery.delivery.path, delivery.delivery.partition
    if path is None or is_address(path) or delivery.channel.format == "delta":
        return []
    if partition is not None:
        column = str(delivery.channel.partition).casefold()
        return [folder for folder in sorted(Path(path).glob("*=*")) if _folder_value(folder) == (column, partition)]
    return sorted(Path("/").glob(str(Path(path).absolute())[1:])) if is_pattern(path) else [Path(path)]


def _folder_value(folder: Path) -> tuple[str, str]:
    """Return the column, in lower case, and the value in the name of a folder such as `day=2024-01-31`."""
    column, _, value = unquote(folder.name).partition("=")
    return column.casefold(), value
