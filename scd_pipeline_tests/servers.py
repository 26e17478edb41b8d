"""The Connect server of the tests: `python -m scd_pipeline_tests.servers start` keeps one warm, `stop` ends it.

Without `start` the first test run starts it and the last one stops it.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import INTERPRETED, spark_conf
from scd_pipeline.spark.installation import Installation, find_installation
from scd_pipeline.spark.server import start_server, stop_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The heap and the metaspace do not have to grow, which costs twenty full collections in the first minutes.
_MEMORY = "-Xms3g -Xmn2g -XX:MetaspaceSize=512m"
# Java inlines less: a fifth of a run's processor time was spent on compiling, and more of it makes loads of a few rows
# no faster.
_COMPILER = "-XX:FreqInlineSize=100 -XX:MaxInlineLevel=6 -XX:InlineSmallCode=1000"
# Partitions of a shuffle, and of the rows or files that are read.
_PARTITIONS = ("spark.sql.shuffle.partitions", "spark.sql.leafNodeDefaultParallelism")


def folder() -> Path:
    """Return the folder of the tests' servers."""
    return Environment.from_env().cache_folder / "servers" / "tests"


def settings(installation: Installation) -> dict[str, str]:
    """Return the settings of the tests' server: for loads of a few rows, see `several_partitions`."""
    conf = spark_conf(
        jars=installation.jars,
        cores=2,
        driver_memory="4g",
        extra={**INTERPRETED, **dict.fromkeys(_PARTITIONS, "1")},
    )
    conf["spark.driver.extraJavaOptions"] += f" {_MEMORY} {_COMPILER}"
    return conf


@contextlib.contextmanager
def several_partitions(spark: SparkSession) -> Iterator[None]:
    """Read and shuffle rows in two partitions: for loads of many entities, which one partition would not test."""
    before = {name: spark.conf.get(name, None) for name in _PARTITIONS}
    for name in _PARTITIONS:
        spark.conf.set(name, "2")
    try:
        yield
    finally:
        for name, number in before.items():
            spark.conf.set(name, number) if number else spark.conf.unset(name)


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    """Wait until a server answers at the address.

    Raises:
        AssertionError: the process ended, or the time is over.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise AssertionError(f"nothing answers at {url}")


def main(arguments: list[str]) -> int:
    """Start or stop; return the exit code."""
    if arguments == ["start"]:
        installation = find_installation(Environment.from_env())
        server = start_server(folder(), settings(installation), java_home=installation.java_home)
        print(f"{server.url} (log: {server.log})")
        return 0
    if arguments == ["stop"]:
        installation = find_installation(Environment.from_env())
        print(f"servers stopped: {stop_server(folder(), settings(installation))}")
        return 0
    print("usage: python -m scd_pipeline_tests.servers start|stop", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
