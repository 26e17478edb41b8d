"""A dimension that another program changed is repaired from its change log, in one commit, with an audit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from scd_pipeline import reading
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ForeignCommitError, UsageError
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_dimension, check_fact
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.facts.players import PLAY, PLAYER, W, players
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

NOW = datetime(2024, 5, 1, tzinfo=timezone.utc)
SILVER = "FROM {t} WHERE tier = 'Silver'"
OTHERS = "* EXCEPT (player_key, player_id)"
DAMAGES = {
    "a second current version": "UPDATE {t} SET current_flag = true, effective_to = '9999-12-31 23:59:59' "
    "WHERE tier = 'Silver'",
    "a version twice": f"INSERT INTO {{t}} SELECT * {SILVER}",
    "a deleted version": f"DELETE {SILVER}",
    "another value": "UPDATE {t} SET tier = 'Iron', email = NULL WHERE tier = 'Silver'",
    "another key": "UPDATE {t} SET player_key = 7 WHERE tier = 'Silver'",
    "an unknown player": f"INSERT INTO {{t}} SELECT 8L, 'x', {OTHERS} {SILVER}",
    "a player without a key": f"INSERT INTO {{t}} SELECT 9L, NULL, {OTHERS} {SILVER}",
}


def rows(warehouse: Warehouse) -> list[str]:
    """The rows of the dimension, with the unknown member."""
    return sorted(map(str, warehouse.table("dim_player").read().collect()))


def damage(warehouse: Warehouse, statement: str) -> None:
    """Change the dimension by hand."""
    warehouse.spark.sql(statement.format(t=warehouse.table("dim_player").identifier))


@requirement("F29", "F30", "F52")
@pytest.mark.parametrize("name", DAMAGES)
def test_what_sql_by_hand_has_changed_is_repaired(played: Warehouse, name: str) -> None:
    """The check finds it, a load rejects it, and the repair makes the rows what they were, in one commit."""
    before, commit = rows(played), played.table("dim_player").last_commit()
    damage(played, DAMAGES[name])
    assert [result.rule for result in check_dimension(played, PLAYER) if not result.passed]
    with pytest.raises(ForeignCommitError):
        load(played, PLAYER, [players("2", W)])
    result = repair(played, PLAYER, now=NOW, actor="ann", reason="a test")
    assert result.commit is not None
    assert result.commit.number == commit.number + 1
    assert rows(played) == before
    assert [str(result) for result in check_dimension(played, PLAYER) if not result.passed] == []
    assert [str(result) for result in check_fact(played, PLAY) if not result.passed] == []
    load(played, PLAYER, [players("2", W.replace("Gold", "Iron"))]).raise_if_rejected()


@requirement("F28", "F30")
def test_two_current_versions_are_reported_and_their_repair_is_audited(played: Warehouse) -> None:
    damage(played, DAMAGES["a second current version"])
    failed = {result.rule for result in check_dimension(played, PLAYER) if not result.passed}
    assert {"one_current_version", "no_foreign_commits"} <= failed
    versions = played.table("dim_player").last_commit().newest
    plan = repair(played, PLAYER, now=NOW, actor="ann", dry_run=True)
    assert (dict(plan.rows), plan.commit) == ({"overwrite": 1}, None)
    assert played.table("dim_player").last_commit().newest == versions
    (row,) = plan.differences.collect()
    assert (row["player_id"], row["changed_columns"]) == ("p", ["effective_to", "current_flag"])
    repair(played, PLAYER, now=NOW, actor="ann", reason="two current versions")
    (entry,) = reading.audit(played, PLAYER).where("change_type = 'REPAIRED'").collect()
    assert (entry["actor"], entry["reason"], entry["player_id"]) == ("ann", "two current versions", "p")
    assert entry["recorded_at"].replace(tzinfo=timezone.utc) == NOW
    assert (entry["old_values"]["current_flag"], entry["new_values"]["current_flag"]) == ("true", "false")
    repeated = repair(played, PLAYER, now=NOW, actor="ann")
    assert (dict(repeated.rows), repeated.commit) == ({}, None)


@requirement("F30")
def test_rows_that_the_log_does_not_have_are_in_the_audit(played: Warehouse) -> None:
    damage(played, DAMAGES["an unknown player"])
    repair(played, PLAYER, now=NOW, actor="ann")
    (entry,) = reading.audit(played, PLAYER).where("change_type = 'REPAIRED'").collect()
    assert (entry["player_id"], entry["player_key_old"], entry["player_key_new"]) == ("x", 8, None)
    assert entry["old_values"]["tier"] == "Silver"
    assert entry["new_values"] is None


@requirement("F30")
def test_versions_of_a_table_without_a_log_end_where_the_next_one_begins(opened: Warehouse) -> None:
    """The table is one of another program: p has two current versions, q an end that is NULL, r one row twice."""
    table = opened.table("dim_player").identifier
    opened.spark.sql(
        f"CREATE TABLE {table} (player_key BIGINT, player_id STRING, tier STRING, effective_from TIMESTAMP, "
        "effective_to TIMESTAMP, current_flag BOOLEAN, version INT, last_updated TIMESTAMP) USING delta"
    )
    opened.spark.sql(
        f"""INSERT INTO {table} VALUES
        (1, 'p', 'Bronze', '2019-03-01', '9999-12-31 23:59:59', true, 1, '2019-03-01'),
        (2, 'p', 'Silver', '2019-06-01', '9999-12-31 23:59:59', true, 2, '2019-06-01'),
        (3, 'q', 'Bronze', '2019-03-01', NULL, true, 1, '2019-03-01'),
        (4, 'r', 'Bronze', '2019-03-01', '2019-04-01', false, 1, '2019-03-01'),
        (5, 'r', 'Iron', '2019-03-01', '2019-04-01', false, 1, '2019-03-02'),
        (6, 's', 'Gold', '2019-03-01', '9999-12-31 23:59:59', true, 1, '2019-03-01')"""
    )
    plan = repair(opened, PLAYER, now=NOW, actor="ann", without_log=True, dry_run=True)
    assert dict(plan.rows) == {"overwrite": 2, "remove": 1}
    repair(opened, PLAYER, now=NOW, actor="ann", without_log=True)
    assert_same_rows(
        """
        | player_id | tier   | effective_from | effective_to        | current_flag | version |
        | p         | Bronze | 2019-03-01     | 2019-06-01          | False        | 1       |
        | p         | Silver | 2019-06-01     | 9999-12-31 23:59:59 | True         | 2       |
        | q         | Bronze | 2019-03-01     | 9999-12-31 23:59:59 | True         | 1       |
        | r         | Iron   | 2019-03-01     | 2019-04-01          | False        | 1       |
        | s         | Gold   | 2019-03-01     | 9999-12-31 23:59:59 | True         | 1       |
        """,
        opened.table("dim_player").read().toArrow().to_pylist(),
    )
    repeated = repair(opened, PLAYER, now=NOW, actor="ann", without_log=True)
    assert (dict(repeated.rows), repeated.commit) == ({}, None)


def test_a_table_with_a_log_is_not_repaired_without_it(played: Warehouse) -> None:
    with pytest.raises(UsageError) as caught:
        repair(played, PLAYER, now=NOW, actor="ann", without_log=True)
    assert caught.value.code == "LOG_EXISTS"


def test_both_tables_of_a_dimension_are_repaired(opened: Warehouse) -> None:
    player = replace(PLAYER, history_table=True)
    load(opened, player, [players("1", W)])
    before = sorted(map(str, reading.history(opened, player).collect()))
    for name in ("dim_player", "dim_player_history"):
        opened.spark.sql(f"UPDATE {opened.table(name).identifier} SET tier = 'Iron'")
    result = repair(opened, player, now=NOW, actor="ann")
    assert dict(result.rows) == {"overwrite": 3}
    assert sorted(map(str, reading.history(opened, player).collect())) == before
    assert [str(result) for result in check_dimension(opened, player) if not result.passed] == []
    load(opened, player, [players("2", W.replace("Gold", "Iron"))]).raise_if_rejected()
