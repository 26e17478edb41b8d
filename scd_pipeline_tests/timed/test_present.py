"""The comparison of the stored rows of a timed table with a read (S12)."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from scd_pipeline import Base, Pipeline, TimedTable
from scd_pipeline.operations.maintenance import RENEWED_AFTER, maintain
from scd_pipeline.timed.present import compare_present, store_present

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_that_differ_by_a_microsecond_are_different(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    spark.sql(
        "SELECT 1 AS id, TIMESTAMP '2014-01-01' AS at, map(1, TIMESTAMP_NTZ '2014-01-01') AS times"
    ).write.parquet(str(tmp_path / "visits"))
    pipeline, table = (
        Pipeline(warehouse, spark=spark),
        TimedTable("visits", Base(str(tmp_path / "visits"), format="parquet")),
    )
    store_present(pipeline.warehouse, table, now=datetime(2015, 1, 1, tzinfo=timezone.utc))
    stored = pipeline.warehouse.table("visits_present")
    spark.sql(f"UPDATE {stored.identifier} SET at = at + INTERVAL '0.000001' SECOND").collect()
    differences = compare_present(pipeline.warehouse, table)
    assert differences is not None
    assert (differences.missing, differences.additional) == (1, 1)


def test_maintenance_repeats_the_commit_with_the_read_before_it_expires(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "visits.csv").write_text("id\n1\n2\n", encoding="utf-8")
    (tmp_path / ".updates").write_text("DELETE FROM visits WHERE id = 2", encoding="utf-8")
    pipeline = Pipeline(warehouse, spark=spark)
    table = TimedTable("visits", Base(str(tmp_path / "visits.csv"), {"id": "int"}, "csv"))
    read = store_present(pipeline.warehouse, table, now=datetime(2015, 1, 1, tzinfo=timezone.utc)).commit.stored_read
    later = datetime.now(timezone.utc) + RENEWED_AFTER
    (result,) = maintain(pipeline.warehouse, [table.present_table], now=later)
    assert (result.table, result.renewed) == ("visits_present", True)
    repeated = pipeline.warehouse.table("visits_present").last_commit()
    assert (repeated.number, repeated.stored_read) == (2, read)
    differences = compare_present(pipeline.warehouse, table)
    assert differences is not None
    assert (differences.missing, differences.additional) == (0, 0)
