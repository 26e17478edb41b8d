"""What a step appends to the audit, as a part of the plan that brings the dimension up to date with its log (S21)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.columns import change_record_columns
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.change_types import INSERT, LOGICAL_DELETE, UPDATE
from scd_pipeline.delta.audit_table import RecordedTransitions, audit_changes, audit_schema, with_change_types
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col, timestamp_literal
from scd_pipeline.frames import checkpoint, empty_frame, with_broadcast
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.snapshots import business_times, last_business_time
from scd_pipeline.history.transitions import (
    CHANGE_TS,
    CHANGE_TYPE,
    CHANGED_COLUMNS,
    SOURCE_BATCH,
    build_transitions,
    key_columns,
    opening_change_types,
)
from scd_pipeline.load.change_records import Comparison, rows_to_append
from scd_pipeline.load.log import changed_batches, changed_entities, changed_records
from scd_pipeline.load.state import StoredState


@dataclass(frozen=True, slots=True)
class TransitionCounts:
    """Audit rows by change type, and the versions that they opened and closed.

    Attributes:
        transitions: The number of audit rows by change type.
        opened: The number of versions of the dimension that they opened.
        closed: The number of versions that they closed.
    """

    transitions: Counter[str] = field(default_factory=Counter)
    opened: int = 0
    closed: int = 0

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        """Return the counts of both."""
        return TransitionCounts(
            self.transitions + other.transitions, self.opened + other.opened, self.closed + other.closed
        )


GroupCounts: TypeAlias = tuple[str, str | None, TransitionCounts]
"""A delivery, an attribute whose new values opened versions (None for all changes), and the counts."""


@dataclass(frozen=True, slots=True)
class AuditChanges:
    """What one step appends to the audit.

    Attributes:
        rows: The rows (`audit_changes`).
        counts: Their counts; None if they are not counted yet.
    """

    rows: DataFrame
    counts: Sequence[GroupCounts] | None = None


def plan_changes(
    warehouse: Warehouse, state: StoredState, comparison: Comparison, in_effect: DataFrame | None, audit: PipelineCommit
) -> AuditChanges:
    """Return what the audit gets when the table applies the rest of the log and the batches of a load; not counted yet.

    Args:
        warehouse: The warehouse.
        state: The stored state.
        comparison: The batches that the load appends, if any.
        in_effect: The change records in effect of the affected entities; None if no entity is affected.
        audit: The last commit of the audit, which has applied as much of the log as the table.
    """
    intake, dimension = comparison.intake, state.dimension
    if in_effect is None:
        columns = {name: ddl for name, ddl, _ in audit_schema(dimension)}
        return AuditChanges(empty_frame(warehouse.spark, columns), ())
    log_commit = state.log.commit.number + bool(intake.batches_to_append)
    batches = [*state.committed_batches, *[(log_commit, batch) for batch in intake.batches_to_append]]
    since = earliest_change(changed_batches(batches, after=state.applied), intake.all_batches)
    recorded = None
    if audit.exists and not is_newest(since, [batch for number, batch in batches if number <= state.applied]):
        causes = _causes(state, comparison, batches)
        # Literals, so that files whose transitions are all earlier, or of other entities, are not read.
        is_later = F.lit(True) if since is None else F.col(CHANGE_TS) >= timestamp_literal(since)
        has_key = F.lit(True) if state.has_pending_commits else comparison.key_range
        rows = warehouse.table(audit.table).read(audit.newest).where(is_later & has_key)
        names = list(dimension.key_names)
        recorded = RecordedTransitions(with_change_types(rows, dimension).join(causes, names, "left_semi"), causes)
        in_effect = in_effect.join(causes, names, "left_semi")
    transitions = build_transitions(
        in_effect,
        dimension,
        kinds=SnapshotKinds(),
        has_one_record_per_entity=comparison.has_one_record_per_entity,
        key_hash=warehouse.key_hash,
        since=since,
    )
    changes = audit_changes(transitions, dimension, recorded=recorded, log_commit=log_commit)
    if comparison.has_one_record_per_entity:
        # Each of these rows is derived from one delivered row, when it is written.
        return AuditChanges(changes, _inserted(intake.batches_to_append))
    return AuditChanges(checkpoint(changes))


def _inserted(batches: Iterable[Batch]) -> list[GroupCounts]:
    """Return the counts of batches whose upserts all begin an entity, with its first version."""
    new = [("/".join(batch.delivery_key), batch.new) for batch in batches if batch.new]
    return [(delivery, None, TransitionCounts(Counter({INSERT: count}), count)) for delivery, count in new]


def _causes(state: StoredState, comparison: Comparison, batches: Sequence[tuple[int, Batch]]) -> DataFrame:
    """Return the entities whose change records in effect are other ones after the load (`changed_entities`)."""
    intake, dimension = comparison.intake, state.dimension
    records = rows_to_append(comparison.records, intake, dimension)
    if not (intake.removed or state.has_pending_commits):
        return with_broadcast(changed_entities(records, dimension), comparison.entity_limit)
    log_rows = state.log.rows() if state.has_pending_commits else comparison.log_rows
    names = [col(name) for name in change_record_columns(dimension)]
    stored = changed_records(log_rows, batches, after=state.applied).select(*names)
    causes = changed_entities(records.unionByName(stored), dimension)
    if not state.has_pending_commits:
        return with_broadcast(causes, comparison.entity_limit)
    causes = checkpoint(causes)
    return with_broadcast(causes, causes.count())


def earliest_change(changed: Collection[Batch], batches: Collection[Batch]) -> datetime | None:
    """Return the time before which no transition differs if batches are added or removed; None if unknown.

    A transition depends on no later record, apart from one thing: changes by a second source are transitions only if
    the entity exists at any time.

    Args:
        changed: The added and the removed batches.
        batches: All batches of the log, whose sources may not be declared any more.
    """
    times = [time for batch in changed for time in business_times(batch)]
    has_one_source = len({batch.source for batch in (*changed, *batches)}) == 1
    return min(times) if times and has_one_source else None


def is_newest(since: datetime | None, stored: Collection[Batch]) -> bool:
    """Return whether every transition that stored batches cause is before `since`."""
    last = last_business_time(stored)
    return last is None or (since is not None and since > last)


def count_changes(rows: DataFrame, dimension: Dimension, *, by_attribute: bool) -> DataFrame:
    """Count audit rows, and versions that follow others also by the attributes whose values differ if `by_attribute`.

    Returns:
        `group` (delivery, attribute or NULL for all changes, change type, whether a version precedes) and `n`.
    """
    old_key, _ = key_columns(dimension)
    attribute = F.lit(None).cast("string")
    if by_attribute:
        counted_as = F.array(attribute)
        with_attributes = F.concat(counted_as, F.col(CHANGED_COLUMNS))
        attribute = F.explode(F.when(F.col(CHANGE_TYPE) == UPDATE, with_attributes).otherwise(counted_as))
    follows_version = col(old_key).isNotNull().cast("string").alias("follows_version")
    counted_rows = rows.select(SOURCE_BATCH, attribute.alias("attribute"), CHANGE_TYPE, follows_version)
    columns = (SOURCE_BATCH, "attribute", CHANGE_TYPE, "follows_version")
    return counted_rows.groupBy(F.array(*columns).alias("group")).agg(F.count(F.lit(1)).alias("n"))


def transition_counts(groups: Iterable[Row], dimension: Dimension) -> list[GroupCounts]:
    """Return delivery, attribute and counts of each collected group of `count_changes`."""
    counts: list[GroupCounts] = []
    for (delivery, name, change_type, follows_version), count in groups:
        opened = count if change_type in opening_change_types(dimension) else 0
        is_closed = follows_version == "true" and change_type in (INSERT, UPDATE, LOGICAL_DELETE)
        added = TransitionCounts(Counter({change_type: count}), opened, count if is_closed else 0)
        counts.append((delivery, name, added))
    return counts
