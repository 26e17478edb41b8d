"""The Connect server of the tests: `python -m scd_pipeline_tests.servers start` keeps one warm, `stop` ends it.

Without `start` the first test run starts it and the last one stops it. `start` leaves a process that uses the server
until it is stopped, so that no test run is its last user.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scd_pipeline.environment import Environment
from scd_pipeline.spark import server
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import Installation, find_installation
from scd_pipeline.spark.session import connect_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.buffer.pageSize": "1m",
}
"""Settings of long-lived sessions on tables of few rows: no generated code, each query planned once.

In a warm session a small load takes a third of the processor time.
"""
LOCAL_FILES = {
    "spark.local.dir": tempfile.gettempdir(),
    # A file of few defaults instead of the 500 of Hadoop, for the reason of `java.HADOOP_DEFAULTS`.
    "spark.driver.extraClassPath": str(Path(__file__).with_name("hadoop")),
    # Hadoop starts processes to read links and to set permissions: fewest without checksum files, and with Delta's own
    # way to commit to local files from one process.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    # Delta caches the state of each table for an hour. Some thousand tables fill the heap.
    "spark.databricks.delta.delta.log.cacheRetentionMinutes": "5m",
}
"""Settings with which a single process reads and writes the files of a local folder at less cost."""
# The heap and the metaspace do not have to grow, which costs twenty full collections in the first minutes.
_MEMORY = "-Xms3g -Xmn2g -XX:MetaspaceSize=512m"
# Java inlines less: a fifth of a run's processor time was spent on compiling, and more of it makes loads of a few rows
# no faster. It optimizes only what is called often. The run is too short for a search for code that is not called any
# more.
_COMPILER = (
    "-XX:FreqInlineSize=100 -XX:MaxInlineLevel=6 -XX:InlineSmallCode=1000 -XX:-MethodFlushing "
    "-XX:Tier4InvocationThreshold=15000 -XX:Tier4MinInvocationThreshold=2000 -XX:Tier4CompileThreshold=40000 "
    "-XX:Tier4BackEdgeThreshold=100000"
)
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
        extra={**INTERPRETED, **LOCAL_FILES, **dict.fromkeys(_PARTITIONS, "1")},
    )
    conf["spark.driver.extraJavaOptions"] += f" {_MEMORY} {_COMPILER}"
    return conf


@contextlib.contextmanager
def connect_server(
    folder: Path, conf: Mapping[str, str], *, java_home: Path | None, wait_seconds: float = 120
) -> Iterator[str]:
    """Yield the URL of the folder's server with these settings. Start a server if none runs; the last user stops it."""
    state = server.state_folder(folder, conf)
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop_if_unused, state)
        lease = server.lease_server(state, conf, java_home=java_home, wait_seconds=wait_seconds)
        stack.callback(lease.release)
        yield lease.server.url


@contextlib.contextmanager
def shared_spark(
    folder: Path, conf: Mapping[str, str], *, java_home: Path | None, wait_seconds: float = 120
) -> Iterator[SparkSession]:
    """Yield a session at the server of `connect_server`, and stop it before the server is stopped."""
    with connect_server(folder, conf, java_home=java_home, wait_seconds=wait_seconds) as url:
        spark = connect_spark(url)
        try:
            yield spark
        finally:
            spark.stop()


def find_server(folder: Path, conf: Mapping[str, str] | None = None) -> server.Server | None:
    """Return the folder's running server, or None; with settings, only a server with these settings."""
    return next((running for state in _states(folder, conf) if (running := server.running_server(state))), None)


def stop_servers(folder: Path, conf: Mapping[str, str] | None = None) -> int:
    """Stop the folder's servers, also those in use; with settings, only a server with these. Return how many ran."""
    return sum(server.stop_server(state) for state in _states(folder, conf))


def _states(folder: Path, conf: Mapping[str, str] | None) -> list[Path]:
    return [server.state_folder(folder, conf)] if conf is not None else sorted(folder.glob("*/"))


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


def start() -> int:
    """Start a process that uses the server, wait until it runs, and return the exit code."""
    command = [sys.executable, "-m", "scd_pipeline_tests.servers", "use"]
    user = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert user.stdout is not None
    print(url := user.stdout.readline().strip())
    return 0 if url else user.wait()


def use() -> int:
    """Use the server until it is stopped; print its address once it runs."""
    installation = find_installation(Environment.from_env())
    conf = settings(installation)
    with connect_server(folder(), conf, java_home=installation.java_home) as url:
        print(url, flush=True)
        while find_server(folder(), conf) is not None:
            time.sleep(1)
    return 0


def main(arguments: list[str]) -> int:
    """Start, use or stop; return the exit code."""
    if arguments == ["start"]:
        return start()
    if arguments == ["use"]:
        return use()
    if arguments == ["stop"]:
        installation = find_installation(Environment.from_env())
        print(f"servers stopped: {stop_servers(folder(), settings(installation))}")
        return 0
    print("usage: python -m scd_pipeline_tests.servers start|stop", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
