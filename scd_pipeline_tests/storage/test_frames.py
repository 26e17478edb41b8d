"""Helpers of frames, on Spark."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.frames import (
    checkpoint,
    checkpoint_observed,
    local_frame,
    number_in_task,
    observe,
    observe_numbered,
    repeated_numbers,
    task_number,
)
from scd_pipeline.spark.settings import temporary_settings


@pytest.mark.parametrize(
    ("numbers", "repeated"),
    [
        ([], set()),
        ([1, -1, 0, 4097, -4096, 2**63 - 1, -(2**63)], set()),
        ([None, None, 5], set()),
        ([7, 4096 + 7, 7], {7}),
        ([-3, 8, -3, 8, 9], {-3, 8}),
    ],
)
def test_groups_with_a_number_that_occurs_several_times_are_returned(
    spark: SparkSession, numbers: list[int | None], repeated: set[int]
) -> None:
    """Wherever its rows are: each is in another partition here. NULL does not count."""
    rows = local_frame(spark, [(number,) for number in numbers], "n bigint").repartition(8)
    groups = {row["n"] % 4096 for row in repeated_numbers(rows).collect()}
    assert groups == {number % 4096 for number in repeated}


def test_local_rows_have_the_types_that_spark_parses(spark: SparkSession) -> None:
    """Of every kind of type, in a column or nested, with and without rows."""
    at = datetime(2024, 1, 2, 3, 4, 5, 6, timezone.utc)
    values = {
        "string": "ä",
        "int": 1,
        "bigint": 2**40,
        "smallint": -1,
        "tinyint": 1,
        "double": 0.5,
        "float": 0.5,
        "boolean": True,
        "date": date(1582, 1, 1),
        "timestamp": at,
        "binary": b"\xff",
        "decimal(12,2)": Decimal("1.50"),
        "array<string>": ["a", None],
        "map<string,bigint>": {"a": 1},
        "struct<at:timestamp,names:array<string>>": (at, ["a"]),
    }
    ddl = ", ".join(f"`column.{number}` {data_type}" for number, data_type in enumerate(values))
    frame = local_frame(spark, [tuple(values.values()), tuple([None] * len(values))], ddl)
    assert frame.schema == local_frame(spark, [], ddl).schema == T.StructType.fromDDL(ddl)
    first, second = (list(row.values()) for row in frame.toArrow().to_pylist(maps_as_pydicts="strict"))
    assert first == [*list(values.values())[:-1], {"at": at, "names": ["a"]}]
    assert set(second) == {None}


def test_numbers_of_many_groups_are_distinct(spark: SparkSession) -> None:
    numbers = spark.range(-10_000, 10_000).selectExpr("id AS n")
    assert repeated_numbers(numbers).count() == 0
    assert repeated_numbers(numbers.union(numbers.where("n = 9999"))).count() == 1


def test_a_checkpoint_can_be_joined_with_its_source(spark: SparkSession) -> None:
    """Also if the optimizer reduced a union to one of its frames, which an embedded session did not resolve."""
    numbers = spark.range(10).where("id <> 7")
    selected = checkpoint(numbers.limit(0).union(numbers.where("id > 6")).distinct())
    for kind, expected in (("left_semi", [8, 9]), ("inner", [8, 9]), ("left_anti", [0, 1, 2, 3, 4, 5, 6])):
        assert [row["id"] for row in numbers.join(selected, "id", kind).orderBy("id").collect()] == expected
    assert selected.join(selected, "id").count() == 2


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("limit", [0, 7])
def test_one_query_observes_rows_before_and_after_a_join(spark: SparkSession, limit: int, adaptive: str) -> None:
    """Also if a side of the join has no rows, which Spark may remove from the plan with its aggregates."""
    stored, delivered = (
        spark.range(0, 100, 1, 4).selectExpr("id", f"id AS {name}") for name in ("stored", "delivered")
    )
    figures = {
        "rows": F.count(F.lit(1)),
        "tasks": F.count_if(number_in_task() == 0),
        "numbers": F.array_sort(F.collect_set(task_number())),
    }
    with temporary_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        stored, of_stored = observe_numbered(stored.where(F.col("id") % 10 < limit), figures)
        joined, of_joined = observe(delivered.join(stored, "id", "full_outer"), {"both": F.count("stored")})
        computed, values = checkpoint_observed(joined.where("delivered < 5"), of_stored, of_joined)
    expected = {"rows": 70, "tasks": 4, "numbers": [0, 1, 2, 3]} if limit else {"rows": 0, "tasks": 0, "numbers": []}
    assert {name: value or expected[name] for name, value in values[0].items()} == expected
    assert values[1] == {"both": 10 * limit}
    assert computed.count() == 5
