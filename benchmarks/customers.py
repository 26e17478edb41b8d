"""Work items that load a dimension of customers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import data
from benchmarks.work import File, Rows, Work, write_parquet

SNAPSHOTS = 50
BATCHES = 300
EARLIER_BATCHES = 5_000
ROWS_PER_BATCH = 100


def first_load(size: int, _changes: int) -> Work:
    """The first load of a dimension."""
    return Work(
        "first", size, "first load of a snapshot", "empty", (), (_first_snapshot(size),), _versions(_first_events(size))
    )


def snapshot(size: int, _changes: int) -> Work:
    """(a), (b): a snapshot with 2% changed, 0.5% new, 0.5% deleted entities."""

    def events(spark: SparkSession) -> DataFrame:
        return data.first_events(spark, size).unionByName(data.snapshot_events(spark, size))

    def rows(spark: SparkSession) -> DataFrame:
        return data.state(events(spark), data.SECOND)

    second = File("2024-01-02", "snapshot", data.SECOND, f"second-{size}.parquet", rows)
    return _after_first("a", size, "snapshot: 2% changed, 0.5% new, 0.5% deleted", (second,), events)


def unchanged(size: int, _changes: int) -> Work:
    """(h): the same snapshot with other files, another row order and another name."""
    rows = _first_snapshot(size).rows
    file = File("2024-01-02", "snapshot", data.SECOND, f"unchanged-{size}.parquet", rows, shuffled=True)
    work = _after_first("h", size, "unchanged snapshot, other files and row order", (file,), _first_events(size))
    return replace(work, is_unchanged=True)


def feed(size: int, changes: int) -> Work:
    """(c): a change feed."""
    return _feed("c", size, changes, "change feed", late=False)


def late_feed(size: int, changes: int) -> Work:
    """(d): a change feed of which 1% is three years late."""
    return _feed("d", size, changes, "change feed, 1% three years late", late=True)


def one_of_many(size: int, _changes: int) -> Work:
    """The first of the snapshots of the backfill, by itself."""
    return _backfill("e1", size, 1, "one snapshot of the backfill")


def backfill(size: int, _changes: int) -> Work:
    """(e): 50 snapshots in one load, each with 2% changed entities."""
    return _backfill("e", size, SNAPSHOTS, f"backfill of {SNAPSHOTS} snapshots")


def batches(size: int, changes: int) -> Work:
    """(i): small feeds, one load after another."""
    number = changes or BATCHES
    files = _batch_files(size, number)
    return Work(
        "i",
        size,
        f"{number} loads of {ROWS_PER_BATCH} rows one after another",
        f"first-{size}",
        (_first_snapshot(size),),
        tuple(files),
        _versions(_batch_events(size, number)),
        changes=number,
        loaded_one_by_one=True,
        write=lambda spark, folder: _write_batches(spark, folder, size, number),
    )


def after_many(size: int, changes: int) -> Work:
    """(i): one small feed after thousands of deliveries.

    They are prepared in a few loads, because the work item measures what depends on the number of past deliveries and
    their rows in the change log. The loads of (i) measure what depends on the number of past loads.
    """
    number = changes or EARLIER_BATCHES
    files = _batch_files(size, number + 1)
    return Work(
        "i-after",
        size,
        f"load of {ROWS_PER_BATCH} rows after {number} deliveries, prepared in few loads: their number matters",
        f"first-{size}-{number}",
        (_first_snapshot(size), *files[:-1]),
        (files[-1],),
        _versions(_batch_events(size, number + 1)),
        changes=number,
        write=lambda spark, folder: _write_batches(spark, folder, size, number + 1),
    )


# The state before


def _first_snapshot(size: int) -> File:
    def rows(spark: SparkSession) -> DataFrame:
        return data.with_attributes(data.first_events(spark, size).select(data.KEY, "change"))

    return File("2024-01-01", "snapshot", data.FIRST, f"first-{size}.parquet", rows)


def _first_events(size: int) -> Rows:
    return lambda spark: data.first_events(spark, size)


def _versions(events: Rows) -> Rows:
    return lambda spark: data.versions(events(spark))


def _after_first(
    name: str, size: int, description: str, deliveries: tuple[File, ...], events: Rows, changes: int = 0
) -> Work:
    """Return work that begins after the first snapshot; `events` are all, those of the first snapshot too."""
    return Work(
        name,
        size,
        description,
        f"first-{size}",
        (_first_snapshot(size),),
        deliveries,
        _versions(events),
        _versions(_first_events(size)),
        changes,
    )


# Deliveries


def _feed(name: str, size: int, changes: int, description: str, *, late: bool) -> Work:
    number = min(changes or size // 40, size)

    def delivered(spark: SparkSession) -> DataFrame:
        return data.feed_events(spark, size, number, late=late)

    def rows(spark: SparkSession) -> DataFrame:
        return data.with_attributes(delivered(spark).withColumnRenamed("at", "changed_at"))

    def events(spark: SparkSession) -> DataFrame:
        return data.first_events(spark, size).unionByName(delivered(spark))

    file = File("2024-01-02", "feed", data.SECOND, f"feed-{name}-{size}-{number}.parquet", rows)
    return _after_first(name, size, description, (file,), events, number)


def _backfill(name: str, size: int, number: int, description: str) -> Work:
    def delivery(day: int) -> File:
        at = data.FIRST + timedelta(days=day)

        def rows(spark: SparkSession) -> DataFrame:
            return data.state(_daily_events(spark, size, day), at)

        return File(f"{at:%Y-%m-%d}", "snapshot", at, f"day-{size}-{day}.parquet", rows)

    deliveries = tuple(delivery(day) for day in range(1, number + 1))
    return _after_first(name, size, description, deliveries, lambda spark: _daily_events(spark, size, number))


def _daily_events(spark: SparkSession, size: int, number: int) -> DataFrame:
    """Return events of the first snapshot and of some days after it, on each of which other 2% change."""
    days = F.explode(F.sequence(F.lit(1), F.lit(number))).alias("day")
    changed = spark.range(size).select(data.KEY, days).where(data.bucket(F.col("day")) < 20)
    at = F.timestamp_seconds(F.lit(data.seconds(data.FIRST)) + F.col("day") * 86400)
    return data.first_events(spark, size).unionByName(data.events(changed, at, F.col("day")))


def _batch_events(size: int, number: int) -> Rows:
    """Return the events of all batches; each batch changes other entities than the one before."""

    def events(spark: SparkSession) -> DataFrame:
        at = F.timestamp_seconds(F.lit(data.seconds(data.SECOND)) + F.col("batch") * 60)
        changed = _batch_rows(spark, size, number)
        return data.first_events(spark, size).unionByName(data.events(changed, at, F.col("batch") + 1))

    return events


def _batch_rows(spark: SparkSession, size: int, number: int) -> DataFrame:
    rows = spark.range(number * ROWS_PER_BATCH).withColumnRenamed("id", "row")
    return rows.selectExpr(f"row % {size} AS {data.KEY}", f"cast(row div {ROWS_PER_BATCH} AS int) AS batch")


def _batch_files(size: int, number: int) -> list[File]:
    times = [data.SECOND + timedelta(minutes=batch) for batch in range(number)]
    return [_batch_file(size, number, batch, at) for batch, at in enumerate(times)]


def _batch_file(size: int, number: int, batch: int, at: datetime) -> File:
    return File(f"batch-{batch:05}", "feed", at, f"batches-{size}-{number}/batch={batch}.parquet", None)


def _write_batches(spark: SparkSession, folder: Path, size: int, number: int) -> None:
    """Write all batches in one pass, each as a folder of one file."""
    target = folder / f"batches-{size}-{number}"
    if (target / "_SUCCESS").exists():
        return
    at = F.timestamp_seconds(F.lit(data.seconds(data.SECOND)) + F.col("batch") * 60)
    rows = _batch_rows(spark, size, number).select(
        data.KEY,
        (F.col("batch") + 1).alias("change"),
        at.alias("changed_at"),
        F.lit(False).alias("deleted"),
        F.concat("batch", F.lit(".parquet")).alias("batch"),
    )
    write_parquet(data.with_attributes(rows).repartition("batch"), target, partition="batch")
