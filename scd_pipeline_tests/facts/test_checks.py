"""Tables that were damaged by hand: each check fails, and names the keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import check
from scd_pipeline.facts import load_fact
from scd_pipeline.record import load_and_record
from scd_pipeline.warehouse import Warehouse
from scd_pipeline_tests.facts.given import PLAY, PLAYER, PLAYS, W, players, plays
from scd_pipeline_tests.semantics.specification import rule

FIRST = "player_id = 'p' AND version = 1"
DAMAGE = {
    "duplicate_current": f"UPDATE dim_player SET current_flag = true WHERE {FIRST}",
    "overlapping_window": f"UPDATE dim_player SET effective_to = '2019-07-01' WHERE {FIRST}",
    "null_end": (
        "ALTER TABLE dim_player ALTER COLUMN effective_to DROP NOT NULL;"
        f"UPDATE dim_player SET effective_to = NULL WHERE {FIRST}"
    ),
    "empty_window": f"UPDATE dim_player SET effective_to = effective_from WHERE {FIRST}",
    "current_without_open_end": f"UPDATE dim_player SET current_flag = true WHERE {FIRST}",
    "hole_in_versions": f"UPDATE dim_player SET version = 7 WHERE {FIRST}",
    "repeated_surrogate_key": "UPDATE dim_player SET player_key = 5 WHERE player_id = 'p'",
    "reserved_surrogate_key": f"UPDATE dim_player SET player_key = -1 WHERE {FIRST}",
    "audit_differs": f"DELETE FROM dim_player WHERE {FIRST}",
    "foreign_commit": f"DELETE FROM dim_player WHERE {FIRST}",
    "append_only_unset": "ALTER TABLE dim_player_audit UNSET TBLPROPERTIES ('delta.appendOnly')",
}
FACT_DAMAGE = {
    "dangling_key": "UPDATE fct_play SET player_key = 42 WHERE play = 2",
    "fact_without_its_version": "UPDATE fct_play SET partner_key = -1 WHERE play = 2",
    "foreign_commit": "DELETE FROM fct_play WHERE play = 2",
}


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A dimension with its audit, and its facts."""
    opened = Warehouse(spark, tmp_path_factory.mktemp("sound") / "warehouse")
    load_and_record(opened, PLAYER, [players("1", W)])
    load_fact(opened, PLAY, [plays("1", PLAYS)])
    return opened


def damaged(sound: Warehouse, folder: Path, statements: str) -> Warehouse:
    """A copy of the tables on which some statements were run."""
    shutil.copytree(sound.path, folder / "copy")
    copy = Warehouse(sound.spark, folder / "copy")
    for statement in statements.split(";"):
        for name in ("dim_player_audit", "dim_player", "fct_play"):
            if f" {name} " in statement:
                statement = statement.replace(f" {name} ", f" {copy.table(name).identifier} ")
                break
        copy.spark.sql(statement)
    return copy


@rule("S2", "S3", "S14", "S23")
def test_sound_tables_pass_every_check(sound: Warehouse) -> None:
    found = check.check_dimension(sound, PLAYER)
    assert [finding.rule for finding in found] == list(check.dimension_rules(PLAYER))
    facts = check.check_fact(sound, PLAY)
    assert [finding.rule for finding in facts] == list(check.FACT_RULES)
    assert [str(finding) for finding in (*found, *facts) if not finding.passed] == []


@rule("S2", "S3", "S14", "S22")
@pytest.mark.parametrize("broken", DAMAGE)
def test_a_damaged_dimension_is_found(sound: Warehouse, tmp_path: Path, broken: str) -> None:
    copy = damaged(sound, tmp_path, DAMAGE[broken])
    (finding,) = check.check_dimension(copy, PLAYER, [broken])
    assert not finding.passed
    named = {"foreign_commit": "dim_player version", "append_only_unset": "dim_player_audit"}
    assert all(key.startswith(named.get(broken, "player_id=p")) for key in finding.keys), finding


@rule("S23", "S24")
@pytest.mark.parametrize("broken", FACT_DAMAGE)
def test_a_damaged_fact_is_found(sound: Warehouse, tmp_path: Path, broken: str) -> None:
    copy = damaged(sound, tmp_path, FACT_DAMAGE[broken])
    (finding,) = check.check_fact(copy, PLAY, [broken])
    assert not finding.passed
    named = {"foreign_commit": "fct_play version", "dangling_key": "play=2 (player_key)"}
    assert all(key.startswith(named.get(broken, "play=2 (partner_key)")) for key in finding.keys), finding


@rule("S22")
def test_the_audit_refuses_to_be_changed(sound: Warehouse, tmp_path: Path) -> None:
    """F55."""
    with pytest.raises(Exception, match=r"appendOnly|append-only|APPEND_ONLY"):
        damaged(sound, tmp_path, "DELETE FROM dim_player_audit WHERE player_id = 'p'")
