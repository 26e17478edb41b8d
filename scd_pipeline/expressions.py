"""Column expressions and frame transformations that all stages of a load share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import add, and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    CHANNEL,
    DELIVERY_RANK,
    EFFECTIVE_AT,
    PROVIDED,
    REVISION_RANK,
    ROW_AT,
    ROW_SEQUENCE,
    SEQUENCE,
    SOURCE,
)
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.types import Array, DataType, Map, Struct, has_map
from scd_pipeline.instants import to_micros


def without_blanks(text: str) -> str:
    """Return SQL without blanks, to compare it with SQL that Spark stores with other blanks."""
    return "".join(text.split())


def col(name: str) -> Column:
    """Return the column of this name, which may contain dots and blanks."""
    return F.col(quote_name(name))


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Add or replace columns; `columns` may be empty, which Spark's `withColumns` rejects."""
    return frame.withColumns(dict(columns)) if columns else frame


def timestamp_literal(time: datetime | None) -> Column:
    """Return the time as a TIMESTAMP literal, or a NULL of that type.

    The literal is built from microseconds, so that no time zone of the process or the session affects it (S1).
    """
    if time is None:
        return F.lit(None).cast("timestamp")
    return F.timestamp_micros(F.lit(to_micros(time)))


def constant_number(number: int, anchor: Column) -> Column:
    """Return a number that is the same in every row and differs from load to load, such as that of a commit.

    Spark writes numbers and times as literals into the code that it generates, so that it would compile the code again
    in each load, and Java would run it uncompiled at first. Texts are parameters of the code. The text of this number
    is computed in each row, because Spark replaces an expression of constants by its value.

    Args:
        number: The number.
        anchor: A column that may be NULL. Its value has no effect.
    """
    nothing = F.substring(anchor.isNull().cast("string"), 1, 0)
    return F.concat(F.lit(str(number)), nothing).cast("bigint")


def constant_time(time: datetime | None, anchor: Column) -> Column:
    """Return a time that is the same in every row and differs from load to load, as `constant_number`; may be NULL."""
    if time is None:
        return timestamp_literal(None)
    return F.timestamp_micros(constant_number(to_micros(time), anchor))


def to_comparable(value: Column, data_type: DataType) -> Column:
    """Return the value in a form that `<=>` compares as S8 demands: maps at any depth become sorted entries.

    NULL stays NULL. Spark itself treats NaN as equal to NaN and 0.0 as equal to -0.0.
    """
    if not has_map(data_type):
        return value
    if isinstance(data_type, Map):
        entries = F.transform(
            F.map_entries(value),
            lambda e: F.struct(
                to_comparable(e["key"], data_type.key).alias("k"), to_comparable(e["value"], data_type.value).alias("v")
            ),
        )
        return F.array_sort(entries)
    if isinstance(data_type, Array):
        return F.transform(value, lambda e: to_comparable(e, data_type.element))
    if isinstance(data_type, Struct):
        fields = [to_comparable(value[name], field).alias(name) for name, field in data_type.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value


def widened(value: Column, stored: DataType, wider: DataType) -> Column:
    """Return a value of a stored type as one of a wider type (`types.is_wider`); NULL stays NULL.

    Spark casts structs by the positions of their fields, and only to as many fields.
    """
    if stored == wider:
        return value
    match stored, wider:
        case Struct(), Struct():
            types = dict(stored.fields)
            fields = [
                (widened(value[name], types[name], each) if name in types else F.lit(None).cast(each.ddl())).alias(name)
                for name, each in wider.fields
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
        case Array(), Array():
            return F.transform(value, lambda e: widened(e, stored.element, wider.element))
        case Map(), Map():
            return F.transform_values(value, lambda _, e: widened(e, stored.value, wider.value))
        case _:
            return value.cast(wider.ddl())


def values_differ(left: Column, right: Column, data_type: DataType) -> Column:
    """Return whether two values differ (S8); never NULL."""
    return ~to_comparable(left, data_type).eqNullSafe(to_comparable(right, data_type))


def any_of(conditions: Sequence[Column]) -> Column:
    """Return whether any condition is true; false if there are none."""
    return _combined(conditions, or_) if conditions else F.lit(False)


def all_of(conditions: Sequence[Column]) -> Column:
    """Return whether all conditions are true; true if there are none."""
    return _combined(conditions, and_) if conditions else F.lit(True)


def sum_of(numbers: Sequence[Column]) -> Column:
    """Return the sum of the columns; 0 if there are none."""
    return _combined(numbers, add) if numbers else F.lit(0)


def _combined(columns: Sequence[Column], operator: Callable[[Column, Column], Column]) -> Column:
    """Combine columns in a balanced tree, because Spark Connect limits the depth of an expression."""
    if len(columns) == 1:
        return columns[0]
    middle = len(columns) // 2
    return operator(_combined(columns[:middle], operator), _combined(columns[middle:], operator))


def null_safe_equal(left: Sequence[Column], right: Sequence[Column]) -> Column:
    """Return whether all pairs are equal, where NULL equals NULL; true if there are no pairs."""
    return all_of([a.eqNullSafe(b) for a, b in zip(left, right, strict=True)])


def array_where(values: Sequence[tuple[Column, Column]], ddl: str) -> Column:
    """Return an array of the values whose condition is true, in their order.

    `array_compact` would do the same, but Spark generates no code for it, nor for anything inside it.

    Args:
        values: Pairs of condition and value; a condition that is NULL is not true.
        ddl: The type of the values.
    """
    empty = F.array().cast(f"array<{ddl}>")
    return F.concat(empty, *[F.when(condition, F.array(value)).otherwise(empty) for condition, value in values])


def key_text(key_names: Sequence[str]) -> Column:
    """Return the business key as one unambiguous text: each part with its length in front, and `-` for NULL.

    The keys ('a|b', 'c') and ('a', 'b|c') differ, and so do NULL and '' (S8).
    """
    return text_of_parts([col(name) for name in key_names])


def text_of_parts(values: Sequence[Column]) -> Column:
    """Return values as one unambiguous text (`key_text`)."""
    parts: list[Column] = []
    for value in values:
        text = value.cast("string")
        parts.append(F.coalesce(F.concat(F.length(text).cast("string"), F.lit(":"), text), F.lit("-")))
    return F.concat(*parts)


def readable_key(key_names: Sequence[str], prefix: str = "") -> Column:
    """Return the business key as text for messages, such as `id=7, region=EU`; its columns may have a prefix."""
    texts = {name: F.coalesce(col(prefix + name).cast("string"), F.lit("NULL")) for name in key_names}
    pairs = [F.concat(F.lit(f"{name}="), text) for name, text in texts.items()]
    return F.make_valid_utf8(F.concat_ws(", ", *pairs))  # a binary key may be no text


def delivery_id(batch: str | Column) -> Column:
    """Return a batch id without its revision."""
    return F.regexp_replace(batch, "/[^/]*$", "")


def batch_of_delivery(delivery: str | Column) -> Column:
    """Return the id of a batch of a delivery (`delivery_id`) whose revision is an empty text, which no batch has."""
    return F.concat(delivery, F.lit("/"))


def to_current_names(former: Mapping[str, str]) -> Callable[[Column], Column]:
    """Return a function that replaces former attribute names by current ones (S20).

    Args:
        former: The current name by former name; not empty.
    """
    pairs = F.create_map(*[F.lit(text) for pair in former.items() for text in pair])
    return lambda name: F.coalesce(pairs[name], name)


def wrap(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Turn each attribute into a struct with one field `v`, and drop `_provided`.

    A NULL struct means "not provided"; a struct with a NULL field means that NULL was provided.

    Args:
        frame: Rows with the attributes and `_provided`, the names of the attributes that each row provides.
        names: The attributes.
    """
    wrapped = {n: F.when(F.array_contains(PROVIDED, n), F.struct(col(n).alias("v"))) for n in names}
    return with_columns(frame, wrapped).drop(PROVIDED)


def unwrap(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Undo `wrap`: return the plain attributes, and `_provided` with the names of those that each row provides."""
    is_provided = [col(n).isNotNull() for n in names]
    some = array_where([(condition, F.lit(n)) for condition, n in zip(is_provided, names, strict=True)], "string")
    # Most rows provide all attributes: one constant is cheaper than an array of their names for each row.
    provided = F.when(all_of(is_provided), F.array(*[F.lit(n) for n in names]).cast("array<string>")).otherwise(some)
    plain = {n: F.col(f"{quote_name(n)}.v") for n in names}
    return with_columns(frame.withColumn(PROVIDED, provided), plain)


def position_order(*, with_presence: bool = False) -> list[Column]:
    """Return the sort order of change records: time, sequence (NULL first), delivery, channel, source, revision (S5).

    Each delivery has only one revision in effect, so the revision never decides between two records; the same content
    under a higher revision therefore changes nothing (S14, S34). The source's name only decides which source a
    version names as its cause.

    Args:
        with_presence: Sort the rows by which a row-timed snapshot asserts presence after the snapshot's own row of
            that time, the one with the highest position first, because its values are used (S4).
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
        order += [F.col(ROW_AT).desc_nulls_first(), F.col(ROW_SEQUENCE).desc_nulls_last()]
    return order


def as_text_columns(frame: DataFrame) -> DataFrame:
    """Return the rows with each value as text (`text_column`); column names must be unique."""
    return frame.select(*[text_column(frame, name).alias(name) for name in frame.columns])


def text_column(frame: DataFrame, name: str) -> Column:
    """Return a column's values as text, NULL as NULL.

    Binary values become hexadecimal digits, because their bytes need not be valid UTF-8.
    """
    value = col(name)
    return F.hex(value) if frame.schema[name].dataType.typeName() == "binary" else value.cast("string")
