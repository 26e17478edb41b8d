"""Times are stored as microseconds by every way of writing, whatever the session's own settings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from scd_pipeline.delta.table import Table
from scd_pipeline.frames import local_frame

TIME_FORMAT = "spark.sql.parquet.outputTimestampType"
CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite"
FIRST_DAY = datetime(1, 1, 1, tzinfo=timezone.utc)
OPEN_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


@pytest.fixture
def hostile(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that would write INT96, and old days in another calendar."""
    before = {name: spark.conf.get(name) for name in (TIME_FORMAT, CALENDAR)}
    spoil(spark)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")


def spoil(spark: SparkSession) -> None:
    spark.conf.set(TIME_FORMAT, "INT96")
    spark.conf.set(CALENDAR, "LEGACY")


@pytest.mark.slow
@pytest.mark.rule("S1")
def test_every_way_of_writing_stores_microseconds(hostile: SparkSession, warehouse: Path) -> None:
    table = Table(hostile, "t", str(warehouse / "t"))
    table.create([("k", "bigint", False), ("at", "timestamp", True), ("gone", "boolean", True)], {}, "times")
    commit = table.last_commit()

    def rows(*keys: int) -> DataFrame:
        spoil(hostile)
        ends = [(key, FIRST_DAY if key % 2 else OPEN_END, False) for key in keys]
        return local_frame(hostile, ends, "k bigint, at timestamp, gone boolean")

    commit = table.append(rows(1, 2, 3, 4), commit.next(high_water_marks={}, batches=(), run_id=""))
    commit = table.replace(rows(1, 2), commit.next(high_water_marks={}, batches=(), run_id=""), key="k")
    commit = table.merge(rows(3, 6), commit.next(high_water_marks={}, batches=(), run_id=""), key="k", removes="s.gone")
    spoil(hostile)
    table.compact()
    files = list((warehouse / "t").glob("*.parquet"))
    assert len(files) > 3
    for file in files:
        (kind,) = [column.physical_type for column in pq.ParquetFile(file).schema if column.name == "at"]
        assert kind == "INT64"
        assert set(pq.read_table(file)["at"].to_pylist()) <= {FIRST_DAY, OPEN_END}, file
    assert {row["k"] for row in table.read().select("k").collect()} == {1, 2, 3, 4, 6}
