"""The Spark Connect server that runs in the background for one user, between the commands of a terminal.

Each combination of Java, jars, settings and environment has its own server; a start stops the unused others. A server
ends after half an hour without a user: `python -m scd_pipeline.spark.background` is the process that watches it.
Hosts and containers may share the folder of the servers: each of them has a folder of its own in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark.configuration import s3_settings, spark_conf
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.launch import launch_environment
from scd_pipeline.spark.server import (
    Lease,
    Server,
    end_server,
    lease_server,
    live_server,
    remove_if_ended,
    running_server,
    seconds_since_use,
    start_detached,
    start_lock,
    state_folder,
    stop_if_unused,
    stop_server,
)

IDLE_MINUTES = 30
"""After how long without a user a server ends."""

_POLL_SECONDS = 10
_WATCH = "watch.lock"
_SURROUNDINGS = (
    *("SPARK_", "HADOOP_", "YARN_", "HIVE_", "JAVA_", "_JAVA_", "JDK_", "AWS_", "AZURE_", "GOOGLE_", "KRB5", "HOME="),
    *("HTTP_PROXY=", "HTTPS_PROXY=", "ALL_PROXY=", "NO_PROXY="),
)
"""How the variables begin that Spark, Java or the clients of object stores read; in capitals."""
_HOST_FILES = (Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id"))


@dataclass(frozen=True)
class BackgroundServer:
    """A running server of this user, and for how long no process has used it."""

    server: Server
    idle_seconds: float


def lease(environment: Environment, installation: Installation) -> Lease:
    """Use the server of this user. Start it if it does not run, or if it has other settings.

    Raises:
        SetupError: Other users can access the folder of the server, or the server does not start.
    """
    folder = _host_folder(environment)
    # Other users of the machine can also connect to the ports by which the parts of Spark communicate.
    extra = {"spark.authenticate": "true", **s3_settings(environment.variables)}
    conf = spark_conf(jars=installation.jars, warehouse=environment.cache_folder / "spark-warehouse", extra=extra)
    variables = launch_environment(environment.variables, installation.java_home)
    state = state_folder(folder, {**conf, **_surroundings(variables), **_configuration_files(variables)})
    if running_server(state) is None:
        stop_unused_servers(environment)
    with _folder_lock(folder, fcntl.LOCK_SH):
        state.mkdir(exist_ok=True)
        lease = lease_server(state, conf, java_home=installation.java_home, token=secrets.token_hex())
        try:
            _start_watch(state)
        except BaseException:  # also an interrupt: a server without a watch never ends
            lease.release()
            stop_if_unused(state)
            raise
    return lease


def running_servers(environment: Environment) -> list[BackgroundServer]:
    """Return the servers of this user: one, and others that are still in use."""
    states = _states(_host_folder(environment))
    running = [(state, server) for state in states if (server := running_server(state))]
    return [BackgroundServer(server, seconds_since_use(state)) for state, server in running]


def stop_unused_servers(environment: Environment) -> None:
    """Stop the servers of this user that no process uses."""
    folder = _host_folder(environment)
    for state in _states(folder):
        stop_if_unused(state)
    _remove_ended(folder)


def stop_servers(environment: Environment) -> int:
    """Stop the servers of this user, used or not, and return how many ran. A server that is starting is waited for."""
    stopped = 0
    folder = _host_folder(environment)
    for state in _states(folder):
        with contextlib.suppress(FileNotFoundError), start_lock(state):
            stopped += stop_server(state)
    _remove_ended(folder)
    return stopped


def _remove_ended(folder: Path) -> None:
    """Remove the state folders of servers that have ended, unless a process is about to use one of them."""
    with contextlib.suppress(BlockingIOError), _folder_lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
        for state in _states(folder):
            remove_if_ended(state)


@contextlib.contextmanager
def _folder_lock(folder: Path, operation: int) -> Iterator[None]:
    """Hold the lock of a folder of servers, which the users of its state folders share.

    Raises:
        BlockingIOError: The operation does not wait, and another process holds the lock.
    """
    with (folder / "folder.lock").open("w") as lock:
        fcntl.flock(lock, operation)
        yield


def _host_folder(environment: Environment) -> Path:
    """Return the folder of this user's servers on this host: elsewhere the ids of their processes mean nothing."""
    texts = [platform.node(), next(filter(None, map(_read_text, _HOST_FILES)), "")]
    with contextlib.suppress(OSError):
        texts.append(str(Path("/proc/self/ns/pid").readlink()))  # containers of one machine have their own processes
    folder = _private_folder(environment) / f"host-{hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _private_folder(environment: Environment) -> Path:
    """Return the folder of this user's servers, which only this user can access: it contains their tokens.

    Raises:
        SetupError: The folder cannot be created, belongs to another user, or others can access it.
    """
    folder = environment.cache_folder / "servers" / f"user-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise SetupError("CACHE_NOT_WRITABLE", str(folder), reason=error.strerror) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SetupError("SERVER_FOLDER_SHARED", str(folder))
    return folder


def _states(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _surroundings(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables with which a server starts, and that a session cannot change."""
    named = {name: value for name, value in variables.items() if f"{name}=".upper().startswith(_SURROUNDINGS)}
    return {f"env.{name}": value for name, value in named.items()}


def _configuration_files(variables: Mapping[str, str]) -> dict[str, str]:
    """Return when the files changed that Spark and Hadoop read at their start."""
    spark = variables.get("SPARK_CONF_DIR") or str(Path(variables["SPARK_HOME"]) / "conf")
    folders = [spark, *(variables[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if variables.get(name))]
    files = [file for folder in folders for file in Path(folder).glob("*") if file.is_file()]
    return {f"file.{file}": str(file.stat().st_mtime_ns) for file in files}


# -- the end of an unused server


def _start_watch(state: Path) -> None:
    """Start the process that watches a server, unless one does.

    It inherits a lock, which thus ends with it.
    """
    with start_lock(state), (state / _WATCH).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        command = [sys.executable, "-m", __name__, str(state), str(lock.fileno())]
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        start_detached(command, {**os.environ, "PYTHONPATH": path}, state / "watch.log", keep_open=[lock.fileno()])


def watch(state: Path, lock: int, idle_seconds: float = IDLE_MINUTES * 60, poll_seconds: float = _POLL_SECONDS) -> None:
    """Wait until the server of a state folder has ended; stop it when no process has used it for a while.

    Args:
        lock: The descriptor of the lock of this process.
        idle_seconds: How long the server may be unused, by the clock: a suspended machine counts.
        poll_seconds: How often it is checked.
    """
    watched: Server | None = None
    try:
        while running := _watched_server(state, lock):
            watched = running
            time.sleep(poll_seconds)
            if seconds_since_use(state) > idle_seconds:
                stop_if_unused(state)
    except FileNotFoundError:  # the folder was removed, so that no command can find the server
        if watched:
            end_server(watched)


def _watched_server(state: Path, lock: int) -> Server | None:
    """Return the running server; without one release the lock, so that the next start begins a new watch."""
    with start_lock(state):
        running = live_server(state)  # a server that does not answer at the moment still has to end
        if running is None:
            os.close(lock)
        return running


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
