"""Read deliveries by path as frames, each row with its batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.csv_files import CsvLayout, read_csv, scan_csv
from scd_pipeline.deliveries.delivery import NO_VALUE, Delivery
from scd_pipeline.deliveries.folders import folder_names, load_folders, with_folder_values
from scd_pipeline.deliveries.json_files import as_text, json_fields, read_json
from scd_pipeline.deliveries.paths import escape_glob
from scd_pipeline.deliveries.row_columns import DELIVERY, FILE
from scd_pipeline.errors import SourceDataError
from scd_pipeline.expressions import col, constant_time
from scd_pipeline.frames import local_frame, with_broadcast
from scd_pipeline.history.batch import Batch, rank

_BATCH_TYPE = (
    "struct<batch:string,at:timestamp,delivery_rank:string,revision_rank:string,reason:string,actor:string,"
    "correlation_id:string,scope:array<string>>"
)


def read_path(
    spark: SparkSession,
    channel: Snapshot | Feed,
    paths: Sequence[str],
    *,
    layout: CsvLayout | None = None,
    fields: Sequence[T.StructField] | None = None,
) -> DataFrame:
    """Return the rows at paths of one format; text is not parsed further, so that an invalid value is noticed later.

    Args:
        spark: The session.
        channel: The channel, with its format and its options.
        paths: The paths of files or folders.
        layout: The layout of CSV files, if the caller has scanned them.
        fields: The columns of JSON files, or of Parquet files in folders, if the caller has inferred them.

    Returns:
        The columns of the files, and as text those whose values are in the names of folders. CSV and JSON files also
        have the columns of `text_files.with_problems`.

    Raises:
        SourceDataError: A CSV file cannot be read, for example because a quote is not closed.
    """
    if channel.format == "csv":
        return read_csv(spark, channel, paths, layout or _readable_layout(scan_csv(spark, channel, paths)))
    if channel.is_json:
        fields = as_text(json_fields(spark, channel, paths)) if fields is None else fields
        in_folders = folder_names(spark.read.format("text").load([escape_glob(path) for path in paths]), paths)
        rows = read_json(spark, channel, paths, [each for each in fields if each.name.casefold() not in in_folders])
        return with_folder_values(rows, list(in_folders.values()))
    return load_folders(_table_reader(spark, channel), paths, fields)


def merged_fields(spark: SparkSession, channel: Snapshot | Feed, path: str) -> tuple[T.StructField, ...] | None:
    """Return the columns of all Parquet files of a folder or a table: Spark would read those of one of the files.

    The cost is that of reading the metadata of each file.

    Returns:
        None if Spark cannot merge the types of a column, so that it has to read the columns of one file.
    """
    reader = spark.read.format("parquet").options(mergeSchema="true").options(**channel.reader_options)
    try:
        return tuple(load_folders(reader, [path]).schema.fields)
    except (PySparkException, Py4JJavaError):  # as `read` does: an embedded session raises some as Java's
        return None


def _readable_layout(layouts: Mapping[str, CsvLayout]) -> CsvLayout:
    for layout in layouts.values():
        if layout.problem:
            raise SourceDataError("UNREADABLE_CSV", problem=layout.problem)
    return next(iter(layouts.values()))


def read_table(
    spark: SparkSession,
    channel: Snapshot | Feed,
    delivery: Delivery,
    *,
    changes_only: bool = False,
    fields: Sequence[T.StructField] | None = None,
) -> DataFrame:
    """Return one version or one partition of the table at the path of a delivery.

    Args:
        spark: The session.
        channel: The channel, with its format and its options.
        delivery: The delivery.
        changes_only: Whether to return only the rows that the version inserted or updated.
        fields: The columns of a Parquet table, if the caller has inferred them.
    """
    path, version = str(delivery.path or channel.path), delivery.table_version
    reader = _table_reader(spark, channel)
    if version is not None:
        reader = reader.option("versionAsOf", str(version))
    frame = reader.load(path) if channel.format == "delta" else load_folders(reader, [path], fields)
    if changes_only:
        frame = _changed_rows(_table_reader(spark, channel), path, str(version), frame.columns)
    if channel.partition and delivery.partition is not None:
        frame = frame.where(partition_column(channel) == delivery.partition)
    return frame


def _table_reader(spark: SparkSession, channel: Snapshot | Feed) -> DataFrameReader:
    return spark.read.format("json" if channel.is_json else str(channel.format)).options(**channel.reader_options)


def _changed_rows(reader: DataFrameReader, path: str, version: str, names: Sequence[str]) -> DataFrame:
    """Return the rows that a version of a Delta table inserted or updated, by its change data feed.

    Args:
        reader: A reader.
        path: The path of the table.
        version: The version.
        names: The columns of the version: the feed has those of the newest one.
    """
    options = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
    changes = reader.options(**options).load(path).where(F.col("_change_type").isin("insert", "update_postimage"))
    return changes.select(*[col(name) for name in names])


def partition_column(channel: Snapshot | Feed) -> Column:
    """Return the value of the partition column as text; `NO_VALUE` for NULL."""
    return F.coalesce(col(str(channel.partition)).cast("string"), F.lit(NO_VALUE))


def with_batch_columns(
    frame: DataFrame, entries: Sequence[tuple[Delivery, Batch, str]], owners: Mapping[str, int] | None = None
) -> DataFrame:
    """Add the column `_scd`, the batch of each row.

    Args:
        frame: The rows of one delivery, or of several with their files in `_scd_file`.
        entries: Each delivery with its batch and the tag that identifies its rows: the batch's id, or another text if
            a run has the same batch twice.
        owners: For several deliveries, the index of the entry that each value of `_scd_file` belongs to.
    """
    if owners is None:
        anchor = col(frame.columns[0]) if frame.columns else F.lit(None)
        return frame.withColumn(DELIVERY, _batch_column(*entries[0], anchor=anchor))
    rows = [(file, _batch_values(*entries[index])) for file, index in owners.items()]
    batches = local_frame(frame.sparkSession, rows, f"{FILE} string, {DELIVERY} {_BATCH_TYPE}")
    scope_values = max((len(batch.scope or ()) for _, batch, _ in entries), default=0)
    return frame.join(with_broadcast(batches, len(rows), _BATCH_TYPE.count(",") + 2 + scope_values), FILE, "left")


def _batch_values(delivery: Delivery, batch: Batch, tag: str) -> tuple[object, ...]:
    scope = None if batch.scope is None else list(batch.scope)
    ranks = (rank(batch.delivery), rank(batch.revision))
    return (tag, batch.at, *ranks, delivery.reason, delivery.actor, delivery.correlation_id, scope)


def _batch_column(delivery: Delivery, batch: Batch, tag: str, *, anchor: Column) -> Column:
    def text(value: str | None) -> Column:
        return F.lit(value).cast("string")

    scope = F.lit(None) if batch.scope is None else F.array(*[F.lit(value) for value in batch.scope])
    return F.struct(
        text(tag).alias("batch"),
        constant_time(batch.at, anchor).alias("at"),
        text(rank(batch.delivery)).alias("delivery_rank"),
        text(rank(batch.revision)).alias("revision_rank"),
        text(delivery.reason).alias("reason"),
        text(delivery.actor).alias("actor"),
        text(delivery.correlation_id).alias("correlation_id"),
        scope.cast("array<string>").alias("scope"),
    )
