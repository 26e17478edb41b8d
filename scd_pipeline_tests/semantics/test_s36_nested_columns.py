"""S36: columns of objects and lists, as records of an API have them: with other fields in each delivery."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import LoadResult, load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.engine import records
from scd_pipeline_tests.semantics.specification import rule

USERS = Dimension("dim_user", {"id": "int"}, "mirror", Source("api", feed=Feed()), history_table=True)
ROWS = Dimension("dim_row", "whole_row", "mirror", Source("api", snapshot=Snapshot()))
POSTS = Dimension("dim_post", {"id": "int"}, "mirror", Source("api", feed=Feed()), child_tables="comments")
MANY = 5_000_000_000
DAYS: dict[int, dict[str, Any]] = {
    1: {"name": "ann", "plan": {"seats": 1}},
    2: {"name": "ann", "plan": {"seats": MANY}},
    3: {"plan": {"seats": 1, "trial": None}, "team": None, "name": "ann"},
    4: {"plan": {"trial": True}, "name": "ann"},
    5: {"name": "ann", "plan": None, "team": [{"name": "core"}]},
    6: {"team": [{"lead": True, "name": "core"}, {"name": "web"}], "name": "ann"},
}
BECOMES = [
    (1, {"name": "ann", "plan": {"seats": 1, "trial": None}, "team": None}),
    (2, {"name": "ann", "plan": {"seats": MANY, "trial": None}, "team": None}),
    (3, {"name": "ann", "plan": {"seats": 1, "trial": None}, "team": None}),
    (4, {"name": "ann", "plan": {"seats": None, "trial": True}, "team": None}),
    (5, {"name": "ann", "plan": None, "team": [{"name": "core", "lead": None}]}),
    (6, {"name": "ann", "plan": None, "team": [{"name": "core", "lead": True}, {"name": "web", "lead": None}]}),
]


def delivery(day: int, *rows: dict[str, Any], channel: str = "feed") -> Delivery:
    """The records of a day."""
    return Delivery("api", f"2024-01-0{day}", channel, at=f"2024-01-0{day}", frame=list(rows))


def changes(result: LoadResult) -> list[str]:
    result.raise_if_rejected()
    return [str(change) for change in result.attribute_changes]


def history(warehouse: Warehouse, dimension: Dimension, name: str) -> list[tuple[int, Any]]:
    """The first day of each version, and its value of an attribute."""
    rows = records(queries.history(warehouse, dimension))
    return sorted(((row["effective_from"].day, row[name]) for row in rows), key=lambda version: version[0])


def assert_checks_pass(warehouse: Warehouse, dimension: Dimension) -> None:
    assert [result for result in check_table(warehouse, dimension) if not result.passed] == []


@pytest.mark.slow(12)
@rule("S36")
def test_a_new_field_of_an_object_opens_a_version_once_it_has_a_value(spark: SparkSession, warehouse: Path) -> None:
    """A number needs more bytes, fields are in another order, and one that is NULL in all records has no type."""
    opened = Warehouse(spark, warehouse)
    narrow = pa.struct([("name", pa.string()), ("plan", pa.struct([("seats", pa.int32())]))])
    table = pa.table({"id": [1], "user": pa.array([DAYS[1]], narrow)})
    assert changes(load(opened, USERS, [Delivery("api", "1", "feed", at="2024-01-01", frame=table)])) == []
    before = "struct<name:string,plan:struct<seats:int>>"
    after = "struct<name:string,plan:struct<seats:bigint>>"
    assert changes(load(opened, USERS, [delivery(3, {"id": 1, "user": DAYS[3]})])) == [
        f"attribute user: widened from {before} to {after}"
    ]
    assert history(opened, USERS, "user") == [(1, DAYS[1])]
    before, after = after, "struct<name:string,plan:struct<seats:bigint>,team:array<struct<name:string>>>"
    assert changes(load(opened, USERS, [delivery(5, {"id": 1, "user": DAYS[5]})])) == [
        f"attribute user: widened from {before} to {after}"
    ]
    assert history(opened, USERS, "user") == [(1, {**DAYS[1], "team": None}), (5, DAYS[5])]
    assert changes(load(opened, USERS, [delivery(2, {"id": 1, "user": DAYS[2]})])) == []
    assert [day for day, _ in history(opened, USERS, "user")] == [1, 2, 3, 5]
    assert_checks_pass(opened, USERS)


@pytest.mark.slow(8)
@rule("S36", "S20")
def test_fields_with_blanks_in_their_names_are_mirrored(spark: SparkSession, warehouse: Path) -> None:
    opened = Warehouse(spark, warehouse)
    home = {"zip code": "53111", "dc:type": "home"}
    changes(load(opened, USERS, [delivery(1, {"id": 1, "user": {"first name": "ann", "places": [home]}})]))
    changes(load(opened, USERS, [delivery(2, {"id": 1, "user": {"places": [{**home, "geo (lat)": 50}]}})]))
    stored = {"zip_code": "53111", "dc:type": "home", "geo_lat": None}
    assert history(opened, USERS, "user") == [
        (1, {"first_name": "ann", "places": [stored]}),
        (2, {"first_name": None, "places": [{**stored, "geo_lat": 50}]}),
    ]
    assert_checks_pass(opened, USERS)


@pytest.mark.slow(20)
@rule("S36", "S14")
@pytest.mark.parametrize("order", list(permutations(DAYS))[50::170], ids=lambda order: "".join(map(str, order)))
def test_objects_have_the_same_fields_in_any_order_of_arrival(
    spark: SparkSession, warehouse: Path, order: Sequence[int]
) -> None:
    opened = Warehouse(spark, warehouse)
    for day in order:
        load(opened, USERS, [delivery(day, {"id": 1, "user": DAYS[day]})]).raise_if_rejected()
    assert history(opened, USERS, "user") == BECOMES
    assert_checks_pass(opened, USERS)


@pytest.mark.slow(8)
@rule("S36", "S37")
def test_a_field_that_is_null_changes_no_whole_row(spark: SparkSession, warehouse: Path) -> None:
    """The row of 9 stays in force, although the field that another row brings changes the type of its value."""
    opened = Warehouse(spark, warehouse)
    for day, user in enumerate(({"a": 1}, {"a": 1, "b": None}, {"b": 2, "a": 1}, {"a": 1}), 1):
        snapshot = delivery(day, {"user": user}, {"user": {"a": 9}}, channel="snapshot")
        load(opened, ROWS, [snapshot]).raise_if_rejected()
    windows = [
        (row["user"], row["effective_from"].day, row["effective_to"] and row["effective_to"].day)
        for row in records(queries.history(opened, ROWS).orderBy("effective_from", "user.a"))
    ]
    assert windows == [
        ({"a": 1, "b": None}, 1, 3),
        ({"a": 9, "b": None}, 1, None),
        ({"a": 1, "b": 2}, 3, 4),
        ({"a": 1, "b": None}, 4, None),
    ]


@pytest.mark.slow(8)
@rule("S36", "S40")
def test_a_child_table_gains_the_fields_of_its_elements(spark: SparkSession, warehouse: Path) -> None:
    opened = Warehouse(spark, warehouse)
    load(opened, POSTS, [delivery(1, {"id": 1, "comments": [{"text": "hello"}]}, {"id": 2, "comments": []})])
    likes = {"id": 2, "comments": [{"text": "bye", "likes": 3}]}
    assert changes(load(opened, POSTS, [delivery(2, likes)])) == [
        "attribute comments: widened from array<struct<text:string>> to array<struct<text:string,likes:bigint>>"
    ]
    rows = records(opened.spark.sql(f"SELECT text, likes FROM {opened.table('dim_post__comments').identifier}"))
    assert sorted((row["text"], row["likes"]) for row in rows) == [("bye", 3), ("hello", None)]
    assert_checks_pass(opened, POSTS)
