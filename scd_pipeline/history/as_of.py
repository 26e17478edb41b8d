"""As-of join: the version of an entity whose validity window contains the time of a row (S23)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import all_of, col
from scd_pipeline.history.keys import RESERVED_KEYS, UNKNOWN_KEY
from scd_pipeline.history.schema import beginning, open_end

VERSION_KEY = "_version_key"
_FROM, _TO = "_version_from", "_version_to"


def key_as_of(
    rows: DataFrame,
    versions: DataFrame,
    dimension: Dimension,
    *,
    keys: Sequence[str],
    time: str,
    name: str,
    tolerance: timedelta | None = None,
) -> DataFrame:
    """Add or replace a column with the surrogate key of the version in force at the time of each row.

    Args:
        rows: Rows with a business key and a time.
        versions: The rows of the dimension.
        dimension: The declaration.
        keys: The columns of the business key, in declared order.
        time: The column of the time.
        name: The column to add or replace.
        tolerance: The largest age that a version may have at the time of the row; by default any.

    Returns:
        The same number of rows, because windows do not overlap (S2): a row with several versions would be repeated. The
        key is -1 if the business key is NULL or unknown, or if no version is in force. Without windows the row of an
        entity is always in force (S33).
    """
    condition = is_in_force(dimension, keys=keys, time=time)
    if tolerance is not None:
        condition = condition & (_age(time) <= tolerance // timedelta(microseconds=1))
    joined = rows.join(version_windows(versions, dimension), condition, "left")
    surrogate_key = F.coalesce(F.col(VERSION_KEY), F.lit(UNKNOWN_KEY))
    key_columns = [_key_column(number) for number, _ in enumerate(keys)]
    return joined.withColumn(name, surrogate_key).drop(VERSION_KEY, *key_columns, _FROM, _TO)


def version_windows(versions: DataFrame, dimension: Dimension) -> DataFrame:
    """Return key and window of each version, in the columns that `is_in_force` uses; without reserved members."""
    without_reserved = versions.where(~col(dimension.surrogate_key).isin(list(RESERVED_KEYS)))
    return without_reserved.select(
        col(dimension.surrogate_key).alias(VERSION_KEY),
        *[col(key).alias(_key_column(number)) for number, key in enumerate(dimension.key_names)],
        (F.col(EFFECTIVE_FROM) if dimension.has_windows else beginning()).alias(_FROM),
        *([F.col(EFFECTIVE_TO).alias(_TO)] if dimension.has_windows else []),
    )


def is_in_force(dimension: Dimension, *, keys: Sequence[str], time: str) -> Column:
    """Return whether a version (`version_windows`) has the business key of a row and is in force at the row's time.

    The window of a current version has no end, so it contains times after the open end too.

    Args:
        dimension: The declaration.
        keys: The row's columns of the business key, in declared order.
        time: The row's column of the time.
    """
    moment, numbers = col(time).cast("timestamp"), range(len(dimension.key_names))
    same_key = [col(key) == F.col(_key_column(number)) for key, number in zip(keys, numbers, strict=True)]
    in_window = [F.col(_FROM) <= moment]
    if dimension.has_windows:
        in_window.append((F.col(_TO) > moment) | (F.col(_TO) == open_end(dimension)))
    return all_of([*same_key, *in_window])


def _age(time: str) -> Column:
    """Return the age of a version (`version_windows`) at the time of a row, in microseconds."""
    return F.unix_micros(col(time).cast("timestamp")) - F.unix_micros(F.col(_FROM))


def _key_column(number: int) -> str:
    return f"_version_bk_{number}"
