"""Spark sessions: embedded in this process, or over Spark Connect to a server that stays warm.

A server belongs to a folder. Processes that name the same folder and settings share one server; the last
to leave stops it, unless it was started to stay (`start_server`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.launch import launch_environment, spark_home
from scd_pipeline.spark.setup import tail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_LOOPBACK = "127.0.0.1"
_CONNECT_PORT = 15002
# PySpark repeats the parts of an address that it cannot parse, the token too; so it is never given such a one.
_ADDRESS = re.compile(
    r"sc://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?(/(;[^;=/?#\s]+=[^;=/?#\s]+)*)?"
)
_STOP_SECONDS = 20
_QUERY_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
_PORT_ATTEMPTS = 3


@dataclass(frozen=True)
class Server:
    """A running Spark Connect server; `kept` if it outlives its last user."""

    pid: int
    url: str
    log: str
    kept: bool = False

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.url.rsplit(":", 1)[1])


# -- settings

# For long-lived sessions on data of a few rows: no code is generated for a plan, and it is planned once. Warm, a small
# load takes a third of the processor time.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def spark_conf(
    *,
    jars: Sequence[Path],
    warehouse: str | Path | None = None,
    cores: str | int = "*",
    shuffle_partitions: int = 4,
    driver_memory: str = "2g",
    quick: bool = False,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return Spark's settings for work on one machine: Delta, UTC, loopback only, no UI, few partitions.

    quick: compile less, for processes that live seconds. extra: further settings, such as INTERPRETED; they win.
    Raises SetupError if a jar is not there: Spark itself would only warn and fail later in odd ways.
    """
    absent = [str(jar) for jar in jars if not jar.is_file()]
    if absent:
        raise SetupError(f"jars not found: {', '.join(absent)}; run `scd setup`")
    options = [
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
    ]
    # Collecting beside the work takes a tenth of the processor's time on few cores; pauses harm nobody here.
    if quick:
        # The code cache of this mode holds 48 MB unless told, and a JVM that has filled it compiles nothing more.
        options += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    else:
        options += ["-XX:+UseParallelGC", "-XX:ReservedCodeCacheSize=480m"]
    conf = {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "scd_pipeline",
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark describes each query and keeps the last 1,000 for its UI, which is off: a twentieth of a small load's
        # time, and memory.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.sql.extensions": _DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": _DELTA_CATALOG,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # Delta spreads a table's state over 50 partitions by default: far too many for small logs.
        "spark.databricks.delta.snapshotPartitions": "2",
        # One load has hundreds of pieces of generated code. Spark keeps 100, so that the next one compiled all of them.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # VACUUM lists a folder by so many tasks, 10,000 by default: half a minute for the smallest table.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
        # For each function called, PySpark looks up the caller's place in the code: a tenth of a small load's time.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    if warehouse is not None:
        conf["spark.sql.warehouse.dir"] = str(Path(warehouse).absolute())
    return {**conf, **(extra or {})}


# -- sessions


def local_spark(
    warehouse: str | Path | None = None,
    *,
    jars: Sequence[Path],
    java_home: Path | None,
    cores: str | int = "*",
    shuffle_partitions: int = 4,
    driver_memory: str = "2g",
    quick: bool = False,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session embedded in this process; one process has one.

    jars, java_home: those of a scd_pipeline.spark.setup.Installation (java_home None: the environment's Java).
    Raises SetupError if this process already has a session without Delta, which no setting can mend.
    """
    from pyspark.sql import SparkSession

    conf = spark_conf(
        jars=jars,
        warehouse=warehouse,
        cores=cores,
        shuffle_partitions=shuffle_partitions,
        driver_memory=driver_memory,
        quick=quick,
        extra=extra,
    )
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    _quiet_query_logs()
    with _environment(launch_environment(os.environ, java_home)):
        spark = builder.getOrCreate()
    if _DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise SetupError(
            "this process already has a Spark session without Delta, and a process has only one; "
            "let scd_pipeline.spark.session.local_spark start it, or set spark.sql.extensions and spark.jars there"
        )
    return spark


def connect_spark(url: str) -> SparkSession:
    """Return a new session at a Spark Connect server (sc://host:port), its time zone UTC.

    Stop the session before its server goes: at exit it would try for some time to tell the server.
    Errors: SetupError where nobody answers.
    """
    expect_server(url)
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    _quiet_query_logs()
    spark = SparkSession.builder.remote(url).create()
    if url.startswith(f"sc://{_LOOPBACK}:"):
        # A server on this machine that refuses connections is gone: half a minute of patience, not ten.
        spark.client.set_retry_policies([DefaultPolicy(max_retries=12, max_backoff=3000)])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def _quiet_query_logs() -> None:
    """Keep PySpark from writing failed queries to the standard error: their messages repeat values (S31).

    Whoever called it has the exception. That of Connect is disabled by PySpark itself, but whatever configures Python's
    logging later, as Dagster does, enables it.
    """
    from pyspark.logger import PySparkLogger

    for name in _QUERY_LOGS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def without_secrets(url: str) -> str:
    """Return an address as it may be shown: its host and its port, nothing else.

    Of a malformed one nothing is shown, as any part of it may be a token. Empty for an empty address.
    """
    if not url:
        return ""
    server = _host_and_port(url)
    return "sc://{}:{}".format(*server) if server else "an address that is not shown, as it may have a token"


def _host_and_port(url: str) -> tuple[str, int] | None:
    """Return host and port of an address as Spark Connect has it; None for any other text."""
    address = _ADDRESS.fullmatch(url)
    port = int((address and address["port"]) or _CONNECT_PORT)
    return (address["host"], port) if address and 0 < port < 65536 else None


def expect_server(url: str) -> None:
    """Ask at once whether anybody listens; Spark itself would try for minutes.  Errors: SetupError."""
    server = _host_and_port(url)
    if server is None:
        raise SetupError(
            "--remote or SCD_REMOTE: this is not an address of a Spark Connect server (it is not shown, as it may have "
            "a token); expected sc://host:port, or sc://host:port/;use_ssl=true;token=...; inside a token write "
            "= / ? # ; as %3D %2F %3F %23 %3B"
        )
    try:
        socket.create_connection((server[0].strip("[]"), server[1]), timeout=10).close()
    except OSError as error:
        raise SetupError(
            f"no Spark Connect server answers at {without_secrets(url)} ({error.strerror or error}); start it, or "
            f"leave --remote and SCD_REMOTE out: `scd dev` then starts one, and all else has an embedded Spark"
        ) from error


@contextlib.contextmanager
def shared_spark(
    folder: Path, conf: Mapping[str, str], *, java_home: Path | None, wait_seconds: float = 120
) -> Iterator[SparkSession]:
    """Yield a session at the server of `connect_server`, stopped before the server may be."""
    with connect_server(folder, conf, java_home=java_home, wait_seconds=wait_seconds) as url:
        spark = connect_spark(url)
        try:
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    """Replace the process's environment: pyspark takes Java, Spark and Python from nowhere else."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# -- Spark Connect servers


@contextlib.contextmanager
def connect_server(
    folder: Path, conf: Mapping[str, str], *, java_home: Path | None, wait_seconds: float = 120
) -> Iterator[str]:
    """Yield the url of the folder's server with these settings, started if none runs.

    Users hold a lock that ends with their process; the last to leave stops the server unless it is kept.
    """
    place = _place(folder, conf)
    with (place / "users.lock").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield _find_or_launch(place, conf, java_home, wait_seconds, kept=False).url
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            _stop_if_unused(place, users.fileno())


def start_server(folder: Path, conf: Mapping[str, str], *, java_home: Path | None, wait_seconds: float = 120) -> Server:
    """Return the folder's server with these settings, started if none runs; it stays until `stop_server`."""
    return _find_or_launch(_place(folder, conf), conf, java_home, wait_seconds, kept=True)


def find_server(folder: Path, conf: Mapping[str, str] | None = None) -> Server | None:
    """Return the folder's running server (with these settings, if given), or None."""
    places = [_place(folder, conf)] if conf is not None else sorted(folder.glob("*/"))
    running = [server for place in places if (server := _running(place))]
    return running[0] if running else None


def stop_server(folder: Path) -> int:
    """Stop every server of the folder, whoever uses it; return how many ran."""
    running = [(place, server) for place in sorted(folder.glob("*/")) if (server := _running(place))]
    for place, server in running:
        _stop(place, server)
    return len(running)


def _place(folder: Path, conf: Mapping[str, str]) -> Path:
    """Return the sub-folder of the settings: servers with other settings are other servers."""
    settings = json.dumps(dict(conf), sort_keys=True)
    place = folder / hashlib.sha256(settings.encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    return place


def _find_or_launch(
    place: Path, conf: Mapping[str, str], java_home: Path | None, wait_seconds: float, *, kept: bool
) -> Server:
    with (place / "start.lock").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        server = _running(place) or _launch(place, conf, java_home, wait_seconds)
        if kept and not server.kept:
            server = replace(server, kept=True)
        _write_state(place, server)
        return server


def _stop_if_unused(place: Path, users: int) -> None:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    server = _running(place)
    if server and not server.kept:
        _stop(place, server)


def _launch(place: Path, conf: Mapping[str, str], java_home: Path | None, wait_seconds: float) -> Server:
    """Start a server and wait until it answers; another port if a rival took the first."""
    log = place / "server.log"
    deadline = time.monotonic() + wait_seconds
    for _ in range(_PORT_ATTEMPTS):
        port = _free_port()
        server = Server(_spawn(place, conf, java_home, port, log), f"sc://{_LOOPBACK}:{port}", str(log))
        if _wait_until_ready(server, deadline):
            return server
        if "Address already in use" not in _read_log(log):
            break
    raise SetupError(f"the Spark Connect server ended while starting; the end of its log ({log}):\n{_log_tail(log)}")


def _wait_until_ready(server: Server, deadline: float) -> bool:
    """Return True once the server answers, False if it has ended; SetupError if it does neither in time."""
    while time.monotonic() < deadline:
        if _has_ended(server.pid):
            return False
        if _answers(server.port):
            return True
        time.sleep(0.1)
    _end_process(server.pid)
    raise SetupError(
        f"the Spark Connect server did not answer at {server.url} in time and was stopped; "
        f"the end of its log ({server.log}):\n{_log_tail(Path(server.log))}"
    )


def _spawn(place: Path, conf: Mapping[str, str], java_home: Path | None, port: int, log: Path) -> int:
    """Start the server's process, detached from this one; return its id."""
    command = [str(spark_home() / "bin" / "spark-submit"), "--class", _SERVER_CLASS]
    connect = {
        "spark.connect.grpc.binding.address": _LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.port.maxRetries": "0",
    }
    for name, value in {**conf, **connect}.items():
        command += ["--conf", f"{name}={value}"]
    # The shell is the server's parent only for a moment: nobody has to wait for the server's end.
    background = '"$@" >"$0" 2>&1 </dev/null & echo $!'
    started = subprocess.run(
        ["/bin/sh", "-c", background, str(log), *command, "spark-internal"],
        cwd=place,
        env=launch_environment(os.environ, java_home),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
        preexec_fn=_heed_the_end,
    )
    return int(started.stdout)


def _heed_the_end() -> None:
    """Let a child be ended politely, whatever its parent ignores: Dagster's runs in the background ignore SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(place: Path, server: Server) -> None:
    _end_process(server.pid)
    (place / "server.json").unlink(missing_ok=True)


def _end_process(pid: int) -> None:
    """End a server's process: politely, and by force if it takes too long."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, kind)
        deadline = time.monotonic() + _STOP_SECONDS
        while _is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not _is_alive(pid):
            return


def _running(place: Path) -> Server | None:
    try:
        server = Server(**json.loads((place / "server.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return server if _is_alive(server.pid) and _answers(server.port) else None


def _write_state(place: Path, server: Server) -> None:
    draft = place / f"server.json.{os.getpid()}"
    draft.write_text(json.dumps(asdict(server)), encoding="utf-8")
    draft.replace(place / "server.json")


def _is_alive(pid: int) -> bool:
    """Return whether the process is a Connect server: ids are used again, the dead may linger as zombies."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return False
        listed = ["ps", "-p", str(pid), "-o", "command="]
        command = subprocess.run(listed, capture_output=True, text=True, check=False).stdout
    return _SERVER_CLASS in command


def _has_ended(pid: int) -> bool:
    """Return whether the process is gone: asked twice, as a starting one has no command while it turns into Java."""
    if _is_alive(pid):
        return False
    time.sleep(0.1)
    return not _is_alive(pid)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((_LOOPBACK, port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _read_log(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _log_tail(log: Path) -> str:
    return tail(_read_log(log)) or "(empty)"
