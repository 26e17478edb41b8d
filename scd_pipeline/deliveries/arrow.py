"""Frames of pandas and pyarrow as Arrow tables with the types of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow


def columns_of(given: Any) -> list[str]:
    """The names of the columns of a Spark, pandas or Arrow frame, in order."""
    import pyarrow

    return [str(name) for name in (given.column_names if isinstance(given, pyarrow.Table) else given.columns)]


def as_arrow(given: Any) -> pyarrow.Table:
    """A pandas or Arrow frame as what Spark reads. Times without a zone keep none until the source's zone is known.

    pandas goes through Arrow, so that the process's own time zone touches nothing (S1).
    Errors: those of pandas and Arrow, which repeat values.
    """
    import pyarrow

    table = given if isinstance(given, pyarrow.Table) else pyarrow.Table.from_pandas(given, preserve_index=False)
    return _micros(table)


def _micros(table: pyarrow.Table) -> pyarrow.Table:
    """Convert the columns to types that Spark has; a column that has only NULLs becomes text.

    It has no numbers without a sign: they are handed over as the next wider type. It knows microseconds only: a column
    with a finer time is handed over as text, so that such a value is judged as that of a file is (S26).

    A time without a zone is handed over as text too: as a timestamp it would be taken for one of UTC, before the zone
    that its source declares is known (S1).
    """
    import pyarrow

    columns = [_spark_column(column) for column in table.columns]
    return pyarrow.table(columns, names=table.column_names)


def _spark_column(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    wanted = _with_leaves(column.type, _as_spark_has_it)
    try:
        converted = column.cast(wanted)
    except pyarrow.ArrowInvalid:  # a time would lose digits, or nothing can be converted and it fails again
        in_utc = column.cast(_with_leaves(column.type, lambda kind: _as_spark_has_it(kind, kind)))
        return in_utc.cast(_with_leaves(in_utc.type, _time_as_text))
    return converted.cast(_with_leaves(wanted, _zoned))


def _with_leaves(kind: pyarrow.DataType, of: Callable[[pyarrow.DataType], pyarrow.DataType]) -> pyarrow.DataType:
    """The type with each type deep inside it replaced."""
    import pyarrow

    def part(field: pyarrow.Field) -> pyarrow.Field:
        return field.with_type(_with_leaves(field.type, of))

    types = pyarrow.types
    if types.is_struct(kind):
        return pyarrow.struct([part(field) for field in kind])
    if types.is_map(kind):
        return pyarrow.map_(_with_leaves(kind.key_type, of), _with_leaves(kind.item_type, of))
    if types.is_fixed_size_list(kind):
        return pyarrow.list_(part(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pyarrow.large_list(part(kind.value_field))
    return pyarrow.list_(part(kind.value_field)) if types.is_list(kind) else of(kind)


def _as_spark_has_it(kind: pyarrow.DataType, precise: pyarrow.DataType | None = None) -> pyarrow.DataType:
    """The type that Spark has for one without parts; a time keeps the unit of `precise`, if that is one."""
    import pyarrow

    signed = {
        pyarrow.uint8(): pyarrow.int16(),
        pyarrow.uint16(): pyarrow.int32(),
        pyarrow.uint32(): pyarrow.int64(),
        pyarrow.uint64(): pyarrow.decimal128(20, 0),
    }

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.timestamp(precise.unit if precise else "us", tz="UTC" if kind.tz else None)
    if pyarrow.types.is_dictionary(kind):
        return _as_spark_has_it(kind.value_type, precise and kind.value_type)
    return pyarrow.string() if pyarrow.types.is_null(kind) else signed.get(kind, kind)


def _time_as_text(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string() if pyarrow.types.is_timestamp(kind) else kind


def _zoned(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.string() if pyarrow.types.is_timestamp(kind) and kind.tz is None else kind
