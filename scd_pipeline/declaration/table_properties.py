"""Properties of Delta tables that a declaration can set, and those that it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scd_pipeline.declaration.frozen import FrozenMapping, frozen_mapping

V_ORDER = "delta.parquet.vorder.enabled"
"""A property of tables in Microsoft Fabric. Delta Lake does not know it; a table stores it, without an effect."""

FILE_RETENTION, LOG_RETENTION = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
MIN_HOURS = 168
"""The shortest retention of files: readers of the last week may still need them."""
MIN_RETENTION_HOURS: Mapping[str, int] = {FILE_RETENTION: MIN_HOURS, LOG_RETENTION: 720}
"""The shortest retention by property. A load reads the last pipeline commit in the history of the table, and
maintenance repeats this commit before 30 days have passed."""

PACKAGE_PREFIX = "scd_pipeline."
"""The beginning of the names of the package's own properties."""
_RESERVED: Mapping[str, str] = {
    "delta.enabledeletionvectors": "loads replace rows by deletion vectors",
    "delta.appendonly": "loads replace rows of a dimension",
    "delta.columnmapping.mode": "a load sets it when it renames a column",
    "delta.minreaderversion": "Delta derives it from the features of the table",
    "delta.minwriterversion": "Delta derives it from the features of the table",
    "comment": "it is the option `description`",
    "location": "the warehouse determines it",
    "owner": "it is the option `owner`",
    "provider": "it is delta for each table",
}
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


def reserved_reason(name: str) -> str | None:
    """Return why a declaration cannot set the property of this name; None if it can."""
    if name.casefold().startswith(PACKAGE_PREFIX):
        return "the package stores its own state in properties with this prefix"
    return _RESERVED.get(name.casefold())


def property_texts(values: Any) -> Any:
    """Return properties as texts in a mapping that cannot change; anything else unchanged, for the checks to reject."""
    if not isinstance(values, Mapping):
        return frozen_mapping(values)
    return FrozenMapping({name: _text(value) for name, value in values.items()})


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    is_number = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
    return str(value) if is_number else value


def merged_properties(properties: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return both mappings in one: an entry of `others` overrides that of the same property, in any case."""
    names = {str(name).casefold() for name in others}
    return {**{name: value for name, value in properties.items() if str(name).casefold() not in names}, **others}


def log_retention_hours(properties: Mapping[str, str]) -> int:
    """Return the hours for which Delta retains the history of a table with these properties, by default 30 days.

    Delta rejects a longer retention of files. 0 if the interval has other units than `interval_hours` reads.
    """
    by_name = {name.casefold(): value for name, value in properties.items()}
    interval = by_name.get(LOG_RETENTION.casefold())
    return MIN_RETENTION_HOURS[LOG_RETENTION] if interval is None else interval_hours(interval)


def hours_interval(hours: int) -> str:
    """Return a number of hours as an interval, as the retention properties have it."""
    return f"interval {hours} hours"


def interval_hours(interval: str) -> int:
    """Return the hours of an interval in a property, such as `interval 30 days`, rounded up; 0 for other units."""
    tokens = interval.lower().removeprefix("interval").split()
    pairs = list(zip(tokens[::2], tokens[1::2], strict=False))
    if len(tokens) % 2 or not all(number.isdecimal() and unit.rstrip("s") in _SECONDS for number, unit in pairs):
        return 0
    seconds = sum(int(number) * _SECONDS[unit.rstrip("s")] for number, unit in pairs)
    return -(-seconds // 3_600)
