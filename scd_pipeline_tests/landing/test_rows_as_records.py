"""S14, S38: a merge that is later than all before it reads the stored rows of its keys instead of their records."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from textwrap import dedent

import pytest

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import narrowing
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.rows_as_records import can_replace_records
from scd_pipeline.history.snapshots import BatchChanges
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.landing.tables import assert_stored, landing_table, load_rows
from scd_pipeline_tests.semantics.specification import rule

MERGED = """
    disposition: merge
    primary_key: {id: int}
    columns: {city: string, phone: string}
    missing: "null"
    """
TABLE = landing_table(MERGED)


@pytest.mark.slow(20)
@rule("S14", "S38")
def test_later_merges_continue_from_the_stored_rows(opened: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row keeps its first delivery. A late delivery still finds its place."""
    monkeypatch.setattr(narrowing, "NARROWED_FROM", 0)
    load_rows(
        opened,
        TABLE,
        """
        | delivery   | id | city | phone |
        | 2024-01-01 | 1  | Bonn | 10    |
        | 2024-01-01 | 2  | Kiel | 20    |
        | 2024-01-01 | 3  | Rome | NULL  |
        """,
    )
    second = """
        | delivery   | id | city |
        | 2024-01-03 | 1  | Rome |
        | 2024-01-03 | 2  | Kiel |
        | 2024-01-03 | 4  | Oslo |
        | 2024-01-04 | 4  | Ulm  |
        """
    result = load_rows(opened, TABLE, second)
    assert [(batch.new, batch.changed, batch.deleted) for batch in result.results] == [(1, 2, 0), (0, 1, 0)]
    assert_stored(
        opened,
        """
        | id | city | phone | load_run_id         | last_updated        |
        | 1  | Rome | NULL  | api/feed/2024-01-01 | 2024-01-03 00:00:00 |
        | 2  | Kiel | NULL  | api/feed/2024-01-01 | 2024-01-03 00:00:00 |
        | 3  | Rome | NULL  | api/feed/2024-01-01 | 2024-01-01 00:00:00 |
        | 4  | Ulm  | NULL  | api/feed/2024-01-03 | 2024-01-04 00:00:00 |
        """,
    )
    load_rows(
        opened,
        TABLE,
        """
        | delivery   | id | city | phone |
        | 2024-01-02 | 1  | Kiel | 11    |
        | 2024-01-02 | 4  | Bern | 40    |
        """,
    )
    assert_stored(
        opened,
        """
        | id | city | phone | load_run_id         | last_updated        |
        | 1  | Rome | NULL  | api/feed/2024-01-01 | 2024-01-03 00:00:00 |
        | 2  | Kiel | NULL  | api/feed/2024-01-01 | 2024-01-03 00:00:00 |
        | 3  | Rome | NULL  | api/feed/2024-01-01 | 2024-01-01 00:00:00 |
        | 4  | Ulm  | NULL  | api/feed/2024-01-02 | 2024-01-04 00:00:00 |
        """,
    )
    assert all(check.passed for check in check_table(opened, TABLE))


def time(day: int) -> datetime:
    return datetime(2024, 1, day, tzinfo=timezone.utc)


STORED = Batch("api", "feed", "1", "0", time(1), earliest=time(1), latest=time(1))
NEW = replace(STORED, delivery="2", at=time(2), earliest=time(2), latest=time(2))
CASES = {
    "the newest one": ([NEW], [STORED], True),
    "the first one": ([NEW], [], True),
    "several": ([NEW, replace(NEW, delivery="3", at=time(3))], [STORED], True),
    "a late one": ([NEW, replace(NEW, delivery="0", at=time(1))], [STORED], False),
    "one of the same time": ([replace(NEW, at=time(1))], [STORED], False),
    "a stored row is newer": ([NEW], [replace(STORED, latest=time(3))], False),
    "a withdrawal": ([replace(NEW, withdrawn=True)], [STORED], False),
    "an earlier one of a channel that the table had": ([NEW], [replace(STORED, channel="snapshot")], False),
}


@pytest.mark.parametrize("case", CASES)
def test_the_stored_rows_show_what_deliveries_in_order_continue(case: str) -> None:
    new, in_effect, expected = CASES[case]
    assert can_replace_records(BatchChanges(tuple(new), (), ()), in_effect, TABLE.as_dimension()) is expected


def test_they_do_not_show_a_delivery_that_is_replaced() -> None:
    assert not can_replace_records(BatchChanges((NEW,), (STORED,), ()), [], TABLE.as_dimension())


@pytest.mark.parametrize(
    "declaration",
    [
        dedent(MERGED) + "hard_delete: phone",
        "disposition: replace\ncolumns: {city: string}",
        "disposition: merge\nmerge_key: {day: string}\ncolumns: {city: string}",
    ],
)
def test_they_do_not_show_rows_that_were_removed(declaration: str) -> None:
    assert not can_replace_records(BatchChanges((NEW,), (), ()), [STORED], landing_table(declaration).as_dimension())
