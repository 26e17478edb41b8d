"""Invariants of a dimension: property -> the rows that violate it. Checked before a commit, and on whole tables."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO, VERSION
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import col, readable_key
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.schema import open_end
from scd_pipeline.invariants import properties

RULE, KEY = "rule", "key"
_ENDED, _NUMBER, _CURRENTS, _NAMESAKES = "_ended", "_number", "_currents", "_namesakes"

Invariant = Callable[[Dimension], Column]
"""The condition under which a row breaks it, over the columns of the dimension and of `_seen_together`."""


def duplicate_current(dimension: Dimension) -> Column:
    """S3: at most one version of an entity is current."""
    return F.col(CURRENT_FLAG) & (F.col(_CURRENTS) > 1)


def overlapping_window(dimension: Dimension) -> Column:
    """S2: per entity no window begins before the one before it has ended."""
    return F.col(EFFECTIVE_FROM) < F.col(_ENDED)


def null_end(dimension: Dimension) -> Column:
    """S2: a window always has both ends; the open end is the declared one."""
    return F.col(EFFECTIVE_TO).isNull() | F.col(EFFECTIVE_FROM).isNull()


def empty_window(dimension: Dimension) -> Column:
    """S2: no window has zero or negative length."""
    return F.col(EFFECTIVE_FROM) >= F.col(EFFECTIVE_TO)


def current_without_open_end(dimension: Dimension) -> Column:
    """S2: a version is current exactly if its window has no end."""
    return F.col(CURRENT_FLAG) != (F.col(EFFECTIVE_TO) == open_end(dimension))


def hole_in_versions(dimension: Dimension) -> Column:
    """S3: versions count from 1 without holes, in order of time."""
    return F.col(_NUMBER) != F.col(VERSION)


def repeated_surrogate_key(dimension: Dimension) -> Column:
    """S14: a surrogate key names one version."""
    return F.col(_NAMESAKES) > 1


def reserved_surrogate_key(dimension: Dimension) -> Column:
    """S14: no version has the key of a reserved member."""
    return col(dimension.surrogate_key).isin(list(RESERVED_KEYS))


_OF_WINDOWS: dict[str, Invariant] = {
    properties.ONE_CURRENT_VERSION: duplicate_current,
    properties.WINDOWS_DO_NOT_OVERLAP: overlapping_window,
    properties.WINDOWS_HAVE_BOTH_ENDS: null_end,
    properties.WINDOWS_ARE_NOT_EMPTY: empty_window,
    properties.CURRENT_VERSIONS_ARE_OPEN: current_without_open_end,
    properties.VERSION_NUMBERS_ARE_CONSECUTIVE: hole_in_versions,
}
_OF_KEYS: dict[str, Invariant] = {
    properties.SURROGATE_KEYS_ARE_UNIQUE: repeated_surrogate_key,
    properties.SURROGATE_KEYS_ARE_NOT_RESERVED: reserved_surrogate_key,
}


def invariants(dimension: Dimension) -> dict[str, Invariant]:
    """The invariants of this dimension; one without windows has only those of its keys (S33)."""
    return {**_OF_WINDOWS, **_OF_KEYS} if dimension.has_windows else dict(_OF_KEYS)


def violations(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Every broken invariant: `rule` and the readable `key` of the entity, one row per offending row; one pass."""
    broken = [F.when(check(dimension), F.lit(name)) for name, check in invariants(dimension).items()]
    told = _seen_together(rows, dimension).select(
        F.array_compact(F.array(*broken)).alias("_rules"), readable_key(dimension.key_names).alias(KEY)
    )
    return told.where(F.size("_rules") > 0).select(F.explode("_rules").alias(RULE), KEY)


def _seen_together(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Add to each row what its entity's other versions say, and how many rows have its surrogate key."""
    namesakes = Window.partitionBy(col(dimension.surrogate_key))
    rows = rows.withColumn(_NAMESAKES, F.count(F.lit(1)).over(namesakes))
    if not dimension.has_windows:
        return rows
    entity = Window.partitionBy(*[col(name) for name in dimension.key_names])
    in_time = entity.orderBy(EFFECTIVE_FROM, EFFECTIVE_TO)
    return rows.withColumns(
        {
            _ENDED: F.lag(EFFECTIVE_TO).over(in_time),
            _NUMBER: F.row_number().over(in_time),
            _CURRENTS: F.sum(F.col(CURRENT_FLAG).cast("int")).over(entity),
        }
    )


def collisions(opened: DataFrame, stored: DataFrame, dimension: Dimension) -> DataFrame:
    """S14: new versions whose surrogate key the table already gives to another version.

    In: rows to open; the rows that stand.  Out: `rule`, `key` (names both versions).
    """
    surrogate = dimension.surrogate_key
    names = [*dimension.key_names, *([EFFECTIVE_FROM] if dimension.has_windows else [])]

    def named(frame: DataFrame, alias: str) -> DataFrame:
        who = readable_key(dimension.key_names)
        since = F.concat(F.lit(" from "), F.col(EFFECTIVE_FROM).cast("string")) if dimension.has_windows else F.lit("")
        return frame.select(
            col(surrogate).alias(f"_{alias}"),
            F.struct(*[col(n) for n in names]).alias(f"_{alias}_version"),
            F.concat(who, since).alias(f"_{alias}_text"),
        )

    pairs = named(stored, "old").join(F.broadcast(named(opened, "new")), F.col("_old") == F.col("_new"))
    return pairs.where(F.col("_old_version") != F.col("_new_version")).select(
        F.lit(properties.SURROGATE_KEYS_ARE_UNIQUE).alias(RULE),
        F.concat(F.col("_old_text"), F.lit(" and "), F.col("_new_text")).alias(KEY),
    )
