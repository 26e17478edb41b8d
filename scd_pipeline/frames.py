"""Frames: small ones made by the driver, unions of many, and frames that are computed once.

What the driver makes goes through Arrow: rows given one by one would start Python workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.utils import is_remote


def small_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
    """A frame of these rows; `ddl` gives names and types. Times carry a zone; structs are tuples."""
    if not rows:
        return no_rows(spark, {field.name: field.dataType.simpleString() for field in _fields(ddl)})
    schema = to_arrow_schema(T.StructType(_fields(ddl)), timezone="UTC")
    records = [{f.name: _record(v, f.type) for f, v in zip(schema, row, strict=True)} for row in rows]
    return spark.createDataFrame(pyarrow.Table.from_pylist(records, schema=schema))


def no_rows(spark: SparkSession, columns: Mapping[str, str]) -> DataFrame:
    """A frame without rows; `columns` gives name and type."""
    return spark.range(0).select(*[F.lit(None).cast(ddl).alias(name) for name, ddl in columns.items()])


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of the frames, as a tree of unions that stays flat: Connect limits how deep a plan may be."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return united(frames[:middle]).unionByName(united(frames[middle:]))


def _fields(ddl: str) -> list[T.StructField]:
    return list(cast(T.StructType, T.StructType.fromDDL(ddl)).fields)


def _record(value: Any, kind: pyarrow.DataType) -> Any:
    if not pyarrow.types.is_struct(kind) or value is None:
        return value
    return {kind.field(number).name: part for number, part in enumerate(value)}


def checkpoint(frame: DataFrame) -> DataFrame:
    """The frame, computed once: what is made of it does not compute it again.

    Over Connect PySpark gives what it computed to the session that is active in the process; here it stays with the
    frame's own.
    """
    found = frame.localCheckpoint()
    if found.sparkSession is frame.sparkSession or not is_remote():
        return found
    found._plan._spark_session = frame.sparkSession  # type: ignore[attr-defined]  # of Connect
    return type(found)(found._plan, frame.sparkSession)
