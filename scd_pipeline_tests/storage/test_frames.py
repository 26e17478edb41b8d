"""Helpers of frames, on Spark."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from scd_pipeline.frames import checkpoint, local_frame, repeated_numbers


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
