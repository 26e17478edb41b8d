"""Build entity versions from change records.

Late, duplicate, delete and return records share one code path, because all change records of an entity are sorted by
position first and their order of arrival is not used. The steps of `build_timeline` are:

1. `effective_records`: keep the records that have an effect, which resolves presence (S4);
2. `with_running_state`: add the state of the entity after each record;
3. `last_state_per_time`: keep the state after all records of one time (S5);
4. `build_versions`: open a version where the visible state differs from the one before it.

Example: an entity with the type 2 attribute `city`.

    records                      states                  versions
    1 Jan  upsert  city=Bonn     1 Jan  exists, Bonn     Bonn  [1 Jan, 3 Jan)
    2 Jan  upsert  city=Bonn     2 Jan  exists, Bonn
    3 Jan  upsert  city=Kiel     3 Jan  exists, Kiel     Kiel  [3 Jan, 4 Jan)
    4 Jan  delete                4 Jan  does not exist
    6 Jan  upsert  (no city)     6 Jan  exists, Kiel     Kiel  [6 Jan, open end)
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    BATCH,
    CHANGE_REASON,
    CHANGE_SOURCE,
    CORRELATION_ID,
    CURRENT_FLAG,
    DEFAULT_DELETE_REASON,
    DEFAULT_REASON,
    DELETE,
    DELETED_AT,
    EFFECTIVE_AT,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    IS_DELETED,
    KIND,
    LAST_UPDATED,
    LOAD_RUN_ID,
    REASON,
    ROW_AT,
    ROW_SEQUENCE,
    SOURCE,
    UPSERT,
    VERSION,
    VERSION_STATE,
    attribute_types,
)
from scd_pipeline.declaration import Dimension, ScdType
from scd_pipeline.declaration.change_types import INSERT, LOGICAL_DELETE, UPDATE
from scd_pipeline.expressions import col, delivery_id, to_comparable, with_columns
from scd_pipeline.history.attribute_scopes import IN_SCOPE_BEFORE
from scd_pipeline.history.attribute_values import (
    LAST_CHANGE,
    has_latest_in_version,
    last_change_in_version,
    value_changes,
    values_before_end,
    version_values,
    with_entity_values,
    with_latest_in_version,
)
from scd_pipeline.history.existence import (
    ASSERTED_BEFORE,
    EXISTED_BEFORE,
    SnapshotKinds,
    is_deletion,
    is_presence,
    with_existence,
    with_presence,
)
from scd_pipeline.history.keys import KeyHash, hash_64, surrogate_key
from scd_pipeline.history.row_windows import RowWindow, RowWindows
from scd_pipeline.history.schema import beginning, dimension_columns, open_end, version_start, with_begin_value

EXISTS = "_exists"
VISIBLE = "_visible"
OPENED_BY = "_opened_by"
_END = "_end"


def build_timeline(
    records: DataFrame,
    dimension: Dimension,
    *,
    kinds: SnapshotKinds,
    has_one_record_per_entity: bool = False,
    key_hash: KeyHash = hash_64,
) -> DataFrame:
    """Return the versions of every entity in `records`.

    Args:
        records: All change records (`differences`) in effect, of every source, of each entity that occurs.
        dimension: The declaration.
        kinds: The kinds of the snapshots that they are of.
        has_one_record_per_entity: Whether every entity has exactly one of them.
        key_hash: The hash of surrogate keys.

    Returns:
        The rows of the dimension with the columns of `dimension_columns`, in that order. Entities that never existed
        have no row. NULL in a type 2 attribute is a value like any other (S8).
    """
    windows = RowWindows(dimension, has_one_record_per_entity=has_one_record_per_entity)
    states = with_running_state(effective_records(records, dimension, windows, kinds), dimension, windows)
    return build_versions(last_state_per_time(states, windows), dimension, windows, key_hash=key_hash)


def effective_records(records: DataFrame, dimension: Dimension, windows: RowWindows, kinds: SnapshotKinds) -> DataFrame:
    """Return the upserts and deletes that have an effect: the only one of an entity has."""
    rows = records.where(F.col(KIND).isin(UPSERT, DELETE))
    if kinds.are_plain or windows.has_one_record_per_entity:
        return rows
    return _resolve_presence(rows, dimension, windows, kinds)


def _resolve_presence(rows: DataFrame, dimension: Dimension, windows: RowWindows, kinds: SnapshotKinds) -> DataFrame:
    """Resolve the presence and the absences that snapshots assert at their own time (S4).

    An entity that is present but would be deleted returns with the values of its row. The absence of an entity whose
    existence had not been asserted before, or that belonged to another scope, is dropped.
    """
    rows, everything = with_presence(rows, has_row_times=kinds.has_row_times), F.lit(True)
    rows = kinds.scopes.with_scope_before(rows, dimension, windows.rows_before(), everything)
    states = with_existence(rows, windows.rows_before(), everything)
    returns = is_presence() & ~F.col(EXISTED_BEFORE)
    return (
        states.where((F.col(KIND) == UPSERT) | returns | is_deletion())
        .withColumn(KIND, F.when(returns, UPSERT).otherwise(F.col(KIND)))
        .drop(EXISTED_BEFORE, ASSERTED_BEFORE, IN_SCOPE_BEFORE, ROW_AT, ROW_SEQUENCE)
    )


def with_running_state(rows: DataFrame, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Add the state of the entity after each record.

    Only the existence source creates and deletes entities (S30). An attribute has the value that was provided last,
    also across a delete (S18).

    Returns:
        The rows with every attribute as of then, `_exists`, `_visible` (`visible_state`), and `_opened_by`: the origin
        of the last record that changed the visible state. A record that repeats the state is never that record, so
        that the result is the same whether or not the log stores it.
    """
    window = windows.by_position()
    is_decisive = F.col(SOURCE) == dimension.existence_source.name
    exists = F.when(is_decisive, F.col(KIND) == UPSERT)
    states = rows.withColumns(
        {
            EXISTS: F.coalesce(window.last(exists), F.lit(False)),
            **{name: window.last(F.when(F.col(KIND) == UPSERT, col(name))) for name in dimension.attribute_names},
        }
    ).withColumn(VISIBLE, visible_state(dimension))
    changed = ~F.col(VISIBLE).eqNullSafe(window.lag(F.col(VISIBLE)))
    return states.withColumn("_changed", changed).withColumn(
        OPENED_BY, window.last(F.when(F.col("_changed"), record_origin()))
    )


def visible_state(dimension: Dimension) -> Column:
    """Return the values that open a version when they change: those of types 2 and 6.

    NULL while the entity does not exist.
    """
    types = attribute_types(dimension)
    versioned = dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID)
    values = [to_comparable(col(a.name)["v"], types[a.name]).alias(f"v{i}") for i, a in enumerate(versioned)]
    return F.when(F.col(EXISTS), F.struct(F.lit(True).alias("exists"), *values))


def record_origin() -> Column:
    """Return source, delivery, reason, actor and correlation id of a record.

    The delivery is named without its revision, because a revision with the same content must not change any row
    (S13, S14, S34).
    """
    return F.struct(
        delivery_id(BATCH).alias("delivery"),
        F.col(SOURCE).alias("source"),
        F.col(REASON).alias("reason"),
        F.col(ACTOR).alias("actor"),
        F.col(CORRELATION_ID).alias("correlation_id"),
    )


def last_state_per_time(states: DataFrame, windows: RowWindows) -> DataFrame:
    """Return the state after all records of one time; states between them have no duration (S5)."""
    next_time = windows.by_position().lead(F.col(EFFECTIVE_AT))
    return states.withColumn("_next", next_time).where(F.col("_next").isNull() | (F.col("_next") > F.col(EFFECTIVE_AT)))


def build_versions(
    states: DataFrame, dimension: Dimension, windows: RowWindows, *, key_hash: KeyHash = hash_64
) -> DataFrame:
    """Return the versions that follow from states.

    Args:
        states: One row per entity and time of change: the business key, `_effective_at`, `_exists`, `_visible`,
            `_opened_by`, and each attribute, wrapped, as of that time.
        dimension: The declaration.
        windows: The windows over them.
        key_hash: The hash of surrogate keys.

    Returns:
        The rows of the dimension, as `build_timeline` does.
    """
    versions = open_and_close(with_entity_values(states, dimension, windows), dimension, windows)
    if not dimension.has_windows:
        versions = one_row_per_entity(versions, dimension, windows)
    keyed = versions.withColumn(dimension.surrogate_key, surrogate_key(dimension, key_hash))
    return keyed.select(*[col(name) for name in dimension_columns(dimension)])


def open_and_close(states: DataFrame, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Return numbered versions with half-open windows (S2).

    Where the entity did not exist there are gaps, or versions with `is_deleted` if a delete opens one (S18).
    """
    window = windows.by_time()
    if has_latest_in_version(dimension):
        states = with_latest_in_version(states, dimension, windows)
    states = with_begin_value(states, dimension, window)
    changes = ~F.col(VISIBLE).eqNullSafe(window.lag(F.col(VISIBLE)))
    boundaries = states.withColumn("_is_boundary", changes).where(F.col("_is_boundary"))
    versions = boundaries.withColumn(_END, window.lead(F.col(EFFECTIVE_AT)))
    last_change = F.greatest(F.col(EFFECTIVE_AT), F.col(LAST_CHANGE))
    if has_latest_in_version(dimension):
        versions = versions.withColumns(values_before_end(F.col(_END).isNull(), window))
        last_change = F.greatest(last_change, last_change_in_version())
    if dimension.has_version_state:
        versions = versions.withColumn(VERSION_STATE, version_state(dimension, window))
    if not dimension.has_deleted_versions:
        versions = versions.where(F.col(EXISTS))
    versions = with_columns(versions, value_changes(dimension, window))
    numbered = versions.withColumn(VERSION, window.row_number().cast("int"))
    change_time = F.col(EFFECTIVE_AT)
    default_reason = F.when(F.col(EXISTS), DEFAULT_REASON).otherwise(DEFAULT_DELETE_REASON)
    return numbered.withColumns(
        {
            EFFECTIVE_FROM: version_start(change_time, dimension),
            EFFECTIVE_TO: F.coalesce(F.col(_END), open_end(dimension)),
            CURRENT_FLAG: F.col(_END).isNull(),
            **_deleted_flag(dimension),
            CHANGE_REASON: F.coalesce(F.col(OPENED_BY)["reason"], default_reason),
            CHANGE_SOURCE: F.col(OPENED_BY)["source"],
            LOAD_RUN_ID: F.col(OPENED_BY)["delivery"],
            LAST_UPDATED: last_change,
            **version_values(dimension, window),
        }
    )


def _deleted_flag(dimension: Dimension) -> dict[str, Column]:
    """Return `is_deleted`, if deletes open versions; otherwise an attribute may have the name, in any case."""
    return {IS_DELETED: ~F.col(EXISTS)} if dimension.has_deleted_versions else {}


def version_state(dimension: Dimension, window: RowWindow) -> Column:
    """Return the state of a version: that of the last transition that opened or closed it.

    A current version is new if the entity did not exist before, and otherwise changed. A closed one is changed if the
    next version follows without a gap, and deleted if the entity was deleted at its end. A version that a delete opened
    is deleted.

    Args:
        dimension: The declaration.
        window: The window over the states in which existence or values differ from those before, with `_end`.
    """
    new, changed, deleted = (F.lit(dimension.version_states[name]) for name in (INSERT, UPDATE, LOGICAL_DELETE))
    opened = F.when(window.lag(F.col(EXISTS)), changed).otherwise(new)
    closed = F.when(window.lead(F.col(EXISTS)), changed).otherwise(deleted)
    return F.when(~F.col(EXISTS), deleted).when(F.col(_END).isNull(), opened).otherwise(closed)


def one_row_per_entity(versions: DataFrame, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Return one row per entity, for a dimension without windows (S33).

    The row is the first version, from the beginning of time. `deleted_at` is the end of the last version.
    """
    window = windows.by_version().whole()
    first_change = window.first(F.col(EFFECTIVE_AT))
    rows = versions.withColumns(
        {
            EFFECTIVE_FROM: beginning(),
            DELETED_AT: window.last(F.struct(_END))[_END],
            LAST_UPDATED: F.greatest(first_change, F.col(LAST_CHANGE)),
        }
    ).where(F.col(VERSION) == 1)
    return rows.where(F.col(DELETED_AT).isNull()) if dimension.deleted_rows == "remove" else rows
