"""Spark Connect servers that several processes share.

A server belongs to a folder. Processes that name the same folder and settings share one server. Each user of a server
holds a lock, which ends with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.configuration import LOOPBACK
from scd_pipeline.spark.launch import launch_environment, spark_home

_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PORT_SETTING = "spark.connect.grpc.binding.port"
_STATE = "server.json"
_USERS = "users.lock"
_STOP_SECONDS = 20
_PORT_ATTEMPTS = 3
_PORTS = range(20_000, 32_768)
"""The ports of servers, below those that systems assign to connections and to other listeners while a server starts."""
_LOG_LINES = 20


@dataclass(frozen=True)
class Server:
    """A running Spark Connect server; `token` is empty if it requires none."""

    pid: int
    url: str
    log: str
    token: str = field(default="", repr=False)

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.url.rsplit(":", 1)[1])


@dataclass(frozen=True)
class Lease:
    """The use of a server by this process; it ends with `release`, or with the process.

    `is_new` is whether this lease has started the server.
    """

    server: Server
    is_new: bool
    users: IO[str] = field(repr=False)

    def release(self) -> None:
        """End the use; the server continues to run."""
        if not self.users.closed:
            os.utime(self.users.fileno())
            self.users.close()


def lease_server(
    state: Path, conf: Mapping[str, str], *, java_home: Path | None, token: str = "", wait_seconds: float = 120
) -> Lease:
    """Use the server of a state folder. Start a server if none runs.

    Args:
        state: The folder, as in `state_folder`.
        java_home: The JAVA_HOME of Spark; None is that of the environment.
        token: The token that a started server requires of its clients; empty for none.
        wait_seconds: How long to wait for a server that starts.

    Raises:
        SetupError: The server ended while it started, or did not answer within `wait_seconds`.
    """
    users = (state / _USERS).open("a")
    try:
        fcntl.flock(users, fcntl.LOCK_SH)
        os.utime(users.fileno())
        with start_lock(state):
            running = running_server(state)
            server = running or _replace(state, conf, java_home, token, wait_seconds)
        return Lease(server, running is None, users)
    except BaseException:
        users.close()
        raise


# -- the state of a server


def state_folder(folder: Path, conf: Mapping[str, str]) -> Path:
    """Return the sub-folder for these settings: each combination of settings has its own server."""
    settings = json.dumps(dict(conf), sort_keys=True)
    state = folder / hashlib.sha256(settings.encode()).hexdigest()[:16]
    state.mkdir(parents=True, exist_ok=True)
    return state


@contextlib.contextmanager
def start_lock(state: Path) -> Iterator[None]:
    """Wait until no other process starts the server of a state folder, and prevent others from starting it."""
    with (state / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def live_server(state: Path) -> Server | None:
    """Return the server that a state folder describes, whether it answers or not; None if its process has ended."""
    server = _stored_server(state)
    return server if server and is_running(server) else None


def running_server(state: Path) -> Server | None:
    """Return the server that a state folder describes; None if it does not accept connections."""
    server = live_server(state)
    return server if server and _accepts_connections(server.port) else None


def seconds_since_use(state: Path) -> float:
    """Return for how long no process has used the server of a state folder, by this machine's clock."""
    users = state / _USERS
    with contextlib.suppress(BlockingIOError), _exclusive_use(state):
        return max(0.0, time.time() - users.stat().st_mtime)
    os.utime(users)  # its user may be killed, and then cannot record until when it used the server
    return 0.0


def _stored_server(state: Path) -> Server | None:
    file = state / _STATE
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        server = Server(stored["pid"], stored["url"], stored["log"], stored.get("token", ""))
        return server if file.stat().st_uid == os.getuid() else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write_state(state: Path, server: Server) -> None:
    draft = state / f"{_STATE}.{os.getpid()}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(server), file)
    draft.replace(state / _STATE)


@contextlib.contextmanager
def _exclusive_use(state: Path) -> Iterator[None]:
    """Hold the lock of the users of a server, which makes new users wait.

    Raises:
        BlockingIOError: A process uses the server.
    """
    with (state / _USERS).open("a") as users:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


# -- start


def _replace(state: Path, conf: Mapping[str, str], java_home: Path | None, token: str, wait_seconds: float) -> Server:
    """Start a server in place of one that does not answer, if there is one."""
    if unresponsive := _stored_server(state):
        end_server(unresponsive)
    server = _launch(state, conf, java_home, token, wait_seconds)
    try:
        _write_state(state, server)
    except BaseException:
        end_server(server)
        raise
    return server


def _launch(state: Path, conf: Mapping[str, str], java_home: Path | None, token: str, wait_seconds: float) -> Server:
    """Start a server and wait until it answers. Use another port if another process has taken the first one."""
    log = state / "server.log"
    deadline = time.monotonic() + wait_seconds
    for _ in range(_PORT_ATTEMPTS):
        port = free_port()
        server = Server(_spawn(conf, java_home, token, port, log), f"sc://{LOOPBACK}:{port}", str(log), token)
        try:
            if _wait_until_ready(server, deadline):
                return server
        except BaseException:  # also an interrupt: no later start would detect the process
            end_server(server)
            raise
        if "Address already in use" not in _read_log(log):
            break
    raise SetupError("SERVER_ENDED", str(log), log=log_tail(log))


def _wait_until_ready(server: Server, deadline: float) -> bool:
    """Return whether the server answers; False if it has ended.

    Raises:
        SetupError: The server neither answered nor ended before the deadline.
    """
    while time.monotonic() < deadline:
        if _has_ended(server):
            return False
        if _accepts_connections(server.port):
            return True
        time.sleep(0.1)
    raise SetupError("SERVER_TIMEOUT", server.log, url=server.url, log=log_tail(Path(server.log)))


def _spawn(conf: Mapping[str, str], java_home: Path | None, token: str, port: int, log: Path) -> int:
    """Start the process of a server, detached from this process. Return its id."""
    command = [str(spark_home() / "bin" / "spark-submit"), "--class", _SERVER_CLASS]
    connect_conf = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        _PORT_SETTING: str(port),
        "spark.port.maxRetries": "0",
    }
    for name, value in {**conf, **connect_conf}.items():
        command += ["--conf", f"{name}={value}"]
    environ = launch_environment(os.environ, java_home)
    # Other users of the machine can read the arguments of a process, but not its environment.
    environ |= {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token} if token else {}
    return start_detached([*command, "spark-internal"], environ, log)


# SIGTERM ends the process even if its parent ignores the signal, as Dagster's background runs do. A function for the
# child of a fork could not restore it: gRPC, which has threads, may abort such a child. The shell ends at once, so that
# no process has to wait for the end of the server.
_DETACH = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.execv("/bin/sh", ["sh", "-c", '"$@" >"$0" 2>&1 </dev/null & echo $!', *sys.argv[1:]])
"""


def start_detached(command: Sequence[str], environ: Mapping[str, str], log: Path, keep_open: Sequence[int] = ()) -> int:
    """Start a process that outlives this process and its terminal. Return its id.

    Args:
        log: The file of its output, in whose folder it runs.
        keep_open: File descriptors that it inherits.

    Raises:
        SetupError: The process cannot be started.
    """
    shell = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _DETACH, str(log), *command],
        cwd=log.parent,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        pass_fds=keep_open,
    )
    if shell.returncode:
        raise SetupError("SERVER_ENDED", str(log), log=shell.stderr.strip() or f"exit code {shell.returncode}")
    return int(shell.stdout)


def free_port() -> int:
    """Return a port of this machine on which no process listens, one of `_PORTS`."""
    return next(port for port in random.sample(_PORTS, len(_PORTS)) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) != 0


def _read_log(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def log_tail(log: Path) -> str:
    """Return the last lines of a log."""
    lines = [line for line in _read_log(log).splitlines() if line.strip()]
    return "\n".join(lines[-_LOG_LINES:]) or "(empty)"


# -- end


def stop_if_unused(state: Path) -> None:
    """Stop the server of a state folder unless a process uses it."""
    with contextlib.suppress(BlockingIOError, FileNotFoundError), _exclusive_use(state):
        stop_server(state)


def remove_if_ended(state: Path) -> None:
    """Remove a state folder whose server has ended, unless a process uses it."""
    with contextlib.suppress(BlockingIOError, FileNotFoundError), _exclusive_use(state):
        if live_server(state) is None:
            shutil.rmtree(state, ignore_errors=True)


def stop_server(state: Path) -> bool:
    """Stop the server of a state folder, used or not. Return whether one ran."""
    server = _stored_server(state)
    is_stopped = server is not None and is_running(server)
    if server is not None:
        end_server(server)
    (state / _STATE).unlink(missing_ok=True)
    return is_stopped


def end_server(server: Server) -> None:
    """Terminate a server's process, and kill it if it has not ended in time."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        if is_running(server):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(server.pid, signal_number)
        deadline = time.monotonic() + _STOP_SECONDS
        while is_running(server) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not is_running(server):
            return


def is_running(server: Server) -> bool:
    """Return whether the process is this server: ids are reused, and ended processes may remain as zombies."""
    owner, command = _process(server.pid)
    return owner == os.getuid() and _SERVER_CLASS in command and f"{_PORT_SETTING}={server.port}" in command


def _process(pid: int) -> tuple[int, str]:
    """Return the user and the command line of a process; -1 and an empty text if it does not exist."""
    folder = Path(f"/proc/{pid}")
    try:
        return folder.stat().st_uid, (folder / "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return -1, ""
    ps = ["ps", "-ww", "-p", str(pid), "-o", "uid=,command="]
    owner, _, command = subprocess.run(ps, capture_output=True, text=True, check=False).stdout.strip().partition(" ")
    return int(owner or -1), command


def _has_ended(server: Server) -> bool:
    """Return whether the process has ended, by two checks: while it becomes Java it has no command line."""
    if is_running(server):
        return False
    time.sleep(0.1)
    return not is_running(server)


def _accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
