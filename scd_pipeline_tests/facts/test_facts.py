"""S23, S24: what a fact stores, and how it changes with its dimensions and its own deliveries."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load import Retry, run
from scd_pipeline.load import facts as load_facts
from scd_pipeline.load.reserved_members import with_reserved_members
from scd_pipeline.load.run import ingest_and_apply, load, plan, record
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.players import (
    COUNTRY,
    PLAY,
    PLAY_SINCE,
    PLAYER,
    PLAYER_SINCE,
    PLAYS,
    VISIT,
    W,
    frame,
    players,
    plays,
)
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows


def facts(opened: Warehouse) -> list[dict[str, Any]]:
    """Return the facts with the tiers that the stored keys reference."""
    joined = queries.with_dimensions(opened, PLAY).select(
        "play", "coins", "player_tier", "partner_tier", "player_key", "partner_key"
    )
    return list(joined.toArrow().to_pylist())


@requirement("F58", "F59", "X19")
@rule("S2", "S23")
def test_a_fact_stores_the_surrogate_key_as_of_its_event_time(recorded: Warehouse) -> None:
    result = load(
        recorded,
        PLAY,
        [
            plays(
                "1",
                """
                | play | played_at                  | player_id | partner_id | coins | player_key | play_row |
                | 1    | 2019-02-28                 | p         | NULL       | 1     | 1          | 1        |
                | 2    | 2019-03-05                 | p         | p          | 2     | 1          | 1        |
                | 3    | 2019-05-31T23:59:59.999999 | p         | q          | 3     | 1          | 1        |
                | 4    | 2019-06-01                 | p         | NULL       | 4     | 1          | 1        |
                | 5    | 2019-10-01                 | p         | NULL       | 5     | 1          | 1        |
                | 6    | 2019-12-01                 | p         | NULL       | 6     | 1          | 1        |
                | 7    | NULL                       | p         | NULL       | 7     | key        | row      |
                | 8    | 2019-12-01                 | p         | NULL       | 7.5   | 1          | 1        |
                """,
            )
        ],
    )
    assert result.row_counts == {"open": 6}
    assert result.unknown_members == {"player": 2, "partner": 5}
    (batch,) = result.results
    assert batch.undeclared == ("player_key", "play_row"), "derived columns are never read"
    assert_same_rows(
        """
        | play | coins | player_tier | partner_tier |
        | 1    | 1     | NULL        | NULL         |
        | 2    | 2     | Bronze      | Bronze       |
        | 3    | 3     | Bronze      | NULL         |
        | 4    | 4     | Silver      | NULL         |
        | 5    | 5     | NULL        | NULL         |
        | 6    | 6     | Gold        | NULL         |
        """,
        facts(recorded),
        ("play", "coins", "player_tier", "partner_tier"),
    )
    columns = ("play", "player_tier", "player_email", "player_born")
    events = recorded.table("fct_play").read().select("play", "played_at", "player_id")
    as_of_event_time = queries.join_as_of(recorded, events, PLAYER, time="played_at").select(*columns)
    by_stored_key = queries.with_dimensions(recorded, PLAY).select(*columns)
    assert sorted(by_stored_key.collect(), key=str) == sorted(as_of_event_time.collect(), key=str)
    unknown = {row["play"] for row in facts(recorded) if row["player_key"] == -1}
    assert unknown == {1, 5}
    bad = queries.quarantine(recorded, PLAY.name).select("reason").toArrow().to_pylist()
    assert sorted(row["reason"] for row in bad) == ["coins: cannot cast '7.5' to int", "played_at is missing"]


LATE = """
| player_id | at         | op | tier     | email | born | by   |
| p         | 2019-04-01 |    | Platinum | c     | 1990 | NULL |
| q         | 2019-01-01 |    | Bronze   | d     | 1991 | NULL |
"""
LATER_PLAYS = """
| play | played_at  | player_id | partner_id | coins |
| 4    | 2019-04-20 | q         | p          | 4     |
| 5    | 2019-04-20 | r         | p          | 5     |
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "delivered",
    [pytest.param([], marks=pytest.mark.slow), [plays("2", LATER_PLAYS)]],
    ids=["stored facts", "new facts"],
)
@rule("S24")
def test_a_plan_of_a_fact_has_the_keys_of_the_planned_dimension(played: Warehouse, delivered: list[Delivery]) -> None:
    """A late version moves the keys of play 2 in both roles; r is unknown."""
    dimension = plan(played, PLAYER, [players("2", LATE)])
    planned = plan(played, PLAY, delivered, dimensions={"dim_player": dimension})
    keys = _keys_by_play(planned.changed_rows)
    load(played, PLAYER, [players("2", LATE)])
    result = load(played, PLAY, delivered)
    assert (planned.row_counts, planned.unknown_members) == (result.row_counts, result.unknown_members)
    assert result.row_counts == {"overwrite": 1, **({"open": 2} if delivered else {})}
    stored = _keys_by_play(played.table("fct_play").read())
    assert keys == {play: stored[play] for play in keys}
    assert keys.keys() == ({2, 4, 5} if delivered else {2})


def _keys_by_play(rows: DataFrame) -> dict[int, tuple[int, int]]:
    return {row[0]: (row[1], row[2]) for row in rows.select("play", "player_key", "partner_key").collect()}


@rule("S22", "S24", "S25")
def test_a_late_change_re_keys_the_facts_in_the_moved_windows(played: Warehouse) -> None:
    """And no others. The facts can still be queried as known before."""
    first = played.table("dim_player").last_commit()
    late = """
    | player_id | at         | op | tier     | email | born | by   |
    | p         | 2019-04-01 |    | Platinum | c     | 1990 | NULL |
    """
    ingest_and_apply(played, PLAYER, [players("2", late)])
    before = played.table("fct_play").last_commit()
    result = load(played, PLAY)
    assert (result.row_counts, result.unknown_members) == ({"overwrite": 1}, {"player": 0, "partner": 0})
    assert [row["player_tier"] for row in sorted(facts(played), key=lambda row: row["play"])] == [
        "Bronze",
        "Platinum",
        "Silver",
    ]
    assert played.table("fct_play").last_commit().number == before.number + 1
    repeated = load(played, PLAY)
    assert (repeated.row_counts, repeated.unknown_members) == ({}, {"player": 0, "partner": 0})
    earlier = queries.with_dimensions(played, PLAY, known_at=first.at).select("play", "player_tier").collect()
    assert dict(sorted(earlier)) == {1: "Bronze", 2: "Bronze", 3: "Silver"}


@pytest.mark.slow
@rule("S24")
def test_the_audit_resolves_a_replaced_key_until_the_facts_are_re_keyed(played: Warehouse) -> None:
    """The first version begins earlier than before, so it has another key."""
    ingest_and_apply(played, PLAYER, [players("1", W.replace("2019-03-01", "2019-02-01"), revision=2)])
    record(played, PLAYER)
    assert _joined_on_the_stored_key(played) == {3}
    assert {row["play"]: row["player_tier"] for row in facts(played)} == {1: "Bronze", 2: "Bronze", 3: "Silver"}
    (dangling,) = check_table(played, PLAY, ["surrogate_keys_exist"])
    assert (dangling.passed, dangling.count) == (False, 3)
    load(played, PLAY)
    assert _joined_on_the_stored_key(played) == {1, 2, 3}
    (dangling,) = check_table(played, PLAY, ["surrogate_keys_exist"])
    assert dangling.passed


def _joined_on_the_stored_key(played: Warehouse) -> set[int]:
    """Return the plays that an inner join of fact and dimension matches with a player."""
    fact, dimension = played.table("fct_play").read(), played.table("dim_player").read()
    return {row["play"] for row in fact.join(dimension, "player_key").select("play").collect()}


@pytest.mark.slow
@rule("S23", "S33")
def test_a_fact_of_two_dimensions_one_of_them_without_windows(recorded: Warehouse) -> None:
    """Its one row is in force at all times; after it is removed, the facts have the key of the unknown member."""
    country = "| code | at         | op | name    |\n| at   | 2019-06-01 |    | Austria |"
    ingest_and_apply(recorded, COUNTRY, [Delivery("iso", "1", frame=frame(country))])
    visits = """
    | visit | at         | player_id | country |
    | 1     | 2019-03-05 | p         | at      |
    | 2     | 2019-07-01 | p         | xx      |
    """
    load(recorded, VISIT, [Delivery("desk", "1", at=dt.datetime(2020, 1, 1), frame=frame(visits))])
    columns = ("visit", "player_tier", "country_name")
    assert_same_rows(
        """
        | visit | player_tier | country_name |
        | 1     | Bronze      | Austria      |
        | 2     | Silver      | NULL         |
        """,
        queries.with_dimensions(recorded, VISIT).select(*columns).toArrow().to_pylist(),
    )
    deletion = "| code | at         | op | name |\n| at   | 2019-09-01 | D  | NULL |"
    ingest_and_apply(recorded, COUNTRY, [Delivery("iso", "2", frame=frame(deletion))])
    stale = queries.with_dimensions(recorded, VISIT).where("visit = 1").select("country_key", "country_name").collect()
    assert [tuple(row) for row in stale] == [(-1, None)], "the stored key no longer exists"
    assert load(recorded, VISIT).row_counts == {"overwrite": 1}
    keys = recorded.table("fct_visit").read().select("visit", "country_key").toArrow().to_pylist()
    assert {row["visit"]: row["country_key"] for row in keys} == {1: -1, 2: -1}
    roles = {**dict(VISIT.roles), "guide": Role(PLAYER, "player_id")}
    guided = Fact("fct_visit", {"visit": "int"}, "at", roles, Source("desk", feed=Feed()))
    assert load(recorded, guided).row_counts == {"overwrite": 2}, "existing facts get the key of a new role"
    assert recorded.table("fct_visit").read().where("guide_key = player_key").count() == 2
    assert load(recorded, guided).row_counts == {}


@requirement("F61")
@pytest.mark.slow
@rule("S23", "S24")
def test_facts_loaded_before_their_dimension_are_re_keyed_later(opened: Warehouse) -> None:
    """A later delivery and a withdrawal change the rows of a fact as well."""
    first = """
    | play | played_at  | player_id | partner_id | coins |
    | 1    | 2019-03-05 | p         | NULL       | 1     |
    | 1    | 2019-03-05 | p         | NULL       | 1     |
    | 2    | 2019-07-01 | p         | NULL       | 2     |
    """
    load(opened, PLAY, [plays("1", first)])
    rows = opened.table("fct_play").read().select("play", "player_key").toArrow().to_pylist()
    assert {(row["play"], row["player_key"]) for row in rows} == {(1, -1), (2, -1)}
    ingest_and_apply(opened, PLAYER, [players("1", W)])
    second = """
    | play | played_at  | player_id | partner_id | coins |
    | 2    | 2019-12-24 | p         | NULL       | 5     |
    """
    load(opened, PLAY, [plays("2", second, day=2)])
    expected = """
    | play | coins | player_tier |
    | 1    | 1     | Bronze      |
    | 2    | 5     | Gold        |
    """
    assert_same_rows(expected, facts(opened), ("play", "coins", "player_tier"))
    load(opened, PLAY, [plays("2", "", day=2, revision=2, withdrawn=True)])
    assert_same_rows(
        expected.replace("5     | Gold  ", "2     | Silver"), facts(opened), ("play", "coins", "player_tier")
    )
    removed = load(opened, PLAY, [plays("1", "", revision=2, withdrawn=True)])
    assert (removed.row_counts, removed.unknown_members) == ({"remove": 2}, {"player": 0, "partner": 0})
    high_water_marks = opened.table("fct_play").last_commit().high_water_marks
    assert high_water_marks["dim_player"].table_version == opened.table("dim_player").last_commit().table_version


@pytest.mark.slow
@rule("S20", "S23")
def test_an_attribute_declared_since_the_last_delivery_is_null_in_queries(played: Warehouse) -> None:
    """A renamed attribute has its values, and no column of a query has the name of one of the fact's own."""
    joined = queries.with_dimensions(played, PLAY_SINCE).toArrow().to_pylist()
    columns = ("play", "player_level", "player__level", "player_phone", "coach_key", "coach_level")
    assert_same_rows(
        """
        | play | player_level | player__level | player_phone | coach_key | coach_level |
        | 1    | NULL         | Bronze        | NULL         | -1        | NULL        |
        | 2    | NULL         | Bronze        | NULL         | -1        | NULL        |
        | 3    | NULL         | Silver        | NULL         | -1        | NULL        |
        """,
        [{name: row[name] for name in columns} for row in joined],
    )
    rows = played.spark.sql("SELECT 'p' AS player_id, timestamp'2019-03-05' AS at, 'x' AS player_level")
    (row,) = queries.join_as_of(played, rows, PLAYER_SINCE, time="at").collect()
    assert (row["player_level"], row["player__level"], row["player_phone"]) == ("x", "Bronze", None)
    both = queries.overlap(played, PLAYER_SINCE, PLAYER_SINCE, on=[("player_id", "player_id")])
    assert {tuple(row) for row in both.select("left_level", "right_phone").collect()} == {
        ("Bronze", None),
        ("Silver", None),
        ("Gold", None),
    }


@rule("S23")
@pytest.mark.slow
def test_the_load_of_a_referenced_dimension_writes_its_unknown_member(opened: Warehouse) -> None:
    """With the first rows, so that a fact finds it; a dimension that no fact references has none."""
    load(opened, PLAYER, [players("1", W)], has_facts=True)
    load(opened, PLAY, [plays("1", PLAYS)], has_facts=True)
    assert opened.table("fct_play").read().count() == 3
    commit = opened.table("dim_player").last_commit()
    assert (commit.number, commit.reserved_member, unknown_members(opened, "dim_player")) == (1, True, 1)
    assert [str(result) for result in check_table(opened, PLAYER) if not result.passed] == []


@pytest.mark.slow
@rule("S11", "S23")
def test_an_existing_table_gets_its_unknown_member_with_the_next_rows(opened: Warehouse) -> None:
    """Once, and in the table of the current versions; also if it is there, but no commit records it."""
    split, tables = replace(PLAYER, history_table=True), ("dim_player", "dim_player_history")
    load(opened, split, [players("1", W)])
    for number, tier in enumerate(("Iron", "Zinc", "Lead"), start=2):
        change = W.replace("2019-12-01", f"2020-0{number}-01").replace("Gold", tier)
        load(opened, split, [players(str(number), change)], has_facts=number != 3)
        assert [unknown_members(opened, table) for table in tables] == [1, 0]
        table = opened.table("dim_player")
        following = replace(table.last_commit().next(), reserved_member=False)
        table.commit_empty(replace(following, high_water_marks=table.last_commit().high_water_marks))
    assert [str(result) for result in check_table(opened, split) if not result.passed] == []


def unknown_members(opened: Warehouse, table: str) -> int:
    """Return the number of rows of the unknown member."""
    return opened.table(table).read().where("player_key = -1").count()


@pytest.mark.slow
@rule("S20", "S23")
def test_the_unknown_member_is_written_although_a_declared_column_is_missing(recorded: Warehouse) -> None:
    """It has the columns of the table, to which the dimension's next delivery adds those declared since."""
    with_reserved_members(recorded, load_facts.pin(recorded, PLAYER_SINCE))
    members = recorded.table("dim_player").read().where("player_key = -1").select("version", "tier")
    assert [tuple(row) for row in members.collect()] == [(0, None)]


@pytest.mark.slow
@rule("S23")
def test_a_version_that_is_older_than_the_tolerance_is_not_joined(recorded: Warehouse) -> None:
    """The version of 2019-03-01 is four days old at the time of the row."""
    rows = recorded.spark.sql("SELECT 'p' AS who, timestamp'2019-03-05' AS at")
    tiers = []
    for tolerance in (dt.timedelta(days=4), dt.timedelta(days=4, microseconds=-1)):
        joined = queries.join_as_of(recorded, rows, PLAYER, time="at", keys=("who",), tolerance=tolerance)
        tiers += [row["player_tier"] for row in joined.toArrow().to_pylist()]
    assert tiers == ["Bronze", None]
    for dimension, tolerance in ((PLAYER, dt.timedelta(-1)), (COUNTRY, dt.timedelta(1))):
        with pytest.raises(UsageError, match="TOLERANCE_"):
            queries.join_as_of(recorded, rows, dimension, time="at", tolerance=tolerance)


@rule("S2", "S23")
def test_rows_join_as_of_their_time_and_histories_join_by_overlapping_windows(
    recorded: Warehouse,
) -> None:
    rows = recorded.spark.sql(
        "SELECT * FROM VALUES ('p', timestamp'2019-03-05'), ('p', timestamp'2019-11-01'), ('q', timestamp'2019-03-05') "
        "AS t(who, at)"
    )
    joined = queries.join_as_of(recorded, rows, PLAYER, time="at", keys=("who",))
    assert_same_rows(
        """
        | who | at         | player_tier |
        | p   | 2019-03-05 | Bronze      |
        | p   | 2019-11-01 | NULL        |
        | q   | 2019-03-05 | NULL        |
        """,
        joined.toArrow().to_pylist(),
    )
    future = recorded.spark.sql("SELECT 'p' AS who, timestamp'9999-12-31 23:59:59.5' AS at")
    (row,) = queries.join_as_of(recorded, future, PLAYER, time="at", keys=("who",)).select("player_tier").collect()
    assert row[0] == "Gold", "the window of a current version has no end"
    with pytest.raises(UsageError, match="JOIN_KEYS_INCOMPLETE"):
        queries.join_as_of(recorded, rows, PLAYER, time="at", keys=("who", "at"))
    both = queries.overlap(recorded, PLAYER, PLAYER, on=[("player_id", "player_id")])
    assert_same_rows(
        """
        | left_tier | right_tier | effective_from | effective_to |
        | Bronze    | Bronze     | 2019-03-01     | 2019-06-01   |
        | Silver    | Silver     | 2019-06-01     | 2019-10-01   |
        | Gold      | Gold       | 2019-12-01     | NULL         |
        """,
        both.toArrow().to_pylist(),
    )


@pytest.mark.slow
@rule("S24")
def test_a_load_does_not_replace_keys_by_those_of_an_older_dimension(
    recorded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it has read the dimension, another load changes the dimension, and a third one re-keys the fact."""
    load(recorded, PLAY, [plays("1", PLAYS)])
    header, *_ = W.strip().splitlines()
    late = players("2", f"{header}\n| p | 2019-04-01 | | Iron | a | 1990 | NULL |")
    keys, calls = run.read_fact_keys, []

    def outdated(warehouse: Warehouse, fact: Fact) -> object:
        calls.append(fact.name)
        read = keys(warehouse, fact)
        if len(calls) == 1:
            load(warehouse, PLAYER, [late])
            load(warehouse, fact)
        return read

    monkeypatch.setattr(run, "read_fact_keys", outdated)
    load(recorded, PLAY, [plays("2", PLAYS.replace("1 ", "9 "))], retry=Retry(sleep=lambda _: None))
    assert len(calls) == 3, "the first load, the third one, and the first one again"
    assert [str(result) for result in check_table(recorded, PLAY) if not result.passed] == []
    assert load(recorded, PLAY).row_counts == {}


@pytest.mark.slow
@rule("S4", "S23")
def test_facts_before_a_row_dated_after_its_snapshot_have_no_version(opened: Warehouse) -> None:
    """Entity a is new in the extract of 1 February, with a row of 08:00 of that day."""
    account = Dimension(
        "dim_account", {"id": "string"}, {"tier": Attribute(2)}, Source("crm", Snapshot(effective_at="at"))
    )
    booking = Fact(
        "fct_booking",
        grain={"n": "int"},
        event_time="booked_at",
        dimensions={"account": Role(account, "id")},
        source=Source("bank", feed=Feed()),
    )
    extract = frame(
        """
        | id | at               | tier   |
        | a  | 2024-02-01 08:00 | Bronze |
        """
    )
    bookings = frame(
        """
        | n | booked_at        | id |
        | 1 | 2024-02-01 07:59 | a  |
        | 2 | 2024-02-01 08:00 | a  |
        """
    )
    load(opened, account, [Delivery("crm", "2024-02-01", "snapshot", frame=extract)])
    load(opened, booking, [Delivery("bank", "2024-02-02", "feed", frame=bookings)])
    stored = opened.table("fct_booking").read().orderBy("n").select("n", F.col("account_key") != -1).collect()
    assert [tuple(row) for row in stored] == [(1, False), (2, True)]
