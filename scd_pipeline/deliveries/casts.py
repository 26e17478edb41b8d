"""Cast delivered values to declared types without a loss of information (S26).

A value that the declared type cannot hold wholly is bad: its cast is NULL. What may be lost is declared: rounding, and
the unit of a number that counts time. Times without a zone are read in the zone of their source (S1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.patterns import reads_nanoseconds, without_optional_zone, zone_letters
from scd_pipeline.declaration.types import Array, DataType, Decimal, Map, Struct, leaves

_NO_JSON = "_scd_no_json"
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_CHECKED_THOUGH_EQUAL = ("string", "date", "timestamp", "timestamp_ntz")
_LONGEST = 2**63 - 1
_SIGNIFICANT_DIGITS = {"double": 17, "float": 9}
# A day, and where it is no text of a date a time behind it.
_DAY = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
_MIDNIGHT = r"([T ]0?0:0?0(:0?0(\.0*)?)?(Z|\+00:?00)?)?\s*$"
_TOO_FINE = r"\.\d{6}\d*[1-9]"
# Also behind a comma, or right behind the digits of day and time.
_TOO_FINE_BY_PATTERN = r"[.,]\d{6}\d*[1-9]|\d{20}\d*[1-9]"
# After a time of day: an offset, or a zone's name; the T between date and hour is none.
_ZONE_AT_END = r"(?i)\d\s*((?!t\d)[a-z][a-z0-9_/+-]*|[+-]\d{1,2}(:?\d{2}){0,2})\s*$"
_NUMBER = r"(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+|NaN|[+-]?Infinity|[+-]?INF)(?=[\s,\]}]|\z)"
_STRINGS = r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'"""
# Of a JSON text: whole strings and all else that is no number, then a number.
_UP_TO_A_NUMBER = rf"""(?s)\G((?:{_STRINGS}|[^"'\d+\-NI]++|(?!{_NUMBER})[^"'])*+)({_NUMBER})"""
# Java's floating literals beside those of data: with a letter for their type, or hexadecimal.
_LITERAL_OF_JAVA = r"(?i)[\d.][df]\s*$|x"


@dataclass(frozen=True, slots=True)
class Rules:
    """How values are read: times without a zone in `zone`, text by `pattern`, numbers as times in `unit`, rounded."""

    zone: str = "UTC"
    pattern: str | None = None
    unit: str | None = None
    is_rounded: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as its declared type, and whether the delivered value is bad, be it deep inside."""

    value: Column
    is_bad: Column


def cast(value: Column, physical: T.DataType, target: DataType, rules: Rules) -> Cast:
    """Cast a value of a physical type to the declared one, leaf by leaf.

    NULL stays NULL and is not bad. A bad leaf is NULL; the value around it is not.
    Errors: Spark's AnalysisException, once the frame is analysed, for types of which no value can be cast.
    """
    if physical.simpleString() == target.ddl() and not any(o.ddl() in _CHECKED_THOUGH_EQUAL for o in leaves(target)):
        return Cast(value, F.lit(False))
    # A pattern reads columns of text, not what is inside of others.
    inner = replace(rules, pattern=None)
    if isinstance(physical, T.StringType) and isinstance(target, Struct | Array | Map):
        return _from_json(value, target, inner)
    if isinstance(physical, T.StructType) and isinstance(target, Struct):
        return _struct(value, physical, target, inner)
    if isinstance(physical, T.ArrayType) and isinstance(target, Array):
        return _array(value, physical, target, inner)
    if isinstance(physical, T.MapType) and isinstance(target, Map):
        return _map(value, physical, target, inner)
    if isinstance(physical, T.StructType) and isinstance(target, Map):
        return _map_from_fields(value, physical, target, inner)
    leaf = _leaf(value, physical, target, rules)
    return Cast(leaf, value.isNotNull() & leaf.isNull())


# --------------------------------------------------------------------- nested values


def _struct(value: Column, physical: T.StructType, target: Struct, rules: Rules) -> Cast:
    """Cast by the names of the fields, as Spark casts a struct by their positions.

    A field that was not delivered is NULL; names are compared without regard to case, as those of columns are.
    """
    delivered = {field.name.lower(): field for field in physical.fields}
    fields, is_bad = [], F.lit(False)
    for name, inner in target.fields:
        part = Cast(F.lit(None).cast(inner.ddl()), F.lit(False))
        if field := delivered.get(name.lower()):
            part = cast(value[field.name], field.dataType, inner, rules)
        fields.append(part.value.alias(name))
        is_bad = is_bad | part.is_bad
    return Cast(F.when(value.isNotNull(), F.struct(*fields)), is_bad)


def _array(value: Column, physical: T.ArrayType, target: Array, rules: Rules) -> Cast:
    def element(inner: Column) -> Cast:
        return cast(inner, physical.elementType, target.element, rules)

    is_bad = F.exists(value, lambda inner: element(inner).is_bad)
    return Cast(F.transform(value, lambda inner: element(inner).value), F.coalesce(is_bad, F.lit(False)))


def _map(value: Column, physical: T.MapType, target: Map, rules: Rules) -> Cast:
    keys = _array(F.map_keys(value), T.ArrayType(physical.keyType), Array(target.key), rules)
    values = _array(F.map_values(value), T.ArrayType(physical.valueType), Array(target.value), rules)
    return _entries(keys, values)


def _map_from_fields(value: Column, physical: T.StructType, target: Map, rules: Rules) -> Cast:
    """Cast the fields of a struct to entries: Spark reads structs from JSON files, whatever their objects represent.

    A field that is NULL is no entry: one that an object lacks comes as NULL too.
    """
    parts, is_bad = [], F.lit(False)
    for field in physical.fields:
        part = cast(value[field.name], field.dataType, target.value, rules)
        entry = F.struct(F.lit(field.name).alias("key"), part.value.alias("value"))
        parts.append(F.when(value[field.name].isNotNull(), entry))
        is_bad = is_bad | part.is_bad
    entries = F.when(value.isNotNull(), F.array_compact(F.array(*parts)))
    keys = _array(F.transform(entries, lambda e: e["key"]), T.ArrayType(T.StringType()), Array(target.key), rules)
    return _entries(keys, Cast(F.transform(entries, lambda e: e["value"]), is_bad))


def _entries(keys: Cast, values: Cast) -> Cast:
    """A map. Two keys that become one are bad too: Spark would fail, or drop one of them."""
    is_bad = keys.is_bad | (F.size(F.array_distinct(keys.value)) < F.size(keys.value))
    return Cast(F.when(~is_bad, F.map_from_arrays(keys.value, values.value)), is_bad | values.is_bad)


def _from_json(value: Column, target: DataType, rules: Rules) -> Cast:
    """Cast a JSON text, its leaves read as those of JSON files are.

    Text that is not JSON of that type is bad; Spark would keep a part of it. Nor may it close what is put around it:
    Spark would ignore what follows. No text closes an object and an array alike.
    """
    delivered = _json_type(target)
    text = with_quoted_numbers(value)
    parsed = F.from_json(
        F.concat(F.lit('{"v":'), text, F.lit("}")),
        T.StructType([T.StructField("v", delivered), T.StructField(_NO_JSON, T.StringType())]),
        {"columnNameOfCorruptRecord": _NO_JSON},
    )
    is_one_value = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    whole = F.when(parsed[_NO_JSON].isNull() & is_one_value, parsed["v"])
    inner = cast(whole, delivered, target, rules)
    return Cast(inner.value, (value.isNotNull() & whole.isNull()) | inner.is_bad)


def with_quoted_numbers(text: Column) -> Column:
    """Return JSON text with each number as a string.

    Spark's parser of texts, unlike its reader of files, would write 1.50 as 1.5, and round a number with more digits
    than a double has.
    """
    return F.regexp_replace(text, F.lit(_UP_TO_A_NUMBER), F.lit('$1"$2"'))


def _json_type(target: DataType) -> T.DataType:
    """The type in which Spark's JSON reader is asked for a value: text, except for what JSON has in Base64.

    Asked for a time it would not know the source's zone, and take a time of day for one of today.
    """
    match target:
        case Struct(fields=fields):
            return T.StructType([T.StructField(name, _json_type(inner)) for name, inner in fields])
        case Array(element=element):
            return T.ArrayType(_json_type(element))
        case Map(value=value):
            return T.MapType(T.StringType(), _json_type(value))
        case _:
            return T.BinaryType() if target.ddl() == "binary" else T.StringType()


# --------------------------------------------------------------------------- leaves


def _leaf(value: Column, physical: T.DataType, target: DataType, rules: Rules) -> Column:
    """The value as a type without parts; NULL where it is bad."""
    name = target.ddl()
    if isinstance(target, Decimal):
        return _decimal(value, physical, target, rules)
    if name in _INTEGERS:
        return _integer(value, physical, name, rules)
    if name in _SIGNIFICANT_DIGITS:
        return _floating(value, physical, name, rules)
    if name in _TIMES:
        return _within_years(_TIMES[name](value, physical, rules), name)
    if name == "string":
        return _text(value, physical)
    if name == "boolean" and isinstance(physical, T.NumericType):
        return _unless_lossy(value, physical, name)
    return value.try_cast(name)


def _text(value: Column, physical: T.DataType) -> Column:
    """Any value as text; bytes are read as UTF-8, and a nested value becomes JSON.

    A cast of a nested value would omit the names of its fields, so that different values became equal.
    """
    if isinstance(physical, T.StructType | T.ArrayType | T.MapType):
        return F.to_json(value)
    if isinstance(physical, T.BinaryType):
        return F.try_validate_utf8(value.cast("string"))
    text = value.try_cast("string")
    return F.try_validate_utf8(text) if isinstance(physical, T.StringType) else text


def _unless_lossy(value: Column, physical: T.DataType, ddl: str) -> Column:
    """The value as a number of another type; NULL if it is another number there.

    Spark makes the largest bigint of 2**63 as a floating number, which never equals it.
    """
    number = value.try_cast(ddl)
    is_same = number.try_cast(physical.simpleString()) == value
    names = {ddl, physical.simpleString()}
    if "bigint" in names and names & set(_SIGNIFICANT_DIGITS):
        is_same = is_same & ((number if ddl == "bigint" else value) != F.lit(_LONGEST))
    return F.when(is_same, number)


def _is_time(physical: T.DataType) -> bool:
    return isinstance(physical, T.TimestampType | T.TimestampNTZType)


def _null(ddl: str) -> Column:
    return F.lit(None).cast(ddl)


def _integer(value: Column, physical: T.DataType, ddl: str, rules: Rules) -> Column:
    if _is_time(physical):
        return _null(ddl)
    if isinstance(physical, T.FractionalType):
        return F.round(value).try_cast(ddl) if rules.is_rounded else _unless_lossy(value, physical, ddl)
    if isinstance(physical, T.StringType) and rules.is_rounded:
        return value.try_cast("decimal(38,0)").try_cast(ddl)
    return value.try_cast(ddl)


def _decimal(value: Column, physical: T.DataType, target: Decimal, rules: Rules) -> Column:
    """The value as a decimal; of a floating number the shortest that reads back as it: 0.1, not its binary value."""
    ddl = target.ddl()
    if _is_time(physical):
        return _null(ddl)
    if isinstance(physical, T.FloatType | T.DoubleType):
        value, physical = value.cast("string"), T.StringType()
    if isinstance(physical, T.StringType) and not rules.is_rounded:
        return F.when(_fits_scale(value, target.scale), value.try_cast(ddl))
    if isinstance(physical, T.DecimalType) and physical.scale > target.scale and not rules.is_rounded:
        return _unless_lossy(value, physical, ddl)
    return value.try_cast(ddl)


def _fits_scale(text: Column, scale: int) -> Column:
    """Whether the number in the text has no more digits after its point, but for zeros; any text without a number."""
    digits = F.regexp_extract(text, r"([\d.]+)", 1)
    after_point = F.when(F.instr(digits, ".") > 0, F.length(digits) - F.instr(digits, ".")).otherwise(0)
    all_digits = F.regexp_replace(digits, r"\.", "")
    significant = F.regexp_replace(all_digits, "0+$", "")
    exponent = F.coalesce(F.regexp_extract(text, r"[eE]([+-]?\d+)", 1).try_cast("int"), F.lit(0)).cast("bigint")
    needed = after_point - (F.length(all_digits) - F.length(significant)) - exponent
    is_plain = text.rlike(rf"^\s*[+-]?\d*(\.\d{{0,{scale}}}0*)?\s*$")
    return is_plain | (significant == "") | (needed <= scale)


def _floating(value: Column, physical: T.DataType, ddl: str, rules: Rules) -> Column:
    if _is_time(physical):
        return _null(ddl)
    if isinstance(physical, T.StringType):
        return _floating_from_text(value, ddl, rules)
    number = value.try_cast(ddl)
    if rules.is_rounded:
        return F.when(~_is_infinite(number) | (_is_infinite(value.try_cast("double"))), number)
    if isinstance(physical, T.IntegralType):
        return _unless_lossy(value, physical, ddl)
    if isinstance(physical, T.DoubleType) and ddl == "float":
        # By the shortest texts: 0.1 is 0.1 in both.
        return F.when(number.cast("string") == value.cast("string"), number)
    if isinstance(physical, T.DecimalType):
        return F.when(number.cast("string").try_cast(physical.simpleString()) == value, number)
    return number


def _floating_from_text(text: Column, ddl: str, rules: Rules) -> Column:
    """The nearest number, if the type can have its digits and, of a whole number, the number itself.

    Text beyond the type's range is bad, though Spark has infinity or zero for it.
    """
    number = text.try_cast(ddl)
    is_out = _is_infinite(number) & ~text.rlike("(?i)inf")
    is_lost = (number == 0) & text.rlike("^[^eE]*[1-9]")
    is_sound = ~text.rlike(_LITERAL_OF_JAVA) & ~is_out & ~is_lost
    if rules.is_rounded:
        return F.when(is_sound, number)
    most = _SIGNIFICANT_DIGITS[ddl]
    digits = F.regexp_replace(F.regexp_replace(text, r"[eE].*$|\D", ""), "^0+|0+$", "")
    whole = text.try_cast("bigint")
    is_exact = (F.length(digits) <= most) & (whole.isNull() | (number.try_cast("bigint") == whole))
    return F.when(is_sound & ((F.length(text) < most - 2) | is_exact), number)


def _is_infinite(number: Column) -> Column:
    return F.abs(number) == F.lit(float("inf"))


# ---------------------------------------------------------------------- dates and times


def _within_years(value: Column, ddl: str) -> Column:
    """The date or time; NULL outside of the years 1 to 9999, which Python, pandas and Arrow cannot all hold."""
    first, last = F.lit("0001-01-01"), F.lit("9999-12-31" if ddl == "date" else "9999-12-31 23:59:59.999999")
    return F.when((value >= first.cast(ddl)) & (value <= last.cast(ddl)), value)


def _date(value: Column, physical: T.DataType, rules: Rules) -> Column:
    if isinstance(physical, T.DateType):
        return value
    if isinstance(physical, T.StringType) and not (rules.pattern or rules.unit):
        if rules.is_rounded:
            return F.when(value.rlike(_DAY + r"([T ].*)?$"), value.try_cast("timestamp_ntz").cast("date"))
        return F.when(value.rlike(_DAY + _MIDNIGHT), value.try_cast("date"))
    if _is_time(physical):
        moment = value
    elif rules.unit:
        moment = _from_epoch(value, physical, rules)
    elif isinstance(physical, T.StringType):
        moment = _by_pattern(value, str(rules.pattern), rules)
    else:
        return value.try_cast("date")  # which Spark refuses: such a column fits no date at all
    day = moment.cast("date")
    return day if rules.is_rounded else F.when(day.cast("timestamp_ntz") == moment.cast("timestamp_ntz"), day)


def _timestamp(value: Column, physical: T.DataType, rules: Rules) -> Column:
    if isinstance(physical, T.TimestampType):
        return value
    if isinstance(physical, T.DateType | T.TimestampNTZType):
        return _to_utc(value.cast("timestamp"), rules.zone)
    if rules.unit:
        return _from_epoch(value, physical, rules)
    if not isinstance(physical, T.StringType):
        return _null("timestamp")
    if rules.pattern:
        return _instant_by_pattern(value, rules.pattern, rules)
    moment = _timely(value, rules).try_cast("timestamp")
    return moment if rules.zone == "UTC" else F.when(_has_zone(value), moment).otherwise(_to_utc(moment, rules.zone))


def _timestamp_ntz(value: Column, physical: T.DataType, rules: Rules) -> Column:
    """The time on the wall; text with a zone is bad, as the zone would be lost."""
    if _is_time(physical) or isinstance(physical, T.DateType):
        return value.cast("timestamp_ntz")
    if rules.unit:
        return _from_epoch(value, physical, rules).cast("timestamp_ntz")
    if not isinstance(physical, T.StringType):
        return _null("timestamp_ntz")
    if rules.pattern:
        return _by_pattern(value, rules.pattern, rules).cast("timestamp_ntz")
    return F.when(~_has_zone(value), _timely(value, rules).try_cast("timestamp_ntz"))


_TIMES: dict[str, Callable[[Column, T.DataType, Rules], Column]] = {
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}


def _timely(text: Column, rules: Rules) -> Column:
    """The text, if it begins with a whole day and has no digits beyond microseconds; else NULL.

    Spark takes a time of day without a date for one of today, and a year alone for its first day.
    """
    is_timely = text.rlike(_DAY + r"(?!\d)")
    return F.when(is_timely if rules.is_rounded else is_timely & ~text.rlike(_TOO_FINE), text)


def _has_zone(text: Column) -> Column:
    trimmed = F.trim(text)
    return trimmed.rlike(_ZONE_AT_END) & (F.length(trimmed) > 10)


def _to_utc(moment: Column, zone: str) -> Column:
    return moment if zone == "UTC" else F.to_utc_timestamp(moment, zone)


def _by_pattern(text: Column, pattern: str, rules: Rules) -> Column:
    """The moment that the text names by the pattern, in UTC where that has no zone."""
    moment = F.try_to_timestamp(text, F.lit(pattern))
    if rules.is_rounded or not reads_nanoseconds(pattern):
        return moment
    return F.when(~text.rlike(_TOO_FINE_BY_PATTERN), moment)


def _instant_by_pattern(text: Column, pattern: str, rules: Rules) -> Column:
    moment = _by_pattern(text, pattern, rules)
    if rules.zone == "UTC":
        return moment
    if not zone_letters(pattern):
        return _to_utc(moment, rules.zone)
    local = without_optional_zone(pattern)
    if local is None:
        return moment
    return F.coalesce(_to_utc(_by_pattern(text, local, rules), rules.zone), moment)


def _from_epoch(value: Column, physical: T.DataType, rules: Rules) -> Column:
    """The instant that is so many of the unit after 1970 in UTC, wherever it was counted."""
    digits = {"s": 6, "ms": 3, "us": 0}[str(rules.unit)]
    number = _decimal(value, physical, Decimal(25, digits), rules)
    return F.timestamp_micros((number * F.lit(10**digits)).try_cast("bigint"))
