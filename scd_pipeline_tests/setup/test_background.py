"""The Spark Connect server that commands start in the background: found, shared, replaced, ended when unused.

The server of the quick tests is a fake that starts at once, in processes of its own. The slow tests run `scd`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scd_pipeline.cli import dev
from scd_pipeline.cli.context import Settings
from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark import background, server, session
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.java import Java

USER = """
import sys, time
from pathlib import Path
from scd_pipeline.environment import Environment
from scd_pipeline.spark import background, server
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.java import Java
server.spark_home = lambda: Path(sys.argv[1])
installation = Installation(Java(Path("java"), 17, "PATH"), Path(sys.argv[2]), (Path(sys.argv[3]),))
lease = background.lease(Environment.from_env(), installation)
print(lease.server.pid, lease.is_new, flush=True)
time.sleep(float(sys.argv[4]))
"""

COMMAND = """
import sys
from pathlib import Path
from scd_pipeline.cli.context import Settings
from scd_pipeline.environment import Environment
from scd_pipeline.spark import loopback, server, session
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.java import Java
server.spark_home = lambda: Path(sys.argv[1])
installation = Installation(Java(Path("java"), 17, "PATH"), Path(sys.argv[2]), (Path(sys.argv[3]),))
loopback._ANSWER_SECONDS = 2
session.find_installation = lambda environment: installation
session.local_spark = lambda *arguments, **options: session._leave_connect_mode() or "embedded"
print(Settings.resolve({}, Environment.from_env())._open_spark(quick=True))
"""


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Java and jars of the fake server."""
    jar = tmp_path / "delta.jar"
    jar.touch()
    return Installation(Java(Path("java"), 17, "PATH"), tmp_path / "java", (jar,))


@pytest.fixture
def environment(tmp_path: Path, mode: Path) -> Iterator[Environment]:
    """An environment whose servers end after the test."""
    environment = Environment.from_env({**os.environ, "SCD_HOME": str(tmp_path / "home")})
    yield environment
    folder = environment.cache_folder / "servers" / f"user-{os.getuid()}"
    if folder.is_dir():
        folder.chmod(0o700)
        background.stop_servers(environment)


@pytest.fixture
def user(environment: Environment, installation: Installation, mode: Path) -> Callable[[float], subprocess.Popen[str]]:
    """A function that starts a process which uses the server for some seconds."""

    def start(seconds: float) -> subprocess.Popen[str]:
        arguments = [str(mode.parent), str(installation.java_home), str(installation.jars[0]), str(seconds)]
        command = [sys.executable, "-c", USER, *arguments]
        return subprocess.Popen(command, env=dict(environment.variables), stdout=subprocess.PIPE, text=True)

    return start


def use(environment: Environment, installation: Installation) -> server.Lease:
    """Use the server for a moment, as a command does."""
    lease = background.lease(environment, installation)
    lease.release()
    return lease


def states(environment: Environment) -> list[Path]:
    return background._states(background._host_folder(environment))


def test_the_first_command_starts_the_server_and_the_next_one_uses_it(
    environment: Environment, installation: Installation
) -> None:
    first, second = use(environment, installation), use(environment, installation)
    assert (first.is_new, second.is_new, second.server) == (True, False, first.server)
    (running,) = background.running_servers(environment)
    assert running.server == first.server and running.idle_seconds > 0
    lease = background.lease(environment, installation)
    assert [each.idle_seconds for each in background.running_servers(environment)] == [0]
    lease.release()
    assert background.stop_servers(environment) == 1
    assert background.running_servers(environment) == [] and background.stop_servers(environment) == 0


def test_only_the_user_can_read_the_token(environment: Environment, installation: Installation, mode: Path) -> None:
    """It is in a file, and in the environment of the server, which only its user can read, not in its command line."""
    lease = use(environment, installation)
    (state,) = states(environment)
    assert len(lease.server.token) == 64 and lease.server.token in (state / "server.json").read_text()
    assert (state / "server.json").stat().st_mode & 0o777 == 0o600
    assert [folder.stat().st_mode & 0o777 for folder in (state.parent, state.parent.parent)] == [0o700, 0o700]
    assert f"SPARK_CONNECT_AUTHENTICATE_TOKEN={lease.server.token}" in mode.with_name("environ").read_text()
    ps = ["ps", "-ww", "-p", str(lease.server.pid), "-o", "command="]
    command = subprocess.run(ps, capture_output=True, text=True, check=True).stdout
    assert "spark.connect.grpc.binding.address=127.0.0.1" in command and lease.server.token not in command
    assert "spark.authenticate=true" in command
    assert lease.server.token not in repr(lease)


@pytest.mark.parametrize("kind", ["group", "link", "file"])
def test_a_folder_that_others_can_access_is_not_used(
    environment: Environment, installation: Installation, tmp_path: Path, kind: str
) -> None:
    folder = environment.cache_folder / "servers" / f"user-{os.getuid()}"
    folder.parent.mkdir(parents=True)
    if kind == "group":
        folder.mkdir()
        folder.chmod(0o750)
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.touch()
    with pytest.raises(SetupError) as error:
        use(environment, installation)
    code = "CACHE_NOT_WRITABLE" if kind == "file" else "SERVER_FOLDER_SHARED"
    assert (error.value.code, error.value.location) == (code, str(folder))
    if kind != "group":
        folder.unlink()


def test_a_state_file_of_another_user_is_ignored(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(environment, installation)
    (state,) = states(environment)
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: -1)
        assert server.running_server(state) is None
    assert server.running_server(state) is not None


def test_a_killed_server_is_replaced(environment: Environment, installation: Installation) -> None:
    killed = use(environment, installation).server
    os.kill(killed.pid, signal.SIGKILL)
    while server.is_running(killed):
        time.sleep(0.05)
    lease = use(environment, installation)
    assert lease.is_new and lease.server.pid != killed.pid and lease.server.token != killed.token


def test_a_server_that_does_not_listen_any_more_is_replaced(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    unresponsive = use(environment, installation).server
    with monkeypatch.context() as patched:
        patched.setattr(server, "running_server", lambda state: None)
        lease = use(environment, installation)
    assert lease.is_new and not server.is_running(unresponsive)


def test_hosts_that_share_a_home_have_servers_of_their_own(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No host knows which processes another one has, so it does not touch their state."""
    lease = use(environment, installation)
    (state,) = states(environment)
    with monkeypatch.context() as patched:
        patched.setattr(background.platform, "node", lambda: "another")
        patched.setattr(server, "_process", lambda pid: (-1, ""))
        background.stop_unused_servers(environment)
        assert background.running_servers(environment) == [] and background.stop_servers(environment) == 0
    assert (state / "server.json").exists()
    assert [each.server for each in background.running_servers(environment)] == [lease.server]


def test_a_process_of_another_user_is_not_the_server(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = use(environment, installation).server
    owner = os.getuid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: owner + 1)
        assert not server.is_running(running)
    assert server.is_running(running)


def test_the_folder_of_an_ended_server_is_removed(
    environment: Environment, installation: Installation, tmp_path: Path
) -> None:
    lease = background.lease(environment, installation)
    (ended,) = states(environment)
    server.end_server(lease.server)
    other = Installation(installation.java, tmp_path / "java-2", installation.jars)
    use(environment, other)
    assert ended in states(environment) and len(states(environment)) == 2, "a process uses it"
    lease.release()
    background.stop_unused_servers(environment)
    assert states(environment) == []


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), OSError("no process can be started")])
def test_a_server_without_a_watch_does_not_remain(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch, reason: BaseException
) -> None:
    started: list[server.Server] = []

    def fail(state: Path) -> None:
        started.extend(each.server for each in background.running_servers(environment))
        raise reason

    monkeypatch.setattr(background, "_start_watch", fail)
    with pytest.raises(type(reason)):
        background.lease(environment, installation)
    assert [server.is_running(each) for each in started] == [False]


def test_the_watch_ends_a_server_that_does_not_accept_connections(
    environment: Environment, installation: Installation, mode: Path
) -> None:
    mode.write_text("deaf")
    deaf = use(environment, installation).server
    (state,) = states(environment)
    assert background.running_servers(environment) == [] and server.is_running(deaf)
    background.watch(state, os.open(state, os.O_RDONLY), idle_seconds=0.2, poll_seconds=0.1)
    assert not server.is_running(deaf)


@pytest.mark.parametrize(
    "change", ["jars", "java", "AWS_PROFILE", "_JAVA_OPTIONS", "https_proxy", "KRB5_CONFIG", "HOME", "file", "settings"]
)
def test_an_outdated_server_is_replaced(
    environment: Environment,
    installation: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    file = tmp_path / "conf" / "core-site.xml"
    file.parent.mkdir()
    file.touch()
    environment = Environment.from_env({**environment.variables, "SPARK_CONF_DIR": str(file.parent)})
    outdated = use(environment, installation).server
    jars, java_home, variables = installation.jars, installation.java_home, dict(environment.variables)
    if change == "jars":
        jars = (tmp_path / "delta-2.jar",)
        jars[0].touch()
    elif change == "java":
        java_home = tmp_path / "java-2"
    elif change == "file":
        os.utime(file, (0, 0))
    elif change == "settings":
        monkeypatch.setattr(background, "spark_conf", lambda **options: {"spark.master": "local[3]"})
    else:
        variables[change] = "another"
    lease = use(Environment.from_env(variables), Installation(installation.java, java_home, jars))
    assert lease.is_new
    assert [each.server for each in background.running_servers(environment)] == [lease.server]
    assert not server.is_running(outdated)


def test_an_outdated_server_in_use_runs_until_its_user_ends(
    environment: Environment, installation: Installation, tmp_path: Path
) -> None:
    lease = background.lease(environment, installation)
    other = use(environment, Installation(installation.java, tmp_path / "java-2", installation.jars))
    assert {each.server.pid for each in background.running_servers(environment)} == {lease.server.pid, other.server.pid}
    lease.release()
    background.stop_unused_servers(environment)
    assert background.running_servers(environment) == []


@pytest.mark.process
def test_two_first_commands_start_one_server(user: Callable[[float], subprocess.Popen[str]]) -> None:
    outputs = [process.communicate(timeout=60)[0].split() for process in [user(0), user(0)]]
    assert outputs[0][0] == outputs[1][0]
    assert sorted(output[1] for output in outputs) == ["False", "True"]


@pytest.mark.process
def test_an_unused_server_ends_after_a_while_and_a_used_one_does_not(
    environment: Environment, installation: Installation, user: Callable[[float], subprocess.Popen[str]]
) -> None:
    """Neither the process that started it nor the one that watches it must live for that; a killed user is none."""
    with user(60) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[0])
        (state,) = states(environment)
        with (state / "watch.lock").open() as lock, pytest.raises(BlockingIOError):
            background.fcntl.flock(lock, background.fcntl.LOCK_EX | background.fcntl.LOCK_NB)
        os.utime(state / "users.lock", (0, 0))  # as after a long time
        assert server.seconds_since_use(state) == 0
        process.kill()
    (running,) = background.running_servers(environment)
    assert running.server.pid == pid
    start = time.monotonic()
    background.watch(state, os.open(state, os.O_RDONLY), idle_seconds=1, poll_seconds=0.1)
    assert time.monotonic() - start > 0.5
    assert background.running_servers(environment) == [] and not server.is_running(running.server)


@pytest.mark.process
def test_the_process_that_watches_a_server_ends_with_it_and_a_killed_one_is_replaced(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def start(*arguments: object, **options: object) -> int:
        started.append(server.start_detached(*arguments, **options))  # type: ignore[arg-type]
        return started[-1]

    monkeypatch.setattr(background, "start_detached", start)
    use(environment, installation)
    use(environment, installation)
    assert len(started) == 1
    os.kill(started[0], signal.SIGKILL)
    while started[0] in _processes():
        time.sleep(0.05)
    use(environment, installation)
    assert len(started) == 2 and started[1] in _processes()
    os.kill(started[1], signal.SIGKILL)


def _processes() -> set[int]:
    """Return the processes that watch a server."""
    ps = ["ps", "-ww", "-eo", "pid=,stat=,command="]
    lines = subprocess.run(ps, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in lines if "scd_pipeline.spark.background" in line]
    return {int(pid) for pid, state, _ in rows if not state.startswith("Z")}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, True),
        ({"SCD_SERVER": ""}, True),
        ({"SCD_SERVER": "off"}, False),
        ({"SCD_SERVER": "OFF"}, False),
        ({"CI": "true"}, False),
        ({"CI": ""}, True),
        ({"TF_BUILD": "True"}, False),
        ({"JENKINS_URL": "https://h"}, False),
        ({"SPARK_REMOTE": "sc://h"}, False),
    ],
)
def test_where_commands_use_a_server_in_the_background(variables: dict[str, str], expected: bool) -> None:
    assert Environment.from_env(variables).has_background_server is expected


@pytest.mark.parametrize(
    ("variables", "remotes"),
    [
        ({}, ["background", ""]),
        ({"SCD_SERVER": "off"}, [""]),
        ({"CI": "1"}, [""]),
        ({"SCD_REMOTE": "sc://h"}, ["sc://h"]),
        ({"SCD_REMOTE": "background", "CI": "1"}, ["background"]),
    ],
)
def test_a_command_uses_an_embedded_spark_if_the_server_does_not_start(
    variables: dict[str, str],
    remotes: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It fails instead if a server is named."""
    used: list[str] = []

    def fail(remote: str, environment: Environment, **options: object) -> None:
        used.append(remote)
        raise SetupError("SERVER_ENDED", "server.log", log="no memory")

    monkeypatch.setattr(session, "open_spark", fail)
    with pytest.raises(SetupError), Settings.resolve({}, Environment.from_env(variables)).open():
        pass
    assert used == remotes
    assert ("an embedded Spark is used" in capsys.readouterr().err) == (len(remotes) == 2)


@pytest.mark.process
@pytest.mark.parametrize(
    ("is_used", "behaviour"),
    [
        (False, "works"),
        (True, "refuses"),
        pytest.param(False, "refuses", marks=pytest.mark.slow(5)),
        pytest.param(True, "works", marks=pytest.mark.slow(5)),
    ],
)
def test_a_failing_server_is_replaced_unless_it_is_used_and_then_spark_is_embedded(
    environment: Environment, installation: Installation, mode: Path, behaviour: str, is_used: bool
) -> None:
    """One that refuses calls, or that accepts connections and does not answer."""
    mode.write_text(behaviour)
    lease = background.lease(environment, installation)
    if not is_used:
        lease.release()
    variables = {name: value for name, value in environment.variables.items() if not name.startswith("SPARK_")}
    variables |= {"CI": "", "SCD_REMOTE": "", "SCD_SERVER": ""}
    arguments = [str(mode.parent), str(installation.java_home), str(installation.jars[0])]
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.stdout == "embedded\n", done.stderr
    assert "an embedded Spark is used" in done.stderr and "SERVER_FAILS" in done.stderr
    assert "one line of the log" in done.stderr
    assert [each.server for each in background.running_servers(environment)] == ([lease.server] if is_used else [])
    is_replaced = lease.server.token not in mode.with_name("environ").read_text()
    assert is_replaced is not is_used
    lease.release()


def test_a_process_that_cannot_be_started_is_an_error_of_the_setup(
    environment: Environment, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a command uses an embedded Spark."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SetupError, match="SERVER_ENDED"):
        background.lease(environment, installation)


@pytest.mark.parametrize(("variables", "left"), [({"SCD_SERVER": "off"}, 0), ({"SCD_SERVER": "", "CI": ""}, 1)])
def test_the_web_interface_uses_the_server(
    variables: dict[str, str],
    left: int,
    environment: Environment,
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where commands use none, the server ends with the interface."""
    monkeypatch.setattr(dev, "find_installation", lambda environment: installation)
    settings = Settings.resolve({}, Environment.from_env({**environment.variables, **variables}))
    with dev._spark(settings, lambda line: None) as address:
        assert address == "background"
        assert [each.idle_seconds for each in background.running_servers(environment)] == [0]
    assert len(background.running_servers(environment)) == left


# -- `scd` with a real server

CUSTOMERS = """
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "landing/customers_{date}.csv"}}
attributes: {city: 2}
"""
PIPELINE = """
from pathlib import Path
from scd_pipeline import Pipeline, read_dimension
with Pipeline("warehouse", remote="background") as pipeline:
    result = pipeline.load(read_dimension("customers.yaml"), Path("march.csv"), at="2024-03-01")
    print(len(result.results), pipeline.history("dim_customer").count())
"""


@dataclass(frozen=True)
class Shop:
    """A project in a folder, and an environment in which no server runs."""

    folder: Path
    environment: Environment

    def run(self, *command: str, folder: str = ".", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder of the project, or in one below it."""
        return subprocess.run(
            [sys.executable, *command],
            cwd=self.folder / folder,
            env={**self.environment.variables, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def scd(self, *arguments: str, folder: str = ".", **variables: str) -> tuple[str, str]:
        """Run `scd`, which must succeed. Return its output and its messages."""
        done = self.run("-m", "scd_pipeline", *arguments, folder=folder, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    @property
    def server(self) -> server.Server:
        """The only server."""
        (running,) = background.running_servers(self.environment)
        return running.server


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A project with the jars and the Java of the set-up."""
    installed, home = Environment.from_env().cache_folder, tmp_path / "home"
    home.mkdir()
    for name in ("jars", "java"):
        (home / name).symlink_to(installed / name)
    folder = tmp_path / "shop"
    for path in ("landing", "queries"):
        (folder / path).mkdir(parents=True)
    (folder / "customers.yaml").write_text(CUSTOMERS)
    (folder / "landing" / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n2,Linz\n")
    (folder / "landing" / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n2,Linz\n")
    (folder / "march.csv").write_text("id,city\n1,Wien\n2,Graz\n")
    (folder / "queries" / "orders.csv").write_text("id,at\n1,2024-01-15\n1,2024-02-15\n")
    variables = {name: value for name, value in os.environ.items() if name not in ("CI", "SPARK_REMOTE")}
    variables = {name: value for name, value in variables.items() if not name.startswith("SCD_")}
    environment = Environment.from_env({**variables, "SCD_HOME": str(home)})
    yield Shop(folder, environment)
    (home / "servers" / f"user-{os.getuid()}").chmod(0o700)
    background.stop_servers(environment)


@pytest.mark.slow(60)
def test_commands_share_a_server_in_the_background(shop: Shop) -> None:
    rows, messages = shop.scd("load", "customers.yaml")
    assert "started a Spark Connect server in the background" in messages and "scd server stop" in messages
    assert "2024-02-01  accepted" in rows
    first = shop.server
    # In another folder, with relative paths.
    elsewhere: dict[str, Any] = {"folder": "queries", "SCD_WAREHOUSE": "../warehouse", "SCD_DECLARATIONS": ".."}
    rows, messages = shop.scd("sql", "SELECT city FROM dim_customer ORDER BY id, city", "--format", "csv", **elsewhere)
    assert rows.split() == ["city", "Graz", "Wien", "Linz"] and "started" not in messages
    rows, _ = shop.scd("as-of", "dim_customer", "at", "--join", "orders.csv", "--format", "csv", **elsewhere)
    assert len({line.split(",")[2] for line in rows.splitlines()[1:]}) == 2, "each row has the key of its version"
    for remote in ("", "background"):
        query = "SELECT count(*) AS n FROM dim_customer_current"
        rows, _ = shop.scd("sql", query, "--format", "csv", SCD_REMOTE=remote, **elsewhere)
        assert rows.split() == ["n", "2"]
    assert shop.run("-c", PIPELINE).stdout.split() == ["1", "4"]
    assert shop.server == first
    assert "idle for 0 of 30 minutes" in shop.scd("server")[0]
    # Another process of this machine does not know the token.
    stranger = shop.run("-m", "scd_pipeline", "sql", "SELECT 1", "--remote", first.url)
    assert stranger.returncode != 0 and "UNAUTHENTICATED" in stranger.stderr
    os.kill(first.pid, signal.SIGKILL)
    while server.is_running(first):
        time.sleep(0.05)
    rows, messages = shop.scd("sql", "SELECT 1 AS n", "--format", "csv")
    assert rows.split() == ["n", "1"] and "started a Spark Connect server" in messages
    assert shop.server.pid != first.pid
    assert shop.scd("server", "stop")[0] == "stopped 1 server\n"
    assert shop.scd("server", "status")[0] == "no server runs\n"


@pytest.mark.slow(20)
def test_without_a_server_in_the_background_spark_is_embedded(shop: Shop) -> None:
    """The reason is reported, if the server was not switched off."""
    folder = shop.environment.cache_folder / "servers" / f"user-{os.getuid()}"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    query = ("sql", "SELECT 1 AS n", "--format", "csv")
    rows, messages = shop.scd(*query)
    assert rows.split() == ["n", "1"] and "an embedded Spark is used" in messages and str(folder) in messages
    rows, messages = shop.scd(*query, SCD_SERVER="off")
    assert rows.split() == ["n", "1"] and messages == ""
    assert list(folder.iterdir()) == []
