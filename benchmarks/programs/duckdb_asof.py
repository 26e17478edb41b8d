"""The ASOF JOIN of DuckDB. The first delivery has the versions of a dimension, the next one has facts.

Each version ends when the next one of its entity begins, so that the join needs only the beginning.
"""

from __future__ import annotations

import duckdb

from benchmarks.programs.duckdb_sql import connect
from benchmarks.programs.request import Request, Snapshot, run_program


def load(request: Request, snapshot: Snapshot) -> None:
    """Create the dimension, or the facts with the key of the version in force at each."""
    connection = connect(request)
    source = f"read_parquet('{snapshot.files}')"
    if not _has_dimension(connection):
        connection.execute(
            "CREATE TABLE dim AS SELECT row_number() OVER () AS customer_key, * RENAME (changed_at AS effective_from) "
            f"FROM {source}"
        )
    else:
        connection.execute(
            f"CREATE TABLE sales AS SELECT f.*, coalesce(d.customer_key, -1) AS customer_key FROM {source} f "
            "ASOF LEFT JOIN dim d ON f.id = d.id AND f.sold_at >= d.effective_from"
        )
    connection.close()


def _has_dimension(connection: duckdb.DuckDBPyConnection) -> bool:
    return ("dim",) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()


def export(request: Request) -> None:
    """Write the facts with the beginning of the version of each as Parquet."""
    connect(request).execute(
        "COPY (SELECT s.sale_id, s.id, s.sold_at, s.amount, d.effective_from FROM sales s "
        f"LEFT JOIN dim d ON s.customer_key = d.customer_key AND s.id = d.id) TO '{request.export}' (FORMAT parquet)"
    )


if __name__ == "__main__":
    run_program(load, export)
