"""`scd dev`: Dagster's web interface next to a Spark Connect server that stays warm.

Runs use the server through SCD_REMOTE, so that none of them starts its own JVM.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scd_pipeline.cli.console import Report
from scd_pipeline.errors import SetupError
from scd_pipeline.spark import background
from scd_pipeline.spark.installation import find_installation
from scd_pipeline.spark.remote import BACKGROUND, redacted_address, require_server

if TYPE_CHECKING:
    from scd_pipeline.cli.context import Settings

_END_SECONDS = 120  # Dagster gives each of its processes a minute
_INSTANCE = """\
# Created by `scd dev`, which does not change it again.
concurrency:
  pools:
    granularity: op # one writer per table
    default_limit: 1
run_queue:
  dequeue_interval_seconds: 1 # instead of 5: how long a run may wait before it starts
run_launcher: # runs are forks of a process that has imported what they need
  module: scd_pipeline.run_launcher
  class: ForkedRunLauncher
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 300 # a run that failed or was terminated releases its table
telemetry:
  enabled: false
nux:
  enabled: false
"""


_BETA_WARNINGS = ",".join(f"ignore:{kind} `" for kind in ("Class", "Function", "Parameter"))
"""Filters of Python for Dagster's warnings that it uses its own beta interfaces, by the beginnings of their texts."""


def run(settings: Settings, *, port: int, code_location: str, report: Report) -> int:
    """Serve until Ctrl-C.

    Returns:
        Dagster's exit code; 0 after Ctrl-C.
    """
    home = dagster_home(settings.environment.variables, Path.cwd())
    with _spark(settings, report) as url:
        environ = environment(settings, url, home)
        report(f"Dagster's home: {home}; warehouse: {settings.warehouse_path}; Spark: {redacted_address(url)}")
        report(f"the web interface will be at http://127.0.0.1:{port}; Ctrl-C ends everything")
        return _serve(command(Path.cwd(), port, code_location), environ)


def dagster_home(environ: Mapping[str, str], folder: Path) -> Path:
    """Return Dagster's home, which is created if it does not exist.

    It is $DAGSTER_HOME, else `.dagster` in a folder, with the dagster.yaml of that folder or a default one.

    Raises:
        SetupError: The folder cannot be created.
    """
    if environ.get("DAGSTER_HOME"):
        return _create(Path(environ["DAGSTER_HOME"]).expanduser().absolute())
    home = folder / ".dagster"
    home.mkdir(exist_ok=True)
    settings = home / "dagster.yaml"
    if (folder / "dagster.yaml").is_file():
        shutil.copyfile(folder / "dagster.yaml", settings)
    elif not settings.exists():
        settings.write_text(_INSTANCE, encoding="utf-8")
    return home


def _create(home: Path) -> Path:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError("DAGSTER_HOME_NOT_WRITABLE", f"DAGSTER_HOME={home}", reason=error.strerror) from error
    return home


def environment(settings: Settings, url: str, home: Path) -> dict[str, str]:
    """Return the environment of Dagster's processes, with the settings of this command."""
    variables = {"DAGSTER_HOME": str(home), "SCD_REMOTE": url, "SCD_WAREHOUSE": settings.warehouse_path}
    if settings.declarations:
        variables["SCD_DECLARATIONS"] = str(settings.declarations)
    return {"PYTHONWARNINGS": _BETA_WARNINGS, **settings.environment.variables, **variables}


def command(folder: Path, port: int, code_location: str) -> list[str]:
    """Return the command that starts Dagster with the workspace of a folder, else with one code location."""
    workspace = folder / "workspace.yaml"
    target = ["-w", str(workspace)] if workspace.is_file() else ["-m", code_location]
    # Without the warning that `dg dev` replaces this command.
    return [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", str(port), *target]


@contextlib.contextmanager
def _spark(settings: Settings, report: Report) -> Iterator[str]:
    """Yield the address of the configured server, or use the one in the background.

    Where commands use none in the background, it ends with its last user.
    """
    if settings.remote not in ("", BACKGROUND):
        require_server(settings.remote)
        yield settings.remote
        return
    report("connecting to the Spark Connect server in the background, which is started if it does not run")
    lease = background.lease(settings.environment, find_installation(settings.environment))
    try:
        yield BACKGROUND
    finally:
        lease.release()
        if not settings.environment.has_background_server:
            background.stop_unused_servers(settings.environment)


def _serve(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Run Dagster, forward the first signal, and wait until it ends.

    The handlers are installed before Dagster starts: it would inherit that a signal is ignored.
    """
    signals: list[int] = []

    def store(number: int, _frame: Any) -> None:
        signals.append(number)

    # A terminal that is closed sends the last one.
    before = {number: signal.signal(number, store) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        dagster = subprocess.Popen(arguments, env=dict(environ), start_new_session=True)
        return _wait(dagster, signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(dagster: subprocess.Popen[bytes], signals: list[int]) -> int:
    while not signals:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return dagster.wait(timeout=0.3)
    dagster.send_signal(signal.SIGINT)
    try:
        dagster.wait(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(dagster.pid, signal.SIGKILL)
        dagster.wait()
    return 0
