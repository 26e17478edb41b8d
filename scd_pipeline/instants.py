"""Conversion of times to UTC and to microseconds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def to_utc(time: datetime) -> datetime:
    """Return the same instant in UTC; a time without a zone is taken as UTC (S1)."""
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)


def to_micros(time: datetime) -> int:
    """Return the microseconds since 1970-01-01 00:00 UTC."""
    return (to_utc(time) - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """Return the UTC time that is this many microseconds after 1970-01-01 00:00 UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    """Return `from_micros`, or None for None."""
    return None if micros is None else from_micros(micros)
