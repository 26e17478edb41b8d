"""The join_asof of Polars. The first delivery has the versions of a dimension, the next one has facts.

Each version ends when the next one of its entity begins, so that the join needs only the beginning.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.programs.request import Request, Snapshot, run_program


def load(request: Request, snapshot: Snapshot) -> None:
    """Create the dimension, or the facts with the key of the version in force at each."""
    dimension = _dimension(request)
    rows = pl.scan_parquet(snapshot.files)
    if not dimension.exists():
        versions = rows.rename({"changed_at": "effective_from"}).with_row_index("customer_key")
        versions.with_columns(pl.col("customer_key").cast(pl.Int64)).collect().write_parquet(dimension)
        return
    versions = pl.scan_parquet(dimension).select("customer_key", "id", "effective_from").sort("effective_from")
    joined = rows.sort("sold_at").join_asof(versions, left_on="sold_at", right_on="effective_from", by="id")
    facts = joined.select(*rows.collect_schema().names(), pl.col("customer_key").fill_null(-1))
    facts.collect().write_parquet(_facts(request))


def export(request: Request) -> None:
    """Write the facts with the beginning of the version of each as Parquet."""
    versions = pl.scan_parquet(_dimension(request)).select("customer_key", "id", "effective_from")
    facts = pl.scan_parquet(_facts(request)).join(versions, on=["customer_key", "id"], how="left")
    facts.select("sale_id", "id", "sold_at", "amount", "effective_from").collect().write_parquet(request.export)


def _dimension(request: Request) -> Path:
    return request.state / "dim.parquet"


def _facts(request: Request) -> Path:
    return request.state / "sales.parquet"


if __name__ == "__main__":
    run_program(load, export)
