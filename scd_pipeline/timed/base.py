"""The base of a timed table, read with its declared columns (S12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.source import without_file_scheme
from scd_pipeline.declaration.timed_table import Base, BaseColumn, TimedTable
from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.deliveries.files import last_changed
from scd_pipeline.deliveries.paths import absolute_path
from scd_pipeline.deliveries.source_commits import commits
from scd_pipeline.delta.table import sql_literal
from scd_pipeline.errors import DeclarationError, SourceDataError, first_line
from scd_pipeline.expressions import with_columns
from scd_pipeline.frames import type_text
from scd_pipeline.texts import name_columns

_FILE_DEFAULTS = ("EXISTS_DEFAULT", "CURRENT_DEFAULT")
"""The metadata of a field by which some of Spark's readers fill a column that a file does not have."""
_FILL_FILES = ("parquet", "json")
"""The formats whose readers do so for each file; of another format, all files have the same columns."""
_STRICT = {"mode": "FAILFAST"}
_READER_OPTIONS = {
    "csv": {**_STRICT, "header": "true", "enforceSchema": "false", "columnPruning": "false"},
    "json": _STRICT,
}


def read_base(spark: SparkSession, table: TimedTable) -> DataFrame:
    """Return the rows of a base: the declared columns in their order, or all columns of a format with types.

    A declared column that no file has, or no Delta table, has its default. All queries of the frame read one version of
    a Delta table.

    Raises:
        SourceDataError: The base cannot be read, or a column without a default is missing.
    """
    try:
        stored = _reader(spark, table.base).load(absolute_path(table.base.path))
        names = stored.columns
    except Exception as error:
        raise SourceDataError("BASE_NOT_READABLE", table.base.path, reason=first_line(error)) from error
    return _with_declared_columns(spark, table.base, stored, names)


def fit_folded_base(spark: SparkSession, table: TimedTable, stored: DataFrame) -> DataFrame:
    """Return the rows of a folded base with the columns of `read_base`; columns that were declared later have defaults.

    Raises:
        SourceDataError: A column without a default is missing.
    """
    return _with_declared_columns(spark, replace(table.base, format="delta"), stored, stored.columns)


def base_changed_at(spark: SparkSession, base: Base) -> int:
    """Return when a base was last changed, in microseconds since 1970: by a commit, or in its files.

    Raises:
        SourceDataError: The base cannot be read.
    """
    path = absolute_path(base.path)
    local = Path(without_file_scheme(path))
    try:
        if base.format == "delta":
            times = commits(spark, path).agg(F.max(F.unix_micros("timestamp")))
        elif local.exists():
            return last_changed(local)
        else:
            times = spark.read.format("binaryFile").load(path).agg(F.max(F.unix_micros("modificationTime")))
        return int(times.collect()[0][0])
    except Exception as error:
        raise SourceDataError("BASE_NOT_READABLE", base.path, reason=first_line(error)) from error


def base_types(table: TimedTable, base: DataFrame) -> dict[str, DataType]:
    """Return the types of the columns of a base.

    Raises:
        SourceDataError: A column has a type that declarations do not have.
    """
    if table.base.columns:
        return table.base.types
    types = {}
    for field in base.schema.fields:
        try:
            types[field.name] = parse_type(type_text(field.dataType))
        except DeclarationError as error:
            raise SourceDataError(
                "BASE_TYPE", table.base.path, column=field.name, reason=error.errors[0].problem
            ) from error
    return types


def _reader(spark: SparkSession, base: Base) -> DataFrameReader:
    """Return a reader of the base, of the newest version of a Delta table."""
    reader = spark.read.format(base.format).options(**_READER_OPTIONS.get(base.format, {})).options(**base.options)
    if base.format != "delta":
        return reader
    history = spark.sql(f"DESCRIBE HISTORY delta.{quote_name(absolute_path(base.path))} LIMIT 1")
    return reader.option("versionAsOf", str(history.collect()[0]["version"]))


def _with_declared_columns(spark: SparkSession, base: Base, stored: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the declared columns of a base, all columns if none is declared; `names` are those of the stored ones."""
    if not base.columns:
        return stored
    existing = {name.casefold() for name in names}
    missing = {name: column for name, column in base.columns.items() if name.casefold() not in existing}
    required = [name for name, column in missing.items() if column.default is None]
    if required:
        details = {"missing": name_columns(required), "existing": name_columns(names)}
        raise SourceDataError("BASE_COLUMN_MISSING", base.path, **details)
    return _declared(spark, base, stored, missing)


def _declared(spark: SparkSession, base: Base, stored: DataFrame, missing: Mapping[str, BaseColumn]) -> DataFrame:
    """Return the declared columns of a base; those that it does not have have their defaults."""
    declared = {name.casefold(): _field(name, column) for name, column in base.columns.items()}
    if base.format in (*_FILL_FILES, "csv"):
        # The readers of text need the types; a column that is not declared remains text.
        fields = [declared.get(name.casefold(), T.StructField(name, T.StringType())) for name in stored.columns]
        fields = list(declared.values()) if base.format in _FILL_FILES else fields
        stored = _reader(spark, base).schema(T.StructType(fields)).load(absolute_path(base.path))
    if base.format not in _FILL_FILES:
        defaults = {name: F.expr(_default(column)) for name, column in missing.items()}
        stored = with_columns(stored, defaults)
    return stored.to(T.StructType([T.StructField(field.name, field.dataType) for field in declared.values()]))


def _field(name: str, column: BaseColumn) -> T.StructField:
    data_type = T.DataType.fromDDL(parse_type(column.type).ddl())
    metadata = {} if column.default is None else dict.fromkeys(_FILE_DEFAULTS, _default(column))
    return T.StructField(name, data_type, metadata=metadata)


def _default(column: BaseColumn) -> str:
    """Return the default of a column as SQL."""
    ddl = parse_type(column.type).ddl()
    text = str(column.default).lower() if isinstance(column.default, bool) else str(column.default)
    return f"CAST({sql_literal(text)} AS {ddl})"
