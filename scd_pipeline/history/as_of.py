"""The as-of join: for each row the version of an entity whose window holds the row's time (S23)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import col
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.timeline import BEGINNING

WINDOW_KEY = "_version_key"
_FROM, _TO = "_version_from", "_version_to"


def key_as_of(
    rows: DataFrame, versions: DataFrame, dimension: Dimension, *, keys: Sequence[str], time: str, name: str
) -> DataFrame:
    """Add, or set anew, the column `name`: the surrogate key of the version that held at `time`.

    In: rows with a business key in the columns `keys`, in the declared order, and a time; the dimension's rows.
    Out: as many rows, in their columns; -1 where the key is NULL or unknown, or nothing held then. Windows are
    half-open and do not overlap (S2), so that no row is doubled; without windows an entity's row always holds (S33).
    """
    plain = rows.drop(name) if name in rows.columns else rows
    joined = plain.join(windows(versions, dimension), holds_at(dimension, keys=keys, time=time), "left")
    found = F.coalesce(F.col(WINDOW_KEY), F.lit(UNKNOWN_KEY)).alias(name)
    return joined.select(*[col(column) for column in plain.columns], found).select(*_order(rows, name))


def windows(versions: DataFrame, dimension: Dimension) -> DataFrame:
    """The versions as `holds_at` names their columns, without reserved members: `_version_key`, the key, the window."""
    without_reserved = versions.where(col(dimension.surrogate_key) != UNKNOWN_KEY)
    return without_reserved.select(
        col(dimension.surrogate_key).alias(WINDOW_KEY),
        *[col(key).alias(_version(number)) for number, key in enumerate(dimension.key_names)],
        (F.col(EFFECTIVE_FROM) if dimension.has_windows else F.lit(BEGINNING).cast("timestamp")).alias(_FROM),
        *([F.col(EFFECTIVE_TO).alias(_TO)] if dimension.has_windows else []),
    )


def holds_at(dimension: Dimension, *, keys: Sequence[str], time: str) -> Column:
    """Whether one of the `windows` is of the entity that a row names in the columns `keys`, and holds its time."""
    numbers = range(len(dimension.key_names))
    same = [col(key) == F.col(_version(number)) for key, number in zip(keys, numbers, strict=True)]
    holds = [F.col(_FROM) <= col(time).cast("timestamp")]
    if dimension.has_windows:
        holds.append(F.col(_TO) > col(time).cast("timestamp"))
    return reduce(and_, [*same, *holds])


def _order(rows: DataFrame, name: str) -> list[Column]:
    names = list(rows.columns)
    return [col(column) for column in (names if name in names else [*names, name])]


def _version(number: int) -> str:
    return f"_version_bk_{number}"
