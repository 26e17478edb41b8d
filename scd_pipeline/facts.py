"""The use-case of facts: take deliveries in, and keep every stored key what a fresh as-of join would give (S23, S24).

A fact's rows are entities that have only their latest values, so that deliveries, revisions and bad rows are treated as
those of a dimension are. What is added are the surrogate keys, and a second look at the rows whose dimensions moved.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.audit.fact_invariants import Versions, without_their_versions
from scd_pipeline.columns import (
    CHANGE_REASON,
    CHANGE_SOURCE,
    CURRENT_FLAG,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    LAST_UPDATED,
    LOAD_RUN_ID,
    VERSION,
    col,
)
from scd_pipeline.deliveries import Delivery
from scd_pipeline.delta.commits import OwnCommit
from scd_pipeline.delta.fit import declared_rows, refuse_foreign
from scd_pipeline.frames import united
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.timeline import BEGINNING, dimension_schema
from scd_pipeline.load import LoadResult, Progress, Retry, load, silent, with_retries
from scd_pipeline.plan import Extension, LoadPlan, changed_entities, make_plan, open_log, took_of
from scd_pipeline.spec import Dimension, Fact, Role
from scd_pipeline.warehouse import Warehouse

_ROLES = "@roles"


def load_fact(
    warehouse: Warehouse,
    fact: Fact,
    deliveries: Sequence[Delivery] = (),
    *,
    run_id: str = "",
    retry: Retry | None = None,
    progress: Progress = silent,
    examples: int = 0,
) -> LoadResult:
    """Take the deliveries into the fact, and bring the whole fact up to its dimensions, in one commit.

    Without deliveries it only does the latter. The commit tells which version of each dimension was used.
    Errors: as of `load.load`.
    """
    for dimension in fact.dimensions:
        add_reserved_member(warehouse, dimension, run_id=run_id, retry=retry)
    return load(
        warehouse,
        fact.as_dimension(),
        deliveries,
        run_id=run_id,
        retry=retry,
        progress=progress,
        extension=lambda: extension(warehouse, fact),
        examples=examples,
    )


def plan_fact(warehouse: Warehouse, fact: Fact, deliveries: Sequence[Delivery] = ()) -> LoadPlan:
    """What a load of these deliveries would do; writes nothing."""
    return make_plan(warehouse, fact.as_dimension(), deliveries, run_id="", extension=extension(warehouse, fact))


@dataclass(frozen=True, slots=True)
class Pinned:
    """A dimension as one run of a fact sees it: its rows at one version, and the log up to which they stand.

    `table` tells the table from another one that was there before under its name.
    """

    dimension: Dimension
    commit: OwnCommit
    rows: DataFrame | None
    table: int

    @property
    def took(self) -> dict[str, int]:
        """For the fact's commit."""
        name = self.dimension.name
        told = {name: self.commit.took.get("log", 0), f"{name}@version": self.commit.table_version}
        return {**told, f"{name}@table": self.table}

    def is_made_anew(self, known: Mapping[str, int]) -> bool:
        """Whether the table is another than the one that was used before, whose numbers say nothing of this one."""
        return known.get(f"{self.dimension.name}@table", self.table) != self.table


def pin(warehouse: Warehouse, dimension: Dimension) -> Pinned:
    """The dimension as it stands now; without rows where there is no table yet.

    Read at its newest version: Delta refuses one before an OPTIMIZE or a VACUUM once its files' retention has passed.
    """
    table = warehouse.table(dimension.name)
    if not table.exists():
        return Pinned(dimension, OwnCommit(dimension.name, 0), None, 0)
    commit = table.last_commit()
    return Pinned(dimension, commit, table.read(commit.newest), table.identity())


def pin_dimensions(warehouse: Warehouse, fact: Fact) -> dict[str, Pinned]:
    """The dimensions of a fact as they stand now, by name."""
    return {dimension.name: pin(warehouse, dimension) for dimension in fact.dimensions}


def extension(warehouse: Warehouse, fact: Fact) -> Extension:
    """What a fact's rows get: the keys as of now, and a second look where a dimension has changed since the last."""
    pinned = pin_dimensions(warehouse, fact)
    table = warehouse.table(fact.name)
    known = dict(table.last_commit().took) if table.exists() else {}

    def again(before: DataFrame) -> DataFrame | None:
        if _all_again(fact, pinned, known):
            return before
        grain = _moved(warehouse, fact, before, pinned, known)
        return None if grain is None else before.join(grain, [column.name for column in fact.grain], "left_semi")

    versions = {name: at.rows for name, at in pinned.items()}

    def finish(rows: DataFrame) -> DataFrame:
        return with_keys(rows, fact, versions)

    def broken(rows: DataFrame) -> DataFrame:
        return without_their_versions(rows, fact, versions)

    took = {_ROLES: _fingerprint(fact), **{name: number for at in pinned.values() for name, number in at.took.items()}}
    return Extension(again, finish, broken, took)


def stored_rows(warehouse: Warehouse, fact: Fact) -> DataFrame:
    """The fact's rows as declared, but without the keys of roles that its next load adds."""
    rows = warehouse.table(fact.name).read()
    added = [column for column in fact.key_columns if column not in rows.columns]
    return declared_rows(rows, fact.as_dimension()).drop(*[col(column) for column in added])


def standing_rows(warehouse: Warehouse, fact: Fact, pinned: Mapping[str, Pinned]) -> DataFrame:
    """The fact's rows but those that its next load looks at again, as their dimensions have changed since the last.

    Until then their keys are those of before, which `<dimension>_keys` resolves (S24).
    """
    rows, known = stored_rows(warehouse, fact), dict(warehouse.table(fact.name).last_commit().took)
    if _all_again(fact, pinned, known):
        return rows.limit(0)
    grain = _moved(warehouse, fact, rows, pinned, known)
    return rows if grain is None else rows.join(grain, [column.name for column in fact.grain], "left_anti")


def _all_again(fact: Fact, pinned: Mapping[str, Pinned], known: Mapping[str, int]) -> bool:
    """Whether the next load looks at every row: the roles are others, or a dimension is another table than before."""
    roles = _fingerprint(fact)
    return known.get(_ROLES, roles) != roles or any(at.is_made_anew(known) for at in pinned.values())


def _moved(
    warehouse: Warehouse, fact: Fact, rows: DataFrame, pinned: Mapping[str, Pinned], known: Mapping[str, int]
) -> DataFrame | None:
    """The grain of the rows that name an entity that has changed since the fact last looked; None if none can."""
    changed = {name: _changed(warehouse, at, known.get(name, 0)) for name, at in pinned.items()}
    moved = [
        _rows_of(rows, fact, role, keys) for _, role in fact.roles if (keys := changed[role.dimension.name]) is not None
    ]
    return united(moved).distinct() if moved else None


def _fingerprint(fact: Fact) -> int:
    """Tells other roles from these: another dimension, or other columns that name its entity."""
    roles = sorted((name, role.dimension.name, role.key) for name, role in fact.roles)
    return zlib.crc32(json.dumps(roles).encode())


def _changed(warehouse: Warehouse, at: Pinned, looked: int) -> DataFrame | None:
    """The entities that have changed since the fact last looked; None if none can have."""
    upto = at.commit.took.get("log", 0)
    if at.rows is None or upto <= looked:
        return None
    log = open_log(warehouse, at.dimension)
    return changed_entities(log, log.committed_batches(), at.dimension, after=looked, upto=upto)


def _rows_of(before: DataFrame, fact: Fact, role: Role, changed: DataFrame) -> DataFrame:
    """The grain of the rows that name one of these entities in that role."""
    names = [f"_moved_{number}" for number, _ in enumerate(role.key)]
    pairs = zip(role.dimension.key_names, names, strict=True)
    keys = changed.select(*[col(key).alias(name) for key, name in pairs])
    same = [col(column) == F.col(name) for column, name in zip(role.key, names, strict=True)]
    moved = before.join(F.broadcast(keys), reduce(and_, same), "left_semi")
    return moved.select(*[col(column.name) for column in fact.grain])


def with_keys(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """The rows with the key of each role as of their event time; -1 where a dimension has no table yet."""
    for _, column, role in fact.keyed_roles:
        there = versions[role.dimension.name]
        if there is None:
            rows = rows.withColumn(column, F.lit(UNKNOWN_KEY).cast("bigint"))
        else:
            rows = key_as_of(rows, there, role.dimension, keys=role.key, time=fact.event_time, name=column)
    return rows


def add_reserved_member(
    warehouse: Warehouse, dimension: Dimension, *, run_id: str = "", retry: Retry | None = None
) -> OwnCommit | None:
    """Give the dimension the row of its unknown member, so that an inner join loses no fact (S23).

    Out: the commit that added it; None where it is there, or where there is no table yet.
    Errors: SetupError if the table is not ours.
    """

    def attempt() -> OwnCommit | None:
        refuse_foreign(warehouse.table(dimension.name))
        table = warehouse.writable(dimension.name)
        if not table.exists():
            return None
        commit = table.last_commit()
        there = table.read().where(col(dimension.surrogate_key) == UNKNOWN_KEY)
        if not there.isEmpty():
            return None
        took = {**commit.took, "log": took_of(open_log(warehouse, dimension).commit, commit)}
        # A column that was declared since comes with the steps of the dimension's own load.
        columns, member = table.columns(), unknown_member(warehouse, dimension)
        member = member.select(*[col(name) for name in member.columns if name in columns])
        return table.append(member, commit.next(took=took, batches=(), run_id=run_id))

    return with_retries(dimension.name, attempt, retry or Retry(), silent)


def unknown_member(warehouse: Warehouse, dimension: Dimension) -> DataFrame:
    """The row of the unknown member: key -1, `version` 0, not current, in force at no time, attributes NULL."""
    beginning = F.lit(BEGINNING).cast("timestamp")
    told = {
        dimension.surrogate_key: F.lit(UNKNOWN_KEY),
        EFFECTIVE_FROM: beginning,
        EFFECTIVE_TO: beginning,
        CURRENT_FLAG: F.lit(False),
        VERSION: F.lit(0),
        CHANGE_REASON: F.lit("reserved_member"),
        CHANGE_SOURCE: F.lit(""),
        LOAD_RUN_ID: F.lit(""),
        LAST_UPDATED: beginning,
    }
    columns = [told.get(name, F.lit(None)).cast(ddl).alias(name) for name, ddl, _ in dimension_schema(dimension)]
    return warehouse.spark.range(1).select(*columns)
