"""A fact whose log or dimension was lost, or changed by another program, is not loaded: nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ForeignCommitError, HighWaterMarkError, LoadError
from scd_pipeline.invariants.check_descriptions import UPSTREAM_HAS_APPLIED_COMMITS
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.players import PLAY, PLAYER, plays

ANOTHER = "| play | played_at | player_id | partner_id | coins |\n| 4 | 2019-03-07 | p | NULL | 9 |"


@pytest.mark.slow
def test_a_plan_has_the_keys_of_a_dimension_that_is_rebuilt(played: Warehouse) -> None:
    """As the load will: it rebuilds the dimension first."""
    shutil.rmtree(Path(played.path) / "dim_player")
    planned = plan(played, PLAY, [plays("2", ANOTHER, day=2)], dimensions={"dim_player": plan(played, PLAYER, [])})
    keys = [row["player_key"] for row in planned.changed_rows.where("play = 4").collect()]
    load(played, PLAYER)
    load(played, PLAY, [plays("2", ANOTHER, day=2)])
    assert keys == [row["player_key"] for row in played.table("fct_play").read().where("play = 4").collect()]
    assert keys != [-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "statement", "error", "message"),
    [
        (
            "fct_play_changes",
            "",
            HighWaterMarkError,
            "LOG_LOST.*table fct_play",
        ),
        (
            "dim_player_changes",
            "",
            HighWaterMarkError,
            "LOG_LOST.*table dim_player",
        ),
        (
            "dim_player",
            "",
            HighWaterMarkError,
            "DIMENSION_BEHIND_FACT.*table fct_play: .*dim_player does not exist",
        ),
        (
            "fct_play",
            "DELETE FROM {} WHERE play = 1",
            ForeignCommitError,
            r"table fct_play: table version \d+ \(DELETE\)",
        ),
        (
            "dim_player",
            "DELETE FROM {} WHERE version = 1",
            ForeignCommitError,
            r"table dim_player: table version \d+ \(DELETE",
        ),
    ],
)
def test_a_load_is_rejected_before_it_writes(
    played: Warehouse, table: str, statement: str, error: type[LoadError], message: str
) -> None:
    if statement:
        played.spark.sql(statement.format(played.table(table).identifier)).collect()
    else:
        shutil.rmtree(Path(played.path) / table)
    before = {str(file) for file in Path(played.path).glob("*/_delta_log/*.json")}
    with pytest.raises(error, match=message):
        load(played, PLAY, [plays("2", ANOTHER, day=2)])
    assert {str(file) for file in Path(played.path).glob("*/_delta_log/*.json")} == before
    (result,) = check_table(played, PLAY, [UPSTREAM_HAS_APPLIED_COMMITS])
    assert result.passed == (error is ForeignCommitError)
