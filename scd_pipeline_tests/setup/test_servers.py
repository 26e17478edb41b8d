"""Spark Connect servers: reused, shared, stopped by the last user; errors contain the end of the log.

The server of these tests is a fake that starts at once. The fixture `spark` uses a real one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scd_pipeline.errors import SetupError
from scd_pipeline.spark import server
from scd_pipeline_tests.servers import connect_server, find_server, stop_servers

CONF = {"spark.master": "local[1]"}
OTHER = {"spark.master": "local[2]"}


@pytest.fixture
def servers(tmp_path: Path, mode: Path) -> Iterator[Path]:
    """A folder of servers, which are stopped after the test."""
    folder = tmp_path / "servers"
    yield folder
    stop_servers(folder)


@pytest.fixture
def started(servers: Path) -> Iterator[server.Server]:
    """A server that runs until the end of the test."""
    with connect_server(servers, CONF, java_home=None):
        running = find_server(servers, CONF)
        assert running is not None
        yield running


def test_a_server_runs_as_long_as_its_user(servers: Path) -> None:
    with connect_server(servers, CONF, java_home=None) as url:
        running = find_server(servers)
        assert running is not None
        assert running.url == url
        assert url == f"sc://127.0.0.1:{running.port}"
    assert find_server(servers) is None
    assert stop_servers(servers) == 0


def test_the_last_user_stops_the_server(servers: Path) -> None:
    with connect_server(servers, CONF, java_home=None) as url:
        with connect_server(servers, CONF, java_home=None) as same:
            assert same == url
        assert find_server(servers) is not None
    assert find_server(servers) is None


def test_a_server_is_stopped_after_a_failed_user(servers: Path) -> None:
    with pytest.raises(ZeroDivisionError), connect_server(servers, CONF, java_home=None):
        raise ZeroDivisionError
    assert find_server(servers) is None


def test_a_server_in_use_can_be_stopped(servers: Path, started: server.Server) -> None:
    with connect_server(servers, CONF, java_home=None) as url:
        assert url == started.url
    assert find_server(servers) == started
    assert stop_servers(servers) == 1
    assert find_server(servers) is None


def test_other_settings_have_another_server(servers: Path, started: server.Server) -> None:
    with connect_server(servers, OTHER, java_home=None) as url:
        assert url != started.url
        assert find_server(servers, CONF) == started
    assert find_server(servers, OTHER) is None
    assert find_server(servers) == started


def test_another_process_shares_the_server_until_it_is_killed(servers: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from scd_pipeline.spark import server\n"
        "from scd_pipeline_tests.servers import connect_server\n"
        "server.spark_home = lambda: Path(sys.argv[2])\n"
        f"with connect_server(Path(sys.argv[1]), {CONF!r}, java_home=None) as url:\n"
        "    print(url, flush=True); time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", program, str(servers), str(servers.parent / "spark")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        url = other.stdout.readline().strip()
        with connect_server(servers, CONF, java_home=None) as same:
            assert same == url
        assert find_server(servers) is not None, "the other process still uses it"
        other.kill()
    with connect_server(servers, CONF, java_home=None) as same:
        assert same == url
    assert find_server(servers) is None


def test_a_server_that_fails_shows_its_log(servers: Path, mode: Path) -> None:
    mode.write_text("fails")
    with pytest.raises(SetupError) as error, connect_server(servers, CONF, java_home=None):
        pass
    assert error.value.code == "SERVER_ENDED" and error.value.location.endswith("server.log")
    assert error.value.details == {"log": "one line of the log\nno such jar"}
    assert find_server(servers) is None


def test_a_server_that_does_not_answer_is_stopped(servers: Path, mode: Path) -> None:
    mode.write_text("mute")
    with pytest.raises(SetupError) as error, connect_server(servers, CONF, java_home=None, wait_seconds=1):
        pass
    assert error.value.code == "SERVER_TIMEOUT" and error.value.location.endswith("server.log")
    assert error.value.details["log"] == "one line of the log"
    assert find_server(servers) is None


def test_an_interrupted_start_leaves_no_server(servers: Path, mode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mode.write_text("mute")
    started: list[server.Server] = []

    def interrupt(running: server.Server, deadline: float) -> bool:
        started.append(running)
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "_wait_until_ready", interrupt)
    with pytest.raises(KeyboardInterrupt), connect_server(servers, CONF, java_home=None):
        pass
    assert not server.is_running(started[0])


def test_a_start_that_is_interrupted_before_its_state_is_stored_leaves_no_server(
    servers: Path, mode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[server.Server] = []

    def interrupt(state: Path, running: server.Server) -> None:
        started.append(running)
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "_write_state", interrupt)
    with pytest.raises(KeyboardInterrupt), connect_server(servers, CONF, java_home=None):
        pass
    assert not server.is_running(started[0])


def test_a_port_in_use_is_replaced_by_another_port(servers: Path, mode: Path) -> None:
    mode.write_text("port in use")
    with connect_server(servers, CONF, java_home=None) as url:
        running = find_server(servers)
        assert running is not None and running.url == url


def test_a_process_that_is_not_a_server_is_not_stopped(servers: Path, started: server.Server) -> None:
    (state,) = servers.glob("*/server.json")
    state_text = state.read_text()
    state.write_text(state_text.replace(str(started.pid), str(os.getpid())))
    assert find_server(servers) is None
    assert stop_servers(servers) == 0
    state.write_text(state_text)


def test_a_damaged_state_file_is_ignored(servers: Path, started: server.Server) -> None:
    (state,) = servers.glob("*/server.json")
    state_text = state.read_text()
    for damage in ("", "{", "[]", '{"pid": 1}'):
        state.write_text(damage)
        assert find_server(servers) is None
    state.write_text(state_text)
    assert find_server(servers) == started


def test_the_environment_of_the_server(
    servers: Path, mode: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere:1")
    monkeypatch.setenv("SPARK_HOME", "/elsewhere")
    with connect_server(servers, CONF, java_home=tmp_path):
        environ = dict(line.split("=", 1) for line in mode.with_name("environ").read_text().splitlines())
    assert environ["JAVA_HOME"] == str(tmp_path)
    assert environ["PYSPARK_PYTHON"] == sys.executable
    assert environ["SPARK_HOME"].endswith("pyspark")
    assert "SPARK_REMOTE" not in environ


def test_sigterm_ends_a_server_even_if_its_starter_ignores_sigterm(servers: Path) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with connect_server(servers, CONF, java_home=None):
            running = find_server(servers, CONF)
            assert running is not None
            os.kill(running.pid, signal.SIGTERM)
            deadline = time.monotonic() + 60
            while find_server(servers, CONF) is not None and time.monotonic() < deadline:
                time.sleep(0.05)
            assert find_server(servers, CONF) is None
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_server_is_started_without_code_of_its_starter_in_the_new_process(tmp_path: Path) -> None:
    """The threads of gRPC do not exist in a child of a fork, which may abort before it starts the server."""
    program = (
        "import os, pathlib; from scd_pipeline.spark.server import start_detached; "
        "os.register_at_fork(after_in_child=os.abort); "
        f"start_detached(['true'], {{'PATH': os.environ['PATH']}}, pathlib.Path({str(tmp_path / 'log')!r}))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
