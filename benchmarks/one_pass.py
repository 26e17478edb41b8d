"""A backfill as one pass against single loads: `python benchmarks/one_pass.py`, warm, both in one run.

Prints the median seconds of loading one snapshot of the example, the seconds of loading all 55 at once, and the ratio.
Each is done once before, so that the code of both is compiled.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scd_pipeline import Delivery, Dimension, Warehouse
from scd_pipeline.declaration import load_dimension
from scd_pipeline.deliveries.discovery import select_deliveries
from scd_pipeline.environment import EXAMPLE, Environment
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline.spark import session
from scd_pipeline.spark.installation import find_installation

SINGLES = 5


def seconds(warehouse: Warehouse, dimension: Dimension, found: Sequence[Delivery]) -> float:
    """How long a load takes."""
    began = time.perf_counter()
    ingest_and_apply(warehouse, dimension, found).raise_if_rejected()
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print."""
    dimension = load_dimension(EXAMPLE / "dim_legislator.yaml")
    installed = find_installation(Environment.from_env())
    with tempfile.TemporaryDirectory() as folder:
        spark = session.local_spark(
            jars=installed.jars, java_home=installed.java_home, warehouse=Path(folder) / "spark"
        )
        found = select_deliveries(dimension, spark)

        def place(name: str) -> Warehouse:
            return Warehouse(spark, Path(folder) / name)

        seconds(place("warm"), dimension, found)
        one_by_one = place("single")
        times = [seconds(one_by_one, dimension, [delivery]) for delivery in found[: 2 * SINGLES]]
        median = statistics.median(times[SINGLES:])
        at_once = seconds(place("pass"), dimension, found)
        spark.stop()
    print(f"one snapshot {median:.1f} s, {len(found)} in one pass {at_once:.1f} s, ratio {at_once / median:.1f}")


if __name__ == "__main__":
    main()
