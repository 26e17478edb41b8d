"""Checks of single sources and their channels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scd_pipeline.declaration.batch_values import (
    BATCH_VALUES,
    LOAD_TIMESTAMP,
    invalid_placeholders,
    placeholder_names,
)
from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.checks.database import check_cursor, check_jdbc
from scd_pipeline.declaration.checks.delivery_times import check_delivery_times, check_placeholder_form, check_time_zone
from scd_pipeline.declaration.frozen import FrozenMapping, set_frozen_fields
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, is_column_name
from scd_pipeline.declaration.patterns import pattern_problem
from scd_pipeline.declaration.source import (
    BUCKET_SCHEMES,
    PLACEHOLDERS,
    SEQUENCE_BITS,
    TIES,
    TIME_PLACEHOLDERS,
    TIMED_FEED,
    UNITS,
    Channel,
    Column,
    Feed,
    RetireGuard,
    Snapshot,
    Source,
    is_address,
    is_in_bucket,
    placeholders,
    split_placeholder,
    without_file_scheme,
)
from scd_pipeline.declaration.yaml.options import COLUMN, FEED, RETIRE_GUARD, SNAPSHOT, SOURCE
from scd_pipeline.texts import did_you_mean, is_text, short_repr

_ENCODINGS = ("utf-8", "windows-1252", "iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32")
FORMATS = ("parquet", "csv", "json", "delta", "debezium")
_ARCHIVES = (".zip", ".7z", ".tar", ".rar", ".xlsx", ".xls")
_STORED_DELIVERIES = {"timed_table": "its statements are the deliveries", "landing_table": "its deliveries are read"}
_TOO_LONG = 1_000_000  # hours, a century


def check_sources(errors: ErrorCollector, sources: Any) -> tuple[Source, ...]:
    """Return the valid sources, for later checks."""
    if sources is None or sources == ():
        errors.add("MISSING_VALUE", "sources", "is missing", "declare at least one source, with a snapshot or a feed")
        return ()
    if not isinstance(sources, tuple):
        errors.add(
            "INVALID_KIND", "sources", f"{short_repr(sources)} is not a source", "give a Source or a list of them"
        )
        return ()
    drafts = [_check_source(errors, source) for source in sources]
    return tuple(draft for draft in drafts if draft is not None)


def _check_source(errors: ErrorCollector, source: Any) -> Source | None:
    if not isinstance(source, Source):
        errors.add(
            "INVALID_KIND", "sources", f"{short_repr(source)} is not a source", "give a Source or a list of them"
        )
        return None
    if not (isinstance(source.name, str) and is_column_name(source.name)):
        field = field_path("sources", source.name)
        errors.add("INVALID_NAME", field, f"{short_repr(source.name)} cannot be a name", COLUMN_NAME_RULE)
        return None
    if "/" in source.name:
        field = field_path("sources", source.name)
        errors.add(
            "INVALID_NAME",
            field,
            f"{short_repr(source.name)} cannot name a source",
            "write it without `/`, which separates the parts of a batch's id",
        )
        return None
    path = f"sources.{source.name}"
    draft = errors.check_kinds(path, source, SOURCE)
    errors.unique(f"{path}.attributes", draft.attributes or ())
    if not draft.stored_tables:
        _check_channels(errors, path, draft)
    else:
        _check_stored_table(errors, path, draft)
    check_time_zone(errors, f"{path}.timezone", draft.timezone)
    _check_share(errors, f"{path}.bad_row_limit", draft.bad_row_limit)
    _check_retire_guard(errors, f"{path}.retire_guard", draft.retire_guard)
    if draft.overdue_after_hours is not None and not 0 < draft.overdue_after_hours < _TOO_LONG:
        problem = f"{short_repr(draft.overdue_after_hours)} is not a valid number of hours"
        errors.add(
            "OUT_OF_RANGE", f"{path}.overdue_after_hours", problem, f"write a number above 0 and below {_TOO_LONG}"
        )
    _check_upstream(errors, f"{path}.upstream", draft.upstream)
    set_frozen_fields(draft, columns=_check_columns(errors, f"{path}.columns", draft.columns))
    _check_placeholders(errors, path, draft)
    return draft


def _check_placeholders(errors: ErrorCollector, path: str, source: Source) -> None:
    """Check that the expressions of a source have only placeholders of which each of its batches has a value."""
    by_channel = {name: list(_channel_expressions(f"{path}.{name}", channel)) for name, channel in source.channels}
    of_columns = [
        (f"{field_path(f'{path}.columns', name)}.expression", column.expression)
        for name, column in source.columns.items()
        if column.expression
    ]
    for field, text in (*of_columns, *(each for expressions in by_channel.values() for each in expressions)):
        for invalid in invalid_placeholders(text):
            fix = f"write {' or '.join(f'{{{{ {name} }}}}' for name in BATCH_VALUES)}, without quotes"
            errors.add("EXPRESSION_PLACEHOLDER", field, f"{short_repr(invalid)} is not a placeholder", fix)
    if source.feed is None or source.feed.effective_at is None:
        return
    for field, text in (*of_columns, *by_channel["feed"]):
        if LOAD_TIMESTAMP in placeholder_names(text):
            problem = "the deliveries of a feed with `effective_at` have no time"
            errors.add("NOT_APPLICABLE", field, problem, "name a column in place of {{ load_timestamp }}")


def _channel_expressions(path: str, channel: Channel) -> Iterator[tuple[str, str]]:
    """Yield the expressions that a channel declares, with their fields."""
    declared = {"effective_at": channel.effective_at, "sequence": channel.sequence}
    for option, value in declared.items():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Column) and part.expression:
                yield f"{path}.{option}", part.expression
    for option, text in (("rows", channel.rows), ("deletes", channel.deletes)):
        if text:
            yield f"{path}.{option}", text


def _check_share(errors: ErrorCollector, field: str, share: float) -> None:
    if not 0 <= share <= 1:
        errors.add(
            "OUT_OF_RANGE",
            field,
            f"{short_repr(share)} is not between 0 and 1",
            "give a share, such as 0.05 for 5 percent",
        )


def _check_retire_guard(errors: ErrorCollector, field: str, guard: Any) -> None:
    if not isinstance(guard, RetireGuard):
        errors.add(
            "INVALID_KIND",
            field,
            f"{short_repr(guard)} is not a number",
            "give a share, such as 0.05 for 5 percent, or a RetireGuard",
        )
        return
    draft = errors.check_kinds(field, guard, RETIRE_GUARD)
    _check_share(errors, field, draft.share)
    if not isinstance(draft.at_least, int) or draft.at_least < 1:
        problem = f"{short_repr(draft.at_least)} is not a whole number of at least 1"
        errors.add("OUT_OF_RANGE", f"{field}.at_least", problem, "give the least number of entities, such as 20")


def _check_upstream(errors: ErrorCollector, field: str, keys: tuple[str, ...]) -> None:
    """Check the keys of assets."""
    errors.unique(field, keys)
    for key in keys:
        if not all(part.strip() for part in key.split("/")):
            problem = f"{short_repr(key)} cannot be the key of an asset"
            errors.add(
                "INVALID_NAME", field, problem, "write its parts with one `/` between them, such as raw/customers"
            )


def _check_stored_table(errors: ErrorCollector, path: str, draft: Source) -> None:
    """Check that the source is a timed table with a business key or a landing table, and has no channel."""
    table: Any
    option, table = next(iter(draft.stored_tables.items()))
    field = f"{path}.{option}"
    if draft.snapshot is not None or draft.feed != TIMED_FEED or len(draft.stored_tables) > 1:
        problem = f"excludes any other origin of rows: {_STORED_DELIVERIES[option]}"
        errors.add("CONFLICTING_OPTIONS", field, problem, "remove one of them")
    if option == "landing_table":
        if not hasattr(table, "disposition"):
            errors.add("INVALID_KIND", field, f"{short_repr(table)} is not a landing table", "give a LandingTable")
    elif not hasattr(table, "business_key"):
        errors.add("INVALID_KIND", field, f"{short_repr(table)} is not a timed table", "give a TimedTable")
    elif not table.business_key:
        fix = "declare `business_key` in the timed table"
        errors.add("OPTION_REQUIRED", field, f"timed table {table.name} has no business key", fix)


def _check_channels(errors: ErrorCollector, path: str, draft: Source) -> None:
    if draft.snapshot is None and draft.feed is None:
        errors.add(
            "MISSING_VALUE", path, "has neither a snapshot nor a feed", "declare how it delivers, with one or both"
        )
    for name, channel_class in (("snapshot", Snapshot), ("feed", Feed)):
        channel = getattr(draft, name)
        if channel is None:
            continue
        if isinstance(channel, channel_class):
            set_frozen_fields(draft, **{name: _check_channel(errors, f"{path}.{name}", channel)})
        elif isinstance(channel, Mapping):
            names = [field.name for field in dataclasses.fields(channel_class)]
            for option in (option for option in channel if option not in names):
                errors.add(
                    "UNKNOWN_OPTION",
                    field_path(f"{path}.{name}", option),
                    "is not an option",
                    did_you_mean(option, names),
                )
            set_frozen_fields(draft, **{name: None})
        else:
            errors.add(
                "INVALID_KIND",
                f"{path}.{name}",
                f"{short_repr(channel)} is not a {name}",
                f"give a path or a {channel_class.__name__}",
            )
            set_frozen_fields(draft, **{name: None})


def _check_channel(errors: ErrorCollector, path: str, channel: Snapshot | Feed) -> Snapshot | Feed:
    draft = errors.check_kinds(path, channel, SNAPSHOT if isinstance(channel, Snapshot) else FEED)
    _check_options(errors, f"{path}.options", draft.options)
    if draft.jdbc is not None:
        set_frozen_fields(draft, jdbc=check_jdbc(errors, path, draft))
    elif draft.path is None:
        _check_pathless(errors, path, draft)
    elif not draft.has_cursor:
        _check_path(errors, path, draft)
        _check_format(errors, path, draft)
    _check_skipped_lines(errors, path, draft)
    _check_record_path(errors, path, draft)
    check_delivery_times(errors, path, draft)
    if draft.format == "debezium" and isinstance(draft, Snapshot):
        problem = "events of Debezium are changes, not full extracts"
        errors.add("NOT_APPLICABLE", f"{path}.format", problem, "write them under `feed`")
    errors.choice(f"{path}.sequence_type", draft.sequence_type, ("bigint", "timestamp"))
    if draft.sequence_type == "timestamp" and draft.sequence is None:
        errors.add(
            "OPTION_REQUIRED",
            f"{path}.sequence_type",
            "requires `sequence`",
            "name the column in `sequence`",
        )
    _check_ties(errors, f"{path}.ties", draft)
    _check_sequence(errors, path, draft)
    _check_effective_at(errors, path, draft)
    if isinstance(draft, Feed):
        _check_feed(errors, path, draft)
    else:
        errors.choice(f"{path}.unreadable_keys", draft.unreadable_keys, ("retire_none", "retire"))
        if draft.empty_scope is not None:
            errors.choice(f"{path}.empty_scope", draft.empty_scope, ("delete", "reject"))
        errors.unique(f"{path}.scope", draft.scope)
        if draft.sequence is not None and draft.effective_at is None:
            problem = "a snapshot contains each entity once unless its rows have times"
            errors.add(
                "OPTION_REQUIRED",
                f"{path}.sequence",
                problem,
                "name their column in `effective_at`, or remove `sequence`",
            )
    return draft


def _check_effective_at(errors: ErrorCollector, path: str, channel: Channel) -> None:
    """Check how the business time of a row is read."""
    declared = {
        "effective_at_format": channel.effective_at_format is not None,
        "effective_at_unit": channel.effective_at_unit is not None,
        "effective_at_round": channel.effective_at_round,
    }
    if channel.effective_at is None:
        problem = "requires `effective_at`"
        for option in (option for option, is_declared in declared.items() if is_declared):
            errors.add("OPTION_REQUIRED", f"{path}.{option}", problem, "name the column in `effective_at`")
        return
    _check_computed(errors, f"{path}.effective_at", channel.effective_at, "`effective_at_format` beside it")
    _check_time_reading(errors, path, channel.effective_at_format, channel.effective_at_unit, "effective_at_")


def _check_sequence(errors: ErrorCollector, path: str, channel: Channel) -> None:
    field, parts = f"{path}.sequence", channel.sequence
    if not isinstance(parts, tuple):
        return _check_computed(errors, field, parts, "`sequence_type` beside it")
    most = max(SEQUENCE_BITS)
    if not 2 <= len(parts) <= most:
        problem = f"has {len(parts)} columns; expected at most {most}"
        errors.add("OUT_OF_RANGE", field, problem, "write an expression that computes one number from them")
    for part in parts:
        _check_computed(errors, field, part, "an expression")
    if channel.sequence_type != "bigint":
        problem = f"excludes `sequence` of {len(parts)} columns, which are whole numbers"
        errors.add("CONFLICTING_OPTIONS", f"{path}.sequence_type", problem, "remove it, or order by one column")
    return None


def _check_computed(errors: ErrorCollector, field: str, value: str | Column | None, options: str) -> None:
    """Check that a column of a channel that is not a name is an expression, and nothing else."""
    if not isinstance(value, Column):
        return
    if value.expression is None or not value.expression.strip():
        errors.add("MISSING_VALUE", field, "has no expression", "write `expression:` with SQL over the columns")
    elif value != Column(expression=value.expression):
        errors.add("CONFLICTING_OPTIONS", field, "has other options than `expression`", f"write {options}")


def _check_time_reading(
    errors: ErrorCollector, path: str, pattern: str | None, unit: str | None, prefix: str = ""
) -> None:
    """Check the pattern for text or the unit for numbers; a time has only one of them."""
    _check_pattern(errors, f"{path}.{prefix}format", pattern)
    if unit is None:
        return
    field = f"{path}.{prefix}unit"
    errors.choice(field, unit, UNITS)
    if pattern is not None:
        problem = f"excludes `{prefix}format`: a unit reads numbers, a format reads text"
        errors.add("CONFLICTING_OPTIONS", field, problem, "keep the one that fits the column")


def _check_ties(errors: ErrorCollector, field: str, channel: Snapshot | Feed) -> None:
    """Check that the channel has what a rule for ties needs: deletes, or a repeatable order of rows."""
    errors.choice(field, channel.ties, TIES)
    if channel.ties == "delete_wins" and not (isinstance(channel, Feed) and channel.deletes):
        fix = (
            "name their condition in `deletes`" if isinstance(channel, Feed) else "write reject, first_row or last_row"
        )
        errors.add("NOT_APPLICABLE", field, f"no row of this {channel.name} is a delete", f"{fix}, or remove `ties`")
    is_table = channel.format == "delta" or channel.partition is not None or channel.jdbc is not None
    if channel.has_row_order and is_table and not channel.has_cursor:  # which is reported by itself
        fix = "name a column that orders them in `sequence`, or deliver files"
        errors.add("NOT_APPLICABLE", field, "the rows of a table have no order", fix)


def _check_feed(errors: ErrorCollector, path: str, feed: Feed) -> None:
    check_cursor(errors, path, feed)
    errors.choice(f"{path}.updates", feed.updates, ("full", "partial"))
    errors.choice(f"{path}.nulls", feed.nulls, ("value", "not_provided"))
    if feed.nulls == "not_provided" and feed.updates == "full":
        problem = "a feed with `updates: full` provides all attributes"
        errors.add("CONFLICTING_OPTIONS", f"{path}.nulls", problem, "write `updates: partial` too, or remove it")


def _check_options(errors: ErrorCollector, field: str, options: Any) -> None:
    is_pairs = isinstance(options, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in options)
    if not is_pairs:
        errors.add(
            "INVALID_KIND", field, f"{short_repr(options)} is not a mapping", "write a mapping of options to text"
        )
        return
    for name, value in options:
        if not (isinstance(name, str) and isinstance(value, str) and is_text(name) and is_text(value)):
            problem = f"option {short_repr(name)} has the value {short_repr(value)}, which is not text"
            errors.add("INVALID_KIND", field, problem, 'options are given as text, such as "true" or "1"')
    names = [name.casefold() for name, _ in options if isinstance(name, str)]
    errors.unique(field, names)
    for name, value in options:
        key, text = str(name).casefold(), str(value)
        if key in ("encoding", "charset") and text.casefold() not in _ENCODINGS:
            problem = f"{short_repr(value)} is not an encoding that is read here"
            errors.add("NOT_ALLOWED", field_path(field, name), problem, f"write one of {', '.join(_ENCODINGS)}")
        if key == "maxcolumns" and not (text.isdecimal() and int(text) > 0):
            problem = f"{short_repr(value)} is not a number of columns"
            errors.add("NOT_ALLOWED", field_path(field, name), problem, 'write a whole number as text, such as "30000"')


def _check_skipped_lines(errors: ErrorCollector, path: str, channel: Channel) -> None:
    """Check the numbers of lines of a CSV file that are not read."""
    for option, number in (("skip_lines", channel.skip_lines), ("skip_footer", channel.skip_footer)):
        field = f"{path}.{option}"
        if not isinstance(number, int) or number < 0:
            problem = f"{short_repr(number)} is not a whole number of at least 0"
            errors.add("OUT_OF_RANGE", field, problem, "give the number of lines, such as 2")
        elif number and channel.format not in (None, "csv"):
            problem = f"{channel.format} files have no header or footer lines"
            errors.add("NOT_APPLICABLE", field, problem, "remove it")
        elif number and not errors.has(f"{path}.options") and _is_wide(channel):
            errors.add("NOT_APPLICABLE", field, "Spark alone reads this encoding", "deliver the files in UTF-8")


def _check_record_path(errors: ErrorCollector, path: str, channel: Channel) -> None:
    """Check the path of the records inside of JSON documents."""
    field, names = f"{path}.record_path", channel.record_path
    if names is None:
        return
    if not all(names.split(".")):
        errors.add("INVALID_NAME", field, f"{short_repr(names)} is not a path", "write names of objects, such as data")
    elif channel.format not in (None, "json"):
        errors.add("NOT_APPLICABLE", field, f"{channel.format} files have no documents with records", "remove it")
    elif not errors.has(f"{path}.options") and _is_wide(channel):
        errors.add("NOT_APPLICABLE", field, "Spark alone reads this encoding", "deliver the files in UTF-8")


def _is_wide(channel: Channel) -> bool:
    """Return whether the declared encoding has several bytes for each character."""
    encodings = [value for name, value in channel.reader_options.items() if name.casefold() in ("encoding", "charset")]
    return any(encoding.casefold().startswith(("utf-16", "utf-32")) for encoding in encodings)


def _check_pathless(errors: ErrorCollector, path: str, channel: Channel) -> None:
    """Check a channel without a path: its frames are passed, so it has no options of tables."""
    for option, values in (("partition", channel.partition), ("versions", channel.versions)):
        if values:
            errors.add(
                "OPTION_REQUIRED",
                f"{path}.{option}",
                "requires the `path` of a table",
                "give the table's `path`",
            )
    if channel.format is not None:
        errors.choice(f"{path}.format", channel.format, FORMATS)


def _check_path(errors: ErrorCollector, path: str, channel: Channel) -> None:
    """Check that exactly one of placeholder, partition and version distinguishes the deliveries at the path."""
    texts, allowed = placeholders(channel.path), _allowed_placeholders(channel)
    names = [split_placeholder(text)[0] for text in texts]
    for name, text in zip(names, texts, strict=True):
        if name not in PLACEHOLDERS:
            errors.add(
                "PATH_PLACEHOLDER", f"{path}.path", f"{{{name}}} is not a placeholder", did_you_mean(name, allowed)
            )
        else:
            check_placeholder_form(errors, f"{path}.path", text)
    valid = [name for name in names if name in PLACEHOLDERS]
    if channel.partition is not None and channel.versions:
        errors.add(
            "CONFLICTING_OPTIONS",
            f"{path}.versions",
            "excludes `partition`",
            "keep the one that distinguishes its deliveries",
        )
    if channel.partition is not None or channel.versions:
        if valid:
            option = "versions" if channel.versions else "partition"
            problem = f"`{option}` distinguishes its deliveries, so {{{valid[0]}}} has no meaning"
            errors.add("PATH_PLACEHOLDER", f"{path}.path", problem, "give the path of the table alone")
    elif valid and not _is_listed(channel.path):
        problem = f"files at this address cannot be listed, so no delivery would be found for {{{valid[0]}}}"
        schemes = ", ".join(f"{scheme}://" for scheme in BUCKET_SCHEMES)
        fix = f"give a path of this machine, or one below the name of a bucket ({schemes}), or pass frames"
        errors.add("PATH_PLACEHOLDER", f"{path}.path", problem, fix)
    elif len(valid) > 1:
        errors.add(
            "PATH_PLACEHOLDER", f"{path}.path", f"has {len(valid)} placeholders", f"keep one: {_braced(allowed)}"
        )
    elif valid and valid[0] not in allowed:
        _report_timeless(errors, f"{path}.path", channel, valid[0])
    elif not names:
        _report_missing_placeholder(errors, f"{path}.path", channel)


def _is_listed(path: str | None) -> bool:
    """Return whether the files at a path can be listed: those of this machine, and the objects of a bucket."""
    return is_in_bucket(path) or not is_address(without_file_scheme(path or ""))


def _allowed_placeholders(channel: Channel) -> tuple[str, ...]:
    """Return the placeholders of the channel: names have no time only in a feed whose rows have times (S4)."""
    has_row_times = isinstance(channel, Feed) and channel.effective_at is not None
    return PLACEHOLDERS if has_row_times else TIME_PLACEHOLDERS


def _braced(options: Iterable[str]) -> str:
    return " or ".join(f"{{{option}}}" for option in options)


def _report_timeless(errors: ErrorCollector, field: str, channel: Channel, option: str) -> None:
    problem = f"{{{option}}} is any name, and a {channel.name} reads a delivery's time from its name"
    fix = f"write {_braced(TIME_PLACEHOLDERS)} in its place"
    if isinstance(channel, Feed):
        problem = f"{problem} where its rows have none"
        fix = f"{fix}, or name the column of the rows' times in `effective_at`"
    errors.add("PATH_PLACEHOLDER", field, problem, fix)


def _report_missing_placeholder(errors: ErrorCollector, field: str, channel: Channel) -> None:
    fix = f"put {_braced(_allowed_placeholders(channel))} in the name, such as customers_{{date}}.csv"
    if channel.format == "delta":
        fix = "add `versions: true` or `partition: <column>`"
    elif channel.format in (None, "parquet"):
        fix = f"{fix}; or for a table, write `partition: <column>`"
    errors.add(
        "PATH_PLACEHOLDER",
        field,
        f"nothing in {short_repr(channel.path)} distinguishes one delivery from the next",
        fix,
    )


def _check_format(errors: ErrorCollector, path: str, channel: Channel) -> None:
    field = f"{path}.format"
    if channel.format is None:
        problem = f"is missing and cannot be inferred from the suffix of {short_repr(channel.path)}"
        is_archive = str(channel.path).lower().endswith(_ARCHIVES)
        fix = "unpack or convert the files, as no archives or workbooks are read" if is_archive else ""
        errors.add("MISSING_VALUE", field, problem, fix or f"write one of {', '.join(FORMATS)}")
        return
    errors.choice(field, channel.format, FORMATS)
    if channel.format not in FORMATS:
        return
    if channel.versions and channel.format != "delta":
        errors.add("NOT_APPLICABLE", field, f"{channel.format} has no versions", "write delta, or remove `versions`")
    if channel.partition is not None and channel.format not in ("delta", "parquet"):
        problem = f"{channel.format} has no partitions that can be relied on"
        errors.add("NOT_APPLICABLE", field, problem, "write delta or parquet, or remove `partition`")


def _check_columns(errors: ErrorCollector, path: str, columns: Any) -> FrozenMapping[Column]:
    if not isinstance(columns, Mapping):
        errors.add(
            "INVALID_KIND",
            path,
            f"{short_repr(columns)} is not a mapping",
            "write a mapping of names to columns of the source",
        )
        return FrozenMapping({})
    drafts = {name: _check_column(errors, field_path(path, name), column) for name, column in columns.items()}
    return FrozenMapping({name: draft for name, draft in drafts.items() if draft is not None})


def _check_column(errors: ErrorCollector, path: str, column: Any) -> Column | None:
    if not isinstance(column, Column):
        errors.add("INVALID_KIND", path, f"{short_repr(column)} is not a column", "give the column's name, or a Column")
        return None
    draft = errors.check_kinds(path, column, COLUMN)
    if draft.from_ and draft.expression is not None:
        errors.add(
            "CONFLICTING_OPTIONS",
            path,
            "has both `from` and `expression`",
            "keep one: the expression may name any column",
        )
    errors.unique(f"{path}.from", [name.casefold() for name in draft.from_])
    _check_time_reading(errors, path, draft.format, draft.unit)
    _check_number_form(errors, path, draft)
    _check_flags(errors, path, draft)
    for value in sorted(set(draft.not_provided_values) & set(draft.null_values)):
        problem = f"{short_repr(value)} is in `not_provided_values` too"
        errors.add("CONFLICTING_OPTIONS", f"{path}.null_values", problem, "keep one: no value, or the value NULL")
    return draft


def _check_number_form(errors: ErrorCollector, path: str, column: Column) -> None:
    """Check that the separators of a number cannot be confused with each other or with its digits."""
    if column.decimal not in (".", ","):
        problem = f"{short_repr(column.decimal)} is not a decimal separator"
        errors.add("NOT_ALLOWED", f"{path}.decimal", problem, 'write "," or "."')
    field, grouping = f"{path}.grouping", column.grouping
    if len(grouping) > 1 or grouping.isalnum() or grouping in ("+", "-"):
        problem = f"{short_repr(grouping)} cannot separate groups of digits"
        errors.add("NOT_ALLOWED", field, problem, 'write one character in quotes, such as ".", "," or " "')
    elif grouping == column.decimal:
        problem = f"{short_repr(grouping)} is the decimal separator too"
        errors.add("CONFLICTING_OPTIONS", field, problem, 'declare the other one, such as `decimal: ","`, or remove it')


def _check_flags(errors: ErrorCollector, path: str, column: Column) -> None:
    """Check that texts have a meaning each, and that both true and false have a text."""
    for option, other in (("true_values", "false_values"), ("false_values", "true_values")):
        if getattr(column, option) and not getattr(column, other):
            errors.add("OPTION_REQUIRED", f"{path}.{option}", f"requires `{other}`", f"declare `{other}` too")
    for value in sorted(set(column.true_values) & set(column.false_values)):
        problem = f"{short_repr(value)} is in `true_values` too"
        errors.add("CONFLICTING_OPTIONS", f"{path}.false_values", problem, "keep one: true or false")


def _check_pattern(errors: ErrorCollector, field: str, pattern: str | None) -> None:
    problem_and_fix = None if pattern is None else pattern_problem(pattern)
    if problem_and_fix is not None:
        errors.add("INVALID_PATTERN", field, *problem_and_fix)
