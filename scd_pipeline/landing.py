"""Where declarations lie, where their deliveries lie, and which of them a load is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scd_pipeline.batch import from_micros
from scd_pipeline.errors import SourceDataError
from scd_pipeline.files import size
from scd_pipeline.spec import Dimension

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scd_pipeline.deliveries import Delivery

KINDS = ("changes", "audit", "keys")
"""The kinds of table beside dimensions and facts themselves; a table's name ends with its kind."""

EVERYTHING = "everything"
"""The partition of runs that take all that lies there; Dagster runs assets below partitioned ones only by partition."""

EXAMPLE = Path(__file__).parent.parent / "examples" / "congress"
"""The example of a clone; an installed wheel has none."""


def tables_of(name: str) -> tuple[str, ...]:
    """The tables that belong to a dimension or a fact: itself, and one of each kind."""
    return (name, *(f"{name}_{kind}" for kind in KINDS))


def declarations_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder or file of declarations that nobody named: $SCD_DECLARATIONS, else the example in a clone."""
    named = environ.get("SCD_DECLARATIONS")
    if named:
        return Path(named).absolute()
    return EXAMPLE if EXAMPLE.is_dir() else None


def schemas(environ: Mapping[str, str]) -> dict[str, Any]:
    """Where a shared catalog has the tables, as a Warehouse takes it; nothing where they lie in the warehouse's folder.

    $SCD_SCHEMA is `schema` or `catalog.schema`; $SCD_SCHEMA_CHANGES and the like name another for a kind of table.
    """
    kinds = {kind: environ.get(f"SCD_SCHEMA_{kind.upper()}", "") for kind in KINDS}
    return {
        "schema": environ.get("SCD_SCHEMA") or None,
        "schemas": {kind: schema for kind, schema in kinds.items() if schema},
    }


def declaration_folder(dimension: Dimension) -> Path:
    """The folder that relative paths of a declaration start from: that of its file, else the current one."""
    file = dimension.origin.rpartition(":")[0]
    return Path(file).absolute().parent if file else Path.cwd()


def files(dimension: Dimension) -> list[Delivery]:
    """What lies at the paths of the dimension's channels, as far as it is files."""
    from scd_pipeline.deliveries import discover  # Spark comes with it

    return discover(dimension, None, base=declaration_folder(dimension))


def file_signatures(dimension: Dimension) -> dict[str, str]:
    """Return, by partition key, the size and times of each file; no content is read.

    A file that vanishes meanwhile has none. Another signature need not be another content, unlike another `mark`.
    """
    from scd_pipeline.deliveries import Delivery, list_files

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
    from scd_pipeline.deliveries import discover

    found = [discover(dimension, spark, base=declaration_folder(dimension)) for dimension in dimensions]
    unknown = sorted(set(names) - {name for lying in found for delivery in lying for name in _names(delivery)})
    if unknown:
        told = [
            f"{dimension.name}: no delivery {', '.join(unknown)} at {_paths(dimension)}; "
            f"expected one of {_some({partition_key(delivery, dimension) for delivery in lying})}"
            for dimension, lying in zip(dimensions, found, strict=True)
        ]
        raise SourceDataError("\n".join(told))
    return [
        [replace(d, allow=frozenset(allow)) for d in lying if not names or not _names(d).isdisjoint(names)]
        for lying in found
    ]


def deliveries(
    dimension: Dimension, spark: SparkSession, *, names: Collection[str] = (), allow: Collection[str] = ()
) -> list[Delivery]:
    """The same for one dimension."""
    return deliveries_of_each([dimension], spark, names=names, allow=allow)[0]


def partition_key(delivery: Delivery, dimension: Dimension) -> str:
    """What tells a delivery from all others: its name, with the channel before it where there are several."""
    several = sum(len(source.channels) for source in dimension.sources) > 1
    return _with_channel(delivery) if several else delivery.name


def keys_meant(partition: str, there: Collection[Delivery], dimension: Dimension) -> list[str]:
    """The partition keys of the deliveries that a partition means: its own, or those that had its name before.

    A channel that comes or goes renames the keys of all others, and the partitions of the former names stay.
    """
    keys = {partition_key(delivery, dimension): delivery for delivery in there}
    if partition in keys:
        return [partition]
    return sorted(key for key, delivery in keys.items() if partition in _names(delivery))


def _names(delivery: Delivery) -> set[str]:
    """The names of a delivery: its own, and the same with its channel."""
    return {delivery.name, _with_channel(delivery)}


def _with_channel(delivery: Delivery) -> str:
    return f"{delivery.source}.{delivery.channel}.{delivery.name}"


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
