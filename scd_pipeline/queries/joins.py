"""Joins with dimensions: facts by their stored keys, other rows by their times, and two histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.delta.schema import to_declared_columns
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.expressions import all_of, col
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.schema import beginning, open_end
from scd_pipeline.queries.assigned_keys import removed_keys_query, versions_source
from scd_pipeline.queries.dimension import declared_rows, queried_table, rows_known_at, versions, without_deleted
from scd_pipeline.queries.labels import (
    LabelledColumn,
    attribute_columns,
    labelled_columns,
    overlap_labels,
    role_column_names,
    unique_names,
)


def with_dimensions(warehouse: Warehouse, fact: Fact, *, known_at: datetime | None = None) -> DataFrame:
    """Return the facts with the attributes of their dimensions at event time, joined by the stored keys (S23).

    Args:
        warehouse: The warehouse.
        fact: The declaration.
        known_at: The system time of the dimensions (S22). Facts are then joined by business key and event time in place
            of the stored keys. By default the present state, joined by the stored keys.

    Returns:
        The fact's columns, and `<role>_<attribute>` for each role (`unique_names`). If a stored key no longer exists,
        the audit resolves it until the fact is loaded again (S24). A role that was declared after the
        fact's last load has the unknown key.

    Raises:
        SetupError: A table does not exist.
    """
    rows = declared_rows(warehouse, fact.as_dimension())
    rows = rows.withColumns({key: F.coalesce(col(key), F.lit(UNKNOWN_KEY)) for key in fact.key_columns})
    names = role_column_names(fact, rows.columns)
    for name, key, role in fact.keyed_roles:
        dimension = role.dimension
        if known_at is None:
            stored = declared_rows(warehouse, dimension)
            rows = _resolve_keys(warehouse, rows, key, dimension, stored)
        else:
            stored = rows_known_at(warehouse, dimension, known_at)
            rows = key_as_of(rows, stored, dimension, keys=role.key, time=fact.event_time, name=key)
        rows = _with_attributes(rows, stored, dimension, key, label=name, names=names)
    return rows


def join_as_of(
    warehouse: Warehouse,
    rows: DataFrame,
    dimension: Dimension,
    *,
    time: str,
    keys: Sequence[str] | None = None,
    known_at: datetime | None = None,
    tolerance: timedelta | None = None,
) -> DataFrame:
    """Return rows without a surrogate key with the attributes of an entity as of the time of each row (S23).

    Args:
        warehouse: The warehouse.
        rows: Rows with a business key and a time.
        dimension: The declaration.
        time: The column of the time.
        keys: The columns of the business key, in declared order; by default those of the dimension.
        known_at: The system time of the dimension (S22); by default the present state.
        tolerance: The largest age that a version may have at the time of a row; by default any.

    Returns:
        The same number of rows, with the surrogate key and `<label>_<attribute>` (`unique_names`), where the label is
        the dimension's name without `dim_`. If no version is in force, or the one in force began longer ago than
        `tolerance`, the key is -1 and the attributes are NULL.

    Raises:
        SetupError: A table does not exist.
        UsageError: `keys` does not have as many columns as the business key, or the rows have a column with the name of
            the surrogate key, or `tolerance` is negative, or the dimension has no windows, so that no row has an age.
    """
    _check_tolerance(dimension, tolerance)
    keys = tuple(keys or dimension.key_names)
    if len(keys) != len(dimension.key_names):
        raise UsageError(
            "JOIN_KEYS_INCOMPLETE",
            dimension.name,
            columns=", ".join(keys),
            count=len(dimension.key_names),
            keys=", ".join(dimension.key_names),
        )
    if dimension.surrogate_key.casefold() in {name.casefold() for name in rows.columns}:
        raise UsageError("JOIN_COLUMN_EXISTS", dimension.name, column=dimension.surrogate_key)
    stored = declared_rows(warehouse, dimension) if known_at is None else rows_known_at(warehouse, dimension, known_at)
    key, label = dimension.surrogate_key, dimension.name.removeprefix("dim_")
    keyed = key_as_of(rows, stored, dimension, keys=keys, time=time, name=key, tolerance=tolerance)
    names = unique_names(labelled_columns(dimension, label), keyed.columns)
    return _with_attributes(keyed, stored, dimension, key, label=label, names=names)


def _check_tolerance(dimension: Dimension, tolerance: timedelta | None) -> None:
    """Check that versions have an age that can be within the tolerance.

    Raises:
        UsageError: The tolerance is negative, or the dimension has no windows.
    """
    if tolerance is None:
        return
    if not dimension.has_windows:
        raise UsageError("TOLERANCE_WITHOUT_WINDOWS", dimension.name)
    if tolerance < timedelta(0):
        raise UsageError("TOLERANCE_NEGATIVE", dimension.name, tolerance=str(tolerance))


def overlap(warehouse: Warehouse, left: Dimension, right: Dimension, *, on: Sequence[tuple[str, str]]) -> DataFrame:
    """Return a row for each pair of versions of two dimensions that were in force at the same time.

    Args:
        warehouse: The warehouse.
        left: The left dimension.
        right: The right dimension.
        on: Pairs of a left and a right column, compared by `=`.

    Returns:
        The columns of both, each with the label of its dimension in front (`overlap_labels`, `unique_names`), and
        `effective_from` and `effective_to` of the common window, NULL if it has no beginning or no end. A row of a
        dimension without windows is in force at all times (S33).

    Raises:
        SetupError: A table does not exist.
    """
    both = list(zip(overlap_labels(left.name, right.name), (left, right), strict=True))
    columns = [
        (label, name) for label, dimension in both for name in (*dimension.key_names, *attribute_columns(dimension))
    ]
    names = unique_names(columns, (EFFECTIVE_FROM, EFFECTIVE_TO))
    frames = []
    for side, (label, dimension) in enumerate(both):
        table = queried_table(warehouse, dimension)
        rows = to_declared_columns(without_deleted(versions(warehouse, table), table), dimension)
        always = (beginning(), open_end(dimension))
        window = (F.col(EFFECTIVE_FROM), F.col(EFFECTIVE_TO)) if dimension.has_windows else always
        frames.append(
            rows.select(
                window[0].alias(f"_from_{side}"),
                window[1].alias(f"_to_{side}"),
                *[col(name).alias(f"_on_{side}_{i}") for i, name in enumerate(pair[side] for pair in on)],
                *[col(column).alias(name) for (side_label, column), name in names.items() if side_label == label],
            )
        )
    same_keys = [F.col(f"_on_0_{i}") == F.col(f"_on_1_{i}") for i, _ in enumerate(on)]
    overlaps = [F.col("_from_0") < F.col("_to_1"), F.col("_from_1") < F.col("_to_0")]
    pairs = frames[0].join(frames[1], all_of([*same_keys, *overlaps]))
    end = F.least("_to_0", "_to_1")
    open_ends = [open_end(dimension) for dimension in (left, right)]
    start = F.greatest("_from_0", "_from_1")
    has_no_beginning = start == beginning()
    common_window = [
        F.when(~has_no_beginning, start).alias(EFFECTIVE_FROM),
        F.when(~end.isin(*open_ends), end).alias(EFFECTIVE_TO),
    ]
    return pairs.select(*[col(name) for name in names.values()], *common_window)


def _with_attributes(
    rows: DataFrame,
    stored: DataFrame,
    dimension: Dimension,
    key: str,
    *,
    label: str,
    names: Mapping[LabelledColumn, str],
) -> DataFrame:
    """Add the attributes of the version that a key identifies, under their `names`.

    A key without a version becomes the unknown one, whose attributes are NULL.
    """
    attributes = [col(name).alias(names[label, name]) for name in attribute_columns(dimension)]
    by_key = stored.select(col(dimension.surrogate_key).alias("_stored_key"), *attributes)
    joined = rows.join(by_key, col(key) == F.col("_stored_key"), "left")
    return joined.withColumn(key, F.coalesce("_stored_key", F.lit(UNKNOWN_KEY))).drop("_stored_key")


def _resolve_keys(
    warehouse: Warehouse, rows: DataFrame, key: str, dimension: Dimension, stored: DataFrame
) -> DataFrame:
    """Replace each key that no longer exists by the key of the version now in force at the old version's start."""
    if not dimension.has_windows:
        return rows
    table = queried_table(warehouse, dimension)
    query = removed_keys_query(warehouse, table, versions_source(warehouse, table))
    if query is None:
        return rows
    removed = warehouse.spark.sql(query)
    now = key_as_of(removed, stored, dimension, keys=dimension.key_names, time=EFFECTIVE_FROM, name="_now")
    pairs = now.select(col(dimension.surrogate_key).alias("_old"), "_now")
    resolved = rows.join(pairs, col(key) == F.col("_old"), "left")
    return resolved.withColumn(key, F.coalesce("_now", col(key))).drop("_old", "_now")
