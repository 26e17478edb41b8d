"""Spark Connect servers that several processes share.

A server belongs to a folder. Processes that name the same folder and settings share one server. The last one to leave
stops it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.configuration import LOOPBACK
from scd_pipeline.spark.launch import launch_environment, spark_home

_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STOP_SECONDS = 20
_PORT_ATTEMPTS = 3
_LOG_LINES = 20


@dataclass(frozen=True)
class Server:
    """A running Spark Connect server."""

    pid: int
    url: str
    log: str

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.url.rsplit(":", 1)[1])


@contextlib.contextmanager
def connect_server(
    folder: Path, conf: Mapping[str, str], *, java_home: Path | None, wait_seconds: float = 120
) -> Iterator[str]:
    """Yield the URL of the folder's server with these settings. Start a server if none runs.

    Users hold a lock that ends with their process. The last one stops the server.

    Raises:
        SetupError: The server ended while it started, or did not answer within `wait_seconds`.
    """
    state = state_folder(folder, conf)
    with (state / "users.lock").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield _find_or_launch(state, conf, java_home, wait_seconds).url
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            _stop_if_unused(state, users.fileno())


# -- the state of a server


def state_folder(folder: Path, conf: Mapping[str, str]) -> Path:
    """Return the sub-folder for these settings: each combination of settings has its own server."""
    settings = json.dumps(dict(conf), sort_keys=True)
    state = folder / hashlib.sha256(settings.encode()).hexdigest()[:16]
    state.mkdir(parents=True, exist_ok=True)
    return state


def running_server(state: Path) -> Server | None:
    """Return the server that a state folder describes; None if it does not run."""
    try:
        stored = json.loads((state / "server.json").read_text(encoding="utf-8"))
        server = Server(stored["pid"], stored["url"], stored["log"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return server if _is_server_process(server.pid) and _accepts_connections(server.port) else None


def _write_state(state: Path, server: Server) -> None:
    draft = state / f"server.json.{os.getpid()}"
    draft.write_text(json.dumps(asdict(server)), encoding="utf-8")
    draft.replace(state / "server.json")


def _find_or_launch(state: Path, conf: Mapping[str, str], java_home: Path | None, wait_seconds: float) -> Server:
    with (state / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = running_server(state) or _launch(state, conf, java_home, wait_seconds)
        _write_state(state, server)
        return server


# -- start


def _launch(state: Path, conf: Mapping[str, str], java_home: Path | None, wait_seconds: float) -> Server:
    """Start a server and wait until it answers. Use another port if another process has taken the first one."""
    log = state / "server.log"
    deadline = time.monotonic() + wait_seconds
    for _ in range(_PORT_ATTEMPTS):
        port = free_port()
        server = Server(_spawn(state, conf, java_home, port, log), f"sc://{LOOPBACK}:{port}", str(log))
        try:
            if _wait_until_ready(server, deadline):
                return server
        except BaseException:  # also an interrupt: no later start would detect the process
            _end_process(server.pid)
            raise
        if "Address already in use" not in _read_log(log):
            break
    raise SetupError("SERVER_ENDED", str(log), log=_log_tail(log))


def _wait_until_ready(server: Server, deadline: float) -> bool:
    """Return whether the server answers; False if it has ended.

    Raises:
        SetupError: The server neither answered nor ended before the deadline.
    """
    while time.monotonic() < deadline:
        if _has_ended(server.pid):
            return False
        if _accepts_connections(server.port):
            return True
        time.sleep(0.1)
    raise SetupError("SERVER_TIMEOUT", server.log, url=server.url, log=_log_tail(Path(server.log)))


def _spawn(state: Path, conf: Mapping[str, str], java_home: Path | None, port: int, log: Path) -> int:
    """Start the process of a server, detached from this process. Return its id."""
    command = [str(spark_home() / "bin" / "spark-submit"), "--class", _SERVER_CLASS]
    connect_conf = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.port.maxRetries": "0",
    }
    for name, value in {**conf, **connect_conf}.items():
        command += ["--conf", f"{name}={value}"]
    # The shell ends at once, so that no process has to wait for the end of the server.
    background = '"$@" >"$0" 2>&1 </dev/null & echo $!'
    shell = subprocess.run(
        ["/bin/sh", "-c", background, str(log), *command, "spark-internal"],
        cwd=state,
        env=launch_environment(os.environ, java_home),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
        preexec_fn=_restore_termination,
    )
    return int(shell.stdout)


def _restore_termination() -> None:
    """Let SIGTERM end a child even if its parent ignores the signal, as Dagster's background runs do."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def free_port() -> int:
    """Return a port of this machine on which no process listens."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _read_log(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _log_tail(log: Path) -> str:
    lines = [line for line in _read_log(log).splitlines() if line.strip()]
    return "\n".join(lines[-_LOG_LINES:]) or "(empty)"


# -- end


def _stop_if_unused(state: Path, users: int) -> None:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    if server := running_server(state):
        stop_server(state, server)


def stop_server(state: Path, server: Server) -> None:
    """Stop the server of a state folder, used or not."""
    _end_process(server.pid)
    (state / "server.json").unlink(missing_ok=True)


def _end_process(pid: int) -> None:
    """Terminate a server's process, and kill it if it has not ended in time."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal_number)
        deadline = time.monotonic() + _STOP_SECONDS
        while _is_server_process(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not _is_server_process(pid):
            return


def _is_server_process(pid: int) -> bool:
    """Return whether the process is a Connect server: ids are reused, and ended processes may remain as zombies."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return False
        ps = ["ps", "-p", str(pid), "-o", "command="]
        command = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
    return _SERVER_CLASS in command


def _has_ended(pid: int) -> bool:
    """Return whether the process has ended, by two checks: while it becomes Java it has no command line."""
    if _is_server_process(pid):
        return False
    time.sleep(0.1)
    return not _is_server_process(pid)


def _accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
