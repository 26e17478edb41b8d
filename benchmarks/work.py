"""Work items: what is loaded before the measurement, what the measured load delivers, and the expected rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import data

DELIVERY_ROWS_PER_FILE = 500_000


@dataclass(frozen=True, slots=True)
class File:
    """One delivery as a folder of Parquet files.

    Attributes:
        name: The name of the delivery.
        channel: `snapshot` has all customers, `feed` the changed ones with `changed_at` and `deleted`.
        at: The business time.
        folder: The folder of the Parquet files, relative to the folder of the data.
        rows: Builds the rows.
        rows_per_file: The largest number of rows per file.
        shuffled: Whether the rows are in an order unrelated to the key.
    """

    name: str
    channel: Literal["snapshot", "feed"]
    at: datetime
    folder: str
    rows: Callable[[SparkSession], DataFrame] = field(compare=False, repr=False)
    rows_per_file: int = DELIVERY_ROWS_PER_FILE
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """A work item at one size.

    Attributes:
        name: The name of the item.
        size: The number of customers that exist before the measured load.
        description: The content in a few words.
        base: The deliveries that are loaded before the measurement.
        deliveries: The deliveries of the measured load.
        events: Returns all events, from which the expected rows follow.
        changes: The number of changes of a feed, 0 for snapshots.
    """

    name: str
    size: int
    description: str
    base: tuple[File, ...]
    deliveries: tuple[File, ...]
    events: Callable[[SparkSession], DataFrame] = field(compare=False, repr=False)
    changes: int = 0

    @property
    def id(self) -> str:
        """The name with the size, for folders and results."""
        return f"{self.name}-{self.size}" + (f"-{self.changes}" if self.changes else "")

    @property
    def base_id(self) -> str:
        """The name of the state before the measured load, which work items of one size share."""
        return "-".join(["base", str(self.size), *(file.name for file in self.base)])


def write_deliveries(spark: SparkSession, work: Work, folder: Path) -> None:
    """Write the deliveries of a work item that the folder of the data does not have yet."""
    for file in (*work.base, *work.deliveries):
        target = folder / file.folder
        if (target / "_SUCCESS").exists():
            continue
        rows = file.rows(spark)
        if file.shuffled:
            rows = rows.repartition(3).sortWithinPartitions(F.xxhash64(data.KEY))
        writer = rows.write.mode("overwrite").option("maxRecordsPerFile", file.rows_per_file)
        writer.option("compression", "zstd").parquet(str(target))


def expected_versions(spark: SparkSession, work: Work) -> DataFrame:
    """Return the versions that every contestant must have after the measured load."""
    return data.versions(work.events(spark))


def base_versions(spark: SparkSession, work: Work) -> DataFrame:
    """Return the versions before the measured load."""
    return data.versions(data.first_events(spark, work.size)) if work.base else data.versions(_no_events(spark))


def _no_events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], data.EVENT_TYPES)


def _first_snapshot(size: int) -> File:
    return File(
        "2024-01-01",
        "snapshot",
        data.FIRST,
        f"first-{size}.parquet",
        lambda spark: data.with_attributes(data.first_events(spark, size).select(data.KEY, "change")),
    )


def first_load(size: int, _changes: int) -> Work:
    """The first load of a dimension."""
    return Work(
        "first",
        size,
        "first load of a snapshot",
        (),
        (_first_snapshot(size),),
        lambda spark: data.first_events(spark, size),
    )


def snapshot(size: int, _changes: int) -> Work:
    """(a), (b): a snapshot with 2% changed, 0.5% new, 0.5% deleted entities."""

    def events(spark: SparkSession) -> DataFrame:
        return data.first_events(spark, size).unionByName(data.snapshot_events(spark, size))

    second = File(
        "2024-01-02",
        "snapshot",
        data.SECOND,
        f"second-{size}.parquet",
        lambda spark: data.state(events(spark), data.SECOND),
    )
    description = "snapshot: 2% changed, 0.5% new, 0.5% deleted"
    return Work("a", size, description, (_first_snapshot(size),), (second,), events)


def unchanged(size: int, _changes: int) -> Work:
    """(h): the same snapshot with other files, another row order and another name."""
    first = _first_snapshot(size)
    again = File("2024-01-02", "snapshot", data.SECOND, f"unchanged-{size}.parquet", first.rows, shuffled=True)
    description = "unchanged snapshot, other files and row order"
    return Work("h", size, description, (first,), (again,), lambda spark: data.first_events(spark, size))


def feed(size: int, changes: int) -> Work:
    """(c): a change feed."""
    return _feed("c", size, changes, "change feed", late=False)


def late_feed(size: int, changes: int) -> Work:
    """(d): a change feed of which 1% is three years late."""
    return _feed("d", size, changes, "change feed, 1% three years late", late=True)


def _feed(name: str, size: int, changes: int, description: str, *, late: bool) -> Work:
    def delivered(spark: SparkSession) -> DataFrame:
        return data.feed_events(spark, size, changes, late=late)

    def rows(spark: SparkSession) -> DataFrame:
        return data.with_attributes(delivered(spark).withColumnRenamed("at", "changed_at"))

    def events(spark: SparkSession) -> DataFrame:
        return data.first_events(spark, size).unionByName(delivered(spark))

    file = File("2024-01-02", "feed", data.SECOND, f"feed-{name}-{size}-{changes}.parquet", rows)
    return Work(name, size, description, (_first_snapshot(size),), (file,), events, changes)


WORK: dict[str, Callable[[int, int], Work]] = {
    "first": first_load,
    "a": snapshot,
    "c": feed,
    "d": late_feed,
    "h": unchanged,
}
"""Builds each work item from its size and its number of changes."""
