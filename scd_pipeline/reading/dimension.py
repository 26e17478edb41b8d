"""Reading one dimension: its current rows, its history, the rows of any time, its batches and its quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

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
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.audit_table import current_transitions, recorded_until
from scd_pipeline.delta.schema import stored_declaration, to_declared_columns, with_former_names
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.expressions import col, readable_key, timestamp_literal
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.replay import rebuild_versions

BATCHES_SUFFIX, QUARANTINE_SUFFIX = "_batches", "_quarantine"
_STATE = "_state"
_COUNTS = ("rows", "bad_rows", "entities", "new", "changed", "closed")


def current(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """The last version of each entity that has not been deleted (S3); one row per entity without windows (S33).

    A change dated in the future makes its version current before it is in force: see `in_force`.
    Errors: SetupError if the table is not there.
    """
    shape = shape_of(warehouse, dimension)
    rows = versions(warehouse, shape)
    return _shown(rows.where(F.col(CURRENT_FLAG)) if shape.has_windows else rows, shape)


def history(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Every version; `effective_to` is NULL where a window has no end (S2).  Errors: SetupError."""
    shape = shape_of(warehouse, dimension)
    return _shown(versions(warehouse, shape), shape)


def as_of(
    warehouse: Warehouse, dimension: Dimension | str, time: datetime, *, known_at: datetime | None = None
) -> DataFrame:
    """The versions whose half-open window holds `time`, at most one per entity (S2); without windows, all rows.

    With `known_at` as the dimension was known at that moment, which the audit alone tells; the dimension is then
    given by its declaration. A time without a zone is UTC (S1).  Errors: SetupError.
    """
    shape = shape_of(warehouse, dimension)
    rows = versions(warehouse, shape) if known_at is None else known(warehouse, dimension, known_at)
    if shape.has_windows:
        moment = timestamp_literal(time)
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
    rows = audit(warehouse, dimension)
    dimension = with_former_names(dimension, stored_declaration(warehouse.table(dimension.name)))
    told = current_transitions(recorded_until(rows, timestamp_literal(moment)), dimension)
    return rebuild_versions(told, dimension, key_hash=warehouse.key_hash)


def audit(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """What happened to whom, when, by whom and why, and since when that is known (S21).  Errors: SetupError."""
    name = dimension if isinstance(dimension, str) else dimension.name
    if warehouse.table(name).exists() and not warehouse.table(name + AUDIT_SUFFIX).exists():
        raise SetupError(
            f"{name}: there is no table {name + AUDIT_SUFFIX} in {warehouse.place}; expected what `scd load` and "
            f"`load_and_record` make for a dimension, which `load` alone does not; a fact has no audit, but its "
            f"deliveries in {name + BATCHES_SUFFIX}"
        )
    return existing(warehouse, name + AUDIT_SUFFIX, name)


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

    Out: `batch`, `state` of that batch, `at` (its time; NULL for one outside the calendar), `key` (the business key as
    text, as far as it could be read), `reason`, and `row`, the row as it came as JSON.  Errors: SetupError.
    """
    shape = shape_of(warehouse, dimension)
    return _quarantine(_log(warehouse, shape.name), shape.key_names)


def key_names(warehouse: Warehouse, dimension: Dimension | str) -> tuple[str, ...]:
    """The columns of the business key.  Errors: SetupError."""
    return shape_of(warehouse, dimension).key_names


@dataclass(frozen=True, slots=True)
class Shape:
    """What reading has to know of a dimension."""

    name: str
    key_names: tuple[str, ...]
    open_end: str
    has_windows: bool
    surrogate_key: str


def shape_of(warehouse: Warehouse, dimension: Dimension | str) -> Shape:
    if isinstance(dimension, Dimension):
        d = dimension
        return Shape(d.name, d.key_names, d.open_end, d.has_windows, d.surrogate_key)
    table = warehouse.table(dimension)
    told = stored_declaration(table) if table.exists() else None
    if told is None:
        raise SetupError(
            f"{dimension}: no dimension of that name is in {warehouse.place}; "
            f"there is {', '.join(_known_names(warehouse)) or 'none yet'}; load it first (`scd load`)"
        )
    keys = tuple(name for name, _ in told["key"])
    return Shape(dimension, keys, told["open_end"], EFFECTIVE_TO in table.columns(), told["surrogate_key"])


def _known_names(warehouse: Warehouse) -> list[str]:
    names = warehouse.tables() if warehouse.is_listed else []
    return [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]


def versions(warehouse: Warehouse, shape: Shape) -> DataFrame:
    """The versions; reserved members are in the table for those who join facts, and are no versions (S23)."""
    return existing(warehouse, shape.name, shape.name).where(~col(shape.surrogate_key).isin(list(RESERVED_KEYS)))


def _log(warehouse: Warehouse, name: str) -> DataFrame:
    return existing(warehouse, name + LOG_SUFFIX, name)


def existing(warehouse: Warehouse, name: str, dimension: str) -> DataFrame:
    table = warehouse.table(name)
    if not table.exists():
        raise SetupError(
            f"{dimension}: there is no table {name} in {warehouse.place}; "
            f"expected what a first load makes; load it first (`scd load`), or name another warehouse"
        )
    return table.read()


def declared(warehouse: Warehouse, dimension: Dimension) -> DataFrame:
    """The table of a dimension, or of a fact as one, with every column that is declared.  Errors: SetupError."""
    return to_declared_columns(existing(warehouse, dimension.name, dimension.name), dimension)


def _is_open(shape: Shape) -> Column:
    return F.col(EFFECTIVE_TO) == F.lit(shape.open_end).cast("timestamp")


def _shown(rows: DataFrame, shape: Shape) -> DataFrame:
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


def _in_calendar(time: Column) -> Column:
    """The time; NULL for one outside the years 1 to 9999, or that a zone could push there: it cannot be collected."""
    first, end = (F.lit(day).cast("timestamp") for day in ("0001-01-02 00:00:00", "9999-12-31 00:00:00"))
    return F.when((time >= first) & (time < end), time)


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
        _in_calendar(F.col(EFFECTIVE_AT)).alias("at"),
        readable_key(key_names).alias("key"),
        F.col(BAD_REASON).alias("reason"),
        F.col(BAD_ROW).alias("row"),
    )
