"""Record the audit of a dimension: bring it up to date with the change log (S17, S21).

The audit has one step for each commit of the dimension, and for each commit of the log that changed no row of it. So
the audit as known at a time shows the rows that readers could see then. The next load completes a killed recording.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX, LOG_SUFFIX
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.audit_table import audit_properties, audit_schema, recorded_rows
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.schema import FORMAT, column_steps, ensure_table, require_pipeline_tables
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.upstream import damage, foreign_commit_errors, log_mark, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import constant_number, constant_time
from scd_pipeline.history.transitions import CORRELATION
from scd_pipeline.instants import from_micros
from scd_pipeline.load.audit_changes import AuditChanges, GroupCounts, TransitionCounts
from scd_pipeline.load.load_plan import plan_audit
from scd_pipeline.load.retry import Progress
from scd_pipeline.load.schema_steps import execute
from scd_pipeline.load.state import StoredState, read_state
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
    by_attribute = loaded is not None and any(loaded.existing_entities.values())
    plan_step: Callable[[AuditStep, PipelineCommit], AuditChanges]
    if loaded is not None and (planned := loaded.changes) is not None:
        dimension, steps = loaded.dimension, pending_steps([log_commit], [commit], applied)
        plan_step = lambda step, last: planned  # noqa: E731
    else:
        state = read_state(warehouse, dimension, [last])
        commit, log_commit, dimension, steps = (
            state.commit,
            state.log.commit,
            state.dimension,
            _steps(warehouse, state, last),
        )
        plan_step = partial(_plan_step, warehouse, state, by_attribute)
    audit = ensure_audit(warehouse, dimension, last)
    last = replace(last, newest=max(last.newest, 0))  # a table that was just created has no row at its version 0
    counts: list[GroupCounts] = []
    for step in steps:
        changes = plan_step(step, last)
        marks = {
            **log_mark(log_commit, step.log_commit),
            dimension.name: HighWaterMark(step.dimension_commit, commit.table_id, step.table_version),
        }
        following = last.next(high_water_marks=marks, run_id=run_id)
        last = audit.append(_at_step(changes.rows, dimension, step), following)
        counts += changes.counts or ()
    result = _audit_result(dimension, last.newest, counts)
    progress(f"{audit.name}: appended {pluralize(result.counts.transitions.total(), 'row')}")
    return result


def _audit_result(dimension: Dimension, table_version: int, counts: Sequence[GroupCounts]) -> AuditResult:
    by_delivery: defaultdict[str, TransitionCounts] = defaultdict(TransitionCounts)
    versions_by_attribute: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for delivery, attribute, added in counts:
        if attribute is None:
            by_delivery[delivery] += added
        else:
            versions_by_attribute[delivery][attribute] += added.opened
    return AuditResult(dimension.name, dict(by_delivery), table_version, dict(versions_by_attribute))


def _plan_step(
    warehouse: Warehouse, state: StoredState, by_attribute: bool, step: AuditStep, audit: PipelineCommit
) -> AuditChanges:
    """Return what the audit gets by a step that the dimension has: the plan of this step, without deliveries."""
    at_step = state.at_step(audit.applied(state.log.table.name).commit, step.log_commit)
    return plan_audit(warehouse, at_step, audit, by_attribute=by_attribute)


def _steps(warehouse: Warehouse, state: StoredState, audit: PipelineCommit) -> list[AuditStep]:
    """Return the pending steps up to the last commit of the log; later ones are left to the next recording."""
    log, applied = state.log, audit.applied(state.log.table.name).commit
    table = warehouse.table(state.commit.table)
    commits = table.commits_since(_commit_before_last_used(audit, state.commit))
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


def _at_step(changes: DataFrame, dimension: Dimension, step: AuditStep) -> DataFrame:
    """Return the rows to append to the audit, as they became readable at a step."""
    anchor = F.col(CORRELATION)
    version = constant_number(step.table_version, anchor) if step.table_version >= 0 else F.lit(None)
    return recorded_rows(changes, dimension, at=constant_time(step.at, anchor), version=version)
