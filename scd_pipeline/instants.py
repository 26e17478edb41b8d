"""Times as instants in UTC, and as microseconds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def utc(moment: datetime) -> datetime:
    """The same instant in UTC; a time without a zone is UTC already (S1)."""
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def to_micros(moment: datetime) -> int:
    """The microseconds from the beginning of 1970 in UTC to a time."""
    return (utc(moment) - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """The time in UTC that is so many microseconds after the beginning of 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    """The same where there may be no time."""
    return None if micros is None else from_micros(micros)
