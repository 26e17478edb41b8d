"""Spark sessions: embedded in this process, or at a Spark Connect server."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark.configuration import DELTA_EXTENSION, LOOPBACK, s3_settings, spark_conf
from scd_pipeline.spark.installation import Installation, find_installation
from scd_pipeline.spark.launch import launch_environment
from scd_pipeline.spark.remote import BACKGROUND, redacted_address, require_server
from scd_pipeline.spark.server import is_running, log_tail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The variable by which all functions of PySpark in a process address a Spark Connect server."""
_connected: weakref.WeakKeyDictionary[SparkSession, Callable[[], object]] = weakref.WeakKeyDictionary()
"""The sessions at Spark Connect servers, as PySpark does not list them, and what ends the use of their servers."""
_FUNCTION_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils")
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")


def local_spark(conf: Mapping[str, str], *, java_home: Path | None) -> SparkSession:
    """Return the Spark session that is embedded in this process. A process has only one.

    Args:
        conf: Its settings, as `configuration.spark_conf` returns them.
        java_home: The JAVA_HOME of Spark, as in `Installation.java_home`; None is that of the environment.

    Raises:
        SetupError: This process already has a session without Delta, which no setting can fix, or an open one at a
            Spark Connect server.
    """
    from pyspark.sql import SparkSession

    _leave_connect_mode()
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    _disable_query_logs()
    with _process_environment(launch_environment(os.environ, java_home)), _deferred_interrupt():
        spark = builder.getOrCreate()
    _cache_java_functions(spark)
    if DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise SetupError("SESSION_WITHOUT_DELTA")
    return spark


def connect_spark(url: str) -> SparkSession:
    """Return a new session at a Spark Connect server (sc://host:port), with UTC as its time zone.

    Stop the session before its server: otherwise it retries at exit to tell the server that it ends.

    Raises:
        SetupError: The address is malformed, no server answers at it, or this process has an embedded session.
    """
    require_server(url)
    from pyspark.sql.connect.client import DefaultChannelBuilder

    return _connect(DefaultChannelBuilder(url), redacted_address(url), lambda: None)


def background_spark(
    environment: Environment,
    *,
    installation: Installation | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> SparkSession:
    """Return a new session at the server of this user in the background, which is started if it does not run.

    Args:
        environment: The environment variables, which name the installed Java and jars.
        installation: Java and jars, if the caller has found them.
        report: Receives a line if the server is started.

    A server that fails is replaced, unless another process uses it.

    Raises:
        SetupError: The server does not start or fails, Java or jars are missing, or this process has an embedded
            session.
    """
    from pyspark.errors import PySparkException

    from scd_pipeline.spark import background
    from scd_pipeline.spark.loopback import LoopbackChannelBuilder

    _require_no_embedded_session(BACKGROUND)
    installed = installation or find_installation(environment)
    while True:
        lease = background.lease(environment, installed)
        if lease.is_new:
            report(
                f"started a Spark Connect server in the background for later commands; it ends after "
                f"{background.IDLE_MINUTES} idle minutes, or by `scd server stop`"
            )
        try:
            channel = LoopbackChannelBuilder(lease.server.url, lease.server.token)
            return _connect(channel, BACKGROUND, lease.release)
        except (PySparkException, OSError) as error:
            lease.release()
            reason, log = str(error).partition("\n")[0], log_tail(Path(lease.server.log))
            background.stop_unused_servers(environment)  # the next one may work
            if lease.is_new or is_running(lease.server):
                raise SetupError("SERVER_FAILS", lease.server.log, reason=reason, log=log) from error
        except BaseException:
            lease.release()
            raise


def _connect(channel: DefaultChannelBuilder, address: str, release: Callable[[], None]) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    _require_no_embedded_session(address)
    _disable_query_logs()
    os.environ[_CONNECT_MODE] = "1"
    spark = cast("SparkSession", ConnectSession.builder.channelBuilder(channel).create())
    if channel.host == LOOPBACK:
        # A server of this machine that refuses connections has ended: retry for half a minute, not for ten.
        spark.client.set_retry_policies([DefaultPolicy(max_retries=12, max_backoff=3000)])
    _connected[spark] = weakref.finalize(spark, release)
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    except BaseException:
        spark.client.close()  # `stop` would call the server again
        raise
    return spark


def _require_no_embedded_session(address: str) -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise SetupError("SESSION_IS_EMBEDDED", address)


def disconnect(spark: SparkSession) -> None:
    """Stop a session at a Spark Connect server, and end the use of the server. An embedded session is not stopped."""
    release = _connected.get(spark)
    if release is not None:
        with contextlib.suppress(Exception):  # the server may have ended
            spark.stop()
        release()


def open_spark(
    remote: str,
    environment: Environment,
    *,
    installation: Installation | None = None,
    quick: bool = False,
    extra: Mapping[str, str] | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> SparkSession:
    """Return a session at a Spark Connect server, or the one that is embedded in this process.

    Args:
        remote: The address of the server; `background` for the one of this user; empty for an embedded session.
        environment: The environment variables, which name the installed Java and jars.
        installation: Java and jars, if the caller has found them.
        quick, extra: See `configuration.spark_conf`; for an embedded session.
        report: As in `background_spark`.

    Raises:
        SetupError: As `connect_spark` or `background_spark`, or as `find_installation` and `local_spark`.
    """
    if remote == BACKGROUND:
        return background_spark(environment, installation=installation, report=report)
    if remote:
        return connect_spark(remote)
    installed = installation or find_installation(environment)
    scratch = environment.cache_folder / "spark-warehouse"
    settings = {**s3_settings(environment.variables), **(extra or {})}
    conf = spark_conf(jars=installed.jars, warehouse=scratch, quick=quick, extra=settings)
    return local_spark(conf, java_home=installed.java_home)


def _leave_connect_mode() -> None:
    """Let PySpark use an embedded session again after the last session at a Spark Connect server.

    A session at a server sets a variable of the process, which the end of the session does not remove.

    Raises:
        SetupError: This process has an open session at a server.
    """
    connect = sys.modules.get("pyspark.sql.connect.session")
    other = connect.SparkSession.getActiveSession() if connect else None
    if any(not session.is_stopped for session in (*_connected, *([other] if other else []))):
        raise SetupError("SESSION_IS_REMOTE", "Spark session")
    os.environ.pop(_CONNECT_MODE, None)


class _CachedClass:
    """A class of Java whose static functions are looked up once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._java_class, name)
        setattr(self, name, function)
        return function


def _cache_java_functions(spark: SparkSession) -> None:
    """Make PySpark look up Java's functions for columns once, instead of asking Java at each call.

    A load builds its plans by thousands of such calls, of which the two lookups take more time than the call itself.
    """
    jvm: Any = spark.sparkContext._jvm
    for name in _FUNCTION_CLASSES:
        if name not in vars(jvm):
            setattr(jvm, name, _CachedClass(getattr(jvm, name)))


def _disable_query_logs() -> None:
    """Prevent PySpark from logging failed queries to the standard error: their messages repeat values (S31).

    The caller has the exception. PySpark disables the logger of Connect itself, but a later configuration of Python's
    logging, such as Dagster's, enables it.
    """
    from pyspark.logger import PySparkLogger

    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextlib.contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Raise the KeyboardInterrupt of Ctrl-C after the block; that of a second Ctrl-C at once.

    PySpark leaves a Java process behind, and its stack trace on the terminal, if it is interrupted while Java starts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []

    def remember(number: int, _: object) -> None:
        if interrupts:
            raise KeyboardInterrupt
        interrupts.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        is_own = signal.getsignal(signal.SIGINT) is remember  # else PySpark has set its own, which cancels queries
        if is_own and before is not None:
            signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _process_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Replace the environment of the process: pyspark reads Java, Spark and Python only from it."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
