"""Commits of a Delta table that is a source, and the partitions that they changed."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.deliveries.delivery import NO_VALUE
from scd_pipeline.deliveries.paths import escape_glob
from scd_pipeline.delta_operations import CHANGES_NO_ROW

CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
_COMMIT_FILES = "?" * 20 + ".json"
_FILE = "struct<partitionValues:map<string,string>,dataChange:boolean>"
_ANY_PARTITION = "named_struct('is_known', false, 'name', CAST(NULL AS STRING))"


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """When the partitions of a Delta table were last changed, as far as the table has the commits.

    Attributes:
        newest: The time of the newest commit that changes rows, in microseconds since 1970; without one, that of the
            oldest commit.
        oldest: The time of the oldest commit.
        by_partition: For a partition that commits changed, the time of the last of them.
        of_any: The time of the last commit whose partitions are not known; 0 without one.
    """

    newest: int
    oldest: int
    by_partition: dict[str, int]
    of_any: int

    def changed_at(self, partition: str) -> int:
        """Return the time of the last change of a partition, or a later time if that is not known."""
        return max(self.by_partition.get(partition, self.oldest), self.of_any)


def commits(spark: SparkSession, path: str) -> DataFrame:
    """Return the commits of a Delta table, with the columns of `DESCRIBE HISTORY`."""
    return spark.sql(f"DESCRIBE HISTORY delta.{quote_name(path)}")


def changes_rows() -> Column:
    """Return whether a commit in a history changes rows."""
    operation = F.coalesce("operation", F.lit(""))  # NULL if another program wrote the commit without it
    return ~operation.isin(sorted(CHANGES_NO_ROW))


def has_change_data_feed(spark: SparkSession, path: str) -> bool:
    """Return whether the newest commits of a Delta table can be read as changes."""
    detail = spark.sql(f"DESCRIBE DETAIL delta.{quote_name(path)}")
    return not detail.where(F.lower(F.element_at("properties", F.lit(CHANGE_DATA_FEED))) == "true").isEmpty()


def partition_changes(spark: SparkSession, path: str, field: T.StructField) -> PartitionChanges:
    """Return when the partitions of a Delta table were last changed, by the files that each commit added or removed.

    The work is in proportion to these files. The partitions of a commit are not known if Delta has no log file of it,
    or the table is not partitioned by the column.

    Args:
        spark: The session.
        path: The path of the table.
        field: The column whose values, as text, are the names of the partitions.
    """
    history = commits(spark, path).withColumn("time", F.unix_micros("timestamp"))
    oldest, newest = history.agg(F.min("time"), F.max(F.when(changes_rows(), F.col("time")))).collect()[0]
    times = history.where(changes_rows()).select("version", "time")
    changed = F.explode(F.coalesce("partitions", F.array(F.expr(_ANY_PARTITION)))).alias("partition")
    each = times.join(_changed_partitions(spark, path, field), "version", "left").select("time", changed)
    last = each.groupBy("partition.is_known", "partition.name").agg(F.max("time").alias("time")).collect()
    return PartitionChanges(
        newest or oldest,
        oldest,
        {row["name"]: row["time"] for row in last if row["is_known"]},
        max((row["time"] for row in last if not row["is_known"]), default=0),
    )


def _changed_partitions(spark: SparkSession, path: str, field: T.StructField) -> DataFrame:
    """Return `version` of each log file, and `partitions`, an array of those that the commit changed."""
    reader = spark.read.schema(f"add {_FILE}, remove {_FILE}").options(pathGlobFilter=_COMMIT_FILES)
    reader = reader.option("ignoreMissingFiles", "true")  # Delta deletes old ones
    file = F.coalesce("add", "remove")
    values = F.transform_keys(file["partitionValues"], lambda name, _: F.lower(name))
    # How Delta writes a timestamp depends on the time zone of the writer.
    is_comparable = F.lit(not isinstance(field.dataType, T.TimestampType | T.TimestampNTZType))
    text = F.nullif(F.element_at(values, F.lit(field.name.lower())), F.lit(""))
    value = text.try_cast(field.dataType)
    has_value = F.map_contains_key(values, F.lit(field.name.lower())) & (text.isNull() | value.isNotNull())
    is_known = F.coalesce(is_comparable & has_value, F.lit(False))
    name = F.when(is_known, F.coalesce(value.cast("string"), F.lit(NO_VALUE)))
    partition = F.when(file["dataChange"], F.struct(is_known.alias("is_known"), name.alias("name")))
    version = F.regexp_extract("_metadata.file_name", r"\d+", 0).cast("bigint").alias("version")
    files = reader.json(escape_glob(f"{path}/_delta_log")).select(version, partition.alias("partition"))
    return files.groupBy("version").agg(F.collect_set("partition").alias("partitions"))
