"""L1: what a load of a fact replaces, by numbers of rows (`choose_strategy`)."""

from __future__ import annotations

from typing import Any

import pytest

from scd_pipeline.declaration import Snapshot
from scd_pipeline.declaration.fact import Strategy
from scd_pipeline.load.write_plan import FactSizes, choose_strategy
from scd_pipeline_tests.facts.bets import BET, bet_fact
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import parse

ALL_FACTS = bet_fact(Snapshot())
"""A fact whose snapshots have no scope."""
EDGES = """
| by    | stored    | opened  | overwritten | removed | in_scopes | strategy   | why                                |
| all   | 0         | 5       | 0           | 0       |           | whole      | nothing is stored: rows are added  |
| all   | 199999    | 0       | 1           | 0       |           | whole      | a small table                      |
| all   | 200000    | 0       | 1           | 0       |           | increments | few rows of a larger one           |
| all   | 200000    | 0       | 99999       | 0       |           | increments | less than half of the rows         |
| all   | 200000    | 0       | 99999       | 1       |           | whole      | half of the rows                   |
| all   | 100000000 | 0       | 49999999    | 0       |           | increments | less than half, at any size        |
| all   | 100000000 | 0       | 50000000    | 0       |           | whole      | half, at any size                  |
| all   | NULL      | 0       | 50000000    | 0       |           | increments | the number of rows is unknown      |
| scope | 999999    | 0       | 99          | 1       | 100       | increments | a small table                      |
| scope | 1000000   | 0       | 99          | 1       | 100       | scope      | all rows of the scopes             |
| scope | 1000000   | 0       | 49          | 1       | 100       | scope      | half of them                       |
| scope | 1000000   | 0       | 48          | 1       | 100       | increments | less than half of them             |
| scope | 1000000   | 0       | 100         | 0       | 100       | increments | nothing is removed: no MERGE       |
| scope | 1000000   | 0       | 99          | 1       | NULL      | increments | rows of other scopes change too    |
| scope | 1000000   | 0       | 999999      | 1       | 1000000   | scope      | all rows, in all scopes            |
| scope | NULL      | 0       | 99          | 1       | 100       | increments | the number of rows is unknown      |
"""


@pytest.mark.parametrize("edge", parse(EDGES), ids=lambda edge: f"{edge['by']}, {edge['stored']}: {edge['why']}")
@requirement("L1")
def test_the_numbers_of_rows_decide_what_is_replaced(edge: dict[str, Any]) -> None:
    """At each edge; `by` is whether the snapshots of the fact have all facts or those of a scope."""
    fact = BET if edge["by"] == "scope" else ALL_FACTS
    numbers = {name: edge[name] for name in ("stored", "opened", "overwritten", "removed", "in_scopes")}
    assert choose_strategy(fact, FactSizes(**numbers)) == edge["strategy"]


@pytest.mark.parametrize(("strategy", "by"), [("increments", "all"), ("whole", "all"), ("scope", "scope")])
@requirement("L1")
def test_a_declared_strategy_is_used_at_any_size(strategy: Strategy, by: str) -> None:
    snapshot = Snapshot(scope="day") if by == "scope" else Snapshot()
    fact = bet_fact(snapshot, strategy=strategy)
    for stored in (None, 1, 100_000_000):
        assert choose_strategy(fact, FactSizes(stored, overwritten=1)) == strategy
