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

from scd_pipeline.columns import (
    CHANGE_REASON,
    CHANGE_SOURCE,
    CURRENT_FLAG,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    LAST_UPDATED,
    LOAD_RUN_ID,
    VERSION,
)
from scd_pipeline.declaration import Dimension, Fact, Role
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import require_own_tables, to_declared_columns
from scd_pipeline.delta.table import TableVersion
from scd_pipeline.delta.upstream import LOG_MARK, damage, is_other_table, log_marks, require_sound
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError, LoadError
from scd_pipeline.expressions import col
from scd_pipeline.frames import union_all
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.schema import BEGINNING, dimension_schema
from scd_pipeline.invariants.facts import Versions, without_their_versions
from scd_pipeline.load.dimension import LoadResult, Progress, Retry, load, silent, with_retries
from scd_pipeline.load.load_plan import LoadPlan, make_plan
from scd_pipeline.load.log import changed_entities, log_high_water_mark, open_log
from scd_pipeline.load.rows import Extension

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
    """A dimension as one run of a fact sees it: its rows at one version, and the last commits of table and log."""

    dimension: Dimension
    commit: PipelineCommit
    log: PipelineCommit
    rows: DataFrame | None

    @property
    def applied(self) -> int:
        """The commit of the log up to which the rows are."""
        return self.commit.high_water_marks.get(LOG_MARK, 0)

    @property
    def high_water_marks(self) -> dict[str, int]:
        """For the fact's commit."""
        name = self.dimension.name
        told = {name: self.applied, f"{name}@version": self.commit.table_version}
        return {**told, f"{name}@id": self.commit.table_id}

    def is_made_anew(self, known: Mapping[str, int]) -> bool:
        """Whether the table is another than the one that was used before, whose numbers say nothing of this one."""
        return is_other_table(known.get(f"{self.dimension.name}@id", 0), self.commit.table_id)

    def damage(self, fact: PipelineCommit) -> list[LoadError]:
        """Return what keeps a fact, by its last commit, from being loaded with this dimension; none if it is sound."""
        return [*damage(self.log, [self.commit]), *self._lost(fact)]

    def _lost(self, fact: PipelineCommit) -> list[LoadError]:
        name, used = self.dimension.name, fact.high_water_marks.get(self.dimension.name, 0)
        if used <= self.applied or self.is_made_anew(fact.high_water_marks):
            return []
        has = f"has applied only commit {self.applied}" if self.commit.exists else "does not exist"
        return [
            HighWaterMarkError(
                f"table {fact.table}: its keys are those of {name} after commit {used} of {self.log.table}, and "
                f"{name} {has}; expected the dimension that the keys are of, or a later one; nothing was written; "
                f"load {name} first, which rebuilds it from {self.log.table}"
            )
        ]


def pin(warehouse: Warehouse, dimension: Dimension) -> Pinned:
    """The dimension as it stands now; without rows where there is no table yet.

    Read at its newest version: Delta refuses one before an OPTIMIZE or a VACUUM once its files' retention has passed.
    """
    newest = warehouse.table(dimension.name).newest()
    log = warehouse.table(dimension.name + LOG_SUFFIX).last_commit_or_zero()
    if newest is None:
        return Pinned(dimension, PipelineCommit(dimension.name, 0), log, None)
    return Pinned(dimension, newest.commit, log, newest.rows)


def pin_dimensions(warehouse: Warehouse, fact: Fact) -> dict[str, Pinned]:
    """The dimensions of a fact as they stand now, by name."""
    return {dimension.name: pin(warehouse, dimension) for dimension in fact.dimensions}


def extension(warehouse: Warehouse, fact: Fact) -> Extension:
    """What a fact's rows get: the keys as of now, and a second look where a dimension has changed since the last.

    Errors: ForeignCommitError, HighWaterMarkError if a dimension or its log was damaged or lost.
    """
    # The fact is read before its dimensions, which a load between can only move ahead.
    last = warehouse.table(fact.name).last_commit_or_zero()
    pinned, known = pin_dimensions(warehouse, fact), last.high_water_marks
    for at in pinned.values():
        for error in at.damage(last):
            raise error

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

    high_water_marks = {
        _ROLES: _fingerprint(fact),
        **{name: number for at in pinned.values() for name, number in at.high_water_marks.items()},
    }
    return Extension(again, finish, broken, high_water_marks)


def stored_rows(rows: DataFrame, fact: Fact) -> DataFrame:
    """The rows of the fact's table as declared, but without the keys of roles that its next load adds."""
    added = [column for column in fact.key_columns if column not in rows.columns]
    return to_declared_columns(rows, fact.as_dimension()).drop(*[col(column) for column in added])


def standing_rows(warehouse: Warehouse, fact: Fact, stored: TableVersion, pinned: Mapping[str, Pinned]) -> DataFrame:
    """The fact's rows but those that its next load looks at again, as their dimensions have changed since the last.

    Until then their keys are those of before, which `<dimension>_keys` resolves (S24).
    """
    rows, known = stored_rows(stored.rows, fact), stored.commit.high_water_marks
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
    return union_all(moved).distinct() if moved else None


def _fingerprint(fact: Fact) -> int:
    """Tells other roles from these: another dimension, or other columns that name its entity."""
    roles = sorted((name, role.dimension.name, role.key) for name, role in fact.roles)
    return zlib.crc32(json.dumps(roles).encode())


def _changed(warehouse: Warehouse, at: Pinned, looked: int) -> DataFrame | None:
    """The entities that have changed since the fact last looked; None if none can have."""
    upto = at.applied
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
) -> PipelineCommit | None:
    """Give the dimension the row of its unknown member, so that an inner join loses no fact (S23).

    Out: the commit that added it; None where it is there, or where there is no table yet.
    Errors: SetupError if the table is not ours; ForeignCommitError, HighWaterMarkError if it or its log was damaged.
    """

    def attempt() -> PipelineCommit | None:
        require_own_tables(warehouse.table(dimension.name))
        table = warehouse.writable(dimension.name)
        newest = table.newest()
        if newest is None or not newest.rows.where(col(dimension.surrogate_key) == UNKNOWN_KEY).isEmpty():
            return None
        commit, log = newest.commit, open_log(warehouse, dimension).commit
        require_sound(log, [commit])
        high_water_marks = {**commit.high_water_marks, **log_marks(log, log_high_water_mark(log, commit))}
        # A column that was declared since comes with the steps of the dimension's own load.
        columns, member = newest.columns(), unknown_member(warehouse, dimension)
        member = member.select(*[col(name) for name in member.columns if name in columns])
        return table.append(member, commit.next(high_water_marks=high_water_marks, batches=(), run_id=run_id))

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
