"""dbt snapshots on DuckDB: one run for the first delivery of each task, one for the second delivery of each, ..."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
from dbt.cli.main import dbtRunner

from scd_pipeline_tests.semantics.compared.programs.request import Delivery, Result, Task, fetch, run_program

_PROJECT = """
name: compared
version: "1.0"
profile: compared
snapshot-paths: [snapshots]
flags: {send_anonymous_usage_stats: false}
"""
_PROFILE = """
compared:
  target: dev
  outputs:
    dev: {{type: duckdb, path: "{database}", threads: 1}}
"""
_SNAPSHOT = """
{{% snapshot {name} %}}
{{{{ config({options}) }}}}
select * from read_parquet('{{{{ env_var("DELIVERIES") }}}}/{name}.parquet')
{{% endsnapshot %}}
"""
_TYPES = {"id": "INTEGER", "updated_at": "TIMESTAMP"}


def load(tasks: Sequence[Task], folder: Path) -> Iterator[Result]:
    """Load all tasks into one database."""
    database = folder / "dbt.duckdb"
    _write_project(folder / "project", tasks, database)
    starts, failed = list[dt.datetime](), {task.name: list[int]() for task in tasks}
    for number in range(1, max(len(task.deliveries) for task in tasks) + 1):
        starts.append(dt.datetime.now(dt.timezone.utc).replace(tzinfo=None))
        loaded = [task for task in tasks if number <= len(task.deliveries)]
        for name in _run(folder, number, loaded):
            failed[name].append(number)
    with duckdb.connect(str(database)) as connection:
        for task in tasks:
            rows = fetch(connection, f"SELECT * FROM {task.name}")
            yield Result([_with_business_times(row, task, starts) for row in rows], failed[task.name])


def _write_project(project: Path, tasks: Sequence[Task], database: Path) -> None:
    (project / "snapshots").mkdir(parents=True)
    (project / "dbt_project.yml").write_text(_PROJECT)
    (project / "profiles.yml").write_text(_PROFILE.format(database=database))
    for task in tasks:
        options = ", ".join(f"{name}={value!r}" for name, value in task.options.items())
        (project / "snapshots" / f"{task.name}.sql").write_text(_SNAPSHOT.format(name=task.name, options=options))


def _run(folder: Path, number: int, tasks: Sequence[Task]) -> list[str]:
    """Run the snapshots of tasks on their delivery of a number, and return the names of those that failed."""
    deliveries, project = folder / f"deliveries_{number}", str(folder / "project")
    deliveries.mkdir()
    for task in tasks:
        _write_delivery(task.deliveries[number - 1], deliveries / f"{task.name}.parquet")
    os.environ["DELIVERIES"] = str(deliveries)
    names = [task.name for task in tasks]
    folders = ["--project-dir", project, "--profiles-dir", project]
    outcome = dbtRunner().invoke(["snapshot", *folders, "--quiet", "--select", *names])
    if outcome.exception:
        raise outcome.exception
    return [each.node.name for each in outcome.result if each.status != "success"]


def _write_delivery(delivery: Delivery, path: Path) -> None:
    columns = ", ".join(f"{name} {_TYPES.get(name, 'VARCHAR')}" for name in delivery.columns)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE delivery ({columns})")
        for row in delivery.rows:
            values = [_naive(row[name]) for name in delivery.columns]
            connection.execute(f"INSERT INTO delivery VALUES ({', '.join('?' * len(values))})", values)
        connection.execute(f"COPY delivery TO '{path}' (FORMAT parquet)")


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def _with_business_times(row: dict[str, Any], task: Task, starts: Sequence[dt.datetime]) -> dict[str, Any]:
    """Return a row with our names, in which a time of the clock is that of the delivery that the run loads."""
    start, end = (_business_time(row[name], task, starts) for name in ("dbt_valid_from", "dbt_valid_to"))
    return {**row, "is_deleted": row.get("dbt_is_deleted") == "True", "effective_from": start, "effective_to": end}


def _business_time(time: dt.datetime | None, task: Task, starts: Sequence[dt.datetime]) -> dt.datetime | None:
    run = sum(start <= time for start in starts) if time else 0
    return task.deliveries[run - 1].at if run else time


if __name__ == "__main__":
    run_program(load)
