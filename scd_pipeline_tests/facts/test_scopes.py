"""S41: a snapshot replaces the facts of its scope, and touches no file that has none of them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.declaration import Snapshot
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.bets import BET, BETS, bet_fact, bets, files, rows
from scd_pipeline_tests.facts.players import PLAYER, players
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.storage.test_crash import killed_before
from scd_pipeline_tests.storage.two_tables import between_the_commits, reader_in_a_loop
from scd_pipeline_tests.text_tables import assert_same_rows

SECOND_DAY = """
| bet | day        | played_at        | player_id | coins |
| 3   | 2019-07-01 | 2019-07-01T10:00 | p         | 30    |
| 5   | 2019-07-01 | 2019-07-01T12:00 | p         | 5     |
"""
BOTH_DAYS = """
| bet | coins | is_known |
| 1   | 1     | true     |
| 2   | 2     | true     |
| 3   | 30    | true     |
| 5   | 5     | true     |
"""
BETS_WITH_LATE_BET = """
| bet | coins | is_known |
| 1   | 1     | true     |
| 2   | 2     | true     |
| 3   | 3     | true     |
| 4   | 4     | false    |
| 6   | 6     | true     |
"""
NO_ROWS = "| bet | day | played_at | player_id | coins |"
COLUMNS = ("bet", "coins", "is_known")


@requirement("L5")
@rule("S23", "S41")
def test_a_snapshot_of_a_day_replaces_its_facts_and_leaves_the_other_files(bet: Warehouse) -> None:
    """Bet 4 is omitted, bet 3 is changed and bet 5 is new; the first day has the files that it had."""
    before = files(bet, (1, 2))
    result = load(bet, BET, [bets(2, SECOND_DAY)])
    assert result.row_counts == {"open": 1, "overwrite": 1, "remove": 1}
    assert_same_rows(BOTH_DAYS, rows(bet), COLUMNS)
    assert files(bet, (1, 2)) == before


@requirement("L7")
@rule("S26", "S41")
def test_a_row_outside_of_the_announced_days_is_a_bad_row(bet: Warehouse) -> None:
    """The announced second day is replaced; the first day keeps its bets."""
    outside = SECOND_DAY + "| 6   | 2019-03-05 | 2019-03-05T12:00 | p         | 6     |\n"
    planned = plan(bet, BET, [bets(2, outside, scope=["2019-07-01"])])
    (batch,) = planned.results
    assert (batch.outcome, batch.rows, batch.bad_rows) == ("accepted", 3, 1)
    assert planned.row_counts == {"open": 1, "overwrite": 1, "remove": 1}
    (bad,) = planned.bad_rows().select("reason").collect()
    assert bad["reason"] == "outside of the delivery's scope"


@pytest.mark.parametrize(
    ("snapshot", "table", "scope", "problem"),
    [
        (Snapshot(scope="day"), SECOND_DAY, ["2019-03-05", "2019-07-01"], "it has no rows of day 2019-03-05"),
        (Snapshot(), NO_ROWS, None, "it has no rows"),
    ],
    ids=["one of two days", "all facts"],
)
@requirement("L7")
@rule("S27", "S41")
def test_a_snapshot_that_has_no_rows_of_its_scope_is_rejected(
    bet: Warehouse, snapshot: Snapshot, table: str, scope: list[str] | None, problem: str
) -> None:
    """Nothing is written, also for the day that has rows."""
    result = plan(bet, bet_fact(snapshot), [bets(2, table, scope=scope)])
    (batch,) = result.results
    assert (batch.outcome, batch.code, result.row_counts) == ("rejected", "EMPTY_SCOPE", {})
    assert batch.problem.startswith(f"{problem}; expected")


@pytest.mark.slow(5)
@pytest.mark.parametrize(
    ("guard", "expected"),
    [(1.0, ("accepted", {"remove": 2})), (0.5, ("rejected", {}))],
    ids=["all of its facts may be removed", "half of its facts may be removed"],
)
@requirement("L7")
@rule("S27", "S41")
def test_an_empty_day_is_emptied_if_its_source_declares_it(
    bet: Warehouse, guard: float, expected: tuple[str, dict[str, int]]
) -> None:
    """Within the retire guard."""
    fact = bet_fact(Snapshot(scope="day", empty_scope="delete"), guard)
    result = plan(bet, fact, [bets(2, NO_ROWS, scope=["2019-07-01"])])
    assert (result.results[0].outcome, result.row_counts) == expected


TWO_DAYS = """
| bet | day        | played_at        | player_id | coins |
| 1   | 2019-03-05 | 2019-03-05T10:00 | p         | 4     |
| 3   | 2019-07-01 | 2019-07-01T10:00 | p         | 2     |
| 4   | 2019-07-01 | 2019-07-01T11:00 | q         | 4     |
"""


@requirement("L3", "L6", "L19")
@rule("S25", "S41")
def test_a_reader_sees_two_days_change_in_one_commit(bet: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins move from one day to another: their sum is always that of all bets, and no read fails.

    Compaction after the load changes no row.
    """

    def read() -> list[dict[str, Any]]:
        totals = bet.table(BET.name).read().agg(F.count("bet").alias("bets"), F.sum("coins").alias("coins"))
        return list(totals.toArrow().to_pylist())

    with reader_in_a_loop(read) as (seen, wait_for_reads):
        with between_the_commits(wait_for_reads, monkeypatch, BET.name):
            load(bet, BET, [bets(2, TWO_DAYS)])
        bet.table(BET.name).compact()
        wait_for_reads()
    assert [totals for totals, _ in groupby(seen)] == [[{"bets": 4, "coins": 10}], [{"bets": 3, "coins": 10}]]


LATE_BET = """
| bet | day        | played_at        | player_id | coins |
| 6   | 2019-03-05 | 2019-03-05T12:00 | p         | 6     |
"""


@requirement("L8", "L9", "L10")
@rule("S23", "S41")
def test_a_late_fact_of_an_old_day_is_added_without_a_rewrite_of_the_others(bet: Warehouse) -> None:
    """It has the key of its event time. The delivery is passed twice, and is loaded once."""
    before = files(bet, (1, 2, 3, 4))
    result = load(bet, BET, [bets(2, LATE_BET, channel="feed"), bets(2, LATE_BET, channel="feed")])
    assert result.row_counts == {"open": 1}
    assert_same_rows(BETS_WITH_LATE_BET, rows(bet), COLUMNS)
    assert files(bet, (1, 2, 3, 4)) == before


@requirement("L1", "L2")
@rule("S23", "S41")
def test_a_snapshot_without_a_scope_replaces_all_facts(bet: Warehouse) -> None:
    """By default a table of few rows is replaced as a whole, and its commit has their number."""
    before = files(bet, (1, 2, 3, 4))
    assert load(bet, bet_fact(Snapshot()), [bets(2, TWO_DAYS)]).row_counts == {"overwrite": 2, "remove": 1}
    assert_same_rows(
        """
        | bet | coins | is_known |
        | 1   | 4     | true     |
        | 3   | 2     | true     |
        | 4   | 4     | false    |
        """,
        rows(bet),
        COLUMNS,
    )
    assert files(bet, (1, 3, 4)).isdisjoint(before)
    assert bet.table(BET.name).last_commit().records == 3


CORRECTED = BETS.replace("| p         | 1     |", "| p         | 10    |")
HISTORY = [
    bets(1, BETS),
    bets(2, SECOND_DAY),
    bets(3, LATE_BET, channel="feed"),
    bets(4, TWO_DAYS),
    bets(4, "", revision=2, withdrawn=True),
    bets(1, CORRECTED, revision=2),
]
"""Two days; the second one again; a late bet of the first day; a delivery that is withdrawn; and a correction."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "loads",
    [
        [[delivery] for delivery in HISTORY],
        [[delivery, delivery] for delivery in reversed(HISTORY)],
        [HISTORY],
    ],
    ids=["each by its own load", "in reverse order and doubled", "by one load"],
)
@rule("S14", "S34", "S41")
def test_the_facts_do_not_depend_on_the_order_of_the_deliveries(
    recorded: Warehouse, loads: list[list[Delivery]]
) -> None:
    for deliveries in loads:
        load(recorded, BET, deliveries)
    assert_same_rows(
        """
        | bet | coins | is_known |
        | 1   | 10    | true     |
        | 2   | 2     | true     |
        | 3   | 30    | true     |
        | 5   | 5     | true     |
        | 6   | 6     | true     |
        """,
        rows(recorded),
        COLUMNS,
    )


STRATEGIES = {
    "whole": (bet_fact(Snapshot()), "snapshot", BETS.replace("| 4     |", "| 40    |")),
    "by day": (BET, "snapshot", BETS[: BETS.index("| 1 ")] + "| 4   | 2019-07-01 | 2019-07-01T11:00 | q | 40 |"),
    "increments": (BET, "feed", BETS[: BETS.index("| 1 ")] + "| 4   | 2019-07-01 | 2019-07-01T11:00 | q | 40 |"),
}
"""The second delivery of each: bet 4 has other coins; only a delivery of the whole day omits bet 3."""


@pytest.mark.parametrize(
    ("strategy", "step"),
    [
        ("by day", "commit_table"),
        pytest.param("by day", "commit_log", marks=pytest.mark.slow),
        *(
            pytest.param(strategy, step, marks=pytest.mark.slow)
            for strategy in ("whole", "increments")
            for step in ("commit_log", "commit_table")
        ),
    ],
)
@requirement("L4", "L11")
@rule("S17", "S41")
def test_the_next_load_completes_a_killed_one(
    bet: Warehouse, monkeypatch: pytest.MonkeyPatch, strategy: str, step: str
) -> None:
    """Until then, readers have the last complete state."""
    fact, channel, table = STRATEGIES[strategy]
    before = rows(bet)
    with killed_before(step, monkeypatch):
        load(bet, fact, [bets(2, table, channel=channel)])
    assert_same_rows(before, rows(bet), COLUMNS)
    load(bet, fact, [bets(2, table, channel=channel)])
    repeated = load(bet, fact, [bets(2, table, channel=channel)])
    assert (repeated.row_counts, [batch.outcome for batch in repeated.results]) == ({}, ["unchanged"])
    expected = {1: 1, 2: 2, 3: 3, 4: 40}
    if strategy == "by day":
        del expected[3]
    assert {row["bet"]: row["coins"] for row in rows(bet)} == expected


LATE = """
| player_id | at         | op | tier     | email | born | by   |
| p         | 2019-03-04 |    | Platinum | c     | 1990 | NULL |
| q         | 2019-01-01 |    | Bronze   | d     | 1991 | NULL |
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["by day", "whole", "increments"])
@requirement("L14")
@rule("S24", "S41")
def test_each_fact_has_the_key_of_its_event_time_after_a_late_change_of_a_dimension(
    bet: Warehouse, strategy: str
) -> None:
    """Also the facts of the first day, which the delivery of the second one does not touch."""
    fact, channel, table = STRATEGIES[strategy]
    ingest_and_apply(bet, PLAYER, [players("2", LATE)])
    load(bet, fact, [bets(2, table, channel=channel)])
    tiers = queries.with_dimensions(bet, fact).select("bet", "player_tier").collect()
    expected = {1: "Platinum", 2: "Platinum", 3: "Silver", 4: "Bronze"}
    if strategy == "by day":
        del expected[3]
    assert dict(tiers) == expected
    (check,) = check_table(bet, fact, ["surrogate_keys_fit_event_time"])
    assert check.passed
