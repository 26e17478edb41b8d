"""Checks of the declaration of a timed table (S28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.checks.delivery_times import check_time_zone
from scd_pipeline.declaration.defaults import expected_default
from scd_pipeline.declaration.names import TABLE_NAME_RULE, is_table_name
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.declaration.yaml.options import BASE, BASE_COLUMN, TIMED_TABLE
from scd_pipeline.errors import DeclarationError
from scd_pipeline.texts import did_you_mean, short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.timed_table import Base, BaseColumn, TimedTable

BASE_FORMATS = ("parquet", "avro", "delta", "csv", "json")
LOGS = ("file", "table")
_FORMATS_WITHOUT_TYPES = ("csv", "json")
_RESERVED = "_scd_"


def check_timed_table(table: TimedTable) -> None:
    """Raise one DeclarationError with all errors of the timed table, if there are any."""
    is_named = isinstance(table.name, str) and is_table_name(table.name)
    errors = ErrorCollector(table.name if is_named else f"timed table {short_repr(table.name)}")
    draft = errors.check_kinds("", table, TIMED_TABLE)
    if not is_named:
        problem = f"{short_repr(table.name)} cannot be the name of a table"
        errors.add("INVALID_NAME", "timed_table", problem, TABLE_NAME_RULE)
    errors.choice("log", draft.log, LOGS)
    if draft.log == "table" and draft.updates:
        problem = "names a file, and the log is a table"
        errors.add("CONFLICTING_OPTIONS", "updates", problem, "remove it, or remove `log`")
    check_time_zone(errors, "timezone", draft.timezone)
    base: Any = table.base
    if not hasattr(base, "columns"):
        problem = f"{short_repr(base)} is not a base"
        errors.add("INVALID_KIND", "base", problem, "give a Base, or its path")
    else:
        _check_base(errors, base)
        _check_key(errors, draft)
    errors.raise_if_any()


def _check_base(errors: ErrorCollector, base: Base) -> None:
    draft = errors.check_kinds("base", base, BASE)
    path: Any = base.path
    if not isinstance(path, str):
        errors.add("INVALID_KIND", "base.path", f"{short_repr(path)} is not text", "give text")
    elif not base.path.strip():
        errors.add("MISSING_VALUE", "base.path", "is missing", "write the path of the files or of the Delta table")
    if not draft.format and not errors.has("base.path"):
        fix = f"write one of {', '.join(BASE_FORMATS)}"
        errors.add("MISSING_VALUE", "base.format", "the path has no suffix that names a format", fix)
    elif draft.format:
        errors.choice("base.format", draft.format, BASE_FORMATS)
    if base.format in _FORMATS_WITHOUT_TYPES and not base.columns:
        problem = f"{base.format} files have no types"
        errors.add("OPTION_REQUIRED", "base.columns", problem, "declare the columns with their types")
    names: set[str] = set()
    for name, column in base.columns.items():
        path = field_path("base.columns", name)
        _check_column_name(errors, path, name)
        if str(name).casefold() in names:
            errors.add("NAMED_TWICE", path, "occurs twice, as case is ignored", "remove one")
        names.add(str(name).casefold())
        _check_column(errors, path, column)


def _check_column_name(errors: ErrorCollector, path: str, name: object) -> None:
    if not (isinstance(name, str) and name and name.isprintable() and not name.casefold().startswith(_RESERVED)):
        fix = f"a name is printable text, and does not begin with `{_RESERVED}`"
        errors.add("INVALID_NAME", path, f"{short_repr(name)} cannot be the name of a column", fix)


def _check_column(errors: ErrorCollector, path: str, column: BaseColumn) -> None:
    if not hasattr(column, "default"):
        errors.add("INVALID_KIND", path, f"{short_repr(column)} is not a column", "give a type, or a BaseColumn")
        return
    draft = errors.check_kinds(path, column, BASE_COLUMN)
    try:
        data_type = parse_type(column.type)
    except DeclarationError as error:
        (type_error,) = error.errors
        errors.add(type_error.code, path, type_error.problem, type_error.fix)
        return
    expected = None if draft.default is None else expected_default(data_type, draft.default)
    if expected is not None:
        problem = f"{short_repr(draft.default)} does not fit type {data_type.ddl()}"
        errors.add("INVALID_DEFAULT", field_path(path, "default"), problem, f"give {expected}")


def _check_key(errors: ErrorCollector, draft: TimedTable) -> None:
    errors.unique("business_key", draft.business_key)
    columns = {str(name).casefold() for name in draft.base.columns}
    for name in draft.business_key:
        if columns and name.casefold() not in columns:
            fix = did_you_mean(name, draft.base.columns)
            errors.add("UNKNOWN_NAME", "business_key", f"{short_repr(name)} is not a column of the base", fix)
