"""The merge strategy `scd2` of dlt on DuckDB; the rows are an Arrow table with a hash that DuckDB computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dlt
import duckdb
import pyarrow as pa

from benchmarks.programs.request import OPEN_END, Request, Snapshot, run_program


def load(request: Request, snapshot: Snapshot) -> None:
    """Load one snapshot."""
    disposition = {
        "disposition": "merge",
        "strategy": "scd2",
        "row_version_column_name": "row_hash",
        "boundary_timestamp": snapshot.at.replace(" ", "T") + "+00:00",
    }

    def rows() -> Iterator[pa.Table]:
        connection = duckdb.connect()
        connection.execute(f"SET threads = {request.threads}")
        texts = ", ".join(f"coalesce({name}::VARCHAR, '~')" for name in request.attributes)
        source = f"read_parquet('{snapshot.files}')"
        yield connection.sql(f"SELECT *, md5(concat_ws('|', id, {texts})) AS row_hash FROM {source}").to_arrow_table()

    pipeline = dlt.pipeline(
        "benchmark",
        pipelines_dir=str(request.state / "pipelines"),
        destination=dlt.destinations.duckdb(str(_database(request))),
        dataset_name="benchmark",
    )
    resource = dlt.resource(rows, name="dim", write_disposition=disposition)
    pipeline.run(resource).raise_on_failed_jobs()


def export(request: Request) -> None:
    """Write the rows as Parquet."""
    end = f"coalesce(_dlt_valid_to, TIMESTAMPTZ '{OPEN_END}+00')"
    statement = request.export_statement("benchmark.dim", "_dlt_valid_from", end)
    duckdb.connect(str(_database(request))).execute(statement)


def _database(request: Request) -> Path:
    return request.state / "dlt.duckdb"


if __name__ == "__main__":
    run_program(load, export)
