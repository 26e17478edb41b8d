"""Invariants of a dimension, each as the condition of the rows that violate it.

They are checked before each commit for the affected entities, and by `scd check` for the whole table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO, VERSION
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import all_of, any_of, array_where, col, readable_key
from scd_pipeline.frames import repeated_numbers
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.row_windows import RowWindows
from scd_pipeline.history.schema import open_end
from scd_pipeline.invariants import check_descriptions

CHECK, KEY = "check", "key"
MAX_LISTED_KEYS = 20_000
"""The largest number of rows whose surrogate keys one aggregate lists."""
_OPENED_PREFIX = "_new_"
_PREVIOUS_END, _NUMBER, _CURRENT_COUNT, _KEY_COUNT = "_previous_end", "_number", "_current_count", "_key_count"


@dataclass(frozen=True, slots=True)
class Invariant:
    """A check of a dimension, and the condition of the rows that violate it.

    The condition uses the columns of the dimension, of `_with_versions`, and `_key_count`, the number of rows with the
    same surrogate key.
    """

    check: str
    is_violated: Callable[[Dimension], Column]


_WINDOW_INVARIANTS = (
    Invariant(
        check_descriptions.ONE_CURRENT_VERSION,
        lambda dimension: F.col(CURRENT_FLAG) & (F.col(_CURRENT_COUNT) > 1),
    ),
    Invariant(
        check_descriptions.WINDOWS_DO_NOT_OVERLAP,
        lambda dimension: F.col(EFFECTIVE_FROM) < F.col(_PREVIOUS_END),
    ),
    Invariant(
        check_descriptions.WINDOWS_HAVE_BOTH_ENDS,
        lambda dimension: F.col(EFFECTIVE_TO).isNull() | F.col(EFFECTIVE_FROM).isNull(),
    ),
    Invariant(
        check_descriptions.WINDOWS_ARE_NOT_EMPTY,
        lambda dimension: F.col(EFFECTIVE_FROM) >= F.col(EFFECTIVE_TO),
    ),
    Invariant(
        check_descriptions.CURRENT_VERSIONS_ARE_OPEN,
        lambda dimension: F.col(CURRENT_FLAG) != (F.col(EFFECTIVE_TO) == open_end(dimension)),
    ),
    Invariant(
        check_descriptions.VERSION_NUMBERS_ARE_CONSECUTIVE,
        lambda dimension: F.col(_NUMBER) != F.col(VERSION),
    ),
)
_KEY_INVARIANTS = (
    Invariant(check_descriptions.SURROGATE_KEYS_ARE_UNIQUE, lambda dimension: F.col(_KEY_COUNT) > 1),
    Invariant(
        check_descriptions.SURROGATE_KEYS_ARE_NOT_RESERVED,
        lambda dimension: col(dimension.surrogate_key).isin(list(RESERVED_KEYS)),
    ),
)


def invariants(dimension: Dimension) -> dict[str, Invariant]:
    """Return the invariants of this dimension by name; without windows only those of keys (S33)."""
    applicable = (*_WINDOW_INVARIANTS, *_KEY_INVARIANTS) if dimension.has_windows else _KEY_INVARIANTS
    return {invariant.check: invariant for invariant in applicable}


def count_violations(
    rows: DataFrame, dimension: Dimension, *, row_limit: int, has_one_row_per_entity: bool = False
) -> DataFrame:
    """Count the violations of all invariants, which costs less than to name them; 0 only if there is none.

    Args:
        rows: The rows. One aggregate lists the surrogate keys of up to `MAX_LISTED_KEYS` rows.
        dimension: The declaration.
        row_limit: An upper bound of their number.
        has_one_row_per_entity: Whether each entity has one row, so that no row has to be compared with others.

    Returns:
        One row with `n`.
    """
    key = col(dimension.surrogate_key)
    conditions = [key.isin(list(RESERVED_KEYS))]
    if dimension.has_windows:
        conditions += [invariant.is_violated(dimension) for invariant in _WINDOW_INVARIANTS]
    violated = any_of(conditions)
    related = _with_versions(rows, dimension, has_one_row_per_entity=has_one_row_per_entity)
    if row_limit <= MAX_LISTED_KEYS:
        repeated = F.count(key) - F.size(F.collect_set(key))
        return related.agg((F.count_if(violated) + repeated).alias("n"))
    repeated_keys = repeated_numbers(rows.select(key.alias("n")))
    return repeated_keys.unionByName(related.where(violated).select(key.alias("n"))).agg(F.count("*").alias("n"))


def violations(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the violations of all invariants, computed in one pass.

    Returns:
        `check`, the name of the invariant, and `key`, the readable business key; one row per violating row.
    """
    checks = [(invariant.is_violated(dimension), F.lit(name)) for name, invariant in invariants(dimension).items()]
    same_key = Window.partitionBy(col(dimension.surrogate_key))
    related = _with_versions(rows.withColumn(_KEY_COUNT, F.count(F.lit(1)).over(same_key)), dimension)
    violated = related.select(
        array_where(checks, "string").alias("_checks"), readable_key(dimension.key_names).alias(KEY)
    )
    return violated.where(F.size("_checks") > 0).select(F.explode("_checks").alias(CHECK), KEY)


def _with_versions(rows: DataFrame, dimension: Dimension, *, has_one_row_per_entity: bool = False) -> DataFrame:
    """Add what the invariants of windows need of the other versions of an entity.

    Returns:
        The rows, and if the table has windows `_previous_end` (the end of the preceding version), `_number` (of the
        version in order of time) and `_current_count` (current versions).
    """
    if not dimension.has_windows:
        return rows
    windows = RowWindows(dimension, has_one_record_per_entity=has_one_row_per_entity)
    in_time = windows.by_window()
    return rows.withColumns(
        {
            _PREVIOUS_END: in_time.lag(F.col(EFFECTIVE_TO)),
            _NUMBER: in_time.row_number(),
            _CURRENT_COUNT: in_time.whole().sum(F.col(CURRENT_FLAG).cast("int")),
        }
    )


def collisions(opened: DataFrame, assigned: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the new versions whose surrogate key already belongs to another version (S14).

    Args:
        opened: The rows to open.
        assigned: The surrogate keys that were ever assigned, with their versions.
        dimension: The declaration.

    Returns:
        `check`, and `key`, which names both versions.
    """
    new = _OPENED_PREFIX

    def version(prefix: str) -> Column:
        start = [F.lit(" from "), col(prefix + EFFECTIVE_FROM).cast("string")] if dimension.has_windows else []
        return F.concat(readable_key(dimension.key_names, prefix), *start)

    names = [*dimension.key_names, *([EFFECTIVE_FROM] if dimension.has_windows else [])]
    surrogate = col(dimension.surrogate_key)
    pairs = assigned.select(surrogate, *[col(name) for name in names]).join(
        opened.select(surrogate, *[col(name).alias(new + name) for name in names]), dimension.surrogate_key
    )
    is_same = all_of([col(name).eqNullSafe(col(new + name)) for name in names])
    text = F.concat(version(""), F.lit(" and "), version(new))
    return pairs.where(~is_same).select(
        F.lit(check_descriptions.SURROGATE_KEYS_ARE_UNIQUE).alias(CHECK), text.alias(KEY)
    )
