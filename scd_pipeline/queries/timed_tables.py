"""Timed tables in SQL: a view with the rows at a time, and a function that returns those at any time (S12)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.delta.commits import StoredRead
from scd_pipeline.delta.table import sql_literal
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.texts import short_repr
from scd_pipeline.timed.evaluate import FROM, TO
from scd_pipeline.timed.log import TIME_FORMS
from scd_pipeline.timed.read import read_state
from scd_pipeline.timed.times import RAW, from_millis, read_time

AT_SUFFIX, STATES_SUFFIX = "_at", "_states"
"""How the names of the function of a timed table, and of the view of its states, end."""


def parse_read_time(table: TimedTable, value: object, now: datetime, location: str) -> int | str:
    """Return the time of a read of a timed table, in milliseconds or `RAW`.

    Raises:
        UsageError: The value is not a time.
    """
    time = read_time(value, table.timezone, now)
    if time is None:
        raise UsageError("READ_TIME", location, value=short_repr(value), forms=TIME_FORMS)
    return time


def parse_statement_time(table: TimedTable, value: object, now: datetime, location: str) -> int:
    """Return the time of a statement of a timed table in milliseconds.

    Raises:
        UsageError: The value is not a time.
    """
    millis = parse_read_time(table, value, now, location)
    if isinstance(millis, str):
        raise UsageError("READ_TIME", location, value=short_repr(value), forms=TIME_FORMS)
    return millis


def timed_view_names(tables: Iterable[TimedTable]) -> list[str]:
    """Return the names that `register_timed_tables` can create."""
    return [table.name + suffix for table in tables for suffix in ("", AT_SUFFIX, STATES_SUFFIX)]


def register_timed_tables(
    warehouse: Warehouse, tables: Iterable[TimedTable], *, query: str, at: object, now: datetime
) -> None:
    """Create the view and the table function of each timed table that occurs in a query, for this session.

    The view `<table>` has the rows at the time `at`; the function `<table>_at(time)` returns those at another one. The
    view `<table>_states` has every state of each row with its window, NULL where it is unlimited.

    Args:
        warehouse: The warehouse.
        tables: The timed tables.
        query: The query.
        at: The time of the view, in a form of `times.read_time`.
        now: The time of the query.

    Raises:
        UsageError: `at` is not a time.
        SourceDataError: A log or a base cannot be read.
    """
    for table in tables:
        names = [table.name, table.name + AT_SUFFIX, table.name + STATES_SUFFIX]
        if not _occurs(names, query):
            continue
        state = read_state(warehouse, table)
        state.rows(parse_read_time(table, at, now, "time")).createOrReplaceTempView(table.name)
        if not _occurs(names[1:], query):
            continue
        function, states = map(quote_name, names[1:])
        state.states().createOrReplaceTempView(table.name + STATES_SUFFIX)
        columns = ", ".join(quote_name(name) for name in state.columns)
        time = _readable(_time(f"{function}.`at`", table.timezone, now), state.fold)
        is_at = f"coalesce({FROM} <= {time}, {FROM} IS NULL) AND coalesce({time} < {TO}, TRUE)"
        warehouse.spark.sql(
            f"CREATE OR REPLACE TEMPORARY FUNCTION {function}(`at` STRING) RETURNS TABLE RETURN "
            f"SELECT {columns} FROM {states} WHERE {is_at}"
        )


def _occurs(names: Sequence[str], query: str) -> bool:
    """Return whether one of the names occurs in a query, and not only as a part of another name."""
    return re.search(rf"\b({'|'.join(names)})\b", query, re.IGNORECASE | re.ASCII) is not None


def _readable(time: str, fold: StoredRead | None) -> str:
    """Return the SQL for a time that is not before a fold; one before it is an error."""
    if fold is None:
        return time
    problem = sql_literal(f"the time is before {from_millis(fold.until)}, up to which the log is folded")
    return f"(CASE WHEN {time} < timestamp_millis({fold.until}L) THEN raise_error({problem}) ELSE {time} END)"


def _time(text: str, zone: str, now: datetime) -> str:
    """Return the SQL for the time of a text, as `times.read_time`: NULL for `raw`; another form is an error."""
    time, date = f"trim({text})", "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    in_zone = f"concat({time}, if(length({time}) = 10, 'T00:00:00', ''), {sql_literal(zone)})"
    cases = {
        f"{text} IS NULL OR {time} = ''": f"timestamp_millis({read_time(None, zone, now)}L)",
        f"lower({time}) IN ('{RAW}', '-1')": "NULL",
        f"{time} RLIKE '^-?[0-9]{{1,15}}$'": f"timestamp_millis(CAST({time} AS BIGINT))",
        f"{time} RLIKE '^{date}(T[0-9:]{{8}})?$'": f"CAST({in_zone} AS TIMESTAMP)",
        f"{time} RLIKE '^{date}T[0-9:]{{8}}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$'": f"CAST({time} AS TIMESTAMP)",
    }
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases.items())
    problem = sql_literal(f"the time is invalid; expected {TIME_FORMS}, `{RAW}` or an empty text")
    return f"(CASE {branches} ELSE raise_error({problem}) END)"
