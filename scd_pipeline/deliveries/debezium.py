"""Unfold events of Debezium: the columns of the row under their own names, and the event as a struct."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.debezium import ENVELOPE, ENVELOPE_FIELDS, SOURCE_FIELDS
from scd_pipeline.deliveries.json_text import to_text
from scd_pipeline.deliveries.row_columns import FIELDS, FILE, LINE, PROBLEM, ROW_ORDER
from scd_pipeline.deliveries.row_fields import value_text
from scd_pipeline.expressions import any_of, col, with_columns

_ADDED = (FILE, LINE, PROBLEM, ROW_ORDER)
_SIDES = ("before", "after")
_NESTED = (T.StructType, T.ArrayType, T.MapType)


def unfold_events(frame: DataFrame) -> DataFrame:
    """Return the changed rows of events, with `_envelope`, which is NULL for a tombstone.

    The columns are those of `before` for a delete, and of `after` otherwise. An event can be inside of `payload`, as it
    is beside a `schema`. Columns that a reader has added stay.
    """
    fields = {field.name: field.dataType for field in frame.schema.fields if field.name not in (*_ADDED, FIELDS)}
    values = {name: col(name) for name in fields}
    payload = fields.get("payload")
    tokens = F.col(FIELDS)
    if isinstance(payload, T.StructType) and "op" not in fields:
        tokens = F.from_json(tokens["payload"], _token_type(payload.fieldNames()))
        values = {field.name: col("payload")[field.name] for field in payload.fields}
        fields = {field.name: field.dataType for field in payload.fields}
    missing = {name: F.lit(None).cast("string") for name in ENVELOPE_FIELDS if name not in fields and name != "op"}
    values = {**values, **missing, "source": _with_fields(values.get("source"), fields.get("source"))}
    is_event = any_of([value.isNotNull() for name, value in values.items() if name != "source"])
    envelope = F.struct(*[value.alias(name) for name, value in values.items()])
    types = {name: _fields_of(fields.get(name)) for name in _SIDES}
    image = _image(values, types)
    has_tokens = _has_tokens(frame) and bool(image)
    if has_tokens:
        image.append(_image_tokens(tokens, values, types).alias(FIELDS))
    added = [col(name) for name in frame.columns if name in _ADDED]
    rows = frame.select(*image, F.when(is_event, envelope).alias(ENVELOPE), *added)
    return _with_texts_of_tokens(rows, types) if has_tokens else rows


def _with_texts_of_tokens(rows: DataFrame, types: Mapping[str, Mapping[str, T.DataType]]) -> DataFrame:
    """Return the rows of JSON events; a column of text has the texts of its tokens, as in other JSON files."""
    names = dict.fromkeys(name for fields in types.values() for name in fields)
    text = T.StringType()
    texts = [name for name in names if all(fields.get(name, text) == text for fields in types.values())]
    return with_columns(rows, {name: to_text(F.col(FIELDS)[name]) for name in texts})


def _has_tokens(frame: DataFrame) -> bool:
    """Return whether the events are JSON, whose fields have tokens; not a list of dicts."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    return any(isinstance(field.dataType, T.StringType) for field in getattr(types.get(FIELDS), "fields", ()))


def _token_type(names: Iterable[str]) -> T.StructType:
    return T.StructType([T.StructField(name, T.StringType()) for name in names])


def _image_tokens(
    tokens: Column, values: Mapping[str, Column], types: Mapping[str, Mapping[str, T.DataType]]
) -> Column:
    """Return the JSON tokens of the row that an event is about (`row_fields`)."""
    token_type = _token_type(dict.fromkeys(name for fields in types.values() for name in fields))
    before, after = (
        F.from_json(tokens[side], token_type) if types[side] else F.lit(None).cast(token_type) for side in _SIDES
    )
    return F.when(_is_delete(values), before).otherwise(after)


def _is_delete(values: Mapping[str, Column]) -> Column:
    return values["op"] == "d" if "op" in values else F.lit(False)


def _fields_of(data_type: T.DataType | None) -> dict[str, T.DataType]:
    """Return the fields of a row; none if each row is NULL, whose type Spark cannot infer."""
    return {f.name: f.dataType for f in data_type.fields} if isinstance(data_type, T.StructType) else {}


def _with_fields(source: Column | None, data_type: T.DataType | None) -> Column:
    """Return the source of an event with the fields that the options of the format use."""
    existing = _fields_of(data_type)
    values = {name: source[name] for name in existing} if source is not None else {}
    missing: Sequence[str] = [name for name in SOURCE_FIELDS if name not in existing]
    return F.struct(
        *[value.alias(name) for name, value in values.items()],
        *[F.lit(None).cast("string").alias(name) for name in missing],
    )


def _image(values: Mapping[str, Column], types: Mapping[str, Mapping[str, T.DataType]]) -> list[Column]:
    """Return the columns of the row that an event is about."""
    is_delete, columns = _is_delete(values), []
    for name in dict.fromkeys((*types["after"], *types["before"])):
        sides = [types[side].get(name, T.NullType()) for side in _SIDES]
        data_type = _common_type(*sides)
        before, after = (
            F.lit(None).cast(data_type)
            if isinstance(each, T.NullType)
            else _to_common_type(values[side][name], each, data_type)
            for side, each in zip(_SIDES, sides, strict=True)
        )
        columns.append(F.when(is_delete, before).otherwise(after).alias(name))
    return columns


def _common_type(before: T.DataType, after: T.DataType) -> T.DataType:
    """Return a type that has the values of both sides of an event, whose types are inferred from different rows.

    A struct has the fields of both. Of other types that differ it is text, from which values are cast to the declared
    type; a nested type beside a simple one is that of the only values, as all others are NULL.
    """
    match before, after:
        case T.NullType(), _:
            return after
        case _, T.NullType():
            return before
        case T.StructType(), T.StructType():
            types = [{field.name: field.dataType for field in each.fields} for each in (before, after)]
            names = dict.fromkeys((*types[1], *types[0]))
            return T.StructType(
                [T.StructField(name, _common_type(*[each.get(name, T.NullType()) for each in types])) for name in names]
            )
        case T.ArrayType(), T.ArrayType():
            return T.ArrayType(_common_type(before.elementType, after.elementType))
        case T.IntegralType(), T.IntegralType():
            return T.LongType()
    if before == after or isinstance(before, _NESTED):
        return before
    return after if isinstance(after, _NESTED) else T.StringType()


def _to_common_type(value: Column, physical: T.DataType, common: T.DataType) -> Column:
    """Return a value of one side as the type of both (`_common_type`)."""
    match physical, common:
        case T.StructType(), T.StructType():
            types = {field.name: field.dataType for field in physical.fields}
            fields = [
                _to_common_type(value[field.name], types[field.name], field.dataType)
                if field.name in types
                else F.lit(None).cast(field.dataType)
                for field in common.fields
            ]
            named = [each.alias(field.name) for each, field in zip(fields, common.fields, strict=True)]
            return F.when(value.isNotNull(), F.struct(*named))
        case T.ArrayType(), T.ArrayType():
            return F.transform(value, lambda each: _to_common_type(each, physical.elementType, common.elementType))
        case _, T.StringType():
            return value_text(value, physical)
        case _ if physical == common or isinstance(common, T.LongType):
            return value.cast(common)
    return F.lit(None).cast(common)
