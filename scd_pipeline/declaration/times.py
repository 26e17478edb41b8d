"""Times in a declaration: ISO text in UTC, with up to six digits after the second (S1)."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from typing import Any

from scd_pipeline.instants import to_instant

OPEN_END = "9999-12-31 23:59:59"
EARLIEST_TIME = "0001-01-01 00:00:00"
NULL_OPEN_END = "null"
"""The declared open end of a table in which a current version has NULL in `effective_to`."""
PROFILE_OPEN_END = "profile"
"""The open end if none is declared: that of the profile."""
TIME_FORM = "write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59"

_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?(?:Z|\+00:00)?)?", re.ASCII)


def parse_time(text: object) -> datetime | None:
    """Return the text as a time in UTC, None if it is not a time."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    *fields, fraction = match.groups()
    numbers = [int(field or 0) for field in fields]
    try:
        return datetime(*numbers, int((fraction or "").ljust(6, "0")), tzinfo=timezone.utc)  # type: ignore[arg-type, misc]
    except ValueError:
        return None


def canonical_time(value: Any) -> Any:
    """Return a text, date or datetime as canonical text, which is the same for all notations of a time.

    Any other value is returned unchanged, for the checks to reject.
    """
    time = to_instant(value) if isinstance(value, date) else parse_time(value)
    return value if time is None else time.replace(tzinfo=None).isoformat(" ")


def to_datetime(text: str) -> datetime:
    """Return a validated text as a time in UTC."""
    time = parse_time(text)
    assert time is not None, text  # validated when the declaration was created
    return time
