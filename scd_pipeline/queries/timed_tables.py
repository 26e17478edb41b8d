"""Timed tables in SQL: a view with the rows at a time, and a function that returns those at any time (S12)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.delta.table import sql_literal
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.expressions import quote_name
from scd_pipeline.texts import short_repr
from scd_pipeline.timed.evaluate import FIRST_MILLIS, FROM, TO
from scd_pipeline.timed.log import TIME_FORMS
from scd_pipeline.timed.read import read_state
from scd_pipeline.timed.times import RAW, is_in_calendar, read_time

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
        UsageError: The value is not a time, or not one that a table can store.
    """
    millis = parse_read_time(table, value, now, location)
    if isinstance(millis, str) or not is_in_calendar(millis):
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
    view `<table>_states` has every state of each row, with its window in milliseconds.

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
        if table.name.casefold() not in query.casefold():
            continue
        state = read_state(warehouse, table)
        state.rows(parse_read_time(table, at, now, "time")).createOrReplaceTempView(table.name)
        names = [table.name + AT_SUFFIX, table.name + STATES_SUFFIX]
        if not any(name.casefold() in query.casefold() for name in names):
            continue
        function, states = map(quote_name, names)
        state.states().createOrReplaceTempView(table.name + STATES_SUFFIX)
        columns = ", ".join(quote_name(name) for name in state.columns)
        time = _millis(f"{function}.`at`", table.timezone, now)
        warehouse.spark.sql(
            f"CREATE OR REPLACE TEMPORARY FUNCTION {function}(`at` STRING) RETURNS TABLE RETURN "
            f"SELECT {columns} FROM {states} WHERE {FROM} <= {time} AND {time} < {TO}"
        )


def _millis(text: str, zone: str, now: datetime) -> str:
    """Return the SQL for the milliseconds of a text, as `times.read_time`; the text of another form is an error."""
    time = f"trim({text})"
    cases = {
        f"{text} IS NULL OR {time} = ''": f"{read_time(None, zone, now)}L",
        f"lower({time}) IN ('{RAW}', '-1')": f"{FIRST_MILLIS + 1}L - 1L",
        rf"{time} RLIKE '^-?[0-9]{{1,18}}$'": f"CAST({time} AS BIGINT)",
        f"{time} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(T[0-9:]{{8}})?$'": (
            f"unix_millis(CAST(concat({time}, if(length({time}) = 10, 'T00:00:00', ''), {sql_literal(zone)}) "
            "AS TIMESTAMP))"
        ),
        f"{time} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9:]{{8}}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$'": (
            f"unix_millis(CAST({time} AS TIMESTAMP))"
        ),
    }
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases.items())
    problem = sql_literal(f"the time is invalid; expected {TIME_FORMS}, `raw` or an empty text")
    return f"(CASE {branches} ELSE raise_error({problem}) END)"
