"""The merge strategies of dlt, with its default destination DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dlt
import duckdb
from dlt.pipeline.exceptions import PipelineStepFailed

from scd_pipeline_tests.semantics.compared.programs.request import Delivery, Result, Task, fetch, run_program

_COLUMNS = "* RENAME (_dlt_valid_from AS effective_from, _dlt_valid_to AS effective_to)"


def load(tasks: Sequence[Task], folder: Path) -> Iterator[Result]:
    """Load each task by a pipeline with a database of its own."""
    dlt.config["load.raise_on_max_retries"] = 1  # a load that fails is not repeated
    dlt.config["runtime.dlthub_telemetry"] = False
    for task in tasks:
        database = folder / f"{task.name}.duckdb"
        failed = [number for number, each in enumerate(task.deliveries, 1) if not _run(task, each, database)]
        columns = _COLUMNS if task.options["strategy"] == "scd2" else "*"
        with duckdb.connect(str(database)) as connection:
            rows = fetch(connection, f"SELECT {columns} FROM loaded.history")
        yield Result(rows, failed)


def _run(task: Task, delivery: Delivery, database: Path) -> bool:
    """Load a delivery, and return whether that succeeded."""
    pipeline = dlt.pipeline(
        task.name,
        pipelines_dir=str(database.parent / "pipelines"),
        destination=dlt.destinations.duckdb(str(database)),
        dataset_name="loaded",
    )
    try:
        pipeline.run(_resource(task, delivery)).raise_on_failed_jobs()
    except PipelineStepFailed:
        pipeline.abort_packages()
        return False
    return True


def _resource(task: Task, delivery: Delivery) -> Any:
    options = dict(task.options)
    disposition = {"disposition": "merge", "strategy": options.pop("strategy")}
    if disposition["strategy"] == "scd2":
        disposition["boundary_timestamp"] = delivery.at
    if "incremental" in options:
        options["incremental"] = dlt.sources.incremental(options["incremental"])
    return dlt.resource(delivery.rows, name="history", write_disposition=disposition, **options)


if __name__ == "__main__":
    run_program(load)
