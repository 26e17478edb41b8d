"""S14, S41: random deliveries of facts by scope, compared with a naive evaluation in the order of their times."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pytest

from scd_pipeline.declaration import Fact, Feed, Role, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.facts.players import PLAYER
from scd_pipeline_tests.semantics.specification import rule

SEED, SCENARIOS, DELIVERIES, LOADS = 41_000, 12, 6, 3
DAYS = tuple(dt.date(2019, 3, day) for day in (1, 2, 3))
SALE = Fact(
    "fct_sale",
    grain={"scenario": "int", "sale": "int"},
    event_time="sold_at",
    dimensions={"player": Role(PLAYER)},
    measures={"day": "date", "coins": "int"},
    source=Source("till", Snapshot(scope=("scenario", "day"), empty_scope="delete"), Feed(), retire_guard=1.0),
)
SCHEMA = pa.schema([(name, pa.string()) for name in ("scenario", "sale", "day", "sold_at", "player_id", "coins")])
Rows: TypeAlias = dict[int, tuple[dt.date, int]]
"""The day and the coins of each sale."""


@dataclass(frozen=True)
class Drawn:
    """A revision of a delivery of one scenario; without rows it withdraws the delivery.

    Attributes:
        days: The days that a snapshot names; None for increments.
    """

    scenario: int
    number: int
    revision: int
    days: tuple[dt.date, ...] | None
    rows: Rows | None

    def to_delivery(self) -> Delivery:
        frame = None
        if self.rows is not None:
            texts = [
                {
                    "scenario": str(self.scenario),
                    "sale": str(sale),
                    "day": str(day),
                    "sold_at": str(day),
                    "player_id": "p",
                    "coins": str(coins),
                }
                for sale, (day, coins) in self.rows.items()
            ]
            frame = pa.Table.from_pylist(texts, schema=SCHEMA)
        is_named = frame is not None and self.days is not None
        return Delivery(
            "till",
            f"{self.scenario}-{self.number}",
            "feed" if self.days is None else "snapshot",
            at=dt.datetime(2020, 1, 1 + self.number),
            revision=self.revision,
            frame=frame,
            scope=[[self.scenario, day] for day in self.days or ()] if is_named else None,
            withdrawn=frame is None,
        )


def drawn_deliveries(scenario: int, rng: random.Random) -> list[Drawn]:
    """Return snapshots of some days and increments; some are revised, and some are withdrawn."""
    deliveries = []
    for number in range(DELIVERIES):
        days = tuple(sorted(rng.sample(DAYS, rng.randint(1, 2)))) if rng.random() < 0.6 else None
        revisions = 1 + (rng.random() < 0.3)
        for revision in range(1, revisions + 1):
            sales = rng.sample(range(6), rng.randint(0 if days else 1, 4))
            rows = {sale: (rng.choice(days or DAYS), rng.randint(1, 99)) for sale in sales}
            is_withdrawn = revision > 1 and rng.random() < 0.5
            deliveries.append(Drawn(scenario, number, revision, days, None if is_withdrawn else rows))
    return deliveries


def expected_rows(deliveries: list[Drawn]) -> Rows:
    """Return the facts after the current revisions in the order of their times."""
    current = {each.number: each for each in sorted(deliveries, key=lambda each: each.revision)}
    facts: Rows = {}
    for _, each in sorted(current.items()):
        if each.rows is not None:
            facts = {sale: row for sale, row in facts.items() if row[0] not in (each.days or ())} | each.rows
    return facts


@pytest.mark.slow(60)
@rule("S14", "S34", "S41")
def test_facts_by_scope_are_those_of_a_naive_evaluation(recorded: Warehouse) -> None:
    """Whatever the order of the deliveries is, and in whatever loads they are."""
    rng = random.Random(SEED)
    drawn = {scenario: drawn_deliveries(scenario, rng) for scenario in range(SCENARIOS)}
    shuffled = [each.to_delivery() for deliveries in drawn.values() for each in deliveries]
    rng.shuffle(shuffled)
    for number in range(LOADS):
        load(recorded, SALE, shuffled[number::LOADS])
    stored: dict[int, Rows] = {scenario: {} for scenario in drawn}
    for row in recorded.table(SALE.name).read().collect():
        stored[row["scenario"]][row["sale"]] = (row["day"], row["coins"])
    assert stored == {scenario: expected_rows(deliveries) for scenario, deliveries in drawn.items()}
