"""Cast delivered values to declared types without a loss of information (S26).

A value that the declared type cannot represent exactly is bad: its cast is NULL. Rounding has to be declared, and so
has the unit of a number that represents a time. Times without a zone are read in the zone of their source (S1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.names import readable_names
from scd_pipeline.declaration.types import INTEGERS, Array, DataType, Decimal, Map, Struct, leaves
from scd_pipeline.deliveries import json_text
from scd_pipeline.deliveries.cast_options import CastOptions
from scd_pipeline.deliveries.json_text import JsonToken
from scd_pipeline.deliveries.number_casts import (
    NUMBERS,
    SIGNIFICANT_DIGITS,
    number_text,
    plain_number,
    to_decimal,
    to_equal_number,
    to_floating,
    to_integer,
)
from scd_pipeline.deliveries.time_casts import TIME_TYPES, to_time
from scd_pipeline.expressions import any_of
from scd_pipeline.frames import type_text

MICROSECONDS_IN_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options with which Spark writes times in JSON without loss."""
_NO_JSON = "_scd_no_json"
_OTHER_KEYS = re.compile(r"\bmap<(?!string,)")
_CHECKED_THOUGH_EQUAL = ("string", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Cast:
    """A value of the declared type, and whether the delivered value, or a value inside it, is bad."""

    value: Column
    is_bad: Column


def cast(value: Column, physical: T.DataType, target: DataType, options: CastOptions) -> Cast:
    """Cast a value of a physical type to the declared one, leaf by leaf.

    NULL stays NULL and is not bad. A bad leaf is NULL; the value that contains it is not.

    Raises:
        AnalysisException: No value of the physical type can be cast. Spark raises it when the frame is analyzed.
    """
    is_same_type = type_text(physical) == target.ddl()
    if is_same_type and not any(leaf.ddl() in _CHECKED_THOUGH_EQUAL for leaf in leaves(target)):
        return Cast(value, F.lit(False))
    # Forms of text apply to columns of text, not to values inside of others.
    inner = CastOptions(options.zone, unit=options.unit, is_rounded=options.is_rounded)
    if isinstance(physical, T.StringType) and isinstance(target, Struct | Array | Map):
        return _from_json(value, physical, target, inner)
    if isinstance(physical, T.StructType) and isinstance(target, Struct):
        return _struct(value, physical, target, inner)
    if isinstance(physical, T.ArrayType) and isinstance(target, Array):
        return _array(value, physical, target, inner)
    if isinstance(physical, T.MapType) and isinstance(target, Map):
        return _map(value, physical, target, inner)
    if isinstance(physical, T.StructType) and isinstance(target, Map):
        return _map_from_fields(value, physical, target, inner)
    leaf = _leaf(value, physical, target, options)
    return Cast(leaf, ~_is_null(value, physical) & leaf.isNull())


def cast_json(token: Column, text: Column, target: DataType, options: CastOptions) -> Cast:
    """Cast a JSON value like `cast`, with the text of its token, which a column has: it is used in many places."""
    if isinstance(target, Struct | Array | Map):
        return cast(token, JsonToken(), target, options)
    leaf = _from_token(token, text, target, options)
    return Cast(leaf, text.isNotNull() & leaf.isNull())


def _is_null(value: Column, physical: T.DataType) -> Column:
    return json_text.is_null(value) if isinstance(physical, JsonToken) else value.isNull()


# --------------------------------------------------------------------- nested values


def _struct(value: Column, physical: T.StructType, target: Struct, options: CastOptions) -> Cast:
    """Cast a struct by the names of its fields; Spark would cast it by their positions.

    A field that is not delivered is NULL. Names are found as columns are: in any case, and by their readable names.
    """
    delivered = {field.name.lower(): field for field in physical.fields}
    readable = readable_names([field.name for field in physical.fields])
    delivered |= {each.lower(): delivered[name.lower()] for name, each in readable.items()}
    fields, problems = [], []
    for name, inner in target.fields:
        result = Cast(F.lit(None).cast(inner.ddl()), F.lit(False))
        if field := delivered.get(name.lower()):
            result = cast(value[field.name], field.dataType, inner, options)
        fields.append(result.value.alias(name))
        problems.append(result.is_bad)
    return Cast(F.when(value.isNotNull(), F.struct(*fields)), any_of(problems))


def _array(value: Column, physical: T.ArrayType, target: Array, options: CastOptions) -> Cast:
    def element(inner: Column) -> Cast:
        return cast(inner, physical.elementType, target.element, options)

    is_bad = F.exists(value, lambda inner: element(inner).is_bad)
    return Cast(F.transform(value, lambda inner: element(inner).value), F.coalesce(is_bad, F.lit(False)))


def _map(value: Column, physical: T.MapType, target: Map, options: CastOptions) -> Cast:
    keys = _array(F.map_keys(value), T.ArrayType(physical.keyType), Array(target.key), options)
    values = _array(F.map_values(value), T.ArrayType(physical.valueType), Array(target.value), options)
    return _entries(keys, values)


def _map_from_fields(value: Column, physical: T.StructType, target: Map, options: CastOptions) -> Cast:
    """Cast the fields of a struct to entries of a map: Spark infers structs from the objects of JSON files.

    A field that is NULL is not an entry, because a field that an object lacks is NULL too.
    """
    candidates, problems = [], []
    for field in physical.fields:
        result = cast(value[field.name], field.dataType, target.value, options)
        entry = F.struct(F.lit(field.name).alias("key"), result.value.alias("value"))
        candidates.append(F.when(value[field.name].isNotNull(), entry))
        problems.append(result.is_bad)
    entries = F.when(value.isNotNull(), F.array_compact(F.array(*candidates)))
    keys = _array(F.transform(entries, lambda e: e["key"]), T.ArrayType(T.StringType()), Array(target.key), options)
    return _entries(keys, Cast(F.transform(entries, lambda e: e["value"]), any_of(problems)))


def _entries(keys: Cast, values: Cast) -> Cast:
    """Return a map. It is bad if two keys become equal: Spark would fail, or drop one of them."""
    is_bad = keys.is_bad | (F.size(F.array_distinct(keys.value)) < F.size(keys.value))
    return Cast(F.when(~is_bad, F.map_from_arrays(keys.value, values.value)), is_bad | values.is_bad)


def _from_json(value: Column, physical: T.StringType, target: DataType, options: CastOptions) -> Cast:
    """Cast a JSON text, whose leaves are read like those of JSON files.

    Text that is not JSON of the type is bad; Spark would keep a part of it. The text is parsed inside an object and
    inside an array: Spark ignores what follows a bracket that closes one of them early, and no text closes both.
    """
    text = json_text.nested_text(value) if isinstance(physical, JsonToken) else json_text.tag_numbers(value)
    parsed = F.from_json(
        F.concat(F.lit('{"v":'), text, F.lit("}")),
        T.StructType([T.StructField("v", _json_type(target)), T.StructField(_NO_JSON, T.StringType())]),
        {"columnNameOfCorruptRecord": _NO_JSON},
    )
    has_one_value = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    whole = F.when(parsed[_NO_JSON].isNull() & has_one_value, parsed["v"])
    inner = cast(whole, _json_type(target, JsonToken()), target, options)
    return Cast(inner.value, (~_is_null(value, physical) & whole.isNull()) | inner.is_bad)


def _json_type(target: DataType, leaf: T.StringType | None = None) -> T.DataType:
    """Return the type that Spark's JSON parser reads: text for each leaf, except for binary, which is in Base64.

    For a time the parser would not use the source's zone, and would read a time of day as one of today.
    """
    match target:
        case Struct(fields=fields):
            return T.StructType([T.StructField(name, _json_type(inner, leaf)) for name, inner in fields])
        case Array(element=element):
            return T.ArrayType(_json_type(element, leaf))
        case Map(value=value):
            return T.MapType(T.StringType(), _json_type(value, leaf))
        case _:
            return T.BinaryType() if target.ddl() == "binary" else leaf or T.StringType()


# --------------------------------------------------------------------------- leaves


def _leaf(value: Column, physical: T.DataType, target: DataType, options: CastOptions) -> Column:
    """Cast a value to a type without inner types; NULL if it is bad."""
    name = target.ddl()
    if isinstance(physical, JsonToken):
        return _from_token(value, json_text.to_text(value), target, options)
    if isinstance(physical, T.StringType) and (isinstance(target, Decimal) or name in NUMBERS):
        value = plain_number(value, options)
    if isinstance(target, Decimal):
        return to_decimal(value, physical, target, options)
    if name in INTEGERS:
        return to_integer(value, physical, name, options)
    if name in SIGNIFICANT_DIGITS:
        return to_floating(value, physical, name, options)
    if name in TIME_TYPES:
        return to_time(value, physical, name, options)
    if name == "string":
        return _text(value, physical, options)
    if name == "boolean" and isinstance(physical, T.NumericType):
        return to_equal_number(value, physical, name)
    if name == "boolean" and isinstance(physical, T.StringType) and options.true_values:
        return _flag(F.trim(value), options)
    return value.try_cast(name)


def _from_token(token: Column, text: Column, target: DataType, options: CastOptions) -> Column:
    """Cast a JSON value. A number with a fraction or an exponent is a floating-point number, whatever its digits."""
    name, physical = target.ddl(), T.StringType()
    leaf = _leaf(text, physical, target, options)
    if options.has_separators:  # those of text: a number in JSON has a point
        plain = _leaf(text, physical, target, replace(options, decimal=".", grouping=""))
        leaf = F.when(json_text.is_number(token), plain).otherwise(leaf)
    if name == "string":
        leaf = F.when(json_text.is_number(token), number_text(text, options)).otherwise(leaf)
    if name in INTEGERS:
        whole = to_decimal(text, physical, Decimal(38, 0), options).try_cast(name)
        leaf = F.coalesce(leaf, F.when(json_text.is_number(token), whole))
    return F.when(json_text.is_readable(token), leaf)


def _flag(text: Column, options: CastOptions) -> Column:
    """Return whether a text is one of those that mean true; NULL if it has no declared meaning."""
    return F.when(text.isin(*options.true_values), True).when(text.isin(*options.false_values), False)


def _text(value: Column, physical: T.DataType, options: CastOptions) -> Column:
    """Cast any value to text; bytes are read as UTF-8, and a nested value becomes JSON.

    Spark's cast of a nested value omits the names of its fields, so that different values become equal.
    """
    if isinstance(physical, T.StructType | T.ArrayType | T.MapType):
        has_other_keys = _OTHER_KEYS.search(physical.simpleString())
        return F.to_json(_with_text_keys(value, physical) if has_other_keys else value, MICROSECONDS_IN_JSON)
    if isinstance(physical, T.BinaryType):
        return F.try_validate_utf8(value.cast("string"))
    text = value.try_cast("string")
    if isinstance(physical, T.FloatType | T.DoubleType):
        return number_text(text, options)
    return F.try_validate_utf8(text) if isinstance(physical, T.StringType) else text


def _with_text_keys(value: Column, physical: T.DataType) -> Column:
    """Return a nested value with the keys of its maps as text; Spark writes a date as the number of its day."""
    match physical:
        case T.StructType():
            fields = [_with_text_keys(value[f.name], f.dataType).alias(f.name) for f in physical.fields]
            return F.when(value.isNotNull(), F.struct(*fields)) if fields else value
        case T.ArrayType():
            return F.transform(value, lambda element: _with_text_keys(element, physical.elementType))
        case T.MapType():
            values = F.transform_values(value, lambda _, inner: _with_text_keys(inner, physical.valueType))
            is_text = isinstance(physical.keyType, T.StringType)
            return values if is_text else F.transform_keys(values, lambda key, _: key.cast("string"))
        case _:
            return value
