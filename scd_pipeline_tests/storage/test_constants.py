"""Constants that differ from load to load: they have the same value in all rows, and are no literals for Spark."""

from __future__ import annotations

import contextlib
import io
from datetime import datetime, timezone

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.expressions import constant_number, constant_time

AT = datetime(2024, 1, 31, 12, 30, 0, 123456, timezone.utc)


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """Rows with a column that may be NULL."""
    return spark.sql("SELECT * FROM VALUES ('a', 1), (NULL, 2) AS t(text, number)")


def test_a_constant_has_its_value_in_all_rows(rows: DataFrame) -> None:
    anchor = F.col("text")
    computed = rows.select(
        constant_number(-7, anchor).alias("number"),
        F.unix_micros(constant_time(AT, anchor)).alias("micros"),
        constant_time(None, anchor).alias("nothing"),
    )
    assert [name for _, name in computed.dtypes] == ["bigint", "bigint", "timestamp"]
    assert [tuple(row) for row in computed.collect()] == [(-7, 1706704200123456, None)] * 2


def test_spark_does_not_replace_a_constant_by_a_literal(spark: SparkSession) -> None:
    """Otherwise it would compile the code of each query that has the constant again in each load."""
    rows = spark.range(3).select(F.when(F.col("id") > 0, F.lit("a")).alias("text"), "id").repartition(1)
    anchor = F.col("text")
    for constant in (constant_number(7_777_777, anchor), constant_time(AT, anchor)):
        plan = io.StringIO()
        with contextlib.redirect_stdout(plan):
            rows.select(constant.alias("constant"), "id").explain("extended")
        optimized = plan.getvalue().split("== Optimized Logical Plan ==")[1]
        assert "concat(" in optimized.split("AS constant")[0], optimized
