"""`scd dev`: Dagster's web interface, beside a Spark Connect server that stays warm; both end together.

Runs use the server through SCD_REMOTE, so that none of them starts a Java machine of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import find_installation
from scd_pipeline.spark.remote import redacted_address, require_server
from scd_pipeline.spark.server import connect_server

if TYPE_CHECKING:
    from dagster._core.remote_origin import CodeLocationOrigin

    from scd_pipeline.cli.commands import Settings

Say = Callable[[str], None]
_END_SECONDS = 120  # Dagster gives each of its processes a minute
_INSTANCE = """\
# Made by `scd dev`, which leaves it alone from now on.
concurrency:
  pools:
    granularity: op # one writer per table
    default_limit: 1
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 300 # a run that failed or was terminated gives its table back
telemetry:
  enabled: false
nux:
  enabled: false
"""


def run(settings: Settings, *, port: int, code_location: str, say: Say) -> int:
    """Serve until the user has had enough (Ctrl-C).  Out: Dagster's exit code, 0 after Ctrl-C."""
    home = dagster_home(settings.environment.variables, Path.cwd())
    with _spark(settings, say) as url:
        environ = environment(settings, url, home)
        place = redacted_address(url)
        say(f"Dagster's home: {home}; warehouse: {settings.warehouse_path}; Spark: {place}")
        if not settings.remote:
            say(f"in other terminals: export SCD_REMOTE={place}")
        say(f"the web interface will be at http://127.0.0.1:{port}; Ctrl-C ends everything")
        return _serve(command(Path.cwd(), port, code_location), environ)


def dagster_home(environ: Mapping[str, str], folder: Path) -> Path:
    """$DAGSTER_HOME, else `.dagster` in the current folder, with the folder's dagster.yaml or one for beginners.

    Either is made where it is not there.  Errors: SetupError.
    """
    if environ.get("DAGSTER_HOME"):
        return _made(Path(environ["DAGSTER_HOME"]).expanduser().absolute())
    home = folder / ".dagster"
    home.mkdir(exist_ok=True)
    told = home / "dagster.yaml"
    if (folder / "dagster.yaml").is_file():
        shutil.copyfile(folder / "dagster.yaml", told)
    elif not told.exists():
        told.write_text(_INSTANCE, encoding="utf-8")
    return home


def _made(home: Path) -> Path:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"DAGSTER_HOME={home} cannot be made ({error.strerror}); set it to a folder that you can write, or to none"
        ) from error
    return home


def environment(settings: Settings, url: str, home: Path) -> dict[str, str]:
    """The environment of Dagster's processes: what holds here holds there."""
    told = {"DAGSTER_HOME": str(home), "SCD_REMOTE": url, "SCD_WAREHOUSE": settings.warehouse_path}
    if settings.declarations:
        told["SCD_DECLARATIONS"] = str(settings.declarations)
    return {**settings.environment.variables, **told}


def command(folder: Path, port: int, code_location: str) -> list[str]:
    """How Dagster is started: with the folder's workspace, or with this package's code location alone."""
    workspace = _workspace(folder)
    what = ["-w", str(workspace)] if workspace else ["-m", code_location]
    # Without warnings: that another command is newer is nothing to a user of this one.
    return [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", str(port), *what]


def location_of(folder: Path, code_location: str) -> CodeLocationOrigin | None:
    """Return the code location of a module as `command` serves it; None if the folder's workspace does not have it."""
    from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget

    workspace = _workspace(folder)
    if workspace is None:
        return ModuleTarget(code_location, None, str(folder), None).create_origins()[0]
    origins = WorkspaceFileTarget([str(workspace)]).create_origins()
    modules = {getattr(getattr(o, "loadable_target_origin", None), "module_name", None): o for o in origins}
    return modules.get(code_location)


def _workspace(folder: Path) -> Path | None:
    file = folder / "workspace.yaml"
    return file if file.is_file() else None


@contextlib.contextmanager
def _spark(settings: Settings, say: Say) -> Iterator[str]:
    """The server that is named, or one that is started, and stopped after its last user."""
    if settings.remote:
        require_server(settings.remote)
        yield settings.remote
        return
    installed = find_installation(settings.environment)
    say("starting a Spark Connect server")
    conf = spark_conf(jars=installed.jars)
    servers = settings.environment.cache_folder / "servers" / "dev"
    with connect_server(servers, conf, java_home=installed.java_home) as url:
        yield url
        say("stopping the Spark Connect server")


def _serve(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Run Dagster; pass the first signal on, and wait for its end.

    A handler has to be there before Dagster starts: a signal that is ignored here would be ignored there as well.
    """
    ended: list[int] = []

    def note(number: int, _frame: Any) -> None:
        ended.append(number)

    # The last is of a terminal that is closed.
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        dagster = subprocess.Popen(arguments, env=dict(environ), start_new_session=True)
        return _wait(dagster, ended)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(dagster: subprocess.Popen[bytes], ended: list[int]) -> int:
    while not ended:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return dagster.wait(timeout=0.3)
    dagster.send_signal(signal.SIGINT)
    try:
        dagster.wait(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(dagster.pid, signal.SIGKILL)
        dagster.wait()
    return 0
