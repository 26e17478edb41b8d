"""Select the rows of a source that were not loaded before, by a cursor: a column that grows (S39).

A load reads the rows from the highest value that was loaded. Rows with this value are recognized by hashes of their
columns, which the batch of each load stores: of equal rows, as many are new as there are more than before.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed
from scd_pipeline.declaration.times import parse_time
from scd_pipeline.deliveries.casts import MICROSECONDS_IN_JSON
from scd_pipeline.deliveries.row_columns import ADDED
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint_observed, local_frame, observe
from scd_pipeline.history.batch import CursorState
from scd_pipeline.texts import pluralize, short_repr

MAX_ROWS_AT_HIGHEST = 1_000_000
"""The hashes of the rows with the highest value are in one row of the change log: eight megabytes."""
_HASH, _NUMBER, _LOADED = "_scd_cursor_hash", "_scd_cursor_number", "_scd_cursor_loaded"
_HIGHEST, _IS_HIGHER, _MISSING = "highest", "is_higher", "missing"
_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
_NUMBERS = (T.IntegralType, T.DecimalType)
_EXACT_NUMBER = "decimal(38,9)"
_WITHOUT_NULLS = {"ignoreNullFields": "true"}
_FINER_THAN_MILLISECONDS = r"\.\d{3}(?!000)\d{3}\D"


class CursorProblem(Exception):
    """A cursor cannot select the rows; `code` and `details` are of the rejection of the delivery."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


def new_rows(frame: DataFrame, feed: Feed, loaded: CursorState) -> tuple[DataFrame, CursorState] | None:
    """Return the rows that were not loaded before, computed by one query of the source, and the state after them.

    Args:
        frame: The rows of the source.
        feed: The channel, whose cursor is one of the columns.
        loaded: The state after the last load.

    Returns:
        None if no row is new.

    Raises:
        CursorProblem: Rows have no value of the type of `start`, or the highest value is that of too many rows.
    """
    try:
        value, ddl = _cursor_value(frame, feed)
    except CursorProblem:
        if frame.isEmpty():  # a frame of pandas without rows has no types
            return None
        raise
    bound = F.lit(loaded.value).cast(ddl)
    from_bound = frame.where((value >= bound) | value.isNull())
    figures = {
        _HIGHEST: F.max(value).cast("string"),
        _IS_HIGHER: F.max(value) > bound,
        _MISSING: F.count_if(value.isNull()),
    }
    rows, (figured,) = checkpoint_observed(*observe(from_bound, figures))
    if figured[_MISSING]:
        raise CursorProblem("CURSOR_MISSING", rows=pluralize(figured[_MISSING], "row"), column=feed.cursor)
    if figured[_HIGHEST] is None:
        return None
    rows = _without_loaded(rows, value == bound, loaded)
    hashes = _hashes(rows.where(value == F.lit(figured[_HIGHEST]).cast(ddl)), feed)
    if not hashes:
        return None
    before = () if figured[_IS_HIGHER] else loaded.rows
    return rows, CursorState(figured[_HIGHEST], tuple(sorted((*before, *hashes))))


def _cursor_value(frame: DataFrame, feed: Feed) -> tuple[Column, str]:
    """Return the value of the cursor and its type; text is read as the kind of `start`.

    Raises:
        CursorProblem: The values cannot be compared with `start`.
    """
    name = str(feed.cursor)
    data_type = next((f.dataType for f in frame.schema.fields if f.name.casefold() == name.casefold()), None)
    is_time, is_number = parse_time(feed.start) is not None, isinstance(feed.start, (int, float))
    if isinstance(data_type, T.StringType):
        ddl = "timestamp" if is_time else _EXACT_NUMBER if is_number else "string"
        return col(name).try_cast(ddl), ddl
    if (is_time and isinstance(data_type, _TIMES)) or (is_number and isinstance(data_type, _NUMBERS)):
        return col(name), data_type.simpleString()
    described = "missing" if data_type is None else f"of type {data_type.simpleString()}"
    raise CursorProblem("CURSOR_TYPE", column=name, type=described, start=short_repr(feed.start))


def _row_hash(frame: DataFrame) -> Column:
    """Return the hash of a row, which does not depend on the order of the columns, or on those that are NULL."""
    names = sorted(name for name in frame.columns if name.lower() not in ADDED)
    row = F.struct(*[col(name) for name in names])
    text = F.to_json(row, _WITHOUT_NULLS)
    if "timestamp" not in frame.schema.simpleString():
        return F.xxhash64(text)
    # By default Spark writes milliseconds. Only rows with finer times have another hash than earlier releases stored.
    exact = F.to_json(row, {**_WITHOUT_NULLS, **MICROSECONDS_IN_JSON})
    return F.xxhash64(text, F.when(exact.rlike(_FINER_THAN_MILLISECONDS), exact))


def _without_loaded(rows: DataFrame, is_at_bound: Column, loaded: CursorState) -> DataFrame:
    """Return the rows without as many of each hash as were loaded with the value at which this load begins."""
    if not loaded.rows:
        return rows
    counts = local_frame(rows.sparkSession, list(Counter(loaded.rows).items()), f"{_HASH} bigint, {_LOADED} bigint")
    number = F.row_number().over(Window.partitionBy(_HASH).orderBy(_HASH))
    at_bound = rows.where(is_at_bound).withColumn(_HASH, _row_hash(rows)).withColumn(_NUMBER, number)
    is_new = F.col(_NUMBER) > F.coalesce(_LOADED, F.lit(0))
    new_at_bound = at_bound.join(counts, _HASH, "left").where(is_new).select(*[col(name) for name in rows.columns])
    return rows.where(~is_at_bound).unionByName(new_at_bound)


def _hashes(rows: DataFrame, feed: Feed) -> list[int]:
    hashes = rows.select(_row_hash(rows)).limit(MAX_ROWS_AT_HIGHEST + 1).collect()
    if len(hashes) > MAX_ROWS_AT_HIGHEST:
        raise CursorProblem("CURSOR_TOO_COARSE", limit=f"{MAX_ROWS_AT_HIGHEST:,}", column=feed.cursor)
    return [row[0] for row in hashes]
