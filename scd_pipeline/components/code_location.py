"""Describe a Dagster code location: its schedules with what they run, its sensors and its pools.

`python -m scd_pipeline.components.code_location MODULE` prints the description as JSON. Each call is a process of its
own, as Dagster's, because a module of definitions runs code of the project.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import islice, pairwise
from pathlib import Path

import dagster as dg

from scd_pipeline.components.dagster_internals import cron_times, load_repository, watches_failed_runs
from scd_pipeline.operations.checklist.state import CodeLocation, Schedule
from scd_pipeline.operations.dagster_names import ATTEMPTS_TAG

_START = datetime(2024, 1, 1, tzinfo=timezone.utc)
_RUNS = 60
"""The number of runs between which the longest gap is searched: those of two months, if they are daily."""


def describe_code_location(repository: dg.RepositoryDefinition, name: str) -> CodeLocation:
    """Return what a code location defines, under this name."""
    nodes = [node for job in repository.get_all_jobs() for node in job.graph.nodes]
    pools = {node.name: pool for node in nodes if (pool := getattr(node.definition, "pool", None)) is not None}
    tags = {node.name: node.definition.tags.get(ATTEMPTS_TAG) for node in nodes}
    return CodeLocation(
        name,
        schedules=tuple(_schedules(repository)),
        sensors=tuple(sensor.name for sensor in repository.sensor_defs),
        alert_sensors=tuple(sensor.name for sensor in repository.sensor_defs if watches_failed_runs(sensor)),
        pools=pools,
        load_attempts={op: int(attempts) for op, attempts in tags.items() if attempts is not None},
    )


def _schedules(repository: dg.RepositoryDefinition) -> Iterator[Schedule]:
    for schedule in repository.schedule_defs:
        job = repository.get_job(schedule.job_name)
        crons = [schedule.cron_schedule] if isinstance(schedule.cron_schedule, str) else [*schedule.cron_schedule]
        yield Schedule(
            schedule.name,
            ", ".join(crons),
            min(_gap_hours(cron, schedule.execution_timezone) for cron in crons),
            ops=tuple(node.name for node in job.graph.nodes),
            checks=tuple(sorted(key.to_user_string() for key in job.asset_layer.asset_graph.asset_check_keys)),
        )


def _gap_hours(cron: str, zone: str | None) -> float:
    """Return the longest time between two runs of a cron expression."""
    times = list(islice(cron_times(cron, zone, _START), _RUNS))
    return max((after - before).total_seconds() for before, after in pairwise(times)) / 3600


def main(arguments: Sequence[str]) -> None:
    """Print the code location of a module as the last line."""
    (module,) = arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dagster, about its own features
        description = describe_code_location(load_repository(module, Path.cwd()), module)
    print(description.to_json())


if __name__ == "__main__":
    main(sys.argv[1:])
