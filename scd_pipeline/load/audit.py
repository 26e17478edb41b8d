"""The use-case after a load: bring a dimension's audit, and the list of its surrogate keys, up to its log (S17, S21).

The audit takes in one step for each commit of the dimension, and for each commit of the log that changed no row of it,
so that what it says was known at a time is what could be read then. A killed run is continued by the next one.
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
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX, LOG_SUFFIX
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.audit_table import APPEND_ONLY, audit_rows, audit_schema, current_transitions
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import FORMAT, require_own_tables
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.upstream import (
    LOG_MARK,
    foreign_problems,
    is_other_table,
    log_marks,
    require_sound,
    require_unchanged,
)
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError, LoadError
from scd_pipeline.expressions import col, timestamp_literal
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.transitions import (
    CHANGE_TYPE,
    INSERT,
    LOGICAL_DELETE,
    SOURCE_BATCH,
    UPDATE,
    assigned_keys,
    build_transitions,
    key_columns,
)
from scd_pipeline.instants import from_micros
from scd_pipeline.load.dimension import BatchResult, LoadResult, Progress, Retry, load, silent, with_retries
from scd_pipeline.load.log import changed_entities, open_log, records_in_effect

KEYS_MARK, KEYS_ID = "keys", "keys_id"
"""In the commits of the audit: the last commit of the list of keys, and which table that list is."""

_MISSING = from_micros(0)


@dataclass(frozen=True, slots=True)
class Step:
    """What the audit takes in at once: the log up to a pipeline commit, and when and where that was to be read.

    `commit` and `version` are of the dimension's table: its pipeline commit, and Delta's version (-1: unknown).
    """

    upto: int
    at: datetime
    commit: int
    version: int


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What a recording did: audit rows by delivery and kind of change, steps taken, and Delta's version of the audit.

    A delivery is named as in the audit, `source/channel/delivery`.
    """

    dimension: str
    steps: int
    of_deliveries: dict[str, Counter[str]]
    table_version: int

    @property
    def rows(self) -> Counter[str]:
        """All of them, by kind of change."""
        return sum(self.of_deliveries.values(), Counter())

    def of_batch(self, batch: BatchResult) -> Counter[str]:
        """Those of one delivery, by kind of change."""
        delivery, _, _ = batch.batch_id.rpartition("/")
        return self.of_deliveries.get(delivery, Counter())


def versions(rows: Counter[str]) -> tuple[int, int]:
    """How many versions of the dimension were opened and closed by changes of these kinds."""
    return rows[INSERT] + rows[UPDATE], rows[UPDATE] + rows[LOGICAL_DELETE]


def pending_steps(
    log: Sequence[PipelineCommit], dimension: Sequence[PipelineCommit], high_water_marks: int
) -> list[Step]:
    """The steps after pipeline commit `took` of the log, in order.

    In: pipeline commits of the log and of the dimension. A log commit that the dimension has not applied yet is no
    step: no reader could have seen it. Of several dimension commits that apply the same log commit, the first is used.
    """
    versions = {commit.number: commit.table_version for commit in dimension}
    steps: dict[int, Step] = {}
    for commit in log:
        of_dimension = commit.high_water_marks.get("dimension_commit", 0)
        if commit.high_water_marks.get("dimension_log") == commit.number:
            at = commit.at or _MISSING
            steps[commit.number] = Step(commit.number, at, of_dimension, versions.get(of_dimension, -1))
    for commit in dimension:
        upto = commit.high_water_marks.get("log", 0)
        steps.setdefault(upto, Step(upto, commit.at or _MISSING, commit.number, commit.table_version))
    return [steps[upto] for upto in sorted(steps) if upto > high_water_marks]


def load_and_record(
    warehouse: Warehouse,
    dimension: Dimension,
    deliveries: Sequence[Delivery] = (),
    *,
    run_id: str = "",
    retry: Retry | None = None,
    progress: Progress = silent,
    examples: int = 0,
) -> tuple[LoadResult, AuditResult]:
    """Take the deliveries in, bring the dimension up to its log, and its audit up to both.

    A list of surrogate keys that was lost is rebuilt from the audit before anything else is written.

    Errors: as of `load.load`.
    """
    retry = retry or Retry()
    recorded = with_retries(
        f"{dimension.name}{KEYS_SUFFIX}", lambda: _with_keys(warehouse, dimension, run_id, progress), retry, progress
    )
    loaded = load(
        warehouse,
        dimension,
        deliveries,
        run_id=run_id,
        retry=retry,
        progress=progress,
        examples=examples,
        downstream=[recorded.audit],
    )
    return loaded, _recorded(warehouse, dimension, run_id, retry, progress, (recorded, loaded))


def record(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    run_id: str = "",
    retry: Retry | None = None,
    progress: Progress = silent,
) -> AuditResult:
    """Bring `<dimension>_audit` and `<dimension>_keys` up to the dimension; does nothing where they are.

    Errors: RetriesExhausted; OwnCommitMissing.
    """
    return _recorded(warehouse, dimension, run_id, retry or Retry(), progress, None)


@dataclass(frozen=True, slots=True)
class RecordedCommits:
    """The last commits of the audit and of the list of keys, number 0 of no version for a table that does not exist."""

    audit: PipelineCommit
    keys: PipelineCommit

    def keys_are_lost(self) -> bool:
        """Return whether the list of keys lacks commits that the audit has recorded.

        An audit that was written before its commits had a mark of the list only proves that it had one commit.
        """
        applied = self.audit.high_water_marks.get(KEYS_MARK, 1 if self.audit.number else 0)
        return self.keys.number < applied or is_other_table(
            self.audit.high_water_marks.get(KEYS_ID, 0), self.keys.table_id
        )

    def damage(self) -> list[LoadError]:
        """Return what is damaged in the list of keys; none if it is sound."""
        found: list[LoadError] = [*foreign_problems([self.keys])]
        if not found and self.keys_are_lost():
            found.append(
                HighWaterMarkError(
                    f"table {self.keys.table}: it has lost surrogate keys that {self.audit.table} has recorded as "
                    f"assigned; expected every key that was ever assigned; the next load rebuilds it from the audit"
                )
            )
        return found


def recorded_commits(warehouse: Warehouse, dimension: Dimension) -> RecordedCommits:
    """Return the last commits of the dimension's audit and list of keys; the audit is read first, as it lags."""
    audit, keys = (warehouse.table(dimension.name + suffix) for suffix in (AUDIT_SUFFIX, KEYS_SUFFIX))
    return RecordedCommits(audit.last_commit_or_zero(), keys.last_commit_or_zero())


def _recorded(
    warehouse: Warehouse,
    dimension: Dimension,
    run_id: str,
    retry: Retry,
    progress: Progress,
    before: tuple[RecordedCommits, LoadResult] | None,
) -> AuditResult:
    """Record; the first attempt goes on from the commits that a load has read or made, if any."""
    loads = [before] if before else []

    def attempt() -> AuditResult:
        if loads:
            return _record(warehouse, dimension, run_id, progress, *loads.pop())
        return _record(warehouse, dimension, run_id, progress, _with_keys(warehouse, dimension, run_id, progress), None)

    return with_retries(f"{dimension.name}{AUDIT_SUFFIX}", attempt, retry, progress)


def _with_keys(warehouse: Warehouse, dimension: Dimension, run_id: str, progress: Progress) -> RecordedCommits:
    """Return the last commits of audit and list of keys, once keys that the list has lost are rebuilt from the audit.

    Raises:
        SetupError: One of the tables was not made by this package.
        ForeignCommitError: Another program changed the rows of one of them.
    """
    recorded = recorded_commits(warehouse, dimension)
    audit, keys = warehouse.table(recorded.audit.table), warehouse.table(recorded.keys.table)
    if any(commit.foreign is not None and commit.number == 0 for commit in (recorded.audit, recorded.keys)):
        require_own_tables(audit, keys)
    require_unchanged([recorded.audit, recorded.keys])
    if not recorded.keys_are_lost():
        return recorded
    listed = keys.read(recorded.keys.newest) if recorded.keys.exists else None
    missing = checkpoint(missing_keys(warehouse, dimension, audit.read(recorded.audit.newest), listed))
    done = _rebuilt_keys(warehouse, dimension, missing, recorded, run_id)
    progress(f"{keys.name}: rebuilt from {audit.name} ({missing.count()} keys)")
    return RecordedCommits(recorded.audit, done)


def missing_keys(warehouse: Warehouse, dimension: Dimension, audit: DataFrame, keys: DataFrame | None) -> DataFrame:
    """Return the surrogate keys that the audit has recorded as assigned and that the list of keys lacks.

    Args:
        audit: The rows of the audit.
        keys: The rows of the list of keys, None if it does not exist.

    Returns:
        The columns of `keys_schema`, one row for each key.
    """
    assigned = assigned_keys(audit, dimension, key_hash=warehouse.key_hash)
    if keys is None:
        return assigned
    return assigned.join(keys.select(col(dimension.surrogate_key)), dimension.surrogate_key, "left_anti")


def _rebuilt_keys(
    warehouse: Warehouse, dimension: Dimension, missing: DataFrame, recorded: RecordedCommits, run_id: str
) -> PipelineCommit:
    """Append the missing keys; the list goes on with the number and the identity that the audit knows."""
    keys, last = _keys_table(warehouse, dimension, recorded.keys), recorded.keys
    number = max(last.number, recorded.audit.high_water_marks.get(KEYS_MARK, 0))
    table_id = recorded.audit.high_water_marks.get(KEYS_ID, 0) or last.table_id
    commit = replace(last, number=number, table_id=table_id).next(high_water_marks={}, batches=(), run_id=run_id)
    return keys.append(missing.select(*[col(name) for name, _ in keys_schema(dimension)]), commit)


def _record(
    warehouse: Warehouse,
    dimension: Dimension,
    run_id: str,
    progress: Progress,
    recorded: RecordedCommits,
    loaded: LoadResult | None,
) -> AuditResult:
    table, log_table = (warehouse.table(name) for name in (dimension.name, dimension.name + LOG_SUFFIX))
    # The downstream tables are read before their upstream, which a load between can only move ahead.
    of_dimension = (loaded.commit if loaded else None) or table.last_commit_or_zero()
    log_commit = (loaded.log_commit if loaded else None) or log_table.last_commit_or_zero()
    done = recorded.audit
    require_sound(log_commit, [done, of_dimension])
    behind = done.high_water_marks.get(LOG_MARK, 0)
    if log_commit.number <= behind or not of_dimension.exists:
        return AuditResult(dimension.name, 0, {}, done.newest)
    log = open_log(warehouse, dimension, log_commit)
    dimension = log.dimension
    audit, keys = _audit_table(warehouse, dimension, done), _keys_table(warehouse, dimension, recorded.keys)
    # A table that was created just now has nothing to read at its first version.
    done, keys_done = (replace(last, newest=max(last.newest, 0)) for last in (done, recorded.keys))
    commits = table.commits_since(_applied_of_dimension(done, of_dimension))
    of_log = [log.commit] if log.commit.number == behind + 1 else log.table.commits_since(behind)
    # Commits that were made since the log was read are steps of the next recording.
    steps = [step for step in pending_steps(of_log, commits, behind) if step.upto <= log.commit.number]
    batches = log.committed_batches() if steps else []
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for step in steps:
        rows, given = _rows(warehouse, audit.read(done.newest), log, batches, dimension, behind, step)
        keys_done = _append_keys(keys, keys_done, given, dimension, run_id)
        for row in rows.groupBy(SOURCE_BATCH, CHANGE_TYPE).count().collect():
            counts[row[SOURCE_BATCH]][row[CHANGE_TYPE]] += row["count"]
        high_water_marks = {
            **log_marks(log.commit, step.upto),
            "dimension": step.commit,
            "dimension_id": of_dimension.table_id,
            KEYS_MARK: keys_done.number,
            KEYS_ID: keys_done.table_id,
        }
        done = audit.append(rows, done.next(high_water_marks=high_water_marks, batches=(), run_id=run_id))
        behind = step.upto
    made = AuditResult(dimension.name, len(steps), counts, done.newest)
    progress(f"{audit.name}: {sum(made.rows.values())} rows")
    return made


def _applied_of_dimension(audit: PipelineCommit, dimension: PipelineCommit) -> int:
    """Return the number of the dimension's commit before the last one that the audit has applied.

    It is 0 where the audit has applied another table, or one that had more commits: those numbers are not of this one.
    """
    applied, known = audit.high_water_marks.get("dimension", 0), audit.high_water_marks.get("dimension_id", 0)
    is_same = known != 0 and known == dimension.table_id and applied <= dimension.number
    return max(0, applied - 1) if is_same else 0


def _audit_table(warehouse: Warehouse, dimension: Dimension, last: PipelineCommit) -> Table:
    """The audit, which is created if it does not exist."""
    audit = warehouse.writable(f"{dimension.name}{AUDIT_SUFFIX}")
    if not last.exists:
        told = {FORMAT: "1", **APPEND_ONLY}
        audit.create(audit_schema(dimension), told, f"What happened to whom in {dimension.name}, and why")
    return audit


def _keys_table(warehouse: Warehouse, dimension: Dimension, last: PipelineCommit) -> Table:
    """The list of keys, which is created if it does not exist."""
    keys = warehouse.writable(f"{dimension.name}{KEYS_SUFFIX}")
    if not last.exists:
        columns = [(name, ddl, False) for name, ddl in keys_schema(dimension)]
        told = {FORMAT: "1", **APPEND_ONLY}
        keys.create(columns, told, f"Every surrogate key that was ever given in {dimension.name}")
    return keys


def keys_schema(dimension: Dimension) -> list[tuple[str, str]]:
    """Name and type of the columns of `<dimension>_keys`."""
    names = [(key.name, parse_type(key.type).ddl()) for key in dimension.business_key]
    return [(dimension.surrogate_key, "bigint"), *names, (EFFECTIVE_FROM, "timestamp")]


def _rows(
    warehouse: Warehouse,
    audit: DataFrame,
    log: ChangeLog,
    batches: Sequence[tuple[int, Batch]],
    dimension: Dimension,
    behind: int,
    step: Step,
) -> tuple[DataFrame, DataFrame]:
    """The audit rows of a step, and the surrogate keys that its versions were given."""
    names = list(dimension.key_names)
    after = [batch for number, batch in batches if number <= step.upto]
    causes = checkpoint(changed_entities(log, batches, dimension, after=behind, upto=step.upto))
    causes = F.broadcast(causes)
    statements = records_in_effect(log, after).where(F.col(COMMIT) <= step.upto).drop(COMMIT)
    now = checkpoint(
        build_transitions(
            statements.join(causes, names, "left_semi"),
            dimension,
            row_timed=any(batch.row_times for batch in after),
            key_hash=warehouse.key_hash,
        )
    )
    standing = current_transitions(audit.join(causes, names, "left_semi"), dimension)
    rows = checkpoint(
        audit_rows(
            standing,
            now,
            causes,
            dimension,
            step=step.upto,
            at=timestamp_literal(step.at),
            version=F.lit(step.version if step.version >= 0 else None),
        )
    )
    opens = now.where(F.col(CHANGE_TYPE).isin(INSERT, UPDATE))
    new_key = col(key_columns(dimension)[1]).alias(dimension.surrogate_key)
    return rows, opens.select(new_key, *[col(n) for n in names], EFFECTIVE_FROM).distinct()


def _append_keys(
    keys: Table, last: PipelineCommit, given: DataFrame, dimension: Dimension, run_id: str
) -> PipelineCommit:
    """Append the keys that the list lacks, and return its last commit.

    This precedes the audit's commit, so that a killed step is repeated (S14).
    """
    name = dimension.surrogate_key
    listed = keys.read(last.newest).select(col(name))
    new = checkpoint(given.join(listed, name, "left_anti"))
    if new.isEmpty():
        return last
    columns = [col(column) for column, _ in keys_schema(dimension)]
    return keys.append(new.select(*columns), last.next(high_water_marks={}, batches=(), run_id=run_id))
