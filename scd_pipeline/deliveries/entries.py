"""Files and folders of files at the paths of deliveries, on this machine or in the bucket of an object store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scd_pipeline.declaration.source import is_in_bucket, without_file_scheme
from scd_pipeline.deliveries.files import file_fingerprint, last_changed, total_size
from scd_pipeline.deliveries.object_stores import Bucket


class Entry(Protocol):
    """A file, or a folder with its files."""

    @property
    def path(self) -> str:
        """Its path, or its address in a bucket."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    def is_file(self) -> bool:
        """Return whether it is a file."""

    def last_changed(self) -> int:
        """Return when it was last changed, as `files.last_changed`; of an object, when it was written."""

    def total_size(self) -> int:
        """Return its bytes, as `files.total_size`."""

    def fingerprint(self) -> str:
        """Return a text that differs after a change, as `files.file_fingerprint`."""


class Folder(Protocol):
    """A folder, or the objects whose keys begin with its path."""

    def entries(self, depth: int) -> Sequence[Entry]:
        """Return the files and folders this many levels below the folder, in order of their paths."""


@dataclass(frozen=True, slots=True)
class LocalEntry:
    """A file or folder of this machine, as it is when it is examined."""

    path: str

    @property
    def name(self) -> str:
        return Path(self.path).name

    def is_file(self) -> bool:
        return Path(self.path).is_file()

    def last_changed(self) -> int:
        return last_changed(Path(self.path))

    def total_size(self) -> int:
        return total_size(Path(self.path))

    def fingerprint(self) -> str:
        return file_fingerprint(Path(self.path))


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder of this machine."""

    path: str

    def entries(self, depth: int) -> Sequence[LocalEntry]:
        return [LocalEntry(str(path)) for path in sorted(Path(self.path).glob("/".join(["*"] * depth)))]


def folder_at(path: str) -> Folder:
    """Return a folder, whose path ends with a slash or is empty; an object store lists its objects here.

    Raises:
        SourceDataError: BUCKET_MISSING or STORE_FAILS.
    """
    return Bucket.of_path(path).folder(path) if is_in_bucket(path) else LocalFolder(without_file_scheme(path))


def entry_at(path: str) -> Entry:
    """Return the file or folder at a path.

    Raises:
        FileNotFoundError: A bucket has neither.
        SourceDataError: BUCKET_MISSING or STORE_FAILS.
    """
    return Bucket.of_path(path).entry(path) if is_in_bucket(path) else LocalEntry(path)
