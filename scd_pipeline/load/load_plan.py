"""A load before it is an act: which batches come in, which statements are kept, what happens to which row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, tables_of
from scd_pipeline.deliveries.accept import take
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.read import BatchResult
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import (
    SchemaStep,
    declaration_properties,
    require_declared_attributes,
    require_own_tables,
    require_same_declaration,
    stored_declaration,
)
from scd_pipeline.delta.upstream import require_sound
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.batch import Batch
from scd_pipeline.load.change_records import records_to_append, to_append
from scd_pipeline.load.log import log_high_water_mark, log_of
from scd_pipeline.load.rows import Extension, actions_of
from scd_pipeline.load.schema_steps import execute, schema_steps


@dataclass(frozen=True)
class LoadPlan:
    """What a load will do, as data. `results` tells of each delivery, `rows` counts dimension rows by action."""

    dimension: Dimension
    run_id: str
    log: ChangeLog
    dimension_commit: PipelineCommit
    dimension_high_water_mark: int
    schema_steps: tuple[SchemaStep, ...]
    results: tuple[BatchResult, ...]
    batches: tuple[Batch, ...]
    statements: DataFrame
    actions: DataFrame
    rows: Mapping[str, int] = field(default_factory=dict)
    high_water_marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def log_name(self) -> str:
        return self.log.table.name

    @property
    def log_commit(self) -> PipelineCommit:
        return self.log.commit

    @property
    def has_actions(self) -> bool:
        return any(self.rows.values())

    @property
    def has_looked(self) -> bool:
        """Whether rows that stand were held against something newer than at their last commit."""
        before = self.dimension_commit
        return before.number > 0 and any(
            before.high_water_marks.get(name) != high_water_marks
            for name, high_water_marks in self.high_water_marks.items()
        )

    def log_to_write(self, warehouse: Warehouse) -> ChangeLog:
        return replace(self.log, table=warehouse.writable(self.log_name))

    def prepare(self, warehouse: Warehouse) -> None:
        """Carry out the schema steps, and have the table remember the declaration that they were taken for.

        Both are metadata alone and change no row. What a killed run had no time to tell is told here, without a step.
        Errors: ConflictError if a rival was faster.
        """
        if not (self.batches or self.has_actions):
            return
        for step in self.schema_steps:
            execute(step, warehouse)
        table, told = warehouse.writable(self.dimension.name), declaration_properties(self.dimension)
        if not told.items() <= table.properties().items():
            table.set_properties(told)

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
    downstream: Sequence[PipelineCommit] = (),
) -> LoadPlan:
    """Read what the plan depends on, compute it, and check it; writes nothing.

    Every table is read at the version that it has when its last commit is read. `downstream` are the last commits of
    other tables that apply the log, read before this call.

    Errors: SetupError if one of the tables is not ours; DeclarationError if they were made by another declaration;
    ForeignCommitError, HighWaterMarkError if a table was damaged or lost;
    InvariantBroken, KeyCollision if the result would break a promise (S2, S3, S14).
    """
    table = warehouse.table(dimension.name)
    stored = stored_declaration(table)
    existing = {dimension.name}
    if stored is None:
        existing = require_own_tables(*[warehouse.table(name) for name in tables_of(dimension.name)])
        downstream = [*downstream, *_others_that_apply(warehouse, dimension.name, existing)]
    else:
        require_same_declaration(dimension, stored)
    newest = table.newest() if dimension.name in existing else None
    commit = newest.commit if newest else PipelineCommit(dimension.name, 0)
    there = newest.columns() if newest else {}
    log = log_of(warehouse, dimension, stored)
    require_sound(log.commit, [commit, *downstream])
    dimension = log.dimension
    old = log.batches()
    require_declared_attributes(dimension, (name for batch in old for name in batch.columns))
    taken = take(warehouse.spark, dimension, deliveries, old, run_id=run_id, progress=progress)
    kept, taken = records_to_append(warehouse, log, old, taken, dimension)
    high_water_marks = log_high_water_mark(log.commit, commit)
    before = newest.rows if newest else None
    actions, rows = actions_of(warehouse, log, taken, kept, dimension, before, high_water_marks, extension)
    return LoadPlan(
        dimension=dimension,
        run_id=run_id,
        log=log,
        dimension_commit=commit,
        dimension_high_water_mark=high_water_marks,
        schema_steps=tuple(schema_steps(dimension, log, there)),
        results=taken.results,
        batches=taken.to_write,
        statements=to_append(kept, taken),
        actions=actions,
        rows=rows,
        high_water_marks=extension.high_water_marks if extension else {},
    )


def _others_that_apply(warehouse: Warehouse, name: str, existing: Collection[str]) -> list[PipelineCommit]:
    """Return the last commit of a dimension's audit, if it exists: it proves that the dimension had a log."""
    audit = name + AUDIT_SUFFIX
    return [warehouse.table(audit).last_commit()] if audit in existing else []
