"""Tables that were damaged by hand: each check fails and reports the keys."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Fact, Role
from scd_pipeline.declaration.tables import table_names
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import InvariantViolated
from scd_pipeline.load import facts
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations import check
from scd_pipeline_tests.facts.players import PLAY, PLAY_SINCE, PLAYER, PLAYER_SINCE, W, players, plays
from scd_pipeline_tests.semantics.specification import requirement, rule

ROW_DAMAGES = {
    "one_current_version": ("current_flag", "true"),
    "windows_do_not_overlap": ("effective_to", "timestamp'2019-07-01'"),
    "windows_have_both_ends": ("effective_to", "NULL"),
    "windows_are_not_empty": ("effective_to", "effective_from"),
    "current_versions_are_open": ("current_flag", "true"),
    "version_numbers_are_consecutive": ("version", "7"),
    "surrogate_keys_are_unique": ("player_key", "5"),
    "surrogate_keys_are_not_reserved": ("player_key", "-1"),
}
"""By check, the change to the first version of the player with the check's name; a key changes in both versions."""

PLAYERS = (*ROW_DAMAGES, "audit_rebuilds_dimension")
COLUMNS = "| player_id | at | op | tier | email | born | by |"


def two_versions(player: str) -> str:
    return (
        f"| {player} | 2019-03-01 | NULL | Bronze | a | 1990 | NULL |\n"
        f"| {player} | 2019-06-01 | NULL | Silver | b | 1990 | NULL |"
    )


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A dimension with its audit."""
    opened = Warehouse(spark, tmp_path_factory.mktemp("sound") / "warehouse")
    text = "\n".join([COLUMNS, *(two_versions(player) for player in PLAYERS), two_versions("p")])
    load(opened, PLAYER, [players("1", text)])
    return opened


@pytest.fixture(scope="module")
def damaged(sound: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A copy of the tables, changed by hand."""
    path = tmp_path_factory.mktemp("damaged") / "warehouse"
    shutil.copytree(sound.path, path)
    copy = Warehouse(sound.spark, path)
    player, audit = (copy.table(name).identifier for name in ("dim_player", "dim_player_audit"))
    columns = sorted({column for column, _ in ROW_DAMAGES.values()})
    assignments = ", ".join(f"{column} = CASE player_id {_damages(column)} ELSE {column} END" for column in columns)
    statements = [
        f"ALTER TABLE {player} ALTER COLUMN effective_to DROP NOT NULL",
        f"UPDATE {player} SET {assignments} WHERE version = 1 OR player_id = 'surrogate_keys_are_unique'",
        f"DELETE FROM {player} WHERE player_id = 'audit_rebuilds_dimension' AND version = 1",
        f"ALTER TABLE {audit} UNSET TBLPROPERTIES ('delta.appendOnly')",
    ]
    for statement in statements:
        copy.spark.sql(statement)
    return copy


def _damages(column: str) -> str:
    return " ".join(
        f"WHEN '{name}' THEN {value}" for name, (changed, value) in ROW_DAMAGES.items() if changed == column
    )


@pytest.mark.slow(15)
@rule("S2", "S3", "S14", "S23")
def test_undamaged_tables_pass_every_check(played: Warehouse) -> None:
    results = check.check_table(played, PLAYER)
    assert [result.check for result in results] == list(check.check_names(PLAYER))
    fact_results = check.check_table(played, PLAY)
    assert [result.check for result in fact_results] == list(check.check_names(PLAY))
    assert [str(result) for result in (*results, *fact_results) if not result.passed] == []


@requirement("F28", "H29")
@rule("S2", "S3", "S14", "S22")
def test_checks_report_the_keys_of_damaged_dimension_rows(damaged: Warehouse) -> None:
    results = {result.check: result for result in check.check_table(damaged, PLAYER)}
    assert [name for name, result in results.items() if result.passed] == [
        "upstream_has_applied_commits",
        "no_unused_tables",
        "data_files_exist",
    ]
    for name in PLAYERS:
        assert f"player_id={name}" in results[name].keys, results[name]
        assert "player_id=p" not in results[name].keys, results[name]
    tables = {key.partition(" version")[0] for key in results["no_foreign_commits"].keys}
    assert tables == {"dim_player"}
    assert results["tables_are_append_only"].keys == ("dim_player_audit",)


@pytest.mark.slow
@rule("S23", "S24")
def test_checks_report_the_grain_of_damaged_facts(played: Warehouse) -> None:
    for change in ("player_key = 42", "partner_key = -1"):
        played.spark.sql(f"UPDATE {played.table('fct_play').identifier} SET {change} WHERE play = 2")
    results = {result.check: result for result in check.check_table(played, PLAY)}
    assert results["surrogate_keys_exist"].keys == ("play=2 (player_key)",)
    assert set(results["surrogate_keys_fit_event_time"].keys) == {"play=2 (player_key)", "play=2 (partner_key)"}
    assert all(key.startswith("fct_play version") for key in results["no_foreign_commits"].keys)


@pytest.mark.slow
@rule("S23", "S24")
def test_a_fact_with_two_versions_in_force_is_not_written(played: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The as-of join repeats its row, so that its grain is not unique."""
    another = "| play | played_at | player_id | partner_id | coins |\n| 4 | 2019-07-07 | NULL | p | 9 |"
    before = [played.table(name).last_commit() for name in ("fct_play", "fct_play_changes")]
    pin = facts.pin

    def pin_overlapping(opened: Warehouse, dimension: Dimension) -> facts.PinnedDimension:
        pinned = pin(opened, dimension)
        assert pinned.rows is not None
        return replace(pinned, rows=pinned.rows.withColumn("effective_to", F.to_timestamp(F.lit("2031-01-01"))))

    with monkeypatch.context() as patch:
        patch.setattr(facts, "pin", pin_overlapping)
        with pytest.raises(InvariantViolated, match=r"INVARIANT_VIOLATED.*grain_is_unique: play=4;"):
            load(played, PLAY, [plays("2", another)])
    assert [played.table(name).last_commit() for name in ("fct_play", "fct_play_changes")] == before


@pytest.mark.slow
def test_an_audit_that_lags_behind_is_not_compared(recorded: Warehouse) -> None:
    """A load is about to record its changes, or was killed before."""
    ingest_and_apply(recorded, PLAYER, [players("2", f"{COLUMNS}\n| p | 2019-04-01 | NULL | Iron | a | 1990 | NULL |")])
    assert check.check_table(recorded, PLAYER, ["audit_rebuilds_dimension"]) == ()
    load(recorded, PLAYER)
    (result,) = check.check_table(recorded, PLAYER, ["audit_rebuilds_dimension"])
    assert result.passed


@pytest.mark.slow
@rule("S24")
def test_a_fact_is_checked_against_the_dimension_that_it_has_applied(played: Warehouse) -> None:
    load(played, PLAYER, [players("2", f"{COLUMNS}\n| p | 2019-04-01 | NULL | Iron | a | 1990 | NULL |")])
    before = played.table("fct_play").read().orderBy("play").toArrow()
    assert [str(result) for result in check.check_table(played, PLAY) if not result.passed] == []
    load(played, PLAY)
    assert played.table("fct_play").read().orderBy("play").toArrow() != before
    assert [str(result) for result in check.check_table(played, PLAY) if not result.passed] == []


@pytest.mark.slow
@rule("S24")
def test_facts_are_re_keyed_after_their_dimension_is_recreated(played: Warehouse) -> None:
    """Although it has as many commits as before. While it is missing, the keys of its facts dangle."""
    for name in table_names("dim_player"):
        shutil.rmtree(Path(played.path) / name, ignore_errors=True)
    (dangling,) = [result for result in check.check_table(played, PLAY) if result.check == "surrogate_keys_exist"]
    assert set(dangling.keys) == {
        "play=1 (player_key)",
        "play=2 (player_key)",
        "play=2 (partner_key)",
        "play=3 (player_key)",
    }
    salted = replace(PLAYER, key_salt="another")
    roles = {"player": Role(salted), "partner": Role(salted, "partner_id")}
    play = Fact("fct_play", {"play": "int"}, "played_at", roles, PLAY.source, {"coins": "int"})
    load(played, salted, [players("1", W)])
    load(played, play)
    assert [str(result) for result in check.check_table(played, play) if not result.passed] == []


@pytest.mark.slow
@rule("S20", "S24")
def test_an_attribute_declared_since_the_last_delivery_violates_no_invariant(played: Warehouse) -> None:
    """The tables have no column for it yet; a fact gets its columns when it is re-keyed."""
    load(played, PLAYER_SINCE)
    for _ in range(2):
        results = [*check.check_table(played, PLAYER_SINCE), *check.check_table(played, PLAY_SINCE)]
        assert [result.check for result in results] == [
            *check.check_names(PLAYER_SINCE),
            *check.check_names(PLAY_SINCE),
        ]
        assert [str(result) for result in results if not result.passed] == []
        assert load(played, PLAY_SINCE).row_counts in ({"overwrite": 3}, {})


@pytest.mark.slow
def test_a_missing_dimension_is_reported(recorded: Warehouse) -> None:
    assert check.check_table(recorded, PLAYER, ["one_current_version"])
    shutil.rmtree(Path(recorded.path) / "dim_player")
    (result,) = check.check_table(recorded, PLAYER)
    assert result.keys == ("dim_player does not exist; a load rebuilds it from its change log",)
    load(recorded, PLAYER)
    assert [str(result) for result in check.check_table(recorded, PLAYER) if not result.passed] == []


REPAIRS = {
    "dim_player_changes": "no other table can rebuild it; restore the files that it had",
    "dim_player_audit": (
        "a load rebuilds it from the change log, without withdrawn transitions, repairs and keys of removed versions"
    ),
    "fct_play": "a load rebuilds it from its change log",
    "fct_play_changes": "no other table can rebuild it; restore the files that it had",
}


@pytest.mark.slow
def test_each_missing_table_is_reported_with_its_repair(played: Warehouse, tmp_path: Path) -> None:
    checks, reported = ["no_foreign_commits"], {}
    for table in REPAIRS:
        stored = Path(played.path) / table
        stored.rename(tmp_path / table)
        results = [*check.check_table(played, PLAYER, checks), *check.check_table(played, PLAY, checks)]
        reported[table] = [key for result in results for key in result.keys]
        (tmp_path / table).rename(stored)
    assert reported == {table: [f"{table} does not exist; {repair}"] for table, repair in REPAIRS.items()}


@pytest.mark.slow
def test_an_audit_that_a_killed_load_has_not_created_is_reported(opened: Warehouse) -> None:
    """Tables of a dimension or a fact that was never loaded are not."""
    assert check.check_table(opened, PLAYER) == check.check_table(opened, PLAY) == ()
    ingest_and_apply(opened, PLAYER, [players("1", W)])
    assert check.check_table(opened, PLAY) == ()
    (finding,) = [result for result in check.check_table(opened, PLAYER) if not result.passed]
    assert finding.keys == (f"dim_player_audit does not exist; {REPAIRS['dim_player_audit']}",)


@pytest.mark.slow
def test_a_statement_that_changes_no_row_is_not_reported(recorded: Warehouse) -> None:
    player = recorded.table("dim_player").identifier
    for change in (
        "ADD CONSTRAINT since CHECK (effective_from IS NOT NULL)",
        "DROP CONSTRAINT since",
        "DROP CONSTRAINT scd_business_key",
        "CLUSTER BY (player_id)",
        "ALTER COLUMN tier COMMENT 'x'",
        "DROP FEATURE checkConstraints",
    ):
        recorded.spark.sql(f"ALTER TABLE {player} {change}")
    assert [str(result) for result in check.check_table(recorded, PLAYER, ["no_foreign_commits"]) if result.count] == []


def test_keys_that_are_not_shown_are_counted_once(spark: SparkSession) -> None:
    """However many rows each of them has."""
    twice = spark.range(42).selectExpr("'r' AS check", "concat('id=', id % 21) AS key")
    (result,) = check._results("dim_x", ["r"], twice)
    assert (result.count, len(result.keys)) == (42, check.MAX_KEYS)
    assert str(result).endswith(" and 1 more")
    (result,) = check._results("dim_x", ["r"], twice.where("key < 'id=2'"))
    assert not str(result).endswith("more")


@requirement("F55")
@rule("S22")
@pytest.mark.parametrize("statement", ["DELETE FROM {audit}", "UPDATE {audit} SET actor = 'bob'"])
def test_delta_rejects_deletes_and_updates_of_the_audit(sound: Warehouse, statement: str) -> None:
    audit = sound.table("dim_player_audit").identifier
    with pytest.raises(Exception, match=r"appendOnly|append-only|APPEND_ONLY"):
        sound.spark.sql(f"{statement.format(audit=audit)} WHERE player_id = 'p'")
