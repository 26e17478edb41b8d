"""What all tests share: one Spark session and one empty warehouse folder per test.

SCD_TEST_SPARK chooses the session: "connect" (the default: a Spark Connect server shared by all test runs of
this machine, started by the first and stopped by the last) or "embedded". SCD_TEST_WRITES chooses how dimensions are
written: "replace" (the default) or "merge", as if this Delta had no replaceUsing (S32).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scd_pipeline.delta import capabilities
from scd_pipeline.delta.table import Table
from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark import session
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import Installation, find_installation
from scd_pipeline_tests import postgresql, servers, shards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PROBE, STORED_CAPABILITIES = capabilities.probe, capabilities.load_capabilities

SHARED_BY_ALL_FILES = ("facts", "functional")
"""Folders of tests whose files share fixtures that are slow to create."""


NEED_SPARK = {"spark", "remote", "installation"}


def _needs_spark(item: pytest.Item) -> bool:
    """Return whether a test uses a session, by itself or as the engine's side of a text table."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("side") == "engine" or not NEED_SPARK.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need Spark and those of the current shard; group tests that share slow fixtures."""
    shards.mark_shard(items, _shard(config))
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("xdist_group") is None:
            folder = item.path.parent
            together = folder if folder.name in SHARED_BY_ALL_FILES else item.path
            item.add_marker(pytest.mark.xdist_group(together.stem))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow-shard",
        type=int,
        choices=range(shards.SHARDS),
        help="the shard of the slow tests that has the marker in_shard [the one of the commit]",
    )


def _shard(config: pytest.Config) -> int:
    chosen = config.getoption("--slow-shard")
    return shards.current_shard(shards.current_commit()) if chosen is None else int(chosen)


def pytest_report_header(config: pytest.Config) -> str:
    shard = _shard(config)
    slow = f"slow tests: the marker in_shard selects shard {shard} of {shards.SHARDS}; again with --slow-shard={shard}"
    return f"{slow}\n{postgresql.report()}"


class GroupsInIds:
    """A plugin that adds the group of each test to its id, by which pytest-xdist distributes the tests.

    pytest-xdist 3.8 writes it to `_nodeid`, which pytest has ignored since 9.2: groups had no effect.
    """

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            grouped = getattr(item, "_nodeid", item.nodeid)
            if grouped != item.nodeid:
                item._id = type(item.id).parse(grouped)


def pytest_configure(config: pytest.Config) -> None:
    os.environ["SCD_SERVER"] = "off"  # a command of a test leaves no server behind
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(GroupsInIds())


@pytest.fixture(scope="session")
def installation() -> Installation:
    """The Java and the jars of the set-up."""
    try:
        return find_installation(Environment.from_env())
    except SetupError as error:
        pytest.exit(f"{error}", returncode=error.exit_code)


def spark_kind() -> str:
    """Return which session the tests use: `connect` or `embedded`."""
    kind = os.environ.get("SCD_TEST_SPARK", "connect")
    if kind not in ("connect", "embedded"):
        pytest.exit(f"SCD_TEST_SPARK is {kind!r}; expected 'embedded' or 'connect'", returncode=5)
    return kind


@pytest.fixture(scope="session")
def spark(installation: Installation) -> Iterator[SparkSession]:
    """The Spark session of all tests."""
    yield from _embedded(installation) if spark_kind() == "embedded" else _connected(installation)


@pytest.fixture(scope="session")
def remote(spark: SparkSession, installation: Installation) -> str:
    """The address of the tests' Spark Connect server; empty where Spark is embedded in this process."""
    assert spark
    if spark_kind() == "embedded":
        return ""
    running = servers.find_server(servers.folder(), servers.settings(installation))
    assert running is not None
    return running.url


@pytest.fixture(scope="session", autouse=True)
def probed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Probe the capabilities of a server's Delta once in a run, not for each of its warehouses.

    The table that stores the answer is written by the first warehouse and copied into each later one, which saves two
    commits per test. A test of that table needs the fixture `each_warehouse_probes`.
    """
    answers: dict[str, capabilities.Capabilities] = {}
    template = tmp_path_factory.mktemp("capabilities") / capabilities.TABLE_NAME
    merges = os.environ.get("SCD_TEST_WRITES", "replace") == "merge"

    def probe(spark: SparkSession, server: str, scratch_path: str) -> capabilities.Capabilities:
        if server not in answers:
            answer = PROBE(spark, server, scratch_path)
            answers[server] = replace(answer, replaces=False, merges=True) if merges else answer
        return answers[server]

    def copied(spark: SparkSession, memory: Table, scratch_path: str, **more: str) -> capabilities.Capabilities:
        folder = Path(memory.path or "")
        answer = answers.get(capabilities.server_name(spark))
        if not folder.is_absolute() or not template.exists() or answer is None or more.get("engine", "") != "":
            stored = STORED_CAPABILITIES(spark, memory, scratch_path, **more)
            if folder.is_absolute() and not template.exists():
                shutil.copytree(folder, template)
            return stored
        if not folder.exists():
            shutil.copytree(template, folder)
        return answer

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(capabilities, "probe", probe)
        patched.setattr("scd_pipeline.delta.warehouse.load_capabilities", copied)
        yield


@pytest.fixture
def each_warehouse_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each warehouse of the test store its server's capabilities by itself, as outside of tests."""
    monkeypatch.setattr("scd_pipeline.delta.warehouse.load_capabilities", STORED_CAPABILITIES)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """An empty warehouse folder."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return folder


def _embedded(installation: Installation) -> Iterator[SparkSession]:
    conf = spark_conf(jars=installation.jars, cores=2, shuffle_partitions=2, extra=servers.INTERPRETED)
    spark = session.local_spark(conf, java_home=installation.java_home)
    yield spark
    spark.stop()


def _connected(installation: Installation) -> Iterator[SparkSession]:
    conf = servers.settings(installation)
    with servers.shared_spark(servers.folder(), conf, java_home=installation.java_home) as spark:
        yield spark
