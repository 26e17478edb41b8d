"""Facts: after each load, the stored surrogate keys equal those of a fresh as-of join (S23, S24).

The rows of a fact are entities that have only their latest values, so deliveries, revisions and bad rows follow the
same rules as those of a dimension. In addition, each load looks up the surrogate keys at event time, and re-keys the
rows that reference entities that have changed since the last load.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Fact, Role
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.copies import former_dimension, new_names, renamed_commit
from scd_pipeline.delta.generated_columns import with_computed_columns
from scd_pipeline.delta.history_table import newest_versions
from scd_pipeline.delta.schema import read_as_stored, to_declared_columns
from scd_pipeline.delta.table import TableVersion
from scd_pipeline.delta.upstream import damage, is_other_table, log_mark, raise_first, table_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError, LoadError
from scd_pipeline.expressions import all_of, any_of, col
from scd_pipeline.frames import checkpoint_with_counts, empty_frame, union_all, with_broadcast
from scd_pipeline.history.actions import ACTION, REMOVE
from scd_pipeline.history.last_versions import IS_LAST
from scd_pipeline.history.role_keys import role_key_as_of
from scd_pipeline.history.schema import dimension_schema
from scd_pipeline.invariants.facts import duplicate_grain
from scd_pipeline.load.log import changed_entities, changed_records, read_log
from scd_pipeline.load.role_conditions import require_valid_conditions

_REKEYED = "_is_rekeyed"


class DimensionPlan(Protocol):
    """The rows of a dimension that its planned load changes (`load_plan.LoadPlan`)."""

    @property
    def dimension(self) -> Dimension:
        """The declaration of the dimension."""

    @property
    def changed_rows(self) -> DataFrame:
        """The rows that change, with their row action (`history.actions.row_actions`)."""

    @property
    def has_actions(self) -> bool:
        """Whether any row changes."""


@dataclass(frozen=True, slots=True)
class InferredMembers:
    """New rows of a dimension, computed, for entities that it does not have (`inferred_members`), and their number."""

    rows: DataFrame
    count: int


@dataclass(frozen=True, slots=True)
class PinnedDimension:
    """A dimension at the version that one run of a fact reads, with the last commits of its table and its log.

    Attributes:
        rows: The rows of the dimension with the names of `dimension_schema`; None if it has no table.
        planned: The business keys of the entities whose rows are those of a plan that is not written yet; None if
            `rows` are the stored ones.
        history: The last commit of its history table or archive; None if it has none.
        inferred: The rows that a load of the fact adds to the dimension; `rows` has them too. None without any.
    """

    dimension: Dimension
    commit: PipelineCommit
    log: PipelineCommit
    rows: DataFrame | None
    planned: DataFrame | None = None
    history: PipelineCommit | None = None
    inferred: InferredMembers | None = None

    @property
    def applied(self) -> int:
        """The last commit of the change log that the rows contain."""
        return self.commit.applied(self.log.table).commit

    @property
    def high_water_marks(self) -> dict[str, HighWaterMark]:
        """The high-water marks of a fact whose keys come from these rows."""
        return {**log_mark(self.log, self.applied), **table_mark(self.commit)}

    def used_by(self, fact: PipelineCommit) -> int:
        """Return the last commit of the change log that the keys of a fact have applied."""
        return fact.applied(self.log.table).commit

    def is_recreated(self, fact: PipelineCommit) -> bool:
        """Return whether this is another table than the one that the fact used: commit numbers do not compare."""
        return is_other_table(fact.applied(self.dimension.name).table_id, self.commit.table_id)

    def is_created_since(self, fact: PipelineCommit) -> bool:
        """Return whether the dimension had no table when the fact used it."""
        return fact.exists and self.rows is not None and not fact.applied(self.dimension.name).commit

    def is_newer_than(self, fact: PipelineCommit) -> bool:
        """Return whether the dimension has changed since the fact used it."""
        return self.applied != self.used_by(fact) or self.is_recreated(fact)

    def with_plan(self, plan: DimensionPlan) -> PinnedDimension:
        """Return the dimension with the rows that a plan of its load would give it."""
        if not plan.has_actions:
            return self
        key, keys = self.dimension.surrogate_key, [col(name) for name in self.dimension.key_names]
        rows = plan.changed_rows.where(F.col(ACTION) != REMOVE).drop(ACTION, IS_LAST)
        if self.rows is not None:
            others = self.rows.join(plan.changed_rows.select(col(key)), key, "left_anti")
            rows = others.unionByName(rows, allowMissingColumns=True)
        return replace(self, rows=rows, planned=plan.changed_rows.select(*keys).distinct())

    def under_new_name(self, dimension: Dimension) -> PinnedDimension:
        """Return the former dimension as the declared one after its tables were copied."""
        names = new_names(dimension)
        return replace(
            self,
            dimension=replace(self.dimension, name=dimension.name, former_name=dimension.former_name),
            commit=renamed_commit(self.commit, names),
            log=renamed_commit(self.log, names),
            history=self.history and renamed_commit(self.history, names),
        )

    def damage(self, fact: PipelineCommit) -> list[LoadError]:
        """Return the damage because of which a fact, by its last commit, cannot be loaded with this dimension."""
        downstream = [self.commit, *([self.history] if self.history else [])]
        return [*damage(self.log, downstream), *self._lag_errors(fact)]

    def _lag_errors(self, fact: PipelineCommit) -> list[LoadError]:
        used = self.used_by(fact)
        if used <= self.applied or self.is_recreated(fact) or self.planned is not None:
            return []
        state = f"has applied only commit {self.applied}" if self.commit.exists else "does not exist"
        details = {"dimension": self.dimension.name, "used": used, "log": self.log.table, "state": state}
        return [HighWaterMarkError("DIMENSION_BEHIND_FACT", f"table {fact.table}", **details)]


def pin(warehouse: Warehouse, dimension: Dimension) -> PinnedDimension:
    """Return the dimension at its newest version; under its former name until a load has copied its tables."""
    former = former_dimension(warehouse, dimension)
    if former is not None:
        return pin(warehouse, former).under_new_name(dimension)
    dimension = read_as_stored(warehouse, dimension)
    newest = newest_versions(warehouse, dimension.name)
    log = warehouse.table(dimension.name + LOG_SUFFIX).last_commit_or_zero()
    if newest is None:
        return PinnedDimension(dimension, PipelineCommit(dimension.name, 0), log, None)
    rows = with_computed_columns(newest.rows, dimension.column_layout)
    return PinnedDimension(dimension, newest.commit, log, rows, history=newest.history)


def pin_dimensions(warehouse: Warehouse, fact: Fact) -> dict[str, PinnedDimension]:
    """Return the dimensions of a fact at their newest versions, by name."""
    return {dimension.name: pin(warehouse, dimension) for dimension in fact.dimensions}


@dataclass(frozen=True, slots=True)
class FactKeys:
    """The surrogate keys of a fact: how its rows get them (S23), and which stored rows are re-keyed (S24).

    Attributes:
        warehouse: The warehouse of the fact.
        fact: The declaration.
        last: The last commit of the fact.
        pinned: The dimensions of the fact by name, read after `last`.
    """

    warehouse: Warehouse
    fact: Fact
    last: PipelineCommit
    pinned: Mapping[str, PinnedDimension]

    @property
    def high_water_marks(self) -> Mapping[str, HighWaterMark]:
        """How far the keys have applied the dimensions and their change logs."""
        return {name: mark for dimension in self.pinned.values() for name, mark in dimension.high_water_marks.items()}

    @property
    def log_sizes(self) -> list[int | None]:
        """The number of change records of each dimension; None if unknown."""
        return [dimension.log.stored_records for dimension in self.pinned.values()]

    @property
    def roles_checksum(self) -> int:
        """The checksum of the roles."""
        return roles_checksum(self.fact)

    @property
    def key_columns(self) -> Mapping[str, str]:
        """The column of the surrogate key of each role."""
        return {role: column for role, column, _ in self.fact.keyed_roles}

    def rows_to_recompute(self, stored: DataFrame) -> DataFrame | None:
        """Return the stored rows that are re-keyed, None if none can be."""
        if _is_rekeyed_whole(self.fact, self.pinned, self.last):
            return stored
        with_flag = _with_rekeyed(self.warehouse, self.fact, stored, self.pinned, self.last)
        return None if with_flag is None else with_flag.where(F.col(_REKEYED)).drop(_REKEYED)

    def add_columns(self, rows: DataFrame) -> DataFrame:
        """Add the surrogate key of each role at event time; a row with several versions in force is repeated."""
        for _, column, role in self.fact.keyed_roles:
            versions = self._rows(self.pinned[role.dimension.name])
            rows = role_key_as_of(rows, versions, role, time=self.fact.event_time, name=column)
        return rows

    def violations(self, rows: DataFrame) -> DataFrame:
        """Return invariant and key of the rows of `add_columns` for which a role has several versions in force.

        Their repeated surrogate keys reveal them, as in a dimension; this query names the invariant.
        """
        return duplicate_grain(rows, self.fact, {})

    def _rows(self, pinned: PinnedDimension) -> DataFrame:
        if pinned.rows is not None:
            return pinned.rows
        return empty_frame(self.warehouse.spark, {name: ddl for name, ddl, _ in dimension_schema(pinned.dimension)})


def read_fact_keys(warehouse: Warehouse, fact: Fact, plans: Mapping[str, DimensionPlan] | None = None) -> FactKeys:
    """Return the keys that the rows of a fact get from its dimensions at their newest versions.

    Args:
        warehouse: The warehouse.
        fact: The declaration.
        plans: Plans of dimensions by their names, whose rows are used as if they had been written.

    Raises:
        ForeignCommitError: Another program changed the rows of a dimension or its change log.
        HighWaterMarkError: A dimension or its change log was lost.
        UsageError: A condition of a role is not a condition over the columns of the fact.
    """
    # The fact is read before its dimensions, which a load in between can only move ahead.
    last = warehouse.table(fact.name).last_commit_or_zero()
    pinned = pin_dimensions(warehouse, fact)
    pinned = {name: each.with_plan(plans[name]) if plans and name in plans else each for name, each in pinned.items()}
    raise_first([error for dimension in pinned.values() for error in dimension.damage(last)])
    require_valid_conditions(warehouse.spark, fact)
    return FactKeys(warehouse, fact, last, pinned)


def stored_rows(rows: DataFrame, fact: Fact) -> DataFrame:
    """Return the rows of the fact's table as declared, without the keys of roles that its next load adds."""
    added = [column for column in fact.key_columns if column not in rows.columns]
    return to_declared_columns(rows, fact.as_dimension()).drop(*[col(column) for column in added])


def rows_with_current_keys(
    warehouse: Warehouse, fact: Fact, stored: TableVersion, pinned: Mapping[str, PinnedDimension]
) -> DataFrame:
    """Return the rows of a fact without those that its next load re-keys.

    Until then those have the keys of earlier versions, which `<dimension>_keys` resolves (S24).
    """
    rows, last = stored_rows(stored.rows, fact), stored.commit
    if _is_rekeyed_whole(fact, pinned, last):
        return rows.limit(0)
    with_flag = _with_rekeyed(warehouse, fact, rows, pinned, last)
    return rows if with_flag is None else with_flag.where(~F.col(_REKEYED)).drop(_REKEYED)


def _is_rekeyed_whole(fact: Fact, pinned: Mapping[str, PinnedDimension], last: PipelineCommit) -> bool:
    """Return whether the next load re-keys every row.

    The roles have changed, a dimension was recreated, or one that has inferred members was created.
    """
    has_other_roles = last.roles_checksum not in (0, roles_checksum(fact))
    inferred = {role.dimension.name for _, role in fact.roles if role.infers_members}
    return has_other_roles or any(
        dimension.is_recreated(last) or (name in inferred and dimension.is_created_since(last))
        for name, dimension in pinned.items()
    )


def _with_rekeyed(
    warehouse: Warehouse,
    fact: Fact,
    rows: DataFrame,
    pinned: Mapping[str, PinnedDimension],
    last: PipelineCommit,
) -> DataFrame | None:
    """Add whether a row references an entity that has changed since `last`; None if no entity has.

    The cost is a scan of the rows; few changed entities are broadcast, so that the rows are not shuffled.
    """
    changed = {name: _changed_since(warehouse, each, each.used_by(last)) for name, each in pinned.items()}
    references = [(role, keys) for _, role in fact.roles if (keys := changed[role.dimension.name]) is not None]
    if not references:
        return None
    flags = [f"_references_{number}" for number, _ in enumerate(references)]
    for (role, keys), flag in zip(references, flags, strict=True):
        rows = _with_reference(rows, role, keys, flag)
    return rows.withColumn(_REKEYED, any_of([F.col(flag).isNotNull() for flag in flags])).drop(*flags)


def roles_checksum(fact: Fact) -> int:
    """Return a checksum of the roles: it changes with everything that decides which keys rows store."""
    roles = sorted((name, role.dimension.name, role.key, *role.key_options) for name, role in fact.roles)
    return zlib.crc32(json.dumps(roles).encode())


def _changed_since(warehouse: Warehouse, pinned: PinnedDimension, used: int) -> DataFrame | None:
    """Return the keys of the entities that have changed after the log commit `used`, or that a plan changes.

    None if no entity can have changed.
    """
    changed = [] if pinned.planned is None else [pinned.planned]
    if pinned.commit.exists and pinned.applied > used:
        log = read_log(warehouse, pinned.dimension).until(pinned.applied)
        records = changed_records(log.rows(), log.committed_batches(), after=used)
        keys = [col(name) for name in pinned.dimension.key_names]
        changed.append(changed_entities(records, pinned.dimension).select(*keys))
    if not changed:
        return None
    entities, counts = checkpoint_with_counts(union_all(changed).distinct(), {"entities": F.count(F.lit(1))})
    return with_broadcast(entities, counts["entities"])


def _with_reference(rows: DataFrame, role: Role, changed: DataFrame, flag: str) -> DataFrame:
    """Add a column that is true for the rows that reference one of these entities in that role, otherwise NULL."""
    names = [f"_changed_{number}" for number, _ in enumerate(role.key)]
    pairs = zip(role.dimension.key_names, names, strict=True)
    keys = changed.select(*[col(key).alias(name) for key, name in pairs], F.lit(True).alias(flag))
    same = [col(column) == F.col(name) for column, name in zip(role.key, names, strict=True)]
    return rows.join(keys, all_of(same), "left").drop(*names)
