"""L1: the strategies by which a load writes a fact lead to the same rows, in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Fact, Snapshot
from scd_pipeline.declaration.fact import Strategy
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.facts.bets import BET, BETS, bet_fact, bets, files, rows
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.storage.test_crash import killed_before
from scd_pipeline_tests.storage.two_tables import between_the_commits, reader_in_a_loop
from scd_pipeline_tests.text_tables import assert_same_rows

FACTS: dict[Strategy, Fact] = {
    "increments": bet_fact(Snapshot(scope="day"), strategy="increments"),
    "scope": bet_fact(Snapshot(scope="day"), strategy="scope"),
    "whole": bet_fact(Snapshot(), strategy="whole"),
}
CORRECTION = """
| bet | day        | played_at        | player_id | coins |
| 3   | 2019-07-01 | 2019-07-01T10:00 | p         | 30    |
| 5   | 2019-07-01 | 2019-07-01T12:00 | p         | 5     |
"""
"""Bet 3 of the second day has other coins, and bet 5 is new."""
CORRECTED = """
| bet | coins | is_known |
| 1   | 1     | true     |
| 2   | 2     | true     |
| 3   | 30    | true     |
| 4   | 4     | false    |
| 5   | 5     | true     |
"""
COLUMNS = ("bet", "coins", "is_known")


def versions(opened: Warehouse) -> int:
    """The number of commits of the fact's table."""
    return opened.table(BET.name).newest_version() + 1


@pytest.mark.parametrize(
    ("strategy", "untouched"),
    [
        pytest.param("increments", [1, 2, 4], id="increments"),
        pytest.param("scope", [1, 2], id="scope"),
        pytest.param("whole", [], id="whole"),
    ],
)
@pytest.mark.slow(9)
@requirement("L1")
@rule("S23", "S25", "S41")
def test_each_strategy_writes_the_same_rows_in_one_commit(
    bet: Warehouse, monkeypatch: pytest.MonkeyPatch, strategy: Strategy, untouched: list[int]
) -> None:
    """A reader sees all old or all new facts; the bets that are not replaced are in the files in which they were."""

    def read() -> list[dict[str, Any]]:
        totals = bet.table(BET.name).read().agg(F.count("bet").alias("bets"), F.sum("coins").alias("coins"))
        return list(totals.toArrow().to_pylist())

    before, commits = {number: files(bet, [number]) for number in (1, 2, 4)}, versions(bet)
    with reader_in_a_loop(read) as (seen, wait_for_reads):
        with between_the_commits(wait_for_reads, monkeypatch, BET.name):
            load(bet, FACTS[strategy], [bets(2, CORRECTION, channel="feed")])
        wait_for_reads()
    assert [totals for totals, _ in groupby(seen)] == [[{"bets": 4, "coins": 10}], [{"bets": 5, "coins": 42}]]
    assert_same_rows(CORRECTED, rows(bet), COLUMNS)
    assert versions(bet) == commits + 1
    assert [number for number in before if files(bet, [number]) == before[number]] == untouched


MOVED = """
| bet | day        | played_at        | player_id | coins |
| 2   |            | 2019-03-05T11:00 | p         | 2     |
| 3   | 2019-03-05 | 2019-07-01T10:00 | p         | 3     |
"""


@pytest.mark.slow
@requirement("L1")
@rule("S41")
def test_a_row_that_moves_to_another_scope_is_in_one_of_them(bet: Warehouse) -> None:
    """Bet 3 moves to the first day, bet 2 to no day, and back; in each load, both days are replaced."""
    load(bet, FACTS["scope"], [bets(2, MOVED, channel="feed")])
    days = {row["bet"]: str(row["day"]) for row in bet.table(BET.name).read().collect()}
    assert days == {1: "2019-03-05", 2: "None", 3: "2019-03-05", 4: "2019-07-01"}
    load(bet, FACTS["scope"], [bets(3, BETS, channel="feed")])
    days = {row["bet"]: str(row["day"]) for row in bet.table(BET.name).read().collect()}
    assert days == {1: "2019-03-05", 2: "2019-03-05", 3: "2019-07-01", 4: "2019-07-01"}
    assert bet.table(BET.name).read().count() == 4


OMITTED = """
| bet | day        | played_at        | player_id | coins |
| 1   | 2019-03-05 | 2019-03-05T10:00 | p         | 4     |
| 3   | 2019-07-01 | 2019-07-01T10:00 | p         | 2     |
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", list(FACTS))
@requirement("L1", "L4", "L11")
@rule("S17", "S41")
def test_the_next_load_completes_a_killed_one_by_each_strategy(
    bet: Warehouse, monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    """It overwrites two bets and removes two. Until then, readers have the last complete state."""
    before = rows(bet)
    with killed_before("commit_table", monkeypatch):
        load(bet, FACTS[strategy], [bets(2, OMITTED)])
    assert_same_rows(before, rows(bet), COLUMNS)
    assert load(bet, FACTS[strategy], [bets(2, OMITTED)]).row_counts == {"overwrite": 2, "remove": 2}
    assert {row["bet"]: row["coins"] for row in rows(bet)} == {1: 4, 3: 2}


@pytest.mark.slow(25)
@pytest.mark.parametrize("strategy", ["scope", "whole"])
@requirement("L1")
@rule("S16", "S24")
def test_a_concurrent_load_is_not_overwritten(
    bet: Warehouse, monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    """It commits between the plan and the commit of the other load, which then plans its rows again."""
    late = BETS[: BETS.index("| 1 ")] + "| 6   | 2019-03-05 | 2019-03-05T12:00 | p         | 6     |\n"
    others = [bets(3, late, channel="feed")]

    def load_another() -> None:
        if others:
            load(bet, FACTS[strategy], [others.pop()])

    with between_the_commits(load_another, monkeypatch, BET.name):
        load(bet, FACTS[strategy], [bets(2, CORRECTION, channel="feed")])
    assert {row["bet"]: row["coins"] for row in rows(bet)} == {1: 1, 2: 2, 3: 30, 4: 4, 5: 5, 6: 6}


@pytest.fixture
def in_schema(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    """A warehouse in a schema of the catalog."""
    schema = f"mart_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path / schema}'")
    yield Warehouse(spark, tmp_path / "scratch", schema=schema)
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.slow(20)
@requirement("L1")
@rule("S41")
def test_a_table_in_a_schema_keeps_its_columns_and_properties(in_schema: Warehouse) -> None:
    """The facts have no known player. Scopes and the whole table are replaced in turn."""
    load(in_schema, BET, [bets(1, BETS)])
    table = in_schema.table(BET.name)
    before = (table.columns(), table.properties())
    load(in_schema, FACTS["scope"], [bets(2, CORRECTION, channel="feed")])
    load(in_schema, FACTS["whole"], [bets(3, BETS, channel="feed")])
    assert (table.columns(), table.properties()) == before
    assert {row["bet"]: row["coins"] for row in rows(in_schema)} == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}
