"""A load before it is an act: which batches come in, which statements are kept, what happens to which row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.audit.invariants import KEY, RULE, collisions, violations
from scd_pipeline.batch import Batch, counted
from scd_pipeline.columns import BATCH, COMMIT, EFFECTIVE_FROM, KIND, SOURCE, col
from scd_pipeline.deliveries import Delivery
from scd_pipeline.delta.audit_table import APPEND_ONLY, KEYS_SUFFIX
from scd_pipeline.delta.change_log import ChangeLog, log_schema
from scd_pipeline.delta.commits import OwnCommit
from scd_pipeline.delta.fit import FORMAT, SchemaStep, check, properties, renames, steps, stored_declaration
from scd_pipeline.errors import InvariantBroken, KeyCollision
from scd_pipeline.frames import no_rows, united
from scd_pipeline.history.actions import ACTION, OPEN, row_actions
from scd_pipeline.history.differences import ALIVE_BEFORE, DIFFERS, ORIGIN, Intake, affected_keys, changes
from scd_pipeline.history.timeline import BEGINNING, build_timeline, dimension_schema
from scd_pipeline.history.transitions import SOURCE_BATCH
from scd_pipeline.intake import BatchResult, Taken, take
from scd_pipeline.spec import Dimension
from scd_pipeline.warehouse import Warehouse

_BROADCAST_KEYS = 2_000_000


@dataclass(frozen=True, slots=True)
class Extension:
    """What the rows of a table get beside what its own log says, as a fact's rows get their keys (S23, S24).

    `again` picks, of the rows that stand, those that have to be looked at again though nothing was stated of them;
    `finish` sets the columns; `took` is told in the commit.
    """

    again: Callable[[DataFrame], DataFrame | None]
    finish: Callable[[DataFrame], DataFrame]
    took: Mapping[str, int]


@dataclass(frozen=True)
class LoadPlan:
    """What a load will do, as data. `results` tells of each delivery, `rows` counts dimension rows by action."""

    dimension: Dimension
    run_id: str
    log: ChangeLog
    dimension_commit: OwnCommit
    dimension_took: int
    schema_steps: tuple[SchemaStep, ...]
    results: tuple[BatchResult, ...]
    batches: tuple[Batch, ...]
    statements: DataFrame
    actions: DataFrame
    rows: Mapping[str, int] = field(default_factory=dict)
    took: Mapping[str, int] = field(default_factory=dict)

    @property
    def log_name(self) -> str:
        return self.log.table.name

    @property
    def log_commit(self) -> OwnCommit:
        return self.log.commit

    @property
    def has_actions(self) -> bool:
        return any(self.rows.values())

    @property
    def has_looked(self) -> bool:
        """Whether rows that stand were held against something newer than at their last commit."""
        before = self.dimension_commit
        return before.number > 0 and any(before.took.get(name) != took for name, took in self.took.items())

    def log_to_write(self, warehouse: Warehouse) -> ChangeLog:
        return replace(self.log, table=warehouse.writable(self.log_name))

    def prepare(self, warehouse: Warehouse) -> None:
        """Carry out the schema steps. They are metadata alone, can be repeated, and change no row."""
        if not (self.batches or self.has_actions):
            return
        for step in self.schema_steps:
            _carry_out(step, warehouse, self.dimension)
        if any(step.table == self.dimension.name and step.column[0] for step in self.schema_steps):
            warehouse.writable(self.dimension.name).set_properties(properties(self.dimension))

    def explain(self) -> str:
        """The plan for people: schema steps, each batch with its counts, row actions, and some examples."""
        lines = [f"Plan for {self.dimension.name}", *[f"  {step}" for step in self.schema_steps]]
        for result in self.results:
            lines.append(f"  {result}")
        counts = ", ".join(f"{count} to {action}" for action, count in self.rows.items() if count)
        lines.append(f"  rows of {self.dimension.name}: {counts or 'none changes'}")
        return "\n".join(lines)

    def examples(self, limit: int = 5) -> DataFrame:
        """A few of the rows that would change, with their action; personal attributes are left out (S31)."""
        personal = {a.name for a in self.dimension.attributes if a.personal}
        hidden = [n for n in self.actions.columns if any(n in (p, f"previous_{p}", f"current_{p}") for p in personal)]
        return self.actions.drop(*hidden).limit(limit)


def make_plan(
    warehouse: Warehouse,
    dimension: Dimension,
    deliveries: Sequence[Delivery],
    *,
    run_id: str,
    progress: Callable[[str], None] = lambda message: None,
    extension: Extension | None = None,
) -> LoadPlan:
    """Read what the plan depends on, compute it, and check it; writes nothing.

    Errors: DeclarationError if the tables were made by another declaration; InvariantBroken, KeyCollision if the
    result would break a promise (S2, S3, S14).
    """
    log = open_log(warehouse, dimension)
    table = warehouse.table(dimension.name)
    there = table.columns()
    if there and (stored := stored_declaration(table)) is not None:
        check(dimension, stored)
    commit = table.last_commit() if there else OwnCommit(dimension.name, 0)
    old = log.batches()
    taken = take(warehouse.spark, dimension, deliveries, old, run_id=run_id, progress=progress)
    kept, taken = _kept_statements(warehouse, log, old, taken, dimension)
    took = dimension_took(log, commit)
    actions, rows = _actions(warehouse, log, taken, kept, dimension, there, took, extension)
    return LoadPlan(
        dimension=dimension,
        run_id=run_id,
        log=log,
        dimension_commit=commit,
        dimension_took=took,
        schema_steps=tuple(_schema_steps(dimension, log, there)),
        results=taken.results,
        batches=taken.to_write,
        statements=_to_append(kept, taken),
        actions=actions,
        rows=rows,
        took=extension.took if extension else {},
    )


def open_log(warehouse: Warehouse, dimension: Dimension) -> ChangeLog:
    """The dimension's change log as it stands, one without rows where there is none yet."""
    table = warehouse.table(f"{dimension.name}_changes")
    columns = tuple(table.columns())
    commit = table.last_commit() if columns else OwnCommit(table.name, 0)
    return ChangeLog(table, dimension, columns, commit)


def dimension_took(log: ChangeLog, commit: OwnCommit) -> int:
    """Up to which own commit of the log the dimension stands; the log remembers what changed no row of it."""
    took = commit.took.get("log", 0)
    if log.commit.took.get("dimension_commit") == commit.number:
        return max(took, log.commit.took.get("dimension_log", 0))
    return took


def counted_rows(log: ChangeLog, batches: Sequence[Batch]) -> DataFrame:
    """The log's statements that count: those of standing batches (S34)."""
    counts = {batch.statements_of for batch in counted(list(batches))}
    ignored = sorted({batch.statements_of for batch in batches} - counts)
    rows = log.rows()
    return rows.where(~F.col(BATCH).isin(ignored)) if ignored else rows


def _kept_statements(
    warehouse: Warehouse, log: ChangeLog, old: Sequence[Batch], taken: Taken, dimension: Dimension
) -> tuple[DataFrame | None, Taken]:
    """The statements to append, and what was taken with its counts; a guarded snapshot is left out (S27).

    Batches go by position: where one is stopped, the others are looked at again without it.
    """
    while taken.accepted or taken.removed:
        kept = _kept_once(warehouse, log, old, taken, dimension)
        counted_in = taken.with_counts(_change_counts(kept))
        guarded = counted_in.first_guarded(dimension)
        if guarded is None:
            return kept, counted_in
        taken = counted_in.without(guarded)
    return None, taken


def _kept_once(
    warehouse: Warehouse, log: ChangeLog, old: Sequence[Batch], taken: Taken, dimension: Dimension
) -> DataFrame:
    sources = sorted({batch.source for batch in (*taken.accepted, *taken.removed)})
    removed_ids = {batch.statements_of for batch in taken.removed}
    stored = counted_rows(log, old).where(F.col(SOURCE).isin(sources)).drop(COMMIT)
    intake = Intake(
        new=taken.accepted,
        removed=taken.removed,
        stored_snapshots=tuple(b for b in counted(list(old)) if b.is_snapshot and b.statements_of not in removed_ids),
    )
    raw = taken.statements()
    if raw is None:
        raw = stored.limit(0)
    if not intake.new_snapshots:
        keys = [col(name) for name in dimension.key_names]
        spoken = raw.select(*keys).unionByName(of_batches(stored, removed_ids).select(*keys)).distinct()
        stored = stored.join(F.broadcast(spoken), list(dimension.key_names), "left_semi")
    return changes(
        warehouse.spark, stored, raw, intake, dimension, lambda frame: frame.localCheckpoint()
    ).localCheckpoint()


def of_batches(rows: DataFrame, ids: set[str]) -> DataFrame:
    return rows.where(F.col(BATCH).isin(sorted(ids))) if ids else rows.limit(0)


def _change_counts(kept: DataFrame) -> dict[str, dict[str, int]]:
    """Per batch: how many entities are new, changed, closed, retired, and what the guard has to know."""
    raw, alive = F.col(ORIGIN) == "raw", F.col(ALIVE_BEFORE)
    values = raw & (F.col(KIND) == "values")
    gone = F.col(KIND) == "gone"
    flags = {
        "new": values & ~alive,
        "changed": values & alive & F.col(DIFFERS),
        "closed": gone & alive & F.col(ORIGIN).isin("raw", "absent"),
        "retired": gone & (F.col(ORIGIN) == "absent"),
        "bad_alive": raw & (F.col(KIND) == "bad") & alive,
        "present_alive": (F.col(KIND) == "present") & alive & raw,
    }
    sums = [F.sum(flag.cast("int")).cast("bigint").alias(name) for name, flag in flags.items()]
    rows = kept.groupBy(BATCH).agg(*sums).collect()
    return {row[BATCH]: {name: int(row[name] or 0) for name in flags} for row in rows}


def _to_append(kept: DataFrame | None, taken: Taken) -> DataFrame:
    """Everything that goes into the log beside the batches: kept statements, and bad rows without a key."""
    unreadable = taken.unreadable()
    if kept is None:
        return unreadable
    columns = [name for name in kept.columns if name not in (ORIGIN, ALIVE_BEFORE, DIFFERS, "_row_at", "_row_sequence")]
    told = kept.where(F.col(KIND) != "present").select(*[col(name) for name in columns])
    return told.unionByName(unreadable.select(*[col(name) for name in columns]))


def _actions(
    warehouse: Warehouse,
    log: ChangeLog,
    taken: Taken,
    kept: DataFrame | None,
    dimension: Dimension,
    there: Mapping[str, str],
    took: int,
    extension: Extension | None,
) -> tuple[DataFrame, dict[str, int]]:
    """The dimension rows that differ once the affected entities' timelines are built anew, checked, with counts."""
    before = _dimension_rows(warehouse, dimension, there)
    keys = _affected(log, taken, kept, dimension, took)
    again = extension.again(before) if extension and there else None
    if keys is None and again is None:
        return before.withColumn(ACTION, F.lit("")).limit(0), {}
    names = list(dimension.key_names)
    affected, after = before.limit(0), before.limit(0)
    if keys is not None:
        affected = before.join(keys, names, "left_semi") if there else before
        after = _versions(warehouse, log, taken, kept, dimension, keys)
    if again is not None:
        others = again if keys is None else again.join(keys, names, "left_anti")
        others = others.localCheckpoint()
        affected, after = affected.unionByName(others), after.unionByName(others)
    after = (extension.finish(after) if extension else after).localCheckpoint()
    actions = row_actions(affected, after, dimension).localCheckpoint()
    rows = {row[ACTION]: int(row["count"]) for row in actions.groupBy(ACTION).count().collect()}
    _check(after, actions, _known_keys(warehouse, before, dimension) if there else None, dimension)
    return actions, rows


def _versions(
    warehouse: Warehouse, log: ChangeLog, taken: Taken, kept: DataFrame | None, dimension: Dimension, keys: DataFrame
) -> DataFrame:
    """The versions of the affected entities, by everything that counts of what was stated of them."""
    stored = counted_rows(log, [*taken.old, *taken.to_write]).drop(COMMIT)
    if log.is_there:
        statements = stored.join(keys, list(dimension.key_names), "left_semi")
        if kept is not None:
            statements = statements.unionByName(_plain(kept, statements))
    else:
        statements = _plain(kept, stored) if kept is not None else stored
    row_timed = any(batch.row_times for batch in (*taken.old, *taken.to_write))
    return build_timeline(statements, dimension, row_timed=row_timed, key_hash=warehouse.key_hash)


def _known_keys(warehouse: Warehouse, stored: DataFrame, dimension: Dimension) -> DataFrame:
    """Every surrogate key that stands or was ever given, with the version that it names (F33)."""
    names = [dimension.surrogate_key, *dimension.key_names, EFFECTIVE_FROM]
    if not dimension.has_windows:
        return stored.withColumn(EFFECTIVE_FROM, F.lit(BEGINNING).cast("timestamp")).select(*[col(n) for n in names])
    keys = warehouse.table(dimension.name + KEYS_SUFFIX)
    standing = stored.select(*[col(name) for name in names])
    return standing.unionByName(keys.read().select(*[col(n) for n in names])) if keys.exists() else standing


def changed_entities(
    log: ChangeLog, batches: Sequence[tuple[int, Batch]], dimension: Dimension, *, after: int, upto: int
) -> DataFrame:
    """The entities of which anything was stated, or unsaid, by the log's own commits after one and up to another.

    Out: the business key, and `source_batch_id`, a delivery that did.
    """
    before = counted([batch for number, batch in batches if number <= after])
    now = counted([batch for number, batch in batches if number <= upto])
    removed = {batch.statements_of for batch in before} - {batch.statements_of for batch in now}
    spoke = (F.col(COMMIT) > after) | F.col(BATCH).isin(sorted(removed))
    names = [col(name) for name in dimension.key_names]
    readable = reduce(and_, [name.isNotNull() for name in names])
    delivery = F.regexp_replace(F.min(BATCH), "/[^/]*$", "")
    told = log.rows().where((F.col(COMMIT) <= upto) & spoke & readable)
    return told.groupBy(*names).agg(delivery.alias(SOURCE_BATCH))


def _plain(kept: DataFrame, like: DataFrame) -> DataFrame:
    return kept.where(~F.col(KIND).isin("present", "bad")).select(*[col(name) for name in like.columns])


def _affected(
    log: ChangeLog, taken: Taken, kept: DataFrame | None, dimension: Dimension, took: int
) -> DataFrame | None:
    """The entities to build anew: those of the run, and those of log commits that the dimension has not taken in."""
    keys = [col(name) for name in dimension.key_names]
    frames = []
    if kept is not None:
        removed = of_batches(log.rows(), {batch.statements_of for batch in taken.removed})
        frames.append(affected_keys(kept, removed, dimension))
    if took < log.commit.number:
        lagging = log.rows().where(F.col(COMMIT) > took)
        frames.append(lagging.select(*keys))
        replaced = {b.statements_of for b in taken.old} - {b.statements_of for b in counted(list(taken.old))}
        frames.append(of_batches(log.rows(), replaced).select(*keys))
    if not frames:
        return None
    distinct = united(frames).distinct()
    return F.broadcast(distinct) if taken.size() < _BROADCAST_KEYS else distinct


def _dimension_rows(warehouse: Warehouse, dimension: Dimension, there: Mapping[str, str]) -> DataFrame:
    """The dimension as it stands, with the columns that it should have: new ones NULL, renamed ones found."""
    wanted = dimension_schema(dimension)
    if not there:
        return no_rows(warehouse.spark, {name: ddl for name, ddl, _ in wanted})
    former = {new: old for old, new in renames(dimension.attributes, generated=True).items() if old in there}
    chosen = []
    for name, ddl, _ in wanted:
        physical = name if name in there else former.get(name)
        chosen.append((col(physical) if physical else F.lit(None).cast(ddl)).alias(name))
    return warehouse.table(dimension.name).read().select(*chosen)


def _check(after: DataFrame, actions: DataFrame, stored: DataFrame | None, dimension: Dimension) -> None:
    """Errors: InvariantBroken, KeyCollision; before anything is written."""
    broken = violations(after, dimension)
    if stored is not None:
        broken = broken.unionByName(collisions(actions.where(F.col(ACTION) == OPEN), stored, dimension))
    rows = broken.limit(20).collect()
    if not rows:
        return
    keys = [f"{row[RULE]}: {row[KEY]}" for row in rows]
    if any("surrogate_key" in row[RULE] for row in rows):
        raise KeyCollision(
            f"{dimension.name}: two versions have one surrogate key ({'; '.join(sorted(set(keys)))}); expected a key "
            f"of its own for each; declare another `key_salt`; nothing was written"
        )
    raise InvariantBroken(
        f"{dimension.name}: the result would break {'; '.join(sorted(set(keys)))}; expected none; nothing was "
        f"written; please report it with the declaration and the deliveries"
    )


def _schema_steps(dimension: Dimension, log: ChangeLog, there: Mapping[str, str]) -> list[SchemaStep]:
    log_there = dict.fromkeys(log.columns, "")
    wanted = [(name, ddl) for name, ddl, _ in dimension_schema(dimension)]
    return [
        *steps(log.table.name, log_there, log_schema(dimension), renames(dimension.attributes, generated=False)),
        *steps(dimension.name, there, wanted, renames(dimension.attributes, generated=True)),
    ]


def _carry_out(step: SchemaStep, warehouse: Warehouse, dimension: Dimension) -> None:
    table = warehouse.writable(step.table)
    if step.action.startswith("create"):
        if step.table == dimension.name:
            table.create(dimension_schema(dimension), properties(dimension), dimension.description)
        else:
            log_columns = [(name, ddl, True) for name, ddl in log_schema(dimension)]
            table.create(
                log_columns, {FORMAT: "1", **APPEND_ONLY}, f"What was stated of {dimension.name}, and by which batches"
            )
        return
    if step.action.startswith("rename"):
        table.rename_column(*step.column)
    else:
        table.add_columns([step.column])


__all__ = ["BatchResult", "Extension", "LoadPlan", "changed_entities", "counted_rows", "make_plan", "open_log"]
