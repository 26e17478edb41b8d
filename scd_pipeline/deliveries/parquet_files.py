"""Find the columns of Parquet files that Spark cannot read, and the types of the others (S20).

Spark reads no column of a file if the types or the names of one of them do not suit it, unless the columns to read are
given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow
import pyarrow.parquet
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from scd_pipeline.deliveries.arrow import map_leaves, to_spark_type

NANOSECONDS, REPEATED = "nanoseconds", "repeated"
"""Problems of columns: times in nanoseconds, and a name that another column has too, except for case."""
_LARGEST_PRECISION = 38
_UNREADABLE_TYPES = ("Time(", "Float16", "Interval")


@dataclass(frozen=True, slots=True)
class ParquetColumns:
    """The columns of local Parquet files.

    Attributes:
        schemas: The columns of each file.
        problems: Why a column cannot be read, by its name: one of the constants, or its type.
    """

    schemas: tuple[pyarrow.Schema, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def conflicting(self) -> dict[str, str]:
        """The types of the columns that have several, by their names."""
        types: dict[str, set[str]] = {}
        names: dict[str, str] = {}
        for column in (column for schema in self.schemas for column in schema):
            name = names.setdefault(column.name.casefold(), column.name)
            types.setdefault(name, set()).add(str(column.type))
        return {name: " and ".join(sorted(each)) for name, each in types.items() if len(each) > 1}

    def fields(self, excluded: Collection[str]) -> tuple[tuple[T.StructField, ...], tuple[str, ...]]:
        """Return the columns with the types by which Spark reads them, and the names of those that have none.

        Args:
            excluded: The names of columns that are not read.
        """
        fields: dict[str, T.StructField] = {}
        without_type = []
        keys = {name.casefold() for name in excluded}
        for column in (column for schema in self.schemas for column in schema if column.name.casefold() not in keys):
            try:
                fields.setdefault(column.name.casefold(), T.StructField(column.name, _spark_type(column.type)))
            except (PySparkException, ValueError):
                without_type.append(column.name)
        return tuple(fields.values()), tuple(dict.fromkeys(without_type))


def local_files(path: Path) -> list[Path]:
    """Return the files at a local path, without those that Spark skips; none for another path."""
    if path.is_file():
        return [path]
    names = ((file, file.relative_to(path).parts) for file in sorted(path.rglob("*")) if file.is_file())
    return [file for file, parts in names if not any(part.startswith(("_", ".")) for part in parts)]


def parquet_columns(files: Iterable[Path], reads_nanoseconds: Callable[[], bool]) -> ParquetColumns:
    """Return the columns of files.

    Args:
        files: The files.
        reads_nanoseconds: Returns whether the session reads times in nanoseconds as numbers; it is called only if a
            file has such times.

    Raises:
        ArrowException: A file is not a Parquet file.
    """
    schemas: list[pyarrow.Schema] = []
    problems: dict[str, str] = {}
    for file in files:
        with pyarrow.parquet.ParquetFile(file) as opened:
            schemas.append(_columns(opened))
            problems |= _unreadable_columns(opened.schema)
            problems |= repeated_columns(schemas[-1])
    if NANOSECONDS in problems.values() and reads_nanoseconds():
        problems = {name: problem for name, problem in problems.items() if problem != NANOSECONDS}
    return ParquetColumns(tuple(schemas), problems)


def _columns(file: pyarrow.parquet.ParquetFile) -> pyarrow.Schema:
    """Return the columns of a file.

    Times of type INT96 are moments for Spark, although Arrow shows them without a zone.
    """
    physical_types = iter([file.schema.column(number).physical_type for number in range(len(file.schema))])

    def convert(leaf: pyarrow.DataType) -> pyarrow.DataType:
        return pyarrow.timestamp("us", tz="UTC") if next(physical_types, "") == "INT96" else leaf

    return pyarrow.schema([column.with_type(map_leaves(column.type, convert)) for column in file.schema_arrow])


def repeated_columns(columns: pyarrow.Schema) -> dict[str, str]:
    """Return the columns with a name, or with inner names, that are equal except for case."""
    keys = [column.name.casefold() for column in columns]
    outer = {column.name for column, key in zip(columns, keys, strict=True) if keys.count(key) > 1}
    return dict.fromkeys((c.name for c in columns if c.name in outer or _repeats_names(c.type)), REPEATED)


def _repeats_names(data_type: pyarrow.DataType) -> bool:
    inner = [data_type.field(index) for index in range(data_type.num_fields)]
    names = [field.name.casefold() for field in inner]
    is_repeated = pyarrow.types.is_struct(data_type) and len(set(names)) < len(names)
    return is_repeated or any(_repeats_names(field.type) for field in inner)


def _unreadable_columns(schema: pyarrow.parquet.ParquetSchema) -> dict[str, str]:
    """Return the columns of types that Spark does not read.

    Times in nanoseconds of the older type INT96 are readable, although Arrow shows them as such.
    """
    problems = {}
    for column in (schema.column(number) for number in range(len(schema))):
        name, logical = column.path.partition(".")[0], str(column.logical_type)
        if logical.startswith(_UNREADABLE_TYPES) or (column.precision or 0) > _LARGEST_PRECISION:
            problems[name] = logical
        elif column.physical_type == "INT64" and "timeUnit=nanoseconds" in logical:
            problems[name] = NANOSECONDS
    return problems


def _spark_type(data_type: pyarrow.DataType) -> T.DataType:
    types = pyarrow.types
    if types.is_null(data_type):
        return T.IntegerType()
    if types.is_duration(data_type):
        return T.LongType()
    if types.is_fixed_size_binary(data_type):
        return T.BinaryType()
    return from_arrow_type(to_spark_type(data_type))


def describe_problems(problems: Mapping[str, str]) -> str:
    """Return columns with their types, for an error."""
    return ", ".join(f"{name} ({problem})" for name, problem in problems.items())
