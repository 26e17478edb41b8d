"""Measure reads of a timed table against a read of its base: `python -m benchmarks.timed_tables`.

The base is one Parquet table. Each log has statements of one kind, which hit some rows each. In each round, the base
itself and all logs are read in turn, in one warm session; the time of a read includes the plan of its query. The result
is the median, and its ratio to that of the read of the base.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import measure
from benchmarks.session import start_session
from scd_pipeline import Pipeline, TimedTable

_HITS = 10
"""The number of rows that a range hits."""


def equality(number: int, rows: int) -> str:
    """Return a condition that one row meets."""
    return f"id = {number * 7919 % rows}"


def interval(number: int, rows: int) -> str:
    """Return a condition that some rows meet."""
    start = number * 7919 % (rows - _HITS)
    return f"id BETWEEN {start} AND {start + _HITS - 1}"


def pattern(number: int, rows: int) -> str:
    """Return a condition that about ten rows meet."""
    return f"name LIKE 'name {number * 7919 % (rows // _HITS):06d}%'"


def suffix(number: int, rows: int) -> str:
    """Return a condition on the end of a text, which about ten rows meet."""
    return f"name LIKE '%{number * 7919 % (rows // _HITS):06d}'"


def inner_text(number: int, rows: int) -> str:
    """Return a condition on a text within a text, which about twenty rows meet."""
    return f"name LIKE '%{number * 7919 % (rows // _HITS):06d}%'"


Conditions: TypeAlias = tuple[Callable[[int, int], str], ...]
KINDS: Mapping[str, tuple[str, Conditions]] = {
    "`=`": ("city", (equality,)),
    "ranges": ("city", (interval,)),
    "`=`, ranges and `LIKE 'text%'` in turn": ("city", (equality, interval, pattern)),
    "`LIKE '%text'`": ("city", (suffix,)),
    "`LIKE '%text%'`": ("city", (inner_text,)),
    "`LIKE 'text%'`, on the column that the statements assign": ("name", (pattern,)),
}
"""The column that the statements of a log assign, and their conditions in turn."""


def main() -> None:
    """Measure the reads in turn, and print a table of the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timed_tables", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--statements", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = start_session(folder, cores=arguments.cores, memory="3g")
        _write_base(spark, folder / "base.parquet", arguments.rows)
        pipeline = Pipeline(folder / "warehouse", spark=spark)
        reads = {("", 0): _read(pipeline, _table(folder, "raw", ""))}
        for kind in arguments.kinds:
            for count in arguments.statements:
                log = _log(*KINDS[kind], count, arguments.rows)
                reads[kind, count] = _read(pipeline, _table(folder, f"{len(reads)}", log))
        seconds: dict[tuple[str, int], list[float]] = {each: [] for each in reads}
        for number in range(arguments.rounds + 1):
            for each, read in reads.items():
                measured = measure(read)
                if number:  # the first round compiles
                    seconds[each].append(measured.seconds)
    medians = {each: statistics.median(values) for each, values in seconds.items()}
    print("| statements | number | seconds | of the read of the base |\n| --- | ---: | ---: | ---: |")
    for (kind, count), median in medians.items():
        print(f"| {kind or 'none'} | {count:,} | {median:.2f} | {median / medians['', 0]:.1f} |")


def _write_base(spark: SparkSession, path: Path, rows: int) -> None:
    name = F.concat(F.lit("name "), F.lpad(F.col("id").cast("string"), 7, "0"))
    city = F.concat(F.lit("city "), (F.col("id") % 1000).cast("string"))
    columns = {"name": name, "city": city, "amount": F.col("id") / 7}
    spark.range(rows).withColumns(columns).write.parquet(str(path))


def _log(column: str, conditions: Conditions, count: int, rows: int) -> str:
    """Return a log of UPDATE statements of a column, whose conditions are of some kinds in turn."""
    return "\n".join(
        f"UPDATE t SET {column} = 'new {number}' WHERE {conditions[number % len(conditions)](number + 1, rows)};"
        for number in range(count)
    )


def _table(folder: Path, name: str, log: str) -> TimedTable:
    path = folder / f"{name}.sql"
    path.write_text(log, encoding="utf-8")
    return TimedTable("t", str(folder / "base.parquet"), updates=str(path))


def _read(pipeline: Pipeline, table: TimedTable) -> Callable[[], None]:
    def read() -> None:
        rows: DataFrame = pipeline.read(table)
        rows.write.format("noop").mode("overwrite").save()

    return read


if __name__ == "__main__":
    main()
