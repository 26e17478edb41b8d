"""dbt snapshot on DuckDB: strategy `check` on all columns, hard deletes invalidate."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
from dbt.cli.main import dbtRunner

from benchmarks.programs.request import Request, Snapshot, run_program

_PROJECT = """
name: benchmark
version: "1.0"
profile: benchmark
snapshot-paths: [snapshots]
flags: {send_anonymous_usage_stats: false}
"""
_PROFILE = """
benchmark:
  target: dev
  outputs:
    dev: {{type: duckdb, path: "{database}", threads: {threads}, settings: {{threads: {threads}}}}}
"""
_SNAPSHOT = """
{% snapshot dim %}
{{ config(unique_key='id', strategy='check', check_cols='all', hard_deletes='invalidate') }}
select * from read_parquet('{{ env_var("SNAPSHOT_FILES") }}')
{% endsnapshot %}
"""


def load(request: Request, snapshot: Snapshot) -> None:
    """Load one snapshot."""
    project = request.state / "project"
    _write(project / "dbt_project.yml", _PROJECT)
    _write(project / "profiles.yml", _PROFILE.format(database=_database(request), threads=request.threads))
    _write(project / "snapshots" / "dim.sql", _SNAPSHOT)
    os.environ["SNAPSHOT_FILES"] = snapshot.files
    result = dbtRunner().invoke(["snapshot", "--project-dir", str(project), "--profiles-dir", str(project), "--quiet"])
    if not result.success:
        raise RuntimeError(f"dbt snapshot failed: {result.exception or [str(r.message) for r in result.result]}")


def export(request: Request) -> None:
    """Write the rows as Parquet."""
    start, end = request.business_time("dbt_valid_from"), request.business_time("dbt_valid_to")
    duckdb.connect(str(_database(request))).execute(request.export_statement("dim", start, end))


def _database(request: Request) -> Path:
    return request.state / "dbt.duckdb"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    run_program(load, export)
