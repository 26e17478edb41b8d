"""A fact that is delivered by snapshots and a feed, and its deliveries as text tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from scd_pipeline.declaration import Fact, Feed, Role, Snapshot, Source
from scd_pipeline.declaration.fact import Strategy
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.facts.players import PLAYER, frame


def bet_fact(snapshot: Snapshot, retire_guard: float = 0.5, strategy: Strategy = "by_size") -> Fact:
    """A fact that is delivered by snapshots and a feed; its grain does not contain the day."""
    return Fact(
        "fct_bet",
        grain={"bet": "int"},
        event_time="played_at",
        dimensions={"player": Role(PLAYER)},
        measures={"day": "date", "coins": "int"},
        source=Source("floor", snapshot, Feed(), bad_row_limit=0.5, retire_guard=retire_guard),
        strategy=strategy,
    )


BET = bet_fact(Snapshot(scope="day"))
BETS = """
| bet | day        | played_at        | player_id | coins |
| 1   | 2019-03-05 | 2019-03-05T10:00 | p         | 1     |
| 2   | 2019-03-05 | 2019-03-05T11:00 | p         | 2     |
| 3   | 2019-07-01 | 2019-07-01T10:00 | p         | 3     |
| 4   | 2019-07-01 | 2019-07-01T11:00 | q         | 4     |
"""


def bets(
    number: int,
    table: str,
    *,
    scope: Sequence[str] | None = None,
    channel: str = "snapshot",
    revision: int = 1,
    withdrawn: bool = False,
) -> Delivery:
    return Delivery(
        "floor",
        str(number),
        channel,
        at=dt.datetime(2020, 1, number),
        revision=revision,
        frame=None if withdrawn else frame(table),
        scope=None if scope is None else [[day] for day in scope],
        withdrawn=withdrawn,
    )


def rows(opened: Warehouse) -> list[dict[str, Any]]:
    stored = opened.table(BET.name).read().toArrow().to_pylist()
    return [{"bet": row["bet"], "coins": row["coins"], "is_known": row["player_key"] != -1} for row in stored]


def files(opened: Warehouse, bets_of_day: Iterable[int]) -> set[str]:
    """The data files of the facts with these numbers."""
    stored = opened.table(BET.name).read().select("bet", "_metadata.file_path")
    return {row["file_path"] for row in stored.collect() if row["bet"] in set(bets_of_day)}
