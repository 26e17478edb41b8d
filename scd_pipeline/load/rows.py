"""The row actions of a load: recompute the versions of the affected entities, and compare them with the stored rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, COMMIT, EFFECTIVE_FROM, KIND, PRESENCE, change_record_columns
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX
from scd_pipeline.delta.audit_table import assigned_keys_query
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import to_declared_columns
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import InvariantViolated, KeyCollision
from scd_pipeline.expressions import col
from scd_pipeline.frames import (
    checkpoint,
    checkpoint_with_counts,
    empty_frame,
    temporary_view,
    union_all,
    with_broadcast,
)
from scd_pipeline.history.actions import (
    ACTION,
    ACTIONS,
    CHANGES_ELEMENTS,
    CLOSE,
    OPEN,
    REMOVE,
    UNCHANGED,
    compare_rows,
)
from scd_pipeline.history.differences import affected_keys
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.last_versions import has_common_values, with_last_flag
from scd_pipeline.history.row_windows import RowWindows
from scd_pipeline.history.schema import beginning, dimension_schema
from scd_pipeline.history.timeline import build_timeline, effective_records
from scd_pipeline.invariants.check_descriptions import (
    GRAIN_IS_UNIQUE,
    SURROGATE_KEYS_ARE_NOT_RESERVED,
    SURROGATE_KEYS_ARE_UNIQUE,
)
from scd_pipeline.invariants.dimensions import (
    CHECK,
    KEY,
    collisions,
    count_violations,
    violations,
)
from scd_pipeline.load.audit_changes import AuditChanges, count_changes, plan_changes, transition_counts
from scd_pipeline.load.change_records import Comparison
from scd_pipeline.load.facts import FactKeys, PinnedDimension
from scd_pipeline.load.inferred_members import with_inferred_members
from scd_pipeline.load.log import changed_records, records_in_effect
from scd_pipeline.load.state import StoredState

_COLLISIONS = (SURROGATE_KEYS_ARE_UNIQUE, SURROGATE_KEYS_ARE_NOT_RESERVED)
"""The invariants whose violation another `key_salt` resolves."""
_MAX_SHOWN_VIOLATIONS = 20
_ROWS, _VIOLATIONS, _ASSIGNED = "rows", "violations", "assigned"


@dataclass(frozen=True, slots=True)
class RowActions:
    """The rows of a table that change, each with its row action, and their number by action.

    `unknown_members` is the number of the written ones with the key of the unknown member, by role of a fact.
    `inferred` are the dimensions of the fact that get inferred members, with these.
    `closes_with_elements` is whether a closed version has other elements of a child table than before.
    `audit` is what the audit gets (`plan_changes`); None if it is not planned.
    """

    rows: DataFrame
    counts: Mapping[str, int]
    unknown_members: Mapping[str, int]
    audit: AuditChanges | None = None
    inferred: tuple[PinnedDimension, ...] = ()
    closes_with_elements: bool = False


def plan_row_actions(
    warehouse: Warehouse,
    state: StoredState,
    comparison: Comparison,
    fact_keys: FactKeys | None,
    audit: PipelineCommit | None = None,
    *,
    by_attribute: bool = False,
) -> RowActions:
    """Recompute the versions of the affected entities, and return the rows that differ from the stored ones.

    Args:
        audit: The last commit of the audit, if what it gets is planned too.
        by_attribute: Whether its rows are counted by attributes too (`count_changes`).

    Raises:
        KeyCollision: Two versions have the same surrogate key, or a version has a reserved one.
        InvariantViolated: The result would violate an invariant.
    """
    dimension, stored = state.dimension, _stored_rows(warehouse, state)
    key_columns = fact_keys.key_columns if fact_keys else {}
    recomputed = _recompute(warehouse, state, comparison, fact_keys, stored)
    records = recomputed.records if recomputed is not None else None
    changes = None
    if audit is not None and _is_next_step(audit, state, comparison):
        changes = plan_changes(warehouse, state, comparison, records, audit)
    if recomputed is None:
        rows = stored.withColumn(ACTION, F.lit("")).limit(0)
        return RowActions(rows, {}, dict.fromkeys(key_columns, 0), changes)
    if _only_opens(state, comparison, fact_keys):
        counted = _opened_rows(recomputed, comparison, dimension)
    else:
        # Spark Connect limits the depth of a plan. A first load derives its versions from the delivered rows in one
        # plan, and a fact may have many roles.
        is_deep = fact_keys is not None or comparison.has_one_record_per_entity
        with temporary_view(recomputed.after) if is_deep else nullcontext(recomputed.after) as after:
            fact_keys = with_inferred_members(warehouse, fact_keys, after) if fact_keys else None
            keyed = fact_keys.add_columns(after) if fact_keys else after
            before, keyed = with_last_flag(recomputed.before, dimension), with_last_flag(keyed, dimension)
            compared = compare_rows(before, keyed, dimension, has_last_flag=has_common_values(dimension))
            counted = _count_actions(compared, key_columns, dimension)
    expected, actions = counted.rows.where(F.col(ACTION) != REMOVE), counted.rows.where(F.col(ACTION) != UNCHANGED)
    opened_count = counted.by_action.get(OPEN, 0)
    opened = with_broadcast(_versions(actions.where(F.col(ACTION) == OPEN), dimension), opened_count)
    assigned = _assigned_keys(warehouse, state, stored) if opened_count and state.rows is not None else None
    counts = None
    if changes is not None and changes.counts is None:
        counts = count_changes(changes.rows, dimension, by_attribute=by_attribute)
    checked = _Checked(expected, counted.total, opened, assigned, comparison.has_one_record_per_entity)
    groups = _check_and_count(checked, dimension, fact_keys, counts)
    if changes is not None and counts is not None:
        changes = replace(changes, counts=transition_counts(groups, dimension))
    inferred = tuple(each for each in fact_keys.pinned.values() if each.inferred) if fact_keys else ()
    return RowActions(
        actions, counted.by_action, counted.unknown_members, changes, inferred, counted.closes_with_elements
    )


def _is_next_step(audit: PipelineCommit, state: StoredState, comparison: Comparison) -> bool:
    """Return whether the batches of the load are a step of the audit, and the only one that it lacks."""
    is_in_step = audit.applied(state.log.table.name).commit == state.log.commit.number
    return is_in_step and not state.has_pending_commits and bool(comparison.intake.batches_to_append)


class _Recomputed(NamedTuple):
    """The stored rows of the affected entities, their recomputed rows, and the change records that have an effect.

    `records` is None if the log affects no entity, and only stored rows are re-keyed.
    """

    before: DataFrame
    after: DataFrame
    records: DataFrame | None


def _recompute(
    warehouse: Warehouse,
    state: StoredState,
    comparison: Comparison,
    fact_keys: FactKeys | None,
    stored: DataFrame,
) -> _Recomputed | None:
    """Return the rows that may change; None if there are none."""
    keys = affected_entities(state, comparison)
    rekeyed = fact_keys.rows_to_recompute(stored) if fact_keys and state.rows is not None else None
    if keys is None and rekeyed is None:
        return None
    names = list(state.dimension.key_names)
    before, after, records = stored.limit(0), stored.limit(0), None
    if keys is not None:
        if comparison.rows is not None:
            in_range = comparison.rows
        else:
            in_range = stored if state.has_pending_commits else stored.where(comparison.key_range)
        before = in_range.join(keys, names, "left_semi") if state.rows is not None else stored
        records = effective_records_of(state, comparison, keys)
        after = build_timeline(
            records,
            state.dimension,
            kinds=SnapshotKinds(),
            has_one_record_per_entity=comparison.has_one_record_per_entity,
            key_hash=warehouse.key_hash,
        )
    if rekeyed is not None:
        others = checkpoint(rekeyed if keys is None else rekeyed.join(keys, names, "left_anti"))
        before, after = before.unionByName(others), after.unionByName(others)
    return _Recomputed(before, after, records)


def effective_records_of(state: StoredState, comparison: Comparison, keys: DataFrame) -> DataFrame:
    """Return the records of entities that have an effect, computed unless all have or each entity has one record.

    Spark Connect limits the depth of a plan: that of the records and of the versions together would exceed it.
    """
    records, kinds = _records_of(state, comparison, keys), comparison.intake.kinds
    if kinds.are_plain or comparison.has_one_record_per_entity:
        return records
    return checkpoint(effective_records(records, state.dimension, RowWindows(state.dimension), kinds))


class _RowCounts(NamedTuple):
    """Compared rows, computed, with the number of all and by action.

    `unknown_members` is the number of rows that the load writes with the key of the unknown member, by role.
    `closes_with_elements` is whether a closed version has other elements of a child table than before.
    """

    rows: DataFrame
    total: int
    by_action: dict[str, int]
    unknown_members: dict[str, int]
    closes_with_elements: bool = False


def _only_opens(state: StoredState, comparison: Comparison, fact_keys: FactKeys | None) -> bool:
    """Return whether each upsert opens the only row of its entity, in a table that does not exist yet."""
    return comparison.has_one_record_per_entity and state.rows is None and fact_keys is None


def _opened_rows(recomputed: _Recomputed, comparison: Comparison, dimension: Dimension) -> _RowCounts:
    """Return the rows of a load that only opens some, with their number.

    They are not stored between the queries of the load: each of them derives a row from one delivered row.
    """
    rows = with_last_flag(recomputed.after, dimension).withColumn(ACTION, F.lit(OPEN))
    opened = sum(batch.new for batch in comparison.intake.batches_to_append)
    return _RowCounts(rows, opened, {OPEN: opened} if opened else {}, {})


def _count_actions(compared: DataFrame, key_columns: Mapping[str, str], dimension: Dimension) -> _RowCounts:
    """Compute and count compared rows."""
    is_written = ~F.col(ACTION).isin(REMOVE, UNCHANGED)
    by_action = {action: F.count_if(F.col(ACTION) == action) for action in ACTIONS}
    unknown = {
        f"unknown {role}": F.count_if(is_written & (col(name) == UNKNOWN_KEY)) for role, name in key_columns.items()
    }
    figures = {_ROWS: F.count(F.lit(1)), **by_action, **unknown}
    if dimension.child_tables:
        figures[CHANGES_ELEMENTS] = F.count_if((F.col(ACTION) == CLOSE) & F.col(CHANGES_ELEMENTS))
    rows, counts = checkpoint_with_counts(compared, figures)
    return _RowCounts(
        rows.drop(CHANGES_ELEMENTS) if dimension.child_tables else rows,
        counts[_ROWS],
        {action: counts[action] for action in ACTIONS if counts[action]},
        {role: counts[f"unknown {role}"] for role in key_columns},
        bool(counts.get(CHANGES_ELEMENTS)),
    )


def _records_of(state: StoredState, comparison: Comparison, keys: DataFrame) -> DataFrame:
    """Return the change records in effect of the affected entities, with those that the load appends."""
    log, appended = state.log, comparison.records
    log_rows = log.rows() if state.has_pending_commits else comparison.log_rows
    stored = records_in_effect(log_rows, comparison.intake.all_batches).drop(COMMIT)
    if not log.exists:
        return _timeline_records(appended, state.dimension) if appended is not None else stored
    in_effect = stored.join(keys, list(state.dimension.key_names), "left_semi")
    return in_effect if appended is None else in_effect.unionByName(_timeline_records(appended, state.dimension))


def _versions(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return surrogate key, business key and `effective_from` of rows of the table."""
    if not dimension.has_windows:
        rows = rows.withColumn(EFFECTIVE_FROM, beginning())
    return rows.select(*[col(name) for name in (dimension.surrogate_key, *dimension.key_names, EFFECTIVE_FROM)])


def _assigned_keys(warehouse: Warehouse, state: StoredState, stored: DataFrame) -> DataFrame:
    """Return the surrogate keys that no other version may get, with their versions (`_versions`) (S14).

    Only the audit has the keys of versions that the table does not have any more. Without an audit they are unknown.
    """
    current, query = _versions(stored, state.dimension), None
    if state.may_lack_versions:
        audit = warehouse.table(state.dimension.name + AUDIT_SUFFIX)
        query = assigned_keys_query(audit, StoredDeclaration.from_dimension(state.dimension))
    return current if query is None else current.unionByName(warehouse.spark.sql(query))


def _timeline_records(records: DataFrame, dimension: Dimension) -> DataFrame:
    columns = [col(name) for name in change_record_columns(dimension)]
    return records.where(~F.col(KIND).isin(PRESENCE, BAD)).select(*columns)


def affected_entities(state: StoredState, comparison: Comparison) -> DataFrame | None:
    """Return the keys of the entities that may change: of the new records, and of log commits not applied yet."""
    keys = [col(name) for name in state.dimension.key_names]
    frames = []
    if comparison.records is not None and (comparison.appended or comparison.intake.removed):
        frames.append(affected_keys(comparison.records, comparison.removed_records(), state.dimension))
    if state.has_pending_commits:
        pending = changed_records(state.log.rows(), state.committed_batches, after=state.applied)
        frames.append(pending.select(*keys))
    if not frames:
        return None
    distinct = union_all(frames).distinct()
    return distinct if state.has_pending_commits else with_broadcast(distinct, comparison.entity_limit)


def _stored_rows(warehouse: Warehouse, state: StoredState) -> DataFrame:
    """Return the rows of the table with its declared columns; no rows if the table does not exist."""
    if state.rows is None:
        return empty_frame(warehouse.spark, {name: ddl for name, ddl, _ in dimension_schema(state.dimension)})
    return to_declared_columns(state.rows, state.dimension)


class _Checked(NamedTuple):
    """What is checked before anything is written.

    `expected` are up to `row_limit` recomputed rows, with their row action, and `opened` those that open a version.
    `assigned` are the surrogate keys of other versions (`_assigned_keys`), None if none can be assigned twice.
    """

    expected: DataFrame
    row_limit: int
    opened: DataFrame
    assigned: DataFrame | None
    has_one_row_per_entity: bool


def _check_and_count(
    checked: _Checked, dimension: Dimension, fact_keys: FactKeys | None, counts: DataFrame | None
) -> list[Row]:
    """Check the invariants of the recomputed rows: by one query, if none is violated.

    Args:
        checked: The rows.
        dimension: The declaration.
        fact_keys: For a fact, its surrogate keys.
        counts: Counts by `group` to collect by the same query; None without any.

    Returns:
        The rows of `counts`.
    """
    expected, opened, assigned = checked.expected, checked.opened, checked.assigned
    others = [] if fact_keys is None else [fact_keys.violations(expected)]
    violations_count = count_violations(
        expected, dimension, row_limit=checked.row_limit, has_one_row_per_entity=checked.has_one_row_per_entity
    )
    counted = [_named(_VIOLATIONS, violations_count)]
    if assigned is not None:
        # Of all keys only this column is read; the versions are compared if any is assigned already, which is rare.
        already_assigned = _with_keys_of(assigned.select(col(dimension.surrogate_key)), opened, dimension)
        counted.append(_named(_ASSIGNED, already_assigned.agg(F.count(F.lit(1)).alias("n"))))
    if counts is not None:
        counted.append(counts)
    rows = union_all(counted).collect()
    totals = {row["group"][0]: row["n"] for row in rows if len(row["group"]) == 1}
    violation_count, assigned_count = totals[_VIOLATIONS], totals.get(_ASSIGNED, 0)
    if assigned is not None and assigned_count:
        others.append(collisions(opened, assigned, dimension))
        violation_count += others[-1].count()
    if not violation_count:
        return [row for row in rows if len(row["group"]) > 1]
    # Only this query, for the error message, has a limit: Spark compiles the code of a query with a limit at each
    # execution.
    broken = union_all([*others, violations(expected, dimension)]).limit(_MAX_SHOWN_VIOLATIONS).collect()
    summary = "; ".join(sorted({f"{row[CHECK]}: {row[KEY]}" for row in broken}))
    checks = {row[CHECK] for row in broken}
    # A repeated fact has the surrogate key of the other one, which is no collision.
    if GRAIN_IS_UNIQUE not in checks and not checks.isdisjoint(_COLLISIONS):
        details = {} if assigned is None else {"fix": _new_salt_of_existing_table(dimension)}
        raise KeyCollision("KEY_COLLISION", dimension.name, violations=summary, **details)
    raise InvariantViolated("INVARIANT_VIOLATED", dimension.name, violations=summary)


def _named(name: str, count: DataFrame) -> DataFrame:
    """Return a count `n` with a `group` of this name."""
    return count.select(F.array(F.lit(name)).alias("group"), "n")


def _new_salt_of_existing_table(dimension: Dimension) -> str:
    """Return how to use another salt for a table that has surrogate keys already: they all change."""
    tables = [dimension.name + dimension.closed_suffix] if dimension.closed_suffix else []
    return (
        f"declare another `key_salt` and drop {' and '.join([dimension.name, *tables])}: the next load rebuilds it "
        "from its change log with other keys, and the next load of each fact stores these; copies of the old keys "
        "elsewhere are then invalid"
    )


def _with_keys_of(rows: DataFrame, opened: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows whose surrogate key an opened version has."""
    key = dimension.surrogate_key
    return rows.join(opened.select(col(key)), key, "left_semi")
