"""The names of generated columns, and the few expressions that everything else is built from.

Columns of the change log that are not the user's begin with an underscore; no declared name may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import Array, DataType, Map, Struct, parse_type
from scd_pipeline.instants import to_micros

if TYPE_CHECKING:
    pass

EFFECTIVE_FROM = "effective_from"
EFFECTIVE_TO = "effective_to"
CURRENT_FLAG = "current_flag"
VERSION = "version"
CHANGE_REASON = "change_reason"
CHANGE_SOURCE = "change_source"
LAST_UPDATED = "last_updated"
LOAD_RUN_ID = "load_run_id"
DELETED_AT = "deleted_at"

KIND = "_kind"
COMMIT = "_commit"
BATCH = "_batch"
SOURCE = "_source"
CHANNEL = "_channel"
DELIVERY_RANK = "_delivery_rank"
REVISION_RANK = "_revision_rank"
EFFECTIVE_AT = "_effective_at"
SEQUENCE = "_sequence"
ASSERTED_AT = "_asserted_at"
PROVIDED = "_provided"
REASON = "_reason"
ACTOR = "_actor"
CORRELATION_ID = "_correlation_id"
BAD_REASON = "_bad_reason"
BAD_ROW = "_bad_row"
INFO = "_info"

DEFAULT_REASON = "source_load"


def comparable(value: Column, data_type: DataType) -> Column:
    """The value in a form whose `<=>` is the equality of S8: maps become sorted entries at any depth.

    NULL stays NULL. NaN equals NaN and 0.0 equals -0.0 by Spark's own comparison.
    """
    if not has_map(data_type):
        return value
    if isinstance(data_type, Map):
        entries = F.transform(
            F.map_entries(value),
            lambda e: F.struct(
                comparable(e["key"], data_type.key).alias("k"), comparable(e["value"], data_type.value).alias("v")
            ),
        )
        return F.array_sort(entries)
    if isinstance(data_type, Array):
        return F.transform(value, lambda e: comparable(e, data_type.element))
    if isinstance(data_type, Struct):
        fields = [comparable(value[name], field).alias(name) for name, field in data_type.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value


def has_map(data_type: DataType) -> bool:
    """Whether a map lies anywhere inside the type."""
    match data_type:
        case Map():
            return True
        case Array(element=element):
            return has_map(element)
        case Struct(fields=fields):
            return any(has_map(field) for _, field in fields)
        case _:
            return False


def quoted(name: str) -> str:
    """The name as Spark reads it whole, dots and blanks included."""
    return "`" + name.replace("`", "``") + "`"


def col(name: str) -> Column:
    return F.col(quoted(name))


def key_text(key_names: Sequence[str]) -> Column:
    """The business key as one unambiguous text: each part with its length before it; NULL as a part of no length.

    ('a|b', 'c') and ('a', 'b|c') differ, NULL and '' differ (S8).
    """
    parts: list[Column] = []
    for name in key_names:
        text = col(name).cast("string")
        parts.append(F.coalesce(F.concat(F.length(text).cast("string"), F.lit(":"), text), F.lit("-")))
    return F.concat(*parts)


def readable_key(key_names: Sequence[str]) -> Column:
    """The business key for people: `id=7, region=EU`."""
    return F.concat_ws(
        ", ", *[F.concat(F.lit(f"{n}="), F.coalesce(col(n).cast("string"), F.lit("NULL"))) for n in key_names]
    )


def delivery_of(batch: str | Column) -> Column:
    """The delivery that a batch's id names, without its revision."""
    return F.regexp_replace(batch, "/[^/]*$", "")


def in_new_names(former: Mapping[str, str]) -> Callable[[Column], Column]:
    """Turns the name of an attribute, one of those it had included, into the name it has (S20); `former` to new."""
    pairs = F.create_map(*[F.lit(text) for pair in former.items() for text in pair])
    return lambda name: F.coalesce(pairs[name], name)


def attribute_types(dimension: Dimension) -> dict[str, DataType]:
    """Name to parsed type of every attribute, in declared order."""
    return {attribute.name: parse_type(attribute.type) for attribute in dimension.attributes}


def wrap(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Turn each attribute into a struct of one field `v`; NULL stands for "not stated", a struct of NULL for NULL.

    In: `_provided` and the attributes.  Out: the same columns without `_provided`.
    """
    stated = {n: F.when(F.array_contains(PROVIDED, n), F.struct(col(n).alias("v"))) for n in names}
    return frame.withColumns(stated).drop(PROVIDED)


def unwrap(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The inverse of `wrap`: plain attributes, and `_provided` with the names of those that were stated."""
    stated = F.array_compact(F.array(*[F.when(col(n).isNotNull(), F.lit(n)) for n in names]))
    plain = {n: F.col(f"{quoted(n)}.v") for n in names}
    return frame.withColumn(PROVIDED, stated.cast("array<string>")).withColumns(plain)


def position(*, with_presence: bool = False) -> list[Column]:
    """The order of statements (S5): time, sequence (NULL first), delivery, channel, source, revision.

    A delivery is known by its name, channel and source: of those that count, no two are told apart by the revision
    alone, so that the same content under a higher one moves nothing (S14, S34). The source's name only decides who
    opened a version.

    With `with_presence`, the rows by which a row-timed snapshot asserts presence come after its own row of that time,
    the highest of them first, as that one gives the values.
    """
    order = [
        F.col(EFFECTIVE_AT).asc(),
        F.col(SEQUENCE).asc_nulls_first(),
        F.col(DELIVERY_RANK).asc(),
        F.col(CHANNEL).asc(),
        F.col(SOURCE).asc(),
        F.col(REVISION_RANK).asc(),
    ]
    if with_presence:
        order += [F.col("_row_at").desc_nulls_first(), F.col("_row_sequence").desc_nulls_last()]
    return order


def null_safe_equal(left: Sequence[Column], right: Sequence[Column]) -> Column:
    """Whether all pairs are equal, NULL equal to NULL; true for no pairs."""
    equal = F.lit(True)
    for a, b in zip(left, right, strict=True):
        equal = equal & a.eqNullSafe(b)
    return equal


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """The frame with these columns; as it is for none."""
    return frame.withColumns(dict(columns)) if columns else frame


def as_texts(frame: DataFrame) -> DataFrame:
    """The same rows with each value as text, as `text_of` has it; no name may come twice."""
    return frame.select(*[text_of(frame, name).alias(name) for name in frame.columns])


def text_of(frame: DataFrame, name: str) -> Column:
    """A column's values as text; binary as hexadecimal digits, as its bytes need be no text. NULL stays NULL."""
    value = col(name)
    return F.hex(value) if frame.schema[name].dataType.typeName() == "binary" else value.cast("string")


CHANGE_RECORD_TYPES = {
    SOURCE: "string",
    CHANNEL: "string",
    BATCH: "string",
    DELIVERY_RANK: "string",
    REVISION_RANK: "string",
    EFFECTIVE_AT: "timestamp",
    SEQUENCE: "bigint",
    ASSERTED_AT: "timestamp",
    KIND: "string",
    REASON: "string",
    ACTOR: "string",
    CORRELATION_ID: "string",
    BAD_REASON: "string",
    BAD_ROW: "string",
}


def instant(moment: datetime | None) -> Column:
    """A moment as a timestamp, by its microseconds: no zone of the process or the session touches it."""
    if moment is None:
        return F.lit(None).cast("timestamp")
    return F.timestamp_micros(F.lit(to_micros(moment)))
