"""Work items: what is loaded before the measurement, what the measured load delivers, and the expected rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.data import KEY

ROWS_PER_FILE = 500_000
DIMENSION = "dim_customer"
FACT = "fct_sale"

Rows: TypeAlias = Callable[[SparkSession], DataFrame]


@dataclass(frozen=True, slots=True)
class File:
    """One delivery as a folder of Parquet files.

    Attributes:
        name: The name of the delivery.
        channel: `snapshot` has all customers, `feed` the changed ones with `changed_at` and `deleted`.
        at: The business time.
        folder: The folder of the Parquet files, relative to the folder of the data.
        rows: Builds the rows; None for a delivery that `Work.write` writes together with others.
        table: The dimension or fact.
        shuffled: Whether the rows are in an order unrelated to the key, in other files.
    """

    name: str
    channel: Literal["snapshot", "feed"]
    at: datetime
    folder: str
    rows: Rows | None = field(compare=False, repr=False)
    table: str = DIMENSION
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """A work item at one size.

    Attributes:
        name: The name of the item.
        size: The number of customers, or of facts.
        description: The content in a few words.
        state: The name of the state before the measured load, which work items can share.
        base: The deliveries that are loaded before the measurement.
        deliveries: The deliveries of the measured load.
        expected: Returns the rows that every contestant must have after the load.
        base_versions: Returns the versions before the measured load, for plain tables.
        changes: The number of changed rows, 0 if it follows from the size.
        table: The table that is loaded.
        loaded_one_by_one: Whether each delivery is a load of its own, whose seconds are compared.
        base_chunk: The number of deliveries before the measurement that one load has.
        is_unchanged: Whether the load must make no commit of the dimension.
        write: Writes deliveries that have no rows of their own into the folder of the data.
    """

    name: str
    size: int
    description: str
    state: str
    base: tuple[File, ...]
    deliveries: tuple[File, ...]
    expected: Rows = field(compare=False, repr=False)
    base_versions: Rows | None = field(default=None, compare=False, repr=False)
    changes: int = 0
    table: str = DIMENSION
    loaded_one_by_one: bool = False
    base_chunk: int = 1000
    is_unchanged: bool = False
    write: Callable[[SparkSession, Path], None] | None = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        """The name with the size, for folders and results."""
        return f"{self.name}-{self.size}" + (f"-{self.changes}" if self.changes else "")


def write_deliveries(spark: SparkSession, work: Work, folder: Path) -> None:
    """Write the deliveries of a work item that the folder of the data does not have yet."""
    if work.write is not None:
        work.write(spark, folder)
    for file in (*work.base, *work.deliveries):
        target = folder / file.folder
        if file.rows is None or (target / "_SUCCESS").exists():
            continue
        rows = file.rows(spark)
        if file.shuffled:
            rows = rows.repartition(3).sortWithinPartitions(F.xxhash64(KEY))
        write_parquet(rows, target)


def write_parquet(rows: DataFrame, target: Path, *, partition: str = "") -> None:
    """Write rows as Parquet files of at most `ROWS_PER_FILE` rows, each value of `partition` into its own folder."""
    writer = rows.write.mode("overwrite").option("maxRecordsPerFile", ROWS_PER_FILE).option("compression", "zstd")
    (writer.partitionBy(partition) if partition else writer).parquet(str(target))
