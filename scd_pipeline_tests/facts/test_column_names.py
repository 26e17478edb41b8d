"""Tables whose generated columns have other names, or whose open end is NULL, have the same history and facts."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Fact
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.players import PLAY, PLAYER, PLAYS, W, players, plays
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

MEMBER = replace(
    PLAYER,
    attributes={**{a.name: a for a in PLAYER.attributes}, "tier": Attribute(6, column_names={"current": False})},
    open_end=None,
    column_names={
        "effective_from": "valid_from",
        "effective_to": "valid_to",
        "current_flag": False,
        "version": "number",
        "last_updated": "_changed",
        "row_hash": "_hash",
    },
)
LATE = """
| player_id | at         | op | tier   | email | born | by   |
| p         | 2019-05-01 |    | Silver | b     | 1990 | NULL |
| p         | 2020-02-01 |    | Gold   | c     | 1990 | NULL |
| p         | 2020-03-01 |    | Silver | c     | 1990 | NULL |
"""
"""A change that moves the start of a version, an email address, and a change in order."""

HISTORY = """
| tier   | email | valid_from | valid_to   | number |
| Bronze | c     | 2019-03-01 | 2019-05-01 | 1      |
| Silver | c     | 2019-05-01 | 2019-10-01 | 2      |
| Gold   | c     | 2019-12-01 | 2020-03-01 | 3      |
| Silver | c     | 2020-03-01 | NULL       | 4      |
"""


def rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame."""
    return frame.toArrow().to_pylist()


@pytest.fixture
def loaded(opened: Warehouse) -> Warehouse:
    """The history of player p, with plays between its two loads."""
    load(opened, MEMBER, [players("1", W)])
    load(opened, played(), [plays("1", PLAYS)])
    load(opened, MEMBER, [players("2", LATE)])
    return opened


def played() -> Fact:
    """The fact of the plays."""
    roles = {name: replace(role, dimension=MEMBER) for name, role in PLAY.roles}
    return Fact(PLAY.name, {"play": "int"}, PLAY.event_time, roles, PLAY.source, dict(PLAY.measures))


@pytest.mark.slow
@requirement("X1", "X2", "X3")
def test_a_table_with_other_names_has_the_same_history(loaded: Warehouse) -> None:
    """One test, because each load takes seconds: table, queries, views, facts, audit and a load without changes."""
    stored = loaded.table("dim_player").read()
    assert_same_rows(HISTORY, rows(stored.where("number > 0")))
    assert {"valid_from", "number", "_changed", "_hash"} < set(stored.columns)
    assert not {"effective_from", "current_flag", "current_tier", "version"} & set(stored.columns)
    hashes = {row["number"]: row["_hash"] for row in rows(stored)}
    assert hashes[0] is None
    assert hashes[2] == hashes[4] != hashes[1]
    for dimension in (MEMBER, "dim_player"):
        assert_same_rows(HISTORY, rows(queries.history(loaded, dimension)))
        assert [row["number"] for row in rows(queries.current(loaded, dimension))] == [4]
        at = dt.datetime(2019, 4, 1, tzinfo=dt.timezone.utc)
        assert [row["number"] for row in rows(queries.as_of(loaded, dimension, at))] == [1]
        assert rows(queries.as_of(loaded, dimension, at.replace(month=11))) == []
    now = dt.datetime(2100, 1, 1, tzinfo=dt.timezone.utc)
    rebuilt = rows(queries.as_of(loaded, MEMBER, now, known_at=now))
    assert rebuilt == rows(queries.as_of(loaded, MEMBER, now))
    queries.register(loaded)
    spark = loaded.spark
    assert [row["number"] for row in spark.table("dim_player_current").collect()] == [4]
    in_force = spark.sql("SELECT number FROM dim_player_as_of(TIMESTAMP '2019-05-01 00:00:00Z')")
    assert [row["number"] for row in in_force.collect()] == [2]
    assert {result.check for result in check_table(loaded, MEMBER) if not result.passed} == set()

    load(loaded, played())
    joined = rows(queries.with_dimensions(loaded, played()).select("play", "player_tier", "partner_tier"))
    assert_same_rows(
        """
        | play | player_tier | partner_tier |
        | 1    | Bronze      | NULL         |
        | 2    | Bronze      | Bronze       |
        | 3    | Silver      | NULL         |
        """,
        joined,
    )
    assert all(result.passed for result in check_table(loaded, played()))
    before = loaded.table("dim_player").last_commit().newest
    assert load(loaded, MEMBER, [players("3", LATE.splitlines()[1] + "\n" + LATE.splitlines()[-1])]).row_counts == {}
    assert loaded.table("dim_player").last_commit().newest == before


PROFILES = {
    "dlt": """
    | player_id | tier   | email | born   | _dlt_valid_from | _dlt_valid_to | version | change_reason |
    | p         | Bronze | b     | '1990' | 2019-03-01      | 2019-06-01    | 1       | source_load   |
    | p         | Silver | b     | '1990' | 2019-06-01      | 2019-10-01    | 2       | source_load   |
    | p         | Gold   | b     | '1990' | 2019-12-01      | NULL          | 3       | source_load   |
    """,
    "elevata": """
    | player_id | tier   | email | born   | version_started_at | version_ended_at | version | change_reason |
    | p         | Bronze | b     | '1990' | 2019-03-01         | 2019-06-01       | 1       | source_load   |
    | p         | Silver | b     | '1990' | 2019-06-01         | 2019-10-01       | 2       | source_load   |
    | p         | Gold   | b     | '1990' | 2019-12-01         | NULL             | 3       | source_load   |
    """,
}
"""The rows of `W` with the names and the open end of each profile."""


@requirement("X1", "X2", "X3")
@pytest.mark.parametrize("profile", ["dlt", pytest.param("elevata", marks=pytest.mark.slow)])
def test_a_history_is_the_same_in_each_profile(opened: Warehouse, recorded: Warehouse, profile: str) -> None:
    """The history of one player, each profile in a table of its own."""
    other = replace(PLAYER, name=f"dim_player_{profile}", profile=profile)
    ingest_and_apply(opened, other, [players("1", W)])
    table = rows(opened.table(other.name).read())
    assert_same_rows(PROFILES[profile], table)
    keys = {row["player_key"] for row in table}
    assert keys == {row["player_key"] for row in rows(queries.history(recorded, PLAYER))}
