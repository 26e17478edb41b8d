"""MERGE of delta-rs: the changed rows are found by DuckDB, and staged twice if they close and open a version."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.programs.request import OPEN_END, Request, Snapshot, run_program


def load(request: Request, snapshot: Snapshot) -> None:
    """Load one snapshot."""
    path, columns = str(request.state / "dim"), ", ".join(request.columns)
    connection = duckdb.connect()
    connection.execute(f"SET threads = {request.threads}")
    opened = f"TIMESTAMPTZ '{snapshot.at}+00' AS effective_from, TIMESTAMPTZ '{OPEN_END}+00' AS effective_to"
    source = f"read_parquet('{snapshot.files}')"
    if not DeltaTable.is_deltatable(path):
        rows = connection.sql(f"SELECT {columns}, {opened}, true AS current_flag FROM {source}")
        write_deltalake(path, rows.to_arrow_table())
        return
    table = DeltaTable(path)
    current = table.to_pyarrow_table(columns=[*request.columns, "current_flag"], filters=[("current_flag", "=", True)])
    connection.register("current_rows", current)
    differs = " OR ".join(f"s.{name} IS DISTINCT FROM t.{name}" for name in request.attributes)
    connection.execute(
        f"CREATE TEMP TABLE changes AS SELECT t.id AS closed_id, s.* FROM {source} s "
        f"FULL OUTER JOIN current_rows t ON s.id = t.id WHERE s.id IS NULL OR t.id IS NULL OR {differs}"
    )
    staged: pa.Table = connection.sql(
        f"SELECT closed_id AS merge_key, {columns}, {opened}, true AS current_flag FROM changes "
        f"WHERE closed_id IS NOT NULL UNION ALL "
        f"SELECT NULL, {columns}, {opened}, true FROM changes WHERE id IS NOT NULL"
    ).to_arrow_table()
    names = [*request.columns, "effective_from", "effective_to", "current_flag"]
    (
        table.merge(staged, "t.id = s.merge_key AND t.current_flag = true", source_alias="s", target_alias="t")
        .when_matched_update({"effective_to": "s.effective_from", "current_flag": "false"})
        .when_not_matched_insert({name: f"s.{name}" for name in names})
        .execute()
    )


def export(request: Request) -> None:
    """Write the rows as Parquet."""
    connection = duckdb.connect()
    connection.register("dim", DeltaTable(str(request.state / "dim")).to_pyarrow_table())
    connection.execute(request.export_statement("dim"))


if __name__ == "__main__":
    run_program(load, export)
