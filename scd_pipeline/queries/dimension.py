"""Queries of one dimension: current rows, history, rows as of a time, audit, batches and quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    BAD,
    BAD_REASON,
    BAD_ROW,
    BATCH,
    BATCH_ROW,
    CHANNEL,
    CURRENT_FLAG,
    EFFECTIVE_AT,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    INFO,
    IS_DELETED,
    KIND,
    REVISION_RANK,
    SOURCE,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.column_names import ColumnLayout
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.audit_table import current_transitions, recorded_until
from scd_pipeline.delta.generated_columns import computed_columns, to_stored_columns
from scd_pipeline.delta.history_table import newest_versions
from scd_pipeline.delta.schema import to_declared_columns, with_former_names
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.expressions import col, quote_name, readable_key, timestamp_literal
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.replay import rebuild_versions

BATCHES_SUFFIX, QUARANTINE_SUFFIX = "_batches", "_quarantine"
_STATE = "_state"
_COUNTS = ("rows", "bad_rows", "entities", "new", "changed", "deleted")
_EARLIEST_PORTABLE_TIME = "0001-01-02 00:00:00"
"""Earlier times leave the calendar in some time zones."""


def current(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return the current version of each entity that exists (S3); without windows, every row (S33).

    A change dated in the future is current before it is in force; see `in_force`.

    Raises:
        SetupError: The table does not exist.
    """
    table = queried_table(warehouse, dimension)
    rows = _without_reserved_members(existing_rows(warehouse, table.name, table.name), table)
    if table.has_windows:
        rows = without_deleted(rows, table).where(_computed(rows, table, CURRENT_FLAG))
    return _null_limits(rows, table)


def history(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return every version; `effective_to` is NULL for the open end (S2).

    Raises:
        SetupError: The table does not exist.
    """
    table = queried_table(warehouse, dimension)
    return _null_limits(versions(warehouse, table), table)


def as_of(
    warehouse: Warehouse, dimension: Dimension | str, time: datetime, *, known_at: datetime | None = None
) -> DataFrame:
    """Return the versions in force at a business time, one for each entity that existed (S2).

    Without windows, return every row.

    Args:
        warehouse: The warehouse.
        dimension: The declaration or the name; with `known_at` the declaration.
        time: The business time; UTC if it has no zone (S1).
        known_at: The system time; the rows are then rebuilt from the audit (S22). By default the present state.

    Raises:
        SetupError: The table does not exist.
        UsageError: `known_at` needs a declaration, not a name.
    """
    table = queried_table(warehouse, dimension)
    if known_at is not None:
        rows = to_stored_columns(rows_known_at(warehouse, dimension, known_at), _declaration(dimension))
    else:
        rows = versions(warehouse, table)
    if table.has_windows:
        moment = timestamp_literal(time)
        begun = _computed(rows, table, EFFECTIVE_FROM) <= moment
        rows = without_deleted(rows, table).where(
            begun & (_is_open(rows, table) | (_computed(rows, table, EFFECTIVE_TO) > moment))
        )
    return _null_limits(rows, table)


def rows_known_at(warehouse: Warehouse, dimension: Dimension | str, time: datetime) -> DataFrame:
    """Return the dimension's rows as known at a system time, rebuilt from the audit alone (S22).

    Args:
        warehouse: The warehouse.
        dimension: The declaration; a name is rejected.
        time: The system time; UTC if it has no zone.

    Raises:
        SetupError: The audit does not exist.
        UsageError: `dimension` is a name.
    """
    dimension = _declaration(dimension)
    rows = audit(warehouse, dimension)
    dimension = with_former_names(dimension, stored_declaration(warehouse, dimension.name))
    transitions = current_transitions(recorded_until(rows, timestamp_literal(time)), dimension)
    return rebuild_versions(transitions, dimension, key_hash=warehouse.key_hash)


def _declaration(dimension: Dimension | str) -> Dimension:
    """Return the declaration.

    Raises:
        UsageError: It is a name.
    """
    if isinstance(dimension, str):
        raise UsageError("KNOWN_AT_NEEDS_DECLARATION", dimension)
    return dimension


def audit(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return the audit: the transitions of all entities, with the time at which each was recorded (S21).

    Raises:
        SetupError: The audit does not exist.
    """
    name = dimension if isinstance(dimension, str) else dimension.name
    if warehouse.table(name).exists() and not warehouse.table(name + AUDIT_SUFFIX).exists():
        raise SetupError(
            "AUDIT_MISSING",
            name,
            table=name + AUDIT_SUFFIX,
            warehouse=warehouse.location,
            batches=name + BATCHES_SUFFIX,
        )
    return existing_rows(warehouse, name + AUDIT_SUFFIX, name)


def batches(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return every accepted batch, with its state (S34).

    Returns:
        `batch`, `source`, `channel`, `delivery`, `revision`, `at`, `state` ("current" if it is in effect, "superseded"
        by a higher revision, or "withdrawn"), `rows`, `bad_rows`, `entities`, what the batch changed when it was loaded
        (`new`, `changed`, `deleted`), the `earliest` and `latest` business time, and `run_id`.

    Raises:
        SetupError: The change log does not exist.
    """
    name = dimension if isinstance(dimension, str) else dimension.name
    return _batches(_log(warehouse, name))


def quarantine(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return the bad rows, including those of superseded batches (S26).

    Returns:
        `batch`, the `state` of that batch, `at` (the row's time; NULL if it is outside the calendar), `key` (the
        business key as text, as far as it can be read), `reason`, and `row` (the delivered row as JSON).

    Raises:
        SetupError: The change log does not exist.
    """
    table = queried_table(warehouse, dimension)
    return _quarantine(_log(warehouse, table.name), table.key_names)


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """What queries need of a dimension."""

    name: str
    key_names: tuple[str, ...]
    surrogate_key: str
    column_layout: ColumnLayout
    history_table: bool = False
    has_deleted_versions: bool = False

    @property
    def has_windows(self) -> bool:
        """Whether the table has windows."""
        return self.column_layout.has_windows


def queried_table(warehouse: Warehouse, dimension: Dimension | str) -> QueriedTable:
    """Return what queries need of a dimension, from its declaration or as stored with its table.

    Raises:
        SetupError: The dimension is passed as a name and is not loaded.
    """
    if isinstance(dimension, Dimension):
        return QueriedTable(
            dimension.name,
            dimension.key_names,
            dimension.surrogate_key,
            dimension.column_layout,
            dimension.history_table,
            dimension.has_deleted_versions,
        )
    stored = stored_declaration(warehouse, dimension)
    if stored is None:
        names = ", ".join(_loaded_names(warehouse)) or "a loaded dimension (none is loaded yet)"
        raise SetupError("DIMENSION_NOT_LOADED", dimension, warehouse=warehouse.location, names=names)
    return QueriedTable(
        dimension,
        stored.key_names,
        stored.surrogate_key,
        stored.column_layout,
        stored.history_table,
        stored.has_deleted_versions,
    )


def _loaded_names(warehouse: Warehouse) -> list[str]:
    names = warehouse.tables() if warehouse.is_listed else []
    return [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]


def versions(warehouse: Warehouse, table: QueriedTable) -> DataFrame:
    """Return the versions, without the rows of reserved members (S23)."""
    return _without_reserved_members(_all_versions(warehouse, table.name, table.history_table), table)


def _without_reserved_members(rows: DataFrame, table: QueriedTable) -> DataFrame:
    return rows.where(~col(table.surrogate_key).isin(list(RESERVED_KEYS)))


def _all_versions(warehouse: Warehouse, name: str, history_table: bool) -> DataFrame:
    """Return the rows of a dimension or a fact, with those of the dimension's history table if it has one (S11).

    Raises:
        SetupError: The table does not exist.
        HighWaterMarkError: The history table was lost.
    """
    rows = existing_rows(warehouse, name, name)
    newest = newest_versions(warehouse, name) if history_table else None
    return rows if newest is None else newest.rows


def _log(warehouse: Warehouse, name: str) -> DataFrame:
    return existing_rows(warehouse, name + LOG_SUFFIX, name)


def existing_rows(warehouse: Warehouse, name: str, location: str) -> DataFrame:
    """Return the rows of a table.

    Args:
        warehouse: The warehouse.
        name: The name of the table.
        location: The dimension or the fact to which it belongs, for the message of the error.

    Raises:
        SetupError: The table does not exist.
    """
    table = warehouse.table(name)
    if not table.exists():
        raise SetupError("TABLE_NOT_LOADED", location, table=name, warehouse=warehouse.location)
    return table.read()


def declared_rows(warehouse: Warehouse, dimension: Dimension) -> DataFrame:
    """Return the rows of a dimension, or of `Fact.as_dimension()`, with every declared column.

    Raises:
        SetupError: The table does not exist.
    """
    return to_declared_columns(_all_versions(warehouse, dimension.name, dimension.history_table), dimension)


def without_deleted(rows: DataFrame, table: QueriedTable) -> DataFrame:
    """Return the rows without the versions that deletes opened, if any do (S18)."""
    return rows.where(~_computed(rows, table, IS_DELETED)) if table.has_deleted_versions else rows


def _computed(rows: DataFrame, table: QueriedTable, column: str) -> Column:
    """Return a generated column, whatever the table has in its place."""
    return F.expr(computed_columns(table.column_layout, rows.columns)[column])


def _is_open(rows: DataFrame, table: QueriedTable) -> Column:
    return _computed(rows, table, EFFECTIVE_TO) == F.lit(table.column_layout.computed_open_end).cast("timestamp")


def _null_limits(rows: DataFrame, table: QueriedTable) -> DataFrame:
    """Replace the open end and the beginning of time by NULL: some time zones would move them out of the calendar."""
    if not table.has_windows:
        return rows
    names = {column: table.column_layout.required_name(column) for column in (EFFECTIVE_FROM, EFFECTIVE_TO)}
    open_ends = [table.column_layout.computed_open_end]
    limits = {name: null_limit_sql(column, quote_name(name), open_ends) for column, name in names.items()}
    return rows.withColumns({name: F.expr(value) for name, value in limits.items()})


def null_limit_sql(column: str, value: str, open_ends: Sequence[str]) -> str:
    """Return the SQL of a value, with NULL in place of the beginning of time and of an open end.

    Args:
        column: `effective_from` or `effective_to`, whose values are replaced, or any other column.
        value: The SQL of a value of the column.
        open_ends: The open ends of the dimensions whose windows the value limits.
    """
    if column == EFFECTIVE_FROM:
        return f"CASE WHEN {value} >= TIMESTAMP '{_EARLIEST_PORTABLE_TIME}Z' THEN {value} END"
    if column == EFFECTIVE_TO:
        ends = ", ".join(f"TIMESTAMP '{open_end}Z'" for open_end in open_ends)
        return f"CASE WHEN {value} NOT IN ({ends}) THEN {value} END"
    return value


def _in_calendar(time: Column) -> Column:
    """Return the time, or NULL if some time zone would move it out of the years 1 to 9999: it cannot be collected."""
    first, end = (F.lit(day).cast("timestamp") for day in (_EARLIEST_PORTABLE_TIME, "9999-12-31 00:00:00"))
    return F.when((time >= first) & (time < end), time)


def _batches(log: DataFrame) -> DataFrame:
    info = F.col(INFO)
    return log.where(F.col(KIND) == BATCH_ROW).select(
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
    return F.when(~first, "superseded").when(F.col(INFO)["withdrawn"], "withdrawn").otherwise("current")


def _quarantine(log: DataFrame, key_names: Sequence[str]) -> DataFrame:
    """Return the bad rows with the state of the last revision that has the same content.

    The log stores bad rows under the first revision with their content.
    """
    content = F.coalesce(F.nullif(F.col(INFO)["content_of"], F.lit("")), F.col(BATCH))
    states = log.where(F.col(KIND) == BATCH_ROW).select(content.alias(BATCH), _state().alias(_STATE), REVISION_RANK)
    last = states.groupBy(BATCH).agg(F.max_by(_STATE, REVISION_RANK).alias(_STATE))
    bad = log.where(F.col(KIND) == BAD).join(last, BATCH, "left")
    return bad.select(
        F.col(BATCH).alias("batch"),
        F.col(_STATE).alias("state"),
        _in_calendar(F.col(EFFECTIVE_AT)).alias("at"),
        readable_key(key_names).alias("key"),
        F.col(BAD_REASON).alias("reason"),
        F.col(BAD_ROW).alias("row"),
    )
