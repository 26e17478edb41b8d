"""Compare the start of an embedded Spark on two releases of Java: `python -m benchmarks.aot_cache JAVA_25`.

Each measured process starts Spark, and loads and queries a small dimension. Java 17 uses the class archive that the
set-up has written (JEP 350). Java 25 uses nothing, or an ahead-of-time cache (JEP 483, 514, 515) of an earlier process
of the same kind, which wrote it when it ended; its classes are on the class path, since Java caches no classes of other
loaders.
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
from scd_pipeline.cli.class_archive import load_and_query
from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import find_installation

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
        print(f"size of the AOT cache: {quick.stat().st_size / 1e6:.0f} MB")
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
    """Load and query a small dimension, with the Java options of the first argument."""
    installation, options = find_installation(Environment.from_env()), sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        conf = spark_conf(jars=installation.jars, warehouse=folder, quick=True)
        if options:
            conf["spark.driver.extraClassPath"] = conf.pop("spark.jars").replace(",", ":")
            conf[_OPTIONS] += f" {options}"
        load_and_query(conf, installation.java_home, Path(folder, "warehouse"))


if __name__ == "__main__":
    main()
