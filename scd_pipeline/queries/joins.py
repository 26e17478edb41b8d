"""Joins with dimensions: facts by their stored keys, other rows by their times, and two histories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.delta.schema import declared_columns, read_as_stored
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.expressions import col
from scd_pipeline.history.as_of import key_as_of
from scd_pipeline.history.keys import RESERVED_KEYS, UNKNOWN_KEY
from scd_pipeline.history.role_keys import role_key_as_of
from scd_pipeline.queries.dimension import (
    QueriedTable,
    declared_rows,
    existing_rows,
    null_limit_sql,
    queried_table,
    removed_keys_query,
    rows_known_at,
    versions_source,
)
from scd_pipeline.queries.labels import (
    LabelledColumn,
    attribute_columns,
    labelled_columns,
    overlap_labels,
    role_column_names,
    unique_names,
)

_FROM, _TO, _KEY = "_overlap_from", "_overlap_to", "_overlap_key_"


def with_dimensions(warehouse: Warehouse, fact: Fact, *, known_at: datetime | None = None) -> DataFrame:
    """Return the facts with the attributes of their dimensions at event time, joined by the stored keys (S23).

    Args:
        known_at: The system time of the dimensions (S22). Facts are then joined by business key and event time in place
            of the stored keys. By default the present state, joined by the stored keys.

    Returns:
        The fact's columns, and `<role>_<attribute>` for each role (`unique_names`). If a stored key no longer exists,
        the audit resolves it until the fact is loaded again (S24). A role that was declared after the
        fact's last load has the unknown key.

    Raises:
        SetupError: A table does not exist.
    """
    for name in (fact.name, *(dimension.name for dimension in fact.dimensions)):
        existing_rows(warehouse, name, name)
    if known_at is None:
        return warehouse.spark.sql(joined_query(warehouse, fact))
    fact = _with_stored_dimensions(warehouse, fact)
    rows = declared_rows(warehouse, fact.as_dimension())
    names = role_column_names(fact, rows.columns)
    for name, key, role in fact.keyed_roles:
        stored = rows_known_at(warehouse, role.dimension, known_at)
        rows = role_key_as_of(rows, stored, role, time=fact.event_time, name=key)
        rows = _with_attributes(rows, stored, role.dimension, key, label=name, names=names)
    return rows


def joined_query(warehouse: Warehouse, fact: Fact) -> str:
    """Return the SQL that joins facts with their dimensions by the stored keys (S23, S24)."""
    table, fact = warehouse.table(fact.name), _with_stored_dimensions(warehouse, fact)
    columns, joins = declared_columns(fact.as_dimension(), table.columns(), alias="f"), ""
    names = role_column_names(fact, columns)
    for role_name, key, role in fact.keyed_roles:
        stored, version = columns[key], f"role_{role_name}"
        existing = warehouse.table(role.dimension.name).columns()
        values = declared_columns(role.dimension, existing, alias=version)
        columns[key] = f"COALESCE({values[role.dimension.surrogate_key]}, {UNKNOWN_KEY})"
        columns |= {names[column]: values[column[1]] for column in labelled_columns(role.dimension, role_name)}
        versions = _versions_by_assigned_key(warehouse, queried_table(warehouse, role.dimension), existing)
        joins += f" LEFT JOIN ({versions}) AS {quote_name(version)} ON {quote_name(version)}.`_assigned_key` = {stored}"
    select_list = ", ".join(f"{value} AS {quote_name(name)}" for name, value in columns.items())
    return f"SELECT {select_list} FROM {table.identifier} AS f{joins}"


def _with_stored_dimensions(warehouse: Warehouse, fact: Fact) -> Fact:
    """Return the fact with the stored attributes of mirrored dimensions."""
    return fact.with_dimensions(read_as_stored(warehouse, dimension) for dimension in fact.dimensions)


def _versions_by_assigned_key(warehouse: Warehouse, table: QueriedTable, columns: Collection[str]) -> str:
    """Return the versions by each key ever assigned, `_assigned_key`.

    A key whose version was removed resolves to the version in force at the start of the removed one.
    """
    source, key = versions_source(warehouse, table), quote_name(table.surrogate_key)
    existing = f"SELECT v.{key} AS `_assigned_key`, v.* FROM {source} AS v"
    removed = removed_keys_query(warehouse, table, source) if table.has_windows else None
    if removed is None:
        return existing
    same_key = " AND ".join(f"v.{quote_name(name)} = k.{quote_name(name)}" for name in table.key_names)
    in_force = table.is_in_force(columns, f"k.{EFFECTIVE_FROM}")
    return (
        f"{existing} UNION ALL SELECT k.{key} AS `_assigned_key`, v.* "
        f"FROM ({removed}) AS k JOIN {source} AS v ON {same_key} AND {in_force}"
    )


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
        rows: Rows with a business key and a time.
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
    dimension = read_as_stored(warehouse, dimension)
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
        on: Pairs of a left and a right column, compared by `=`.

    Returns:
        The columns of both, each with the label of its dimension in front (`overlap_labels`, `unique_names`), and
        `effective_from` and `effective_to` of the common window, NULL if it has no beginning or no end. A row of a
        dimension without windows is in force at all times (S33).

    Raises:
        SetupError: A table does not exist.
    """
    sides = []
    for number, dimension in enumerate(read_as_stored(warehouse, each) for each in (left, right)):
        existing = existing_rows(warehouse, dimension.name, dimension.name).columns
        values = declared_columns(dimension, existing, alias="v")
        keys = [values.get(pair[number], quote_name(pair[number])) for pair in on]
        own = {name: values[name] for name in (*dimension.key_names, *attribute_columns(dimension))}
        sides.append(OverlapSide(queried_table(warehouse, dimension), existing, keys, own))
    return warehouse.spark.sql(overlap_query(warehouse, *sides))


@dataclass(frozen=True, slots=True)
class OverlapSide:
    """One of two dimensions whose versions overlap in time.

    Attributes:
        table: The dimension.
        existing: The columns of its table.
        keys: The SQL of the values that the versions `v` of both sides have in common.
        columns: The SQL of its columns, by their names without a label.
    """

    table: QueriedTable
    existing: Collection[str]
    keys: Sequence[str]
    columns: Mapping[str, str]

    def query(self, warehouse: Warehouse, names: Mapping[str, str]) -> str:
        """Return the SQL of its versions with window, keys, and columns under their `names`."""
        start, end = self.table.window(self.existing)
        values = {_FROM: start, _TO: end, **{f"{_KEY}{number}": key for number, key in enumerate(self.keys)}}
        values |= {names[column]: value for column, value in self.columns.items()}
        select_list = ", ".join(f"{value} AS {quote_name(name)}" for name, value in values.items())
        condition = self.table.is_version(self.table.exists(self.existing))
        return f"SELECT {select_list} FROM {versions_source(warehouse, self.table)} AS v WHERE {condition}"


def overlap_query(warehouse: Warehouse, left: OverlapSide, right: OverlapSide, *, shared: Sequence[str] = ()) -> str:
    """Return the SQL of the pairs of versions of two dimensions that overlap in time.

    Args:
        shared: The names under which the keys are columns of the result.
    """
    sides = dict(zip(overlap_labels(left.table.name, right.table.name), (left, right), strict=True))
    columns = [(label, column) for label, side in sides.items() for column in side.columns]
    names = unique_names(columns, (*shared, EFFECTIVE_FROM, EFFECTIVE_TO))
    queries = [
        side.query(warehouse, {column: names[label, column] for column in side.columns})
        for label, side in sides.items()
    ]
    open_ends = [side.table.column_layout.computed_open_end for side in (left, right)]
    window = {EFFECTIVE_FROM: f"GREATEST(l.{_FROM}, r.{_FROM})", EFFECTIVE_TO: f"LEAST(l.{_TO}, r.{_TO})"}
    select_list = [f"l.{_KEY}{number} AS {quote_name(name)}" for number, name in enumerate(shared)]
    select_list += map(quote_name, names.values())
    select_list += [f"{null_limit_sql(name, value, open_ends)} AS {name}" for name, value in window.items()]
    conditions = [f"l.{_KEY}{number} = r.{_KEY}{number}" for number, _ in enumerate(left.keys)]
    condition = " AND ".join([*conditions, f"l.{_FROM} < r.{_TO}", f"r.{_FROM} < l.{_TO}"])
    return f"SELECT {', '.join(select_list)} FROM ({queries[0]}) AS l JOIN ({queries[1]}) AS r ON {condition}"


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

    A key without a version becomes the unknown one, whose attributes are NULL; that of a reserved member remains.
    """
    attributes = [col(name).alias(names[label, name]) for name in attribute_columns(dimension)]
    by_key = stored.select(col(dimension.surrogate_key).alias("_stored_key"), *attributes)
    joined = rows.join(by_key, col(key) == F.col("_stored_key"), "left")
    reserved = F.when(col(key).isin(list(RESERVED_KEYS)), col(key))
    return joined.withColumn(key, F.coalesce("_stored_key", reserved, F.lit(UNKNOWN_KEY))).drop("_stored_key")
