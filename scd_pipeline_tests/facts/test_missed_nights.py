"""Missed nights: the deliveries of several nights in one load lead to the rows of a load each night (S14, S24)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.players import PLAY, PLAYER, players, plays
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows

PLAYER_COLUMNS = "| player_id | at         | op | tier   | email | born | by   |"
PLAY_COLUMNS = "| play | played_at        | player_id | partner_id | coins |"
NIGHTS = {
    "monday": (
        "| p         | 2019-03-01 |    | Bronze | a     | 1990 | NULL |\n"
        "| p         | 2019-03-05 |    | Silver | a     | 1990 | NULL |",
        "| 1    | 2019-03-04T10:00 | p         | NULL       | 1     |\n"
        "| 2    | 2019-03-05T10:00 | p         | q          | 2     |",
    ),
    "tuesday": (
        "| q         | 2019-03-02 |    | Iron   | b     | 1991 | NULL |\n"
        "| p         | 2019-03-03 |    | Copper | a     | 1990 | NULL |",
        "| 3    | 2019-03-02T10:00 | p         | q          | 3     |\n"
        "| 1    | 2019-03-04T10:00 | p         | NULL       | 7     |",
    ),
}
"""The changes of the players and the plays of each night: corrections, a late change, and a late player."""


@pytest.mark.slow(20)
@requirement("L18")
@rule("S14", "S24")
def test_missed_nights_are_caught_up_in_one_load(spark: SparkSession, warehouse: Path) -> None:
    each_night, at_once = (Warehouse(spark, warehouse / name) for name in ("each_night", "at_once"))
    deliveries = [
        (players(night, f"{PLAYER_COLUMNS}\n{changes}"), plays(night, f"{PLAY_COLUMNS}\n{rows}", day=day))
        for day, (night, (changes, rows)) in enumerate(NIGHTS.items(), start=1)
    ]
    for changes, rows in deliveries:
        ingest_and_apply(each_night, PLAYER, [changes])
        load(each_night, PLAY, [rows])
    ingest_and_apply(at_once, PLAYER, [changes for changes, _ in deliveries])
    load(at_once, PLAY, [rows for _, rows in deliveries])
    assert stored(at_once, "dim_player") == stored(each_night, "dim_player")
    assert stored(at_once, "fct_play") == stored(each_night, "fct_play")
    assert at_once.table("fct_play").last_commit().number == 1
    tiers = at_once.table("dim_player").read().select("player_key", "tier")
    partners = tiers.withColumnsRenamed({"player_key": "partner_key", "tier": "partner"})
    assert_same_rows(
        """
        | play | coins | tier   | partner |
        | 1    | 7     | Copper | NULL    |
        | 2    | 2     | Silver | Iron    |
        | 3    | 3     | Bronze | Iron    |
        """,
        at_once.table("fct_play").read().join(tiers, "player_key").join(partners, "partner_key").toArrow().to_pylist(),
        ("play", "coins", "tier", "partner"),
    )
    assert [str(result) for result in check_table(at_once, PLAY) if not result.passed] == []


def stored(opened: Warehouse, table: str) -> list[dict[str, Any]]:
    """Return all rows of a table, in the order of their first column."""
    rows = opened.table(table).read()
    return list(rows.orderBy(rows.columns[0]).toArrow().to_pylist())
