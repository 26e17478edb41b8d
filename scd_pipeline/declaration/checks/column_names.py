"""Checks of the names of generated columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.column_names import (
    ATTRIBUTE_COLUMNS,
    OMITTABLE_COLUMNS,
    RESERVED_BY_DELTA,
    TABLE_COLUMNS,
    ColumnName,
)
from scd_pipeline.declaration.frozen import FrozenMapping
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, is_column_name
from scd_pipeline.texts import did_you_mean, short_repr

_NAME_RULE = COLUMN_NAME_RULE.replace("a name does not begin with `_`, and has", "a name has").partition(";")[0]


def check_table_names(errors: ErrorCollector, names: Any) -> Mapping[str, ColumnName]:
    """Return the valid names of the generated columns of a table, for later checks."""
    return _valid_names(errors, "column_names", names, TABLE_COLUMNS)


def check_attribute_names(errors: ErrorCollector, path: str, draft: Attribute) -> Mapping[str, ColumnName]:
    """Return the valid names of the generated columns of an attribute, for later checks."""
    field = f"{path}.column_names"
    names = _valid_names(errors, field, draft.column_names, ATTRIBUTE_COLUMNS)
    for column in names:
        if column not in _columns_of(draft) and isinstance(draft.scd, ScdType):
            problem = f"the attribute has no column `{column}`"
            errors.add("NOT_APPLICABLE", f"{field}.{column}", problem, _fix(column))
    return names


def _columns_of(draft: Attribute) -> tuple[str, ...]:
    if draft.scd is ScdType.ADD_ATTRIBUTE:
        return ("previous", "changed_at")
    if draft.scd is ScdType.HYBRID:
        return ("current", "previous") if draft.previous else ("current",)
    return ()


def _fix(column: str) -> str:
    return {
        "previous": "write scd: 3, or scd: 6 with `previous: true`, or remove it",
        "changed_at": "write scd: 3, or remove it",
        "current": "write scd: 6, or remove it",
    }[column]


def _valid_names(errors: ErrorCollector, path: str, names: Any, allowed: Collection[str]) -> Mapping[str, ColumnName]:
    if not isinstance(names, Mapping):
        errors.add(
            "INVALID_KIND", path, f"{short_repr(names)} is not a mapping", "write a mapping of columns to their names"
        )
        return FrozenMapping({})
    valid: dict[str, ColumnName] = {}
    for column, name in names.items():
        if column not in allowed:
            problem = f"{short_repr(column)} is not a generated column"
            errors.add("UNKNOWN_NAME", field_path(path, column), problem, did_you_mean(column, allowed))
        elif _is_name(errors, field_path(path, column), column, name):
            valid[column] = name
    return FrozenMapping(valid)


def _is_name(errors: ErrorCollector, field: str, column: str, name: Any) -> bool:
    if name is False:
        if column not in OMITTABLE_COLUMNS:
            errors.add("NOT_ALLOWED", field, "a table needs this column", "give it a name, or remove the option")
        return column in OMITTABLE_COLUMNS
    # Generated columns may begin with `_`, as they do in tables of other tools.
    if not (isinstance(name, str) and is_column_name(name.lstrip("_"))):
        errors.add("INVALID_NAME", field, f"{short_repr(name)} cannot be a name", _NAME_RULE)
        return False
    if name.casefold() in RESERVED_BY_DELTA:
        errors.add("NAME_IN_USE", field, f"{name} is a column of Delta's own", "choose another name")
        return False
    return True
