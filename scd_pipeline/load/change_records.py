"""The change records that a load appends: compare accepted batches with the log, count, apply the retire guard."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BATCH, COMMIT, DELETE, KIND, PRESENCE, SOURCE, UPSERT, change_record_columns
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.intake import IntakeResult
from scd_pipeline.deliveries.narrowed import AppliedState
from scd_pipeline.deliveries.result import ChangeCounts
from scd_pipeline.delta.schema import to_declared_columns
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col, key_text
from scd_pipeline.frames import checkpoint, checkpoint_with_counts, local_frame, with_broadcast
from scd_pipeline.history.attribute_scopes import by_keys
from scd_pipeline.history.batch import Batch, batches_in_effect
from scd_pipeline.history.differences import DIFFERS, ORIGIN, VERSION_DIFFERS, affected_keys, records_to_store
from scd_pipeline.history.existence import ASSERTED_BEFORE, EXISTED_BEFORE
from scd_pipeline.history.key_ranges import key_range
from scd_pipeline.history.narrowing import can_narrow, entities_that_may_change, has_few_records
from scd_pipeline.history.rows_as_records import can_replace_records, rows_as_records
from scd_pipeline.history.snapshots import BatchChanges
from scd_pipeline.load.log import records_in_batches, records_in_effect
from scd_pipeline.load.state import StoredState

_MAX_OBSERVED_BATCHES = 4
"""The largest number of batches that are counted by the query that computes their records; each needs six counts."""
_RECORDS, _APPENDED, _REMOVED, _IN_SCOPE = "_records", "_appended", "_removed", "_in_scope"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The batches of a load compared with the log.

    Attributes:
        intake: The batches with their counts, without guarded snapshots.
        records: The change records to append with the columns of the comparison; None if no batch is accepted or
            removed.
        log_rows: The rows of the log of every entity with such a record, and of every removed record.
        key_range: A condition on the business key that holds for all these entities (`key_ranges`).
        entity_limit: An upper bound of the number of entities with such a record.
        appended: The number of records with a key that the log gets.
        rows: The rows of the table of these entities, if they were read instead of the log (`rows_as_records`).
        has_one_record_per_entity: Whether every entity has exactly one record, as in a first load.
    """

    intake: IntakeResult
    records: DataFrame | None
    log_rows: DataFrame
    key_range: Column
    entity_limit: int = 0
    appended: int = 0
    has_one_record_per_entity: bool = False
    rows: DataFrame | None = None

    def removed_records(self) -> DataFrame:
        """Return the stored records of batches that are replaced or withdrawn."""
        return records_in_batches(self.log_rows, _removed_record_ids(self.intake))


def compare_with_log(
    warehouse: Warehouse,
    state: StoredState,
    intake: IntakeResult,
    expect_shuffled: Callable[[int], None] = lambda limit: None,
) -> Comparison:
    """Return the change records to append, and the intake with its counts, without guarded snapshots (S27).

    Batches are compared in the order of their positions. A rejected batch changes what the later ones are compared
    with, so the others are compared again without it.

    Args:
        expect_shuffled: Called with an upper bound of the records of the entities that may change, if it is known.
    """
    while intake.accepted or intake.removed:
        if _has_no_entities(intake):
            unchanged = intake.with_counts({batch.id: ChangeCounts() for batch in intake.accepted})
            return Comparison(unchanged, state.log.rows().limit(0), state.log.rows(), F.lit(False))
        has_one_record_per_entity = _has_one_record_per_entity(state, intake)
        once = _compare_once(
            warehouse, state, intake, expect_shuffled, has_one_record_per_entity=has_one_record_per_entity
        )
        records, counts, record_count, appended = _with_counts(
            once.records, intake, state.dimension, has_one_record_per_entity=has_one_record_per_entity
        )
        compared = intake.with_counts(counts)
        rejections = compared.rejected_by_retire_guard()
        if not rejections:
            return Comparison(
                compared,
                records,
                once.log_rows,
                once.key_range,
                entity_limit=record_count + once.removed_limit,
                appended=appended,
                has_one_record_per_entity=has_one_record_per_entity,
                rows=once.rows,
            )
        intake = compared.without(rejections)
    return Comparison(intake, None, state.log.rows(), F.lit(True))


def applied_state(state: StoredState, deliveries: Sequence[Delivery]) -> AppliedState | None:
    """Return what a snapshot can be compared with while it is read.

    None if no snapshot is delivered, if the table does not exist or lacks log commits, or if comparing all records
    costs less.
    """
    has_snapshots = any(source.snapshot for source in state.dimension.sources)
    if not has_snapshots or all(delivery.channel == "feed" for delivery in deliveries):
        return None
    if state.table_rows is None or state.has_pending_commits or has_few_records(state.log.commit.records):
        return None
    rows = to_declared_columns(state.table_rows, state.dimension)
    return AppliedState(rows, state.log.rows(), tuple(batches_in_effect(list(state.batches))))


class _ComparedOnce(NamedTuple):
    """The change records to append, not computed yet, with the rows of the log of the compared entities.

    `key_range` is a condition on the keys of these entities, `removed_limit` an upper bound of the number of removed
    records. `rows` are the rows of the table from which `log_rows` follow, if they do.
    """

    records: DataFrame
    log_rows: DataFrame
    key_range: Column
    removed_limit: int
    rows: DataFrame | None = None


def _compare_once(
    warehouse: Warehouse,
    state: StoredState,
    intake: IntakeResult,
    expect_shuffled: Callable[[int], None],
    *,
    has_one_record_per_entity: bool,
) -> _ComparedOnce:
    sources = sorted({batch.source for batch in (*intake.accepted, *intake.removed)})
    removed_ids, in_effect = _removed_record_ids(intake), batches_in_effect(list(state.batches))
    batches = BatchChanges(
        new=intake.accepted,
        removed=intake.removed,
        stored_snapshots=tuple(b for b in in_effect if b.is_snapshot and b.records_batch_id not in removed_ids),
    )
    log_rows, delivered = state.log.rows(), intake.change_records()
    if delivered is None:
        delivered = log_rows.drop(COMMIT).limit(0)
    entities = _entities_that_may_change(state, intake, batches, in_effect, delivered)
    removed_limit, has_keys, rows = _removed_limit(state, intake), F.lit(True), None
    if entities is not None:
        has_keys = entities.key_range
        current = None if state.has_pending_commits else state.table_rows
        if current is not None and can_replace_records(batches, in_effect, state.dimension):
            current = to_declared_columns(current, state.dimension)
            rows, stored_limit = _rows_of(entities, current, state.dimension)
            log_rows, removed_limit = rows_as_records(rows, state.dimension), 0
        else:
            log_rows, stored_limit, removed_limit = _records_of(entities, log_rows, removed_ids, state.dimension)
        if not state.has_pending_commits:
            delivered_limit = intake.narrowed.row_limit if intake.narrowed is not None else intake.row_count
            expect_shuffled(stored_limit + delivered_limit)
        if batches.new_snapshots and intake.narrowed is None:
            delivered = delivered.join(entities.keys, list(state.dimension.key_names), "left_semi")
    stored = records_in_effect(log_rows, state.batches).where(F.col(SOURCE).isin(sources)).drop(COMMIT)
    records = records_to_store(
        warehouse.spark,
        stored,
        delivered,
        batches,
        state.dimension,
        has_one_record_per_entity=has_one_record_per_entity,
    )
    return _ComparedOnce(records, log_rows, has_keys, removed_limit, rows)


def _removed_limit(state: StoredState, intake: IntakeResult) -> int:
    """Return an upper bound of the number of removed records, without reading them.

    A snapshot also has records of the entities that it omits, whose number its batch does not have.
    """
    if not any(batch.is_snapshot for batch in intake.removed):
        return sum(batch.rows for batch in intake.removed)
    stored = state.log.commit.stored_records
    return sys.maxsize if stored is None else stored


def _removed_record_ids(intake: IntakeResult) -> set[str]:
    """Return the ids of the batches under which the log has the records of replaced and withdrawn batches."""
    return {batch.records_batch_id for batch in intake.removed}


def _has_no_entities(intake: IntakeResult) -> bool:
    """Return whether it is known that no entity has a new or a removed change record, or is omitted by a snapshot."""
    if intake.removed:
        return False
    if intake.narrowed is not None:
        return not intake.narrowed.row_limit
    return not intake.row_count and not any(batch.is_snapshot for batch in intake.accepted)


def _has_one_record_per_entity(state: StoredState, intake: IntakeResult) -> bool:
    """Return whether one batch is loaded into an empty log, with one row for each entity, by its counts.

    All its rows have the time of their delivery and no sequence, so that only rows of one entity are at one position;
    and they assert that their entities exist.
    """
    if state.batches or len(intake.accepted) != 1:
        return False
    (batch,) = intake.accepted
    if batch.source != state.dimension.existence_source.name:
        return False
    channel = state.dimension.source(batch.source).channel(batch.channel)
    has_one_position = channel.effective_at is None and channel.sequence is None
    return has_one_position and not batch.withdrawn and batch.entities == batch.rows


def _entities_that_may_change(
    state: StoredState,
    intake: IntakeResult,
    batches: BatchChanges,
    in_effect: Sequence[Batch],
    delivered: DataFrame,
) -> _Entities | None:
    """Return all entities that the batches may change; None if that is as costly to find out.

    Without snapshots they are the delivered entities, and those of removed records.
    """
    dimension, log_rows = state.dimension, state.log.rows()
    keys = [col(name) for name in dimension.key_names]
    if intake.narrowed is not None:
        entities = delivered.select(*keys).unionByName(intake.narrowed.omitted)
        return _Entities(with_broadcast(entities, intake.narrowed.row_limit), intake.key_range)
    if not state.log.exists or has_few_records(state.log.commit.records, intake.row_count):
        return None
    if not batches.new_snapshots:
        if not intake.removed:
            return _Entities(with_broadcast(delivered.select(*keys), intake.row_count), intake.key_range)
        removed = records_in_batches(log_rows, _removed_record_ids(intake))
        # The keys are read twice: without a checkpoint, those of removed records would be read from the log each time.
        entities = checkpoint(affected_keys(delivered, removed, dimension))
        return _entities(entities, intake.row_count + _removed_limit(state, intake), dimension)
    if state.table_rows is None or state.has_pending_commits or not can_narrow(batches, in_effect, dimension):
        return None
    rows = to_declared_columns(state.table_rows, dimension)
    entities = checkpoint(entities_that_may_change(delivered, rows, log_rows, batches, in_effect, dimension))
    return _entities(entities, entities.count(), dimension)


class _Entities(NamedTuple):
    """The business keys of entities, some of which may be repeated, and a condition on the key that holds for all."""

    keys: DataFrame
    key_range: Column

    def rows_of(self, rows: DataFrame, dimension: Dimension) -> DataFrame:
        """Return the rows of these entities."""
        return rows.where(self.key_range).join(self.keys, list(dimension.key_names), "left_semi")


def _rows_of(entities: _Entities, rows: DataFrame, dimension: Dimension) -> tuple[DataFrame, int]:
    """Return the rows of entities, computed, and their number."""
    aggregates = {_RECORDS: F.count(F.lit(1))}
    computed, counts = checkpoint_with_counts(entities.rows_of(rows, dimension), aggregates)
    return computed, counts[_RECORDS]


def _records_of(
    entities: _Entities, log_rows: DataFrame, removed_ids: set[str], dimension: Dimension
) -> tuple[DataFrame, int, int]:
    """Return the change records of entities, computed, their number, and the number of records of removed batches."""
    is_removed = F.col(BATCH).isin(sorted(removed_ids)) if removed_ids else F.lit(False)
    aggregates = {_RECORDS: F.count(F.lit(1)), _REMOVED: F.count_if(is_removed)}
    computed, counts = checkpoint_with_counts(entities.rows_of(log_rows, dimension), aggregates)
    return computed, counts[_RECORDS], counts[_REMOVED]


def _entities(keys: DataFrame, row_limit: int, dimension: Dimension) -> _Entities:
    return _Entities(with_broadcast(keys, row_limit), key_range(keys, row_limit, dimension))


def _with_counts(
    records: DataFrame, intake: IntakeResult, dimension: Dimension, *, has_one_record_per_entity: bool
) -> tuple[DataFrame, dict[str, ChangeCounts], int, int]:
    """Compute change records and count them: by the query that computes them, if that is possible.

    If each entity has one record, they are the delivered rows, which are computed and counted already.

    Returns:
        The records, the counts of each batch by its id, the number of all records, and of those to append.
    """
    batches = intake.accepted
    if has_one_record_per_entity:
        (delivery,) = intake.decisions.accepted
        content = delivery.content
        new = content.entities - content.deletes
        return records, {delivery.batch.id: ChangeCounts(new=new, unasserted=new)}, content.entities, content.entities
    names = [field.name for field in fields(ChangeCounts)]
    if len(batches) > _MAX_OBSERVED_BATCHES or any(batch.has_row_times or batch.bad_rows for batch in batches):
        records = checkpoint(records)
        rows = _counts_of_entities(records, batches, dimension).collect()
        by_batch = {row[BATCH]: ChangeCounts(**{name: int(row[name] or 0) for name in names}) for row in rows}
        record_count, appended = (sum(row[name] for row in rows) for name in (_RECORDS, _APPENDED))
        return records, by_batch, record_count, appended
    counts, flags = {_RECORDS: F.count(F.lit(1)), _APPENDED: F.count_if(_is_appended())}, _row_flags()
    for number, batch in enumerate(batches):
        is_of_batch = F.col(BATCH) == batch.id
        counts |= {f"{number} {name}": F.count_if(is_of_batch & flag) for name, flag in flags.items()}
    records, observed = checkpoint_with_counts(records, counts)
    by_batch = {
        batch.id: ChangeCounts(**{name: observed.get(f"{number} {name}", 0) for name in names})
        for number, batch in enumerate(batches)
    }
    return records, by_batch, observed[_RECORDS], observed[_APPENDED]


def _row_flags() -> dict[str, Column]:
    """Return the conditions of the rows that are counted, by the name of the count."""
    delivered = F.col(ORIGIN) == "delivered"
    existed, asserted = F.col(EXISTED_BEFORE), F.col(ASSERTED_BEFORE)
    upserts, deletes = delivered & (F.col(KIND) == UPSERT), F.col(KIND) == DELETE
    return {
        "new": upserts & ~existed,
        "changed": upserts & existed & F.col(DIFFERS),
        "deleted": deletes & existed & F.col(ORIGIN).isin("delivered", "absent"),
        "reopened": upserts & existed & F.col(VERSION_DIFFERS),
        "retired": deletes & (F.col(ORIGIN) == "absent"),
        "unasserted": upserts & ~asserted,
    }


def _counts_of_entities(records: DataFrame, batches: Sequence[Batch], dimension: Dimension) -> DataFrame:
    """Return the counts of each batch, also those of entities with rows of presence or bad rows."""
    delivered, asserted = F.col(ORIGIN) == "delivered", F.col(ASSERTED_BEFORE)
    # Of several rows of an entity, the presence of the first one asserts the existence for the next ones.
    present = F.min(F.when(delivered & (F.col(KIND) == PRESENCE), asserted))
    bad = F.max(F.when(delivered & (F.col(KIND) == BAD) & F.col(_IN_SCOPE), asserted))
    flags = {**_row_flags(), _RECORDS: F.lit(True), _APPENDED: _is_appended()}
    keys = [col(name) for name in dimension.key_names]
    entities = (
        _with_in_scope(records, batches, dimension)
        .groupBy(BATCH, *keys)
        .agg(
            *[F.sum(flag.cast("int")).alias(f"_{name}") for name, flag in flags.items()],  # no key begins with `_`
            F.max(delivered & (F.col(KIND) == UPSERT)).alias("_upserts"),
            F.coalesce(present, F.lit(False)).alias("_present"),
            F.coalesce(bad, F.lit(False)).alias("_bad"),
        )
    )
    by_entity = {
        "asserted_present": F.col("_present"),
        "asserted_bad": F.col("_bad") & ~F.col("_upserts"),
    }
    sums = [F.sum(f"_{name}").alias(name) for name in flags]
    sums += [F.sum(flag.cast("int")).alias(name) for name, flag in by_entity.items()]
    return entities.groupBy(BATCH).agg(*sums)


def _with_in_scope(records: DataFrame, batches: Sequence[Batch], dimension: Dimension) -> DataFrame:
    """Add whether the key of a bad row is in the scope of its batch; a row outside of the scope is a bad row too."""
    is_inside = F.lit(True)
    by_key = [by_keys(batch, dimension) for batch in batches if batch.bad_rows]
    scoped = [batch for batch in by_key if batch.scope is not None]
    for number, columns in enumerate(sorted({batch.scope_columns for batch in scoped})):
        value, is_listed = f"_value_{number}", f"_is_listed_{number}"
        scoped_by = [batch for batch in scoped if batch.scope_columns == columns]
        # Joined, because a scope may have thousands of values: too many for literals of the query.
        scopes = [(batch.id, each, True) for batch in scoped_by for each in sorted(set(batch.scope or ()))]
        frame = local_frame(records.sparkSession, scopes, f"{BATCH} string, {value} string, {is_listed} boolean")
        joined = records.withColumn(value, key_text(columns))
        records = joined.join(with_broadcast(frame, len(scopes)), [BATCH, value], "left")
        has_scope = F.col(BATCH).isin([batch.id for batch in scoped_by])
        is_inside = is_inside & (~has_scope | F.col(value).isNull() | F.col(is_listed).isNotNull())
    return records.withColumn(_IN_SCOPE, is_inside)


def _is_appended() -> Column:
    """Return whether a record is appended to the log; presence rows are only for the retire guard."""
    return F.col(KIND) != PRESENCE


def rows_to_append(records: DataFrame | None, intake: IntakeResult, dimension: Dimension) -> DataFrame:
    """Return the rows that the log gets in addition to its batches: change records, and bad rows without a key."""
    if records is None:
        return intake.rows_without_key()
    columns = [col(name) for name in change_record_columns(dimension)]
    stored = records.where(_is_appended()).select(*columns)
    if not any(batch.bad_rows for batch in intake.batches_to_append):
        return stored
    return stored.unionByName(intake.rows_without_key().select(*columns))
