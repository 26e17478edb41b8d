"""Frames: local ones from driver data, unions of many frames, checkpoints, and the types of columns.

Local data is sent as Arrow. A list of rows would start Python workers on the server.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from scd_pipeline.declaration.names import quote_if_needed
from scd_pipeline.declaration.types import Array, DataType, Decimal, Map, Primitive, Struct, parse_type

_BROADCAST_ROWS = 2_000_000
_BROADCAST_VALUES = 16_000_000
"""The largest numbers of rows and of values that are broadcast: a quarter of a gigabyte of short values."""
_NUMBER_GROUPS = 4096
"""The number of lists into which numbers are divided; for a billion numbers, each has two megabytes."""
_NUMBER = "_row_number"
_TASK_BITS = 33
"""In `monotonically_increasing_id`, the number of the task follows so many bits of the row's number in the task."""
_CHECKPOINT_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def local_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
    """Return a frame of these rows.

    Args:
        spark: The session.
        rows: One sequence of values per row. Times have a time zone; a struct is a tuple.
        ddl: Names and types of the columns, which are parsed without a request to the server.
    """
    fields = _fields(ddl)
    if not rows:
        return empty_frame(spark, {name: data_type.ddl() for name, data_type in fields})
    schema = pyarrow.schema([(name, _arrow_type(data_type)) for name, data_type in fields])
    records = [{f.name: _to_arrow(v, f.type) for f, v in zip(schema, row, strict=True)} for row in rows]
    return spark.createDataFrame(pyarrow.Table.from_pylist(records, schema=schema))


def arrow_frame(spark: SparkSession, table: pyarrow.Table) -> DataFrame:
    """Return a frame of an Arrow table, also of one without rows, which Spark Connect does not accept."""
    if table.num_rows:
        return spark.createDataFrame(table)
    return empty_frame(spark, column_types(from_arrow_schema(table.schema)))


def column_types(schema: T.StructType) -> dict[str, str]:
    """Return the type of each column by its name, as declarations have it (`type_text`)."""
    return {field.name: type_text(field.dataType) for field in schema.fields}


def type_text(data_type: T.DataType) -> str:
    """Return a type as declarations have it: unlike in `simpleString`, the names of fields are in backticks if needed.

    `parse_type` reads it.
    """
    match data_type:
        case T.ArrayType():
            return f"array<{type_text(data_type.elementType)}>"
        case T.MapType():
            return f"map<{type_text(data_type.keyType)},{type_text(data_type.valueType)}>"
        case T.StructType():
            fields = [f"{quote_if_needed(name)}:{each}" for name, each in column_types(data_type).items()]
            return f"struct<{','.join(fields)}>"
        case _:
            return data_type.simpleString()


def empty_frame(spark: SparkSession, columns: Mapping[str, str]) -> DataFrame:
    """Return a frame without rows; `columns` maps names to types.

    Spark removes joins with it when it optimizes a query: it recognizes a limit of no rows, but not an empty range.
    """
    return spark.range(0).select(*[F.lit(None).cast(ddl).alias(name) for name, ddl in columns.items()]).limit(0)


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """Return all rows of the frames, which have the same column names.

    The unions form a balanced tree, because Spark Connect limits the depth of a plan.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union_all(frames[:middle]).unionByName(union_all(frames[middle:]))


def checkpoint(frame: DataFrame) -> DataFrame:
    """Return the frame with its rows computed, so that later queries do not recompute them.

    Over Spark Connect, PySpark attaches the result to the session that is active in the process. This function attaches
    it to the frame's own session.

    In an embedded session, the result has the attribute ids of the frame. If the optimizer reduced a union to one of
    its frames, the partitioning of the result names the ids of that frame instead, and a join with rows that have the
    same ids fails with an internal error. Columns that are renamed to their own names have new ids.
    """
    computed = frame.localCheckpoint()
    if not is_remote():
        return computed.toDF(*computed.columns)
    if computed.sparkSession is frame.sparkSession:
        return computed
    computed._plan._spark_session = frame.sparkSession  # type: ignore[attr-defined]  # an attribute of Connect plans
    return type(computed)(computed._plan, frame.sparkSession)


@contextmanager
def temporary_view(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield the rows of a frame under a name, so that the plans of queries on them begin there.

    Spark Connect limits the depth of the plan of a query. Only queries within the context can use the frame.
    """
    name, spark = f"rows_{uuid.uuid4().hex}", frame.sparkSession
    frame.createTempView(name)
    try:
        yield spark.table(name)
    finally:
        spark.catalog.dropTempView(name)


@dataclass(frozen=True, slots=True)
class Observed:
    """Aggregates over the rows of a frame, which the query that computes them reports.

    `key` is an observation in an embedded session, which reports to it alone. Over Spark Connect it is a name: there a
    checkpoint reports to the frame alone, and an `Observation` would request whether the frame is a stream.
    """

    names: tuple[str, ...]
    key: Observation | str

    def values(self, computed: DataFrame) -> dict[str, Any]:
        """Return the aggregates by name after a frame with the rows was computed."""
        if isinstance(self.key, str):
            execution = computed.executionInfo
            assert execution is not None
            reported = dict(execution.flows)[self.key]
        else:
            reported = _reported(self.key)
        return {name: reported.get(name) for name in self.names}


def _reported(observation: Observation) -> dict[str, Any]:
    """Return what an embedded session reported; nothing of a part of a plan that it removed because it has no rows."""
    try:
        return observation.get
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return {}


def observe(frame: DataFrame, aggregates: Mapping[str, Column]) -> tuple[DataFrame, Observed]:
    """Return the frame so that the query that computes its rows also computes aggregates, by name.

    They are exact if no shuffle follows these rows in the plan: before a shuffle, Spark counts the rows of a task twice
    if it repeats the task. An aggregate over no rows may be None.
    """
    name = uuid.uuid4().hex
    key = name if is_remote() else Observation(name)
    observed = frame.observe(key, *[value.alias(each) for each, value in aggregates.items()])
    return observed, Observed(tuple(aggregates), key)


def observe_numbered(frame: DataFrame, aggregates: Mapping[str, Column]) -> tuple[DataFrame, Observed]:
    """Return the frame as `observe` does, with aggregates that may contain `task_number` and `number_in_task`."""
    numbered, observed = observe(frame.withColumn(_NUMBER, F.monotonically_increasing_id()), aggregates)
    return numbered.drop(_NUMBER), observed


def task_number() -> Column:
    """Return the number of the task that computes a row, from 0."""
    return F.shiftright(_NUMBER, _TASK_BITS)


def number_in_task() -> Column:
    """Return the number of a row among the rows of its task, from 0."""
    return F.col(_NUMBER).bitwiseAND(F.lit((1 << _TASK_BITS) - 1))


def checkpoint_observed(frame: DataFrame, *observed: Observed) -> tuple[DataFrame, list[dict[str, Any]]]:
    """Compute a frame once, and return it with the aggregates that its plan observes (`observe`)."""
    computed = checkpoint(frame)
    return computed, [each.values(frame) for each in observed]


def checkpoint_with_counts(frame: DataFrame, counts: Mapping[str, Column]) -> tuple[DataFrame, dict[str, int]]:
    """Compute a frame once, and return it with counts over its rows, as exact as in `observe`.

    Args:
        frame: Any rows.
        counts: Aggregates that are integers or NULL, by name.

    Returns:
        The checkpoint, and the aggregates; 0 for NULL.
    """
    computed, (values,) = checkpoint_observed(*observe(frame, counts))
    return computed, {name: int(value or 0) for name, value in values.items()}


def repeated_numbers(numbers: DataFrame) -> DataFrame:
    """Return a row for each group of numbers of which one occurs several times; no row if all numbers are distinct.

    Spark takes several times as long to count each number by itself as to collect lists of numbers with the same last
    bits.

    Args:
        numbers: Numbers of 64 bits in the column `n`, such as hashes; NULL does not count.

    Returns:
        The column `n`, with one of the numbers of each group.
    """
    group = F.col("n").bitwiseAND(F.lit(_NUMBER_GROUPS - 1))
    groups = numbers.groupBy(group.alias("group")).agg(F.collect_list("n").alias("all"))
    return groups.where(F.size("all") > F.size(F.array_distinct("all"))).select(F.col("all")[0].alias("n"))


def is_checkpoint_lost(error: BaseException) -> bool:
    """Return whether a query failed because the executor that had the rows of a checkpoint was lost."""
    return _CHECKPOINT_LOST in str(error)


def with_broadcast(frame: DataFrame, row_limit: int, columns: int = 1) -> DataFrame:
    """Return the frame with the hint to broadcast it, if as many rows as it may have fit in the memory of each process.

    Args:
        frame: Any rows.
        row_limit: An upper bound of the number of its rows.
        columns: The number of its columns, if they are more than a few short ones, such as those of a business key.
    """
    is_small = row_limit <= _BROADCAST_ROWS and row_limit * columns <= _BROADCAST_VALUES
    return F.broadcast(frame) if is_small else frame


_ARROW_TYPES = {
    "string": pyarrow.string(),
    "int": pyarrow.int32(),
    "bigint": pyarrow.int64(),
    "smallint": pyarrow.int16(),
    "tinyint": pyarrow.int8(),
    "double": pyarrow.float64(),
    "float": pyarrow.float32(),
    "boolean": pyarrow.bool_(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us", tz="UTC"),
    "timestamp_ntz": pyarrow.timestamp("us"),
    "binary": pyarrow.binary(),
}


def _fields(ddl: str) -> tuple[tuple[str, DataType], ...]:
    """Return names and types of columns."""
    columns = parse_type(f"struct<{ddl}>")
    assert isinstance(columns, Struct)
    return columns.fields


def _arrow_type(data_type: DataType) -> pyarrow.DataType:
    match data_type:
        case Primitive(name=name):
            return _ARROW_TYPES[name]
        case Decimal(precision=precision, scale=scale):
            return pyarrow.decimal128(precision, scale)
        case Array(element=element):
            return pyarrow.list_(_arrow_type(element))
        case Map(key=key, value=value):
            return pyarrow.map_(_arrow_type(key), _arrow_type(value))
        case Struct(fields=fields):
            return pyarrow.struct([(name, _arrow_type(field)) for name, field in fields])


def _to_arrow(value: Any, arrow_type: pyarrow.DataType) -> Any:
    if not pyarrow.types.is_struct(arrow_type) or value is None:
        return value
    return {arrow_type.field(number).name: part for number, part in enumerate(value)}
