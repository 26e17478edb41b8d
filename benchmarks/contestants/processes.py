"""Contestants without Spark: each load is a process of its own, from its start to its end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame

import benchmarks
from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.data import ATTRIBUTES, VERSION_COLUMNS
from benchmarks.programs.request import Snapshot
from benchmarks.sales import SALE_COLUMNS
from benchmarks.work import DIMENSION, File, Work

_FOLDER = Path(benchmarks.__file__).parent


class _Program(Contestant):
    """A program of `benchmarks.programs` in the environment of a requirements file."""

    program: ClassVar[str]
    environment: ClassVar[str]
    is_process = True

    def prepare(self, work: Work, site: Site) -> None:
        create_environment(site.environments, self.environment)
        if work.base:
            self._run(site, work.base)

    def load(self, work: Work, site: Site) -> None:
        self._run(site, work.deliveries)

    def rows(self, work: Work, site: Site) -> DataFrame:
        export = site.state / "export.parquet"
        self._run(site, (), str(export))
        columns = VERSION_COLUMNS if work.table == DIMENSION else SALE_COLUMNS
        return site.spark.read.parquet(str(export)).select(*columns)

    def _run(self, site: Site, files: Sequence[File], export: str = "") -> None:
        threads = site.spark.sparkContext.defaultParallelism
        request = {
            "state": str(site.state),
            "snapshots": [asdict(Snapshot(str(site.delivery(file)), str(file.at))) for file in files],
            "export": export,
            "attributes": ATTRIBUTES,
            "threads": threads,
        }
        python = site.environments / self.environment / "bin" / "python"
        command = [str(python), "-m", f"benchmarks.programs.{self.program}", json.dumps(request)]
        run_program(command, site.state, {"POLARS_MAX_THREADS": str(threads)})


class DuckDbSql(_Program):
    """Plain SQL on DuckDB."""

    name = "duckdb_sql"
    description = "plain SQL on DuckDB, a process"
    state_of = "duckdb_sql"
    program = "duckdb_sql"
    environment = "duckdb"


class DuckDbAsOf(_Program):
    """The ASOF JOIN of DuckDB."""

    name = "duckdb_asof"
    description = "ASOF JOIN of DuckDB, a process"
    state_of = "duckdb_asof"
    program = "duckdb_asof"
    environment = "duckdb"


class PolarsAsOf(_Program):
    """The join_asof of Polars."""

    name = "polars_asof"
    description = "join_asof of Polars, a process"
    state_of = "polars_asof"
    program = "polars_asof"
    environment = "polars"


class DbtSnapshot(_Program):
    """dbt snapshot on DuckDB."""

    name = "dbt_snapshot"
    description = "dbt snapshot on DuckDB, a process"
    state_of = "dbt_snapshot"
    program = "dbt_snapshot"
    environment = "dbt"


class DeltaRsMerge(_Program):
    """MERGE of delta-rs."""

    name = "deltars_merge"
    description = "MERGE of delta-rs, a process"
    state_of = "deltars_merge"
    program = "deltars_merge"
    environment = "deltars"


class DltScd2(_Program):
    """dlt's merge strategy scd2 on DuckDB."""

    name = "dlt_scd2"
    description = "dlt scd2 on DuckDB, a process"
    state_of = "dlt_scd2"
    program = "dlt_scd2"
    environment = "dlt"


class SqlMeshScd2(_Program):
    """SQLMesh's SCD_TYPE_2_BY_COLUMN on DuckDB."""

    name = "sqlmesh_scd2"
    description = "SQLMesh SCD_TYPE_2_BY_COLUMN on DuckDB, a process"
    state_of = "sqlmesh_scd2"
    program = "sqlmesh_scd2"
    environment = "sqlmesh"


def create_environment(folder: Path, name: str) -> None:
    """Create a Python environment with the packages of `environments/<name>.txt`; do nothing if it exists.

    Raises:
        RuntimeError: pip cannot install the packages.
    """
    target, requirements = folder / name, _FOLDER / "environments" / f"{name}.txt"
    installed = target / "requirements.txt"
    if installed.exists() and installed.read_text() == requirements.read_text():
        return
    shutil.rmtree(target, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    run_program([sys.executable, "-m", "venv", str(target)], folder)
    pip = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run_program([*pip, "-r", str(requirements)], folder)
    shutil.copyfile(requirements, installed)


def run_program(
    command: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None, seconds: float | None = None
) -> None:
    """Run a program from a folder, with further environment variables, for some seconds at most.

    Raises:
        TimeoutExpired: It took longer.
        RuntimeError: The program failed; the last lines of its output are the message.
    """
    variables = {**os.environ, "PYTHONPATH": str(_FOLDER.parent), "TZ": "UTC", "DO_NOT_TRACK": "1", **(environ or {})}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=seconds
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:3])}: {' / '.join(lines[-3:])}")
