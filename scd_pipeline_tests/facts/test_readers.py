"""How readers other than Spark read each kind of table; docs/how-to/read-without-spark.md describes it for users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import DeltaProtocolError

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col

Rows = list[tuple[Any, ...]]
TABLES = ("dim_player", "dim_player_changes", "dim_player_audit", "fct_play", "fct_play_changes")
OPEN_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


def files(path: str) -> list[str]:
    """The Parquet files of the table's newest version, as its log lists them."""
    return [uri.removeprefix("file://") for uri in deltalake.DeltaTable(path).file_uris()]


def with_pyarrow(path: str, columns: Sequence[str]) -> Rows:
    rows = ds.dataset(files(path)).to_table(columns=list(columns)).to_pylist()
    return [tuple(row[name] for name in columns) for row in rows]


def with_polars(path: str, columns: Sequence[str]) -> Rows:
    return pl.read_delta(path, columns=list(columns)).rows()


def with_polars_of_files(path: str, columns: Sequence[str]) -> Rows:
    return pl.read_parquet(files(path), columns=list(columns)).rows()


def with_duckdb_of_files(path: str, columns: Sequence[str]) -> Rows:
    names = ", ".join(f'epoch_us("{name}")' for name in columns)
    rows = duckdb.connect().execute(f"SELECT {names} FROM read_parquet({files(path)!r})").fetchall()
    utc = pa.timestamp("us", "UTC")
    return [tuple(pa.scalar(value, pa.int64()).cast(utc).as_py() for value in row) for row in rows]


def with_datafusion(path: str, columns: Sequence[str]) -> Rows:
    names = ", ".join(f'"{name}"' for name in columns)
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    rows = pa.table(builder.execute(f"SELECT {names} FROM t").read_all()).to_pylist()
    return [tuple(row.values()) for row in rows]


READERS: tuple[Callable[[str, Sequence[str]], Rows], ...] = (
    with_pyarrow,
    with_polars,
    with_polars_of_files,
    with_duckdb_of_files,
    with_datafusion,
)


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=str)


@pytest.mark.slow
@pytest.mark.rule("S1")
def test_each_reader_returns_the_stored_times_of_each_table(played: Warehouse) -> None:
    """The open end is in the year 9999, and the unknown member begins in the year 1."""
    assert set(TABLES) <= set(played.tables())
    for name in TABLES:
        read = played.table(name).read()
        times = [field.name for field in read.schema.fields if field.dataType.simpleString() == "timestamp"]
        assert times, name
        expected = in_order([tuple(row.values()) for row in read.select(*times).toArrow().to_pylist()])
        path = f"{played.path}/{name}"
        kinds = {c.name: c.physical_type for file in files(path) for c in pq.ParquetFile(file).schema}
        assert {kinds[time] for time in times} == {"INT64"}, name
        for reader in READERS:
            assert in_order(reader(path, times)) == expected, f"{name} by {reader.__name__}"
        plain = [field.name for field in read.schema.fields if not field.dataType.simpleString().startswith("map")]
        rows = in_order([tuple(row.values()) for row in read.select(*map(col, plain)).toArrow().to_pylist()])
        for reader in (with_polars, with_datafusion):
            assert in_order(reader(path, plain)) == rows, f"{name} by {reader.__name__}"
    versions = pl.read_delta(f"{played.path}/dim_player")
    current = versions.filter(pl.col("effective_to") > datetime(2025, 1, 1, tzinfo=timezone.utc))
    assert current.select("tier", "effective_to").rows() == [("Gold", OPEN_END)]


@pytest.mark.slow
def test_some_readers_support_deletion_vectors_and_renamed_columns(played: Warehouse) -> None:
    """A deleted row is still in its Parquet file; REORG removes it. A renamed column keeps its name in the files."""
    dimension, fact = f"{played.path}/dim_player", f"{played.path}/fct_play"
    played.spark.sql(f"DELETE FROM delta.`{dimension}` WHERE tier = 'Bronze'").collect()
    left = {(None,), ("Silver",), ("Gold",)}
    for reader in (with_polars, with_datafusion):
        assert set(reader(dimension, ["tier"])) == left
    for reader in (with_pyarrow, with_polars_of_files):
        assert set(reader(dimension, ["tier"])) == {*left, ("Bronze",)}
    with pytest.raises(DeltaProtocolError, match="deletionVectors"):
        deltalake.DeltaTable(dimension).to_pyarrow_table()
    played.spark.sql(f"REORG TABLE delta.`{dimension}` APPLY (PURGE)").collect()
    assert set(with_pyarrow(dimension, ["tier"])) == left

    played.table("fct_play").rename_column("coins", "money")
    assert set(with_datafusion(fact, ["money"])) == {(1,), (2,), (3,)}
    with pytest.raises(Exception, match="columnMapping"):
        with_polars(fact, ["money"])
    assert "coins" in pq.ParquetFile(files(fact)[0]).schema_arrow.names
