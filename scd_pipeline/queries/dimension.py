"""Queries of one dimension: current rows, history, rows as of a time, audit, batches and quarantine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.declaration.times import EARLIEST_TIME
from scd_pipeline.delta.audit_table import assigned_keys_query, current_transitions, recorded_until
from scd_pipeline.delta.generated_columns import computed_columns, to_stored_columns
from scd_pipeline.delta.history_table import newest_versions, table_versions, versions_query
from scd_pipeline.delta.schema import as_stored, to_declared_columns
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.expressions import readable_key, timestamp_literal
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.replay import rebuild_versions
from scd_pipeline.instants import to_micros

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
    rows = existing_rows(warehouse, table.name, table.name)
    return _versions(rows, table, table.is_current(rows.columns))


def history(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return every version; `effective_to` is NULL for the open end (S2).

    Raises:
        SetupError: The table does not exist.
    """
    table = queried_table(warehouse, dimension)
    return _versions(_all_versions(warehouse, table.name, table.closed_suffix), table)


def as_of(
    warehouse: Warehouse, dimension: Dimension | str, time: datetime, *, known_at: datetime | None = None
) -> DataFrame:
    """Return the versions in force at a business time, one for each entity that existed (S2).

    Without windows, return every row.

    Args:
        dimension: The declaration or the name; with `known_at` the declaration.
        time: The business time; UTC if it has no zone (S1).
        known_at: The system time; the rows are then rebuilt from the audit (S22). By default the present state.

    Raises:
        SetupError: The table does not exist.
        UsageError: `known_at` needs a declaration, not a name.
    """
    table = queried_table(warehouse, dimension)
    if known_at is not None:
        declared = _as_stored(warehouse, _declaration(dimension))
        rows = to_stored_columns(_rows_known_at(warehouse, declared, known_at), declared)
    else:
        rows = _all_versions(warehouse, table.name, table.closed_suffix)
    return _versions(rows, table, table.exists_at(rows.columns, f"TIMESTAMP_MICROS({to_micros(time)})"))


def rows_known_at(warehouse: Warehouse, dimension: Dimension | str, time: datetime) -> DataFrame:
    """Return the dimension's rows as known at a system time, rebuilt from the audit alone (S22).

    Args:
        dimension: The declaration; a name is rejected.
        time: The system time; UTC if it has no zone.

    Raises:
        SetupError: The audit does not exist.
        UsageError: `dimension` is a name.
    """
    return _rows_known_at(warehouse, _as_stored(warehouse, _declaration(dimension)), time)


def _rows_known_at(warehouse: Warehouse, dimension: Dimension, time: datetime) -> DataFrame:
    """Return the rows as known at a system time of a dimension with its stored attributes."""
    recorded = recorded_until(audit(warehouse, dimension), timestamp_literal(time))
    return rebuild_versions(current_transitions(recorded, dimension), dimension, key_hash=warehouse.key_hash)


def _as_stored(warehouse: Warehouse, dimension: Dimension) -> Dimension:
    """Return the declaration with what the table stores of its attributes.

    Raises:
        SetupError: The table does not exist, and the attributes are those that it stores.
    """
    stored = stored_declaration(warehouse, dimension.name)
    if stored is None and dimension.mirror is not None:
        raise SetupError("TABLE_NOT_LOADED", dimension.name, table=dimension.name, warehouse=warehouse.location)
    return as_stored(dimension, stored)


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
        (`new`, `changed`, `deleted`), the `earliest` and `latest` business time, the `actor` and `reason` of the whole
        delivery, as of a withdrawal, the `overridden` rules that rejected it, and `run_id`.

    Raises:
        SetupError: The change log does not exist.
    """
    name = dimension if isinstance(dimension, str) else dimension.name
    log = _log(warehouse, name)
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
        info["actor"].alias("actor"),
        info["reason"].alias("reason"),
        _overridden().alias("overridden"),
        info["run_id"].alias("run_id"),
    )


def _overridden() -> Column:
    """Return the overridden rules of a batch row, also of a log whose struct does not have the field yet."""
    stored = F.from_json(F.to_json(F.col(INFO)), "overridden array<string>")["overridden"]
    return F.coalesce(stored, F.array().cast("array<string>"))


def quarantine(warehouse: Warehouse, dimension: Dimension | str) -> DataFrame:
    """Return the bad rows, including those of superseded batches (S26).

    Returns:
        `batch`, the `state` of that batch, `at` (the row's time; NULL if it is outside the calendar), `key` (the
        business key as text, as far as it can be read), `reason`, and `row` (the delivered row as JSON).

    Raises:
        SetupError: The change log does not exist.
    """
    table = queried_table(warehouse, dimension)
    log = _log(warehouse, table.name)
    # The log stores bad rows under the first revision with their content; they have the state of the last one.
    content = F.coalesce(F.nullif(F.col(INFO)["content_of"], F.lit("")), F.col(BATCH))
    states = log.where(F.col(KIND) == BATCH_ROW).select(content.alias(BATCH), _state().alias(_STATE), REVISION_RANK)
    last = states.groupBy(BATCH).agg(F.max_by(_STATE, REVISION_RANK).alias(_STATE))
    bad = log.where(F.col(KIND) == BAD).join(last, BATCH, "left")
    return bad.select(
        F.col(BATCH).alias("batch"),
        F.col(_STATE).alias("state"),
        _in_calendar(F.col(EFFECTIVE_AT)).alias("at"),
        readable_key(table.key_names).alias("key"),
        F.col(BAD_REASON).alias("reason"),
        F.col(BAD_ROW).alias("row"),
    )


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """What queries need of a dimension."""

    name: str
    key_names: tuple[str, ...]
    surrogate_key: str
    column_layout: ColumnLayout
    closed_suffix: str = ""
    has_deleted_versions: bool = False

    @property
    def has_windows(self) -> bool:
        """Whether the table has windows."""
        return self.column_layout.has_windows

    def select_list(self, columns: Collection[str]) -> list[str]:
        """Return the SQL of the columns of version `v`, with NULL in place of an open end and the beginning of time."""
        limits = {self.column_layout.name(column): column for column in (EFFECTIVE_FROM, EFFECTIVE_TO)}
        open_ends = [self.column_layout.computed_open_end]
        values = {name: null_limit_sql(limits.get(name, ""), f"v.{quote_name(name)}", open_ends) for name in columns}
        return [f"{value} AS {quote_name(name)}" for name, value in values.items()]

    def is_version(self, condition: str = "true") -> str:
        """Return the condition that row `v` is not that of a reserved member (S23), together with another condition."""
        reserved = ", ".join(map(str, RESERVED_KEYS))
        return f"v.{quote_name(self.surrogate_key)} NOT IN ({reserved}) AND {condition}"

    def is_current(self, columns: Collection[str]) -> str:
        """Return the condition that version `v` is current and its entity exists; without windows every one is."""
        return self.exists(columns, self._computed(columns)[CURRENT_FLAG] if self.has_windows else "true")

    def exists_at(self, columns: Collection[str], moment: str) -> str:
        """Return the condition that version `v` is in force at a time and its entity exists."""
        return self.exists(columns, self.is_in_force(columns, moment))

    def is_in_force(self, columns: Collection[str], moment: str) -> str:
        """Return the condition that the half-open window of version `v`, perhaps without an end, has a time (S2)."""
        if not self.has_windows:
            return "true"
        start, end = self.window(columns)
        is_open = f"{end} = TIMESTAMP '{self.column_layout.computed_open_end}Z'"
        return f"{start} <= {moment} AND ({moment} < {end} OR {is_open})"

    def window(self, columns: Collection[str]) -> tuple[str, str]:
        """Return the start and the end of version `v`; a row without windows is in force at all times (S33)."""
        always = {
            EFFECTIVE_FROM: f"TIMESTAMP '{EARLIEST_TIME}Z'",
            EFFECTIVE_TO: f"TIMESTAMP '{self.column_layout.computed_open_end}Z'",
        }
        computed = {**always, **(self._computed(columns) if self.has_windows else {})}
        return computed[EFFECTIVE_FROM], computed[EFFECTIVE_TO]

    def exists(self, columns: Collection[str], condition: str = "true") -> str:
        """Return the condition that no delete opened version `v` (S18), together with another condition."""
        return f"{condition} AND NOT {self._computed(columns)[IS_DELETED]}" if self.has_deleted_versions else condition

    def _computed(self, columns: Collection[str]) -> dict[str, str]:
        """Return the SQL of each generated column of version `v`, whatever the table has in its place."""
        return computed_columns(self.column_layout, columns, "v.")

    @property
    def closed_tables(self) -> list[str]:
        """The name of its history table or its archive; none if it has neither."""
        return [self.name + self.closed_suffix] if self.closed_suffix else []


def queried_table(warehouse: Warehouse, dimension: Dimension | str) -> QueriedTable:
    """Return what queries need of a dimension, from its declaration or as stored with its table.

    Raises:
        SetupError: The dimension is passed as a name and is not loaded.
    """
    name = dimension if isinstance(dimension, str) else dimension.name
    declared = stored_declaration(warehouse, name) if isinstance(dimension, str) else dimension
    if declared is None:
        names = ", ".join(_loaded_names(warehouse)) or "a loaded dimension (none is loaded yet)"
        raise SetupError("DIMENSION_NOT_LOADED", name, warehouse=warehouse.location, names=names)
    return QueriedTable(
        name,
        declared.key_names,
        declared.surrogate_key,
        declared.column_layout,
        declared.closed_suffix,
        declared.has_deleted_versions,
    )


def _loaded_names(warehouse: Warehouse) -> list[str]:
    names = warehouse.tables() if warehouse.is_listed else []
    return [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]


def _versions(rows: DataFrame, table: QueriedTable, condition: str = "true") -> DataFrame:
    """Return the versions that meet a condition, without the rows of reserved members (S23)."""
    return rows.alias("v").where(table.is_version(condition)).selectExpr(*table.select_list(rows.columns))


def _all_versions(warehouse: Warehouse, name: str, closed_suffix: str) -> DataFrame:
    """Return the rows of a dimension or a fact, with those of its history table or archive (S11, S42).

    Args:
        warehouse: The warehouse.
        name: The dimension or the fact.
        closed_suffix: The suffix of the second table; empty if it has none.

    Raises:
        SetupError: The table does not exist.
        HighWaterMarkError: The second table was lost.
    """
    rows = existing_rows(warehouse, name, name)
    newest = newest_versions(warehouse, name) if closed_suffix else None
    return rows if newest is None else newest.rows


def _log(warehouse: Warehouse, name: str) -> DataFrame:
    return existing_rows(warehouse, name + LOG_SUFFIX, name)


def existing_rows(warehouse: Warehouse, name: str, location: str) -> DataFrame:
    """Return the rows of a table.

    Args:
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
    return to_declared_columns(_all_versions(warehouse, dimension.name, dimension.closed_suffix), dimension)


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


def _state() -> Column:
    revisions = Window.partitionBy(SOURCE, CHANNEL, "_delivery").orderBy(F.col(REVISION_RANK).desc())
    first = F.row_number().over(revisions) == 1
    return F.when(~first, "superseded").when(F.col(INFO)["withdrawn"], "withdrawn").otherwise("current")


def versions_source(warehouse: Warehouse, table: QueriedTable) -> str:
    """Return the SQL of the table of a dimension, or of its two tables as one."""
    if not table.closed_suffix:
        return warehouse.table(table.name).identifier
    commit = warehouse.table(table.name).last_commit_or_zero()
    return versions_query(warehouse, table.name, table_versions(warehouse, commit, [table.name + table.closed_suffix]))


def keys_query(warehouse: Warehouse, table: QueriedTable, source: str, columns: Collection[str]) -> str:
    """Return the SQL of every surrogate key that was ever assigned, with its business key and `effective_from`.

    Args:
        table: The dimension.
        source: Its `versions_source`.
        columns: The columns of its table.
    """
    start, _ = table.window(columns)
    names = ", ".join(f"v.{quote_name(name)}" for name in (table.surrogate_key, *table.key_names))
    existing = f"SELECT {names}, {start} AS {EFFECTIVE_FROM} FROM {source} AS v WHERE {table.is_version()}"
    removed = removed_keys_query(warehouse, table, source)
    return existing if removed is None else f"{existing} UNION ALL {removed}"


def removed_keys_query(warehouse: Warehouse, table: QueriedTable, source: str) -> str | None:
    """Return the SQL of the surrogate keys of versions that the dimension does not have any more.

    It has the columns of `keys_query`. None without an audit.
    """
    stored = stored_declaration(warehouse, table.name)
    assigned = stored and assigned_keys_query(warehouse.table(table.name + AUDIT_SUFFIX), stored)
    if not assigned:
        return None
    key = quote_name(table.surrogate_key)
    return f"SELECT DISTINCT a.* FROM ({assigned}) AS a LEFT ANTI JOIN {source} AS v ON v.{key} = a.{key}"
