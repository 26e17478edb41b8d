"""The key of a role in a row: of the version in force, of an inferred member, or of a reserved member (S23)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import VERSION
from scd_pipeline.declaration import Dimension, Fact, Role
from scd_pipeline.expressions import col
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import INVALID_KEY, NOT_APPLICABLE_KEY, RESERVED_KEYS, UNKNOWN_KEY

KEY_BY_CONDITION = {"not_applicable": NOT_APPLICABLE_KEY, "invalid": INVALID_KEY}
"""The key of a row for which a declared condition is true, by the condition's option; the first one decides."""


def role_key_as_of(rows: DataFrame, versions: DataFrame, role: Role, *, time: str, name: str) -> DataFrame:
    """Add or replace a column with the key of a role at the time of each row.

    Args:
        rows: The rows of the fact.
        versions: The rows of the dimension.
        role: The role.
        time: The column of the time.
        name: The column to add or replace.

    Returns:
        The rows of `key_as_of`. A row for which a condition of the role is true has the key of its reserved member.
    """
    keyed = key_as_of(rows, role_versions(versions, role), role.dimension, keys=role.key, time=time, name=name)
    reserved = reserved_key(role)
    return keyed if reserved is None else keyed.withColumn(name, F.coalesce(reserved, col(name)))


def role_versions(versions: DataFrame, role: Role) -> DataFrame:
    """Return the versions that rows can reference in a role: inferred members only if the role infers them."""
    is_filtered = role.dimension.has_windows and not role.infers_members
    return versions.where(~is_inferred(role.dimension)) if is_filtered else versions


def is_inferred(dimension: Dimension) -> Column:
    """Return whether a row of a dimension with windows is an inferred member, which no delivery has provided yet."""
    return (F.col(VERSION) == 0) & ~col(dimension.surrogate_key).isin(list(RESERVED_KEYS))


def reserved_key(role: Role) -> Column | None:
    """Return the key of the first condition that is true for a row, otherwise NULL; None without any condition."""
    keys = [F.when(F.expr(text), KEY_BY_CONDITION[option]) for option, text in role.conditions.items()]
    return F.coalesce(*keys).cast("bigint") if keys else None


def reserved_keys(fact: Fact, dimension: Dimension) -> tuple[int, ...]:
    """Return the keys of the reserved members that a fact needs in one of its dimensions."""
    roles = [role for _, role in fact.roles if role.dimension.name == dimension.name]
    declared = {KEY_BY_CONDITION[option] for role in roles for option in role.conditions}
    return (UNKNOWN_KEY, *sorted(declared, reverse=True))
