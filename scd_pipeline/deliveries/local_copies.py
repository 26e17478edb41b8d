"""Copies of objects on this machine, for a Spark that cannot read their object store.

A Spark with the jars of a store's file system reads the objects itself, and nothing is copied.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from scd_pipeline.declaration.source import is_in_bucket
from scd_pipeline.deliveries.object_stores import Bucket
from scd_pipeline.deliveries.paths import exists_for_spark
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.errors import BatchRejected, SourceDataError

_NO_FILE_SYSTEM = re.compile(r"No FileSystem for scheme|ClassNotFoundException|UNSUPPORTED_FILE_SYSTEM")


@dataclass(frozen=True, slots=True)
class LocalCopies:
    """Deliveries of which those in object stores are copies, where Spark needs them.

    Attributes:
        deliveries: The deliveries, with the paths that Spark reads.
        rejected: The results of deliveries that cannot be copied, by their numbers.
    """

    deliveries: tuple[PendingDelivery, ...]
    rejected: dict[int, BatchResult] = field(default_factory=dict)
    _folder: str = ""
    _originals: dict[int, PendingDelivery] = field(default_factory=dict)

    def restored(self, deliveries: Sequence[PendingDelivery]) -> tuple[PendingDelivery, ...]:
        """Return deliveries with the paths that they had before they were copied."""
        return tuple(
            replace(each, delivery=self._originals[each.number].delivery) if each.number in self._originals else each
            for each in deliveries
        )

    def restored_results(self, results: dict[int, BatchResult]) -> dict[int, BatchResult]:
        """Return the results of all deliveries, whose texts name objects, not their copies."""
        return {**{number: self._with_addresses(result) for number, result in results.items()}, **self.rejected}

    def _with_addresses(self, result: BatchResult) -> BatchResult:
        details = {name: self._addresses(value) for name, value in result.details.items()}
        return replace(
            result, problem=self._addresses(result.problem), fix=self._addresses(result.fix), details=details
        )

    def _addresses(self, value: Any) -> Any:
        if not isinstance(value, str) or not self._folder:
            return value
        return re.sub(rf"(?:file:)?{re.escape(self._folder)}/(\w+)/", r"\1://", value)


@contextmanager
def local_copies(spark: SparkSession, pending: Sequence[PendingDelivery]) -> Iterator[LocalCopies]:
    """Copy the objects of deliveries that Spark cannot read into a temporary folder, for as long as they are read.

    An object that no longer exists is not copied, so that its delivery is missing.
    """
    in_buckets = [each for each in pending if is_in_bucket(each.delivery.path) and each.is_read_by_path]
    by_scheme = {_scheme(each): str(each.delivery.path) for each in in_buckets}
    unread = {scheme for scheme, path in by_scheme.items() if not _has_file_system(spark, path)}
    to_copy = [each for each in in_buckets if _scheme(each) in unread]
    if not to_copy:
        yield LocalCopies(tuple(pending))
        return
    with tempfile.TemporaryDirectory(prefix="scd-copies-") as temporary:
        # Spark under another account sees the temporary folder, but nothing in it.
        folder = f"{temporary}/objects"
        Path(folder).mkdir()
        is_visible = exists_for_spark(spark, folder)
        copied, rejected = {}, {}
        for delivery in to_copy:
            try:
                if not is_visible:
                    raise SourceDataError("NO_CONNECTOR", folder, scheme=_scheme(delivery), folder=folder)
                copied[delivery.number] = _copy(delivery, folder)
            except SourceDataError as error:
                rejection = BatchRejected(error.code, delivery.batch.id, **error.details)
                rejected[delivery.number] = delivery.result("rejected", rejection)
        deliveries = [copied.get(each.number, each) for each in pending if each.number not in rejected]
        originals = {each.number: each for each in to_copy}
        yield LocalCopies(tuple(deliveries), rejected, folder, originals)


def _scheme(delivery: PendingDelivery) -> str:
    return str(delivery.delivery.path).partition(":")[0]


def _has_file_system(spark: SparkSession, path: str) -> bool:
    """Return whether Spark has the file system of a path; what it reports of the path itself does not matter here."""
    try:
        exists_for_spark(spark, path)
    except (PySparkException, Py4JJavaError) as error:
        return not _NO_FILE_SYSTEM.search(str(error))
    return True


def _copy(delivery: PendingDelivery, folder: str) -> PendingDelivery:
    """Return the delivery at the path of its copy: the folder, its scheme, its bucket and its key.

    Raises:
        SourceDataError: STORE_FAILS: The store does not return an object.
    """
    path = str(delivery.delivery.path)
    bucket = Bucket.of_path(path)
    with suppress(FileNotFoundError):
        for stored in bucket.entry(path).objects:
            target = _copy_path(stored.path, folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            bucket.download(stored, target)
    return replace(delivery, delivery=replace(delivery.delivery, path=str(_copy_path(path, folder))))


def _copy_path(path: str, folder: str) -> Path:
    scheme, _, key = path.partition("://")
    return Path(folder, scheme, key)
