"""Joining with dimensions as they were: facts by their stored keys, rows by their times, and two histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import KEYS_SUFFIX
from scd_pipeline.delta.schema import to_declared_columns
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.expressions import col
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.schema import BEGINNING
from scd_pipeline.reading.dimension import declared, known, shape_of, versions
from scd_pipeline.reading.labels import (
    Labelled,
    attribute_columns,
    labelled,
    labelled_attributes,
    labelled_roles,
    labels_of,
)


def with_dimensions(warehouse: Warehouse, fact: Fact, *, known_at: datetime | None = None) -> DataFrame:
    """The facts with the attributes of their dimensions as they were at event time, by the stored keys (S23).

    Out: the fact's columns, and `<role>_<attribute>` of each role, as of `labelled`. A key that a later change of the
    dimension has taken away is resolved by the list of all keys until the fact is loaded again (S24); a role that was
    declared since the fact's last load knows nobody yet. With `known_at` the keys and the attributes are those that
    were known at that moment (S22).  Errors: SetupError.
    """
    rows = declared(warehouse, fact.as_dimension())
    rows = rows.withColumns({key: F.coalesce(col(key), F.lit(UNKNOWN_KEY)) for key in fact.key_columns})
    names = labelled_roles(fact, rows.columns)
    for name, key, role in fact.keyed_roles:
        dimension = role.dimension
        if known_at is None:
            held = declared(warehouse, dimension)
            rows = _resolved(warehouse, rows, key, dimension, held)
        else:
            held = known(warehouse, dimension, known_at)
            rows = key_as_of(rows, held, dimension, keys=role.key, time=fact.event_time, name=key)
        rows = _told_of(rows, held, dimension, key, label=name, names=names)
    return rows


def as_of_join(
    warehouse: Warehouse,
    rows: DataFrame,
    dimension: Dimension,
    *,
    time: str,
    keys: Sequence[str] | None = None,
    known_at: datetime | None = None,
) -> DataFrame:
    """Rows that store no surrogate key, with the attributes of an entity as they were at each row's time (S23).

    In: rows with the business key in `keys` (by default the dimension's own names) and a time.  Out: as many rows, with
    the surrogate key (-1 where nothing held) and `<dimension>_<attribute>`, as of `labelled`, NULL where nothing held;
    with `known_at` as was known at that moment.  Errors: SetupError; UsageError unless `keys` names as many columns as
    the business key has, as a part of it would be many entities, or where the surrogate key's name is taken.
    """
    keys = tuple(keys or dimension.key_names)
    if len(keys) != len(dimension.key_names):
        raise UsageError(
            f"{dimension.name}: {', '.join(keys)} cannot name an entity; expected {len(dimension.key_names)} columns, "
            f"one for each of its business key, in this order: {', '.join(dimension.key_names)}"
        )
    if dimension.surrogate_key.casefold() in {name.casefold() for name in rows.columns}:
        raise UsageError(
            f"{dimension.name}: the rows have a column {dimension.surrogate_key}, which is what the surrogate key is "
            "to be called; expected rows without it; rename or drop it"
        )
    held = declared(warehouse, dimension) if known_at is None else known(warehouse, dimension, known_at)
    key, label = dimension.surrogate_key, dimension.name.removeprefix("dim_")
    keyed = key_as_of(rows, held, dimension, keys=keys, time=time, name=key)
    names = labelled(labelled_attributes(dimension, label), keyed.columns)
    return _told_of(keyed, held, dimension, key, label=label, names=names)


def overlap(warehouse: Warehouse, left: Dimension, right: Dimension, *, on: Sequence[tuple[str, str]]) -> DataFrame:
    """The join of two histories: a row for each pair of versions that held at the same time, with the window of both.

    In: `on` pairs columns of the left dimension with columns of the right one, compared by `=`.  Out: the columns of
    both with the dimension's name before them, as of `labelled`, `effective_from` and `effective_to` of the overlap
    (NULL: since ever, no end). A row of a dimension without windows holds at all times (S33).  Errors: SetupError.
    """
    both = list(zip(labels_of(left.name, right.name), (left, right), strict=True))
    told = [(label, name) for label, of in both for name in (*of.key_names, *attribute_columns(of))]
    names = labelled(told, (EFFECTIVE_FROM, EFFECTIVE_TO))
    frames = []
    for side, (label, dimension) in enumerate(both):
        rows = to_declared_columns(versions(warehouse, shape_of(warehouse, dimension)), dimension)
        begin, end = F.lit(BEGINNING).cast("timestamp"), F.lit(dimension.open_end).cast("timestamp")
        window = (F.col(EFFECTIVE_FROM), F.col(EFFECTIVE_TO)) if dimension.has_windows else (begin, end)
        frames.append(
            rows.select(
                window[0].alias(f"_from_{side}"),
                window[1].alias(f"_to_{side}"),
                *[col(name).alias(f"_on_{side}_{i}") for i, name in enumerate(pair[side] for pair in on)],
                *[col(column).alias(name) for (of, column), name in names.items() if of == label],
            )
        )
    same = [F.col(f"_on_0_{i}") == F.col(f"_on_1_{i}") for i, _ in enumerate(on)]
    meets = [F.col("_from_0") < F.col("_to_1"), F.col("_from_1") < F.col("_to_0")]
    pairs = frames[0].join(frames[1], reduce(and_, [*same, *meets]))
    ends = F.least("_to_0", "_to_1")
    open_ends = [F.lit(dimension.open_end).cast("timestamp") for dimension in (left, right)]
    begins = F.greatest("_from_0", "_from_1")
    since_ever = begins == F.lit(BEGINNING).cast("timestamp")
    window_of_both = [
        F.when(~since_ever, begins).alias(EFFECTIVE_FROM),
        F.when(~ends.isin(*open_ends), ends).alias(EFFECTIVE_TO),
    ]
    return pairs.select(*[col(name) for name in names.values()], *window_of_both)


def _told_of(
    rows: DataFrame, stored: DataFrame, dimension: Dimension, key: str, *, label: str, names: Mapping[Labelled, str]
) -> DataFrame:
    """The rows with the attributes of the version that a key names, by their `names`; NULL where it names none."""
    told = [col(name).alias(names[label, name]) for name in attribute_columns(dimension)]
    there = stored.select(col(dimension.surrogate_key).alias("_there"), *told)
    return rows.join(there, col(key) == F.col("_there"), "left").drop("_there")


def _resolved(warehouse: Warehouse, rows: DataFrame, key: str, dimension: Dimension, stored: DataFrame) -> DataFrame:
    """The rows with keys that are there: for one that is not, that of the version that holds its beginning now."""
    keys = warehouse.table(dimension.name + KEYS_SUFFIX)
    if not dimension.has_windows or not keys.exists():
        return rows
    given = keys.read().dropDuplicates([dimension.surrogate_key])
    gone = given.join(stored.select(col(dimension.surrogate_key)), dimension.surrogate_key, "left_anti")
    now = key_as_of(gone, stored, dimension, keys=dimension.key_names, time=EFFECTIVE_FROM, name="_now")
    pairs = F.broadcast(now.select(col(dimension.surrogate_key).alias("_old"), "_now"))
    resolved = rows.join(pairs, col(key) == F.col("_old"), "left")
    return resolved.withColumn(key, F.coalesce("_now", col(key))).drop("_old", "_now")
