"""Read deliveries by path as frames, each row with its batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.conform import DELIVERY
from scd_pipeline.deliveries.text_files import (
    FILE,
    Layout,
    json_fields,
    layouts,
    literal,
    path_of,
    plain_path,
    read_csv,
    read_json,
)
from scd_pipeline.errors import SourceDataError
from scd_pipeline.expressions import col
from scd_pipeline.frames import local_frame
from scd_pipeline.history.batch import Batch, rank

if TYPE_CHECKING:
    pass
from scd_pipeline.deliveries.delivery import NO_VALUE, Delivery
from scd_pipeline.expressions import timestamp_literal


def read_path(
    spark: SparkSession,
    channel: Snapshot | Feed,
    paths: Sequence[str],
    *,
    layout: Layout | None = None,
    fields: Sequence[T.StructField] | None = None,
) -> DataFrame:
    """The rows at these paths of one format; text stays text, so that a value that does not cast is noticed.

    Of text formats each row has its file in `_scd_file`. A line that is no row of the columns is a row of NULLs, and
    is in the column `_scd_line` as it came, which is NULL elsewhere; `_scd_problem` says why. `layout` (CSV) and
    `fields` (JSON) spare a look at the files where the caller has them.
    Errors: SourceDataError for a CSV file that cannot be read whole, as one with a quote that is not closed.
    """
    if channel.format == "csv":
        return read_csv(spark, channel, paths, layout or _one_layout(layouts(spark, channel, paths)))
    if channel.format == "json":
        fields = json_fields(spark, channel, paths) if fields is None else fields
        if fields:
            return read_json(spark, channel, paths, fields)
    reader = spark.read.format(str(channel.format)).options(**channel.reader_options)
    return reader.load([literal(path) for path in paths])


def _one_layout(found: Mapping[str, Layout]) -> Layout:
    if problems := [layout.problem for layout in found.values() if layout.problem]:
        raise SourceDataError(problems[0])
    return next(iter(found.values()))


def read_delta(spark: SparkSession, channel: Snapshot | Feed, delivery: Delivery) -> DataFrame:
    """One version or one partition of the table at the channel's path."""
    reader = spark.read.format(str(channel.format)).options(**channel.reader_options)
    if delivery.table_version is not None:
        reader = reader.option("versionAsOf", str(delivery.table_version))
    path = str(delivery.path or channel.path)
    frame = reader.load(path if channel.format == "delta" else literal(path))
    if channel.partition and delivery.partition is not None:
        frame = frame.where(partition_name(channel) == delivery.partition)
    return frame


def partition_name(channel: Snapshot | Feed) -> Column:
    return F.coalesce(col(str(channel.partition)).cast("string"), F.lit(NO_VALUE))


_MARK = (
    "batch string, at timestamp, delivery_rank string, revision_rank string, reason string, actor string, "
    "correlation_id string, scope array<string>"
)


def marked(
    frame: DataFrame, entries: Sequence[tuple[Delivery, Batch, str]], files: Sequence[str] | None = None
) -> DataFrame:
    """Add the column that says which batch a row is of: by its file in `_scd_file` where several are read at once.

    The text in each entry names the batch: its id, or another where one run is given the same batch twice. `files` are
    those of the frame, as Spark names them; each is a delivery's own, or is in a delivery's folder.
    """
    if files is None:
        return frame.withColumn(DELIVERY, _mark(*entries[0]))
    by_path = {plain_path(str(entry[0].path)): entry for entry in entries}
    owners = {file: path_of(file, {path: path for path in by_path}) for file in files}
    rows = [(file, _facts(*by_path[path])) for file, path in owners.items() if path is not None]
    marks = local_frame(
        frame.sparkSession, rows, f"{FILE} string, {DELIVERY} struct<{_MARK.replace(' ', ':').replace(',:', ',')}>"
    )
    return frame.join(F.broadcast(marks), FILE, "left")


def _facts(delivery: Delivery, batch: Batch, named: str) -> tuple[object, ...]:
    scope = None if batch.scope is None else list(batch.scope)
    ranks = (rank(batch.delivery), rank(batch.revision))
    return (named, batch.at, *ranks, delivery.reason, delivery.actor, delivery.correlation_id, scope)


def _mark(delivery: Delivery, batch: Batch, named: str) -> Column:
    def text(value: str | None) -> Column:
        return F.lit(value).cast("string")

    scope = F.lit(None) if batch.scope is None else F.array(*[F.lit(value) for value in batch.scope])
    return F.struct(
        text(named).alias("batch"),
        timestamp_literal(batch.at).alias("at"),
        text(rank(batch.delivery)).alias("delivery_rank"),
        text(rank(batch.revision)).alias("revision_rank"),
        text(delivery.reason).alias("reason"),
        text(delivery.actor).alias("actor"),
        text(delivery.correlation_id).alias("correlation_id"),
        scope.cast("array<string>").alias("scope"),
    )
