"""Conversion of values of any type to lossless text and back, for the old and new values in the audit (S21)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.types import Array, DataType, Map, Struct
from scd_pipeline.expressions import array_where


def to_text(value: Column, data_type: DataType) -> Column:
    """Return the value as text; NULL stays NULL.

    Numbers, dates and times (in UTC) have their usual form; binary values are hexadecimal digits. Arrays, structs and
    maps are JSON with such texts as leaves; a map is an array of entries, sorted by key. A struct has its fields by
    name, in lower case, and without those that are NULL: a further field changes no text of values that lack it.
    """
    if isinstance(data_type, Array | Map | Struct):
        json = F.to_json(F.struct(_texts(value, data_type).alias("v")), {"ignoreNullFields": "true"})
        return F.when(value.isNotNull(), json)
    return F.hex(value) if data_type.ddl() == "binary" else value.cast("string")


def from_text(text: Column, data_type: DataType) -> Column:
    """Return the value that `to_text` has converted."""
    if isinstance(data_type, Array | Map | Struct):
        texts = F.from_json(text, f"struct<v:{_texts_ddl(data_type)}>")["v"]
        return _typed(texts, data_type)
    return F.unhex(text) if data_type.ddl() == "binary" else text.cast(data_type.ddl())


def map_entry(name: str, value: Column, data_type: DataType) -> Column:
    """Return a map entry of `name` and the value's text."""
    return F.struct(F.lit(name).alias("key"), to_text(value, data_type).alias("value"))


def map_of_entries(entries: Sequence[tuple[Column, Column]]) -> Column:
    """Return a map<string,string> of the entries whose condition is true; NULL if there are no pairs."""
    if not entries:
        return F.lit(None).cast("map<string,string>")
    return F.map_from_entries(array_where(entries, "struct<key:string,value:string>"))


def wrapped_value(values: Column, name: str, data_type: DataType) -> Column:
    """Return a map's value of `name`, wrapped (expressions.wrap); NULL if the map has no such name."""
    return F.when(F.map_contains_key(values, name), F.struct(from_text(values[name], data_type).alias("v")))


def _texts(value: Column, data_type: DataType) -> Column:
    """Return the same tree with texts as leaves, arrays of entries for maps, and fields in the order of their names."""
    match data_type:
        case Array(element=element):
            return F.transform(value, lambda e: _texts(e, element))
        case Map(key=key_type, value=value_type):
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.struct(_texts(e["key"], key_type).alias("k"), _texts(e["value"], value_type).alias("v")),
            )
            return F.array_sort(entries)
        case Struct(fields=fields):
            by_name = {name.casefold(): (name, field) for name, field in fields}
            texts = [_texts(value[name], field).alias(key) for key, (name, field) in sorted(by_name.items())]
            return F.when(value.isNotNull(), F.struct(*texts))
        case _:
            return to_text(value, data_type)


def _texts_ddl(data_type: DataType) -> str:
    """Return the type of `_texts`."""
    match data_type:
        case Array(element=element):
            return f"array<{_texts_ddl(element)}>"
        case Map(key=key_type, value=value_type):
            return f"array<struct<k:{_texts_ddl(key_type)},v:{_texts_ddl(value_type)}>>"
        case Struct(fields=fields):
            return f"struct<{','.join(f'{quote_name(name.casefold())}:{_texts_ddl(field)}' for name, field in fields)}>"
        case _:
            return "string"


def _typed(texts: Column, data_type: DataType) -> Column:
    """Undo `_texts`."""
    match data_type:
        case Array(element=element):
            return F.transform(texts, lambda e: _typed(e, element))
        case Map(key=key_type, value=value_type):
            entries = F.transform(
                texts,
                lambda e: F.struct(_typed(e["k"], key_type).alias("key"), _typed(e["v"], value_type).alias("value")),
            )
            return F.map_from_entries(entries)
        case Struct(fields=fields):
            values = [_typed(texts[name.casefold()], field).alias(name) for name, field in fields]
            return F.when(texts.isNotNull(), F.struct(*values))
        case _:
            return from_text(texts, data_type)
