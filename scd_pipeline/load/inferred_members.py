"""Inferred members: rows of a dimension for entities that facts reference before any delivery provides them (S23).

An inferred member has the business key alone, and is current from the declared begin. Neither the change log nor the
audit has it: it follows from the rows of facts. A load of the dimension replaces it by the versions of the entity,
because it compares the versions of each delivered entity with the stored rows. The facts are then re-keyed like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CHANGE_REASON, CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension, Role
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import all_of, col
from scd_pipeline.frames import checkpoint_with_counts, union_all
from scd_pipeline.history.keys import surrogate_key
from scd_pipeline.history.role_keys import reserved_key
from scd_pipeline.history.schema import beginning, declared_time, open_end
from scd_pipeline.load.facts import FactKeys, InferredMembers, PinnedDimension
from scd_pipeline.load.reserved_members import append_members, with_member_columns
from scd_pipeline.load.retry import Progress
from scd_pipeline.texts import pluralize


def with_inferred_members(warehouse: Warehouse, fact_keys: FactKeys, rows: DataFrame) -> FactKeys:
    """Return the surrogate keys of a fact with an inferred member for each entity that its dimension does not have.

    Args:
        warehouse: The warehouse.
        fact_keys: The surrogate keys.
        rows: The rows of the fact that get keys.
    """
    pinned = dict(fact_keys.pinned)
    for name, dimension in fact_keys.pinned.items():
        roles = [role for _, role in fact_keys.fact.roles if role.dimension.name == name and role.infers_members]
        if roles and dimension.rows is not None:
            pinned[name] = _with_members(warehouse, dimension, rows, roles, fact_keys.fact.event_time)
    return replace(fact_keys, pinned=pinned)


def write_inferred_members(
    warehouse: Warehouse, pinned: PinnedDimension, *, run_id: str, progress: Progress
) -> PinnedDimension:
    """Write the inferred members of a planned load, and return the dimension with the commit that contains them.

    Raises:
        ConflictError: Another writer committed first.
    """
    assert pinned.inferred is not None
    has_reserved = pinned.commit.reserved_member
    done = append_members(warehouse, pinned, pinned.inferred.rows, run_id=run_id, reserved_member=has_reserved)
    members = pluralize(pinned.inferred.count, "inferred member")
    progress(f"{done.commit.table}: wrote commit {done.commit.number} ({members})")
    return done


def _with_members(
    warehouse: Warehouse, pinned: PinnedDimension, rows: DataFrame, roles: Sequence[Role], time: str
) -> PinnedDimension:
    dimension, versions = pinned.dimension, pinned.rows
    assert versions is not None
    referenced = union_all([_referenced(rows, role, dimension, time) for role in roles]).distinct()
    keys = referenced.join(versions.select(*map(col, dimension.key_names)), list(dimension.key_names), "left_anti")
    members, counts = checkpoint_with_counts(inferred_rows(warehouse, keys, dimension), {"members": F.count(F.lit(1))})
    if not counts["members"]:
        return pinned
    inferred = InferredMembers(members, counts["members"])
    return replace(pinned, rows=versions.unionByName(members, allowMissingColumns=True), inferred=inferred)


def _referenced(rows: DataFrame, role: Role, dimension: Dimension, time: str) -> DataFrame:
    """Return the business keys that rows reference in a role at a time at which an inferred member is in force."""
    reserved = reserved_key(role)
    conditions = [col(key).isNotNull() for key in role.key]
    conditions += [col(time).cast("timestamp") >= _start(dimension)]
    conditions += [] if reserved is None else [reserved.isNull()]
    names = zip(role.key, dimension.key_names, strict=True)
    return rows.where(all_of(conditions)).select(*[col(key).alias(name) for key, name in names])


def inferred_rows(warehouse: Warehouse, keys: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows of inferred members with these business keys: `version` 0, current from the declared begin."""
    limits = {EFFECTIVE_FROM: _start(dimension), EFFECTIVE_TO: open_end(dimension)}
    rows = keys.withColumns({**limits, CURRENT_FLAG: F.lit(True), CHANGE_REASON: F.lit("inferred_member")})
    own = {name: col(name) for name in (*dimension.key_names, *limits, CURRENT_FLAG, CHANGE_REASON)}
    key = surrogate_key(dimension, warehouse.key_hash)
    return with_member_columns(rows, {**own, dimension.surrogate_key: key}, dimension)


def _start(dimension: Dimension) -> Column:
    """Return the `effective_from` of an inferred member: the declared time, or that of everything without one (S29)."""
    begin = dimension.begin
    return declared_time(begin.at) if begin is not None and not begin.column else beginning()
