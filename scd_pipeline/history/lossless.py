"""Values of any type as text that loses nothing, and back: what the audit keeps old and new values in (S21)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.declaration.types import Array, DataType, Map, Struct


def to_text(value: Column, data_type: DataType) -> Column:
    """The value as text; NULL stays NULL.

    Numbers, dates and times read as usual (times in UTC), binary as hexadecimal digits; arrays, structs and maps are
    JSON of such texts, a map as its entries sorted by key.
    """
    if isinstance(data_type, Array | Map | Struct):
        told = F.to_json(F.struct(_plain(value, data_type).alias("v")), {"ignoreNullFields": "false"})
        return F.when(value.isNotNull(), told)
    return F.hex(value) if data_type.ddl() == "binary" else value.cast("string")


def from_text(text: Column, data_type: DataType) -> Column:
    """The value that `to_text` made the text of."""
    if isinstance(data_type, Array | Map | Struct):
        told = F.from_json(text, f"struct<v:{_plain_ddl(data_type)}>")["v"]
        return _typed(told, data_type)
    return F.unhex(text) if data_type.ddl() == "binary" else text.cast(data_type.ddl())


def _plain(value: Column, data_type: DataType) -> Column:
    """The same tree with texts as leaves, and arrays of entries as maps."""
    match data_type:
        case Array(element=element):
            return F.transform(value, lambda e: _plain(e, element))
        case Map(key=key, value=of):
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.struct(_plain(e["key"], key).alias("k"), _plain(e["value"], of).alias("v")),
            )
            return F.array_sort(entries)
        case Struct(fields=fields):
            parts = [_plain(value[name], of).alias(f"f{i}") for i, (name, of) in enumerate(fields)]
            return F.when(value.isNotNull(), F.struct(*parts))
        case _:
            return to_text(value, data_type)


def _plain_ddl(data_type: DataType) -> str:
    match data_type:
        case Array(element=element):
            return f"array<{_plain_ddl(element)}>"
        case Map(key=key, value=of):
            return f"array<struct<k:{_plain_ddl(key)},v:{_plain_ddl(of)}>>"
        case Struct(fields=fields):
            return f"struct<{','.join(f'f{i}:{_plain_ddl(of)}' for i, (_, of) in enumerate(fields))}>"
        case _:
            return "string"


def _typed(told: Column, data_type: DataType) -> Column:
    match data_type:
        case Array(element=element):
            return F.transform(told, lambda e: _typed(e, element))
        case Map(key=key, value=of):
            entries = F.transform(
                told, lambda e: F.struct(_typed(e["k"], key).alias("key"), _typed(e["v"], of).alias("value"))
            )
            return F.map_from_entries(entries)
        case Struct(fields=fields):
            parts = [_typed(told[f"f{i}"], of).alias(name) for i, (name, of) in enumerate(fields)]
            return F.when(told.isNotNull(), F.struct(*parts))
        case _:
            return from_text(told, data_type)


def entry(name: str, value: Column, data_type: DataType, told: Column) -> Column:
    """A map entry of the value's text, NULL unless `told`."""
    return F.when(told, F.struct(F.lit(name).alias("key"), to_text(value, data_type).alias("value")))


def as_map(entries: list[Column]) -> Column:
    """A map<string,string> of the entries that are not NULL."""
    if not entries:
        return F.lit(None).cast("map<string,string>")
    return F.map_from_entries(F.array_compact(F.array(*entries)))


def told_of(values: Column, name: str, data_type: DataType) -> Column:
    """The wrapped value that a map has under a name, NULL if it has none (expressions.wrap)."""
    return F.when(F.map_contains_key(values, name), F.struct(from_text(values[name], data_type).alias("v")))
