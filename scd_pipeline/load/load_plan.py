"""A load plan: the batches, change records, row actions and schema steps of a load, computed without writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BAD_REASON, BAD_ROW, BATCH, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.accept import accept
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.early_times import early_time_warnings
from scd_pipeline.deliveries.intake import IntakeResult
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.child_tables import StoredChild, stored_children
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.copies import TableCopy, new_names
from scd_pipeline.delta.schema import SchemaStep
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.upstream import foreign_commit_errors, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import LoadWarning
from scd_pipeline.expressions import readable_key
from scd_pipeline.history.actions import OPEN, OVERWRITE, REMOVE
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.last_versions import IS_LAST
from scd_pipeline.load.attribute_changes import AttributeChange, attribute_changes, with_retirement
from scd_pipeline.load.audit_changes import AuditChanges, count_changes, plan_changes, transition_counts
from scd_pipeline.load.change_records import applied_state, compare_with_log, rows_to_append
from scd_pipeline.load.deletes_off import warnings_of_load
from scd_pipeline.load.facts import FactKeys, PinnedDimension
from scd_pipeline.load.log import changed_batches
from scd_pipeline.load.rapid_changes import existing_entities
from scd_pipeline.load.retry import Progress, ignore_progress
from scd_pipeline.load.rows import affected_entities, effective_records_of, plan_row_actions
from scd_pipeline.load.schema_steps import execute_steps, schema_steps
from scd_pipeline.load.session_settings import STORED_PER_DELIVERED, RunningLoad
from scd_pipeline.load.state import StoredState, read_state
from scd_pipeline.load.write_plan import BY_KEY, FactSizes, WritePlan, choose_strategy
from scd_pipeline.texts import pluralize

_MISFITS = ("TYPE_CHANGED", "COLUMN_NOT_MIRRORED")
"""The codes of deliveries whose columns do not fit the attributes of a mirrored dimension."""


@dataclass(frozen=True)
class LoadPlan:
    """What a load will write.

    Attributes:
        dimension: The declaration of the table.
        run_id: The id of the run.
        log: The change log at the version that the plan was computed from.
        dimension_commit: The last commit of the table.
        history_commit: The last commit of its history table; number 0 without one.
        applied: The last log commit that the table has applied.
        schema_steps: The changes of the tables' columns.
        results: The result of each delivery.
        batches: The batches to append to the log.
        change_records: The change records to append to the log.
        changed_rows: The rows of the table that change, with their row action.
        row_counts: The number of these rows by row action.
        high_water_marks: How far the plan has applied other tables than the log.
        roles_checksum: The checksum of the roles of a fact.
        adds_unknown_member: Whether facts reference the dimension and its table may lack the unknown member, which is
            then written with the changed rows.
        unknown_members: For a fact, the number of rows to write with the key of the unknown member, by role.
        inferred: For a fact, its dimensions that get inferred members, with these.
        delivered: The conformed rows of all deliveries that were read, also of rejected ones; of a narrowed snapshot
            only those that may change something, and bad rows.
        audit: What the load appends to the audit; None if the audit lacks more than this load, or is not planned.
        record_limit: An upper bound of the number of change records to append.
        properties: The properties of the table; none if it does not exist.
        existing_entities: How many entities existed before each delivery that is appended (`rapid_changes`).
        warnings: What is rarely intended, such as files whose names nearly match.
        attribute_changes: The attributes that are new, renamed, wider, retired, or provided again.
        copies: The tables that the load copies first, because the dimension has them under its former name.
        children: The child tables of the dimension.
        closes_with_elements: Whether a closed version has other elements of a child table than before.
        stored_versions: The rows of all stored versions, from which a child table is rebuilt; None if there are none.
        write: How the changed rows are written.
    """

    dimension: Dimension
    run_id: str
    log: ChangeLog
    dimension_commit: PipelineCommit
    history_commit: PipelineCommit
    applied: int
    schema_steps: tuple[SchemaStep, ...]
    results: tuple[BatchResult, ...]
    batches: tuple[Batch, ...]
    change_records: DataFrame
    changed_rows: DataFrame
    delivered: DataFrame
    row_counts: Mapping[str, int] = field(default_factory=dict)
    high_water_marks: Mapping[str, HighWaterMark] = field(default_factory=dict)
    roles_checksum: int = 0
    adds_unknown_member: bool = False
    unknown_members: Mapping[str, int] = field(default_factory=dict)
    inferred: tuple[PinnedDimension, ...] = ()
    audit: AuditChanges | None = None
    record_limit: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    existing_entities: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[LoadWarning, ...] = ()
    attribute_changes: tuple[AttributeChange, ...] = ()
    copies: tuple[TableCopy, ...] = ()
    children: tuple[StoredChild, ...] = ()
    closes_with_elements: bool = False
    stored_versions: DataFrame | None = None
    write: WritePlan = BY_KEY

    @property
    def log_name(self) -> str:
        """The name of the change log."""
        return self.log.table.name

    @property
    def log_commit(self) -> PipelineCommit:
        """The last commit of the change log."""
        return self.log.commit

    @property
    def has_actions(self) -> bool:
        """Whether any row of the table changes."""
        return any(self.row_counts.values())

    @property
    def has_newer_upstream(self) -> bool:
        """Whether stored rows were compared with newer versions of other tables than at the last commit."""
        last = self.dimension_commit
        is_newer = any(last.high_water_marks.get(name) != mark for name, mark in self.high_water_marks.items())
        return last.number > 0 and (is_newer or last.roles_checksum != self.roles_checksum)

    @property
    def has_pending_commits(self) -> bool:
        """Whether the table lacks commits of the log; the load that created them may still be running."""
        return self.applied < self.log_commit.number

    @property
    def has_stale_children(self) -> bool:
        """Whether a child table of an existing table has to be rebuilt."""
        return self.dimension_commit.number > 0 and any(child.is_stale for child in self.children)

    @property
    def is_committed(self) -> bool:
        """Whether the load writes to the log or the table."""
        return bool(self.batches or self.has_actions or self.has_pending_commits or self.has_stale_children)

    def under_new_name(self, dimension: Dimension, copies: Sequence[TableCopy]) -> LoadPlan:
        """Return the plan of the former dimension as that of the declared one, whose load copies the tables first."""
        names = new_names(dimension)
        steps = tuple(replace(step, table=names[step.table]) for step in self.schema_steps)
        renamed = replace(self.dimension, name=dimension.name, former_name=dimension.former_name)
        return replace(self, dimension=renamed, schema_steps=steps, copies=tuple(copies))

    def writable_log(self, warehouse: Warehouse) -> ChangeLog:
        """Return the change log for writing."""
        return replace(self.log, table=warehouse.writable(self.log_name))

    def prepare(self, warehouse: Warehouse) -> None:
        """Execute the schema steps, and set the properties of the tables (`execute_steps`), if the load commits.

        Raises:
            ConflictError: Another writer changed the table first.
            UsageError: Delta does not know a declared property.
        """
        if self.is_committed:
            execute_steps(warehouse, self.dimension, self.schema_steps, self.properties)

    def explain(self) -> str:
        """Return the plan as text: copies, schema steps, the result of each delivery, warnings, and the row actions."""
        lines = [f"Plan for {self.dimension.name}", *[f"  {step}" for step in (*self.copies, *self.schema_steps)]]
        lines += [f"  {change}" for change in self.attribute_changes]
        lines += [f"  {result}" for result in self.results]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines += [f"  build {child.table.name} from all versions" for child in self.children if child.is_stale]
        lines += [
            f"  add {pluralize(each.inferred.count, 'inferred member')} to {each.dimension.name}"
            for each in self.inferred
            if each.inferred
        ]
        counts = ", ".join(f"{count} to {action}" for action, count in self.row_counts.items() if count)
        unknown = unknown_members_summary(self.unknown_members)
        lines.append(f"  rows of {self.dimension.name}: {counts or 'no changes'}{unknown and f'; {unknown}'}")
        return "\n".join(lines)

    def examples(self, limit: int = 5) -> DataFrame:
        """Return some of the rows that change, with their row action, without personal attributes (S31)."""
        personal = [a for a in self.dimension.attributes if a.personal]
        hidden = [name for a in personal for name in (a.name, a.current_column, a.previous_column) if name]
        return self.changed_rows.drop(IS_LAST, *hidden).limit(limit)

    def bad_rows(self) -> DataFrame:
        """Return the bad rows of all deliveries that were read, also of rejected ones.

        Returns:
            `batch`, `key`, `reason`, and `row`, which is missing if an attribute of the dimension is personal (S31).
        """
        bad = self.delivered.where(F.col(KIND) == BAD)
        key = readable_key(self.dimension.key_names).alias("key")
        columns = [F.col(BATCH).alias("batch"), key, F.col(BAD_REASON).alias("reason")]
        if not any(attribute.personal for attribute in self.dimension.attributes):
            columns.append(F.col(BAD_ROW).alias("row"))
        return bad.select(*columns)


def unknown_members_summary(unknown_members: Mapping[str, int]) -> str:
    """Return the number of rows with the key of the unknown member by role; empty if no row has it."""
    counts = ", ".join(f"{count} (role {role})" for role, count in unknown_members.items() if count)
    return f"rows with the unknown member: {counts}" if counts else ""


def build_plan(
    warehouse: Warehouse,
    dimension: Dimension,
    deliveries: Sequence[Delivery],
    *,
    run_id: str = "",
    progress: Progress = ignore_progress,
    fact_keys: FactKeys | None = None,
    has_facts: bool = False,
    audit: PipelineCommit | None = None,
    running: RunningLoad | None = None,
) -> LoadPlan:
    """Read the stored state and the deliveries, and plan their load; write nothing.

    Args:
        fact_keys: For a fact, its surrogate keys.
        has_facts: Whether facts reference the dimension; ignored for a fact.
        audit: The last commit of the audit, read before this call, if the plan has what the audit gets.
        running: The load that the plan is for, if it is executed.

    Raises:
        ScdError: As `read_state`, `accept` and `plan_row_actions`.
    """
    if running is not None:
        # A further attempt may read another state, and rejected deliveries again.
        running.expect_records(read=None, shuffled=None)
    # Keys from dimensions that were read before another load committed must not replace the keys of that load (S24).
    state = read_state(warehouse, dimension, [audit] if audit else [], fact_keys.last if fact_keys else None, running)
    if running is not None:
        running.expect_records(read=None, shuffled=None)  # the deliveries may have any number of rows
    stored_dimension = state.dimension
    intake = accept(
        warehouse.spark,
        state.dimension,
        deliveries,
        state.batches,
        run_id=run_id,
        progress=progress,
        applied=applied_state(state, deliveries),
    )
    if dimension.mirror is not None:
        state = state.with_dimension(intake.dimension)
    stored_limit = _stored_limit(state, fact_keys)

    def expect_shuffled(limit: int | None) -> None:
        if running is None or stored_limit is None:
            return
        read = stored_limit // STORED_PER_DELIVERED + intake.row_count
        all_records = stored_limit + intake.row_count
        running.expect_records(read=read, shuffled=all_records if fact_keys or limit is None else limit)

    expect_shuffled(None)
    comparison = compare_with_log(warehouse, state, intake, expect_shuffled)
    existing = existing_entities(state.batches, comparison.intake.batches_to_append, state.dimension)
    actions = plan_row_actions(warehouse, state, comparison, fact_keys, audit, by_attribute=any(existing.values()))
    intake = comparison.intake
    fitting = _deliveries_to_mirror(intake, deliveries)
    if len(fitting) < len(deliveries) and intake.dimension.attributes != stored_dimension.attributes:
        # A rejected delivery may have columns that no other has, or other types: it must not add attributes.
        others = build_plan(
            warehouse,
            dimension,
            list(fitting.values()),
            run_id=run_id,
            progress=progress,
            has_facts=has_facts,
            audit=audit,
            running=running,
        )
        results = dict(zip(fitting, others.results, strict=True))
        merged = tuple(results.get(number, result) for number, result in enumerate(intake.results))
        return replace(others, results=merged, delivered=intake.rows)
    change_records = rows_to_append(comparison.records, intake, state.dimension)
    loaded_dimension = with_retirement(state.dimension, intake.all_batches)
    return LoadPlan(
        dimension=loaded_dimension,
        run_id=run_id,
        log=state.log,
        dimension_commit=state.commit,
        history_commit=state.history_commit,
        applied=state.applied,
        schema_steps=tuple(
            schema_steps(loaded_dimension, state.log, state.columns, state.columns_of_history, state.properties)
        ),
        attribute_changes=attribute_changes(StoredDeclaration.from_properties(state.properties), loaded_dimension),
        results=intake.results,
        batches=intake.batches_to_append,
        change_records=change_records,
        changed_rows=actions.rows,
        delivered=intake.rows,
        row_counts=actions.counts,
        high_water_marks=fact_keys.high_water_marks if fact_keys else {},
        roles_checksum=fact_keys.roles_checksum if fact_keys else 0,
        adds_unknown_member=has_facts and fact_keys is None and not state.commit.reserved_member,
        unknown_members=actions.unknown_members,
        inferred=actions.inferred,
        audit=actions.audit,
        record_limit=comparison.appended + sum(batch.bad_rows for batch in intake.batches_to_append),
        properties=state.properties,
        existing_entities=existing,
        warnings=(
            *warnings_of_load(intake),
            *early_time_warnings(state.dimension, intake.decisions.accepted),
        ),
        children=_children(warehouse, loaded_dimension, state.commit),
        closes_with_elements=actions.closes_with_elements,
        stored_versions=state.rows,
        write=_plan_write(fact_keys, state, intake, actions.counts) if fact_keys else BY_KEY,
    )


def _plan_write(keys: FactKeys, state: StoredState, intake: IntakeResult, counts: Mapping[str, int]) -> WritePlan:
    """Return how the changed rows of a fact are written; the commits have the number of its rows."""
    stored = state.commit.stored_records
    if stored is None:
        # Such as after a repair. Each row has a change record, so that their number bounds that of the rows.
        stored = state.log.commit.stored_records
    opened, overwritten, removed = (counts.get(action, 0) for action in (OPEN, OVERWRITE, REMOVE))
    # A snapshot has all rows of its scopes. Rows of a feed, of an earlier load, or that are re-keyed may be in others.
    batches = intake.batches_to_append
    is_by_scope = bool(batches) and not state.has_pending_commits and all(each.scope is not None for each in batches)
    is_rekeyed = any(state.commit.applied(name) != mark for name, mark in keys.high_water_marks.items())
    in_scopes = intake.row_count - opened + removed if is_by_scope and not is_rekeyed else None
    sizes = FactSizes(stored, opened, overwritten, removed, in_scopes)
    return WritePlan(choose_strategy(keys.fact, sizes), keys.fact.scope, sizes)


def _children(warehouse: Warehouse, dimension: Dimension, commit: PipelineCommit) -> tuple[StoredChild, ...]:
    """Return the child tables, of which no other program has changed rows."""
    children = stored_children(warehouse, dimension, commit)
    raise_first(foreign_commit_errors([child.commit for child in children]))
    return children


def plan_audit(warehouse: Warehouse, state: StoredState, audit: PipelineCommit, *, by_attribute: bool) -> AuditChanges:
    """Return what the audit gets when the table applies the rest of the log: the plan of a load without deliveries.

    Args:
        warehouse: The warehouse.
        state: The stored state.
        audit: The last commit of the audit, which has applied as much of the log as the table.
        by_attribute: Whether its rows are counted by attributes too (`count_changes`).
    """
    intake = accept(warehouse.spark, state.dimension, (), state.batches, run_id="", progress=ignore_progress)
    comparison = compare_with_log(warehouse, state, intake)
    # A commit without new batches, such as one of the maintenance, changes no entity.
    has_changes = bool(changed_batches(state.committed_batches, after=state.applied))
    keys = affected_entities(state, comparison) if has_changes else None
    records = None if keys is None else effective_records_of(state, comparison, keys)
    changes = plan_changes(warehouse, state, comparison, records, audit)
    counts = count_changes(changes.rows, state.dimension, by_attribute=by_attribute).collect()
    return replace(changes, counts=transition_counts(counts, state.dimension))


def _deliveries_to_mirror(intake: IntakeResult, deliveries: Sequence[Delivery]) -> dict[int, Delivery]:
    """Return the deliveries that are neither rejected nor superseded, by number.

    Those whose columns did not fit the others have added no attribute, and may fit without the rejected ones.
    """
    results = dict(enumerate(intake.results))
    return {
        number: each
        for number, each in enumerate(deliveries)
        if results[number].outcome not in ("rejected", "superseded") or results[number].code in _MISFITS
    }


def _stored_limit(state: StoredState, fact_keys: FactKeys | None) -> int | None:
    """Return an upper bound of the stored records of each table that the load scans; None if unknown."""
    sizes = [state.log.commit.stored_records, *(fact_keys.log_sizes if fact_keys else ())]
    return None if None in sizes else max(size or 0 for size in sizes)
