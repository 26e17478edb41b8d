"""A PostgreSQL server of the tests' own, in a folder of its own; the programs are those of the machine's package."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scd_pipeline.environment import Environment
from scd_pipeline.spark.jars import POSTGRESQL_LOCK_FILE, find_optional_jars
from scd_pipeline.spark.server import free_port

USER, PASSWORD = "loader", "pAsSwOrD-of-the-loader"
_PACKAGES = ("usr/lib/postgresql/*", "usr/pgsql-*", "opt/homebrew/opt/postgresql*", "usr/local/opt/postgresql*")
_LISTEN = "127.0.0.1"
_UNPRIVILEGED = 65534
"""The number of the user without permissions."""


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, which packages often put outside of the PATH; None without one."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    installed = sorted(path for folder in _PACKAGES for path in Path("/").glob(f"{folder}/bin/initdb"))
    return installed[-1].parent if installed else None


def problem() -> str:
    """Return why the tests of databases are skipped; empty if they run."""
    if programs() is None:
        return "it is not installed; install the package postgresql"
    if not find_optional_jars(Environment.from_env().cache_folder, [POSTGRESQL_LOCK_FILE]):
        return "its JDBC driver is missing; run `scd setup --postgresql`"
    return ""


def report() -> str:
    """Return whether the tests of databases run, for the first lines of a test run."""
    reason = problem()
    return f"PostgreSQL: its tests are skipped: {reason}" if reason else f"PostgreSQL: {programs()}"


@dataclass(frozen=True)
class Database:
    """A running server with one database."""

    programs: Path
    port: int

    @property
    def url(self) -> str:
        """The address of the database."""
        return f"jdbc:postgresql://{_LISTEN}:{self.port}/postgres"

    def run(self, sql: str) -> None:
        """Run statements of SQL."""
        target = ["-h", _LISTEN, "-p", str(self.port), "-U", USER, "-d", "postgres"]
        command = [str(self.programs / "psql"), *target, "-v", "ON_ERROR_STOP=1", "-q", "-c", sql]
        subprocess.run(command, check=True, env={**os.environ, "PGPASSWORD": PASSWORD}, timeout=60)


@contextlib.contextmanager
def server(programs: Path) -> Iterator[Database]:
    """Yield a server that requires a password, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="scd-pg-") as folder:
        owner = _owner(folder)
        secret = Path(folder, "password")
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        data, port = Path(folder, "data"), free_port()
        login = ["--username", USER, "--auth", "scram-sha-256", "--pwfile", str(secret)]
        _run([str(programs / "initdb"), "-D", str(data), "--no-sync", *login], owner)
        settings = f"-c listen_addresses={_LISTEN} -p {port} -k {folder} -c fsync=off -c timezone=Asia/Kolkata"
        control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(Path(folder, "log"))]
        _run([*control, "-o", settings, "start"], owner)
        try:
            yield Database(programs, port)
        finally:
            _run([*control, "-m", "immediate", "stop"], owner)


def _owner(folder: str) -> str | None:
    """Return the user who runs the server, and give the folder to it: the server refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    user = pwd.getpwuid(_UNPRIVILEGED)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return user.pw_name


def _run(command: Sequence[str], user: str | None) -> None:
    done = subprocess.run(command, user=user, cwd="/", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
