"""A load reads of large tables only the rows in the range of its business keys; no row of these keys is left out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from scd_pipeline.declaration import Dimension, Feed, KeyColumn, Source
from scd_pipeline.frames import local_frame
from scd_pipeline.history.key_ranges import key_range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def dimension(*types: str) -> Dimension:
    keys = [KeyColumn(f"k{number}", data_type) for number, data_type in enumerate(types)]
    return Dimension("dim_x", keys, {"a": 2}, [Source("crm", feed=Feed(path="crm/{date}.csv", format="csv"))])


def in_range(spark: SparkSession, ddl: str, stored: list[Any], keys: list[Any]) -> list[Any]:
    """Return which of the stored keys a load of `keys` reads."""
    schema = f"k0 {ddl}"
    condition = key_range(local_frame(spark, [(key,) for key in keys], schema), len(keys), dimension(ddl))
    rows = local_frame(spark, [(key,) for key in stored], schema).where(condition).collect()
    return [row.k0 for row in rows]


@pytest.mark.parametrize(
    ("ddl", "stored", "keys", "read"),
    [
        ("bigint", [-5, 1, 2, 3, 9], [2, None, 9], [2, 9]),
        ("bigint", list(range(-50, 50)), list(range(20, 40)), list(range(20, 40))),
        ("int", list(range(40)), [0, *range(20, 40)], list(range(40))),  # a range, from eleven keys on
        ("string", ["", "A", "a", "ä", "€uro", "it's"], ["ä", "it's"], ["ä", "it's"]),
        ("date", [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)], [date(1, 1, 1)], [date(1, 1, 1)]),
        ("decimal(38,10)", [Decimal("0.1"), Decimal("-" + "9" * 28)], [Decimal("0.1")], [Decimal("0.1000000000")]),
        ("double", [0.0, float("nan")], [float("nan")], [0.0, float("nan")]),  # NaN has no statistics
        ("bigint", [1, 2], [None], []),
        ("bigint", [1, 2], [], []),
        ("bigint", [1, 2], [None] * 11, []),
    ],
)
def test_rows_outside_of_the_range_are_not_read(
    spark: SparkSession, ddl: str, stored: list[Any], keys: list[Any], read: list[Any]
) -> None:
    assert str(sorted(in_range(spark, ddl, stored, keys), key=str)) == str(sorted(read, key=str))


def test_each_part_of_a_key_has_a_range(spark: SparkSession) -> None:
    stored = local_frame(spark, [(1, "a"), (1, "b"), (2, "a"), (2, "c")], "k0 int, k1 string")
    keys = stored.where("k0 = 1")
    rows = stored.where(key_range(keys, 2, dimension("int", "string"))).collect()
    assert sorted((row.k0, row.k1) for row in rows) == [(1, "a"), (1, "b")]
