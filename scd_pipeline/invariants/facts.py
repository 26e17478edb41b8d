"""Invariants of a fact, each as a query for the rows that violate it.

`scd check` checks the whole table. A load checks the affected rows before its commit by their grain alone: the as-of
join that finds their keys repeats a row for which it finds several versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Fact, Role
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.expressions import col, readable_key
from scd_pipeline.frames import local_frame, union_all
from scd_pipeline.history.as_of import VERSION_KEY, is_in_force, version_windows
from scd_pipeline.history.keys import INVALID_KEY, RESERVED_KEYS, UNKNOWN_KEY
from scd_pipeline.history.role_keys import reserved_key, role_versions
from scd_pipeline.invariants.check_descriptions import (
    GRAIN_IS_UNIQUE,
    SURROGATE_KEYS_EXIST,
    SURROGATE_KEYS_FIT_EVENT_TIME,
    UNKNOWN_SHARES_ARE_WITHIN_LIMITS,
)
from scd_pipeline.invariants.dimensions import CHECK, KEY

Versions = Mapping[str, DataFrame | None]
"""The rows of each dimension by name; None for a dimension that has no table yet."""


@dataclass(frozen=True, slots=True)
class FactInvariant:
    """A check of a fact, and the query for its violations.

    The query takes facts with their keys, and returns `check` and `key`, which names the fact and mostly the role. A
    role whose key column the rows do not have is skipped: it was declared after they were written (S35).
    """

    check: str
    violations: Callable[[DataFrame, Fact, Versions], DataFrame]


def missing_keys(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """Return the facts that store a key which their dimension does not have (S24).

    The keys of reserved members are valid also for a dimension without a table.
    """

    def violating(column: str, role: Role) -> DataFrame:
        stored = versions[role.dimension.name]
        keys = local_frame(rows.sparkSession, [(key,) for key in RESERVED_KEYS], f"{quote_name(column)} bigint")
        if stored is not None:
            keys = stored.select(col(role.dimension.surrogate_key).alias(column))
        return rows.join(keys, column, "left_anti")

    return _in_each_role(rows, fact, SURROGATE_KEYS_EXIST, violating)


def keys_outside_window(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """Return the facts whose key is not that of the version in force at event time, or of a reserved member (S23)."""

    def violating(column: str, role: Role) -> DataFrame:
        return _not_in_force(rows, fact, role, column, versions[role.dimension.name])

    return _in_each_role(rows, fact, SURROGATE_KEYS_FIT_EVENT_TIME, violating)


def duplicate_grain(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """Return the grain of facts that have several rows (S23)."""
    names = [key.name for key in fact.grain]
    counts = rows.groupBy(*[col(name) for name in names]).agg(F.count(F.lit(1)).alias("_count"))
    duplicates = counts.where(F.col("_count") > 1)
    return duplicates.select(F.lit(GRAIN_IS_UNIQUE).alias(CHECK), readable_key(names).alias(KEY))


def exceeded_limits(rows: DataFrame, fact: Fact, versions: Versions) -> DataFrame:
    """Return the roles in which more rows than declared have the key of the unknown member or of invalid keys (S23)."""

    def exceeded(column: str, limit: float) -> DataFrame:
        counts = rows.agg(
            F.count(F.lit(1)).alias("_rows"),
            F.count_if(col(column).isin(UNKNOWN_KEY, INVALID_KEY)).alias("_unknown"),
        )
        text = F.format_string(
            f"{column.replace('%', '%%')}: %d of %d rows have the key {UNKNOWN_KEY} or {INVALID_KEY}; "
            f"expected at most {limit:.2%}%",
            "_unknown",
            "_rows",
        )
        return counts.where(F.col("_unknown") > F.col("_rows") * limit).select(
            F.lit(UNKNOWN_SHARES_ARE_WITHIN_LIMITS).alias(CHECK), text.alias(KEY)
        )

    limits = {column: role.unknown_limit for _, column, role in fact.keyed_roles if column in rows.columns}
    violations = [exceeded(column, limit) for column, limit in limits.items() if limit is not None]
    return union_all(violations) if violations else _named(rows.limit(0), UNKNOWN_SHARES_ARE_WITHIN_LIMITS, "", fact)


_INVARIANTS = (
    FactInvariant(SURROGATE_KEYS_EXIST, missing_keys),
    FactInvariant(SURROGATE_KEYS_FIT_EVENT_TIME, keys_outside_window),
    FactInvariant(GRAIN_IS_UNIQUE, duplicate_grain),
)
_LIMITS = FactInvariant(UNKNOWN_SHARES_ARE_WITHIN_LIMITS, exceeded_limits)


def fact_invariants(fact: Fact) -> dict[str, FactInvariant]:
    """Return the invariants of this fact by name; that of limits only if a role declares one."""
    has_limits = any(role.unknown_limit is not None for _, role in fact.roles)
    return {invariant.check: invariant for invariant in (*_INVARIANTS, *([_LIMITS] if has_limits else []))}


def _not_in_force(rows: DataFrame, fact: Fact, role: Role, column: str, versions: DataFrame | None) -> DataFrame:
    """Return the facts whose version is not in force, and those with the unknown key although a version is.

    One join finds for a known key its version in force, and for the unknown key any version in force. A row for which a
    condition of the role is true has the key that the condition decides.
    """
    reserved = reserved_key(role)
    if reserved is not None:
        decided, others = rows.where(reserved.isNotNull()), replace(role, not_applicable="", invalid="")
        by_version = _not_in_force(rows.where(reserved.isNull()), fact, others, column, versions)
        return by_version.unionByName(decided.where(~col(column).eqNullSafe(reserved)))
    is_unknown = col(column).eqNullSafe(F.lit(UNKNOWN_KEY))
    if versions is None:
        return rows.where(~is_unknown)
    windows = version_windows(role_versions(versions, role), role.dimension)
    in_force = is_in_force(role.dimension, keys=role.key, time=fact.event_time)
    joined = rows.join(windows, in_force & (is_unknown | (col(column) == F.col(VERSION_KEY))), "left")
    is_violation = is_unknown == F.col(VERSION_KEY).isNotNull()
    return joined.where(is_violation).select(*[col(name) for name in rows.columns])


def _in_each_role(rows: DataFrame, fact: Fact, check: str, violating: Callable[[str, Role], DataFrame]) -> DataFrame:
    """Return the violations in each role whose key column the rows have."""
    roles = [(column, role) for _, column, role in fact.keyed_roles if column in rows.columns]
    violations = [_named(violating(column, role), check, column, fact) for column, role in roles]
    return union_all(violations) if violations else _named(rows.limit(0), check, "", fact)


def _named(rows: DataFrame, check: str, column: str, fact: Fact) -> DataFrame:
    grain = readable_key([key.name for key in fact.grain])
    return rows.select(F.lit(check).alias(CHECK), F.concat(grain, F.lit(f" ({column})")).alias(KEY))
