"""Measures table layouts of a dimension at several sizes: nothing, compaction, clustering, Z-order and partitions.

The operations are those of a load and of its readers: find the versions of the changed entities, replace the rows that
change, read the versions of one entity, and aggregate the current ones and those of a time in the past. Replaced rows
leave deletion vectors behind, so the reads are repeated after several replacements, and once more after as many again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.data import KEY, OPEN_END, timestamp, with_attributes
from benchmarks.machine import machine_id
from benchmarks.measure import measure
from benchmarks.results import Key, Result, append_result, measured_keys, read_results
from benchmarks.session import collect_garbage
from benchmarks.tables import SURROGATE_KEY, as_dimension, copy_folder, identifier, read_table, table_properties

VERSIONS_PER_ENTITY = 3
CHANGED_ENTITIES = 25_000
REPLACEMENTS = 10
AS_OF = datetime(2021, 7, 1)
_ROWS_PER_FILE = 1_000_000
_LAYOUTS = {
    "nothing": ("", ""),
    "compacted": ("", "OPTIMIZE {table}"),
    "clustered": (f"CLUSTER BY ({KEY})", "OPTIMIZE {table}"),
    "z_order": ("", f"OPTIMIZE {{table}} ZORDER BY ({KEY})"),
    "partitioned": ("PARTITIONED BY (current_flag)", ""),
}
"""The clause that creates the table, and the statement that arranges its rows after they are written."""
_READ_AFTER = (REPLACEMENTS // 2, REPLACEMENTS)
"""The numbers of replacements after which the reads are repeated."""
QUESTIONS = {
    "read one key": ("entity",),
    "load of few changes": ("find", "replace"),
    "as-of scan": ("as_of",),
    f"read one key after {REPLACEMENTS} replacements": (f"entity_after_{REPLACEMENTS}",),
    f"as-of scan after {REPLACEMENTS} replacements": (f"as_of_after_{REPLACEMENTS}",),
}
"""What the report compares: the operations of which each consists."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Measures the operations on tables of one size.

    Attributes:
        spark: The session.
        folder: The folder of the tables.
        results: The file of the results.
        size: The number of versions.
        report: Receives one line for each measurement.
        machine: The id of this machine.
    """

    spark: SparkSession
    folder: Path
    results: Path
    size: int
    report: Callable[[str], None]
    machine: str = field(default_factory=machine_id)

    def is_measured(self, number: int, rounds: int) -> bool:
        """Return whether a round need not run; those of another machine count only if all `rounds` are of it."""
        done = measured_keys(read_results(self.results), self._planned(range(1, rounds + 1)), self.machine)
        return self._planned([number]) <= done

    def run(self, number: int) -> None:
        """Create missing tables, and measure each operation on each of them in turn; `number` is the round."""
        for layout in _LAYOUTS:
            self._create(layout)
        for operation, read in _READS.items():
            for layout in _LAYOUTS:
                self._measure(operation, layout, number, partial(read, self.spark, self._path(layout), self.size))
        for layout in _LAYOUTS:
            self._measure_replacements(layout, number)

    def _planned(self, rounds: Iterable[int]) -> set[Key]:
        repeated = [f"{operation}_after_{replacements}" for operation in _READS for replacements in _READ_AFTER]
        return {
            (f"layout_{operation}", self.size, 0, layout, number)
            for operation in (*_READS, "replace", *repeated, "compact_after")
            for layout in _LAYOUTS
            for number in rounds
        }

    def _path(self, layout: str) -> Path:
        return self.folder / "layouts" / f"{layout}-{self.size}"

    def _create(self, layout: str) -> None:
        """Write the versions in an order that is unrelated to the key, as deliveries are."""
        target = self._path(layout)
        if target.exists():
            return
        path = target.with_name(f"{target.name}.unfinished")
        shutil.rmtree(path, ignore_errors=True)
        create, arrange = _LAYOUTS[layout]
        rows = versions(self.spark, self.size)
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema.fields)
        self.spark.sql(f"CREATE TABLE {identifier(path)} ({columns}) USING delta {create} {table_properties()}")
        files = max(2, self.size // _ROWS_PER_FILE)
        shuffled = rows.repartition(files, F.xxhash64(SURROGATE_KEY))
        self._measure("write", layout, 1, lambda: shuffled.write.format("delta").mode("append").save(str(path)))
        if arrange:
            statement = arrange.format(table=identifier(path))
            self._measure("arrange", layout, 1, lambda: self.spark.sql(statement).collect())
        path.rename(target)

    def _measure_replacements(self, layout: str, number: int) -> None:
        """Measure replacements on a copy of the table, reads after them, and the compaction of what they left."""
        copy = self.folder / "layouts" / f"copy-{layout}"
        shutil.rmtree(copy, ignore_errors=True)
        copy_folder(self._path(layout), copy)
        try:
            self._measure("replace", layout, number, lambda: replace_rows(self.spark, copy, self.size, 0))
            for batch in range(1, REPLACEMENTS):
                replace_rows(self.spark, copy, self.size, batch)
                if batch + 1 in _READ_AFTER:
                    for operation, read in _READS.items():
                        name = f"{operation}_after_{batch + 1}"
                        self._measure(name, layout, number, partial(read, self.spark, copy, self.size))
            statement = f"OPTIMIZE {identifier(copy)}"
            self._measure("compact_after", layout, number, lambda: self.spark.sql(statement).collect())
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _measure(self, operation: str, layout: str, number: int, call: Callable[[], object]) -> None:
        """Measure a call; a figure that the results have is not stored again."""
        result = Result(f"layout_{operation}", self.size, 0, layout, number, "none", machine=self.machine)
        collect_garbage(self.spark)
        result = replace(result, **asdict(measure(call)))
        existing = {(stored.key, stored.machine) for stored in read_results(self.results)}
        if (result.key, result.machine) not in existing:
            append_result(self.results, result)
        self.report(f"{result.work:28} {result.size:11,} {layout:12} round {number}: {result.seconds:7.2f} s")


def versions(spark: SparkSession, size: int) -> DataFrame:
    """Return `size` versions with the columns of a plain SCD2 table: three consecutive years of each entity."""
    number = F.col("number")
    rows = spark.range(size).withColumnRenamed("id", "number")
    change = (number % VERSIONS_PER_ENTITY).cast("int")
    described = rows.select((number / VERSIONS_PER_ENTITY).cast("bigint").alias(KEY), change.alias("change"))
    windows = described.withColumns({"effective_from": _start(F.col("change")), "effective_to": _end(F.col("change"))})
    return as_dimension(with_attributes(windows))


def _start(change: Column) -> Column:
    return F.make_timestamp(change + 2020, F.lit(1), F.lit(1), F.lit(0), F.lit(0), F.lit(0))


def _end(change: Column) -> Column:
    return F.when(change < VERSIONS_PER_ENTITY - 1, _start(change + 1)).otherwise(timestamp(OPEN_END))


def replace_rows(spark: SparkSession, path: Path, size: int, batch: int) -> None:
    """Close the current version of entities and open another one; each batch has entities of its own."""
    current = changed_keys(spark, size, batch).withColumn("change", F.lit(VERSIONS_PER_ENTITY - 1))
    at = timestamp(datetime(2024, 1, 1 + batch))
    closed = current.withColumns({"effective_from": _start(F.col("change")), "effective_to": at})
    opened = current.withColumns(
        {"change": F.col("change") + 1, "effective_from": at, "effective_to": timestamp(OPEN_END)}
    )
    rows = as_dimension(with_attributes(closed.unionByName(opened)))
    rows.write.format("delta").mode("overwrite").option("replaceUsing", SURROGATE_KEY).save(str(path))


def changed_keys(spark: SparkSession, size: int, batch: int = 0) -> DataFrame:
    """Return the keys of the changed entities of a batch, spread over all entities."""
    entities = size // VERSIONS_PER_ENTITY
    changed = min(CHANGED_ENTITIES, entities // REPLACEMENTS)
    step = entities // changed
    return spark.range(changed).select((F.col("id") * step + batch % step).alias(KEY))


def find_versions(spark: SparkSession, path: Path, size: int) -> None:
    """Read all columns of the versions of the changed entities, as a load does."""
    keys = F.broadcast(changed_keys(spark, size))
    rows = read_table(spark, path).join(keys, KEY, "left_semi")
    rows.agg(F.bit_xor(F.xxhash64(*rows.columns))).collect()


def read_entity(spark: SparkSession, path: Path, size: int) -> None:
    """Read the versions of one entity."""
    read_table(spark, path).where(F.col(KEY) == size // VERSIONS_PER_ENTITY // 2).collect()


def aggregate_current(spark: SparkSession, path: Path, size: int) -> None:  # noqa: ARG001 (one signature for all reads)
    """Aggregate the current versions by an attribute."""
    read_table(spark, path).where("current_flag").groupBy("segment").agg(F.sum("balance")).collect()


def aggregate_as_of(spark: SparkSession, path: Path, size: int) -> None:  # noqa: ARG001 (as above)
    """Aggregate the versions in force at a time in the past by an attribute."""
    at = timestamp(AS_OF)
    in_force = (F.col("effective_from") <= at) & (F.col("effective_to") > at)
    read_table(spark, path).where(in_force).groupBy("segment").agg(F.sum("balance")).collect()


_READS: dict[str, Callable[[SparkSession, Path, int], None]] = {
    "find": find_versions,
    "entity": read_entity,
    "current": aggregate_current,
    "as_of": aggregate_as_of,
}
