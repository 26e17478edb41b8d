"""SQL views with the rows of the functions of `queries`, in a session and in a shared catalog."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from unittest import mock

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations import check
from scd_pipeline.queries import views
from scd_pipeline.queries.dimension import QueriedTable, queried_table
from scd_pipeline.queries.labels import overlap_labels, unique_names
from scd_pipeline_tests.facts.players import PLAY, PLAY_SINCE, PLAYER, PLAYS, W, players, plays
from scd_pipeline_tests.text_tables import assert_same_rows

END = datetime(9999, 12, 31, 23, 59, 59)

CLUB = Dimension(
    "dim_club",
    {"player_id": "string"},
    {"club": Attribute(2)},
    Source("clubs", feed=Feed(effective_at="at")),
)
CLUBS = """
| player_id | at         | club |
| p         | 2019-05-01 | Reds |
"""
VIEWS = [
    *(f"dim_club_{query}" for query in ("as_of", "current", "in_force", "keys", "with_dim_player")),
    *(f"dim_player_{query}" for query in ("as_of", "current", "in_force", "keys")),
    "fct_play_joined",
]
LATE = """
| player_id | at         | op   | tier | email | born | by   |
| p         | 2019-04-01 | NULL | Iron | a     | 1990 | NULL |
"""


@pytest.fixture(
    scope="module", params=[pytest.param(where, marks=pytest.mark.slow(5)) for where in ("folder", "schema")]
)
def store(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Warehouse]:
    """Two dimensions and a fact that has not yet applied the late change of one; in a folder, and in two schemas."""
    path = tmp_path_factory.mktemp("views")
    if request.param == "folder":
        yield loaded(Warehouse(spark, path))
        return
    schemas = [f"{kind}_{uuid.uuid4().hex}" for kind in ("mart", "raw")]
    for schema in schemas:
        spark.sql(f"CREATE SCHEMA {schema} LOCATION '{path / schema}'")
    yield loaded(
        Warehouse(spark, path / "scratch", schema=schemas[0], schemas={"changes": schemas[1], "keys": schemas[1]})
    )
    for schema in schemas:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def loaded(store: Warehouse) -> Warehouse:
    delivery = players("1", W)
    load(store, PLAYER, [delivery])
    load(store, CLUB, [type(delivery)("clubs", "1", "feed", frame=players("1", CLUBS).frame)])
    load(store, PLAY, [plays("1", PLAYS)])
    load(store, PLAYER, [players("2", LATE)])
    return store


def rows(frame: DataFrame, names: list[str]) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in frame.select(*names).collect()), key=repr)


def test_each_query_has_a_view(store: Warehouse) -> None:
    names = queries.view_names(store, [PLAY])
    assert [name for name in names if name in VIEWS] == VIEWS
    assert set(names) - set(VIEWS) == {
        *(f"{table}{suffix}" for table in ("dim_club", "dim_player") for suffix in ("", "_audit")),
        *(
            f"{table}{suffix}"
            for table in ("dim_club", "dim_player", "fct_play")
            for suffix in ("_changes", "_batches")
        ),
        *(f"{table}_quarantine" for table in ("dim_club", "dim_player", "fct_play")),
        "fct_play",
        "fct_play_dimension_versions",
    }


CURRENT = """
| player_id | tier | email | born   | effective_from | effective_to | version |
| p         | Gold | b     | '1990' | 2019-12-01     | NULL         | 4       |
"""
SILVER = """
| player_id | tier   | email | born   | effective_from | effective_to | version |
| p         | Silver | b     | '1990' | 2019-06-01     | 2019-10-01   | 3       |
"""
JOINED = """
| play | player_id | partner_id | coins | player_tier | partner_tier | player_email |
| 1    | p         | NULL       | 1     | Bronze      | NULL         | b            |
| 2    | p         | p          | 2     | Bronze      | Bronze       | b            |
| 3    | p         | NULL       | 3     | Silver      | NULL         | b            |
"""


def test_views_return_the_rows_of_the_functions(store: Warehouse) -> None:
    """The facts still have the keys from before the late change."""
    time = datetime(2019, 7, 1)
    expected = {
        "dim_player_current": (CURRENT, queries.current(store, PLAYER)),
        "dim_player_in_force": (CURRENT, queries.as_of(store, PLAYER, datetime(2026, 1, 1))),
        f"dim_player_as_of(TIMESTAMP '{time} UTC')": (SILVER, queries.as_of(store, PLAYER, time)),
        f"dim_player_as_of(TIMESTAMP '{END} UTC')": (CURRENT, queries.as_of(store, PLAYER, END)),
        "fct_play_joined": (JOINED, queries.with_dimensions(store, PLAY)),
    }
    queries.register(store, VIEWS, [PLAY])
    for name, (table, function) in expected.items():
        view = store.spark.sql(f"SELECT * FROM {name}")
        assert sorted(view.columns) == sorted(function.columns), name
        for frame in (view, function):
            assert_same_rows(table, frame.toArrow().to_pylist())


KEYS = """
| player_id | effective_from |
| p         | 2019-03-01     |
| p         | 2019-04-01     |
| p         | 2019-06-01     |
| p         | 2019-12-01     |
"""


def test_a_view_has_every_assigned_key_once(store: Warehouse) -> None:
    """Without the unknown member, which has no business key."""
    queries.register(store, ["dim_player_keys", "dim_club_keys"])
    keys = store.spark.table("dim_player_keys")
    assert keys.columns == ["player_key", "player_id", "effective_from"]
    assert_same_rows(KEYS, keys.toArrow().to_pylist())
    assert store.spark.table("dim_club_keys").count() == 1


@pytest.mark.slow
def test_a_key_list_of_an_earlier_release_is_not_replaced_by_the_view(store: Warehouse) -> None:
    """It has the name of the view, which its session has all the same."""
    identifier = store.table("dim_club_keys").identifier
    if store.schema:
        store.spark.sql(f"DROP VIEW IF EXISTS {identifier}")
    columns = "1L AS club_key, 'x' AS player_id, timestamp'2019-01-01' AS effective_from"
    store.spark.sql(f"CREATE TABLE {identifier} USING delta AS SELECT {columns}").collect()
    created, expected = queries.create_views(store, ["dim_club"]), queries.history(store, CLUB).select("club_key")
    queries.register(store, ["dim_club_keys"])
    view_rows = store.spark.table("dim_club_keys").select("club_key").collect()
    store.spark.sql(f"DROP TABLE {identifier}").collect()
    assert "dim_club_keys" not in created
    assert view_rows == expected.collect()


def test_an_attribute_declared_since_the_last_delivery_is_null_in_views(store: Warehouse) -> None:
    """Also in the views of a schema, which a load recreates after it has committed."""
    expected = queries.with_dimensions(store, PLAY_SINCE)
    queries.register(store, ["fct_play_joined"], [PLAY_SINCE])
    view = store.spark.sql("SELECT * FROM fct_play_joined")
    assert {"player__level", "player_level", "player_phone", "coach_key"} < set(view.columns)
    assert rows(view, expected.columns) == rows(expected, expected.columns)
    assert queries.create_views(store, ["fct_play"], [PLAY_SINCE]) == (["fct_play_joined"] if store.schema else [])


def test_a_view_that_cannot_be_created_does_not_block_the_others(store: Warehouse) -> None:
    name, failures = "dim_club_with_dim_player", list[str]()
    if not store.schema:
        pytest.skip("a warehouse in a folder stores no views")
    table = store.table(name).identifier
    store.spark.sql(f"DROP VIEW IF EXISTS {table}")
    store.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS n")
    with pytest.raises(AnalysisException):
        queries.create_views(store, facts=[PLAY])
    created = queries.create_views(store, facts=[PLAY], on_failure=failures.append)
    store.spark.sql(f"DROP TABLE {table}")
    assert sorted(created) == [view for view in VIEWS if view != name]
    (line,) = failures
    assert line.startswith(f"view {name}: cannot create the view: ")


def test_a_dimension_that_cannot_be_read_does_not_block_the_views_of_others(store: Warehouse) -> None:
    """As one whose history table was dropped."""
    if not store.schema:
        pytest.skip("a warehouse in a folder stores no views")

    def table(warehouse: Warehouse, name: str) -> QueriedTable:
        if name == CLUB.name:
            raise SetupError("TABLE_NOT_LOADED", name, table=name, warehouse=warehouse.location)
        return queried_table(warehouse, name)

    failures = list[str]()
    with mock.patch.object(views, "queried_table", table):
        created = queries.create_views(store, [PLAYER.name], [PLAY], on_failure=failures.append)
    assert {"dim_player_current", "fct_play_joined"} <= set(created)
    assert ["views of dim_club" in line for line in failures] == [True]


@pytest.mark.slow
def test_each_column_of_an_overlap_has_a_name_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """The view is named after the dimensions, ordered by their own names, not by those of their logs."""
    store = Warehouse(spark, tmp_path)
    whole = Dimension("dim_player", {"player_id": "int"}, {"club_name": 2, "id": 2}, CLUB.sources)
    part = Dimension("dim_player_club", {"player_id": "int"}, {"name": 2}, CLUB.sources)
    for dimension, names in ((whole, "club_name, '3' AS id"), (part, "name")):
        frame = spark.sql(f"SELECT 1 AS player_id, timestamp'2019-05-01' AS at, '{dimension.name}' AS {names}")
        ingest_and_apply(store, dimension, [Delivery("clubs", "1", "feed", frame=frame)])
    queries.register(store, ["dim_player_with_dim_player_club"])
    view = spark.sql("SELECT * FROM dim_player_with_dim_player_club")
    assert len({name.casefold() for name in view.columns}) == len(view.columns)
    expected = {"player__club_name": "dim_player", "player_club__name": "dim_player_club", "player__id": "3"}
    (row,) = view.collect()
    assert {name: row[name] for name in expected} == expected
    assert row["player_id"] == 1
    (row,) = queries.overlap(store, whole, part, on=[("player_id", "player_id")]).collect()
    assert {row["player__club_name"], row["player_club__name"]} == {"dim_player", "dim_player_club"}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("dim_a", "dim_b", ("a", "b")),
        ("dim_a", "a", ("dim_a", "a")),
        ("dim_a", "dim_a", ("left", "right")),
        ("dim_a", "dim_A", ("left", "right")),
    ],
)
def test_two_dimensions_have_two_labels(left: str, right: str, expected: tuple[str, str]) -> None:
    assert overlap_labels(left, right) == expected


def test_columns_are_labelled_until_no_two_names_are_alike() -> None:
    names = unique_names([("a", "b_c"), ("a_b", "c"), ("a", "d"), ("a", "e")], ["a_D", "a__d"])
    assert list(names.values()) == ["a__b_c", "a_b__c", "a___d", "a_e"]


def test_a_view_joins_two_histories_by_overlapping_windows(store: Warehouse) -> None:
    queries.register(store, ["dim_club_with_dim_player"], [PLAY])
    view = store.spark.sql(
        "SELECT player_id, club_club, player_tier, effective_from, effective_to FROM dim_club_with_dim_player"
    )
    expected = queries.overlap(store, CLUB, PLAYER, on=[("player_id", "player_id")])
    names = ["club_club", "player_tier", "effective_from", "effective_to"]
    assert rows(view, names) == rows(expected, names)
    assert [row[:2] for row in rows(view, names)] == [("Reds", "Gold"), ("Reds", "Iron"), ("Reds", "Silver")]


def test_every_session_has_the_views_of_a_shared_catalog(store: Warehouse) -> None:
    """Also if the schema has tables of others."""
    others = [store.table(name).identifier for name in ("price", "price_changes")] if store.schema else []
    for table in others:
        store.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS n")
    created = queries.create_views(store, facts=[PLAY])
    for table in others:
        store.spark.sql(f"DROP TABLE {table}")
    assert sorted(created) == (VIEWS if store.schema else [])
    for name in created:
        query = f"{name}(TIMESTAMP '2019-07-01')" if name.endswith("_as_of") else name
        schema = store.schemas["keys"] if name.endswith("_keys") else store.schema
        assert store.spark.sql(f"SELECT * FROM {schema}.{query}").columns
    assert [name for name in queries.view_names(store, [PLAY]) if name in VIEWS] == VIEWS


def test_the_views_of_a_loaded_table_are_recreated(store: Warehouse) -> None:
    created = queries.create_views(store, ["fct_play"], [PLAY])
    assert created == (["fct_play_joined"] if store.schema else [])
    of_club = [name for name in VIEWS if "dim_club" in name]
    assert sorted(queries.create_views(store, ["dim_club"])) == (of_club if store.schema else [])


@pytest.mark.slow
def test_tables_are_in_the_schema_of_their_kind(store: Warehouse) -> None:
    assert not [result for result in check.check_table(store, PLAYER) if result.count]
    if store.schema:
        names = {row["tableName"] for row in store.spark.sql(f"SHOW TABLES IN {store.schemas['changes']}").collect()}
        assert {name for name in names if name.endswith("_changes")} == {
            f"{table}_changes" for table in ("dim_club", "dim_player", "fct_play")
        }


def test_an_unknown_kind_of_table_is_rejected(spark: SparkSession) -> None:
    with pytest.raises(SetupError, match="UNKNOWN_TABLE_KIND"):
        Warehouse(spark, "w", schema="mart", schemas={"facts": "mart"})
    with pytest.raises(SetupError, match="MAIN_SCHEMA_MISSING"):
        Warehouse(spark, "w", schemas={"audit": "mart"})
