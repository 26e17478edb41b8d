"""Discover deliveries at the paths of the channels, and select some of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.declaration.source import TIME_PLACEHOLDERS, is_address
from scd_pipeline.deliveries.delivery import PLACEHOLDER_PATTERNS, Delivery, placeholder
from scd_pipeline.deliveries.files import as_text, file_fingerprint, last_changed, total_size
from scd_pipeline.deliveries.folders import load_folders
from scd_pipeline.deliveries.partitions import delivery_names, partition_key
from scd_pipeline.deliveries.paths import normalize_path
from scd_pipeline.deliveries.readers import partition_column
from scd_pipeline.deliveries.source_commits import changes_rows, commits, has_change_data_feed, partition_changes
from scd_pipeline.errors import SourceDataError, UsageError, first_line
from scd_pipeline.history.batch import rank
from scd_pipeline.instants import from_micros, to_utc
from scd_pipeline.texts import nearest

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?")
_LISTED_KEYS = 8


# -- Select


def select_deliveries(
    dimension: Dimension, spark: SparkSession, *, names: Collection[str] = (), allow: Collection[str] = ()
) -> list[Delivery]:
    """Return the available deliveries of a dimension, as `select_deliveries_by_table` does."""
    return select_deliveries_by_table([dimension], spark, names=names, allow=allow)[0]


def select_deliveries_by_table(
    dimensions: Sequence[Dimension], spark: SparkSession, *, names: Collection[str] = (), allow: Collection[str] = ()
) -> list[list[Delivery]]:
    """Return the available deliveries of each dimension.

    Args:
        dimensions: The dimensions.
        spark: The session, for deliveries in tables.
        names: The names of the deliveries to select; all if it is empty. A name without its channel selects the
            deliveries of that name in every channel.
        allow: The rules that the deliveries override.

    Raises:
        UsageError: DELIVERY_NOT_FOUND if none of the dimensions has a delivery of one of the names.
    """
    available = [discover(dimension, spark, base=declaration_folder(dimension)) for dimension in dimensions]
    existing = {name for deliveries in available for delivery in deliveries for name in delivery_names(delivery)}
    if unknown := sorted(set(names) - existing):
        tables = ", ".join(dimension.name for dimension in dimensions)
        paths = ", ".join(_channel_paths(dimension) for dimension in dimensions)
        keys = {
            partition_key(delivery, dimension)
            for dimension, deliveries in zip(dimensions, available, strict=True)
            for delivery in deliveries
        }
        near = nearest(unknown[0], existing)
        details = {"names": ", ".join(unknown), "paths": paths, "deliveries": _some(keys)}
        raise UsageError("DELIVERY_NOT_FOUND", tables, **details, hint=f"did you mean {near}? " if near else "")
    return [
        [replace(d, allow=frozenset(allow)) for d in deliveries if not names or not delivery_names(d).isdisjoint(names)]
        for deliveries in available
    ]


def declaration_folder(dimension: Dimension) -> Path:
    """Return the folder that relative paths of a declaration start from: its file's, or the current one."""
    file = dimension.origin.rpartition(":")[0]
    return Path(file).absolute().parent if file else Path.cwd()


def _channel_paths(dimension: Dimension) -> str:
    folder = declaration_folder(dimension)
    channels = [channel for source in dimension.sources for _, channel in source.channels]
    return ", ".join(str(folder / channel.path) for channel in channels if channel.path) or "any path"


def _some(names: Collection[str]) -> str:
    listed = sorted(names)
    if len(listed) > _LISTED_KEYS:
        half = _LISTED_KEYS // 2
        listed = [*listed[:half], "...", *listed[-half:]]
    return f"one of {', '.join(listed)}" if listed else "a delivery at one of these paths"


# -- Discover


def discover(dimension: Dimension, spark: SparkSession | None, *, base: Path | None = None) -> list[Delivery]:
    """Return the deliveries at the paths of the dimension's channels, in order of their names.

    All are sealed except partitions of Parquet files.

    The time of a file is the date in its name; its revision is its time of change (`last_changed`). A file that
    vanishes in the meantime is skipped.

    Args:
        dimension: The declaration.
        spark: The session that lists the versions and partitions of tables (`discover_table`); None skips tables.
        base: The folder of relative paths; the current folder by default.
    """
    deliveries: list[Delivery] = []
    for source in dimension.sources:
        for channel_name, channel in source.channels:
            if channel.path is None:
                continue
            path = _absolute_path(channel.path, base)
            if not is_table(channel):
                deliveries += _file_deliveries(source.name, channel_name, path)
            elif spark is not None:
                deliveries += discover_table(spark, source.name, channel, path)
    return sorted(deliveries, key=lambda d: (d.source, str(d.channel), rank(d.name)))


def is_table(channel: Snapshot | Feed) -> bool:
    """Return whether the deliveries of a channel are versions or partitions of a table."""
    return bool(channel.versions or channel.partition)


def _absolute_path(path: str, base: Path | None) -> str:
    return path if is_address(path) else str((base or Path()) / path)


# -- Files


def discover_files(dimension: Dimension) -> list[Delivery]:
    """Return the deliveries in files at the paths of the dimension's channels."""
    return discover(dimension, None, base=declaration_folder(dimension))


def file_fingerprints(dimension: Dimension) -> dict[str, str]:
    """Return, by partition key, the fingerprint of each file or folder (`files.file_fingerprint`), without reading it.

    A file that vanishes in the meantime has none. Another fingerprint does not imply another content.
    """
    fingerprints = {}
    for source, channel, name, path in list_files(dimension, base=declaration_folder(dimension)):
        with suppress(FileNotFoundError):
            key = partition_key(Delivery(source, name, channel=channel), dimension)
            fingerprints[key] = file_fingerprint(path)
    return fingerprints


def list_files(dimension: Dimension, *, base: Path | None = None) -> Iterator[tuple[str, str, str, Path]]:
    """Yield source, channel, name and path of each file, or folder of files, at the paths of the channels."""
    for source in dimension.sources:
        for channel_name, channel in source.channels:
            if channel.path is not None and not is_table(channel):
                matches = _matching_paths(_absolute_path(channel.path, base))
                yield from ((source.name, channel_name, name, path) for name, _, path in matches)


def file_version(delivery: Delivery) -> str:
    """Return when the file or folder of a delivery was last changed, and its size; it changes with the content."""
    time = from_micros(int(str(delivery.revision)))
    return f"{time:%Y-%m-%dT%H:%M:%S.%fZ}, {total_size(Path(str(delivery.path)))} bytes"


def _file_deliveries(source: str, channel: str, pattern: str) -> list[Delivery]:
    """Return the deliveries at a path with a placeholder, without files that have vanished since they were listed."""
    deliveries = []
    for name, placeholder_name, path in _matching_paths(pattern):
        with suppress(FileNotFoundError):
            deliveries.append(_file_delivery(source, channel, name, placeholder_name, path))
    return deliveries


def _file_delivery(source: str, channel: str, name: str, placeholder_name: str, path: Path) -> Delivery:
    text = f"{name[:10]}T{name[11:].replace('-', ':')}" if placeholder_name == "datetime" else name
    return Delivery(
        source,
        name,
        channel=channel,
        at=_parse_time(text) if placeholder_name in TIME_PLACEHOLDERS else None,
        revision=last_changed(path),
        path=as_text(str(path)),
        sealed=True,
        is_overwritten_in_place=True,
    )


def _matching_paths(pattern: str) -> Iterator[tuple[str, str, Path]]:
    """Yield name, placeholder and path of each file or folder that matches a path with one placeholder."""
    placeholder_name = next(name for name in PLACEHOLDER_PATTERNS if placeholder(name) in pattern)
    head, tail = pattern.split(placeholder(placeholder_name), 1)
    folder = Path(head).parent if not head.endswith("/") else Path(head)
    expression = re.compile(re.escape(head) + f"(?P<name>{PLACEHOLDER_PATTERNS[placeholder_name]})" + re.escape(tail))
    depth = tail.count("/") + 1
    for path in sorted(folder.glob("/".join(["*"] * depth))):
        match = expression.fullmatch(str(path))
        if match and not path.name.startswith((".", "_")):
            yield as_text(match["name"]), placeholder_name, path


def _parse_time(name: str) -> datetime | None:
    """Return the time that a name represents: `2024-01-31`, `2024-01-31 12:30:00` or `2024-01-31T12:30`; or None."""
    if not _TIME.fullmatch(name):
        return None
    try:
        return to_utc(datetime.fromisoformat(name))
    except ValueError:
        return None


# -- Tables


def discover_table(spark: SparkSession, source: str, channel: Snapshot | Feed, path: str) -> list[Delivery]:
    """Return one delivery for each version, or for each partition, of the table at `path`.

    The name of a version is its number, its time that of its commit; commits that change no row, such as OPTIMIZE, are
    skipped. In a feed it is only the rows that the commit inserted or updated, if the table has a change data
    feed.

    The name of a partition is its value, its time the date that the value represents. Its revision is the time of the
    last commit of the table, and it is not read again until a commit changes it. The revision of a partition of Parquet
    files is the last time of change of its files, and it is read by each load. Rows whose value is NULL are a partition
    without a time.

    Returns:
        The deliveries; none if the path does not exist.

    Raises:
        SourceDataError: NOT_A_TABLE if the path contains something other than a table of the channel's format.
    """
    try:
        list_deliveries = _versions if channel.versions else _partitions
        return list_deliveries(spark, source, channel, path)
    except AnalysisException as error:
        if _exists(spark, path):
            details = {"path": path, "format": channel.format, "cause": first_line(error)}
            raise SourceDataError("NOT_A_TABLE", source, **details) from error
        return []


def _exists(spark: SparkSession, path: str) -> bool:
    """Return whether the server sees anything at the path."""
    try:
        return bool(spark.read.format("binaryFile").load(path).schema)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise


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
            name,
            channel.name,
            at=_parse_time(name),
            revision=state.revision,
            unchanged_since=state.unchanged_since,
            path=path,
            partition=name,
            sealed=is_delta,
            is_overwritten_in_place=True,
        )
        for name, state in sorted(states.items())
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
