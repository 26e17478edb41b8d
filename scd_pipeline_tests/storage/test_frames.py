"""Helpers of frames, on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

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
