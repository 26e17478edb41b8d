"""Plain SQL on DuckDB: the changed rows in a temporary table, an UPDATE that closes, an INSERT."""

from __future__ import annotations

import duckdb

from benchmarks.programs.request import OPEN_END, Request, Snapshot, run_program


def connect(request: Request) -> duckdb.DuckDBPyConnection:
    """Open the database of the state."""
    connection = duckdb.connect(str(request.state / "dim.duckdb"))
    connection.execute(f"SET threads = {request.threads}")
    return connection


def load(request: Request, snapshot: Snapshot) -> None:
    """Load one snapshot."""
    connection = connect(request)
    columns, attributes = ", ".join(request.columns), list(request.attributes)
    source = f"read_parquet('{snapshot.files}')"
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS dim AS SELECT 0::BIGINT AS customer_key, {columns}, TIMESTAMP '{OPEN_END}' AS "
        f"effective_from, TIMESTAMP '{OPEN_END}' AS effective_to, true AS current_flag FROM {source} LIMIT 0"
    )
    differs = " OR ".join(f"s.{name} IS DISTINCT FROM d.{name}" for name in attributes)
    connection.execute("BEGIN")
    connection.execute(
        f"CREATE TEMP TABLE changes AS SELECT d.customer_key AS closed_key, s.* FROM {source} s "
        f"FULL OUTER JOIN (FROM dim WHERE current_flag) d ON s.id = d.id "
        f"WHERE s.id IS NULL OR d.id IS NULL OR {differs}"
    )
    connection.execute(
        f"UPDATE dim SET effective_to = TIMESTAMP '{snapshot.at}', current_flag = false FROM changes "
        "WHERE dim.customer_key = changes.closed_key AND dim.current_flag"
    )
    connection.execute(
        f"INSERT INTO dim SELECT (SELECT coalesce(max(customer_key), 0) FROM dim) + row_number() OVER (), {columns}, "
        f"TIMESTAMP '{snapshot.at}', TIMESTAMP '{OPEN_END}', true FROM changes WHERE id IS NOT NULL"
    )
    connection.execute("COMMIT")
    connection.close()


def export(request: Request) -> None:
    """Write the rows as Parquet."""
    connect(request).execute(request.export_statement("dim"))


if __name__ == "__main__":
    run_program(load, export)
