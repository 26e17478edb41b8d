"""Discover deliveries at the paths of the channels, and select some of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.declaration.path_times import PathTime, parse_time_of_day, read_path_time
from scd_pipeline.declaration.source import is_address, without_file_scheme
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.files import as_text, last_changed
from scd_pipeline.deliveries.folders import load_folders
from scd_pipeline.deliveries.near_matches import NearMatches, without_used
from scd_pipeline.deliveries.partitions import delivery_names, partition_key
from scd_pipeline.deliveries.path_matches import PathMatch, list_paths
from scd_pipeline.deliveries.paths import exists_for_spark, normalize_path
from scd_pipeline.deliveries.readers import partition_column
from scd_pipeline.deliveries.source_commits import changes_rows, commits, has_change_data_feed, partition_changes
from scd_pipeline.errors import LoadWarning, SourceDataError, UsageError, first_line
from scd_pipeline.history.batch import rank
from scd_pipeline.instants import from_micros
from scd_pipeline.texts import first_names, nearest

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?")
_LISTED_KEYS = 8


@dataclass(frozen=True, slots=True)
class Discovery:
    """The deliveries at the paths of a table's channels, and the files that are not deliveries, but nearly match."""

    deliveries: list[Delivery]
    near_matches: tuple[NearMatches, ...] = ()

    @property
    def warnings(self) -> tuple[LoadWarning, ...]:
        """A warning for each channel with files that nearly match its path."""
        return tuple(near.warning() for near in self.near_matches)

    @property
    def has_only_near_matches(self) -> bool:
        """Whether files exist at the paths, and none of them is a delivery."""
        return bool(self.near_matches) and not self.deliveries


# -- Select

Others: TypeAlias = Callable[[Dimension], Sequence[Delivery]]
"""Returns the deliveries of a dimension that are not at the paths of its channels."""


def _no_others(dimension: Dimension) -> Sequence[Delivery]:  # noqa: ARG001 (the signature of `others`)
    return ()


def select_deliveries(
    dimension: Dimension,
    spark: SparkSession,
    *,
    names: Collection[str] = (),
    allow: Collection[str] = (),
    others: Others = _no_others,
) -> list[Delivery]:
    """Return the available deliveries of a dimension, as `select_by_table` does."""
    return select(dimension, spark, names=names, allow=allow, others=others).deliveries


def select(
    dimension: Dimension,
    spark: SparkSession,
    *,
    names: Collection[str] = (),
    allow: Collection[str] = (),
    others: Others = _no_others,
) -> Discovery:
    """Return the available deliveries of a dimension with its near matches, as `select_by_table` does."""
    return select_by_table([dimension], spark, names=names, allow=allow, others=others)[0]


def select_by_table(
    dimensions: Sequence[Dimension],
    spark: SparkSession,
    *,
    names: Collection[str] = (),
    allow: Collection[str] = (),
    others: Others = _no_others,
    requires_names: bool = True,
) -> list[Discovery]:
    """Return the available deliveries of each dimension.

    A file that nearly matches one path and matches another one is a delivery of the latter alone. Near matches are
    omitted if names are given.

    Args:
        dimensions: The dimensions.
        spark: The session, for deliveries in tables.
        names: The names of the deliveries to select; all if it is empty. A name without its channel selects the
            deliveries of that name in every channel.
        allow: The rules that the deliveries override.
        others: Returns the deliveries of a dimension that are not at paths.
        requires_names: Whether one of the dimensions must have each name.

    Raises:
        UsageError: DELIVERY_NOT_FOUND if none of the dimensions has a delivery of one of the names.
    """
    available = [discover_all(dimension, spark, base=declaration_folder(dimension)) for dimension in dimensions]
    available = [
        replace(each, deliveries=[*each.deliveries, *others(dimension)])
        for dimension, each in zip(dimensions, available, strict=True)
    ]
    used = {delivery.path for discovery in available for delivery in discovery.deliveries}
    available = [replace(each, near_matches=without_used(each.near_matches, used)) for each in available]
    existing = {name for each in available for delivery in each.deliveries for name in delivery_names(delivery)}
    if requires_names and (unknown := sorted(set(names) - existing)):
        raise _not_found(unknown, existing, dimensions, available)
    return [
        Discovery(
            [
                replace(delivery, allow=frozenset(allow))
                for delivery in each.deliveries
                if not names or not delivery_names(delivery).isdisjoint(names)
            ],
            () if names else each.near_matches,
        )
        for each in available
    ]


def _not_found(
    unknown: Sequence[str], existing: Collection[str], dimensions: Sequence[Dimension], available: Sequence[Discovery]
) -> UsageError:
    keys = {
        partition_key(delivery, dimension)
        for dimension, each in zip(dimensions, available, strict=True)
        for delivery in each.deliveries
    }
    near = nearest(unknown[0], existing)
    files = [text for each in available for near_matches in each.near_matches for text in near_matches.names]
    hints = [f"did you mean {near}?"] if near else []
    hints += [f"these files nearly match: {first_names(files)};"] if files else []
    details = {"names": ", ".join(unknown), "paths": ", ".join(map(_channel_paths, dimensions))}
    hint = "".join(f"{text} " for text in hints)
    tables = ", ".join(dimension.name for dimension in dimensions)
    return UsageError("DELIVERY_NOT_FOUND", tables, **details, deliveries=_some(keys), hint=hint)


def declaration_folder(dimension: Dimension) -> Path:
    """Return the folder that relative paths of a declaration start from: its file's, or the current one."""
    file = dimension.origin.rpartition(":")[0]
    return Path(file).absolute().parent if file else Path.cwd()


def _channel_paths(dimension: Dimension) -> str:
    folder = declaration_folder(dimension)
    channels = [channel for source in dimension.sources for _, channel in source.channels]
    return ", ".join(absolute_path(channel.path, folder) for channel in channels if channel.path) or "any path"


def _some(names: Collection[str]) -> str:
    listed = sorted(names)
    if len(listed) > _LISTED_KEYS:
        half = _LISTED_KEYS // 2
        listed = [*listed[:half], "...", *listed[-half:]]
    return f"one of {', '.join(listed)}" if listed else "a delivery at one of these paths"


# -- Discover


def discover(dimension: Dimension, spark: SparkSession | None, *, base: Path | None = None) -> list[Delivery]:
    """Return the deliveries of `discover_all`."""
    return discover_all(dimension, spark, base=base).deliveries


def discover_all(dimension: Dimension, spark: SparkSession | None, *, base: Path | None = None) -> Discovery:
    """Return the deliveries at the paths of the dimension's channels, in order of their names, and the near matches.

    All are sealed except partitions of Parquet files.

    The time of a file is that in its name; its revision is its time of change (`last_changed`). A file that vanishes in
    the meantime is skipped.

    Args:
        dimension: The declaration.
        spark: The session that lists the versions and partitions of tables (`discover_table`); None skips tables.
        base: The folder of relative paths; the current folder by default.
    """
    listing = list_files(dimension, base=base)
    deliveries = listing.deliveries()
    for source in dimension.sources:
        for _, channel in source.channels:
            if spark is not None and channel.path is not None and is_table(channel) and not channel.has_cursor:
                deliveries += discover_table(spark, source.name, channel, absolute_path(channel.path, base))
    in_order = sorted(deliveries, key=lambda d: (d.source, str(d.channel), rank(d.name)))
    return Discovery(in_order, listing.near_matches)


def is_table(channel: Snapshot | Feed) -> bool:
    """Return whether a channel delivers versions or partitions of a table, or rows that a cursor selects."""
    return bool(channel.versions or channel.partition or channel.has_cursor)


def absolute_path(path: str, base: Path | None) -> str:
    """Return the path of a channel; a relative one starts at a folder."""
    path = without_file_scheme(path)
    return path if is_address(path) else str((base or Path()) / path)


# -- Files


def discover_files(dimension: Dimension) -> list[Delivery]:
    """Return the deliveries in files at the paths of the dimension's channels."""
    return discover(dimension, None, base=declaration_folder(dimension))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a folder of files, at the path of a channel."""

    source: str
    channel: Snapshot | Feed
    match: PathMatch

    @property
    def identity(self) -> Delivery:
        """The delivery without its content."""
        return Delivery(self.source, self.match.name, channel=self.channel.name)


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files at the paths of a dimension's channels, and those that nearly match."""

    files: tuple[SourceFile, ...]
    near_matches: tuple[NearMatches, ...]

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries in the files; a file that vanishes in the meantime is skipped."""
        deliveries = []
        for file in self.files:
            with suppress(FileNotFoundError):
                deliveries.append(_file_delivery(file))
        return deliveries


def list_files(dimension: Dimension, *, base: Path | None = None) -> FileListing:
    """List the folder of each channel once.

    Args:
        dimension: The declaration.
        base: The folder of relative paths; the current folder by default.
    """
    files: list[SourceFile] = []
    near_matches: list[NearMatches] = []
    for source in dimension.sources:
        for name, channel in source.channels:
            if channel.path is not None and not is_table(channel):
                listing = list_paths(absolute_path(channel.path, base))
                files += [SourceFile(source.name, channel, match) for match in listing.matches]
                near = NearMatches(dimension.name, source.name, name, channel.path, listing.near_matches)
                near_matches.append(near)
    used = {file.match.entry.path for file in files}
    return FileListing(tuple(files), without_used(near_matches, used))


def file_fingerprints(dimension: Dimension, listing: FileListing) -> dict[str, str]:
    """Return, by partition key, the fingerprint of each file or folder (`Entry.fingerprint`), without reading it.

    A file that vanishes in the meantime has none. Another fingerprint does not imply another content.
    """
    fingerprints = {}
    for file in listing.files:
        with suppress(FileNotFoundError):
            fingerprints[partition_key(file.identity, dimension)] = file.match.entry.fingerprint()
    return fingerprints


def file_version(delivery: Delivery) -> str:
    """Return when the file or folder of a delivery was last changed, and its size; it changes with the content."""
    time = from_micros(int(str(delivery.revision)))
    return f"{time:%Y-%m-%dT%H:%M:%S.%fZ}, {delivery.size} bytes"


def _file_delivery(file: SourceFile) -> Delivery:
    time, entry = file.match.time, file.match.entry
    return replace(
        file.identity,
        at=delivery_time(time, file.channel) if time else None,
        revision=entry.last_changed(),
        size=entry.total_size(),
        path=as_text(entry.path),
        sealed=True,
        is_overwritten_in_place=True,
    )


def delivery_time(read: PathTime, channel: Snapshot | Feed) -> datetime | None:
    """Return the time in a path or partition in UTC, at the declared time of day if it is a date (S1, S4).

    None if it does not exist in the calendar, or is before the year 1 or after the year 9999 in UTC.
    """
    local = read.time
    if local is None:
        return None
    time_of_day = parse_time_of_day(channel.time_of_day or "")
    if read.is_date and time_of_day is not None:
        local = datetime.combine(local, time_of_day)
    try:
        return local.replace(tzinfo=ZoneInfo(channel.delivery_timezone)).astimezone(timezone.utc)
    except OverflowError:
        return None


def _partition_time(channel: Snapshot | Feed, value: str) -> PathTime | None:
    """Return the time that the value of a partition represents; None if it is not of the declared form.

    By default it is `2024-01-31`, `2024-01-31 12:30:00` or `2024-01-31T12:30`.
    """
    if channel.partition_format is not None:
        return read_path_time(channel.partition_format, value)
    match = _TIME.fullmatch(value)
    if match is None:
        return None
    try:
        return PathTime(value, datetime.fromisoformat(value), is_date=match[1] is None)
    except ValueError:
        return None


# -- Tables


def discover_table(spark: SparkSession, source: str, channel: Snapshot | Feed, path: str) -> list[Delivery]:
    """Return one delivery for each version, or for each partition, of the table at `path`.

    The name of a version is its number, its time that of its commit; commits that change no row, such as OPTIMIZE, are
    skipped. In a feed it is only the rows that the commit inserted or updated, if the table has a change data
    feed.

    The name of a partition is its value, or the date or time that it has in the declared form (`partition_format`);
    its time is the one that the value represents. Its revision is the time of the last commit of the table, and it is
    not read again until a commit changes it. The revision of a partition of Parquet files is the last time of change of
    its files, and it is read by each load. Rows whose value is NULL are a partition without a time.

    Returns:
        The deliveries; none if the path does not exist.

    Raises:
        SourceDataError: NOT_A_TABLE if the path contains something other than a table of the channel's format.
    """
    if Path(path).is_file():
        cause = "it is a file, and a table is a folder"
        raise SourceDataError("NOT_A_TABLE", source, path=path, format=channel.format, cause=cause)
    try:
        list_deliveries = _versions if channel.versions else _partitions
        return list_deliveries(spark, source, channel, path)
    except AnalysisException as error:
        if exists_for_spark(spark, path):
            details = {"path": path, "format": channel.format, "cause": first_line(error)}
            raise SourceDataError("NOT_A_TABLE", source, **details) from error
        return []


def _versions(spark: SparkSession, source: str, channel: Snapshot | Feed, path: str) -> list[Delivery]:
    changing = commits(spark, path).where(changes_rows()).select("version", F.unix_micros("timestamp").alias("at"))
    rows = changing.orderBy("version").collect()
    has_changes = isinstance(channel, Feed) and bool(rows) and has_change_data_feed(spark, path)
    versions_before = [None, *(row["version"] for row in rows)]
    return [
        Delivery(
            source,
            str(row["version"]),
            channel.name,
            at=from_micros(row["at"]),
            path=path,
            table_version=row["version"],
            changes_since=before if has_changes else None,
            sealed=True,
        )
        for before, row in zip(versions_before, rows, strict=False)
    ]


def _partitions(spark: SparkSession, source: str, channel: Snapshot | Feed, path: str) -> list[Delivery]:
    is_delta = channel.format == "delta"
    states = _delta_states(spark, channel, path) if is_delta else _file_states(spark, channel, path)
    return [
        Delivery(
            source,
            read.name if read else value,
            channel.name,
            at=delivery_time(read, channel) if read else None,
            revision=state.revision,
            unchanged_since=state.unchanged_since,
            path=path,
            partition=value,
            sealed=is_delta,
            is_overwritten_in_place=True,
        )
        for value, state in sorted(states.items())
        for read in [_partition_time(channel, value)]
    ]


@dataclass(frozen=True, slots=True)
class _PartitionState:
    """The revision of a partition, and the one since which it is unchanged, as in `Delivery`."""

    revision: int
    unchanged_since: int | None = None


def _delta_states(spark: SparkSession, channel: Snapshot | Feed, path: str) -> dict[str, _PartitionState]:
    """Return the partitions of a Delta table, each with the time of the table's last change of rows as revision."""
    table = spark.read.format("delta").load(path)
    names = [row[0] for row in table.select(partition_column(channel)).distinct().collect()]
    column = next(field for field in table.schema.fields if field.name.lower() == str(channel.partition).lower())
    changes = partition_changes(spark, path, column)
    return {name: _PartitionState(changes.newest, changes.changed_at(name)) for name in names}


def _file_states(spark: SparkSession, channel: Snapshot | Feed, path: str) -> dict[str, _PartitionState]:
    """Return the partitions of a table of files, each with its last time of change.

    That is `last_changed` of its folders if they exist on this machine, otherwise the modification time of its files.
    """
    table = load_folders(spark.read.format(str(channel.format)), [path])
    modified = F.unix_micros("_metadata.file_modification_time")
    folder = F.regexp_extract("_metadata.file_path", "^(.*)/", 1)
    rows = table.groupBy(partition_column(channel), folder).agg(F.max(modified)).collect()
    times: dict[str, int] = {}
    for name, uri, modified_at in rows:
        local = Path(normalize_path(unquote(uri)))
        time = last_changed(local) if local.is_dir() else modified_at
        times[name] = max(times.get(name, 0), time)
    return {name: _PartitionState(time) for name, time in times.items()}
