"""Points in time as a declaration writes them: ISO, UTC, up to microseconds (S1)."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from typing import Any

from scd_pipeline.instants import to_instant

OPEN_END = "9999-12-31 23:59:59"
TIME_FORM = "write a UTC time as 2024-01-31 or 2024-01-31 23:59:59"

_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?(?:Z|\+00:00)?)?", re.ASCII)


def parse_time(text: object) -> datetime | None:
    """The moment that the text names, with its zone (UTC); None where it names none."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    *parts, fraction = match.groups()
    numbers = [int(part or 0) for part in parts]
    try:
        return datetime(*numbers, int((fraction or "").ljust(6, "0")), tzinfo=timezone.utc)  # type: ignore[arg-type, misc]
    except ValueError:
        return None


def canonical_time(value: Any) -> Any:
    """Return a time, given as text, date or datetime, as the one text that all declarations of it store.

    Any other value is returned unchanged, for the checks to reject.
    """
    time = to_instant(value) if isinstance(value, date) else parse_time(value)
    return value if time is None else time.replace(tzinfo=None).isoformat(" ")


def moment(text: str) -> datetime:
    """The moment that a checked text names, with its zone (UTC)."""
    found = parse_time(text)
    assert found is not None, text  # checked when the dimension was made
    return found
