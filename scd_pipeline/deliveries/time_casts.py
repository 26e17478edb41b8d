"""Cast delivered values to dates and times without a loss of information (S1, S26)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration.patterns import reads_nanoseconds, without_optional_zone, zone_letters
from scd_pipeline.declaration.types import Decimal
from scd_pipeline.deliveries.cast_options import CastOptions
from scd_pipeline.deliveries.number_casts import is_time, null, to_decimal

TIME_TYPES = ("date", "timestamp", "timestamp_ntz")
# A day, and behind it a time that is midnight in UTC.
_DAY = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
_MIDNIGHT = r"([T ]0?0:0?0(:0?0(\.0*)?)?(Z|\+00:?00)?)?\s*$"
_TOO_FINE = r"\.\d{6}\d*[1-9]"
# The fraction may also follow a comma, or directly the digits of day and time.
_TOO_FINE_BY_PATTERN = r"[.,]\d{6}\d*[1-9]|\d{20}\d*[1-9]"
# After a time of day: an offset, or the name of a zone; not the T between date and hour.
_ZONE_AT_END = r"(?i)\d\s*((?!t\d)[a-z][a-z0-9_/+-]*|[+-]\d{1,2}(:?\d{2}){0,2})\s*$"


def to_time(value: Column, physical: T.DataType, ddl: str, options: CastOptions) -> Column:
    """Cast a value to one of `TIME_TYPES`; NULL if it is bad."""
    match ddl:
        case "date":
            time = _to_date(value, physical, options)
        case "timestamp":
            time = _to_timestamp(value, physical, options)
        case _:
            time = _to_timestamp_ntz(value, physical, options)
    return _within_years(time, ddl)


def _within_years(value: Column, ddl: str) -> Column:
    """Return the date or time; NULL outside of the years 1 to 9999, the range of Python, pandas and Arrow."""
    first, last = F.lit("0001-01-01"), F.lit("9999-12-31" if ddl == "date" else "9999-12-31 23:59:59.999999")
    return F.when((value >= first.cast(ddl)) & (value <= last.cast(ddl)), value)


def _to_date(value: Column, physical: T.DataType, options: CastOptions) -> Column:
    if isinstance(physical, T.DateType):
        return value
    if isinstance(physical, T.StringType) and not (options.pattern or options.unit):
        if options.is_rounded:
            return F.when(value.rlike(_DAY + r"([T ].*)?$"), value.try_cast("timestamp_ntz").cast("date"))
        return F.when(value.rlike(_DAY + _MIDNIGHT), value.try_cast("date"))
    if is_time(physical):
        time = value
    elif options.unit:
        time = _from_epoch(value, physical, options)
    elif isinstance(physical, T.StringType):
        time = _by_pattern(value, str(options.pattern), options)
    else:
        return value.try_cast("date")  # Spark rejects it: no value of the column's type is a date
    day = time.cast("date")
    return day if options.is_rounded else F.when(day.cast("timestamp_ntz") == time.cast("timestamp_ntz"), day)


def _to_timestamp(value: Column, physical: T.DataType, options: CastOptions) -> Column:
    if isinstance(physical, T.TimestampType):
        return value
    if isinstance(physical, T.DateType | T.TimestampNTZType):
        return _to_utc(value.cast("timestamp"), options.zone)
    if options.unit:
        return _from_epoch(value, physical, options)
    if not isinstance(physical, T.StringType):
        return null("timestamp")
    if options.pattern:
        return _instant_by_pattern(value, options.pattern, options)
    time = _complete_time(value, options).try_cast("timestamp")
    return time if options.zone == "UTC" else F.when(_has_zone(value), time).otherwise(_to_utc(time, options.zone))


def _to_timestamp_ntz(value: Column, physical: T.DataType, options: CastOptions) -> Column:
    """Cast a value to a local time; text with a zone is bad, as the zone would be lost."""
    if is_time(physical) or isinstance(physical, T.DateType):
        return value.cast("timestamp_ntz")
    if options.unit:
        return _from_epoch(value, physical, options).cast("timestamp_ntz")
    if not isinstance(physical, T.StringType):
        return null("timestamp_ntz")
    if options.pattern:
        return _by_pattern(value, options.pattern, options).cast("timestamp_ntz")
    return F.when(~_has_zone(value), _complete_time(value, options).try_cast("timestamp_ntz"))


def _complete_time(text: Column, options: CastOptions) -> Column:
    """Return the text if it begins with a whole day and has no digits beyond microseconds; otherwise NULL.

    Spark reads a time of day without a date as one of today, and a year alone as its first day.
    """
    has_day = text.rlike(_DAY + r"(?!\d)")
    return F.when(has_day if options.is_rounded else has_day & ~text.rlike(_TOO_FINE), text)


def _has_zone(text: Column) -> Column:
    trimmed = F.trim(text)
    return trimmed.rlike(_ZONE_AT_END) & (F.length(trimmed) > 10)


def _to_utc(time: Column, zone: str) -> Column:
    return time if zone == "UTC" else F.to_utc_timestamp(time, zone)


def _by_pattern(text: Column, pattern: str, options: CastOptions) -> Column:
    """Return the time in a text of a pattern, in UTC if the pattern has no zone."""
    time = F.try_to_timestamp(F.trim(text), F.lit(pattern.strip(" ")))
    if options.is_rounded or not reads_nanoseconds(pattern):
        return time
    return F.when(~text.rlike(_TOO_FINE_BY_PATTERN), time)


def _instant_by_pattern(text: Column, pattern: str, options: CastOptions) -> Column:
    time = _by_pattern(text, pattern, options)
    if options.zone == "UTC":
        return time
    if not zone_letters(pattern):
        return _to_utc(time, options.zone)
    local = without_optional_zone(pattern)
    if local is None:
        return time
    return F.coalesce(_to_utc(_by_pattern(text, local, options), options.zone), time)


def _from_epoch(value: Column, physical: T.DataType, options: CastOptions) -> Column:
    """Return the instant that is a number of units after 1970 in UTC, whatever the zone of the source."""
    digits = {"s": 6, "ms": 3, "us": 0}[str(options.unit)]
    number = to_decimal(value, physical, Decimal(25, digits), options)
    return F.timestamp_micros((number * F.lit(10**digits)).try_cast("bigint"))
