"""`scd dev`: how it starts Dagster with a running Spark, and that both end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from benchmarks.dagster_client import DagsterClient
from scd_pipeline.cli import dev
from scd_pipeline.cli.context import Settings
from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.run_launcher import ForkedRunLauncher
from scd_pipeline.spark.server import free_port


def settings(folder: Path, **environ: str) -> Settings:
    environment = Environment.from_env(environ)
    return Settings(environment, str(folder / "warehouse"), "sc://127.0.0.1:1", folder / "declared", "scd", None)


def test_dagster_has_the_settings_of_the_command(tmp_path: Path) -> None:
    environ = dev.environment(settings(tmp_path, PATH="/bin"), "sc://127.0.0.1:2", tmp_path / "home")
    assert environ.pop("PYTHONWARNINGS")
    assert environ == {
        "PATH": "/bin",
        "DAGSTER_HOME": str(tmp_path / "home"),
        "SCD_REMOTE": "sc://127.0.0.1:2",
        "SCD_WAREHOUSE": str(tmp_path / "warehouse"),
        "SCD_DECLARATIONS": str(tmp_path / "declared"),
    }


@pytest.mark.process
def test_dagster_does_not_warn_of_its_own_beta_interfaces(tmp_path: Path) -> None:
    """Other warnings remain. A filter of the user replaces this one."""
    beta = "import dagster; dagster.LocalFileCodeReference(file_path='a.py')"
    program = f"{beta}; import warnings; warnings.warn('parameter a')"
    warned = []
    for variables in ({}, {"PYTHONWARNINGS": "always"}):
        environ = dev.environment(settings(tmp_path, **variables), "sc://127.0.0.1:2", tmp_path / "home")
        done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
        warned.append(re.findall(r"(\w+Warning): ", done.stderr))
    assert warned == [["UserWarning"], ["BetaWarning", "UserWarning"]]


def test_the_home_is_that_of_the_environment(tmp_path: Path) -> None:
    """It is created if it does not exist, without settings."""
    home, here = tmp_path / "not" / "there", tmp_path / "here"
    here.mkdir()
    assert dev.dagster_home({"DAGSTER_HOME": str(home)}, here) == home
    assert list(home.iterdir()) == list(here.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(SetupError) as error:
        dev.dagster_home({"DAGSTER_HOME": str(tmp_path / "file")}, here)
    assert error.value.code == "DAGSTER_HOME_NOT_WRITABLE"


def test_the_home_may_be_relative_or_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster expects an absolute path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert dev.dagster_home({"DAGSTER_HOME": "~/a"}, tmp_path) == tmp_path / "a"
    assert dev.dagster_home({"DAGSTER_HOME": "b"}, tmp_path) == tmp_path / "b"


def test_a_default_home_has_the_settings_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    home = dev.dagster_home({}, tmp_path)
    assert (home / "dagster.yaml").read_text(encoding="utf-8") == "telemetry: {enabled: false}\n"


def test_a_default_home_without_a_project_allows_one_writer_per_table(tmp_path: Path) -> None:
    home = dev.dagster_home({}, tmp_path)
    assert home == tmp_path / ".dagster"
    with dg.DagsterInstance.from_config(str(home)) as instance:
        pools = instance.get_concurrency_config().pool_config
        assert (str(pools.pool_granularity), pools.default_pool_limit) == ("PoolGranularity.OP", 1)
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 300
        assert isinstance(instance.run_launcher, ForkedRunLauncher)
    (home / "dagster.yaml").write_text("{}", encoding="utf-8")
    dev.dagster_home({}, tmp_path)
    assert (home / "dagster.yaml").read_text(encoding="utf-8") == "{}"


def test_a_workspace_of_the_folder_is_served_instead_of_the_package(tmp_path: Path) -> None:
    assert dev.command(tmp_path, 3000, "scd_pipeline.definitions")[-2:] == ["-m", "scd_pipeline.definitions"]
    (tmp_path / "workspace.yaml").touch()
    assert dev.command(tmp_path, 3000, "scd_pipeline.definitions")[-2:] == ["-w", str(tmp_path / "workspace.yaml")]


def test_an_unreachable_server_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as error:
        dev.run(settings(tmp_path, DAGSTER_HOME=str(tmp_path)), port=3000, code_location="none", report=lambda _: None)
    assert (error.value.code, error.value.location) == ("SERVER_UNREACHABLE", "sc://127.0.0.1:1")


@pytest.mark.slow(15)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGHUP])
def test_it_serves_until_it_is_interrupted_or_its_terminal_closes(
    remote: str, tmp_path: Path, end: signal.Signals
) -> None:
    port = free_port()
    command = [sys.executable, "-m", "scd_pipeline", "dev", "--port", str(port)]
    environ = {**os.environ, "SCD_REMOTE": remote, "DAGSTER_HOME": str(tmp_path)}  # a configured server is not started
    with (tmp_path / "log").open("w") as log:
        started = subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
        try:
            DagsterClient(port).wait(started)
            started.send_signal(end)
            assert started.wait(timeout=150) == 0  # Dagster gives each of its processes a minute
        finally:
            if started.poll() is None:
                started.kill()
    assert "Dagster services shut down" in (tmp_path / "log").read_text(encoding="utf-8")
