"""Conversion of times to UTC and to microseconds."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ISO = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"([ T](?P<minute>\d{2}:\d{2})(:(?P<second>\d{2})(\.(?P<fraction>\d{1,6}))?)?(?P<zone>Z|[+-]\d{2}:\d{2})?)?",
    re.ASCII,
)


def to_utc(time: datetime) -> datetime:
    """Return the same instant in UTC; a time without a zone is interpreted as UTC (S1)."""
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)


def to_instant(value: object) -> datetime | None:
    """Return a datetime, a date or an ISO text as a time in UTC; None for a value that is none of them (S1)."""
    if isinstance(value, str):
        value = _parse_iso(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value != value:  # pandas' missing time is a datetime that differs from itself
        return None
    try:
        return to_utc(value)
    except OverflowError:  # the zone moves it out of the years 1 to 9999
        return None


def _parse_iso(text: str) -> datetime | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    zone = "+00:00" if match["zone"] in (None, "Z") else match["zone"]
    fraction = (match["fraction"] or "").ljust(6, "0")
    try:
        return datetime.fromisoformat(
            f"{match['day']}T{match['minute'] or '00:00'}:{match['second'] or '00'}.{fraction}{zone}"
        )
    except ValueError:
        return None


def time_name(time: datetime) -> str:
    """Return a time as the name of a delivery: a date where it is one."""
    return time.replace(tzinfo=None).isoformat().removesuffix("T00:00:00")


def to_micros(time: datetime) -> int:
    """Return the microseconds since 1970-01-01 00:00 UTC."""
    return (to_utc(time) - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """Return the UTC time that is this many microseconds after 1970-01-01 00:00 UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    """Return `from_micros`, or None for None."""
    return None if micros is None else from_micros(micros)
