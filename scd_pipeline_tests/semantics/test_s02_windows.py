"""S2 and S3: half-open windows, at most one current version, and gaps where an entity did not exist."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.invariants.dimensions import violations
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.engine import SharedTables, records
from scd_pipeline_tests.semantics.specification import CASE, Case, Declaration, case, feed, rule

GetSharedTables = Callable[[Declaration], SharedTables]


@rule("S2", "S3")
@case
def test_a_window_ends_where_the_next_one_starts() -> Case:
    """The window contains its start and not its end; the last version has no end."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            | 2        | 1  | 2024-02-01 | Kiel |
            | 3        | 1  | 2024-03-01 | Ulm  |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | current_flag | version |
        | Bonn | 2024-01-01     | 2024-02-01   | false        | 1       |
        | Kiel | 2024-02-01     | 2024-03-01   | false        | 2       |
        | Ulm  | 2024-03-01     | OPEN         | true         | 3       |
        """,
        on_page=True,
    )


@rule("S2", "S3", "S18")
@case
def test_a_delete_and_a_return_leave_a_gap_between_windows() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 2        | 1  | 2024-02-01 | D  |      |
            | 3        | 1  | 2024-03-01 |    | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | current_flag | version |
        | Bonn | 2024-01-01     | 2024-02-01   | false        | 1       |
        | Bonn | 2024-03-01     | OPEN         | true         | 2       |
        """,
    )


@rule("S3")
@case
def test_a_deleted_entity_has_no_current_version() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 1        | 2  | 2024-01-01 |    | Ulm  |
            | 2        | 1  | 2024-02-01 | D  |      |
            """
        ),
        becomes="""
        | id | city | effective_to | current_flag |
        | 1  | Bonn | 2024-02-01   | false        |
        | 2  | Ulm  | OPEN         | true         |
        """,
    )


@rule("S2", "S5")
@case
def test_no_window_has_zero_length() -> Case:
    """Of several changes at one time, only the last one opens a version."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            | 2        | 1  | 2024-01-01 | Kiel |
            | 3        | 1  | 2024-01-01 | Ulm  |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version |
        | Ulm  | 2024-01-01     | OPEN         | 1       |
        """,
    )


@rule("S1", "S2")
@case
def test_a_window_can_be_as_short_as_one_microsecond() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time                       | city |
            | 1        | 1  | 2024-01-01 00:00:00        | Bonn |
            | 2        | 1  | 2024-01-01 00:00:00.000001 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from             | effective_to               |
        | Bonn | 2024-01-01                 | 2024-01-01 00:00:00.000001 |
        | Kiel | 2024-01-01 00:00:00.000001 | OPEN                       |
        """,
    )


@rule("S3")
@case
def test_a_version_dated_in_the_future_is_current() -> Case:
    """The current version is the one without an end, in force or not; the clock is not used."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            | 2        | 1  | 2999-01-01 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | current_flag |
        | Bonn | 2024-01-01     | 2999-01-01   | false        |
        | Kiel | 2999-01-01     | OPEN         | true         |
        """,
    )


@rule("S2")
@pytest.mark.parametrize(
    ("time", "cities"),
    [
        ("2023-12-31 23:59:59.999999", []),
        ("2024-01-01", ["Bonn"]),
        ("2024-01-31 23:59:59.999999", ["Bonn"]),
        ("2024-02-01", []),
        ("2024-03-01", ["Bonn"]),
        ("9999-12-31 23:59:58", ["Bonn"]),
    ],
)
@pytest.mark.xdist_group(CUSTOMER.dimension.name)
def test_a_query_as_of_a_time_returns_the_version_in_force(
    shared_tables: GetSharedTables, time: str, cities: list[str]
) -> None:
    tables = shared_tables(CUSTOMER)
    number = tables.number(test_a_delete_and_a_return_leave_a_gap_between_windows.case)
    frame = queries.as_of(tables.warehouse, tables.dimension, dt.datetime.fromisoformat(time))
    assert [row["city"] for row in records(frame.where(F.col(CASE) == number))] == cities


@rule("S2", "S3")
@pytest.mark.xdist_group(CUSTOMER.dimension.name)
def test_no_test_case_violates_an_invariant(shared_tables: GetSharedTables) -> None:
    """The rows of all cases of this declaration."""
    tables = shared_tables(CUSTOMER)
    rows = tables.warehouse.table(tables.dimension.name).read()
    assert records(violations(rows, tables.dimension)) == []
