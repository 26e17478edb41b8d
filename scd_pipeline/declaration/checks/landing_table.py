"""Checks of a landing table (S28, S38)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.landing_rows import DISPOSITIONS, ROW_COLUMNS, SORT_ORDERS, STRATEGIES
from scd_pipeline.declaration.mirror import MIRROR, Mirror
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, TABLE_NAME_RULE, is_column_name, is_table_name
from scd_pipeline.declaration.source import Channel, Feed, Snapshot, Source
from scd_pipeline.errors import DeclarationError
from scd_pipeline.texts import did_you_mean, join_names, short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.landing_table import LandingTable

_DEFAULT_SOURCE = Source("plain")
_DEFAULTS: tuple[Channel, ...] = (Feed(), Snapshot())
_MERGE_ONLY = ("strategy", "primary_key", "merge_key", "dedup_sort", "hard_delete")
_CHANNEL_OPTIONS = {
    "effective_at": "the rows have the time of their delivery",
    "effective_at_format": "the rows have the time of their delivery",
    "effective_at_unit": "the rows have the time of their delivery",
    "sequence": "`dedup_sort` chooses between the rows of a key",
    "deletes": "`hard_delete` names the column by which a row deletes",
    "updates": "each row provides all columns",
    "nulls": "each row provides all columns",
    "scope": "`merge_key` names the columns whose values a delivery replaces",
}
"""The options of a channel that a landing table does not have, with the reason."""


def check_kinds(
    location: str, columns: Any, source: Any, primary_key: Any, merge_key: Any, dedup_sort: Any, mirror: Any
) -> None:
    """Raise one DeclarationError with all arguments of an invalid kind, if there are any."""
    errors = ErrorCollector(location)
    for option, names in (("columns", columns), ("primary_key", primary_key), ("merge_key", merge_key)):
        if not _are_names(names):
            fix = "write a name, a list of names, or a mapping of names to types"
            errors.add("INVALID_KIND", option, f"{short_repr(names)} is not a mapping of names to types", fix)
    if dedup_sort is not None and not (isinstance(dedup_sort, Mapping) and len(dedup_sort) == 1):
        problem = f"{short_repr(dedup_sort)} is not a mapping of one column to its order"
        errors.add("INVALID_KIND", "dedup_sort", problem, "write `{<column>: desc}` or `{<column>: asc}`")
    if not isinstance(source, Source):
        errors.add("INVALID_KIND", "source", f"{short_repr(source)} is not a source", "give a Source")
    if not isinstance(mirror, Mirror | None):
        errors.add("INVALID_KIND", "mirror", f"{short_repr(mirror)} is not a mirror", "give a Mirror")
    errors.raise_if_any()


def _are_names(declared: Any) -> bool:
    if isinstance(declared, Mapping):
        return all(isinstance(text, str) for pair in declared.items() for text in pair)
    return isinstance(declared, str) or (
        isinstance(declared, (list, tuple)) and all(isinstance(name, str) for name in declared)
    )


def check_landing_table(table: LandingTable) -> None:
    """Raise one DeclarationError with all errors of the landing table, if there are any."""
    errors = ErrorCollector(table.origin or str(table.name))
    for check in _CHECKS:
        check(errors, table)
    if not errors.collected:
        _check_dimension(errors, table)
    errors.raise_if_any()


def _check_dimension(errors: ErrorCollector, table: LandingTable) -> None:
    """Collect the errors of the dimension that represents the table, each at the option that it comes from."""
    try:
        table.as_dimension()
    except DeclarationError as error:
        key = "primary_key" if table.primary_key else "merge_key"
        options = {"name": "landing_table", "business_key": key, "attributes": "columns", "surrogate_key": "row_key"}
        for each in error.errors:
            option, _, rest = each.field.partition(".")
            errors.add(each.code, field_path(options.get(option, option), rest).rstrip("."), each.problem, each.fix)


def _check_names(errors: ErrorCollector, table: LandingTable) -> None:
    if not (isinstance(table.name, str) and is_table_name(table.name)):
        problem = f"{short_repr(table.name)} cannot be the name of a table"
        errors.add("INVALID_NAME", "landing_table", problem, TABLE_NAME_RULE)
    if not (isinstance(table.row_key, str) and is_column_name(table.row_key)):
        errors.add("INVALID_NAME", "row_key", f"{short_repr(table.row_key)} cannot be a name", COLUMN_NAME_RULE)
    generated = {column.name for column in ROW_COLUMNS}
    for name in (name for name, _ in table.columns if name.casefold() in generated):
        problem = f"column {name} is reserved for a column that the package adds"
        errors.add("NAME_IN_USE", f"columns.{name}", problem, "choose another name")


def _check_options(errors: ErrorCollector, table: LandingTable) -> None:
    """Check the options that are one of a few, and that the table has columns."""
    errors.choice("missing", table.missing, ("reject", "null"))
    if table.disposition not in DISPOSITIONS:
        fix = did_you_mean(table.disposition, DISPOSITIONS)
        errors.add("NOT_ALLOWED", "disposition", f"{short_repr(table.disposition)} is not allowed", fix)
    if not (table.columns or table.mirror):
        fix = f"name the columns with their types, or write `columns: {MIRROR}` for all columns of the source"
        errors.add("MISSING_VALUE", "columns", "is missing", fix)


def _check_disposition(errors: ErrorCollector, table: LandingTable) -> None:
    """Check that only a merge has a key, and what depends on one."""
    if table.disposition in ("append", "replace"):
        for option in (option for option in _MERGE_ONLY if getattr(table, option)):
            fix = "write `disposition: merge`, or remove it"
            errors.add("NOT_APPLICABLE", option, f"is an option of merge, not of {table.disposition}", fix)
    elif table.disposition == "merge" and not (table.primary_key or table.merge_key):
        problem = "is missing: without a key, a merge would only append"
        errors.add("MISSING_VALUE", "primary_key", problem, "name it, or `merge_key`; or write `disposition: append`")


def _check_strategy(errors: ErrorCollector, table: LandingTable) -> None:
    strategy: Any = table.strategy
    if table.disposition != "merge":
        return
    if strategy == "scd2":
        problem = "'scd2' is a dimension, which has the history of its rows"
        errors.add("NOT_ALLOWED", "strategy", problem, f"declare in its place: {_dimension_text(table)}")
    elif strategy not in STRATEGIES:
        problem = f"{short_repr(strategy)} is not allowed"
        errors.add("NOT_ALLOWED", "strategy", problem, did_you_mean(strategy, STRATEGIES))
    elif strategy == "upsert":
        if table.merge_key:
            problem = "an upsert replaces the rows of a primary key, and no others"
            errors.add("NOT_APPLICABLE", "merge_key", problem, "remove it, or write `strategy: delete_insert`")
        if not table.primary_key and not errors.has("primary_key"):
            problem = "is missing: an upsert finds the stored row by it"
            errors.add("MISSING_VALUE", "primary_key", problem, "name it, or write `strategy: delete_insert`")
        if table.dedup_sort:
            problem = "an upsert has one row of a key in a delivery"
            errors.add("NOT_APPLICABLE", "dedup_sort", problem, "remove it, or write `strategy: delete_insert`")


def _dimension_text(table: LandingTable) -> str:
    """Return the declaration of a dimension with the columns of the table, as YAML on one line."""
    key = {column.name: column.type for column in (*table.primary_key, *table.merge_key)}
    channel = next((name for name, _ in table.source.channels), "feed")
    attributes = {name: {"scd": 2, "type": data_type} for name, data_type in table.columns if name not in key}
    declared = {
        "dimension": table.name,
        "business_key": key,
        "sources": {table.source.name: {channel: _path(table.source)}},
        "attributes": attributes or MIRROR,
    }
    return str(yaml.safe_dump(declared, default_flow_style=True, sort_keys=False, width=10_000)).strip()


def _path(source: Source) -> Any:
    return next((channel.path for _, channel in source.channels if channel.path), {})


def _check_keys(errors: ErrorCollector, table: LandingTable) -> None:
    types = dict(table.columns)
    for option, key in (("primary_key", table.primary_key), ("merge_key", table.merge_key)):
        errors.unique(option, [column.name for column in key])
        for column in key:
            if types.get(column.name, column.type) != column.type:
                problem = f"{column.name} is {types[column.name]} in `columns`, and {column.type} here"
                errors.add("CONFLICTING_OPTIONS", option, problem, "declare its type once")


def _check_dedup_sort(errors: ErrorCollector, table: LandingTable) -> None:
    if table.dedup_sort is None or table.disposition != "merge" or table.strategy == "upsert":
        return
    column, order = table.dedup_sort
    errors.choice(f"dedup_sort.{column}", order, SORT_ORDERS)
    if not table.primary_key:
        problem = "chooses one of the rows of a primary key"
        errors.add("OPTION_REQUIRED", "dedup_sort", problem, "declare `primary_key` too, or remove it")
    elif column in {key.name for key in table.primary_key}:
        problem = f"{column} has the same value in all rows of a primary key"
        errors.add("NOT_APPLICABLE", "dedup_sort", problem, "name another column, or remove it")
    else:
        _check_column(errors, table, "dedup_sort", column)


def _check_hard_delete(errors: ErrorCollector, table: LandingTable) -> None:
    column = table.hard_delete
    if column is None or table.disposition != "merge":
        return
    if column in {key.name for key in (*table.primary_key, *table.merge_key)}:
        errors.add("NOT_APPLICABLE", "hard_delete", f"{column} is in the key", "name another column, or remove it")
    elif table.mirror is not None and column not in dict(table.columns):
        problem = f"the type of {column} decides which values delete, and files of text have no types"
        errors.add("OPTION_REQUIRED", "hard_delete", problem, f"declare the type of {column} in `columns` too")
    else:
        _check_column(errors, table, "hard_delete", column)


def _check_column(errors: ErrorCollector, table: LandingTable, option: str, name: Any) -> None:
    """Check that the table has the column; a mirrored one may have any."""
    names = [*dict(table.columns), *(key.name for key in table.merge_key)]
    if table.mirror is None and name not in names:
        errors.add("UNKNOWN_NAME", option, f"{short_repr(name)} is not a column", did_you_mean(name, names))


def _check_source(errors: ErrorCollector, table: LandingTable) -> None:
    path = f"sources.{table.source.name}"
    for option in ("attributes", "existence"):
        if getattr(table.source, option) != getattr(_DEFAULT_SOURCE, option):
            problem = "is an option for the sources of dimensions"
            errors.add("NOT_APPLICABLE", f"{path}.{option}", problem, "remove it")
    for option in table.source.stored_tables:
        problem = f"a {option.replace('_', ' ')} is a source of dimensions"
        errors.add("NOT_APPLICABLE", f"{path}.{option}", problem, "write `feed:` or `snapshot:`")
    if table.source.stored_tables:
        return
    expected, reason = _channel(table)
    if [name for name, _ in table.source.channels] != [expected]:
        errors.add("LANDING_SOURCE", path, reason, f"write `{expected}:` with its path, and no other channel")
        return
    _check_channel(errors, f"{path}.{expected}", table.source.channel(expected), table)


def _channel(table: LandingTable) -> tuple[str, str]:
    """Return the channel of the table, and the reason."""
    if table.disposition == "replace":
        return "snapshot", "each delivery of `replace` is complete"
    if table.merge_key and table.strategy != "upsert":
        return "snapshot", "each delivery is complete for its merge keys"
    return "feed", f"a delivery of `{table.disposition}` leaves the rows that it omits"


def _check_channel(errors: ErrorCollector, path: str, channel: Snapshot | Feed, table: LandingTable) -> None:
    default: Any = next(each for each in _DEFAULTS if each.name == channel.name)
    for option, reason in _CHANNEL_OPTIONS.items():
        if getattr(channel, option, None) != getattr(default, option, None):
            errors.add("NOT_APPLICABLE", f"{path}.{option}", reason, "remove it")
    if channel.format == "debezium":
        errors.add("NOT_APPLICABLE", f"{path}.format", "debezium is for dimensions only", "write json")
    if channel.ties != default.ties and not table.primary_key:
        problem = f"the rows of {join_names([table.name])} have no primary key, and each remains"
        errors.add("NOT_APPLICABLE", f"{path}.ties", problem, "remove it")
    if channel.placeholder == "delivery":  # a landing table has no `effective_at` that could replace it
        problem = "{delivery} is any name, and a landing table reads a delivery's time from its name"
        errors.add("PATH_PLACEHOLDER", f"{path}.path", problem, "write {date} or {datetime} in its place")


_CHECKS: tuple[Callable[[ErrorCollector, Any], None], ...] = (
    _check_names,
    _check_options,
    _check_disposition,
    _check_strategy,
    _check_keys,
    _check_dedup_sort,
    _check_hard_delete,
    _check_source,
)
