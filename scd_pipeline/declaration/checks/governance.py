"""Checks of sign-offs, expected values, numbers of years, and table properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.checks.collect import NO_VERSIONS, ErrorCollector, field_path, lacks_windows
from scd_pipeline.declaration.governance import SIGN_OFF_ROLES, ExpectedValue, SignOff
from scd_pipeline.declaration.table_properties import (
    FILE_RETENTION,
    LOG_RETENTION,
    MIN_RETENTION_HOURS,
    interval_hours,
    log_retention_hours,
    merged_properties,
    reserved_reason,
)
from scd_pipeline.declaration.times import TIME_FORM, parse_time
from scd_pipeline.declaration.yaml.options import Kind
from scd_pipeline.texts import did_you_mean, short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

_DATE_FORM = "write a date such as 2024-01-31"
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)


def check_governance(errors: ErrorCollector, draft: Dimension) -> None:
    """Check what people approve and verify about a dimension."""
    for role, sign_off in _entries(errors, "sign_offs", draft.sign_offs):
        _check_sign_off(errors, role, sign_off)
    for name, expected in _entries(errors, "expected_values", draft.expected_values):
        _check_expected_value(errors, field_path("expected_values", name), expected)
    if draft.expected_values and lacks_windows(errors, draft):
        errors.add("NOT_APPLICABLE", "expected_values", NO_VERSIONS, "remove it")
    for option in ("audit_retention_years", "archive_after_years"):
        _check_years(errors, option, getattr(draft, option))
    if draft.product_card and not _LINK.fullmatch(draft.product_card):
        problem = f"{short_repr(draft.product_card)} is not an address"
        errors.add("INVALID_LINK", "product_card", problem, "write one that begins with https:// or http://")


def _check_years(errors: ErrorCollector, option: str, years: Any) -> None:
    if years is not None and not (isinstance(years, int) and years >= 1):
        problem = f"{short_repr(years)} is not a whole number of at least 1"
        errors.add("OUT_OF_RANGE", option, problem, "give the number of years, such as 7")


def check_table_properties(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that a declaration may set the properties of its tables, and that retentions are long enough."""
    table: Any = draft.table_properties
    history: Any = draft.history_table_properties
    _check_properties(errors, "table_properties", table, table)
    option = "history_table_properties"
    if history and not draft.history_table:
        errors.add("NOT_APPLICABLE", option, "the dimension has no history table", "write `history_table: true`")
    elif isinstance(table, Mapping) and isinstance(history, Mapping):
        _check_properties(errors, option, history, merged_properties(table, history))
        _check_inherited_retention(errors, option, table, history)
    else:
        _entries(errors, option, history)


def _check_inherited_retention(
    errors: ErrorCollector, option: str, table: Mapping[Any, Any], history: Mapping[Any, Any]
) -> None:
    """Check the retention of files that a history table has from the dimension's table, with a log of its own."""
    fields = {str(name).casefold(): field_path(option, str(name)) for name in history}
    inherited = {str(name).casefold(): value for name, value in table.items()}
    files, log = FILE_RETENTION.casefold(), LOG_RETENTION.casefold()
    if log in fields and files not in fields and isinstance(inherited.get(files), str):
        _check_file_retention(errors, fields[log], inherited[files], merged_properties(table, history))


def _check_properties(errors: ErrorCollector, option: str, declared: Any, properties: Any) -> None:
    """Check the properties that an option declares; `properties` are all that its table gets."""
    seen: dict[str, str] = {}
    for name, value in _entries(errors, option, declared):
        field = field_path(option, name)
        if not (isinstance(name, str) and name.strip() and isinstance(value, str)):
            problem = f"{short_repr(name)}: {short_repr(value)} is not a name with text"
            errors.add("INVALID_KIND", field, problem, "write a mapping of property names to text")
            continue
        reason = reserved_reason(name)
        if reason is not None:
            errors.add("NOT_ALLOWED", field, f"cannot be declared: {reason}", "remove it")
        first = seen.setdefault(name.casefold(), name)
        if first != name:
            errors.add("NAMED_TWICE", field, f"is the same property as {first}", "remove one")
        _check_retention(errors, field, name, value)
        if name.casefold() == FILE_RETENTION.casefold() and not errors.has(field):
            _check_file_retention(errors, field, value, properties)


def _check_file_retention(errors: ErrorCollector, field: str, value: str, properties: Mapping[str, str]) -> None:
    """Check that files are not retained longer than the history of the table, which Delta rejects."""
    texts = {name: text for name, text in properties.items() if isinstance(name, str) and isinstance(text, str)}
    hours = interval_hours(value)
    log_hours = max(log_retention_hours(texts), MIN_RETENTION_HOURS[LOG_RETENTION])
    if hours > log_hours:
        problem = f"{short_repr(value)} is longer than the {log_hours} hours of `{LOG_RETENTION}`, which Delta rejects"
        errors.add("OUT_OF_RANGE", field, problem, f"declare `{LOG_RETENTION}: interval {hours} hours`, or more")


def _check_retention(errors: ErrorCollector, field: str, name: str, value: str) -> None:
    least = next((hours for other, hours in MIN_RETENTION_HOURS.items() if other.casefold() == name.casefold()), 0)
    if interval_hours(value) < least:
        problem = f"{short_repr(value)} is not a retention of {least} hours or more, which loads and readers need"
        errors.add("OUT_OF_RANGE", field, problem, f"write `interval {least} hours`, or more hours, days or weeks")


def _entries(errors: ErrorCollector, field: str, values: Any) -> list[tuple[Any, Any]]:
    """Return the entries of a mapping; none for a value of another kind, which is an error."""
    if isinstance(values, Mapping):
        return list(values.items())
    errors.add("INVALID_KIND", field, f"{short_repr(values)} is not a mapping", "write a mapping of names to values")
    return []


def _check_sign_off(errors: ErrorCollector, role: Any, sign_off: Any) -> None:
    field = field_path("sign_offs", role)
    if role not in SIGN_OFF_ROLES:
        problem = f"{short_repr(role)} is not a role that signs off"
        errors.add("UNKNOWN_NAME", field, problem, did_you_mean(role, SIGN_OFF_ROLES))
        return
    if not isinstance(sign_off, SignOff):
        errors.add("INVALID_KIND", field, f"{short_repr(sign_off)} is not a sign-off", "give a SignOff")
        return
    _check_text(errors, f"{field}.by", sign_off.by, "name the person or the team")
    if sign_off.date == "":
        errors.add("MISSING_VALUE", f"{field}.date", "is missing", _DATE_FORM)
    elif parse_time(sign_off.date) is None or len(sign_off.date) != len("2024-01-31"):
        errors.add("NO_ISO_TIME", f"{field}.date", f"{short_repr(sign_off.date)} is not a date", _DATE_FORM)


def _check_expected_value(errors: ErrorCollector, field: str, expected: Any) -> None:
    if not isinstance(expected, ExpectedValue):
        errors.add("INVALID_KIND", field, f"{short_repr(expected)} is not an expected value", "give an ExpectedValue")
        return
    if expected.as_of == "":
        errors.add("MISSING_VALUE", f"{field}.as_of", "is missing", TIME_FORM)
    elif parse_time(expected.as_of) is None:
        errors.add("NO_ISO_TIME", f"{field}.as_of", f"{short_repr(expected.as_of)} is not a time", TIME_FORM)
    _check_text(errors, f"{field}.expression", expected.expression, "write an aggregate in SQL, such as count(*)")
    value: Any = expected.value
    if value is None:
        errors.add("MISSING_VALUE", f"{field}.value", "is missing", "write the value of the expression")
    elif not Kind.SCALAR.accepts(value):
        problem = f"{short_repr(value)} is not {Kind.SCALAR.value}"
        errors.add("INVALID_KIND", f"{field}.value", problem, "write one of them")


def _check_text(errors: ErrorCollector, field: str, text: Any, fix: str) -> None:
    if not isinstance(text, str):
        errors.add("INVALID_KIND", field, f"{short_repr(text)} is not text", fix)
    elif not text.strip():
        errors.add("MISSING_VALUE", field, "is missing", fix)
