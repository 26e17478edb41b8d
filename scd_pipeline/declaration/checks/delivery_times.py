"""Checks of how the times of deliveries are read from paths and partitions (S1, S4)."""

from __future__ import annotations

import difflib
import zoneinfo

from scd_pipeline.declaration.checks.collect import ErrorCollector
from scd_pipeline.declaration.path_times import FORMS, form_problem, has_time_of_day, parse_time_of_day
from scd_pipeline.declaration.source import TIME_PLACEHOLDERS, Channel, split_placeholder
from scd_pipeline.texts import short_repr

_LOCAL_ZONES = ("localtime", "posixrules", "Factory")  # these differ from machine to machine


def check_time_zone(errors: ErrorCollector, field: str, name: str) -> None:
    """Check that a time zone has a name of the IANA database."""
    try:
        if name not in _LOCAL_ZONES:
            zoneinfo.ZoneInfo(name)
            return
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    near = difflib.get_close_matches(name, zoneinfo.available_timezones() - {*_LOCAL_ZONES}, n=1)
    fix = f"did you mean {near[0]}?" if near else "give a zone's name, such as UTC or Europe/Oslo"
    errors.add("INVALID_TIME_ZONE", field, f"{short_repr(name)} is not a time zone", fix)


def check_placeholder_form(errors: ErrorCollector, field: str, text: str) -> None:
    """Check the form of a placeholder in a path, such as `date:%Y%m%d`."""
    name, form = split_placeholder(text)
    if name in FORMS:
        problem = form_problem(form, has_time=name == "datetime")
        if problem is not None:
            errors.add("INVALID_PATTERN", field, *problem)
    elif ":" in text:
        problem_text = f"{{{name}}} is any name, so that {{{text}}} has no form"
        errors.add("PATH_PLACEHOLDER", field, problem_text, f"write {{{name}}}")


def check_delivery_times(errors: ErrorCollector, path: str, channel: Channel) -> None:
    """Check the options of the times that paths and partitions have."""
    if channel.partition_format is not None:
        _check_partition_format(errors, f"{path}.partition_format", channel)
    has_time = channel.partition is not None or channel.placeholder in TIME_PLACEHOLDERS
    if channel.delivery_timezone != "UTC":
        check_time_zone(errors, f"{path}.delivery_timezone", channel.delivery_timezone)
        if not has_time:
            problem = "no time is read from the path or from a partition"
            errors.add("NOT_APPLICABLE", f"{path}.delivery_timezone", problem, "remove it, or write {date} in the path")
    if channel.time_of_day is not None:
        _check_time_of_day(errors, f"{path}.time_of_day", channel)


def _check_partition_format(errors: ErrorCollector, field: str, channel: Channel) -> None:
    problem = form_problem(str(channel.partition_format), has_time=None)
    if problem is not None:
        errors.add("INVALID_PATTERN", field, *problem)
    if channel.partition is None:
        errors.add("OPTION_REQUIRED", field, "requires `partition`", "name the column in `partition`, or remove it")


def _check_time_of_day(errors: ErrorCollector, field: str, channel: Channel) -> None:
    if parse_time_of_day(str(channel.time_of_day)) is None:
        problem = f"{short_repr(channel.time_of_day)} is not a time of day"
        errors.add("NO_ISO_TIME", field, problem, 'write it as "23:59" or "23:59:59"')
    has_date = channel.partition is not None or channel.placeholder == "date"
    if not has_date or has_time_of_day(channel.partition_format or ""):
        problem = "no date without a time of day is read from the path or from a partition"
        errors.add("NOT_APPLICABLE", field, problem, "remove it, or write {date} in the path")
