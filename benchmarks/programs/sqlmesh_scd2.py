"""The model kind SCD_TYPE_2_BY_COLUMN of SQLMesh on DuckDB, on all columns, hard deletes invalidate."""

from __future__ import annotations

from pathlib import Path

import duckdb
from sqlmesh import Context

from benchmarks.programs.request import OPEN_END, Request, Snapshot, run_program

_CONFIGURATION = """
gateways:
  local:
    connection: {{type: duckdb, database: "{database}", connector_config: {{threads: {threads}}}}}
default_gateway: local
model_defaults: {{dialect: duckdb, start: 2023-12-31}}
"""
_MODEL = """
MODEL (
  name benchmark.dim,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key id, columns *, invalidate_hard_deletes true, execution_time_as_valid_from true
  ),
  cron '@daily'
);
SELECT id::BIGINT AS id, {columns} FROM read_parquet('{files}')
"""
_TYPES = {"string": "VARCHAR", "int": "INTEGER", "timestamp": "TIMESTAMPTZ"}


def load(request: Request, snapshot: Snapshot) -> None:
    """Load one snapshot. The model reads a link that is set to the snapshot, so that it need not change."""
    project, source = request.state / "project", request.state / "snapshot"
    source.unlink(missing_ok=True)
    source.symlink_to(snapshot.folder)
    is_first = not project.exists()
    if is_first:
        (project / "models").mkdir(parents=True)
    types = {name: _TYPES.get(data_type, data_type) for name, data_type in request.attributes.items()}
    columns = ", ".join(f"{name}::{data_type} AS {name}" for name, data_type in types.items())
    # The state is copied after it was prepared, so both files are written for the present folder.
    configuration = _CONFIGURATION.format(database=_database(request), threads=request.threads)
    (project / "config.yaml").write_text(configuration)
    (project / "models" / "dim.sql").write_text(_MODEL.format(columns=columns, files="snapshot/*.parquet"))
    context = Context(paths=str(project))
    if is_first:
        context.plan(auto_apply=True, no_prompts=True, execution_time=snapshot.at, skip_tests=True)
    else:
        context.run(execution_time=snapshot.at, ignore_cron=True)
    context.close()


def export(request: Request) -> None:
    """Write the rows as Parquet."""
    end = f"coalesce(valid_to, TIMESTAMPTZ '{OPEN_END}+00')"
    statement = request.export_statement("benchmark.dim", "valid_from", end)
    duckdb.connect(str(_database(request))).execute(statement)


def _database(request: Request) -> Path:
    return request.state / "history.duckdb"


if __name__ == "__main__":
    run_program(load, export)
