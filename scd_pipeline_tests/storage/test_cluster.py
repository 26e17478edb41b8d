"""A standalone cluster of Spark, with a Connect server in front of it: loads survive the loss of executors."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load import run
from scd_pipeline.load.retry import Retry
from scd_pipeline.operations import check
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.launch import launch_environment, spark_home
from scd_pipeline_tests import servers
from scd_pipeline_tests.conftest import spark_kind
from scd_pipeline_tests.facts.players import PLAY, PLAYER, PLAYS, W, players, plays
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, history, snapshot
from scd_pipeline_tests.text_tables import assert_same_rows

pytestmark = [
    pytest.mark.slow(90, together="cluster"),
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


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running master or worker; `work` is the folder in which a worker has the logs of its executors."""

    process: subprocess.Popen[bytes]
    log: Path
    work: Path

    def stored_blocks(self) -> int:
        """Return the number of blocks of computed rows that the executors of a worker have stored so far."""
        texts = [log.read_text(errors="replace") for log in self.work.glob("app-*/*/stderr")]
        return sum(len(re.findall(r"Block rdd_\d+_\d+ stored", text)) for text in texts)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A session at the Connect server of a cluster, and the workers of the cluster."""

    spark: SparkSession
    workers: list[Daemon]


@contextlib.contextmanager
def daemon(folder: Path, java_home: Path | None, *command: str) -> Iterator[Daemon]:
    """Run a daemon of a standalone cluster."""
    log = folder / f"{command[0]}_{len(list(folder.iterdir()))}.log"
    work = log.with_suffix(".work")
    environment = launch_environment(os.environ, java_home) | {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(work),
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(spark_home() / "bin" / "spark-class"), *command], stdout=output, stderr=output, env=environment
        )
    try:
        yield Daemon(process, log, work)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # a worker whose executors were killed may wait for them
            process.kill()
            process.wait()


def logged(daemon: Daemon, pattern: str) -> str:
    """Wait until a daemon has logged a line of this pattern, and return its first group."""
    for _ in range(600):
        if match := re.search(pattern, daemon.log.read_text()):
            return match[1]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern!r} in {daemon.log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def cluster(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Connect server whose executors are processes of two workers."""
    folder, java_home = tmp_path_factory.mktemp("cluster"), installation.java_home
    with contextlib.ExitStack() as running:
        at_any_port = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = running.enter_context(daemon(folder, java_home, MASTER, *at_any_port))
        url = logged(master, r"Starting Spark master at (spark://\S+)")
        workers = []
        for _ in range(WORKERS):
            resources = ("--cores", "1", "--memory", "1g")
            workers.append(running.enter_context(daemon(folder, java_home, WORKER, *at_any_port, *resources, url)))
            logged(workers[-1], r"(Successfully registered with master)")
        conf = servers.settings(installation) | SETTINGS | {"spark.master": url}
        spark = running.enter_context(servers.shared_spark(folder / "server", conf, java_home=java_home))
        yield Cluster(spark, workers)


def executors(cluster: Cluster) -> list[int]:
    """Return the processes of the executors, which its workers have started."""
    workers = ",".join(str(worker.process.pid) for worker in cluster.workers)
    listed = subprocess.run(
        ["pgrep", "-P", workers, "-f", "CoarseGrainedExecutorBackend"], capture_output=True, text=True
    )
    return [int(pid) for pid in listed.stdout.split()]


@contextlib.contextmanager
def killed_executors(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    """Kill the executors before a step of the load in the block, with all rows that they have computed."""
    original = getattr(run, step)

    def after_the_loss(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(run, step, original)
        killed = executors(cluster)
        assert len(killed) == WORKERS
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        return original(*args, **more)

    monkeypatch.setattr(run, step, after_the_loss)
    yield
    assert getattr(run, step) is original, f"no load has come to {step}"


def test_a_load_survives_the_loss_of_the_executors(
    cluster: Cluster, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, retry = Warehouse(cluster.spark, warehouse), Retry(sleep=lambda seconds: None)
    run.load(opened, CUSTOMER, [snapshot(1, {"a": "Rome"})])
    for month, step, city in ((2, "commit_log", "Oslo"), (3, "commit_table", "Bonn"), (4, "record_from", "Kiel")):
        messages: list[str] = []
        with killed_executors(cluster, monkeypatch, step):
            run.load(opened, CUSTOMER, [feed(step, ("a", month, city))], retry=retry, progress=messages.append)
        assert any("computed rows lost with their executor, retrying" in message for message in messages), step
    assert_same_rows(
        """
        | id | city | from       | to         | version |
        | a  | Rome | 2024-01-01 | 2024-02-01 | 1       |
        | a  | Oslo | 2024-02-01 | 2024-03-01 | 2       |
        | a  | Bonn | 2024-03-01 | 2024-04-01 | 3       |
        | a  | Kiel | 2024-04-01 |            | 4       |
        """,
        history(opened),
    )
    assert [str(result) for result in check.check_table(opened, CUSTOMER) if not result.passed] == []


@contextlib.contextmanager
def killed_worker(workers: list[Daemon]) -> Iterator[list[Daemon]]:
    """Kill the first worker whose executor stores computed rows from now on; yield the list of killed workers."""
    blocks = [worker.stored_blocks() for worker in workers]
    killed: list[Daemon] = []
    ended = threading.Event()

    def watch() -> None:
        while not killed and not ended.wait(0.02):
            for worker, before in zip(workers, blocks, strict=True):
                if not killed and worker.stored_blocks() > before:
                    worker.process.kill()
                    killed.append(worker)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def test_a_fact_load_survives_the_loss_of_a_worker(cluster: Cluster, warehouse: Path) -> None:
    """It is killed in the middle of the load, and its executor ends with all rows that it has computed.

    Spark repeats the tasks that have ended with it. If a later query needs a lost checkpoint, the load is retried.
    This is the last test of the module: the cluster has one worker less.
    """
    opened, messages = Warehouse(cluster.spark, warehouse), list[str]()
    run.load(opened, PLAYER, [players("1", W)])
    with killed_worker(cluster.workers) as killed:
        result = run.load(opened, PLAY, [plays("1", PLAYS)], progress=messages.append)
    assert len(killed) == 1, messages
    assert killed[0].process.poll() == -signal.SIGKILL
    assert result.row_counts == {"open": 3}
    assert_same_rows(
        """
        | play | coins | player_tier | partner_tier |
        | 1    | 1     | Bronze      | NULL         |
        | 2    | 2     | Bronze      | Bronze       |
        | 3    | 3     | Silver      | NULL         |
        """,
        queries.with_dimensions(opened, PLAY).toArrow().to_pylist(),
        ("play", "coins", "player_tier", "partner_tier"),
    )
    assert [str(result) for result in check.check_table(opened, PLAY) if not result.passed] == []
