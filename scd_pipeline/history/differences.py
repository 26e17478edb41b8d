"""Change records of new batches that the change log has to store.

A plain snapshot lists every entity of its scope, usually unchanged. Storing a change record for each of them would make
the log as large as all snapshots together. The log therefore stores only differences: a snapshot's change record is
stored if it differs from what the same source had asserted before it. The other records are implied, that is, they can
be derived from the log.

Example: snapshots of 1 and 3 January list entity 1 with city Bonn. Only the first record is stored. If the snapshot of
2 January arrives late and lists the city Kiel, its record is stored. The snapshot of 3 January is then rechecked: it
was implied that the city is Bonn on 3 January, which now differs from the state before it. So that record is stored
too.

`records_to_store` therefore works in these steps, for any set of new and removed batches at once (S14, S19, S34):

1. derive the absences: entities in the scope of a new snapshot that it omits;
2. choose the stored snapshots that new or removed batches may affect (`snapshots_to_recheck`);
3. add a recheck for each affected entity of which such a snapshot has no stored record, and derive the implied record
   from the log as it was before the run;
4. drop the records that are implied by the log as it will be after the run.

A frame of change records has the business key, the columns of `CHANGE_RECORD_TYPES`, and every attribute wrapped
(expressions.wrap). `_kind` is "upsert", "delete", "no_op" or "bad".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    ASSERTED_AT,
    BAD,
    BAD_REASON,
    BAD_ROW,
    BATCH,
    CORRELATION_ID,
    DELETE,
    EFFECTIVE_AT,
    KIND,
    NO_OP,
    REASON,
    ROW_AT,
    ROW_SEQUENCE,
    SEQUENCE,
    SOURCE,
    UPSERT,
    attribute_types,
    change_record_columns,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.types import DataType
from scd_pipeline.expressions import all_of, any_of, col, to_comparable, with_columns
from scd_pipeline.frames import checkpoint, checkpoint_with_counts, with_broadcast
from scd_pipeline.history.attribute_scopes import IN_SCOPE_BEFORE, provided_scope_values
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.existence import (
    ASSERTED_BEFORE,
    EXISTED_BEFORE,
    is_delivered_delete,
    is_presence,
    last_flag,
    with_existence,
    with_presence,
)
from scd_pipeline.history.row_windows import RowWindows
from scd_pipeline.history.snapshots import BatchChanges, CoveringSnapshot, audit_texts, covered_by, snapshots_to_recheck

ORIGIN = "_origin"
DIFFERS = "_differs"
VERSION_DIFFERS = "_version_differs"
_HAS_BAD_ROW = "_has_bad_row"
_BATCHES = "_batches"
_RECHECK_COLUMNS = {"_recheck_retires": "boolean", "_recheck_columns": "array<string>"}


def records_to_store(
    spark: SparkSession,
    stored: DataFrame,
    delivered: DataFrame,
    batches: BatchChanges,
    dimension: Dimension,
    *,
    has_one_record_per_entity: bool = False,
) -> DataFrame:
    """Return the change records to append to the log.

    Args:
        spark: The session.
        stored: The log's records in effect, of the sources of the new and removed batches and of at least every entity
            that these batches may change; records of removed batches included.
        delivered: The change records of the new batches, one per batch, key, time and sequence.
        batches: The new and the removed batches, and the stored snapshots.
        dimension: The declaration.
        has_one_record_per_entity: Whether each entity has exactly one record in `stored` and `delivered` together,
            all of one batch.

    Returns:
        Change records with these additional columns:

        - `_origin`: "delivered", "absent" (the entity is omitted by a new snapshot) or "recheck".
        - `_existed_before`, `_asserted_before`: the existence of the entity just before the record, according to its
          source; the rows of the record's own row-timed snapshot are not considered.
        - `_differs`, `_version_differs`: whether any value, or any value that opens versions, differs from before.

        Rows of kind "presence" are for the retire guard only and must not be stored.
    """
    removed = [batch.records_batch_id for batch in batches.removed]
    origin = F.when(F.col(BATCH).isin(removed), "removed").otherwise("stored") if removed else F.lit("stored")
    old = with_presence(stored.withColumn(ORIGIN, origin), has_row_times=batches.has_row_times)
    new = with_presence(delivered.withColumn(ORIGIN, F.lit("delivered")), has_row_times=batches.has_row_times)
    records = old.unionByName(new)
    windows = RowWindows(dimension, has_one_record_per_entity=has_one_record_per_entity)
    # A snapshot omits no entity that only its own records have.
    if batches.new_snapshots and not has_one_record_per_entity:
        records = records.unionByName(_absences(spark, records, batches.new_snapshots, dimension))
    affected = snapshots_to_recheck(batches, dimension)
    if not affected:
        return _without_implied(records, batches, dimension, windows)
    records = checkpoint(records)
    keys, counts = checkpoint_with_counts(
        _changed_keys(records, batches, dimension, windows), {"entities": F.count(F.lit(1))}
    )
    records = records.join(with_broadcast(keys, counts["entities"]), [SOURCE, *dimension.key_names], "left_semi")
    no_recheck = {name: F.lit(None).cast(ddl) for name, ddl in _RECHECK_COLUMNS.items()}
    rechecked = records.withColumns(no_recheck).unionByName(_rechecks(spark, records, affected, dimension))
    resolved = checkpoint(_resolve_rechecks(rechecked, batches, dimension, windows))
    return _without_implied(resolved, batches, dimension, windows)


def affected_keys(appended: DataFrame, removed: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the distinct business keys of appended and of removed records."""
    keys = [col(name) for name in dimension.key_names]
    return appended.select(*keys).unionByName(removed.select(*keys)).distinct()


def _absences(spark: SparkSession, records: DataFrame, snapshots: Sequence[Batch], dimension: Dimension) -> DataFrame:
    """Return a record for each entity that a new snapshot may cover and omits: a delete if it retires, else a no-op.

    Only entities of which the source has any record are considered (S27, S30).
    """
    keys = records.groupBy(SOURCE, *[col(n) for n in dimension.key_names]).agg(
        F.collect_set(BATCH).alias(_BATCHES), *provided_scope_values(snapshots, dimension)
    )
    covered = covered_by(spark, keys, [CoveringSnapshot(snapshot) for snapshot in snapshots], dimension)
    omitted = covered.where(~F.array_contains(_BATCHES, F.col(BATCH)))
    kind = F.when(F.col("_retires"), DELETE).otherwise(NO_OP)
    return _as_records(omitted, "absent", kind, dimension).select(*_record_columns(dimension))


def _rechecks(
    spark: SparkSession, records: DataFrame, snapshots: Sequence[CoveringSnapshot], dimension: Dimension
) -> DataFrame:
    """Return a record for each of the snapshots and each affected entity of which the snapshot has no stored record."""
    changed = F.when(F.col(ORIGIN) != "stored", F.col(EFFECTIVE_AT))
    keys = records.groupBy(SOURCE, *[col(n) for n in dimension.key_names]).agg(
        F.collect_set(BATCH).alias(_BATCHES),
        F.collect_set(changed).alias("_changed_at"),
        *provided_scope_values([each.snapshot for each in snapshots], dimension),
    )
    changes_from = F.col("_changes_from")
    is_affected = F.exists("_changed_at", lambda t: (t <= F.col("_at")) & (changes_from.isNull() | (t >= changes_from)))
    covered = covered_by(spark, keys, snapshots, dimension)
    rows = covered.where(is_affected & ~F.array_contains(_BATCHES, F.col(BATCH)))
    implied = dict(zip(_RECHECK_COLUMNS, (F.col("_retires"), F.col("_columns")), strict=True))
    rechecks = _as_records(rows, "recheck", F.lit(NO_OP), dimension).withColumns(implied)
    return rechecks.select(*_record_columns(dimension), *_RECHECK_COLUMNS)


def _record_columns(dimension: Dimension) -> list[Column]:
    """Return the columns of a change record, its origin and the columns of `with_presence`."""
    return [col(name) for name in (*change_record_columns(dimension), ORIGIN, ROW_AT, ROW_SEQUENCE)]


def _as_records(rows: DataFrame, origin: str, kind: Column, dimension: Dimension) -> DataFrame:
    """Add the missing columns of a change record to rows of `covered_by`, at the position of the snapshot itself."""
    types = attribute_types(dimension)
    return rows.withColumns(
        {
            EFFECTIVE_AT: F.col("_at"),
            SEQUENCE: F.lit(None).cast("bigint"),
            ASSERTED_AT: F.lit(None).cast("timestamp"),
            KIND: kind,
            **{name: F.lit(None).cast("string") for name in (BAD_REASON, BAD_ROW)},
            **{name: F.lit(None).cast(f"struct<v:{t.ddl()}>") for name, t in types.items()},
            ORIGIN: F.lit(origin),
            ROW_AT: F.lit(None).cast("timestamp"),
            ROW_SEQUENCE: F.lit(None).cast("bigint"),
        }
    )


def _changed_keys(records: DataFrame, batches: BatchChanges, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Return source and key of the entities with a record that is to be stored, or that is removed."""
    names = [SOURCE, *[quote_name(n) for n in dimension.key_names]]
    new = _without_implied(records, batches, dimension, windows).select(*names)
    return new.unionByName(records.where(F.col(ORIGIN) == "removed").select(*names)).distinct()


def _resolve_rechecks(
    records: DataFrame, batches: BatchChanges, dimension: Dimension, windows: RowWindows
) -> DataFrame:
    """Turn each recheck into the record that its snapshot implied, derived from the log as it was before this run."""
    state = _with_state_before(records, F.col(ORIGIN).isin("stored", "removed"), batches, dimension, windows)
    is_recheck = F.col(ORIGIN) == "recheck"
    kind = F.when(F.col(ASSERTED_BEFORE), UPSERT).when(F.col("_recheck_retires"), DELETE).otherwise(NO_OP)
    resolved = {KIND: F.when(is_recheck, kind).otherwise(F.col(KIND))}
    for name, data_type in attribute_types(dimension).items():
        provided = is_recheck & F.col(ASSERTED_BEFORE) & F.array_contains("_recheck_columns", name)
        value = F.when(provided, col(_before(name))).otherwise(col(name))
        if dimension.landing is not None:  # whose rows have NULL in a column that their delivery lacks
            empty = F.struct(F.lit(None).cast(data_type.ddl()).alias("v"))
            value = F.when(is_recheck & F.col(ASSERTED_BEFORE) & ~provided, empty).otherwise(value)
        resolved[name] = value
    before = [_before(name) for name in attribute_types(dimension)]
    return state.withColumns(resolved).drop(*before, EXISTED_BEFORE, ASSERTED_BEFORE, *_RECHECK_COLUMNS)


def _without_implied(records: DataFrame, batches: BatchChanges, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Drop stored and removed records, and those records of snapshots that can be derived.

    These are repeated values in plain snapshots, and absences of entities whose existence was not asserted. An upsert
    of such an entity is always stored, even if it repeats the values of an earlier row-timed row (S4).
    """
    in_effect = F.col(ORIGIN) != "removed"
    state = _with_state_before(records, in_effect, batches, dimension, windows)
    types = attribute_types(dimension)
    opening = {a.name: types[a.name] for a in dimension.attributes if a.opens_versions}
    repeats = F.col(ASSERTED_BEFORE) & ~_differs(types)
    can_be_implied = repeats_audit_texts(batches, dimension) & ~F.col(_HAS_BAD_ROW)
    is_implied = (
        F.when(F.col(ORIGIN).isin("stored", "removed"), True)
        .when(F.col(KIND) == BAD, False)
        .when((F.col(ORIGIN) == "delivered") & (~can_be_implied | is_delivered_delete()), False)
        .when(F.col(KIND) == UPSERT, repeats)
        .otherwise(~F.col(ASSERTED_BEFORE))
    )
    flags = {
        DIFFERS: _differs(types, not_provided_is_null=True),
        VERSION_DIFFERS: _differs(opening, not_provided_is_null=True),
        _HAS_BAD_ROW: _has_bad_row(batches, windows),
    }
    before = [_before(name) for name in types]
    return state.withColumns(flags).where(~is_implied).drop(_HAS_BAD_ROW, *before)


def repeats_audit_texts(batches: BatchChanges, dimension: Dimension) -> Column:
    """Return whether a row is of a new plain snapshot, with its reason, actor, correlation id and all its columns.

    A row with audit texts of its own, or that does not provide an attribute that the snapshot does, cannot be derived
    from the log and is always stored.
    """
    result = F.lit(False)
    plain = [b for b in batches.new_snapshots if not b.has_row_times]
    for texts, sparse in sorted({(audit_texts(b), b.sparse_columns) for b in plain}, key=repr):
        snapshots = [b for b in plain if (audit_texts(b), b.sparse_columns) == (texts, sparse)]
        same = F.col(BATCH).isin([b.records_batch_id for b in snapshots])
        same = all_of([same, *[col(name).isNotNull() for name in sparse]])
        channels = [dimension.source(b.source).channel(b.channel) for b in snapshots]
        if any(c.reason or c.actor or c.correlation_id for c in channels):
            for name, text in zip((REASON, ACTOR, CORRELATION_ID), texts, strict=True):
                same = same & F.col(name).eqNullSafe(F.lit(text))
        result = result | same
    return result


def _has_bad_row(batches: BatchChanges, windows: RowWindows) -> Column:
    """Return whether the row's batch also has a bad row of the same entity.

    The bad row is stored. The snapshot is therefore never rechecked for this entity, so no record of it can be implied.
    """
    if not any(batch.bad_rows for batch in batches.new_snapshots):
        return F.lit(False)
    return F.coalesce(windows.same_batch().max(F.col(KIND) == BAD), F.lit(False))


def _before(attribute: str) -> str:
    """Return the name of the column with an attribute's value before the row."""
    return f"_before_{attribute}"


def _with_state_before(
    records: DataFrame, in_effect: Column, batches: BatchChanges, dimension: Dimension, windows: RowWindows
) -> DataFrame:
    """Add what the source had asserted about the entity before each row, considering only rows `in_effect`.

    A presence row provides its values only if the entity did not exist and the row is dated before (S4).

    Returns:
        The records with `_asserted_before`, `_existed_before`, and `_before_<attribute>` (wrapped).
    """
    window, kinds = windows.rows_before(), batches.kinds(dimension)
    is_upsert = in_effect & (F.col(KIND) == UPSERT)
    if not (kinds.are_plain or windows.has_one_record_per_entity):  # nothing is before the only record of an entity
        records = kinds.scopes.with_scope_before(records, dimension, window, in_effect)
        records = with_existence(records, window, in_effect).drop(IN_SCOPE_BEFORE)
        is_upsert = is_upsert | (in_effect & is_presence() & ~F.col(EXISTED_BEFORE))
    else:
        exists = F.when(is_upsert, True).when(in_effect & (F.col(KIND) == DELETE), False)
        records = records.withColumn(EXISTED_BEFORE, last_flag(exists, window))
        records = records.withColumn(ASSERTED_BEFORE, F.col(EXISTED_BEFORE))
    before = {_before(name): window.last(F.when(is_upsert, col(name))) for name in attribute_types(dimension)}
    return with_columns(records, before)


def _differs(types: Mapping[str, DataType], *, not_provided_is_null: bool = False) -> Column:
    """Return whether the row provides a value of these attributes that differs from the one before it (S8).

    In the log "not provided before" differs from NULL. In the dimension both are NULL, so that a first NULL changes
    nothing there; `not_provided_is_null` compares in this way.
    """
    conditions = []
    for name, data_type in types.items():
        before = col(_before(name))
        equal = to_comparable(col(name)["v"], data_type).eqNullSafe(to_comparable(before["v"], data_type))
        other = ~equal if not_provided_is_null else before.isNull() | ~equal
        conditions.append(col(name).isNotNull() & other)
    return any_of(conditions)
