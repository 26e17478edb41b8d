"""Checks of channels that read a database, or read a table by a cursor (S39)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.jdbc import SECRET_NAMES, EnvVar, Jdbc, Partitions, has_login
from scd_pipeline.declaration.source import Channel, Feed, placeholders
from scd_pipeline.declaration.yaml.options import ENV_VAR, JDBC, PARTITIONS
from scd_pipeline.texts import short_repr

SECRET = (
    "contains a secret",
    "write the name of an environment variable that has it, as in `password: {env: DB_PASSWORD}`",
)
"""The problem and the fix of a secret in a declaration, which no message repeats."""
_JDBC = "jdbc:"
_OF_READER = {"url", "dbtable", "query", "user", "partitioncolumn", "lowerbound", "upperbound", "numpartitions"}
_WITHOUT_PATH = Channel()
_OF_PATHS = ("path", "format", "options", "partition", "versions", "skip_lines", "skip_footer", "record_path")


def check_jdbc(errors: ErrorCollector, path: str, channel: Channel) -> Jdbc | None:
    """Return the valid database of a channel; check that the channel has no options of paths, and no secret."""
    jdbc, field = channel.jdbc, f"{path}.jdbc"
    if not isinstance(jdbc, Jdbc):
        errors.add("INVALID_KIND", field, "is not a database", "give a mapping with `url` and `table`, or a Jdbc")
        return None
    for option in _OF_PATHS:
        if getattr(channel, option) != getattr(_WITHOUT_PATH, option):
            problem = "is an option of paths, and the rows are in a database"
            errors.add("CONFLICTING_OPTIONS", f"{path}.{option}", problem, "remove it, or remove `jdbc`")
    if isinstance(channel, Feed) and not channel.has_cursor:
        problem = "a feed of a database requires `cursor`, by which each load reads only new rows"
        errors.add("OPTION_REQUIRED", f"{path}.cursor", problem, "name a column that grows, or write `snapshot:`")
    return _check_database(errors, field, jdbc)


def _check_database(errors: ErrorCollector, path: str, jdbc: Jdbc) -> Jdbc:
    password = jdbc.password
    if password is not None and not isinstance(password, EnvVar):
        errors.add("SECRET_IN_DECLARATION", f"{path}.password", *SECRET)
        jdbc = Jdbc(jdbc.url, jdbc.table, jdbc.query, jdbc.user, None, jdbc.partitions, jdbc.options)
    if isinstance(jdbc.url, str) and has_login(jdbc.url):
        errors.add("SECRET_IN_DECLARATION", f"{path}.url", *SECRET)
    draft = errors.check_kinds(path, jdbc, JDBC)
    if not draft.url:
        errors.add(
            "MISSING_VALUE", f"{path}.url", "is missing", "give the address, such as jdbc:postgresql://host/name"
        )
    elif isinstance(draft.url, str) and not draft.url.startswith(_JDBC):
        errors.add("NOT_ALLOWED", f"{path}.url", "is not an address of JDBC", f"begin it with {_JDBC}")
    for name in ("url", "user", "password"):
        _check_variable(errors, f"{path}.{name}", getattr(draft, name))
    if (draft.table is None) == (draft.query is None):
        problem = "has neither a table nor a query" if draft.table is None else "has both a table and a query"
        errors.add("CONFLICTING_OPTIONS", path, problem, "write one of `table` and `query`")
    _check_options(errors, f"{path}.options", draft.options)
    if draft.partitions is not None:
        _check_partitions(errors, f"{path}.partitions", draft.partitions)
    return draft


def _check_variable(errors: ErrorCollector, path: str, value: Any) -> None:
    if isinstance(value, EnvVar):
        draft = errors.check_kinds(path, value, ENV_VAR)
        if not str(draft.env).strip():
            errors.add("MISSING_VALUE", f"{path}.env", "is missing", "name the environment variable")


def _check_options(errors: ErrorCollector, path: str, options: Any) -> None:
    if not isinstance(options, Mapping):
        errors.add("INVALID_KIND", path, "is not a mapping", "write a mapping of options to text")
        return
    for name, value in options.items():
        field = field_path(path, name)
        if SECRET_NAMES.search(str(name)):
            errors.add("SECRET_IN_DECLARATION", field, *SECRET)
        elif str(name).casefold() in _OF_READER:
            errors.add("NOT_ALLOWED", field, "has an option of its own", "declare it in `jdbc` itself")
        elif not isinstance(value, str):
            problem = f"has the value {short_repr(value)}, which is not text"
            errors.add("INVALID_KIND", field, problem, 'options are given as text, such as "true" or "1"')


def _check_partitions(errors: ErrorCollector, path: str, partitions: Any) -> None:
    if not isinstance(partitions, Partitions):
        errors.add("INVALID_KIND", path, "is not a mapping", "write `column`, `lower`, `upper` and `number`")
        return
    draft = errors.check_kinds(path, partitions, PARTITIONS)
    for option in ("column", "lower", "upper"):
        if getattr(draft, option) in (None, ""):
            fix = "name a column of numbers, dates or times" if option == "column" else "give the bound of its values"
            errors.add("MISSING_VALUE", f"{path}.{option}", "is missing", fix)
    if not isinstance(draft.number, int) or draft.number < 1:
        problem = f"{short_repr(draft.number)} is not a whole number of at least 1"
        errors.add("OUT_OF_RANGE", f"{path}.number", problem, "give the number of queries, such as 8")


def check_cursor(errors: ErrorCollector, path: str, feed: Feed) -> None:
    """Check the cursor of a feed, and that nothing else distinguishes what was loaded before (S39)."""
    if feed.cursor is None:
        if feed.start is not None:
            errors.add("OPTION_REQUIRED", f"{path}.start", "requires `cursor`", "name the column in `cursor`")
        return
    if feed.start is None:
        fix = "give the value from which the first load reads, such as 1970-01-01T00:00:00Z or 0"
        errors.add("MISSING_VALUE", f"{path}.start", "is missing, and `cursor` requires it", fix)
    elif feed.effective_at is None:
        problem = "the values of the cursor are not times, so that nothing orders the changes"
        errors.add("OPTION_REQUIRED", f"{path}.effective_at", problem, "name the column of the rows' times")
    for option in ("versions", "partition"):
        if getattr(feed, option):
            problem = f"excludes `{option}`, which distinguishes deliveries already"
            errors.add("CONFLICTING_OPTIONS", f"{path}.cursor", problem, "keep the one by which the rows are read")
    if feed.has_row_order and feed.format != "delta":
        fix = "name a column that orders them in `sequence`"
        errors.add("NOT_APPLICABLE", f"{path}.ties", "the rows that a cursor selects have no order", fix)
    if feed.path is not None and feed.jdbc is None:
        _check_path(errors, path, feed)


def _check_path(errors: ErrorCollector, path: str, feed: Feed) -> None:
    """Check that the path is that of one Delta table."""
    if placeholders(feed.path):
        problem = "the cursor distinguishes what was loaded, so a placeholder has no meaning"
        errors.add("PATH_PLACEHOLDER", f"{path}.path", problem, "give the path of the table alone")
    if feed.format != "delta":
        fix = "write `format: delta`, or remove `cursor`, and let the path have {date}"
        errors.add("NOT_APPLICABLE", f"{path}.cursor", "a path that is read by a cursor is a Delta table", fix)
