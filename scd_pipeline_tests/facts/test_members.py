"""S14, S23, S24: the members that rows of a fact reference in place of a version: inferred and reserved ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from scd_pipeline import queries
from scd_pipeline.declaration import Begin, Dimension, Fact, Feed, Role, Source
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_names, check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.facts.players import PLAYER, players, plays
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import assert_same_rows

SINCE_2019 = replace(PLAYER, begin=Begin("2019-01-01"))
"""The player, whose first version begins at a fixed time."""

FIRST = """
| player_id | at         | op | tier   | email | born | by   |
| p         | 2019-03-01 |    | Bronze | a     | 1990 | NULL |
"""
SECOND = """
| player_id | at         | op | tier   | email | born | by   |
| q         | 2019-02-01 |    | Iron   | b     | 1991 | NULL |
| q         | 2019-05-01 |    | Silver | b     | 1991 | NULL |
"""
PLAYS = """
| play | played_at  | player_id | partner_id | coins |
| 1    | 2019-04-01 | p         | q          | 1     |
| 2    | 2019-06-01 | q         | p          | 2     |
| 3    | 2018-06-01 | q         | NULL       | 3     |
| 4    | 2019-06-01 | r         | r          | 4     |
"""


def play(player: Dimension, **options: Any) -> Fact:
    """The fact, with options of the role `player`; the role `partner` has none."""
    roles = {"player": Role(player, **options), "partner": Role(player, "partner_id")}
    source = Source("floor", feed=Feed(), bad_row_limit=0.5)
    return Fact("fct_play", {"play": "int"}, "played_at", roles, source, {"coins": "int"})


def members(opened: Warehouse, key: str = "player_key") -> dict[int, str]:
    """Return what each play references in a role: the tier and the reason of a version, or the key of no version."""
    versions = opened.table("dim_player").read().selectExpr(f"player_key AS {key}", "tier", "version", "change_reason")
    joined = opened.table("fct_play").read().select("play", key).join(versions, key)
    return {row["play"]: row["tier"] or f"{row['change_reason']} {row['version']}" for row in joined.collect()}


def failed(opened: Warehouse, *tables: Dimension | Fact) -> list[str]:
    """Return the checks that do not pass."""
    return [str(result) for table in tables for result in check_table(opened, table) if not result.passed]


@rule("S14", "S23", "S24")
@pytest.mark.slow(20)
def test_an_unknown_entity_gets_an_inferred_member_until_it_is_delivered(opened: Warehouse) -> None:
    """From the declared begin. The first delivery replaces it; a fact keeps a key that begins at the same time."""
    fact = play(SINCE_2019, unknown="infer")
    load(opened, SINCE_2019, [players("1", FIRST)], has_facts=True)
    before = opened.table("dim_player_changes").last_commit(), opened.table("dim_player_audit").last_commit()
    planned = plan(opened, fact, [plays("1", PLAYS)])
    assert "  add 2 inferred members to dim_player" in planned.explain().splitlines()
    assert opened.table("dim_player").read().count() == 2, "a plan writes nothing"
    result = load(opened, fact, [plays("1", PLAYS)])
    assert result.unknown_members == planned.unknown_members == {"player": 1, "partner": 3}
    assert_same_rows(
        """
        | player_id | tier   | effective_from | current_flag | version | change_reason   |
        | NULL      | NULL   | 0001-01-01     | false        | 0       | reserved_member |
        | p         | Bronze | 2019-01-01     | true         | 1       | source_load     |
        | q         | NULL   | 2019-01-01     | true         | 0       | inferred_member |
        | r         | NULL   | 2019-01-01     | true         | 0       | inferred_member |
        """,
        opened.table("dim_player").read().toArrow().to_pylist(),
        ("player_id", "tier", "effective_from", "current_flag", "version", "change_reason"),
    )
    assert members(opened) == {1: "Bronze", 2: "inferred_member 0", 3: "reserved_member 0", 4: "inferred_member 0"}
    assert members(opened, "partner_key") == {
        1: "reserved_member 0",
        2: "Bronze",
        **dict.fromkeys((3, 4), "reserved_member 0"),
    }
    assert failed(opened, SINCE_2019, fact) == []
    assert load(opened, fact).row_counts == {}, "no row refers to another member in a second load"
    assert (opened.table("dim_player_changes").last_commit(), opened.table("dim_player_audit").last_commit()) == before
    stored_key = opened.table("fct_play").read().where("play = 2").first()["player_key"]

    replaced = load(opened, SINCE_2019, [players("2", SECOND)], has_facts=True)
    assert replaced.row_counts == {"open": 1, "close": 1}
    assert queries.current(opened, SINCE_2019).where("player_id = 'q'").first()["tier"] == "Silver"
    first_version = opened.table("dim_player").read().where("player_id = 'q' AND version = 1").first()
    assert (first_version["player_key"], first_version["tier"]) == (stored_key, "Iron")
    load(opened, fact)
    assert members(opened) == {1: "Bronze", 2: "Silver", 3: "reserved_member 0", 4: "inferred_member 0"}
    assert members(opened, "partner_key")[1] == "Iron"
    assert failed(opened, SINCE_2019, fact) == []
    opened.spark.sql(f"UPDATE {opened.table('dim_player').identifier} SET tier = 'Gold' WHERE player_id = 'r'")
    repaired = repair(opened, SINCE_2019, now=datetime(2024, 1, 1, tzinfo=timezone.utc), actor="ann")
    assert repaired.row_counts == {"overwrite": 1}
    assert members(opened)[4] == "inferred_member 0"
    assert failed(opened, SINCE_2019, fact) == []


ORDERS = {
    "fact first": ("fact", "first", "second"),
    "fact between": ("first", "fact", "second"),
    "fact between, players in reverse": ("second", "fact", "first"),
    "fact last": ("first", "second", "fact"),
}


@pytest.mark.slow(60)
@rule("S14", "S24")
def test_the_members_do_not_depend_on_what_arrives_first(spark: Any, tmp_path: Any) -> None:
    """Neither the rows of the fact nor those of the dimension; without a declared begin too."""
    fact = play(PLAYER, unknown="infer")
    rows = {}
    for name, order in ORDERS.items():
        opened = Warehouse(spark, tmp_path / name.replace(" ", "_"))
        for step in order:
            if step == "fact":
                load(opened, fact, [plays("1", PLAYS)])
            else:
                load(opened, PLAYER, [players(*{"first": ("1", FIRST), "second": ("2", SECOND)}[step])], has_facts=True)
                load(opened, fact)
        dimension = opened.table("dim_player").read().drop("load_run_id").orderBy("player_key").toArrow().to_pylist()
        rows[name] = (dimension, opened.table("fct_play").read().orderBy("play").toArrow().to_pylist())
        assert [row["player_id"] for row in dimension if row["change_reason"] == "inferred_member"] == ["r"]
        assert failed(opened, PLAYER, fact) == []
    assert all(each == rows["fact last"] for each in rows.values())


@pytest.mark.slow(30)
@rule("S23")
def test_conditions_of_a_role_decide_which_reserved_member_a_row_references(opened: Warehouse) -> None:
    """Each has a row in the dimension, also in a table that had no such row when the condition was declared."""
    options: dict[str, Any] = {"not_applicable": "coins = 1", "invalid": "player_id = 'q' OR coins = 1"}
    plain, fact = play(PLAYER, unknown_limit=0.5), play(PLAYER, **options, unknown_limit=0.5)
    split = replace(PLAYER, history_table=True)
    plain, fact = (each.with_dimensions([split]) for each in (plain, fact))
    load(opened, split, [players("1", FIRST), players("2", SECOND)], has_facts=True)
    load(opened, plain, [plays("1", PLAYS)])
    assert members(opened) == {2: "Silver", 3: "reserved_member 0", 4: "reserved_member 0", 1: "Bronze"}
    load(opened, fact)
    stored = {row["play"]: row["player_key"] for row in opened.table("fct_play").read().collect()}
    assert (stored[1], stored[2], stored[3], stored[4]) == (-2, -3, -3, -1)
    assert members(opened).keys() == {1, 2, 3, 4}, "an inner join keeps every row"
    for known_at in (None, opened.table("dim_player").last_commit().at):
        joined = queries.with_dimensions(opened, fact, known_at=known_at).collect()
        assert {row["play"]: row["player_key"] for row in joined} == stored
    assert load(opened, fact).row_counts == {}
    assert check_names(fact)[3] == "unknown_shares_are_within_limits"
    assert failed(opened, split) == []
    assert failed(opened, fact) == [
        "fct_play: unknown_shares_are_within_limits: failed (1): "
        "player_key: 3 of 4 rows have the key -1 or -3; expected at most 50.00%"
    ]
    opened.spark.sql(f"UPDATE {opened.table('fct_play').identifier} SET player_key = -2 WHERE play = 3")
    assert any(
        "surrogate_keys_fit_event_time: failed (1): play=3 (player_key)" in text for text in failed(opened, fact)
    )


@rule("S28")
def test_the_condition_of_a_role_is_true_or_false_over_the_columns_of_the_fact(opened: Warehouse) -> None:
    fact = play(PLAYER, not_applicable="coins + 1", invalid="channel = 'web'")
    with pytest.raises(UsageError) as raised:
        load(opened, fact, [plays("1", PLAYS)])
    assert (raised.value.code, raised.value.location) == ("ROLE_CONDITION", "fct_play")
    problems = raised.value.details["problems"]
    assert problems.startswith(
        "dimensions.player.not_applicable: coins + 1 is of type int; dimensions.player.invalid: ["
    )
    assert "UNRESOLVED_COLUMN" in problems
    assert not opened.table("fct_play_changes").exists()
