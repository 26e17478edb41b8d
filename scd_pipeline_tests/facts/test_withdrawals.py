"""S34: `withdraw` undoes one delivery of one table, records who and why, and only an explicit load restores it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from scd_pipeline import queries
from scd_pipeline.declaration import DeclaredTable, Fact, Feed, LandingTable, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load.run import LoadResult, load
from scd_pipeline.operations.withdrawals import withdrawal
from scd_pipeline_tests.facts.players import PLAY, PLAYER, frame, plays
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows

DEPOSIT = Fact(
    "fct_deposit",
    grain={"deposit": "int"},
    event_time="paid_at",
    dimensions={"player": Role(PLAYER)},
    measures={"amount": "decimal(12,2)"},
    source=Source("bank", feed=Feed()),
)
DEPOSITS = """
| deposit | paid_at    | player_id | amount |
| 1       | 2019-03-05 | p         | 12.50  |
"""
SECOND_PLAYS = """
| play | played_at  | player_id | partner_id | coins |
| 3    | 2019-07-01 | p         | NULL       | 30    |
| 4    | 2019-12-24 | p         | NULL       | 40    |
"""


def withdraw(opened: Warehouse, table: DeclaredTable, name: str) -> LoadResult:
    """Withdraw a delivery as the command and `Pipeline.withdraw` do."""
    return load(opened, table, [withdrawal(opened, table, name, by="ann", reason="wrong till")])


def coins(opened: Warehouse) -> dict[int, int]:
    """Return the coins of each play."""
    return {row["play"]: row["coins"] for row in opened.table(PLAY.name).read().select("play", "coins").collect()}


@pytest.mark.slow(18)
@requirement("L12")
@rule("S14", "S34")
def test_a_withdrawal_undoes_one_delivery_of_one_fact(played: Warehouse) -> None:
    """It is one commit. The delivery can be loaded again, but only explicitly, and then as often as it arrives."""
    second = plays("2", SECOND_PLAYS, day=2)
    load(played, DEPOSIT, [Delivery("bank", "1", at=dt.datetime(2020, 1, 1), frame=frame(DEPOSITS))])
    load(played, PLAY, [second])
    versions = {table.name: played.table(table.name).last_commit().table_version for table in (PLAY, DEPOSIT)}
    assert coins(played) == {1: 1, 2: 2, 3: 30, 4: 40}
    result = withdraw(played, PLAY, "2")
    assert result.row_counts == {"overwrite": 1, "remove": 1}
    assert (coins(played), result.table_version) == ({1: 1, 2: 2, 3: 3}, versions[PLAY.name] + 1)
    assert played.table(DEPOSIT.name).newest_version() == versions[DEPOSIT.name], "the other fact has no new commit"
    repeated, arrived = withdraw(played, PLAY, "2"), load(played, PLAY, [second])
    assert [each.results[0].outcome for each in (repeated, arrived)] == ["unchanged", "superseded"]
    restored = load(played, PLAY, [replace(second, allow="withdrawn")])
    assert (restored.results[0].outcome, coins(played)) == ("accepted", {1: 1, 2: 2, 3: 30, 4: 40})
    assert load(played, PLAY, [second]).row_counts == {}
    assert_same_rows(
        """
        | delivery | revision | state      | rows | actor | reason     |
        | '1'      | '1'      | current    | 3    | NULL  | NULL       |
        | '2'      | '1'      | superseded | 2    | NULL  | NULL       |
        | '2'      | '2'      | superseded | 0    | ann   | wrong till |
        | '2'      | '3'      | current    | 2    | NULL  | NULL       |
        """,
        queries.batches(played, PLAY.name).toArrow().to_pylist(),
        ("delivery", "revision", "state", "rows", "actor", "reason"),
    )


@rule("S34")
@pytest.mark.slow(16)
def test_a_withdrawn_file_of_a_landing_table_is_loaded_again_only_if_it_is_allowed(
    opened: Warehouse, tmp_path: Path
) -> None:
    """Afterwards the file is unchanged, as after any load."""
    (tmp_path / "raw_2024-01-31.csv").write_text("id,city\n1,Rome\n")
    feed = Source("crm", feed=Feed(f"{tmp_path}/raw_{{date}}.csv"))
    raw = LandingTable("raw_city", "append", {"id": "int", "city": "string"}, feed)
    load(opened, raw, discover(raw.as_dimension(), None))
    assert withdraw(opened, raw, "2024-01-31").row_counts == {"remove": 1}
    (file,) = discover(raw.as_dimension(), None)
    assert outcomes(opened, raw, file) == ["superseded"]
    assert outcomes(opened, raw, replace(file, allow="withdrawn")) == ["accepted"]
    assert outcomes(opened, raw, file) == ["unchanged"]


def outcomes(opened: Warehouse, table: DeclaredTable, delivery: Delivery) -> list[str]:
    return [result.outcome for result in load(opened, table, [delivery]).results]


@pytest.mark.parametrize(
    ("name", "by", "reason", "code"),
    [
        ("1", "ann", " ", "WITHDRAWAL_NOT_EXPLAINED"),
        ("1", "", "wrong till", "WITHDRAWAL_NOT_EXPLAINED"),
        ("2", "ann", "wrong till", "DELIVERY_NOT_LOADED"),
    ],
)
@rule("S34")
def test_a_withdrawal_names_a_loaded_delivery_and_is_explained(
    played: Warehouse, name: str, by: str, reason: str, code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        withdrawal(played, PLAY, name, by=by, reason=reason)
    assert (caught.value.code, caught.value.location) == (code, PLAY.name)
