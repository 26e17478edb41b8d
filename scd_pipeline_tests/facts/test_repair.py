"""A dimension that another program changed is repaired from its change log, in one commit, with an audit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ForeignCommitError
from scd_pipeline.invariants.check_descriptions import NO_FOREIGN_COMMITS
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.facts.players import PLAY, PLAYER, W, players
from scd_pipeline_tests.facts.test_column_names import MEMBER
from scd_pipeline_tests.semantics.specification import requirement, rule

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
    "a reserved key": "UPDATE {t} SET player_key = -1 WHERE tier = 'Silver'",
    "another value in all rows": "UPDATE {t} SET tier = 'Iron'",
    "the unknown member twice": "INSERT INTO {t} SELECT * FROM {t} WHERE player_key = -1",
    "every version deleted": "DELETE FROM {t} WHERE player_key <> -1",
}
RARE = (
    "another value",
    "another value in all rows",
    "another key",
    "a reserved key",
    "a deleted version",
    "the unknown member twice",
    "every version deleted",
)
AUDITED = ("a second current version", "an unknown player")
"""Damages whose repairs have tests of their own. Only long test runs try them, and the rare ones, with the others."""

STRUCTURAL_DAMAGES = {
    "a player without a key": (
        "ALTER TABLE {t} DROP CONSTRAINT scd_business_key",
        f"INSERT INTO {{t}} SELECT 9L, NULL, {OTHERS} {SILVER}",
    ),
    "no surrogate key": (
        "ALTER TABLE {t} ALTER COLUMN player_key DROP NOT NULL",
        "UPDATE {t} SET player_key = NULL WHERE tier = 'Silver'",
    ),
    "no end": (
        "ALTER TABLE {t} ALTER COLUMN effective_to DROP NOT NULL",
        "UPDATE {t} SET effective_to = NULL",
    ),
    "a dropped attribute": (
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} DROP COLUMN tier",
    ),
    "a dropped flag": (
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} DROP COLUMN current_flag",
    ),
    "a restored version": ("RESTORE TABLE {t} TO VERSION AS OF 0",),
}
"""Damages of several statements, or after which the table has other columns, or its rows another order of columns."""


def rows(warehouse: Warehouse) -> list[str]:
    """The rows of the dimension, with the unknown member.

    It begins in year 1, which an embedded session cannot collect other than as Arrow.
    """
    return sorted(str(sorted(row.items())) for row in warehouse.table("dim_player").read().toArrow().to_pylist())


def damage(warehouse: Warehouse, statement: str) -> None:
    """Change the dimension by hand."""
    warehouse.spark.sql(statement.format(t=warehouse.table("dim_player").identifier))


def violated(warehouse: Warehouse) -> list[str]:
    """The invariants of the dimension and the fact that their tables violate."""
    results = (*check_table(warehouse, PLAYER), *check_table(warehouse, PLAY))
    return [str(result) for result in results if not result.passed]


@requirement("F29", "F30", "F52")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in (*RARE, *AUDITED))) for name in DAMAGES]
)
def test_what_sql_by_hand_has_changed_is_repaired(played: Warehouse, name: str) -> None:
    """The check finds it, a load rejects it, and the repair makes the rows what they were, in one commit."""
    before, commit = rows(played), played.table("dim_player").last_commit()
    damage(played, DAMAGES[name])
    assert not check_table(played, PLAYER, [NO_FOREIGN_COMMITS])[0].passed
    with pytest.raises(ForeignCommitError):
        load(played, PLAYER, [players("2", W)])
    result = repair(played, PLAYER, now=NOW, actor="ann", reason="a test")
    assert result.commit is not None
    assert result.commit.number == commit.number + 1
    assert rows(played) == before
    assert check_table(played, PLAYER, [NO_FOREIGN_COMMITS])[0].passed


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_repaired_dimension_passes_all_checks_and_is_loaded(played: Warehouse, name: str) -> None:
    """As `test_two_current_versions_are_reported_and_their_repair_is_audited` does for one damage."""
    damage(played, DAMAGES[name])
    repair(played, PLAYER, now=NOW, actor="ann", reason="a test")
    assert violated(played) == []
    load(played, PLAYER, [players("2", W.replace("Gold", "Iron"))]).raise_if_rejected()
    assert violated(played) == []


@pytest.mark.slow
@rule("S23")
def test_a_deleted_unknown_member_returns(played: Warehouse) -> None:
    """Commits record that the dimension has it, so that loads of facts do not look for it; a repair forgets that."""
    load(played, PLAYER, [players("2", W.replace("Gold", "Iron"))]).raise_if_rejected()
    assert played.table("dim_player").last_commit().reserved_member
    damage(played, "DELETE FROM {t} WHERE player_key = -1")
    with pytest.raises(ForeignCommitError):
        load(played, PLAY)
    repair(played, PLAYER, now=NOW, actor="ann", reason="a test")
    load(played, PLAY)
    assert played.table("dim_player").read().where("player_key = -1").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURAL_DAMAGES)
def test_columns_that_were_altered_or_dropped_are_repaired(recorded: Warehouse, name: str) -> None:
    before = rows(recorded)
    for statement in STRUCTURAL_DAMAGES[name]:
        damage(recorded, statement)
    repair(recorded, PLAYER, now=NOW, actor="ann")
    assert rows(recorded) == before
    assert [str(result) for result in check_table(recorded, PLAYER) if not result.passed] == []
    load(recorded, PLAYER, [players("2", W.replace("Gold", "Iron"))]).raise_if_rejected()


@pytest.mark.slow
def test_a_hash_and_an_end_that_do_not_belong_to_the_row_are_repaired(opened: Warehouse) -> None:
    """Although all values from which they follow are as they should be."""
    load(opened, MEMBER, [players("1", W)])
    before = rows(opened)
    for value in ("_hash = 'x'", "valid_to = coalesce(valid_to, timestamp'9999-12-31 23:59:59')"):
        damage(opened, f"UPDATE {{t}} SET {value}")
        assert repair(opened, MEMBER, now=NOW, actor="ann").has_differences
        assert rows(opened) == before


@pytest.mark.slow
def test_a_commit_without_an_effect_is_accepted(recorded: Warehouse) -> None:
    """The repair changes no row, and the next load is not rejected."""
    damage(recorded, "UPDATE {t} SET tier = tier")
    result = repair(recorded, PLAYER, now=NOW, actor="ann")
    assert (dict(result.row_counts), result.commit is None) == ({}, False)
    assert check_table(recorded, PLAYER, [NO_FOREIGN_COMMITS])[0].passed
    load(recorded, PLAYER)


@pytest.mark.slow
@rule("S21", "S22")
@requirement("F28", "F30")
def test_two_current_versions_are_reported_and_their_repair_is_audited(played: Warehouse) -> None:
    before = rows(played)
    damage(played, DAMAGES["a second current version"])
    failed = {result.check for result in check_table(played, PLAYER) if not result.passed}
    assert {"one_current_version", NO_FOREIGN_COMMITS} <= failed
    versions = played.table("dim_player").last_commit().newest
    plan = repair(played, PLAYER, now=NOW, actor="ann", dry_run=True)
    assert (dict(plan.row_counts), plan.commit) == ({"overwrite": 1}, None)
    assert played.table("dim_player").last_commit().newest == versions
    (row,) = plan.differences.collect()
    assert (row["player_id"], row["changed_columns"]) == ("p", ["effective_to", "current_flag"])
    repair(played, PLAYER, now=NOW, actor="ann", reason="two current versions")
    (entry,) = queries.audit(played, PLAYER).where("change_type = 'REPAIRED'").collect()
    assert (entry["actor"], entry["reason"], entry["player_id"]) == ("ann", "two current versions", "p")
    assert entry["recorded_at"].replace(tzinfo=timezone.utc) == NOW
    assert (entry["old_values"]["current_flag"], entry["new_values"]["current_flag"]) == ("true", "false")
    repeated = repair(played, PLAYER, now=NOW, actor="ann")
    assert (dict(repeated.row_counts), repeated.commit) == ({}, None)
    assert rows(played) == before
    load(played, PLAYER, [players("late", W.replace("Silver", "Iron"), revision=2)])
    withdrawn = {row["withdraws"] for row in queries.audit(played, PLAYER).where("withdraws IS NOT NULL").collect()}
    assert withdrawn and entry["audit_id"] not in withdrawn
    assert violated(played) == []


@pytest.mark.slow
@requirement("F30")
def test_rows_that_the_log_does_not_have_are_in_the_audit(played: Warehouse) -> None:
    """A dry run shows them, and writes nothing."""
    before = rows(played)
    damage(played, DAMAGES["an unknown player"])
    versions = played.table("dim_player").last_commit().newest
    plan = repair(played, PLAYER, now=NOW, actor="ann", dry_run=True)
    assert (dict(plan.row_counts), plan.commit) == ({"remove": 1}, None)
    assert played.table("dim_player").last_commit().newest == versions
    repair(played, PLAYER, now=NOW, actor="ann")
    assert rows(played) == before
    (entry,) = queries.audit(played, PLAYER).where("change_type = 'REPAIRED'").collect()
    assert (entry["player_id"], entry["player_key_old"], entry["player_key_new"]) == ("x", 8, None)
    assert entry["old_values"]["tier"] == "Silver"
    assert entry["new_values"] is None


@pytest.mark.slow
def test_both_tables_of_a_dimension_are_repaired(opened: Warehouse) -> None:
    player = replace(PLAYER, history_table=True)
    load(opened, player, [players("1", W)])
    before = sorted(map(str, queries.history(opened, player).collect()))
    for name in ("dim_player", "dim_player_history"):
        opened.spark.sql(f"UPDATE {opened.table(name).identifier} SET tier = 'Iron'")
    result = repair(opened, player, now=NOW, actor="ann")
    assert dict(result.row_counts) == {"overwrite": 3}
    assert sorted(map(str, queries.history(opened, player).collect())) == before
    assert [str(result) for result in check_table(opened, player) if not result.passed] == []
    load(opened, player, [players("2", W.replace("Gold", "Iron"))]).raise_if_rejected()
