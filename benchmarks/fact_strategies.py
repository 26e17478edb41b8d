"""Measure the strategies by which a load writes a fact: `python -m benchmarks.fact_strategies`.

Each case changes a share of the rows of a table: rows that are spread over the table, or those of whole days, of which
every twentieth is removed. In each round, each strategy writes the same changes to a copy of the same table, in turn
and in one warm session. All copies must then have the same rows. The result is the median of the processor seconds of
each strategy, and its ratio to that of the increments: other programs change the elapsed time more.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import measure
from benchmarks.session import collect_garbage, start_session
from scd_pipeline import Attribute, Dimension, Fact, Snapshot, Source
from scd_pipeline.declaration.fact import WriteStrategy
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.table import Table
from scd_pipeline.frames import checkpoint, with_broadcast
from scd_pipeline.history.actions import ACTION, OVERWRITE, REMOVE
from scd_pipeline.history.schema import dimension_schema
from scd_pipeline.load.write import RowChanges, write_changes
from scd_pipeline.load.write_plan import FactSizes, WritePlan

_CUSTOMER = Dimension("dim_customer", {"customer_id": "int"}, {"city": Attribute(2)}, Source("crm", snapshot={}))
SALE = Fact(
    "fct_sale",
    grain={"sale_id": "bigint"},
    event_time="sold_at",
    dimensions={"customer": _CUSTOMER},
    source=Source("till", snapshot=Snapshot(scope=("day",))),
    measures={"day": "int", "amount": "decimal(12,2)"},
).as_dimension()
_PROPERTIES = {"delta.enableDeletionVectors": "true"}
_DAYS = 100
_ORDER: tuple[WriteStrategy, ...] = ("increments", "scope", "whole")


@dataclass(frozen=True, slots=True)
class Case:
    """Changes of a table.

    Attributes:
        rows: The number of its rows.
        percent: The share of the rows that change.
        by_day: Whether they are all rows of some days, of which every twentieth is removed; otherwise spread rows.
    """

    rows: int
    percent: int
    by_day: bool

    @property
    def strategies(self) -> tuple[WriteStrategy, ...]:
        """The strategies: rows that are spread over all days are not replaced by day."""
        return tuple(name for name in _ORDER if self.by_day or name != "scope")


class _Changes(NamedTuple):
    rows: DataFrame
    changed: int
    removed: int


def main() -> None:
    """Measure all cases in turn until the time is over, and print a table of the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fact_strategies", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 4_000_000])
    parser.add_argument("--percents", type=int, nargs="+", default=[1, 10, 50, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=13, help="the time after which no case begins [13]")
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    cases = [
        Case(n, percent, by_day) for n in arguments.rows for percent in arguments.percents for by_day in (False, True)
    ]
    with tempfile.TemporaryDirectory() as name:
        spark = start_session(Path(name), cores=arguments.cores, memory="4g")
        seconds = compare(spark, Path(name), cases, arguments.rounds, 60 * arguments.minutes)
    print("\n".join(table_lines(seconds)))


def compare(
    spark: SparkSession, folder: Path, cases: list[Case], rounds: int, limit: float
) -> dict[Case, dict[WriteStrategy, list[float]]]:
    """Return the processor seconds of each round, by case and strategy; no case begins after `limit` seconds."""
    deadline = time.monotonic() + limit
    tables = {rows: _create(spark, folder / f"rows_{rows}", rows) for rows in {case.rows for case in cases}}
    seconds: dict[Case, dict[WriteStrategy, list[float]]] = defaultdict(lambda: defaultdict(list))
    for strategy in _ORDER:  # the first writes compile
        _write(spark, tables[cases[0].rows], folder / "copy", cases[0], strategy)
    for _ in range(rounds):
        for case in cases:
            if time.monotonic() > deadline:
                return seconds
            written = {}
            for strategy in case.strategies:
                spent, written[strategy] = _write(spark, tables[case.rows], folder / "copy", case, strategy)
                seconds[case][strategy].append(spent)
            if len(set(written.values())) > 1:
                raise AssertionError(f"{case}: the rows differ: {written}")
    return seconds


def table_lines(seconds: dict[Case, dict[WriteStrategy, list[float]]]) -> list[str]:
    """Return the Markdown table of the medians, without cases that were not measured."""
    lines = [
        "| rows | changed rows | `increments`, s | `scope` | `whole` |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for case, by_strategy in seconds.items():
        medians = {strategy: statistics.median(each) for strategy, each in by_strategy.items()}
        ratios = [f"{medians[name] / medians['increments']:.1f}" if name in medians else "" for name in _ORDER[1:]]
        kind = f"all rows of {case.percent} of {_DAYS} days" if case.by_day else f"{case.percent}% of the rows"
        lines.append(f"| {case.rows:,} | {kind} | {medians['increments']:.1f} | {' | '.join(ratios)} |")
    return lines


def _write(spark: SparkSession, table: Table, copy: Path, case: Case, strategy: WriteStrategy) -> tuple[float, Row]:
    """Write the changes to a copy of the table; return the processor seconds, and the number and a hash of its rows."""
    assert table.path is not None
    shutil.copytree(table.path, copy)
    try:
        target, last, changed = Table(spark, table.name, str(copy)), table.last_commit(), _changes(spark, case)
        sizes = FactSizes(case.rows, 0, changed.changed - changed.removed, changed.removed)
        rows = with_broadcast(changed.rows, changed.changed, len(dimension_schema(SALE)))
        actions = frozenset({OVERWRITE, REMOVE} if changed.removed else {OVERWRITE})
        changes = RowChanges(target.read(last.newest), rows, actions, SALE)
        plan = WritePlan(strategy, ("day",), sizes)
        spent = measure(lambda: write_changes(target, changes, plan, last.next(), _PROPERTIES), interval=5).cpu_seconds
        hashes = F.xxhash64(*target.columns()).cast("decimal(38,0)")
        return spent, target.read().agg(F.count("*"), F.sum(hashes)).collect()[0]
    finally:
        shutil.rmtree(copy)
        collect_garbage(spark)


def _create(spark: SparkSession, path: Path, rows: int) -> Table:
    table = Table(spark, SALE.name, str(path))
    table.create(dimension_schema(SALE), _PROPERTIES, "")
    table.append(_sales(spark, rows, amount=0), PipelineCommit(SALE.name, 0).next())
    return table


def _changes(spark: SparkSession, case: Case) -> _Changes:
    """Return the rows of a case with their row action, computed."""
    is_changed = F.col("day") < case.percent if case.by_day else F.col("sale_id") % 100 < case.percent
    is_removed = F.lit(case.by_day) & (F.col("sale_id") % 20 == 0)
    action = F.when(is_removed, REMOVE).otherwise(OVERWRITE)
    rows = checkpoint(_sales(spark, case.rows, amount=1).where(is_changed).withColumn(ACTION, action))
    return _Changes(rows, rows.count(), rows.where(F.col(ACTION) == REMOVE).count())


def _sales(spark: SparkSession, rows: int, *, amount: int) -> DataFrame:
    """Return sales in order of their time, with the columns of the table of the fact."""
    number = F.col("id")
    values = {
        SALE.surrogate_key: F.xxhash64(number),
        "sale_id": number,
        "sold_at": F.timestamp_seconds(1_700_000_000 + number),
        "day": F.floor(number * _DAYS / rows),
        "customer_id": number % 1000,
        "customer_key": F.xxhash64(number % 1000),
        "amount": number % 997 + amount,
        "change_source": F.lit("till"),
        "load_run_id": F.lit("5f0c2c1e"),
        "last_updated": F.timestamp_seconds(F.lit(1_700_000_000 + rows)),
    }
    columns = [values.get(name, F.lit(None)).cast(ddl).alias(name) for name, ddl, _ in dimension_schema(SALE)]
    return spark.range(rows).select(*columns)


if __name__ == "__main__":
    main()
