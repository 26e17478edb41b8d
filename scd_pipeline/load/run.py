"""Load deliveries into a dimension, a fact or a landing table and all of its tables.

A load is a chain of steps; each uses the value of the preceding step and returns a new value:

1. Copy the tables that a history has under its former name (`former_name.copy_former_tables`). Before a plan of a fact:
   add reserved members to dimensions whose loads have not written it (`reserved_members.with_reserved_members`).
2. Plan (`load_plan.build_plan`): read the stored state, read the deliveries, accept or reject each batch, compute
   change records and row actions; write nothing.
3. Commit: execute the schema steps and append to the change log (`commit_log`), then write the changed rows
   (`commit_table`).
4. Record the audit of a dimension (`audit.record_from`).
5. After every fiftieth commit, combine small files (`compaction.compact_small_files`).

A killed load leaves complete commits, and the next load continues from them (S17).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import DeclaredTable, Dimension, Fact
from scd_pipeline.declaration.declared import as_dimension, referenced_dimensions
from scd_pipeline.declaration.tables import ARCHIVE_SUFFIX, AUDIT_SUFFIX, HISTORY_SUFFIX
from scd_pipeline.deliveries.bad_row_explanations import explain_bad_rows
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.child_tables import ChangedVersions, write_child_tables
from scd_pipeline.delta.commits import PipelineCommit, UnchangedDimension
from scd_pipeline.delta.copies import former_dimension
from scd_pipeline.delta.data_files import missing_files_reported
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.history_table import closed_marks, remove_from_archive, write_versions
from scd_pipeline.delta.log_stores import log_store_warnings
from scd_pipeline.delta.upstream import log_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import BatchRejected, LoadWarning
from scd_pipeline.expressions import as_text_columns
from scd_pipeline.frames import with_broadcast
from scd_pipeline.history.actions import ACTION, OPEN, OVERWRITE
from scd_pipeline.history.role_keys import reserved_keys
from scd_pipeline.history.schema import dimension_schema
from scd_pipeline.load.attribute_changes import AttributeChange
from scd_pipeline.load.audit import AuditResult, LoadedAuditStep, audit_commit, record_from
from scd_pipeline.load.compaction import compact_small_files, is_compaction_due
from scd_pipeline.load.deadline import Deadline
from scd_pipeline.load.facts import FactKeys, read_fact_keys
from scd_pipeline.load.former_name import copy_former_tables, table_copies
from scd_pipeline.load.inferred_members import write_inferred_members
from scd_pipeline.load.load_plan import LoadPlan, build_plan
from scd_pipeline.load.rapid_changes import rapid_change_warnings
from scd_pipeline.load.reserved_members import reserved_members, with_reserved_members
from scd_pipeline.load.retry import Progress, Retry, ignore_progress, with_retries
from scd_pipeline.load.session_settings import RunningLoad, running_load
from scd_pipeline.load.write import RowChanges, write_changes
from scd_pipeline.texts import pluralize


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The effect of a load.

    Attributes:
        table: The name of the dimension or the fact.
        results: The result of each delivery, in their order.
        row_counts: The number of changed rows of the table, by row action.
        table_version: The version of the table after the load's commit.
        log_version: The version of the change log after the load's commit.
        seconds: The duration.
        examples: Some of the changed rows as text, with their row action and without personal attributes.
        audit: The effect on the audit of a dimension; None for any other table, and if the load did not record.
        unknown_members: For a fact, the number of written rows with the key of the unknown member, by role.
        warnings: What is rarely intended, such as an attribute that opens versions of most entities.
        attribute_changes: The attributes that are new, renamed, wider, retired, or provided again.
        dimension: The declaration; a mirrored one has the attributes of all deliveries.
        record_limit: An upper bound of the number of records in the change log; None if it is unknown.
    """

    table: str
    results: tuple[BatchResult, ...]
    row_counts: dict[str, int]
    table_version: int
    log_version: int
    seconds: float
    examples: tuple[Mapping[str, str | None], ...] = ()
    audit: AuditResult | None = None
    unknown_members: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[LoadWarning, ...] = ()
    attribute_changes: tuple[AttributeChange, ...] = ()
    dimension: Dimension | None = None
    record_limit: int | None = None

    @property
    def rejected(self) -> tuple[BatchResult, ...]:
        """The results of the rejected deliveries."""
        return tuple(batch for batch in self.results if batch.outcome == "rejected")

    def raise_if_rejected(self) -> None:
        """Raise the error of the first rejected delivery, if any.

        Raises:
            BatchRejected: `others` is the number of the other rejected deliveries.
        """
        if self.rejected:
            first = self.rejected[0]
            error = BatchRejected(first.code, first.batch_id, **first.details)
            error.others = len(self.rejected) - 1
            raise error


def plan(
    warehouse: Warehouse,
    table: DeclaredTable,
    deliveries: Sequence[Delivery] = (),
    *,
    dimensions: Mapping[str, LoadPlan] | None = None,
    warnings: Sequence[LoadWarning] = (),
) -> LoadPlan:
    """Return what a load of these deliveries would change; write nothing.

    Args:
        warehouse: The warehouse of the tables.
        table: The declaration.
        deliveries: The deliveries of the table's sources, in any order.
        dimensions: For a fact, the plans of its dimensions by name: it gets the keys that their loads would give.
        warnings: The warnings of the discovery of the deliveries, which the plan repeats.

    Raises:
        ScdError: As `load`.
    """

    def attempt() -> LoadPlan:
        if isinstance(table, Fact):
            keys = read_fact_keys(warehouse, table, dimensions)
            return build_plan(warehouse, table.as_dimension(), deliveries, fact_keys=keys)
        dimension = as_dimension(table)
        former = former_dimension(warehouse, dimension)
        if former is None:
            return build_plan(warehouse, dimension, deliveries)
        copies = table_copies(warehouse, dimension, former)
        return build_plan(warehouse, former, deliveries).under_new_name(dimension, copies)

    with missing_files_reported(warehouse, _table_names(table)), running_load(warehouse.spark, warehouse.load_cores):
        planned = with_retries(table.name, lambda number: attempt(), Retry(), ignore_progress)
    results = explain_bad_rows(warehouse.spark, planned.dimension, deliveries, planned.results)
    return replace(planned, results=results, warnings=(*warnings, *planned.warnings))


def load(
    warehouse: Warehouse,
    table: DeclaredTable,
    deliveries: Sequence[Delivery] = (),
    *,
    run_id: str = "",
    retry: Retry | None = None,
    progress: Progress = ignore_progress,
    examples: int = 0,
    warnings: Sequence[LoadWarning] = (),
    has_facts: bool = False,
    deadline: Deadline | None = None,
) -> LoadResult:
    """Load the deliveries into a dimension, a fact or a landing table, and bring all of its tables up to date (S17).

    All deliveries are loaded in one pass. A rejected batch is skipped and reported in the result; the others are
    loaded. Without deliveries, a load only completes earlier loads, rebuilds dropped tables and re-keys a fact.

    Args:
        warehouse: The warehouse of the tables.
        table: The declaration.
        deliveries: The deliveries of the table's sources, in any order.
        run_id: An id of this load, which is stored with its batches and commits.
        retry: The number of attempts, 5 by default, and the waits between them; only transient failures are
            retried (`with_retries`).
        progress: Called with each progress message.
        examples: How many changed rows the result shows.
        warnings: The warnings of the discovery of the deliveries, which the result repeats.
        has_facts: Whether facts reference the dimension, whose table then gets the unknown member with the next rows
            that change (S23); ignored for a fact, whose load adds it to a dimension that has none yet.
        deadline: The time after which no further step begins; by default none.

    Raises:
        DeadlineExceeded: The time was over before the next step; the next load continues.
        RetriesExhausted: Every attempt met a write conflict or another transient failure.
        DeclarationError: The tables were created by another declaration.
        SetupError: One of the tables was not created by this package.
        ForeignCommitError: Another program changed the rows of one of the tables.
        HighWaterMarkError: One of the tables was lost or replaced.
        DataFilesLost: A data file of one of the tables does not exist.
        KeyCollision: Two versions have the same surrogate key, or a version has a reserved one.
        InvariantViolated: The result would violate an invariant.
        SourceDataError: A delivery does not fit the declaration of its channel.
    """
    with (
        missing_files_reported(warehouse, _table_names(table)),
        running_load(warehouse.spark, warehouse.load_cores) as running,
    ):
        context = _LoadContext(warehouse, run_id, retry or Retry(), progress, examples, has_facts, running, deadline)
        for dimension in referenced_dimensions(table) or (as_dimension(table),):
            _copy_former_tables(context, dimension)
        if isinstance(table, Fact):
            committed = _load_fact(context, table, deliveries)
        else:
            committed = _load_dimension(context, as_dimension(table), deliveries)
        compact_small_files(warehouse, committed.tables_to_compact, progress)
    warnings = (*warnings, *log_store_warnings(warehouse), *committed.result.warnings)
    return replace(committed.result, warnings=warnings)


def _table_names(table: DeclaredTable) -> list[str]:
    """Return the names of all tables that a load reads."""
    return [name for each in (as_dimension(table), *referenced_dimensions(table)) for name in each.table_names]


@dataclass(frozen=True, slots=True)
class _LoadContext:
    """What all steps of a load share: arguments of `load`, and this load among those of its session."""

    warehouse: Warehouse
    run_id: str = ""
    retry: Retry = field(default_factory=Retry)
    progress: Progress = ignore_progress
    examples: int = 0
    has_facts: bool = False
    running: RunningLoad | None = None
    deadline: Deadline | None = None

    def begin_step(self, table: str, step: str) -> None:
        """Check that there is time for a step.

        Raises:
            DeadlineExceeded: The time of the load is over.
        """
        if self.deadline is not None:
            self.deadline.require_time(table, step)


@dataclass(frozen=True, slots=True)
class _CommittedLoad:
    """A load whose log and table are written.

    Attributes:
        result: Its result, without the audit.
        step: The step that the audit has to record.
        tables_to_compact: The tables whose small files are to be combined (`compaction`).
    """

    result: LoadResult
    step: LoadedAuditStep
    tables_to_compact: tuple[str, ...]


def _copy_former_tables(context: _LoadContext, dimension: Dimension) -> None:
    context.begin_step(dimension.name, "read the stored state")
    with_retries(
        dimension.name,
        lambda number: copy_former_tables(context.warehouse, dimension, context.progress),
        context.retry,
        context.progress,
    )


def _load_dimension(context: _LoadContext, dimension: Dimension, deliveries: Sequence[Delivery]) -> _CommittedLoad:
    """Ingest, apply and record; a landing table has no audit."""
    if not dimension.has_audit:
        return _ingest_and_apply(context, dimension, deliveries)
    last = with_retries(
        dimension.name + AUDIT_SUFFIX,
        lambda number: audit_commit(context.warehouse, dimension),
        context.retry,
        context.progress,
    )
    committed = _ingest_and_apply(context, dimension, deliveries, audit=last)
    audit = _record(context, dimension, last, committed.step)
    result, step = committed.result, committed.step
    warnings = rapid_change_warnings(step.dimension, audit.versions_by_attribute, step.existing_entities)
    return replace(committed, result=replace(result, audit=audit, warnings=(*result.warnings, *warnings)))


def record(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    run_id: str = "",
    retry: Retry | None = None,
    progress: Progress = ignore_progress,
) -> AuditResult:
    """Bring the audit of a dimension up to date; do nothing if it is.

    Raises:
        RetriesExhausted: Every attempt met a write conflict or another transient failure.
        PipelineCommitMissing: The history of a table has no pipeline commit left.
        ScdError: As `read_state`, if the audit lacks a step.
    """
    return _record(_LoadContext(warehouse, run_id, retry or Retry(), progress), dimension)


def _record(
    context: _LoadContext,
    dimension: Dimension,
    last: PipelineCommit | None = None,
    loaded: LoadedAuditStep | None = None,
) -> AuditResult:
    """Record; the first attempt continues from what a load has read and committed, if any."""

    warehouse, run_id, progress = context.warehouse, context.run_id, context.progress

    def attempt(number: int) -> AuditResult:
        context.begin_step(dimension.name, "record the audit")
        if number == 0 and last is not None:
            return record_from(warehouse, dimension, run_id, progress, last, loaded)
        return record_from(warehouse, dimension, run_id, progress, audit_commit(warehouse, dimension), None)

    return with_retries(dimension.name + AUDIT_SUFFIX, attempt, context.retry, progress)


def _load_fact(context: _LoadContext, fact: Fact, deliveries: Sequence[Delivery]) -> _CommittedLoad:
    """Ingest and apply, with the surrogate keys of the fact's dimensions, each of which has an unknown member."""
    warehouse, run_id = context.warehouse, context.run_id

    def read_keys() -> FactKeys:
        keys = read_fact_keys(warehouse, fact)
        pinned = {
            name: with_reserved_members(warehouse, each, run_id, reserved_keys(fact, each.dimension))
            for name, each in keys.pinned.items()
        }
        return replace(keys, pinned=pinned)

    return _ingest_and_apply(context, fact.as_dimension(), deliveries, read_keys=read_keys)


class _IngestResult(NamedTuple):
    """A plan, and the log's last commit with its change records."""

    load_plan: LoadPlan
    log: PipelineCommit


def ingest_and_apply(
    warehouse: Warehouse,
    dimension: Dimension,
    deliveries: Sequence[Delivery] = (),
    *,
    run_id: str = "",
    retry: Retry | None = None,
) -> LoadResult:
    """Ingest the deliveries into the change log and apply the log to its table, without the audit.

    The arguments, the result and the errors are those of `load`.
    """
    return _ingest_and_apply(_LoadContext(warehouse, run_id, retry or Retry()), dimension, deliveries).result


def _ingest_and_apply(
    context: _LoadContext,
    dimension: Dimension,
    deliveries: Sequence[Delivery],
    *,
    read_keys: Callable[[], FactKeys] | None = None,
    audit: PipelineCommit | None = None,
) -> _CommittedLoad:
    """Ingest the deliveries into the change log and apply the log to its table.

    Args:
        context: The load.
        dimension: The declaration.
        deliveries: The deliveries.
        read_keys: For a fact, called at each attempt for its surrogate keys.
        audit: The last commit of the audit, read before this call, if the caller records next.
    """
    start, name = time.monotonic(), dimension.name

    def ingest(delivered: Sequence[Delivery]) -> _IngestResult:
        return _ingest(context, dimension, delivered, read_keys() if read_keys else None, audit)

    def apply(ingested: _IngestResult) -> _CommittedLoad:
        context.begin_step(name, "write its rows")
        ingested = ingested._replace(load_plan=_with_inferred_members(context, ingested.load_plan))
        commit = commit_table(context.warehouse, ingested.load_plan, ingested.log, context.progress)
        return _committed_load(context, first.load_plan, ingested, commit, start)

    first = with_retries(name, lambda number: ingest(deliveries), context.retry, context.progress)
    # After a conflict the log has the deliveries already: only the table is planned again.
    committed = with_retries(
        name, lambda number: apply(first if number == 0 else ingest(())), context.retry, context.progress
    )
    results = explain_bad_rows(context.warehouse.spark, dimension, deliveries, committed.result.results)
    return replace(committed, result=replace(committed.result, results=results))


def _ingest(
    context: _LoadContext,
    dimension: Dimension,
    deliveries: Sequence[Delivery],
    fact_keys: FactKeys | None,
    audit: PipelineCommit | None,
) -> _IngestResult:
    """Plan the load, and append to the change log."""
    context.begin_step(dimension.name, "plan its rows")
    load_plan = build_plan(
        context.warehouse,
        dimension,
        deliveries,
        run_id=context.run_id,
        progress=context.progress,
        fact_keys=fact_keys,
        has_facts=context.has_facts,
        audit=audit,
        running=context.running,
    )
    context.begin_step(dimension.name, "write to its change log")
    return _IngestResult(load_plan, commit_log(context.warehouse, load_plan, context.progress))


def _with_inferred_members(context: _LoadContext, load_plan: LoadPlan) -> LoadPlan:
    """Write the inferred members whose keys the rows of a fact have, and return the plan as of these commits.

    A load that is killed afterwards leaves members to which the next load of the fact refers.
    """
    marks = dict(load_plan.high_water_marks)
    for pinned in load_plan.inferred:
        run_id, progress = context.run_id, context.progress
        marks |= write_inferred_members(context.warehouse, pinned, run_id=run_id, progress=progress).high_water_marks
    return replace(load_plan, high_water_marks=marks)


def _committed_load(
    context: _LoadContext, delivered: LoadPlan, ingested: _IngestResult, commit: PipelineCommit, start: float
) -> _CommittedLoad:
    """Return the load after its commits.

    Args:
        context: The load.
        delivered: The plan of its first attempt, which has the results of the deliveries.
        ingested: The plan that was written, and the last commit of the log.
        commit: The last commit of the table.
        start: When the load began, by the monotonic clock.
    """
    load_plan, log = ingested
    result = LoadResult(
        load_plan.dimension.name,
        delivered.results,
        dict(load_plan.row_counts),
        commit.newest,
        log.newest,
        time.monotonic() - start,
        _examples(load_plan, context.examples),
        unknown_members=load_plan.unknown_members,
        warnings=delivered.warnings,
        attribute_changes=delivered.attribute_changes if delivered.is_committed else (),
        dimension=load_plan.dimension,
        record_limit=log.records,
    )
    step = LoadedAuditStep(commit, log, load_plan.dimension, load_plan.audit, delivered.existing_entities)
    return _CommittedLoad(result, step, _tables_to_compact(delivered, log, commit))


def _tables_to_compact(load_plan: LoadPlan, log: PipelineCommit, commit: PipelineCommit) -> tuple[str, ...]:
    """Return the tables with many commits since they were compacted, among those to which a load has committed.

    The audit has about as many commits as the log, and a history table or a child table as its dimension.

    Args:
        load_plan: The first plan of the load.
        log: The last commit of the log.
        commit: The last commit of the table.
    """
    name, tables = commit.table, []
    if is_compaction_due(load_plan.log_commit.number, log.number):
        tables += [log.table, name + AUDIT_SUFFIX]
    if is_compaction_due(load_plan.dimension_commit.number, commit.number):
        tables += [name, name + HISTORY_SUFFIX, *(child.table.name for child in load_plan.children)]
    return tuple(tables)


def _examples(load_plan: LoadPlan, limit: int) -> tuple[Mapping[str, str | None], ...]:
    if not limit or not load_plan.has_actions:
        return ()
    return tuple(row.asDict() for row in as_text_columns(load_plan.examples(limit)).collect())


def commit_log(warehouse: Warehouse, load_plan: LoadPlan, progress: Progress = ignore_progress) -> PipelineCommit:
    """Execute the plan's schema steps, and append its batches and change records to the log.

    Without batches there is no commit of the log.

    Returns:
        The last pipeline commit of the log.

    Raises:
        ConflictError: Another writer committed first.
    """
    load_plan.prepare(warehouse)
    last = load_plan.log_commit
    if not load_plan.batches:
        return last
    changes_table = load_plan.has_actions or load_plan.has_pending_commits
    applied = load_plan.applied if changes_table else last.number + 1
    commit = last.next(
        unchanged=UnchangedDimension(load_plan.dimension_commit.number, applied),
        batches=tuple(batch.id for batch in load_plan.batches),
        run_id=load_plan.run_id,
        records=_records_after(last, load_plan.record_limit),
    )
    done = load_plan.writable_log(warehouse).append(load_plan.batches, load_plan.change_records, commit)
    progress(f"{done.table}: wrote commit {done.number} ({pluralize(len(load_plan.batches), 'batch')})")
    return done


def _records_after(last: PipelineCommit, appended: int) -> int | None:
    stored = last.stored_records
    return None if stored is None else stored + appended


def commit_table(
    warehouse: Warehouse, load_plan: LoadPlan, log: PipelineCommit, progress: Progress = ignore_progress
) -> PipelineCommit:
    """Write the plan's row actions to the dimension or fact; without any there is no commit (S15), with exceptions.

    A fact whose rows have been compared with newer dimensions gets a commit without rows, for its high-water marks. So
    does a dimension whose child table is rebuilt, and a table that lacked commits of the log: a concurrent load that
    has not applied them yet then meets a write conflict.

    Returns:
        The last pipeline commit of the table.

    Raises:
        ConflictError: Another writer committed first.
    """
    last, name = load_plan.dimension_commit, load_plan.dimension.name
    has_marks = load_plan.has_newer_upstream or load_plan.has_pending_commits or load_plan.has_stale_children
    if not (load_plan.has_actions or has_marks):
        # The schema steps of a load that appends to its log have created the table.
        return replace(last, newest=0) if load_plan.batches and not last.exists else last
    commit = last.next(
        high_water_marks={**log_mark(log, log.number), **load_plan.high_water_marks},
        roles_checksum=load_plan.roles_checksum,
        batches=log.batches,
        run_id=load_plan.run_id,
        records=load_plan.write.sizes.after,
    )
    actions = frozenset(action for action, count in load_plan.row_counts.items() if count)
    changed_rows = _with_broadcast(load_plan.changed_rows, load_plan)
    closes_with_elements = load_plan.closes_with_elements
    versions = ChangedVersions(load_plan.stored_versions, changed_rows, actions, closes_with_elements)
    commit = write_child_tables(warehouse, load_plan.dimension, load_plan.children, versions, commit, last)
    if load_plan.has_actions:
        done = _write_actions(warehouse, load_plan, commit, log.engine if load_plan.batches else "")
    else:
        marks = {**closed_marks(last), **commit.high_water_marks}
        done = warehouse.writable(name).commit_empty(replace(commit, high_water_marks=marks))
    rows = pluralize(sum(load_plan.row_counts.values()), "row")
    progress(f"{name}: wrote commit {commit.number} ({rows})")
    return done


def _with_broadcast(changed_rows: DataFrame, load_plan: LoadPlan) -> DataFrame:
    """Return the changed rows with the hint to broadcast them, if they are few.

    Spark estimates their size by the join that computed them, and would shuffle the table to look them up in it.
    """
    columns = len(dimension_schema(load_plan.dimension))
    return with_broadcast(changed_rows, sum(load_plan.row_counts.values()) + 1, columns)


def _write_actions(warehouse: Warehouse, load_plan: LoadPlan, commit: PipelineCommit, engine: str) -> PipelineCommit:
    table = warehouse.writable_by(load_plan.dimension.name, engine)
    actions = {action for action, count in load_plan.row_counts.items() if count}
    changed_rows = load_plan.changed_rows
    if load_plan.adds_unknown_member:
        # A repaired table may have it although the repair has not recorded that.
        action = OVERWRITE if load_plan.dimension_commit.exists else OPEN
        member = reserved_members(warehouse, load_plan.dimension).withColumn(ACTION, F.lit(action))
        changed_rows = changed_rows.unionByName(member, allowMissingColumns=True)
        actions, commit = {*actions, action}, replace(commit, reserved_member=True)
    changed_rows = _with_broadcast(changed_rows, load_plan)
    last, history = load_plan.dimension_commit, load_plan.history_commit
    if load_plan.dimension.history_table:
        return write_versions(warehouse, table, changed_rows, actions, load_plan.dimension, commit, last, history)
    if load_plan.dimension.closed_suffix == ARCHIVE_SUFFIX:
        commit = remove_from_archive(warehouse, changed_rows, actions, load_plan.dimension, commit, last, history)
    rows = to_stored_columns(changed_rows, load_plan.dimension)
    changes = RowChanges(load_plan.stored_versions, rows, frozenset(actions), load_plan.dimension)
    return write_changes(table, changes, load_plan.write, commit, load_plan.properties)
