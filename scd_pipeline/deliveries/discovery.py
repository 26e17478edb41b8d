"""Discover deliveries at the paths of the channels, and select some of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.deliveries.files import changed
from scd_pipeline.deliveries.text_files import (
    literal,
    plain_path,
)
from scd_pipeline.delta.commits import CHANGES_NO_ROW
from scd_pipeline.errors import SourceDataError, first_line
from scd_pipeline.expressions import quote_name
from scd_pipeline.history.batch import rank
from scd_pipeline.instants import from_micros, to_utc

if TYPE_CHECKING:
    pass
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scd_pipeline.deliveries.delivery import PLACEHOLDERS, TIME_PLACEHOLDERS, Delivery, placeholder
from scd_pipeline.deliveries.files import size
from scd_pipeline.deliveries.readers import partition_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.partitions import names_of, partition_key

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?")


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
    history = spark.sql(f"DESCRIBE HISTORY delta.{quote_name(path)}")
    return history.where(~F.col("operation").isin(sorted(CHANGES_NO_ROW)))


def _versions(spark: SparkSession, channel: Snapshot | Feed, path: str) -> dict[str, int]:
    """The partitions of a Delta table, each with the version of the table's last change of data."""
    version = _data_commits(spark, path).agg(F.max("version")).collect()[0][0] or 0
    names = spark.read.format("delta").load(path).select(partition_name(channel)).distinct()
    return {row[0]: version for row in names.collect()}


def _times(spark: SparkSession, channel: Snapshot | Feed, path: str) -> dict[str, int]:
    """The partitions of a table of files, each with the last change of its files, or of their folders if seen here."""
    table = spark.read.format(str(channel.format)).load(literal(path))
    modified = F.unix_micros("_metadata.file_modification_time")
    folder = F.regexp_extract("_metadata.file_path", "^(.*)/", 1)
    rows = table.groupBy(partition_name(channel), folder).agg(F.max(modified)).collect()
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
        return to_utc(datetime.fromisoformat(name))
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
    at = _date_of(text) if word in TIME_PLACEHOLDERS else None
    return Delivery(
        source, name, channel=kind, at=at, revision=changed(path), path=str(path), sealed=True, is_latest=True
    )


def _matches(pattern: str) -> Iterable[tuple[str, str, Path]]:
    """Name, placeholder and path of what matches a path with one placeholder."""
    word = next(word for word in PLACEHOLDERS if placeholder(word) in pattern)
    head, tail = pattern.split(placeholder(word), 1)
    folder = Path(head).parent if not head.endswith("/") else Path(head)
    expression = re.compile(re.escape(head) + f"(?P<name>{PLACEHOLDERS[word]})" + re.escape(tail))
    depth = tail.count("/") + 1
    for path in sorted(folder.glob("/".join(["*"] * depth))):
        match = expression.fullmatch(str(path))
        if match and not path.name.startswith((".", "_")):
            yield match["name"], word, path


def declaration_folder(dimension: Dimension) -> Path:
    """The folder that relative paths of a declaration start from: that of its file, else the current one."""
    file = dimension.origin.rpartition(":")[0]
    return Path(file).absolute().parent if file else Path.cwd()


def files(dimension: Dimension) -> list[Delivery]:
    """What lies at the paths of the dimension's channels, as far as it is files."""
    from scd_pipeline.deliveries.discovery import discover

    return discover(dimension, None, base=declaration_folder(dimension))


def file_signatures(dimension: Dimension) -> dict[str, str]:
    """Return, by partition key, the size and times of each file; no content is read.

    A file that vanishes meanwhile has none. Another signature need not be another content, unlike another `mark`.
    """
    from scd_pipeline.deliveries.delivery import Delivery
    from scd_pipeline.deliveries.discovery import list_files

    signatures = {}
    for source, channel, name, path in list_files(dimension, base=declaration_folder(dimension)):
        with suppress(FileNotFoundError):
            parts = [path, *path.rglob("*")] if path.is_dir() else [path]
            stats = [part.stat() for part in parts]
            size = sum(told.st_size for told in stats)
            changed = max(max(told.st_mtime_ns, told.st_ctime_ns) for told in stats)
            key = partition_key(Delivery(source, name, channel=channel), dimension)
            signatures[key] = f"{size} {changed} {len(stats)}"
    return signatures


def deliveries_of_each(
    dimensions: Sequence[Dimension], spark: SparkSession, *, names: Collection[str] = (), allow: Collection[str] = ()
) -> list[list[Delivery]]:
    """For each dimension what lies at the paths of its channels: all of it, or the deliveries of some names.

    A name without its channel means that of every channel. `allow` lets these deliveries through the rules it names.
    Errors: SourceDataError for a name that is there for none of them.
    """
    from scd_pipeline.deliveries.discovery import discover

    found = [discover(dimension, spark, base=declaration_folder(dimension)) for dimension in dimensions]
    unknown = sorted(set(names) - {name for lying in found for delivery in lying for name in names_of(delivery)})
    if unknown:
        told = [
            f"{dimension.name}: no delivery {', '.join(unknown)} at {_paths(dimension)}; "
            f"expected one of {_some({partition_key(delivery, dimension) for delivery in lying})}"
            for dimension, lying in zip(dimensions, found, strict=True)
        ]
        raise SourceDataError("\n".join(told))
    return [
        [replace(d, allow=frozenset(allow)) for d in lying if not names or not names_of(d).isdisjoint(names)]
        for lying in found
    ]


def deliveries(
    dimension: Dimension, spark: SparkSession, *, names: Collection[str] = (), allow: Collection[str] = ()
) -> list[Delivery]:
    """The same for one dimension."""
    return deliveries_of_each([dimension], spark, names=names, allow=allow)[0]


def mark(delivery: Delivery) -> str:
    """When the file, or the folder of files, of a delivery last changed, and its size: another mark, another content.

    The time is the delivery's revision: what has another mark because it was replaced is a new edition of it too.
    """
    changed = from_micros(int(str(delivery.revision)))
    return f"{changed:%Y-%m-%dT%H:%M:%S.%fZ}, {size(Path(str(delivery.path)))} bytes"


def _paths(dimension: Dimension) -> str:
    folder = declaration_folder(dimension)
    channels = [channel for source in dimension.sources for _, channel in source.channels]
    return ", ".join(str(folder / channel.path) for channel in channels if channel.path) or "any path"


def _some(names: Collection[str]) -> str:
    shown = sorted(names)
    if len(shown) > 8:
        shown = [*shown[:4], "...", *shown[-4:]]
    return ", ".join(shown) or "none, as nothing lies there"
