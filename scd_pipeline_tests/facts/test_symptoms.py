"""F64: symptoms of a history without SCD, which are absent here; F54, X8: two pipelines have the same rows."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from scd_pipeline import queries
from scd_pipeline.delta.audit_table import current_transitions
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, record
from scd_pipeline_tests.facts.players import PLAYER, PLAYS, W, frame, players
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

HEADER, *LINES = W.strip().splitlines()
JULY = dt.datetime(2019, 7, 1, tzinfo=dt.timezone.utc)


def records(rows: DataFrame) -> list[dict[str, Any]]:
    return list(rows.toArrow().to_pylist())


@pytest.mark.slow
@requirement("F64")
def test_an_old_report_is_unchanged_today(recorded: Warehouse) -> None:
    """A report of July, and the same report after the player has become Diamond."""
    report = queries.as_of(recorded, PLAYER, JULY).groupBy("tier").count()
    before = records(report)
    ingest_and_apply(recorded, PLAYER, [players("2", f"{HEADER}\n| p | 2024-01-01 | | Diamond | b | 1990 | NULL |")])
    after = records(queries.as_of(recorded, PLAYER, JULY).groupBy("tier").count())
    assert before == after == [{"tier": "Silver", "count": 1}]
    assert [row["tier"] for row in records(queries.current(recorded, PLAYER))] == ["Diamond"]


@requirement("F64")
def test_the_tiers_of_a_player_have_a_history(recorded: Warehouse) -> None:
    rows = records(queries.history(recorded, PLAYER))
    assert_same_rows(
        """
        | tier   | effective_from | effective_to |
        | Bronze | 2019-03-01     | 2019-06-01   |
        | Silver | 2019-06-01     | 2019-10-01   |
        | Gold   | 2019-12-01     | NULL         |
        """,
        rows,
    )


@requirement("F64")
def test_a_training_set_has_the_tiers_as_of_its_event_times(recorded: Warehouse) -> None:
    """No row has a value that was not true yet at its time, as the tier Gold of the current version is."""
    spark = recorded.spark
    events = spark.createDataFrame(frame(PLAYS)).selectExpr("play", "cast(played_at AS timestamp)", "player_id")
    rows = records(queries.join_as_of(recorded, events, PLAYER, time="played_at"))
    assert {row["play"]: row["player_tier"] for row in rows} == {"1": "Bronze", "2": "Bronze", "3": "Silver"}


@pytest.mark.slow
@requirement("X8")
def test_two_pipelines_have_the_same_rows_and_keys(spark: SparkSession, recorded: Warehouse, tmp_path: Path) -> None:
    """One has loaded all changes at once, the other one in two loads, the later changes first."""
    other = Warehouse(spark, tmp_path / "other")
    for name, lines in (("2", LINES[3:]), ("1", LINES[:3])):
        ingest_and_apply(other, PLAYER, [players(name, "\n".join([HEADER, *lines]))])
    first, second = (records(queries.history(w, PLAYER).drop("load_run_id")) for w in (recorded, other))
    assert len(first) == 3
    assert_same_rows(first, second)


@pytest.mark.slow
@requirement("F54", "X8")
def test_two_pipelines_have_the_same_rows_keys_and_audit(
    spark: SparkSession, recorded: Warehouse, tmp_path: Path
) -> None:
    """One has loaded all changes at once, the other one by one, the last one first.

    The transitions in their audits that are not withdrawn are the same, too.
    """
    other = Warehouse(spark, tmp_path / "other")
    for number, line in reversed(list(enumerate(LINES, 1))):
        ingest_and_apply(other, PLAYER, [players(str(number), f"{HEADER}\n{line}")])
        if number in (3, 1):
            record(other, PLAYER)
    origin = {"load_run_id"}  # names the delivery
    first, second = (
        [
            {name: value for name, value in row.items() if name not in origin}
            for row in records(queries.history(w, PLAYER))
        ]
        for w in (recorded, other)
    )
    assert_same_rows(first, second)
    columns = ("change_type", "change_ts", "player_key_old", "player_key_new", "changed_columns", "actor")
    before, after = (
        records(current_transitions(queries.audit(w, PLAYER), PLAYER).select(*columns, "old_values", "new_values"))
        for w in (recorded, other)
    )
    assert len(before) == 6
    assert sorted(map(str, before)) == sorted(map(str, after))
    assert queries.audit(other, PLAYER).count() > 6, "some transitions are withdrawn"


@pytest.mark.slow
@requirement("F64")
def test_the_table_does_not_grow_by_what_did_not_change(recorded: Warehouse) -> None:
    """The changes of the player are delivered again, as a snapshot repeats them each day."""
    table = recorded.table(PLAYER.name)
    rows, commit = table.read().count(), table.last_commit().newest
    for name in ("2", "3"):
        assert ingest_and_apply(recorded, PLAYER, [players(name, W)]).row_counts == {}
    assert (table.read().count(), table.last_commit().newest) == (rows, commit) == (3, commit)
