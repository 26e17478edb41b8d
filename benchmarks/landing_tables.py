"""Measure merges into a landing table against a MERGE of the same rows: `python -m benchmarks.landing_tables`.

In each round, a Parquet file with new values of a share of the rows is loaded into a landing table with a primary key,
and merged into a plain Delta table by the statement that Delta documents, in one warm session. Both tables must then
have the same rows. The result is the median of the seconds, and its ratio to that of the MERGE.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import measure
from benchmarks.session import start_session
from scd_pipeline import LandingTable, Pipeline, Source

TARGET = 1.3
"""The highest ratio that a merge into a landing table should have."""
_COLUMNS = {"name": "string", "city": "string", "amount": "double"}
TABLE = LandingTable("raw_orders", "merge", _COLUMNS, Source("shop", feed={}), primary_key={"id": "bigint"})


def main() -> None:
    """Measure both merges in turn, and print a table of the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landing_tables", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.02, help="the share of the rows that a delivery has [0.02]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = start_session(folder, cores=arguments.cores, memory="3g")
        seconds = compare(spark, folder, arguments.rows, arguments.share, arguments.rounds)
    medians = {contestant: statistics.median(each) for contestant, each in seconds.items()}
    print("| contestant | seconds | of the MERGE |\n| --- | ---: | ---: |")
    for contestant, median in medians.items():
        print(f"| {contestant} | {median:.2f} | {median / medians['MERGE']:.2f} |")
    print(f"\nTarget: {TARGET}")


def compare(spark: SparkSession, folder: Path, rows: int, share: float, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each round by contestant, without those of the first load and the first merge."""
    pipeline, plain = Pipeline(folder / "warehouse", spark=spark), str(folder / "plain")
    first = _write(_orders(spark, rows, 0), folder / "0.parquet")
    pipeline.load(TABLE, first, at=_day(0))
    spark.read.parquet(str(first)).write.format("delta").save(plain)
    seconds: dict[str, list[float]] = {"landing table": [], "MERGE": []}
    for number in range(1, rounds + 2):
        path = _write(_changes(spark, rows, share, number), folder / f"{number}.parquet")
        merges = {"landing table": _landing(pipeline, path, number), "MERGE": _documented(spark, plain, path)}
        for contestant, merge in merges.items():
            measured = measure(merge)
            if number > 1:  # the first round compiles
                seconds[contestant].append(measured.seconds)
    _require_equal(pipeline.current(TABLE), spark.read.format("delta").load(plain))
    return seconds


def _landing(pipeline: Pipeline, path: Path, number: int) -> Callable[[], None]:
    def load() -> None:
        pipeline.load(TABLE, path, at=_day(number))

    return load


def _documented(spark: SparkSession, plain: str, path: Path) -> Callable[[], None]:
    def merge() -> None:
        target, rows = DeltaTable.forPath(spark, plain), spark.read.parquet(str(path))
        matched = target.alias("t").merge(rows.alias("s"), "t.id = s.id")
        matched.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return merge


def _orders(spark: SparkSession, rows: int, number: int) -> DataFrame:
    """Return orders whose values depend on a number."""
    name = F.concat(F.lit("name "), F.lpad(F.col("id").cast("string"), 7, "0"))
    city = F.concat(F.lit(f"city {number} "), (F.col("id") % 1000).cast("string"))
    return spark.range(rows).withColumns({"name": name, "city": city, "amount": F.col("id") / 7 + number})


def _changes(spark: SparkSession, rows: int, share: float, number: int) -> DataFrame:
    """Return new values of a share of the orders spread over the table, and some new ones."""
    step = round(1 / share)
    changed = _orders(spark, rows, number).where(F.col("id") % step == number % step)
    new = _orders(spark, max(1, round(rows * share / 10)), number)
    return changed.union(new.withColumn("id", F.col("id") + rows * (number + 1)))


def _write(rows: DataFrame, path: Path) -> Path:
    rows.coalesce(1).write.parquet(str(path))
    return path


def _day(number: int) -> str:
    return str(date(2024, 1, 1) + timedelta(days=number))


def _require_equal(landed: DataFrame, merged: DataFrame) -> None:
    names = ["id", *_COLUMNS]
    landed, merged = landed.select(names), merged.select(names)
    differing = landed.exceptAll(merged).count() + merged.exceptAll(landed).count()
    if differing:
        raise AssertionError(f"{differing} rows differ")


if __name__ == "__main__":
    main()
