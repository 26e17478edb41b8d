"""Deliveries: what a source hands over, found at its channel's path or given as a frame, and read as frames."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.batch import Batch, from_micros, rank, to_micros, token, utc
from scd_pipeline.columns import col, quoted
from scd_pipeline.delta.commits import CHANGES_NO_ROW
from scd_pipeline.errors import STOPPING_RULES, SourceDataError, first_line
from scd_pipeline.files import changed
from scd_pipeline.frames import small_frame
from scd_pipeline.history.statements import DELIVERY
from scd_pipeline.spec import Dimension, Feed, Snapshot
from scd_pipeline.text_files import (
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

if TYPE_CHECKING:
    import pandas
    import pyarrow

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of the partition of rows without a value, as tables themselves call it."""
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?")
_PATTERNS = {
    "date": r"\d{4}-\d{2}-\d{2}",
    "datetime": r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}",
    "delivery": r"[^/]+",
}
_WORDS_OF_TIME = ("date", "datetime")


@dataclass(frozen=True)
class Delivery:
    """One thing that a source delivers, with its name and its time.

    `channel` may be left out where the source has only one. `at` without a zone is UTC; it may be None only for a
    feed whose rows carry their own times (S4). `revision` tells a corrected edition from an earlier one, the highest
    counts (S34). `scope` gives the values of the channel's scope columns that a snapshot speaks of; without any it
    speaks of nobody. `allow` lets through what would stop the batch: "bad rows", "retire guard". `withdrawn` takes the
    delivery back. A `sealed` one is not read again once it was accepted: its revision tells its content, as a file's
    time of change does. `is_latest` says that the source has only the delivery's latest content, as a file or a
    partition does: other content than that of the current revision is a higher one, whatever a clock says.
    """

    source: str
    name: str
    channel: str | None = None
    at: datetime | None = None
    revision: str | int | datetime = 0
    frame: DataFrame | pandas.DataFrame | pyarrow.Table | None = field(default=None, repr=False)
    path: str | None = None
    scope: Sequence[Sequence[Any]] | None = None
    actor: str | None = None
    reason: str | None = None
    correlation_id: str | None = None
    allow: frozenset[str] = frozenset()
    withdrawn: bool = False
    partition: str | None = None
    table_version: int | None = None
    sealed: bool = False
    is_latest: bool = False

    def __post_init__(self) -> None:
        """Errors: SourceDataError for a time or a revision that is none, or a scope that is no list of lists."""
        if self.at is not None and not isinstance(self.at, datetime):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: at={self.at!r} is no datetime; expected one, as "
                f"datetime(2024, 1, 31, tzinfo=timezone.utc)"
            )
        if "/" in str(self.revision) or (isinstance(self.revision, int) and self.revision < 0):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: revision={self.revision!r} cannot be one; expected a number from "
                f"0 on, a datetime, or a text without `/`"
            )
        if self.scope is not None and not all(isinstance(values, list | tuple) for values in self.scope):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: scope={self.scope!r} is no list of lists; expected for each part "
                f"of the scope its values in the order of the scope's columns, as [['EU'], ['US']]"
            )

    def channel_of(self, dimension: Dimension) -> Snapshot | Feed:
        """The declared channel.  Errors: SourceDataError if the dimension has none of that name."""
        names = [source.name for source in dimension.sources]
        if self.source not in names:
            raise SourceDataError(
                f"delivery {self.name}: source '{self.source}' is not declared for {dimension.name}; "
                f"expected one of {', '.join(names)}"
            )
        channels = dict(dimension.source(self.source).channels)
        kind = self.channel or (next(iter(channels)) if len(channels) == 1 else None)
        if kind not in channels:
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: channel {self.channel or 'not given'}; expected "
                f"{' or '.join(channels)}"
            )
        return channels[kind]

    def lacks_time(self, dimension: Dimension) -> str:
        """What is wrong where neither the delivery nor its rows have a time (S4); nothing where one of them has."""
        channel = self.channel_of(dimension)
        if self.at is not None or self.withdrawn:
            return ""
        if self.sealed and any(_placeholder(word) in str(channel.path) for word in _WORDS_OF_TIME):
            file = Path(str(self.path)).name
            return f"{file} has {self.name} in its name, which is no date of the calendar; rename the file"
        if isinstance(channel, Feed) and channel.effective_at:
            return ""
        wrong = f"its rows have no value in {channel.partition}" if self.partition == NO_VALUE else "it has no time"
        right = "expected `at`, a date in its name, or a feed with `effective_at`"
        return f"{wrong}; {right}; the wall clock is never asked"

    def batch(self, dimension: Dimension) -> Batch:
        """The batch that this delivery is, before its content is known.

        Errors: SourceDataError where it does not fit its channel: by its scope, by what it lets through, or as a frame
        without a time. What was found somewhere may lack one: it is stopped later, and keeps no other out.
        """
        channel = self.channel_of(dimension)
        self._check_scope(channel)
        if unknown := sorted(self.allow - set(STOPPING_RULES)):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: no rule {', '.join(unknown)} can be let through; "
                f"expected some of {', '.join(STOPPING_RULES)}"
            )
        if self.path is None and (wrong := self.lacks_time(dimension)):
            raise SourceDataError(f"delivery {self.source}/{self.name}: {wrong}")
        return Batch(
            source=self.source,
            channel=channel.kind,
            delivery=self.name,
            revision=token(self.revision),
            at=None if self.at is None else utc(self.at),
            row_times=isinstance(channel, Snapshot) and channel.effective_at is not None,
            scope_columns=channel.scope if isinstance(channel, Snapshot) else (),
            withdrawn=self.withdrawn,
            reason=self.reason,
            actor=self.actor,
            correlation_id=self.correlation_id,
        )

    def _check_scope(self, channel: Snapshot | Feed) -> None:
        """Values that nobody asks for, or too few or too many of them, would cover nobody."""
        if self.scope is None:
            return
        names = channel.scope if isinstance(channel, Snapshot) else ()
        if not names:
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: scope={self.scope!r}, and its {channel.kind} declares no scope; "
                f"expected none, or a snapshot with `scope` and columns of the business key"
            )
        for values in self.scope:
            if len(values) != len(names):
                raise SourceDataError(
                    f"delivery {self.source}/{self.name}: {values!r} in its scope has {len(values)} values; expected "
                    f"{len(names)}, one for each of {', '.join(names)}"
                )


def columns_of(given: Any) -> list[str]:
    """The names of the columns of a Spark, pandas or Arrow frame, in order."""
    import pyarrow

    return [str(name) for name in (given.column_names if isinstance(given, pyarrow.Table) else given.columns)]


def as_arrow(given: Any) -> pyarrow.Table:
    """A pandas or Arrow frame as what Spark reads. Times without a zone keep none until the source's zone is known.

    pandas goes through Arrow, so that the process's own time zone touches nothing (S1).
    Errors: those of pandas and Arrow, which repeat values.
    """
    import pyarrow

    table = given if isinstance(given, pyarrow.Table) else pyarrow.Table.from_pandas(given, preserve_index=False)
    return _micros(table)


def _micros(table: pyarrow.Table) -> pyarrow.Table:
    """Convert the columns to types that Spark has; a column that has only NULLs becomes text.

    It has no numbers without a sign: they are handed over as the next wider type. It knows microseconds only: a column
    with a finer time is handed over as text, so that such a value is judged as that of a file is (S26).

    A time without a zone is handed over as text too: as a timestamp it would be taken for one of UTC, before the zone
    that its source declares is known (S1).
    """
    import pyarrow

    columns = [_spark_column(column) for column in table.columns]
    return pyarrow.table(columns, names=table.column_names)


def _spark_column(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    wanted = _with_leaves(column.type, _as_spark_has_it)
    try:
        converted = column.cast(wanted)
    except pyarrow.ArrowInvalid:  # a time would lose digits, or nothing can be converted and it fails again
        in_utc = column.cast(_with_leaves(column.type, lambda kind: _as_spark_has_it(kind, kind)))
        return in_utc.cast(_with_leaves(in_utc.type, _time_as_text))
    return converted.cast(_with_leaves(wanted, _zoned))


def _with_leaves(kind: pyarrow.DataType, of: Callable[[pyarrow.DataType], pyarrow.DataType]) -> pyarrow.DataType:
    """The type with each type deep inside it replaced."""
    import pyarrow

    def part(field: pyarrow.Field) -> pyarrow.Field:
        return field.with_type(_with_leaves(field.type, of))

    types = pyarrow.types
    if types.is_struct(kind):
        return pyarrow.struct([part(field) for field in kind])
    if types.is_map(kind):
        return pyarrow.map_(_with_leaves(kind.key_type, of), _with_leaves(kind.item_type, of))
    if types.is_fixed_size_list(kind):
        return pyarrow.list_(part(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pyarrow.large_list(part(kind.value_field))
    return pyarrow.list_(part(kind.value_field)) if types.is_list(kind) else of(kind)


def _as_spark_has_it(kind: pyarrow.DataType, precise: pyarrow.DataType | None = None) -> pyarrow.DataType:
    """The type that Spark has for one without parts; a time keeps the unit of `precise`, if that is one."""
    import pyarrow

    signed = {
        pyarrow.uint8(): pyarrow.int16(),
        pyarrow.uint16(): pyarrow.int32(),
        pyarrow.uint32(): pyarrow.int64(),
        pyarrow.uint64(): pyarrow.decimal128(20, 0),
    }

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.timestamp(precise.unit if precise else "us", tz="UTC" if kind.tz else None)
    if pyarrow.types.is_dictionary(kind):
        return _as_spark_has_it(kind.value_type, precise and kind.value_type)
    return pyarrow.string() if pyarrow.types.is_null(kind) else signed.get(kind, kind)


def _time_as_text(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string() if pyarrow.types.is_timestamp(kind) else kind


def _zoned(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string() if pyarrow.types.is_timestamp(kind) and kind.tz is None else kind


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
        frame = frame.where(_partition_name(channel) == delivery.partition)
    return frame


def _partition_name(channel: Snapshot | Feed) -> Column:
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
    marks = small_frame(
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
        instant(batch.at).alias("at"),
        text(rank(batch.delivery)).alias("delivery_rank"),
        text(rank(batch.revision)).alias("revision_rank"),
        text(delivery.reason).alias("reason"),
        text(delivery.actor).alias("actor"),
        text(delivery.correlation_id).alias("correlation_id"),
        scope.cast("array<string>").alias("scope"),
    )


def instant(moment: datetime | None) -> Column:
    """A moment as a timestamp, by its microseconds: no zone of the process or the session touches it."""
    if moment is None:
        return F.lit(None).cast("timestamp")
    return F.timestamp_micros(F.lit(to_micros(moment)))


def discover(dimension: Dimension, spark: SparkSession | None, *, base: Path | None = None) -> list[Delivery]:
    """The deliveries that lie at the paths of the dimension's channels, in order of their names; all of them sealed.

    Of files: a delivery's time is the date in its name, its revision when it was `changed`; paths are local, a
    relative one is taken from `base`. One that vanishes meanwhile is none. Versions and partitions of tables
    (`table_deliveries`) are seen by a session only, without one there are none.
    """
    found: list[Delivery] = []
    for source in dimension.sources:
        for kind, channel in source.channels:
            if channel.path is None:
                continue
            place = channel.path if "://" in channel.path else str((base or Path()) / channel.path)
            if not (channel.versions or channel.partition):
                found += _files(source.name, kind, place)
            elif spark is not None:
                found += table_deliveries(spark, source.name, channel, place)
    return sorted(found, key=lambda d: (d.source, str(d.channel), rank(d.name)))


def list_files(dimension: Dimension, *, base: Path | None = None) -> Iterator[tuple[str, str, str, Path]]:
    """Yield source, channel, name and path of each file, or folder of files, at the paths of the channels."""
    for source in dimension.sources:
        for kind, channel in source.channels:
            if channel.path is not None and not (channel.versions or channel.partition):
                place = channel.path if "://" in channel.path else str((base or Path()) / channel.path)
                yield from ((source.name, kind, name, path) for name, _, path in _matches(place))


def table_deliveries(spark: SparkSession, source: str, channel: Snapshot | Feed, path: str) -> list[Delivery]:
    """One delivery for each version, or for each partition, of the table at `path`.

    A version's name is its number and its time that of its commit; commits that change no row, as OPTIMIZE, are none.
    A partition's name is its value, its time the date
    that the value is, its revision the version of the table: where its content is the same, loading it again changes
    nothing. A partition of Parquet files has the time of its files' last change for a revision, and is read each time.
    Rows without a value are a partition too, which has no time.
    Out: none where nothing is there yet.  Errors: SourceDataError where something else is.
    """
    try:
        return _table_deliveries(spark, source, channel, path)
    except AnalysisException as error:
        if _lies_there(spark, path):
            raise SourceDataError(
                f"{source}: what lies at {path} is no {channel.format} table; expected one, or nothing yet ("
                f"{first_line(error)})"
            ) from error
        return []


def _lies_there(spark: SparkSession, path: str) -> bool:
    """Whether there is anything at the path, wherever the server sees it."""
    try:
        return bool(spark.read.format("binaryFile").load(path).schema)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise


def _table_deliveries(spark: SparkSession, source: str, channel: Snapshot | Feed, path: str) -> list[Delivery]:
    if channel.versions:
        commits = _data_commits(spark, path)
        rows = commits.select("version", F.unix_micros("timestamp").alias("at")).orderBy("version").collect()
        return [
            Delivery(
                source,
                str(r["version"]),
                channel.kind,
                at=from_micros(r["at"]),
                path=path,
                table_version=r["version"],
                sealed=True,
            )
            for r in rows
        ]
    versioned = channel.format == "delta"
    revisions = _versions(spark, channel, path) if versioned else _times(spark, channel, path)
    return [
        Delivery(
            source,
            name,
            channel.kind,
            at=_date_of(name),
            revision=revision,
            path=path,
            partition=name,
            sealed=versioned,
            is_latest=True,
        )
        for name, revision in sorted(revisions.items())
    ]


def _data_commits(spark: SparkSession, path: str) -> DataFrame:
    """The commits of a Delta table that change its rows: no OPTIMIZE, VACUUM or new property."""
    history = spark.sql(f"DESCRIBE HISTORY delta.{quoted(path)}")
    return history.where(~F.col("operation").isin(sorted(CHANGES_NO_ROW)))


def _versions(spark: SparkSession, channel: Snapshot | Feed, path: str) -> dict[str, int]:
    """The partitions of a Delta table, each with the version of the table's last change of data."""
    version = _data_commits(spark, path).agg(F.max("version")).collect()[0][0] or 0
    names = spark.read.format("delta").load(path).select(_partition_name(channel)).distinct()
    return {row[0]: version for row in names.collect()}


def _times(spark: SparkSession, channel: Snapshot | Feed, path: str) -> dict[str, int]:
    """The partitions of a table of files, each with the last change of its files, or of their folders if seen here."""
    table = spark.read.format(str(channel.format)).load(literal(path))
    modified = F.unix_micros("_metadata.file_modification_time")
    folder = F.regexp_extract("_metadata.file_path", "^(.*)/", 1)
    rows = table.groupBy(_partition_name(channel), folder).agg(F.max(modified)).collect()
    times: dict[str, int] = {}
    for name, uri, at in rows:
        place = Path(plain_path(unquote(uri)))
        times[name] = max(times.get(name, 0), changed(place) if place.is_dir() else at)
    return times


def _date_of(name: str) -> datetime | None:
    """The time that a name is, if it is one: `2024-01-31`, or `2024-01-31 12:30:00` with a blank or a T."""
    if not _TIME.fullmatch(name):
        return None
    try:
        return utc(datetime.fromisoformat(name))
    except ValueError:
        return None


def _files(source: str, kind: str, place: str) -> list[Delivery]:
    """The deliveries at a path with a placeholder; a file that has vanished since it was listed is none."""
    found = []
    for name, word, path in _matches(place):
        with contextlib.suppress(FileNotFoundError):
            found.append(_found(source, kind, name, word, path))
    return found


def _found(source: str, kind: str, name: str, word: str, path: Path) -> Delivery:
    text = f"{name[:10]}T{name[11:].replace('-', ':')}" if word == "datetime" else name
    at = _date_of(text) if word in _WORDS_OF_TIME else None
    return Delivery(
        source, name, channel=kind, at=at, revision=changed(path), path=str(path), sealed=True, is_latest=True
    )


def _placeholder(word: str) -> str:
    return "{" + word + "}"


def _matches(pattern: str) -> Iterable[tuple[str, str, Path]]:
    """Name, placeholder and path of what matches a path with one placeholder."""
    word = next(word for word in _PATTERNS if _placeholder(word) in pattern)
    head, tail = pattern.split(_placeholder(word), 1)
    folder = Path(head).parent if not head.endswith("/") else Path(head)
    expression = re.compile(re.escape(head) + f"(?P<name>{_PATTERNS[word]})" + re.escape(tail))
    depth = tail.count("/") + 1
    for path in sorted(folder.glob("/".join(["*"] * depth))):
        match = expression.fullmatch(str(path))
        if match and not path.name.startswith((".", "_")):
            yield match["name"], word, path
