"""Record the audit of a dimension: bring it up to date with the change log (S17, S21).

The audit has one step for each commit of the dimension, and for each commit of the log that changed no row of it. So
the audit as known at a time shows the rows that readers could see then. The next load completes a killed recording.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.columns import COMMIT, change_record_columns
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.change_types import INSERT, LOGICAL_DELETE, UPDATE
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX, LOG_SUFFIX
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.audit_table import (
    RecordedTransitions,
    audit_changes,
    audit_properties,
    audit_schema,
    recorded_rows,
    with_change_types,
)
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.schema import FORMAT, column_steps, ensure_table, require_pipeline_tables
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.upstream import damage, foreign_commit_errors, log_mark, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col, constant_number, constant_time, timestamp_literal
from scd_pipeline.frames import checkpoint, empty_frame, with_broadcast
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.snapshots import business_times, last_business_time
from scd_pipeline.history.transitions import (
    CHANGE_TS,
    CHANGE_TYPE,
    CHANGED_COLUMNS,
    CORRELATION,
    SOURCE_BATCH,
    build_transitions,
    key_columns,
    opening_change_types,
)
from scd_pipeline.instants import from_micros
from scd_pipeline.load.change_records import Comparison, rows_to_append
from scd_pipeline.load.log import changed_entities, changed_records, in_effect_at, read_log, records_in_effect
from scd_pipeline.load.retry import Progress
from scd_pipeline.load.schema_steps import execute
from scd_pipeline.load.state import StoredState
from scd_pipeline.texts import pluralize

_UNKNOWN_TIME = from_micros(0)


@dataclass(frozen=True, slots=True)
class AuditStep:
    """One step of the audit: the log up to a pipeline commit, as it became readable in the dimension.

    Attributes:
        log_commit: The number of the last log commit of the step.
        at: When the step became readable.
        dimension_commit: The pipeline commit of the dimension that made it readable.
        table_version: The table version of that commit, -1 if unknown.
    """

    log_commit: int
    at: datetime
    dimension_commit: int
    table_version: int


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


_Counts: TypeAlias = tuple[str, str | None, TransitionCounts]
"""A delivery, an attribute whose new values opened versions (None for all changes), and the counts."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The effect of a recording.

    Attributes:
        table: The name of the dimension.
        counts_by_delivery: The changes by delivery (`source/channel/delivery`).
        table_version: The version of the audit after the last recorded commit.
        versions_by_attribute: The number of versions that new values of an attribute opened, by delivery; no deliveries
            if no entity existed before the load.
    """

    table: str
    counts_by_delivery: Mapping[str, TransitionCounts]
    table_version: int
    versions_by_attribute: Mapping[str, Counter[str]] = field(default_factory=dict)

    @property
    def counts(self) -> TransitionCounts:
        """The changes of all deliveries."""
        return sum(self.counts_by_delivery.values(), TransitionCounts())

    def delivery_counts(self, batch: BatchResult) -> TransitionCounts:
        """Return the changes of a delivery."""
        return self.counts_by_delivery.get("/".join(batch.delivery_key), TransitionCounts())


def pending_steps(log: Sequence[PipelineCommit], dimension: Sequence[PipelineCommit], applied: int) -> list[AuditStep]:
    """Return the steps after the log commit `applied`, in order.

    A log commit that the dimension has not applied yet is not a step: no reader could have seen it. Of several
    dimension commits that apply the same log commit, the first is used.

    Args:
        log: Pipeline commits of the change log.
        dimension: Pipeline commits of the dimension.
        applied: The last log commit that the audit has applied.
    """
    versions = {commit.number: commit.table_version for commit in dimension}
    steps: dict[int, AuditStep] = {}
    for commit in log:
        if commit.unchanged is not None and commit.unchanged.log_commit == commit.number:
            number = commit.unchanged.dimension_commit
            steps[commit.number] = AuditStep(
                commit.number, commit.at or _UNKNOWN_TIME, number, versions.get(number, -1)
            )
    for commit in dimension:
        last = commit.applied(commit.table + LOG_SUFFIX).commit
        steps.setdefault(last, AuditStep(last, commit.at or _UNKNOWN_TIME, commit.number, commit.table_version))
    return [steps[number] for number in sorted(steps) if number > applied]


@dataclass(frozen=True, slots=True)
class AuditStepRecords:
    """What the rows of a step are computed from.

    Attributes:
        changed: The change records that the step adds to those in effect, or removes from them.
        in_effect: The change records in effect after the step of at least the entities of `changed`.
        kinds: The kinds of the snapshots that they are of.
        since: No transition before this time differs from the recorded ones; None if any may.
        is_newest: Whether every recorded transition is before `since`.
        entity_limit: An upper bound of the number of entities of `changed`; None if unknown.
        has_one_record_per_entity: Whether every entity has exactly one record in effect.
        key_range: A condition on the business key that holds for the entities of `changed` (`key_ranges`); None if
            unknown.
    """

    changed: DataFrame
    in_effect: DataFrame
    kinds: SnapshotKinds
    since: datetime | None
    is_newest: bool = False
    entity_limit: int | None = None
    has_one_record_per_entity: bool = False
    key_range: Column | None = None


@dataclass(frozen=True, slots=True)
class AuditChanges:
    """What one step appends to the audit.

    Attributes:
        rows: The rows (`audit_changes`).
        counts: Their counts.
    """

    rows: DataFrame
    counts: Sequence[_Counts] = ()


@dataclass(frozen=True, slots=True)
class LoadedAuditStep:
    """The step of a load that has just committed, which the recording need not read from the log again.

    Attributes:
        commit: The last commit of the dimension.
        log_commit: The last commit of the log.
        dimension: The declaration, with every name that its attributes ever had.
        changes: What the step appends; None if it has to be computed from the log.
        existing_entities: How many entities existed before each delivery of the load (`rapid_changes`).
    """

    commit: PipelineCommit
    log_commit: PipelineCommit
    dimension: Dimension
    changes: AuditChanges | None
    existing_entities: Mapping[str, int] = field(default_factory=dict)


def plan_changes(
    warehouse: Warehouse, state: StoredState, comparison: Comparison, in_effect: DataFrame | None, audit: PipelineCommit
) -> AuditChanges | None:
    """Return what the audit gets by the batches that a load appends, without its counts.

    Args:
        warehouse: The warehouse.
        state: The stored state.
        comparison: The batches.
        in_effect: The change records in effect of the affected entities; None if the load affects none.
        audit: The last commit of the audit.

    Returns:
        None if the step of the load is not the only one that the audit lacks, or if there is none.
    """
    intake, dimension = comparison.intake, state.dimension
    is_in_step = audit.applied(state.log.table.name).commit == state.log.commit.number and not state.has_pending_commits
    if not (is_in_step and intake.batches_to_append):
        return None
    if in_effect is None:
        columns = {name: ddl for name, ddl, _ in audit_schema(dimension)}
        return AuditChanges(empty_frame(warehouse.spark, columns))
    changed = rows_to_append(comparison.records, intake, dimension)
    if intake.removed:
        columns_of_records = [col(name) for name in change_record_columns(dimension)]
        changed = changed.unionByName(comparison.removed_records().select(*columns_of_records))
    since = earliest_change([*intake.batches_to_append, *intake.removed], state.batches)
    records = AuditStepRecords(
        changed=changed,
        in_effect=in_effect,
        kinds=SnapshotKinds(),
        since=since,
        is_newest=is_newest(since, state.batches),
        entity_limit=comparison.entity_limit,
        has_one_record_per_entity=comparison.has_one_record_per_entity,
        key_range=comparison.key_range,
    )
    needs_recorded = audit.exists and not records.is_newest
    recorded = warehouse.table(audit.table).read(audit.newest) if needs_recorded else None
    return AuditChanges(step_changes(warehouse, recorded, dimension, state.log.commit.number + 1, records))


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


def record_from(
    warehouse: Warehouse,
    dimension: Dimension,
    run_id: str,
    progress: Progress,
    last: PipelineCommit,
    loaded: LoadedAuditStep | None,
) -> AuditResult:
    """Record from the last commit of the audit.

    Args:
        last: The last commit of the audit, read before its upstream tables.
        loaded: The step of a load that has just committed, if any.
    """
    table, log_table = (warehouse.table(name) for name in (dimension.name, dimension.name + LOG_SUFFIX))
    # The downstream tables are read before their upstream, which a load in between can only move ahead.
    commit = loaded.commit if loaded else table.last_commit_or_zero()
    log_commit = loaded.log_commit if loaded else log_table.last_commit_or_zero()
    raise_first(damage(log_commit, [last, commit]))
    applied = last.applied(log_commit.table).commit
    if log_commit.number <= applied or not commit.exists:
        return AuditResult(dimension.name, {}, last.newest)
    steps: Sequence[tuple[AuditStep, AuditChanges | AuditStepRecords]]
    if loaded is not None and loaded.changes is not None and log_commit.number == applied + 1:
        dimension = loaded.dimension
        steps = [(step, loaded.changes) for step in pending_steps([log_commit], [commit], applied)]
    else:
        steps, dimension = _steps_of_log(warehouse, dimension, last, commit, log_commit)
    audit = ensure_audit(warehouse, dimension, last)
    by_attribute = loaded is not None and any(loaded.existing_entities.values())
    last = replace(last, newest=max(last.newest, 0))  # a table that was just created has no row at its version 0
    counts: list[_Counts] = []
    for step, changes in steps:
        if isinstance(changes, AuditStepRecords):
            rows = step_changes(warehouse, audit.read(last.newest), dimension, step.log_commit, changes)
            groups = count_changes(rows, dimension, by_attribute=by_attribute).collect()
            changes = AuditChanges(rows, transition_counts(groups, dimension))
        marks = {
            **log_mark(log_commit, step.log_commit),
            dimension.name: HighWaterMark(step.dimension_commit, commit.table_id, step.table_version),
        }
        following = last.next(high_water_marks=marks, run_id=run_id)
        last = audit.append(_at_step(changes.rows, dimension, step), following)
        counts += changes.counts
    result = _audit_result(dimension, last.newest, counts)
    progress(f"{audit.name}: appended {pluralize(result.counts.transitions.total(), 'row')}")
    return result


def _audit_result(dimension: Dimension, table_version: int, counts: Sequence[_Counts]) -> AuditResult:
    by_delivery: defaultdict[str, TransitionCounts] = defaultdict(TransitionCounts)
    versions_by_attribute: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for delivery, attribute, added in counts:
        if attribute is None:
            by_delivery[delivery] += added
        else:
            versions_by_attribute[delivery][attribute] += added.opened
    return AuditResult(dimension.name, dict(by_delivery), table_version, dict(versions_by_attribute))


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


def transition_counts(groups: Iterable[Row], dimension: Dimension) -> list[_Counts]:
    """Return delivery, attribute and counts of each collected group of `count_changes`."""
    counts: list[_Counts] = []
    for (delivery, name, change_type, follows_version), count in groups:
        opened = count if change_type in opening_change_types(dimension) else 0
        is_closed = follows_version == "true" and change_type in (INSERT, UPDATE, LOGICAL_DELETE)
        added = TransitionCounts(Counter({change_type: count}), opened, count if is_closed else 0)
        counts.append((delivery, name, added))
    return counts


def _steps_of_log(
    warehouse: Warehouse,
    dimension: Dimension,
    audit: PipelineCommit,
    commit: PipelineCommit,
    log_commit: PipelineCommit,
) -> tuple[list[tuple[AuditStep, AuditStepRecords]], Dimension]:
    """Return the pending steps with their records as the log has them, and the declaration with its former names."""
    log = read_log(warehouse, dimension, log_commit)
    applied = audit.applied(log_commit.table).commit
    steps = _steps_to_record(warehouse.table(dimension.name), log, audit, commit, applied)
    batches = log.committed_batches() if steps else []
    starts = [applied, *[step.log_commit for step in steps]]
    pairs = zip(starts, steps, strict=False)
    return [(step, _records_of_log(log, batches, after, step.log_commit)) for after, step in pairs], log.dimension


def _records_of_log(log: ChangeLog, batches: Sequence[tuple[int, Batch]], after: int, upto: int) -> AuditStepRecords:
    delivered_until = [batch for number, batch in batches if number <= upto]
    changed = set(in_effect_at(batches, after)) ^ set(in_effect_at(batches, upto))
    return AuditStepRecords(
        changed_records(log, batches, after=after, upto=upto),
        records_in_effect(log.rows(), delivered_until).where(F.col(COMMIT) <= upto).drop(COMMIT),
        SnapshotKinds.from_batches(delivered_until, log.dimension),
        earliest_change(changed, delivered_until),
    )


def _steps_to_record(
    table: Table, log: ChangeLog, audit: PipelineCommit, dimension: PipelineCommit, applied: int
) -> list[AuditStep]:
    """Return the pending steps up to the last commit of the log; later ones are left to the next recording."""
    commits = table.commits_since(_commit_before_last_used(audit, dimension))
    is_one_behind = log.commit.number == applied + 1
    log_commits = [log.commit] if is_one_behind else log.table.commits_since(applied)
    return [step for step in pending_steps(log_commits, commits, applied) if step.log_commit <= log.commit.number]


def _commit_before_last_used(audit: PipelineCommit, dimension: PipelineCommit) -> int:
    """Return the number of the dimension's commit before the last one that the audit has used.

    It is 0 if the audit has used another table, or one with more commits: its commit numbers are then those of another
    table.
    """
    mark = audit.applied(dimension.table)
    is_same = mark.table_id != 0 and mark.table_id == dimension.table_id and mark.commit <= dimension.number
    return max(0, mark.commit - 1) if is_same else 0


def audit_commit(warehouse: Warehouse, dimension: Dimension) -> PipelineCommit:
    """Return the last commit of the audit, number 0 if it does not exist.

    Raises:
        SetupError: The audit was not created by this package.
        ForeignCommitError: Another program changed its rows.
    """
    audit = warehouse.table(dimension.name + AUDIT_SUFFIX)
    last = audit.last_commit_or_zero()
    if last.foreign is not None and last.number == 0:
        require_pipeline_tables(audit)
    raise_first(foreign_commit_errors([last]))
    return last


def ensure_audit(warehouse: Warehouse, dimension: Dimension, last: PipelineCommit) -> Table:
    """Return the audit, created if it does not exist, and with the columns that an earlier release did not create.

    Such an audit has used a key list, which its commits record, or has no commit since an earlier release created it.
    """
    audit = warehouse.writable(dimension.name + AUDIT_SUFFIX)
    properties = {FORMAT: "1", **audit_properties(dimension)}
    comment = f"Every change of an entity of {dimension.name}, with its cause"
    ensure_table(audit, last, audit_schema(dimension), properties, comment)
    if last.exists and (not last.number or dimension.name + KEYS_SUFFIX in last.high_water_marks):
        expected = [(name, ddl) for name, ddl, _ in audit_schema(dimension)]
        for step in column_steps(audit.name, audit.columns(), expected, {}):
            execute(step, warehouse)
    return audit


def step_changes(
    warehouse: Warehouse, audit: DataFrame | None, dimension: Dimension, log_commit: int, records: AuditStepRecords
) -> DataFrame:
    """Compute what a step appends to the audit (`audit_changes`).

    If every recorded transition is earlier than what changed, none is read, and all later ones are new.
    """
    in_effect, recorded = records.in_effect, None
    if not records.is_newest and audit is not None:
        names = list(dimension.key_names)
        causes = changed_entities(records.changed, dimension)
        if records.entity_limit is None:  # rows of the log, not computed ones
            causes = checkpoint(causes)
        causes = with_broadcast(causes, causes.count() if records.entity_limit is None else records.entity_limit)
        # Literals, so that files whose transitions are all earlier, or of other entities, are not read.
        is_later = F.lit(True) if records.since is None else F.col(CHANGE_TS) >= timestamp_literal(records.since)
        has_key = F.lit(True) if records.key_range is None else records.key_range
        rows = with_change_types(audit.where(is_later & has_key), dimension)
        recorded = RecordedTransitions(rows.join(causes, names, "left_semi"), causes)
        in_effect = in_effect.join(causes, names, "left_semi")
    transitions = build_transitions(
        in_effect,
        dimension,
        kinds=records.kinds,
        has_one_record_per_entity=records.has_one_record_per_entity,
        key_hash=warehouse.key_hash,
    )
    if records.since is not None:
        transitions = transitions.where(F.col(CHANGE_TS) >= constant_time(records.since, F.col(CORRELATION)))
    return checkpoint(audit_changes(transitions, dimension, recorded=recorded, log_commit=log_commit))


def _at_step(changes: DataFrame, dimension: Dimension, step: AuditStep) -> DataFrame:
    """Return the rows to append to the audit, as they became readable at a step."""
    anchor = F.col(CORRELATION)
    version = constant_number(step.table_version, anchor) if step.table_version >= 0 else F.lit(None)
    return recorded_rows(changes, dimension, at=constant_time(step.at, anchor), version=version)
