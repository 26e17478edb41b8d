"""Measure a query while loads run: `python -m benchmarks.queries_beside_loads`.

Load and query are in two sessions of one Spark, which share its cores and its memory. The query groups a Parquet table.
Its time is measured without a load, during loads that use all cores, and during loads with a declared number of cores
(`load_cores`), in turn; the result is the median and the longest time of each. The time of a load beside the queries
shows what the smaller share costs. Memory is not measured: Spark has no limit of it for one session, but divides that
for sorts and joins evenly among the running tasks, so that fewer tasks of loads leave more of it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import measure
from benchmarks.session import start_session
from scd_pipeline import Dimension, Pipeline, Snapshot, Source

_FIRST_DAY = datetime(2024, 1, 1, tzinfo=timezone.utc)
CUSTOMER = Dimension(
    "dim_customer", {"id": "bigint"}, {"name": 1, "city": 2}, Source("crm", snapshot=Snapshot(format="parquet"))
)


@dataclass
class Case:
    """The times of one way to run loads beside a query.

    Attributes:
        name: The name, for the table.
        has_loads: Whether loads run.
        load_cores: The cores of a load; None for all.
        queries: The seconds of each query.
        loads: The seconds of each load that has ended.
    """

    name: str
    has_loads: bool = True
    load_cores: int | None = None
    queries: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)


def main() -> None:
    """Measure all cases in turn, and print a table of the times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queries_beside_loads", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--entities", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=5, help="queries of each case in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--load-cores", type=int, default=1)
    arguments = parser.parse_args()
    cases = [
        Case("no load", has_loads=False),
        Case("loads on all cores"),
        Case(f"loads on {arguments.load_cores} of {arguments.cores} cores", load_cores=arguments.load_cores),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = start_session(folder, cores=arguments.cores, memory="3g")
        query = _query(spark.newSession(), folder / "events.parquet", arguments.rows)
        for number in range(arguments.rounds + 1):
            for case in cases:
                warehouse = folder / f"warehouse_{number}_{cases.index(case)}"
                measured = _run(spark, case, query, warehouse, arguments.entities, arguments.queries)
                if number:  # the first round compiles
                    case.queries += measured.queries
                    case.loads += measured.loads
    baseline = statistics.median(cases[0].queries)
    print("| case | median of the query | of that without a load | longest query | median of a load |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for case in cases:
        median = statistics.median(case.queries)
        load = f"{statistics.median(case.loads):.2f}" if case.loads else ""
        print(f"| {case.name} | {median:.2f} | {median / baseline:.1f} | {max(case.queries):.2f} | {load} |")


def _run(
    spark: SparkSession, case: Case, query: Callable[[], None], warehouse: Path, entities: int, queries: int
) -> Case:
    """Return a case with the times of some queries, and of the loads beside them."""
    measured = Case(case.name, case.has_loads, case.load_cores)
    if not case.has_loads:
        measured.queries += [measure(query).seconds for _ in range(queries)]
        return measured
    with _loads(Pipeline(warehouse, spark=spark.newSession(), load_cores=case.load_cores), entities, measured.loads):
        measured.queries += [measure(query).seconds for _ in range(queries)]
    return measured


@contextmanager
def _loads(pipeline: Pipeline, entities: int, seconds: list[float]) -> Iterator[None]:
    """Run loads one after the other in a thread until the block ends, and one at least."""
    has_ended = threading.Event()

    def run() -> None:
        day = 0
        while not (has_ended.is_set() and day):
            start = time.perf_counter()
            _load(pipeline, entities, day)
            seconds.append(time.perf_counter() - start)
            day += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def _load(pipeline: Pipeline, entities: int, day: int) -> None:
    """Load a snapshot in which a tenth of the entities has another city than in that of the day before."""
    moves = F.when(F.col("id") % 10 == day % 10, F.lit(day)).otherwise(0)
    city = F.concat(F.lit("city "), (F.col("id") % 1000 + moves).cast("string"))
    name = F.concat(F.lit("name "), F.col("id").cast("string"))
    rows = pipeline.spark.range(entities).withColumns({"name": name, "city": city})
    pipeline.load(CUSTOMER, rows, at=_FIRST_DAY + timedelta(days=day))


def _query(spark: SparkSession, path: Path, rows: int) -> Callable[[], None]:
    """Return a query that groups the rows of a new Parquet table."""
    columns = {"customer": F.col("id") * 7919 % 100_003, "amount": F.col("id") / 7}
    spark.range(rows).withColumns(columns).write.parquet(str(path))

    def query() -> None:
        groups = spark.read.parquet(str(path)).groupBy("customer").agg(F.sum("amount"), F.approx_count_distinct("id"))
        groups.write.format("noop").mode("overwrite").save()

    return query


if __name__ == "__main__":
    main()
