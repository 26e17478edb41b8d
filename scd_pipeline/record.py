"""The use-case after a load: bring a dimension's audit, and the list of its surrogate keys, up to its log (S17, S21).

The audit takes in one step for each commit of the dimension, and for each commit of the log that changed no row of it,
so that what it says was known at a time is what could be read then. A killed run is continued by the next one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.batch import Batch, from_micros
from scd_pipeline.columns import COMMIT, EFFECTIVE_FROM, col
from scd_pipeline.deliveries import Delivery, instant
from scd_pipeline.delta.audit_table import (
    APPEND_ONLY,
    AUDIT_SUFFIX,
    KEYS_SUFFIX,
    audit_rows,
    audit_schema,
    standing_transitions,
)
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import OwnCommit
from scd_pipeline.delta.fit import FORMAT
from scd_pipeline.delta.table import Table
from scd_pipeline.frames import settled
from scd_pipeline.history.transitions import (
    CHANGE_TYPE,
    INSERT,
    LOGICAL_DELETE,
    SOURCE_BATCH,
    UPDATE,
    build_transitions,
    key_columns,
)
from scd_pipeline.load import BatchResult, LoadResult, Progress, Retry, load, silent, with_retries
from scd_pipeline.plan import changed_entities, counted_rows, open_log
from scd_pipeline.spec import Dimension
from scd_pipeline.spec.types import parse_type
from scd_pipeline.warehouse import Warehouse

_MISSING = from_micros(0)


@dataclass(frozen=True, slots=True)
class Step:
    """What the audit takes in at once: the log up to an own commit, and when and where that was to be read.

    `commit` and `version` are of the dimension's table: its own commit, and Delta's version (-1: not known any more).
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


def pending_steps(log: Sequence[OwnCommit], dimension: Sequence[OwnCommit], took: int) -> list[Step]:
    """The steps after own commit `took` of the log, in order.

    In: own commits of the log and of the dimension. A log commit that the dimension has not taken in yet is no step:
    nobody could read what it says. Where several commits of the dimension stand on one of the log, the first counts.
    """
    versions = {commit.number: commit.table_version for commit in dimension}
    steps: dict[int, Step] = {}
    for commit in log:
        of_dimension = commit.took.get("dimension_commit", 0)
        if commit.took.get("dimension_log") == commit.number:
            at = commit.at or _MISSING
            steps[commit.number] = Step(commit.number, at, of_dimension, versions.get(of_dimension, -1))
    for commit in dimension:
        upto = commit.took.get("log", 0)
        steps.setdefault(upto, Step(upto, commit.at or _MISSING, commit.number, commit.table_version))
    return [steps[upto] for upto in sorted(steps) if upto > took]


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

    Errors: as of `load.load`.
    """
    loaded = load(warehouse, dimension, deliveries, run_id=run_id, retry=retry, progress=progress, examples=examples)
    return loaded, record(warehouse, dimension, run_id=run_id, retry=retry, progress=progress)


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
    return with_retries(
        f"{dimension.name}{AUDIT_SUFFIX}",
        lambda: _record(warehouse, dimension, run_id, progress),
        retry or Retry(),
        progress,
    )


def _record(warehouse: Warehouse, dimension: Dimension, run_id: str, progress: Progress) -> AuditResult:
    log = open_log(warehouse, dimension)
    dimension = log.dimension
    audit, keys = _tables(warehouse, dimension)
    done = audit.last_commit()
    table = warehouse.table(dimension.name)
    behind = done.took.get("log", 0)
    if not log.is_there or log.commit.number <= behind or not table.exists():
        return AuditResult(dimension.name, 0, {}, done.table_version)
    identity = table.identity()
    steps = pending_steps(log.table.commits_since(behind), _commits_to_ask(table, identity, done), behind)
    batches = log.committed_batches() if steps else []
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for step in steps:
        rows, given = _rows(warehouse, audit, log, batches, dimension, behind, step)
        _append_keys(keys, given, dimension, run_id)
        for row in rows.groupBy(SOURCE_BATCH, CHANGE_TYPE).count().collect():
            counts[row[SOURCE_BATCH]][row[CHANGE_TYPE]] += row["count"]
        took = {"log": step.upto, "dimension": step.commit, "table": identity}
        done = audit.append(rows, done.next(took=took, batches=(), run_id=run_id))
        behind = step.upto
    made = AuditResult(dimension.name, len(steps), counts, done.table_version)
    progress(f"{audit.name}: {sum(made.rows.values())} rows")
    return made


def _commits_to_ask(table: Table, identity: int, done: OwnCommit) -> list[OwnCommit]:
    """The dimension's own commits from the one that the audit last took in; all of them where it knows another table.

    The commits of a table that was made anew count from 1 again, so the numbers of before say nothing of them.
    """
    known = done.took.get("dimension", 0) if done.took.get("table") == identity else 0
    return table.commits_since(max(0, known - 1))


def _tables(warehouse: Warehouse, dimension: Dimension) -> tuple[Table, Table]:
    """The audit and the list of keys, made where they are not there yet."""
    audit = warehouse.writable(f"{dimension.name}{AUDIT_SUFFIX}")
    keys = warehouse.writable(f"{dimension.name}{KEYS_SUFFIX}")
    if not audit.exists():
        told = {FORMAT: "1", **APPEND_ONLY}
        audit.create(audit_schema(dimension), told, f"What happened to whom in {dimension.name}, and why")
    if not keys.exists():
        columns = [(name, ddl, False) for name, ddl in keys_schema(dimension)]
        told = {FORMAT: "1", **APPEND_ONLY}
        keys.create(columns, told, f"Every surrogate key that was ever given in {dimension.name}")
    return audit, keys


def keys_schema(dimension: Dimension) -> list[tuple[str, str]]:
    """Name and type of the columns of `<dimension>_keys`."""
    names = [(key.name, parse_type(key.type).ddl()) for key in dimension.business_key]
    return [(dimension.surrogate_key, "bigint"), *names, (EFFECTIVE_FROM, "timestamp")]


def _rows(
    warehouse: Warehouse,
    audit: Table,
    log: ChangeLog,
    batches: Sequence[tuple[int, Batch]],
    dimension: Dimension,
    behind: int,
    step: Step,
) -> tuple[DataFrame, DataFrame]:
    """The audit rows of a step, and the surrogate keys that its versions were given."""
    names = list(dimension.key_names)
    after = [batch for number, batch in batches if number <= step.upto]
    causes = settled(changed_entities(log, batches, dimension, after=behind, upto=step.upto))
    causes = F.broadcast(causes)
    statements = counted_rows(log, after).where(F.col(COMMIT) <= step.upto).drop(COMMIT)
    now = settled(
        build_transitions(
            statements.join(causes, names, "left_semi"),
            dimension,
            row_timed=any(batch.row_times for batch in after),
            key_hash=warehouse.key_hash,
        )
    )
    standing = standing_transitions(audit.read().join(causes, names, "left_semi"), dimension)
    rows = settled(
        audit_rows(
            standing,
            now,
            causes,
            dimension,
            step=step.upto,
            at=instant(step.at),
            version=F.lit(step.version if step.version >= 0 else None),
        )
    )
    opens = now.where(F.col(CHANGE_TYPE).isin(INSERT, UPDATE))
    new_key = col(key_columns(dimension)[1]).alias(dimension.surrogate_key)
    return rows, opens.select(new_key, *[col(n) for n in names], EFFECTIVE_FROM).distinct()


def _append_keys(keys: Table, given: DataFrame, dimension: Dimension, run_id: str) -> None:
    """Keep the keys that are not there yet; before the audit's commit, so that a killed step does it again (S14)."""
    name, last = dimension.surrogate_key, keys.last_commit()
    new = settled(given.join(keys.read().select(col(name)), name, "left_anti"))
    if not new.isEmpty():
        columns = [col(column) for column, _ in keys_schema(dimension)]
        keys.append(new.select(*columns), last.next(took={}, batches=(), run_id=run_id))
