"""INVARIANTS: name -> the rows that break it. Used before a commit on the affected entities, and on whole tables."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    CURRENT_FLAG,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    VERSION,
    col,
    readable_key,
)
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.timeline import open_end
from scd_pipeline.spec import Dimension

Invariant = Callable[[DataFrame, Dimension], DataFrame]
RULE, KEY = "rule", "key"


def duplicate_current(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """S3: at most one version of an entity is current."""
    keys = [col(n) for n in dimension.key_names]
    return rows.where(F.col(CURRENT_FLAG)).groupBy(*keys).count().where(F.col("count") > 1)


def overlapping_window(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """S2: per entity no window begins before the one before it has ended."""
    window = Window.partitionBy(*[col(n) for n in dimension.key_names]).orderBy(EFFECTIVE_FROM, EFFECTIVE_TO)
    return rows.withColumn("_ended", F.lag(EFFECTIVE_TO).over(window)).where(F.col(EFFECTIVE_FROM) < F.col("_ended"))


def null_end(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """S2, F23: a window always has both ends; the open end is the declared one."""
    return rows.where(F.col(EFFECTIVE_TO).isNull() | F.col(EFFECTIVE_FROM).isNull())


def empty_window(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """S2: no window has zero or negative length."""
    return rows.where(F.col(EFFECTIVE_FROM) >= F.col(EFFECTIVE_TO))


def current_without_open_end(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """F23: a version is current exactly if its window has no end."""
    return rows.where(F.col(CURRENT_FLAG) != (F.col(EFFECTIVE_TO) == open_end(dimension)))


def hole_in_versions(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """F24: versions count from 1 without holes, in order of time."""
    window = Window.partitionBy(*[col(n) for n in dimension.key_names]).orderBy(EFFECTIVE_FROM)
    return rows.withColumn("_number", F.row_number().over(window)).where(F.col("_number") != F.col(VERSION))


def repeated_surrogate_key(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """S14: a surrogate key names one version."""
    same = Window.partitionBy(col(dimension.surrogate_key))
    return rows.withColumn("_times", F.count(F.lit(1)).over(same)).where(F.col("_times") > 1)


def reserved_surrogate_key(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """S14: no version has the key of a reserved member."""
    return rows.where(col(dimension.surrogate_key).isin(list(RESERVED_KEYS)))


_WINDOW_INVARIANTS: dict[str, Invariant] = {
    "duplicate_current": duplicate_current,
    "overlapping_window": overlapping_window,
    "null_end": null_end,
    "empty_window": empty_window,
    "current_without_open_end": current_without_open_end,
    "hole_in_versions": hole_in_versions,
}
KEY_INVARIANTS: dict[str, Invariant] = {
    "repeated_surrogate_key": repeated_surrogate_key,
    "reserved_surrogate_key": reserved_surrogate_key,
}


def invariants(dimension: Dimension) -> dict[str, Invariant]:
    """The invariants of this dimension; one without windows has only those of its keys (S33)."""
    return {**_WINDOW_INVARIANTS, **KEY_INVARIANTS} if dimension.has_windows else dict(KEY_INVARIANTS)


def violations(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Every broken invariant: `rule` and the readable `key` of the entity, one row per offending row."""
    frames = [
        check(rows, dimension).select(F.lit(name).alias(RULE), readable_key(dimension.key_names).alias(KEY))
        for name, check in invariants(dimension).items()
    ]
    broken = frames[0]
    for frame in frames[1:]:
        broken = broken.unionByName(frame)
    return broken


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
        F.lit("surrogate_key_collision").alias(RULE),
        F.concat(F.col("_old_text"), F.lit(" and "), F.col("_new_text")).alias(KEY),
    )
