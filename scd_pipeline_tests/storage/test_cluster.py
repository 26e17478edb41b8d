"""A standalone cluster of Spark, with a Connect server in front of it: loads survive the loss of executors."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load import run
from scd_pipeline.load.retry import Retry
from scd_pipeline.operations import check
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.launch import launch_environment, spark_home
from scd_pipeline_tests import servers
from scd_pipeline_tests.conftest import spark_kind
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, history, snapshot
from scd_pipeline_tests.text_tables import assert_same_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        spark_kind() == "embedded",
        reason="a process with a session of Connect cannot have an embedded Spark for the other tests",
    ),
]
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
WORKERS = 2
SETTINGS = {
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.leafNodeDefaultParallelism": "2",
}


@contextlib.contextmanager
def daemon(folder: Path, java_home: Path | None, *command: str) -> Iterator[Path]:
    """Run a daemon of a standalone cluster, and yield its log."""
    log = folder / f"{command[0]}_{len(list(folder.iterdir()))}.log"
    environment = launch_environment(os.environ, java_home) | {"SPARK_DAEMON_MEMORY": "256m"}
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(spark_home() / "bin" / "spark-class"), *command], stdout=output, stderr=output, env=environment
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # a worker whose executors were killed may wait for them
            process.kill()
            process.wait()


def logged(log: Path, pattern: str) -> str:
    """Wait until a daemon has logged a line of this pattern, and return its first group."""
    for _ in range(600):
        if match := re.search(pattern, log.read_text()):
            return match[1]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern!r} in {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def cluster(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of a Connect server whose executors are processes of two workers."""
    folder, java_home = tmp_path_factory.mktemp("cluster"), installation.java_home
    with contextlib.ExitStack() as running:
        at_any_port = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = running.enter_context(daemon(folder, java_home, MASTER, *at_any_port))
        url = logged(master, r"Starting Spark master at (spark://\S+)")
        for number in range(WORKERS):
            resources = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker {number}"))
            worker = running.enter_context(daemon(folder, java_home, WORKER, *at_any_port, *resources, url))
            logged(worker, r"(Successfully registered with master)")
        conf = servers.settings(installation) | SETTINGS | {"spark.master": url}
        yield running.enter_context(servers.shared_spark(folder / "server", conf, java_home=java_home))


def executors() -> list[int]:
    """Return the processes of the executors of all local workers."""
    listed = subprocess.run(
        ["pgrep", "-f", "CoarseGrainedExecutorBackend.*--worker-url"], capture_output=True, text=True
    )
    return [int(pid) for pid in listed.stdout.split()]


@pytest.mark.parametrize("step", ["commit_log", "commit_table", "record_from"])
def test_a_load_survives_the_loss_of_the_executors(
    cluster: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """They are killed before a step of the load, with all rows that they have computed."""
    opened, original = Warehouse(cluster, warehouse), getattr(run, step)
    run.load(opened, CUSTOMER, [snapshot(1, {"a": "Rome"})])

    def after_the_loss(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(run, step, original)
        killed = executors()
        assert len(killed) == WORKERS
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        return original(*args, **more)

    monkeypatch.setattr(run, step, after_the_loss)
    messages: list[str] = []
    retry = Retry(sleep=lambda seconds: None)
    run.load(opened, CUSTOMER, [feed("one", ("a", 2, "Oslo"))], retry=retry, progress=messages.append)
    assert any("computed rows lost with their executor, retrying" in message for message in messages)
    assert_same_rows(
        """
        | id | city | from       | to         | version |
        | a  | Rome | 2024-01-01 | 2024-02-01 | 1       |
        | a  | Oslo | 2024-02-01 |            | 2       |
        """,
        history(opened),
    )
    assert [str(result) for result in check.check_dimension(opened, CUSTOMER) if not result.passed] == []
