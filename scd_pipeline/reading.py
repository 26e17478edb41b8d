"""Reading a dimension: its current rows, its history, the rows of any time, its batches and its quarantine.

What is returned can be collected, and turned into pandas, in every time zone: a window without an end ends in NULL,
not in the sentinel of year 9999, and a beginning on 0001-01-01 is NULL too. A dimension is given by its declaration,
or by the name of its table, which then tells by itself what it was made by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_
from pathlib import Path

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    BAD_REASON,
    BAD_ROW,
    BATCH,
    CHANNEL,
    CURRENT_FLAG,
    EFFECTIVE_AT,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    INFO,
    KIND,
    REVISION_RANK,
    SOURCE,
    col,
    readable_key,
)
from scd_pipeline.deliveries import instant
from scd_pipeline.delta.audit_table import AUDIT_SUFFIX, KEYS_SUFFIX, recorded_until, standing_transitions
from scd_pipeline.delta.fit import stored_declaration
from scd_pipeline.errors import SetupError
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.replay import build_versions
from scd_pipeline.spec import Dimension, Fact
from scd_pipeline.warehouse import Warehouse

LOG_SUFFIX, BATCHES_SUFFIX, QUARANTINE_SUFFIX = "_changes", "_batches", "_quarantine"
_STATE = "_state"
_COUNTS = ("rows", "bad_rows", "entities", "new", "changed", "closed")


def current(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """The last version of each entity that has not been deleted (S3); one row per entity without windows (S33).

    A change dated in the future makes its version current before it is in force: see `in_force`.
    Errors: SetupError if the table is not there.
    """
    shape = _shape(warehouse, dimension)
    rows = _rows(warehouse, shape)
    return _shown(rows.where(F.col(CURRENT_FLAG)) if shape.has_windows else rows, shape)


def history(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Every version; `effective_to` is NULL where a window has no end (S2).  Errors: SetupError."""
    shape = _shape(warehouse, dimension)
    return _shown(_rows(warehouse, shape), shape)


def as_of(
    warehouse: Warehouse, dimension: Dimension | str, time: datetime, *, known_at: datetime | None = None
) -> DataFrame:
    """The versions whose half-open window holds `time`, at most one per entity (S2); without windows, all rows.

    With `known_at` as the dimension was known at that moment, which the audit alone tells; the dimension is then
    given by its declaration. A time without a zone is UTC (S1).  Errors: SetupError.
    """
    shape = _shape(warehouse, dimension)
    rows = _rows(warehouse, shape) if known_at is None else known(warehouse, dimension, known_at)
    if shape.has_windows:
        moment = instant(time)
        begun = F.col(EFFECTIVE_FROM) <= moment
        rows = rows.where(begun & (_is_open(shape) | (F.col(EFFECTIVE_TO) > moment)))
    return _shown(rows, shape)


def known(warehouse: Warehouse, dimension: Dimension | str, moment: datetime) -> DataFrame:
    """The dimension's rows as they were known at a moment, rebuilt from the audit alone (S22).

    A moment without a zone is UTC.  Errors: SetupError if there is no audit yet, or no declaration is given.
    """
    if isinstance(dimension, str):
        raise SetupError(
            f"{dimension}: what was known at a past moment is rebuilt by the declaration; give the declared dimension "
            f"instead of its name (`scd as-of` finds it by --declarations)"
        )
    rows = _existing(warehouse, dimension.name + AUDIT_SUFFIX, dimension.name)
    told = standing_transitions(recorded_until(rows, instant(moment)), dimension)
    return build_versions(told, dimension, key_hash=warehouse.key_hash)


def audit(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """What happened to whom, when, by whom and why, and since when that is known (S21).  Errors: SetupError."""
    name = dimension if isinstance(dimension, str) else dimension.name
    return _existing(warehouse, name + AUDIT_SUFFIX, name)


def with_dimensions(warehouse: Warehouse, fact: Fact) -> DataFrame:
    """The facts with the attributes of their dimensions as they were at event time, by the stored keys (S23).

    Out: the fact's columns, and `<role>_<attribute>` of each role. A key that a later change of the dimension has taken
    away is resolved by the list of all keys until the fact is loaded again (S24).  Errors: SetupError.
    """
    rows = _existing(warehouse, fact.name, fact.name)
    for name, role in fact.roles:
        dimension, key = role.dimension, f"{name}_key"
        versions = _existing(warehouse, dimension.name, dimension.name)
        rows = _resolved(warehouse, rows, key, dimension, versions)
        told = [col(a).alias(f"{name}_{a}") for a in _attribute_columns(dimension)]
        there = versions.select(col(dimension.surrogate_key).alias("_there"), *told)
        rows = rows.join(there, col(key) == F.col("_there"), "left").drop("_there")
    return rows


def as_of_join(
    warehouse: Warehouse,
    rows: DataFrame,
    dimension: Dimension,
    *,
    time: str,
    keys: Sequence[str] | None = None,
    known_at: datetime | None = None,
) -> DataFrame:
    """Rows that store no surrogate key, with the attributes of an entity as they were at each row's time (S23).

    In: rows with the business key in `keys` (by default the dimension's own names) and a time.  Out: as many rows, with
    the surrogate key (-1 where nothing held) and `<dimension>_<attribute>`, NULL where nothing held; with `known_at` as
    was known at that moment.  Errors: SetupError.
    """
    if known_at is None:
        versions = _existing(warehouse, dimension.name, dimension.name)
    else:
        versions = known(warehouse, dimension, known_at)
    key = dimension.surrogate_key
    keyed = key_as_of(rows, versions, dimension, keys=keys or dimension.key_names, time=time, name=key)
    label = dimension.name.removeprefix("dim_")
    told = [col(name).alias(f"{label}_{name}") for name in _attribute_columns(dimension)]
    there = versions.select(col(key).alias("_there"), *told)
    return keyed.join(there, col(key) == F.col("_there"), "left").drop("_there")


def overlap(warehouse: Warehouse, left: Dimension, right: Dimension, *, on: Sequence[tuple[str, str]]) -> DataFrame:
    """The join of two histories: a row for each pair of versions that held at the same time, with the window of both.

    In: `on` pairs columns of the left dimension with columns of the right one, compared by `=`.  Out: the columns of
    both with the dimension's name before them, `effective_from` and `effective_to` of the overlap (NULL: no end).
    Errors: SetupError.
    """
    frames = []
    for side, dimension in enumerate((left, right)):
        rows = _rows(warehouse, _shape(warehouse, dimension))
        label = (
            dimension.name.removeprefix("dim_") if left.name != right.name else f"{'left' if side == 0 else 'right'}"
        )
        end = F.coalesce(F.col(EFFECTIVE_TO), F.lit(dimension.open_end).cast("timestamp"))
        frames.append(
            rows.select(
                F.col(EFFECTIVE_FROM).alias(f"_from_{side}"),
                end.alias(f"_to_{side}"),
                *[col(name).alias(f"_on_{side}_{i}") for i, name in enumerate(pair[side] for pair in on)],
                *[col(n).alias(f"{label}_{n}") for n in (*dimension.key_names, *_attribute_columns(dimension))],
            )
        )
    same = [F.col(f"_on_0_{i}") == F.col(f"_on_1_{i}") for i, _ in enumerate(on)]
    meets = [F.col("_from_0") < F.col("_to_1"), F.col("_from_1") < F.col("_to_0")]
    pairs = frames[0].join(frames[1], reduce(and_, [*same, *meets]))
    ends = F.least("_to_0", "_to_1")
    open_ends = [F.lit(dimension.open_end).cast("timestamp") for dimension in (left, right)]
    window = {EFFECTIVE_FROM: F.greatest("_from_0", "_from_1"), EFFECTIVE_TO: F.when(~ends.isin(*open_ends), ends)}
    return pairs.select(*[c for c in pairs.columns if not c.startswith("_")], *[c.alias(n) for n, c in window.items()])


def _attribute_columns(dimension: Dimension) -> list[str]:
    return [column for a in dimension.attributes for column in (a.name, *a.generated_columns)]


def _resolved(warehouse: Warehouse, rows: DataFrame, key: str, dimension: Dimension, versions: DataFrame) -> DataFrame:
    """The rows with keys that are there: for one that is not, that of the version that holds its beginning now."""
    keys = warehouse.table(dimension.name + KEYS_SUFFIX)
    if not dimension.has_windows or not keys.exists():
        return rows
    gone = keys.read().join(versions.select(col(dimension.surrogate_key)), dimension.surrogate_key, "left_anti")
    now = key_as_of(gone, versions, dimension, keys=dimension.key_names, time=EFFECTIVE_FROM, name="_now")
    pairs = F.broadcast(now.select(col(dimension.surrogate_key).alias("_old"), "_now"))
    resolved = rows.join(pairs, col(key) == F.col("_old"), "left")
    return resolved.withColumn(key, F.coalesce("_now", col(key))).drop("_old", "_now")


def in_force(warehouse: Warehouse, dimension: Dimension | str, now: datetime) -> DataFrame:
    """The versions of now, which the caller tells: nothing here asks the clock.  Errors: SetupError."""
    return as_of(warehouse, dimension, now)


def batches(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Every revision of every batch that was accepted, with its `state` (S34).

    Out: `batch`, `source`, `channel`, `delivery`, `revision`, `at`, `state` ("standing", "superseded" by a higher
    revision, or "withdrawn"), `rows`, `bad_rows`, `entities`, what it changed when it came in (`new`, `changed`,
    `closed`), `earliest` and `latest` business time, `run_id`.  Errors: SetupError.
    """
    name = dimension if isinstance(dimension, str) else dimension.name
    return _batches(_log(warehouse, name))


def quarantine(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """The rows that could not be taken (S26), those of superseded batches included.

    Out: `batch`, `state` of that batch, `at` (its time), `key` (the business key as text, as far as it could be read),
    `reason`, and `row`, the row as it came as JSON.  Errors: SetupError.
    """
    shape = _shape(warehouse, dimension)
    return _quarantine(_log(warehouse, shape.name), shape.key_names)


def key_names(warehouse: Warehouse, dimension: Dimension | str) -> tuple[str, ...]:
    """The columns of the business key.  Errors: SetupError."""
    return _shape(warehouse, dimension).key_names


def tables(warehouse: Warehouse) -> list[str]:
    """The names of the tables in the warehouse's folder, in order.

    Errors: SetupError if the folder is not local, as only Spark could list it.
    """
    if warehouse.schema:
        return sorted(row["tableName"] for row in warehouse.spark.sql(f"SHOW TABLES IN {warehouse.schema}").collect())
    if "://" in warehouse.path:
        raise SetupError(
            f"warehouse {warehouse.path}: the tables of a remote folder cannot be listed; "
            f"name them in SQL as delta.`{warehouse.path}/<table>`"
        )
    folder = Path(warehouse.path)
    found = [place.parent.name for place in folder.glob("*/_delta_log")] if folder.is_dir() else []
    return sorted(name for name in found if not name.startswith("_"))


def views(warehouse: Warehouse) -> list[str]:
    """The names that `register` gives: of each table, and of the batches and the quarantine of each dimension."""
    names = tables(warehouse)
    dimensions = [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]
    return sorted([*names, *(d + suffix for d in dimensions for suffix in (BATCHES_SUFFIX, QUARANTINE_SUFFIX))])


def register(warehouse: Warehouse, names: Iterable[str] | None = None) -> list[str]:
    """Make temporary views of the tables by their names, for SQL; of all in the folder, or of some of `views`.

    They are raw: an open window ends in the sentinel, which some zones cannot collect as a time.
    Out: the names of the views.  Errors: SetupError.
    """
    chosen = views(warehouse) if names is None else list(names)
    there = set(tables(warehouse))
    for name in chosen:
        frame = warehouse.table(name).read() if name in there else _derived(warehouse, name)
        frame.createOrReplaceTempView(name)
    return chosen


def _derived(warehouse: Warehouse, name: str) -> DataFrame:
    if name.endswith(BATCHES_SUFFIX):
        return batches(warehouse, name.removesuffix(BATCHES_SUFFIX))
    return quarantine(warehouse, name.removesuffix(QUARANTINE_SUFFIX))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What reading has to know of a dimension."""

    name: str
    key_names: tuple[str, ...]
    open_end: str
    has_windows: bool
    surrogate_key: str


def _shape(warehouse: Warehouse, dimension: Dimension | str) -> _Shape:
    if isinstance(dimension, Dimension):
        d = dimension
        return _Shape(d.name, d.key_names, d.open_end, d.has_windows, d.surrogate_key)
    table = warehouse.table(dimension)
    told = stored_declaration(table) if table.exists() else None
    if told is None:
        raise SetupError(
            f"{dimension}: no dimension of that name is in {warehouse.path}; "
            f"there is {', '.join(_dimensions(warehouse)) or 'none yet'}; load it first (`scd load`)"
        )
    keys = tuple(name for name, _ in told["key"])
    return _Shape(dimension, keys, told["open_end"], EFFECTIVE_TO in table.columns(), told["surrogate_key"])


def _dimensions(warehouse: Warehouse) -> list[str]:
    if "://" in warehouse.path:
        return []
    return [name.removesuffix(LOG_SUFFIX) for name in tables(warehouse) if name.endswith(LOG_SUFFIX)]


def _rows(warehouse: Warehouse, shape: _Shape) -> DataFrame:
    """The versions; reserved members are in the table for those who join facts, and are no versions (S23)."""
    return _existing(warehouse, shape.name, shape.name).where(~col(shape.surrogate_key).isin(list(RESERVED_KEYS)))


def _log(warehouse: Warehouse, name: str) -> DataFrame:
    return _existing(warehouse, name + LOG_SUFFIX, name)


def _existing(warehouse: Warehouse, name: str, dimension: str) -> DataFrame:
    table = warehouse.table(name)
    if not table.exists():
        raise SetupError(
            f"{dimension}: there is no table {name} in {warehouse.schema or warehouse.path}; "
            f"expected what a first load makes; load it first (`scd load`), or name another warehouse"
        )
    return table.read()


def _is_open(shape: _Shape) -> Column:
    return F.col(EFFECTIVE_TO) == F.lit(shape.open_end).cast("timestamp")


def _shown(rows: DataFrame, shape: _Shape) -> DataFrame:
    """The rows with no time that a zone could push out of the calendar."""
    if not shape.has_windows:
        return rows
    first_day = F.col(EFFECTIVE_FROM) < F.lit("0001-01-02 00:00:00").cast("timestamp")
    return rows.withColumns(
        {
            EFFECTIVE_FROM: F.when(~first_day, F.col(EFFECTIVE_FROM)),
            EFFECTIVE_TO: F.when(~_is_open(shape), F.col(EFFECTIVE_TO)),
        }
    )


def _batches(log: DataFrame) -> DataFrame:
    info = F.col(INFO)
    return log.where(F.col(KIND) == "batch").select(
        F.col(BATCH).alias("batch"),
        F.col(SOURCE).alias("source"),
        F.col(CHANNEL).alias("channel"),
        F.col("_delivery").alias("delivery"),
        F.col("_revision").alias("revision"),
        info["at"].alias("at"),
        _state().alias("state"),
        *[info[name].alias(name) for name in _COUNTS],
        info["earliest"].alias("earliest"),
        info["latest"].alias("latest"),
        info["run_id"].alias("run_id"),
    )


def _state() -> Column:
    revisions = Window.partitionBy(SOURCE, CHANNEL, "_delivery").orderBy(F.col(REVISION_RANK).desc())
    first = F.row_number().over(revisions) == 1
    return F.when(~first, "superseded").when(F.col(INFO)["withdrawn"], "withdrawn").otherwise("standing")


def _quarantine(log: DataFrame, key_names: Sequence[str]) -> DataFrame:
    """Bad rows are kept under the revision that first brought them; the last one of that content tells the state."""
    content = F.coalesce(F.nullif(F.col(INFO)["content_of"], F.lit("")), F.col(BATCH))
    told = log.where(F.col(KIND) == "batch").select(content.alias(BATCH), _state().alias(_STATE), REVISION_RANK)
    last = told.groupBy(BATCH).agg(F.max_by(_STATE, REVISION_RANK).alias(_STATE))
    bad = log.where(F.col(KIND) == "bad").join(F.broadcast(last), BATCH, "left")
    return bad.select(
        F.col(BATCH).alias("batch"),
        F.col(_STATE).alias("state"),
        F.col(EFFECTIVE_AT).alias("at"),
        readable_key(key_names).alias("key"),
        F.col(BAD_REASON).alias("reason"),
        F.col(BAD_ROW).alias("row"),
    )


__all__ = [
    "as_of",
    "as_of_join",
    "audit",
    "batches",
    "current",
    "history",
    "in_force",
    "key_names",
    "known",
    "overlap",
    "quarantine",
    "register",
    "tables",
    "views",
    "with_dimensions",
]
