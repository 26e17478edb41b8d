"""Compare the start of an embedded Spark on two releases of Java: `python -m benchmarks.aot_cache JAVA_25`.

Each measured process starts Spark and loads a small dimension. Java 17 uses the class archive that the set-up has
written (JEP 350). Java 25 uses nothing, or an ahead-of-time cache (JEP 483, 514, 515) that an earlier process of the
same kind has written when it ended; its classes are on the class path, since Java caches none of other class loaders.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import adopt_orphans, measure
from scd_pipeline import Pipeline
from scd_pipeline.declaration import Dimension, Source
from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import find_installation
from scd_pipeline.spark.session import local_spark

_OPTIONS = "spark.driver.extraJavaOptions"
_WITH_PROFILES = "-XX:TieredStopAtLevel=4"
"""Java's second compiler, which the settings for short processes switch off, uses the profiles of the cache."""


def main() -> None:
    """Measure the variants in turn, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aot_cache", description=__doc__)
    parser.add_argument("java_25", help="the home of a Java 25")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        quick, full = (Path(folder, name) for name in ("quick.aot", "full.aot"))
        _start(arguments.java_25, f"-XX:AOTCacheOutput={quick}")
        _start(arguments.java_25, f"-XX:AOTCacheOutput={full} {_WITH_PROFILES}")
        variants = {
            "Java 17, class archive": ("", ""),
            "Java 25": (arguments.java_25, ""),
            "Java 25, AOT cache": (arguments.java_25, f"-XX:AOTCache={quick}"),
            "Java 25, AOT cache with profiles": (arguments.java_25, f"-XX:AOTCache={full} {_WITH_PROFILES}"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(arguments.rounds):
            for name, variant in variants.items():
                seconds[name].append(measure(lambda variant=variant: _start(*variant)).cpu_seconds)  # type: ignore[misc]
    base = statistics.median(next(iter(seconds.values())))
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name}: {median:.1f} s of processor time, {median / base:.2f} of the first")


def _start(java_home: str, options: str) -> None:
    environment = {**os.environ, "SCD_SERVER": "off", "JAVA_HOME": java_home}
    command = [sys.executable, "-c", "from benchmarks.aot_cache import load; load()", options]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def load() -> None:
    """Load a small dimension with the Java options of the first argument, which only the classes of files limit."""
    from pyspark import SparkContext

    installation, options = find_installation(Environment.from_env()), sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        conf = spark_conf(jars=installation.jars, warehouse=folder, quick=True)
        if options:
            conf["spark.driver.extraClassPath"] = conf.pop("spark.jars").replace(",", ":")
            conf[_OPTIONS] += f" {options}"
        spark = local_spark(conf, java_home=installation.java_home)
        java = SparkContext._gateway.proc  # type: ignore[union-attr]
        customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot={}))
        pipeline = Pipeline(Path(folder, "warehouse"), spark=spark)
        for day, city in (("2024-01-01", "Rome"), ("2024-02-01", "Oslo")):
            pipeline.load(customer, [{"id": "a", "city": city}], at=day)
        spark.stop()
        java.stdin.close()
        java.wait()


if __name__ == "__main__":
    main()
