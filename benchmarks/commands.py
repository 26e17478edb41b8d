"""Measures commands as whole processes, as a user runs them: `scd` with a warm server and embedded, and Dagster's runs.

The project has one dimension and one fact, and deliveries of 100 rows each; the queries and the demo use the example of
this repository.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.contestants.processes import run_program
from benchmarks.dagster_client import DagsterClient
from benchmarks.machine import machine_id
from benchmarks.measure import measure, process_ids
from benchmarks.results import Key, Result, append_result, measured_keys, read_results
from benchmarks.servers import warm_server
from scd_pipeline.spark.server import Server, free_port

EMBEDDED, SERVER, DAGSTER = "embedded", "warm_server", "dagster"
"""The contestants: a process with its own Spark, one with a warm Spark Connect server, and a run in `scd dev`."""

_ROWS = 100
_ROOT = Path(benchmarks.__file__).parents[1]
_EXAMPLE = _ROOT / "examples" / "congress"
_DEMO = str(_EXAMPLE / "demo.py")
_QUERIES = {
    "scd_sql": ("sql", "SELECT party, count(*) AS members FROM dim_legislator WHERE current_flag GROUP BY party"),
    "scd_history": ("history", "dim_legislator", "bioguide=S001191"),
    "scd_as_of": ("as-of", "dim_legislator", "2016-01-01", "state=VT"),
}
_DECLARATIONS = {
    "dim_customer": """\
dimension: dim_customer
business_key: {id: int}
sources: {crm: {feed: {path: "../customers/{date}.csv", effective_at: changed_at}}}
attributes: {city: 2, segment: 2, email: 1}
""",
    "fct_sale": """\
fact: fct_sale
grain: {sale: int}
event_time: sold_at
dimensions: {customer: {dimension: dim_customer, key: customer}}
measures: {amount: "decimal(12,2)"}
sources: {till: {feed: "../sales/{date}.csv"}}
""",
}
_PROCESS_SECONDS = 600
_SERVED_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder with declarations, deliveries and a warehouse.

    Attributes:
        folder: The folder of the project, the current folder of its commands.
        declarations: The folder of the declarations.
        warehouse: The folder of the tables.
        remote: The address of the server; empty for an embedded Spark.
    """

    folder: Path
    declarations: Path
    warehouse: Path
    remote: str = ""

    def run(self, *command: str) -> None:
        """Run a command to its end.

        Raises:
            RuntimeError: It failed; the last lines of its output are the message.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        run_program([sys.executable, *command], self.folder, self.environ, _PROCESS_SECONDS)

    def scd(self, *arguments: str) -> None:
        """Run `scd` with these arguments."""
        self.run("-m", "scd_pipeline", *arguments)

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of its commands, in addition to those of this process."""
        return {
            "SCD_WAREHOUSE": str(self.warehouse),
            "SCD_DECLARATIONS": str(self.declarations),
            "SCD_REMOTE": self.remote,
            "SCD_SERVER": "off",
            "DAGSTER_HOME": "",
            "PYTHONPATH": str(_ROOT),
        }

    def deliver(self) -> None:
        """Write the next delivery of the dimension and of the fact: half of the customers are new."""
        number = len(list((self.folder / "customers").glob("*.csv")))
        first = number * _ROWS // 2
        day = f"{date(2024, 1, 1) + timedelta(days=number)}"
        customers = [
            f"{id_},{day},City {(id_ * 7 + number) % 50},segment {id_ % 5},c{id_}@example.com"
            for id_ in range(first, first + _ROWS)
        ]
        sales = [f"{number * _ROWS + row},{day},{first + row},{row}.50" for row in range(_ROWS)]
        _write(self.folder / "customers" / f"{day}.csv", "id,changed_at,city,segment,email", customers)
        _write(self.folder / "sales" / f"{day}.csv", "sale,sold_at,customer,amount", sales)


def _write(file: Path, header: str, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *lines, ""]), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Command:
    """A measured command.

    Attributes:
        name: Its name in the results.
        contestant: The kind of Spark that it uses.
        call: The measured run.
        before: What is done before each run.
        size: The number of delivered rows.
        server_ids: Returns the running processes that work for it, which are measured with it.
    """

    name: str
    contestant: str
    call: Callable[[], object]
    before: Callable[[], object] = lambda: None
    size: int = 0
    server_ids: Callable[[], Iterable[int]] = tuple


MEASURED = (
    *[(name, 0, contestant) for name in (*_QUERIES, "demo_again") for contestant in (SERVER, EMBEDDED)],
    ("scd_load", _ROWS, SERVER),
    ("first_run", _ROWS, DAGSTER),
    ("run", _ROWS, DAGSTER),
)
"""The name, the size and the contestant of each command."""


def are_measured(results: Path, rounds: int) -> bool:
    """Return whether a file has the results of all commands on one machine."""
    planned = _planned(rounds)
    return measured_keys(read_results(results), planned, machine_id()) == planned


def _planned(rounds: int) -> set[Key]:
    return {
        (name, size, 0, contestant, number) for name, size, contestant in MEASURED for number in range(1, rounds + 1)
    }


def run_commands(
    folder: Path, results: Path, *, rounds: int, cores: int, memory: str, report: Callable[[str], None]
) -> None:
    """Run all commands in turn and append their results; runs that the results have are skipped.

    Args:
        folder: The folder in which the projects are created, each run its own.
        results: The file of the results.
        rounds: The number of measured runs of each command.
        cores, memory: The cores and the heap of the warm server.
        report: Receives one line for each step.
    """
    stopwatch = Stopwatch(results, report, _planned(rounds), machine_id())
    base = folder / f"commands-{time.time_ns()}"
    try:
        with warm_server(base / "server", cores=cores, memory=memory) as server:
            report("commands: loading the example")
            commands = _commands(base, server)
            for number in range(1, rounds + 1):
                for command in commands:
                    stopwatch.measure(command, number)
        for number in range(1, rounds + 1):
            _measure_dagster(_new_project(base / f"dagster-{number}"), number, stopwatch)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _commands(base: Path, server: Server) -> list[Command]:
    """Create the projects and return the commands, those with the server after two runs."""
    example = Project(base / "example", _EXAMPLE, base / "example" / "warehouse")
    project = _new_project(base / "project", server.url)
    served = replace(example, remote=server.url)
    served.run(_DEMO)
    commands = [
        *[Command(name, SERVER, partial(served.scd, *arguments)) for name, arguments in _QUERIES.items()],
        Command("scd_load", SERVER, partial(project.scd, "load", "dim_customer"), project.deliver, _ROWS),
        Command("demo_again", SERVER, partial(served.run, _DEMO)),
    ]
    with_server = [replace(command, server_ids=lambda: (server.pid,)) for command in commands]
    for command in with_server * 2:
        command.before()
        command.call()
    return [
        *with_server,
        *[Command(name, EMBEDDED, partial(example.scd, *arguments)) for name, arguments in _QUERIES.items()],
        Command("demo_again", EMBEDDED, partial(example.run, _DEMO)),
    ]


def _new_project(folder: Path, remote: str = "") -> Project:
    """Create a project with its first delivery."""
    declarations = folder / "declarations"
    declarations.mkdir(parents=True)
    for name, text in _DECLARATIONS.items():
        (declarations / f"{name}.yaml").write_text(text, encoding="utf-8")
    project = Project(folder, declarations, folder / "warehouse", remote)
    project.deliver()
    return project


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Measures commands and appends their results to a file; planned runs that the file has are skipped."""

    results: Path
    report: Callable[[str], None]
    planned: set[Key]
    machine: str

    def measure(self, command: Command, number: int) -> None:
        """Measure one run of a command; `number` is its round."""
        result = Result(command.name, command.size, 0, command.contestant, number, "none", machine=self.machine)
        if result.key in measured_keys(read_results(self.results), self.planned, self.machine):
            return
        command.before()
        try:
            result = replace(result, **asdict(measure(command.call, new_processes=True, servers=command.server_ids())))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            result = replace(result, outcome="failed", error=str(error)[:300])
        append_result(self.results, result)
        self.report(f"{command.name:18} {command.contestant:24} round {number}: {result.seconds:7.2f} s {result.error}")


def _measure_dagster(project: Project, number: int, stopwatch: Stopwatch) -> None:
    """Measure the first run of a fresh `scd dev`, and a later one: of the dimension, and then of the fact."""
    existing = process_ids()

    def server_ids() -> Iterable[int]:
        """Return the processes of `scd dev` and of the Spark that it has started."""
        return process_ids() - existing

    with _served(project) as client:

        def materialize() -> None:
            for table in ("dim_customer", "fct_sale"):
                client.run_job(f"{table}_job", partitions=f"{table}_deliveries")

        stopwatch.measure(Command("first_run", DAGSTER, materialize, size=_ROWS, server_ids=server_ids), number)
        materialize()
        stopwatch.measure(Command("run", DAGSTER, materialize, project.deliver, _ROWS, server_ids), number)


@contextmanager
def _served(project: Project) -> Iterator[DagsterClient]:
    """Start `scd dev` in the folder of the project, and end it."""
    port = free_port()
    command = [sys.executable, "-m", "scd_pipeline", "dev", "--port", str(port)]
    log: Any
    with (project.folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=project.folder,
            env={**os.environ, **project.environ},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    client = DagsterClient(port)
    try:
        client.wait(process, _SERVED_SECONDS)
        yield client
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=_SERVED_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
