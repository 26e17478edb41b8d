"""Times of statements and of reads, in milliseconds since 1970."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

RAW = "raw"
"""The time of a read that applies no statement."""
_RAW_NUMBER = -1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_CALENDAR = range(-62135596800000, 253402300800000)
"""The milliseconds of the years 1 to 9999."""
_MILLIS = re.compile(r"-?\d{1,18}", re.ASCII)
_DATE_TIME = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})(?:T(?P<time>\d{2}:\d{2}:\d{2})(?P<offset>Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)


def parse_millis(text: str, zone: str) -> int | None:
    """Return the time that a text means, None if it has another form (S12).

    Args:
        text: Milliseconds since 1970, a date, or a date and time with an optional offset.
        zone: The time zone of a time without an offset. A time that its clocks skip is read with the offset before.
    """
    if _MILLIS.fullmatch(text):
        return int(text) if int(text) in _CALENDAR else None
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None
    offset = (match["offset"] or "").replace("Z", "+00:00")
    try:
        return to_millis(datetime.fromisoformat(f"{match['day']}T{match['time'] or '00:00:00'}{_colon(offset)}"), zone)
    except (ValueError, OverflowError):
        return None


def to_millis(time: datetime, zone: str) -> int:
    """Return the milliseconds of a time; one without a zone is in the given zone."""
    instant = time.replace(tzinfo=ZoneInfo(zone)) if time.tzinfo is None else time
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def from_millis(millis: int) -> str:
    """Return milliseconds as a date, or as a date and time in UTC."""
    time = _EPOCH + timedelta(milliseconds=millis)
    text = time.replace(tzinfo=None).isoformat(timespec="milliseconds" if millis % 1000 else "seconds")
    return text.removesuffix("T00:00:00")


def read_time(value: object, zone: str, now: datetime) -> int | str | None:
    """Return the time of a read in milliseconds, or `RAW`; None for a value that is no time (S12).

    Args:
        value: Text in a form of `parse_millis`, `raw`, or the empty text for now; a date, a datetime, or milliseconds.
            None means now, -1 means `raw`.
        zone: The time zone of a time without an offset.
        now: The time of the read.
    """
    if isinstance(value, str):
        text = value.strip()
        value = RAW if text.casefold() == RAW else parse_millis(text, zone) if text else None
        if value is None and text:
            return None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value is None:
        value = now
    if isinstance(value, datetime):
        return to_millis(value, zone)
    if isinstance(value, int) and not isinstance(value, bool):
        return RAW if value == _RAW_NUMBER else value if value in _CALENDAR else None
    return RAW if value == RAW else None


def _colon(offset: str) -> str:
    return f"{offset[:3]}:{offset[3:]}" if offset and ":" not in offset else offset
