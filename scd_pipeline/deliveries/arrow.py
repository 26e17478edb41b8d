"""Convert pandas DataFrames and pyarrow Tables to Arrow tables with the types of Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from scd_pipeline.deliveries.row_columns import FIELDS

if TYPE_CHECKING:
    import pyarrow


def column_names(frame: Any) -> list[str]:
    """Return the names of the columns of a DataFrame, a pyarrow Table, or a list of dicts, in order."""
    import pyarrow

    if isinstance(frame, list | tuple):
        return list(dict.fromkeys(name for row in frame for name in row if name != FIELDS))
    return [str(name) for name in (frame.column_names if isinstance(frame, pyarrow.Table) else frame.columns)]


def to_arrow(frame: Any) -> pyarrow.Table:
    """Convert a pandas DataFrame, a pyarrow Table, or a list of dicts to an Arrow table that Spark can read.

    pandas is converted by Arrow, so that the time zone of the process has no effect (S1).

    Returns:
        A table with types that Spark has. Unsigned integers become the next wider type, UUIDs text; NaN stays NaN. A
        column of times with digits beyond microseconds becomes text, so that it is cast like that of a file (S26).
        Times without a zone become text too: Spark would read a timestamp as UTC, before the zone that the source
        declares is known (S1).

    Raises:
        Exception: Errors of pandas and Arrow, whose texts repeat values.
    """
    import pyarrow

    if isinstance(frame, list | tuple):
        table = _from_dicts(frame)
    else:
        table = frame if isinstance(frame, pyarrow.Table) else _from_pandas(frame)
    return pyarrow.table([_to_spark_column(column) for column in table.columns], names=table.column_names)


def from_arrow_data(data: Any) -> pyarrow.Table:
    """Return the Arrow data of another library as a table; pyarrow has few functions for the views that Polars has.

    Raises:
        Exception: An error of Arrow, for example if the data are a single column.
    """
    import pyarrow

    table = pyarrow.table(data)
    fields = [field.with_type(map_leaves(field.type, _without_views)) for field in table.schema]
    return table.cast(pyarrow.schema(fields))


def _without_views(leaf: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    if pyarrow.types.is_dictionary(leaf):
        return pyarrow.dictionary(leaf.index_type, _without_views(leaf.value_type))
    return {pyarrow.string_view(): pyarrow.string(), pyarrow.binary_view(): pyarrow.binary()}.get(leaf, leaf)


def _from_dicts(rows: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    """Return the rows as an Arrow table, and in `_scd_fields` which columns each row has; others are NULL there."""
    import pyarrow

    columns, fields = {}, {}
    for name in column_names(rows):
        try:
            columns[name] = pyarrow.array(_with_plain_times([row.get(name) for row in rows]))
        except (pyarrow.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            error.args = (*error.args, f"Conversion failed for column {name} with type list")  # as pandas' frames do
            raise
        fields[name] = pyarrow.array([True if name in row else None for row in rows], pyarrow.bool_())
    if columns:
        columns[FIELDS] = pyarrow.StructArray.from_arrays(list(fields.values()), names=list(fields))
    return pyarrow.table(columns)


def _with_plain_times(values: list[Any]) -> list[Any]:
    """Return the values of a column; times of several kinds become texts, which are cast like those of files (S1, S26).

    Arrow would take the kind of the first one: a date and a time would both be dates, a number after them a day, and a
    time with a zone would lose it after one without.
    """
    kinds = set(map(type, values)) - {type(None)}
    if not any(issubclass(kind, date) for kind in kinds):
        return values
    zones = {each.tzinfo is None for each in values if isinstance(each, datetime)}
    if len(kinds) == 1 and len(zones) < 2:
        return values
    return [each.isoformat() if isinstance(each, date) else each for each in values]


def _from_pandas(frame: Any) -> pyarrow.Table:
    """Return a pandas DataFrame as an Arrow table, in which NaN in a column of NumPy's floats stays NaN.

    Without rows, the columns have no types, because the types that pandas gives them do not depend on the source.
    """
    import numpy
    import pyarrow

    if not len(frame):
        return pyarrow.table({name: pyarrow.nulls(0) for name in column_names(frame)})
    frame = frame.copy(deep=False)
    for index, data_type in enumerate(frame.dtypes):
        if data_type.kind == "O":
            column = frame.iloc[:, index]
            values = column.where(column.notna(), None).tolist()
            if (plain := _with_plain_times(values)) is not values:
                frame.isetitem(index, numpy.array(plain, dtype=object))
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    for index, data_type in enumerate(frame.dtypes):
        if isinstance(data_type, numpy.dtype) and data_type.kind == "f":
            values = pyarrow.array(frame.iloc[:, index].to_numpy(), from_pandas=False)
            table = table.set_column(index, table.column_names[index], values)
    return table


def _to_spark_column(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    if column.type == pyarrow.uuid():
        return pyarrow.chunked_array([[value and str(value) for value in column.to_pylist()]], pyarrow.string())
    spark_type = map_leaves(column.type, _to_spark_type)
    try:
        converted = column.cast(spark_type)
    except pyarrow.ArrowInvalid:  # a time would lose digits, or nothing can be converted and it fails again
        in_utc = column.cast(map_leaves(column.type, lambda leaf: _to_spark_type(leaf, leaf)))
        return in_utc.cast(map_leaves(in_utc.type, _timestamp_to_text))
    return converted.cast(map_leaves(spark_type, _local_timestamp_to_text))


def without_columns(frame: Any, names: Collection[str]) -> Any:
    """Return a pandas DataFrame, a pyarrow Table, or a list of dicts without columns."""
    import pyarrow

    if isinstance(frame, list | tuple):
        return [{name: value for name, value in row.items() if name not in names} for row in frame]
    if isinstance(frame, pyarrow.Table):
        return frame.select([name for name in frame.column_names if name not in names])
    return frame[[name for name in frame.columns if str(name) not in names]]


def is_convertible(frame: Any, name: str) -> bool:
    """Return whether a column of a pandas DataFrame, a pyarrow Table, or a list of dicts can become an Arrow column."""
    import pyarrow

    try:
        to_arrow(without_columns(frame, set(column_names(frame)) - {name}))
    except (pyarrow.ArrowException, ArithmeticError, TypeError, ValueError):
        return False
    return True


def unsupported_types(table: pyarrow.Table) -> dict[str, str]:
    """Return the columns with types that Spark does not have, by their names."""
    return {column.name: str(column.type) for column in table.schema if not _is_supported(column.type)}


def _is_supported(data_type: pyarrow.DataType) -> bool:
    import pyarrow

    inner = [data_type.field(index).type for index in range(data_type.num_fields)]
    types = pyarrow.types
    unsupported = (types.is_time, types.is_float16, types.is_decimal256)
    return not any(has_type(data_type) for has_type in unsupported) and all(map(_is_supported, inner))


def to_spark_type(data_type: pyarrow.DataType) -> pyarrow.DataType:
    """Return the Arrow type of the values that Spark reads for a type."""
    return map_leaves(data_type, _to_spark_type)


def map_leaves(
    data_type: pyarrow.DataType, convert: Callable[[pyarrow.DataType], pyarrow.DataType]
) -> pyarrow.DataType:
    """Return the type with each type that has no inner types converted."""
    import pyarrow

    def convert_field(field: pyarrow.Field) -> pyarrow.Field:
        return field.with_type(map_leaves(field.type, convert))

    types = pyarrow.types
    if types.is_struct(data_type):
        return pyarrow.struct([convert_field(field) for field in data_type])
    if types.is_map(data_type):
        return pyarrow.map_(map_leaves(data_type.key_type, convert), map_leaves(data_type.item_type, convert))
    if types.is_fixed_size_list(data_type):
        return pyarrow.list_(convert_field(data_type.value_field), data_type.list_size)
    if types.is_large_list(data_type):
        return pyarrow.large_list(convert_field(data_type.value_field))
    return pyarrow.list_(convert_field(data_type.value_field)) if types.is_list(data_type) else convert(data_type)


def _to_spark_type(leaf: pyarrow.DataType, precise: pyarrow.DataType | None = None) -> pyarrow.DataType:
    """Return the type that Spark has for one without inner types; a timestamp has the unit of `precise`, if given."""
    import pyarrow

    signed = {
        pyarrow.uint8(): pyarrow.int16(),
        pyarrow.uint16(): pyarrow.int32(),
        pyarrow.uint32(): pyarrow.int64(),
        pyarrow.uint64(): pyarrow.decimal128(20, 0),
    }

    if pyarrow.types.is_timestamp(leaf):
        return pyarrow.timestamp(precise.unit if precise else "us", tz="UTC" if leaf.tz else None)
    if pyarrow.types.is_dictionary(leaf):
        return _to_spark_type(leaf.value_type, precise and leaf.value_type)
    return signed.get(leaf, leaf)


def _timestamp_to_text(leaf: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string() if pyarrow.types.is_timestamp(leaf) else leaf


def _local_timestamp_to_text(leaf: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string() if pyarrow.types.is_timestamp(leaf) and leaf.tz is None else leaf
