"""Helpers of frames, on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.frames import local_frame, repeated_numbers


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
