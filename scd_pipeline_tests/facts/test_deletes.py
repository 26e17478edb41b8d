"""S14, S23: a delete in the feed of a fact removes the row of its grain, in any order of arrival."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest

from scd_pipeline.declaration import Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.players import PLAYER, frame
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import assert_same_rows

BET = Fact(
    "fct_bet",
    grain={"bet": "int"},
    event_time="placed_at",
    dimensions={"player": Role(PLAYER)},
    measures={"stake": "int"},
    source=Source("floor", feed=Feed(deletes="op = 'D'")),
)
BETS = {
    1: """
    | bet | placed_at  | player_id | stake | op |
    | 1   | 2019-03-05 | p         | 10    | I  |
    | 2   | 2019-03-05 | p         | 20    | I  |
    | 3   | 2019-03-05 | p         | 30    | I  |
    """,
    2: """
    | bet | placed_at  | player_id | stake | op |
    | 1   | NULL       | NULL      | NULL  | D  |
    | 2   | 2019-03-05 | p         | 20    | D  |
    | 9   | NULL       | NULL      | NULL  | D  |
    """,
    3: """
    | bet | placed_at  | player_id | stake | op |
    | 2   | 2019-07-01 | p         | 25    | I  |
    """,
}
"""Deliveries by the days of January. Day 2 deletes bets, one of which is unknown; bet 2 returns on day 3."""
EXPECTED = """
| bet | placed_at  | stake |
| 2   | 2019-07-01 | 25    |
| 3   | 2019-03-05 | 30    |
"""


def bets(day: int) -> Delivery:
    return Delivery("floor", str(day), at=dt.datetime(2020, 1, day), frame=frame(BETS[day]))


@pytest.mark.slow
@pytest.mark.parametrize("days", list(itertools.permutations(BETS)))
@rule("S14", "S23")
def test_a_delete_removes_the_row_of_its_grain(recorded: Warehouse, days: tuple[int, ...]) -> None:
    """Deletes may be late, of unknown rows and without other values. A row that is delivered later returns."""
    for day in days:
        load(recorded, BET, [bets(day)])
    columns = ("bet", "placed_at", "stake")
    assert_same_rows(EXPECTED, recorded.table(BET.name).read().toArrow().to_pylist(), columns)
    assert [str(result) for result in check_table(recorded, BET) if not result.passed] == []
    assert load(recorded, BET, [bets(2)]).row_counts == {}
