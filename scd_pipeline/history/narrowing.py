"""Narrow a load to the entities that it may change, before their change records are compared exactly.

Most rows of a snapshot repeat what its source had asserted. If the snapshot is newer than everything else of its
source, the current rows of the dimension show what the source had asserted, and one join finds the entities of which
anything may be new. The exact comparison (`differences.records_to_store`) then reads only their change records.

The result may contain entities that do not change. It contains every entity that may change: of any other entity, each
new snapshot that covers it has exactly one row, which repeats the asserted values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    BATCH,
    CORRELATION_ID,
    CURRENT_FLAG,
    DELETED_AT,
    IS_DELETED,
    KIND,
    REASON,
    UPSERT,
    attribute_types,
)
from scd_pipeline.declaration import Dimension, ScdType
from scd_pipeline.expressions import all_of, any_of, col, key_text, sum_of, to_comparable, values_differ
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.differences import repeats_audit_texts
from scd_pipeline.history.role_keys import is_inferred
from scd_pipeline.history.snapshots import BatchChanges, are_newest

IS_DELIVERED = "_is_delivered"
EXISTS_ALREADY = "_exists_already"
IS_NEW = "_is_new"
AUDIT_TEXTS = (REASON, ACTOR, CORRELATION_ID)
_CURRENT = "_current"
_CAN_REPEAT = "_can_repeat"
_HAS_SEVERAL = "_has_several"
_DELIVERED_ROWS = "_delivered_rows"
_MAX_SCOPE_VALUES = 1000
"""The largest number of scope values that a query has as literals."""
NARROWED_FROM = 20_000
"""The number of stored and delivered records from which a load is narrowed.

Below it, planning the queries costs more.
"""


def has_few_records(stored: int | None, delivered: int = 0) -> bool:
    """Return whether a log and a load have so few records that to compare all is cheaper than to narrow.

    Args:
        stored: The number of change records in the log; None if unknown.
        delivered: The number of delivered rows.
    """
    return stored is not None and stored + delivered < NARROWED_FROM


def can_narrow(batches: BatchChanges, in_effect: Sequence[Batch], dimension: Dimension) -> bool:
    """Return whether the current rows of the dimension show what the source of the new snapshots has asserted.

    This is decided from the batches alone.

    Args:
        batches: The batches of the load.
        in_effect: The stored batches in effect.
        dimension: The declaration.
    """
    snapshots = batches.new_snapshots
    source = dimension.existence_source.name
    is_plain = not batches.removed and batches.kinds(dimension).are_plain and {b.source for b in snapshots} == {source}
    return (
        is_plain
        and _shows_existence(dimension)
        and not any(attribute.untracked == "at_open" for attribute in dimension.attributes)
        and not _shows_other_sources(snapshots, [b for b in in_effect if b.source != source])
        and sum(len(b.scope or ()) for b in snapshots) <= _MAX_SCOPE_VALUES
        and are_newest(snapshots, [b for b in in_effect if b.source == source])
    )


def _shows_existence(dimension: Dimension) -> bool:
    """Return whether a row of the table shows if its entity exists."""
    return dimension.has_windows or dimension.deleted_at or dimension.deleted_rows == "remove"


def _shows_other_sources(snapshots: Sequence[Batch], others: Sequence[Batch]) -> bool:
    """Return whether a current value of a delivered attribute may be another source's.

    Several sources may provide an attribute, at a time or one after the other.
    """
    delivered = {name for batch in snapshots for name in batch.columns}
    return not delivered.isdisjoint(name for batch in others for name in batch.columns)


def entities_that_may_change(
    delivered: DataFrame,
    rows: DataFrame,
    log_rows: DataFrame,
    batches: BatchChanges,
    in_effect: Sequence[Batch],
    dimension: Dimension,
) -> DataFrame:
    """Return the business keys of all entities of which the new batches may have a record to store.

    The cost is one join of the delivered with the current rows.

    Args:
        delivered: The change records of the new batches, one per batch, key, time and sequence.
        rows: The rows of the table that has the current versions.
        log_rows: The change records of the log.
        batches: The batches of the load, for which `can_narrow` is true.
        in_effect: The stored batches in effect.
        dimension: The declaration.

    Returns:
        The columns of the business key, one row per entity.
    """
    keys = [col(name) for name in dimension.key_names]
    new = delivered.select(*keys, *[col(name) for name in attribute_types(dimension)], KIND, BATCH, *AUDIT_TEXTS)
    compared = compare_with_current_rows(new, current_rows(rows, dimension), batches, in_effect, dimension)
    flags = compared.select(*keys, IS_NEW, IS_DELIVERED)
    # One snapshot has no second row of an entity, so that its row alone shows whether the entity may change.
    undecided = F.lit(len(batches.new_snapshots) > 1) | ~F.col(IS_DELIVERED)
    entities = flags.where(F.col(IS_NEW) | undecided).groupBy(*keys)
    delivered_rows = F.sum(F.col(IS_DELIVERED).cast("int")).alias(_DELIVERED_ROWS)
    summary = entities.agg(F.max(IS_NEW).alias(IS_NEW), delivered_rows)
    is_changing = F.col(IS_NEW) | (F.col(_DELIVERED_ROWS) < covering_snapshots(batches))
    changing = summary.where(is_changing).select(*keys)
    refused = entities_with_refused_values(log_rows, batches, dimension)
    return changing.distinct() if refused is None else changing.unionByName(refused).distinct()


def current_rows(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the business keys and, as a struct, the attributes of the entities that exist.

    Args:
        rows: The rows of the table that has the current versions.
        dimension: The declaration.
    """
    values = F.struct(*[col(name) for name in attribute_types(dimension)]).alias(_CURRENT)
    names = list(dimension.key_names)
    has_key = all_of([col(name).isNotNull() for name in names])  # `dropna` would omit NaN too
    if dimension.has_windows:  # no source has asserted anything of an inferred member (S23)
        has_key &= ~is_inferred(dimension)
    return rows.where(_exists(dimension) & has_key).select(*[col(name) for name in names], values)


def compare_with_current_rows(
    delivered: DataFrame, current: DataFrame, batches: BatchChanges, in_effect: Sequence[Batch], dimension: Dimension
) -> DataFrame:
    """Join delivered rows with the current rows, one row for each delivered row and for each omitted entity.

    Args:
        delivered: The business key, the attributes, `_kind`, `_batch`, reason, actor and correlation id of the rows of
            the new snapshots, and any other columns.
        current: The current rows (`current_rows`).
        batches: The batches of the load, for which `can_narrow` is true.
        in_effect: The stored batches in effect.
        dimension: The declaration.

    Returns:
        The delivered columns, NULL for an omitted entity, apart from its business key; and, never NULL:

        - `_is_delivered`: whether the row is a delivered one;
        - `_exists_already`: whether its entity exists;
        - `_is_new`: whether the row may differ from what its source had asserted.
    """
    names = list(dimension.key_names)
    can_repeat = (F.col(KIND) == UPSERT) & repeats_audit_texts(batches, dimension)
    # Without the flag of the delivered row, the joined row has only a current one.
    joined = delivered.withColumn(_CAN_REPEAT, can_repeat).join(current, names, "full_outer")
    is_delivered, exists = F.col(_CAN_REPEAT).isNotNull(), F.col(_CURRENT).isNotNull()
    is_new = is_delivered & (~F.col(_CAN_REPEAT) | ~exists | _differs(in_effect, dimension))
    flags = {IS_DELIVERED: is_delivered, EXISTS_ALREADY: exists, IS_NEW: is_new}
    return joined.withColumns(flags).drop(_CAN_REPEAT, _CURRENT)


def _exists(dimension: Dimension) -> Column:
    if dimension.has_deleted_versions:
        return F.col(CURRENT_FLAG) & ~F.col(IS_DELETED)
    if dimension.has_windows:
        return F.col(CURRENT_FLAG)
    return F.col(DELETED_AT).isNull() if dimension.deleted_at else F.lit(True)


def _differs(in_effect: Sequence[Batch], dimension: Dimension) -> Column:
    """Return whether a delivered row may provide a value that its source had not asserted.

    NULL in the current row may mean that no value was provided yet, which the log distinguishes from NULL (S8).
    """
    conditions = []
    always_provided = _always_provided(in_effect, dimension)
    for name, data_type in attribute_types(dimension).items():
        value = col(name)["v"]
        other = values_differ(value, F.col(_CURRENT)[name], data_type)
        if name not in always_provided:
            other = other | value.isNull()
        conditions.append(col(name).isNotNull() & other)
    return any_of(conditions)


def _always_provided(in_effect: Sequence[Batch], dimension: Dimension) -> Collection[str]:
    """Return the attributes of which every stored row of the existence source provides a value or NULL.

    Rows of a feed may lack attributes, also if the present declaration provides all of them.
    """
    provided = set(dimension.attribute_names)
    for batch in in_effect:
        if batch.source == dimension.existence_source.name:
            provided &= set(batch.complete_columns) if batch.is_snapshot else set()
    return provided


def covering_snapshots(batches: BatchChanges) -> Column:
    """Return how many of the new snapshots cover a key."""
    unscoped = sum(snapshot.scope is None for snapshot in batches.new_snapshots)
    covers = [
        key_text(snapshot.scope_columns).isin(list(snapshot.scope)).cast("int")
        for snapshot in batches.new_snapshots
        if snapshot.scope is not None
    ]
    return sum_of([F.lit(unscoped), *covers])


def entities_with_refused_values(log_rows: DataFrame, batches: BatchChanges, dimension: Dimension) -> DataFrame | None:
    """Return the business keys of the entities with several asserted values of a type 0 attribute.

    Their rows show only the first (S6). None if the new snapshots provide no such attribute.
    """
    provided = {name for batch in batches.new_snapshots for name in batch.columns}
    names = [a.name for a in dimension.of_type(ScdType.RETAIN_ORIGINAL) if a.name in provided]
    if not names:
        return None
    types = attribute_types(dimension)
    conditions = []
    for name in names:
        value = to_comparable(col(name)["v"], types[name])
        has_null = F.max(col(name).isNotNull() & value.isNull())
        conditions += [F.min(value) != F.max(value), has_null & F.max(value).isNotNull()]
    keys = [col(name) for name in dimension.key_names]
    entities = log_rows.where(F.col(KIND) == UPSERT).groupBy(*keys).agg(any_of(conditions).alias(_HAS_SEVERAL))
    return entities.where(_HAS_SEVERAL).select(*keys)
