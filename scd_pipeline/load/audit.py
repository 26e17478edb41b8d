"""Record the audit of a dimension: bring it up to the change log (S17, S21).

The audit has one step for each commit of the dimension, and for each commit of the log that changed no row of it. So
the audit as known at a time is what could be read at that time. The next load completes a killed recording.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import COMMIT, EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.audit_table import APPEND_ONLY, audit_rows, audit_schema, current_transitions
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.schema import FORMAT
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.upstream import damage, log_mark, raise_first, table_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col, timestamp_literal
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.transitions import (
    CHANGE_TYPE,
    INSERT,
    LOGICAL_DELETE,
    SOURCE_BATCH,
    UPDATE,
    build_transitions,
    key_columns,
)
from scd_pipeline.instants import from_micros
from scd_pipeline.load.keys import RecordedCommits, append_keys, open_keys
from scd_pipeline.load.log import changed_entities, open_log, records_in_effect
from scd_pipeline.load.retry import Progress

_UNKNOWN_TIME = from_micros(0)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the audit: the log up to a pipeline commit, as it became readable in the dimension.

    Attributes:
        log_commit: The number of the last log commit of the step.
        at: When the step became readable.
        dimension_commit: The pipeline commit of the dimension that made it readable.
        version: The table version of that commit, -1 if unknown.
    """

    log_commit: int
    at: datetime
    dimension_commit: int
    version: int


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The effect of a recording.

    Attributes:
        dimension: The name of the dimension.
        steps: The number of steps.
        changes_by_delivery: The number of audit rows by change type, by delivery (`source/channel/delivery`).
        table_version: The newest version of the audit.
    """

    dimension: str
    steps: int
    changes_by_delivery: dict[str, Counter[str]]
    table_version: int

    @property
    def rows(self) -> Counter[str]:
        """The number of audit rows by change type."""
        return sum(self.changes_by_delivery.values(), Counter())

    def change_counts(self, batch: BatchResult) -> Counter[str]:
        """Return the number of audit rows of a delivery, by change type."""
        delivery, _, _ = batch.batch_id.rpartition("/")
        return self.changes_by_delivery.get(delivery, Counter())


def versions(changes: Counter[str]) -> tuple[int, int]:
    """Return how many versions of the dimension these changes, counted by change type, opened and closed."""
    return changes[INSERT] + changes[UPDATE], changes[UPDATE] + changes[LOGICAL_DELETE]


def pending_steps(log: Sequence[PipelineCommit], dimension: Sequence[PipelineCommit], applied: int) -> list[Step]:
    """Return the steps after the log commit `applied`, in order.

    A log commit that the dimension has not applied yet is no step: no reader could have seen it. Of several dimension
    commits that apply the same log commit, the first is used.

    Args:
        log: Pipeline commits of the change log.
        dimension: Pipeline commits of the dimension.
        applied: The last log commit that the audit has applied.
    """
    versions = {commit.number: commit.table_version for commit in dimension}
    steps: dict[int, Step] = {}
    for commit in log:
        if commit.unchanged is not None and commit.unchanged.log_commit == commit.number:
            number = commit.unchanged.dimension_commit
            steps[commit.number] = Step(commit.number, commit.at or _UNKNOWN_TIME, number, versions.get(number, -1))
    for commit in dimension:
        last = commit.applied(commit.table + LOG_SUFFIX).commit
        steps.setdefault(last, Step(last, commit.at or _UNKNOWN_TIME, commit.number, commit.table_version))
    return [steps[number] for number in sorted(steps) if number > applied]


def record_from(
    warehouse: Warehouse,
    dimension: Dimension,
    run_id: str,
    progress: Progress,
    recorded: RecordedCommits,
    commit: PipelineCommit | None,
    log_commit: PipelineCommit | None,
) -> AuditResult:
    """Record from the last commits of the audit and the list of keys.

    Args:
        recorded: The last commits of the audit and of the list of keys.
        commit: The last commit of the dimension, if it was read already.
        log_commit: The last commit of the change log, if it was read already.
    """
    table, log_table = (warehouse.table(name) for name in (dimension.name, dimension.name + LOG_SUFFIX))
    # The downstream tables are read before their upstream, which a load in between can only move ahead.
    commit = commit or table.last_commit_or_zero()
    log_commit = log_commit or log_table.last_commit_or_zero()
    last = recorded.audit
    raise_first(damage(log_commit, [last, commit]))
    applied = last.applied(log_commit.table).commit
    if log_commit.number <= applied or not commit.exists:
        return AuditResult(dimension.name, 0, {}, last.newest)
    log = open_log(warehouse, dimension, log_commit)
    dimension = log.dimension
    audit, keys = _open_audit(warehouse, dimension, last), open_keys(warehouse, dimension, recorded.keys)
    # A table that was created just now has no row to read at its first version.
    last, last_keys = (replace(commit, newest=max(commit.newest, 0)) for commit in (last, recorded.keys))
    steps = _steps_to_record(table, log, last, commit, applied)
    batches = log.committed_batches() if steps else []
    changes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for step in steps:
        rows, assigned = _step_rows(warehouse, audit.read(last.newest), log, batches, applied, step)
        last_keys = append_keys(keys, last_keys, assigned, dimension, run_id)
        for row in rows.groupBy(SOURCE_BATCH, CHANGE_TYPE).count().collect():
            changes[row[SOURCE_BATCH]][row[CHANGE_TYPE]] += row["count"]
        marks = {
            **log_mark(log.commit, step.log_commit),
            dimension.name: HighWaterMark(step.dimension_commit, commit.table_id, step.version),
            **table_mark(last_keys),
        }
        last = audit.append(rows, last.next(high_water_marks=marks, run_id=run_id))
        applied = step.log_commit
    result = AuditResult(dimension.name, len(steps), dict(changes), last.newest)
    progress(f"{audit.name}: appended {sum(result.rows.values())} rows")
    return result


def _steps_to_record(
    table: Table, log: ChangeLog, audit: PipelineCommit, dimension: PipelineCommit, applied: int
) -> list[Step]:
    """Return the pending steps up to the last commit of the log; later ones are left to the next recording."""
    commits = table.commits_since(_last_used_commit(audit, dimension))
    is_one_behind = log.commit.number == applied + 1
    log_commits = [log.commit] if is_one_behind else log.table.commits_since(applied)
    return [step for step in pending_steps(log_commits, commits, applied) if step.log_commit <= log.commit.number]


def _last_used_commit(audit: PipelineCommit, dimension: PipelineCommit) -> int:
    """Return the number of the dimension's commit before the last one that the audit has used.

    It is 0 if the audit has used another table, or one with more commits: those numbers are not of this table.
    """
    mark = audit.applied(dimension.table)
    is_same = mark.table_id != 0 and mark.table_id == dimension.table_id and mark.commit <= dimension.number
    return max(0, mark.commit - 1) if is_same else 0


def _open_audit(warehouse: Warehouse, dimension: Dimension, last: PipelineCommit) -> Table:
    """Return the audit, created if it does not exist."""
    audit = warehouse.writable(dimension.name + AUDIT_SUFFIX)
    if not last.exists:
        comment = f"Every change of an entity of {dimension.name}, with its cause"
        audit.create(audit_schema(dimension), {FORMAT: "1", **APPEND_ONLY}, comment)
    return audit


def _step_rows(
    warehouse: Warehouse,
    audit: DataFrame,
    log: ChangeLog,
    batches: Sequence[tuple[int, Batch]],
    applied: int,
    step: Step,
) -> tuple[DataFrame, DataFrame]:
    """Return the audit rows of a step, and the surrogate keys of the versions that it opens."""
    dimension = log.dimension
    names = list(dimension.key_names)
    known_batches = [batch for number, batch in batches if number <= step.log_commit]
    causes = checkpoint(changed_entities(log, batches, dimension, after=applied, upto=step.log_commit))
    causes = F.broadcast(causes)
    records = records_in_effect(log, known_batches).where(F.col(COMMIT) <= step.log_commit).drop(COMMIT)
    transitions = checkpoint(
        build_transitions(
            records.join(causes, names, "left_semi"),
            dimension,
            row_timed=any(batch.row_times for batch in known_batches),
            key_hash=warehouse.key_hash,
        )
    )
    rows = checkpoint(
        audit_rows(
            current_transitions(audit.join(causes, names, "left_semi"), dimension),
            transitions,
            causes,
            dimension,
            step=step.log_commit,
            at=timestamp_literal(step.at),
            version=F.lit(step.version if step.version >= 0 else None),
        )
    )
    opens = transitions.where(F.col(CHANGE_TYPE).isin(INSERT, UPDATE))
    new_key = col(key_columns(dimension)[1]).alias(dimension.surrogate_key)
    return rows, opens.select(new_key, *[col(name) for name in names], EFFECTIVE_FROM).distinct()
