"""Invariants of a fact: property -> the rows that violate it. Checked before a commit, and on whole tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Fact, Role
from scd_pipeline.expressions import col, readable_key
from scd_pipeline.frames import union_all
from scd_pipeline.history.as_of import WINDOW_KEY, is_in_force, version_windows
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.invariants.dimensions import KEY, RULE
from scd_pipeline.invariants.properties import GRAIN_IS_UNIQUE, SURROGATE_KEYS_EXIST, SURROGATE_KEYS_FIT_EVENT_TIME

Versions = Mapping[str, DataFrame | None]
"""The rows of each dimension, by its name; None for one that has no table yet."""

FactInvariant = Callable[[DataFrame, Fact, Versions], DataFrame]
"""Facts with their keys -> those that break it: `rule`, and `key`, which names the fact and mostly the role.

A role whose key the rows do not have is not asked of: it was declared since they were written (S35).
"""


def dangling_keys(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """S24: a key that a fact stores is a key of its dimension.

    The unknown member of a dimension without a table is none that is missing.
    """

    def broken(column: str, role: Role) -> DataFrame:
        there = versions[role.dimension.name]
        keys = rows.sparkSession.range(1).select(F.lit(UNKNOWN_KEY).alias(column))
        if there is not None:
            keys = there.select(col(role.dimension.surrogate_key).alias(column))
        return rows.join(keys, column, "left_anti")

    return _of_each_role(rows, fact, SURROGATE_KEYS_EXIST, broken)


def without_their_versions(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """S23: a fact stores the key of the version that holds at its event time, and -1 exactly if none does."""

    def broken(column: str, role: Role) -> DataFrame:
        return _not_held(rows, fact, role, column, versions[role.dimension.name])

    return _of_each_role(rows, fact, SURROGATE_KEYS_FIT_EVENT_TIME, broken)


def repeated_grain(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """S23: a fact is there once."""
    names = [key.name for key in fact.grain]
    counted = rows.groupBy(*[col(name) for name in names]).agg(F.count(F.lit(1)).alias("_count"))
    repeated = counted.where(F.col("_count") > 1)
    return repeated.select(F.lit(GRAIN_IS_UNIQUE).alias(RULE), readable_key(names).alias(KEY))


FACT_INVARIANTS: Mapping[str, FactInvariant] = {
    SURROGATE_KEYS_EXIST: dangling_keys,
    SURROGATE_KEYS_FIT_EVENT_TIME: without_their_versions,
    GRAIN_IS_UNIQUE: repeated_grain,
}


def _not_held(rows: DataFrame, fact: Fact, role: Role, column: str, versions: DataFrame | None) -> DataFrame:
    """The facts whose key names no version that holds, and those that name none though one does."""
    unknown = col(column).eqNullSafe(F.lit(UNKNOWN_KEY))
    if versions is None:
        return rows.where(~unknown)
    there, holds = (
        version_windows(versions, role.dimension),
        is_in_force(role.dimension, keys=role.key, time=fact.event_time),
    )
    with_another = rows.where(~unknown).join(there, (col(column) == F.col(WINDOW_KEY)) & holds, "left_anti")
    return with_another.unionByName(rows.where(unknown).join(there, holds, "left_semi"))


def _of_each_role(rows: DataFrame, fact: Fact, rule: str, broken: Callable[[str, Role], DataFrame]) -> DataFrame:
    """What `broken` finds in each role, given its column; nothing where the rows have none of the keys."""
    asked = [(column, role) for _, column, role in fact.keyed_roles if column in rows.columns]
    found = [_told(broken(column, role), rule, column, fact) for column, role in asked]
    return union_all(found) if found else _told(rows.limit(0), rule, "", fact)


def _told(rows: DataFrame, rule: str, column: str, fact: Fact) -> DataFrame:
    who = readable_key([key.name for key in fact.grain])
    return rows.select(F.lit(rule).alias(RULE), F.concat(who, F.lit(f" ({column})")).alias(KEY))
