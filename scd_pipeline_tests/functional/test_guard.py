"""A truncated snapshot is rejected before anything is written, unless an option of the command overrides it (S27)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import EXAMPLE

TABLES = ("dim_legislator", "dim_legislator_changes")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A folder with the declaration, two complete snapshots, and a snapshot with only its first 100 rows."""
    folder = tmp_path / "landing"
    (folder / "snapshots").mkdir(parents=True)
    shutil.copy(EXAMPLE / "dim_legislator.yaml", folder)
    for day in ("2014-01-09", "2014-04-05"):
        shutil.copy(EXAMPLE / "snapshots" / f"dim_{day}.parquet", folder / "snapshots")
    complete = pyarrow.parquet.read_table(EXAMPLE / "snapshots" / "dim_2014-07-02.parquet")
    pyarrow.parquet.write_table(complete.slice(0, 100), folder / "snapshots" / "dim_2014-07-02.parquet")
    return folder


def scd(*arguments: str, remote: str, warehouse: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    environ = {**os.environ, "SCD_REMOTE": remote, "SCD_WAREHOUSE": str(warehouse)}
    command = [sys.executable, "-m", "scd_pipeline", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.slow
def test_a_truncated_snapshot_is_rejected_unless_overridden(
    landing: Path, warehouse: Path, spark: object, remote: str
) -> None:
    if not remote:
        pytest.skip("each command would start a Java machine of its own")
    store = Warehouse(spark, warehouse)  # type: ignore[arg-type]
    declaration = str(landing / "dim_legislator.yaml")
    complete = ["--delivery", "2014-01-09", "--delivery", "2014-04-05"]
    planned = scd("plan", declaration, *complete, remote=remote, warehouse=warehouse)
    assert planned.returncode == 0, planned.stderr
    assert "rows of dim_legislator: 543 to open" in planned.stdout
    assert "_action  bioguide" in planned.stdout
    assert store.tables() == []

    first = scd("load", declaration, *complete, remote=remote, warehouse=warehouse)
    assert first.returncode == 0, first.stderr
    assert "dim_legislator: deliveries: 2 accepted; rows: 543 opened" in first.stdout
    assert "undeclared columns: end, govtrack, how, n_terms, party_affiliations and 1 more" in first.stdout
    before = [versions(store, name) for name in TABLES]

    exists = members(EXAMPLE / "snapshots" / "dim_2014-04-05.parquet")
    retired = len(exists - members(landing / "snapshots" / "dim_2014-07-02.parquet"))
    assert (len(exists), retired) == (538, 438)
    rejected = scd("load", declaration, remote=remote, warehouse=warehouse)
    assert rejected.returncode == 3
    assert "[RETIRE_GUARD]: the snapshot omits" in rejected.stderr
    assert "438 of the 538" in rejected.stderr
    assert "`scd load --allow retire_guard`" in rejected.stderr
    assert "Traceback" not in rejected.stderr
    assert "deliveries: 2 unchanged, 1 rejected; rows: none changed" in rejected.stdout
    assert [versions(store, name) for name in TABLES] == before
    assert queries.current(store, "dim_legislator").count() == 538

    override = scd(
        "load", declaration, "--delivery", "2014-07-02", "--allow", "retire_guard", remote=remote, warehouse=warehouse
    )
    assert override.returncode == 0, override.stderr
    assert queries.current(store, "dim_legislator").count() == 100


def members(file: Path) -> set[str]:
    """The keys in a snapshot, without Spark."""
    return set(pyarrow.parquet.read_table(file, columns=["bioguide"]).column(0).to_pylist())


def versions(store: Warehouse, name: str) -> int:
    """Return the table version by Delta's own history."""
    rows = store.spark.sql(f"DESCRIBE HISTORY {store.table(name).identifier} LIMIT 1").collect()
    return int(rows[0]["version"])
