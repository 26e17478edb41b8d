"""Objects in the buckets of object stores: Amazon S3 and servers with its interface, Google Cloud Storage, Azure.

The libraries of the stores find credentials, region and endpoint as their own tools do: in variables of the process
such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL, in profiles, and by the roles of machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import fs

from scd_pipeline.declaration.source import split_bucket
from scd_pipeline.errors import SourceDataError, first_line

_S3_ERROR = re.compile(r"AWS Error (?P<reason>\w+) during (?P<action>\w+) operation")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object, with what a listing of its bucket has of it.

    Attributes:
        path: Its path with the address of the bucket.
        size: Its bytes.
        changed_at: When it was written, in microseconds since 1970. S3 has whole seconds.
    """

    path: str
    size: int
    changed_at: int


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An object, or all objects whose keys begin with the path of a folder, as they were when they were listed."""

    path: str
    objects: tuple[StoredObject, ...]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_file(self) -> bool:
        return self.objects[0].path == self.path

    def last_changed(self) -> int:
        return max(each.changed_at for each in self.objects)

    def total_size(self) -> int:
        return sum(each.size for each in self.objects)

    def fingerprint(self) -> str:
        return f"{self.total_size()} {self.last_changed()} {len(self.objects)}"


@dataclass(frozen=True, slots=True)
class StoredFolder:
    """The objects whose keys begin with the path of a folder."""

    path: str
    objects: tuple[StoredObject, ...]

    def entries(self, depth: int) -> Sequence[StoredEntry]:
        """Return the objects and folders this many levels below the folder, in order of their paths."""
        members: dict[str, list[StoredObject]] = {}
        for each in self.objects:
            names = each.path.removeprefix(self.path).split("/")
            if len(names) >= depth:
                members.setdefault(self.path + "/".join(names[:depth]), []).append(each)
        return [StoredEntry(path, tuple(objects)) for path, objects in sorted(members.items())]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of an object store.

    Attributes:
        address: Its address as in the declared paths, such as `s3a://landing`.
        name: Its path in the file system.
        file_system: The file system.
    """

    address: str
    name: str
    file_system: Any

    @classmethod
    def of_path(cls, path: str) -> Bucket:
        """Return the bucket of a path.

        Raises:
            SourceDataError: STORE_FAILS: The store does not answer, or the bucket's region is unknown.
        """
        address, _ = split_bucket(path)
        with _store_errors(address):
            file_system, name = fs.FileSystem.from_uri(re.sub("^s3a:", "s3:", address))
        return cls(address, name.strip("/"), file_system)

    def folder(self, path: str) -> StoredFolder:
        """Return the objects of a folder, whose path ends with a slash. A request lists up to 1,000 of them.

        Raises:
            SourceDataError: BUCKET_MISSING or STORE_FAILS: The store does not list it.
        """
        selector = fs.FileSelector(self._name_of(path).rstrip("/"), recursive=True, allow_not_found=True)
        with _store_errors(self.address):
            infos = self.file_system.get_file_info(selector)
            is_missing = not infos and self.file_system.get_file_info(self.name).type == fs.FileType.NotFound
        if is_missing:
            raise SourceDataError("BUCKET_MISSING", self.address)
        objects = sorted((self._stored(info) for info in infos if info.is_file), key=lambda each: each.path)
        return StoredFolder(path, tuple(objects))

    def entry(self, path: str) -> StoredEntry:
        """Return an object, or the objects of a folder.

        Raises:
            FileNotFoundError: Neither exists.
            SourceDataError: BUCKET_MISSING or STORE_FAILS.
        """
        with _store_errors(self.address):
            info = self.file_system.get_file_info(self._name_of(path))
        objects = (self._stored(info),) if info.is_file else self.folder(f"{path.rstrip('/')}/").objects
        if not objects:
            raise FileNotFoundError(path)
        return StoredEntry(path, objects)

    def download(self, stored: StoredObject, target: Path) -> None:
        """Copy an object to a file of this machine.

        Raises:
            FileNotFoundError: The object no longer exists.
            SourceDataError: STORE_FAILS: The store does not return it.
        """
        with _store_errors(self.address):
            fs.copy_files(
                self._name_of(stored.path),
                str(target),
                source_filesystem=self.file_system,
                destination_filesystem=fs.LocalFileSystem(),
                use_threads=False,
            )

    def _name_of(self, path: str) -> str:
        return self.name + path.removeprefix(self.address)

    def _stored(self, info: fs.FileInfo) -> StoredObject:
        return StoredObject(self.address + info.path.removeprefix(self.name), info.size, info.mtime_ns // 1000)


@contextmanager
def _store_errors(address: str) -> Iterator[None]:
    """Turn an error of a store into one that names the bucket and the action.

    Raises:
        FileNotFoundError: An object does not exist.
        SourceDataError: STORE_FAILS.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pyarrow.ArrowException) as error:
        named = _S3_ERROR.search(str(error))
        reason = f"{named['action']} failed with {named['reason']}" if named else first_line(error)
        raise SourceDataError("STORE_FAILS", address, reason=reason) from error
