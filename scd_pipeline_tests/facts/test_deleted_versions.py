"""S18: with `deleted_rows: new_version`, a delete opens a version that queries omit, and that facts refer to."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame

from scd_pipeline import queries
from scd_pipeline.declaration import Dimension, Fact, Feed, Role, Source
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import narrowing
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.facts.players import PLAYER, W, players, plays
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.storage.customers import CUSTOMER, snapshot
from scd_pipeline_tests.text_tables import assert_same_rows

LEAVING = replace(PLAYER, deleted_rows="new_version")
NAMED = {
    "default": LEAVING,
    "dbt": replace(LEAVING, profile="dbt"),
    "elevata": replace(LEAVING, profile="elevata"),
}
NOVEMBER = dt.datetime(2019, 11, 1, tzinfo=dt.timezone.utc)
LATE = """
| player_id | at         | op | tier | email | born | by   |
| q         | 2019-03-01 |    | Iron | q     | 1980 | NULL |
| q         | 2019-10-15 | D  |      |       |      | NULL |
| p         | 2019-09-01 | D  |      |       |      | NULL |
"""


def play(dimension: Dimension) -> Fact:
    return Fact(
        "fct_play",
        grain={"play": "int"},
        event_time="played_at",
        dimensions={"player": Role(dimension)},
        measures={"coins": "int"},
        source=Source("floor", feed=Feed()),
    )


def tiers(rows: DataFrame) -> list[Any]:
    return sorted((row["player_id"], row["tier"]) for row in rows.collect())


@rule("S18")
@pytest.mark.slow
@pytest.mark.parametrize("profile", NAMED)
def test_queries_omit_versions_that_deletes_opened_and_facts_have_their_keys(opened: Warehouse, profile: str) -> None:
    """Late changes move the start of such a version; the audit alone gives the same rows."""
    dimension = NAMED[profile]
    fact, deleted = play(dimension), dimension.column_layout.required_name("is_deleted")
    load(opened, dimension, [players("1", W)])
    played = """
        | play | played_at  | player_id | coins |
        | 1    | 2019-07-01 | p         | 1     |
        | 2    | 2019-09-15 | p         | 2     |
        | 3    | 2019-11-01 | p         | 3     |
        | 4    | 2019-12-24 | p         | 4     |
    """
    load(opened, fact, [plays("1", played)])
    load(opened, dimension, [players("2", LATE)])
    load(opened, fact)
    versions = queries.history(opened, dimension).toArrow().to_pylist()
    assert [(row["player_id"], row["tier"], row[deleted]) for row in versions] != []
    assert_same_rows(
        """
        | player_id | tier   | gone  |
        | p         | Bronze | false |
        | p         | Silver | false |
        | p         | Silver | true  |
        | p         | Gold   | false |
        | q         | Iron   | false |
        | q         | Iron   | true  |
        """,
        [{**row, "gone": row[deleted]} for row in versions],
    )
    assert tiers(queries.current(opened, dimension)) == [("p", "Gold")]
    assert tiers(queries.as_of(opened, dimension, NOVEMBER)) == []
    queries.register(opened, query="dim_player_current dim_player_in_force dim_player_as_of")
    for query in ("dim_player_current", "dim_player_in_force", "dim_player_as_of('2019-12-24')"):
        assert tiers(opened.spark.sql(f"SELECT * FROM {query}")) == [("p", "Gold")]
    replayed = queries.as_of(opened, dimension, NOVEMBER, known_at=dt.datetime.now(dt.timezone.utc))
    assert tiers(replayed) == []
    joined = queries.with_dimensions(opened, fact).toArrow().to_pylist()
    assert_same_rows(
        """
        | play | player_tier |
        | 1    | Silver      |
        | 2    | Silver      |
        | 3    | Silver      |
        | 4    | Gold        |
        """,
        joined,
    )
    guest = replace(PLAYER, name="dim_guest", surrogate_key="guest_key")
    load(opened, guest, [players("1", W)])
    view = "dim_guest_with_dim_player"
    queries.register(opened, query=view)
    for pairs in (queries.overlap(opened, dimension, guest, on=[("player_id", "player_id")]), opened.spark.table(view)):
        assert pairs.where("effective_from <= '2019-11-01' AND ifnull(effective_to > '2019-11-01', true)").count() == 0
        assert pairs.count() == 3
    keys = {row["play"]: row["player_key"] for row in joined}
    assert keys[1] != keys[2] == keys[3] != keys[4]
    results = [*check_table(opened, dimension), *check_table(opened, fact)]
    assert [str(result) for result in results if not result.passed] == []
    assert not repair(opened, dimension, now=NOVEMBER, actor="ann", dry_run=True).has_differences


@pytest.mark.slow
@requirement("X12")
@rule("S18", "S21")
def test_the_audit_of_a_delete_has_the_key_of_the_version_that_it_opened(opened: Warehouse) -> None:
    recorded = load(opened, LEAVING, [players("1", W)]).audit
    assert recorded is not None
    assert (recorded.counts.opened, recorded.counts.closed) == (4, 3)
    audit = queries.audit(opened, LEAVING).orderBy("change_ts").toArrow().to_pylist()
    rows = [row for row in audit if row["change_type"] in ("INSERT", "UPDATE", "LOGICAL_DELETE")]
    assert [row["change_type"] for row in rows] == ["INSERT", "UPDATE", "LOGICAL_DELETE", "INSERT"]
    assert [row["player_key_old"] for row in rows] == [None, *(row["player_key_new"] for row in rows[:-1])]
    assert dict(rows[2]["new_values"])["tier"] == "Silver"


@pytest.mark.slow
@rule("S18")
def test_the_state_of_a_version_is_new_changed_or_deleted(opened: Warehouse) -> None:
    load(opened, NAMED["elevata"], [players("1", W)])
    rows = queries.history(opened, NAMED["elevata"]).toArrow().to_pylist()
    states = [row["version_state"] for row in sorted(rows, key=lambda row: row["version"])]
    assert states == ["changed", "deleted", "deleted", "new"]


@pytest.mark.slow
@rule("S18")
def test_a_narrowed_snapshot_lets_a_deleted_entity_return_with_its_values(
    opened: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its current version has these values, but a delete opened it."""
    monkeypatch.setattr(narrowing, "NARROWED_FROM", 0)
    customer = replace(CUSTOMER, deleted_rows="new_version")
    for month, keys in (1, "ab"), (2, "b"), (3, "ab"):
        load(opened, customer, [snapshot(month, dict.fromkeys(keys, "Rome"))]).raise_if_rejected()
    rows = queries.history(opened, customer).where("id = 'a'").orderBy("effective_from").collect()
    assert [row["is_deleted"] for row in rows] == [False, True, False]
