"""The example: a part of it, all of it as the demo loads it, and its data as plain Python reads it."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from examples.congress import demo
from scd_pipeline import Pipeline
from scd_pipeline.declaration import Declarations, Dimension, read_declarations, read_dimension
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import EXAMPLE
from scd_pipeline_tests.orchestration.code_locations import definitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEATS = ("2015-02-23", "2021-01-01")
FEW_SNAPSHOTS = ("2013-01-02", "2016-04-01", "2021-01-01", "2023-05-14", "2026-04-14")
"""Two of them have rows without a key. Kyrsten Sinema is in three, with other values in each, and has left in the last.
"""
EXPECTED = Path(__file__).parent.parent / "data" / "congress_expected.csv"


@pytest.fixture(scope="session")
def legislator() -> Dimension:
    """The example's declaration."""
    return read_dimension(EXAMPLE / "dim_legislator.yaml")


@pytest.fixture(scope="session")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Declarations:
    """The example's declarations, with all snapshots and the seats of some days."""
    folder = tmp_path_factory.mktemp("example")
    for name in ("dim_legislator.yaml", "fct_committee_seat.yaml"):
        shutil.copyfile(EXAMPLE / name, folder / name)
    (folder / "snapshots").symlink_to(EXAMPLE / "snapshots", target_is_directory=True)
    (folder / "seats").mkdir()
    for day in SEATS:
        shutil.copyfile(EXAMPLE / "seats" / f"fact_{day}.parquet", folder / "seats" / f"fact_{day}.parquet")
    return read_declarations(folder)


@pytest.fixture(scope="session")
def legislators(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with a few snapshots and the seats of one day."""
    folder = tmp_path_factory.mktemp("few")
    for file in (*(f"snapshots/dim_{day}.parquet" for day in FEW_SNAPSHOTS), f"seats/fact_{SEATS[0]}.parquet"):
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(EXAMPLE / file, folder / file)
    # Between these snapshots more members leave than the guard of the example accepts.
    dimension = (EXAMPLE / "dim_legislator.yaml").read_text(encoding="utf-8")
    (folder / "dim_legislator.yaml").write_text(dimension.replace("retire_guard: 0.25", "retire_guard: 0.9"))
    shutil.copyfile(EXAMPLE / "fct_committee_seat.yaml", folder / "fct_committee_seat.yaml")
    declared = read_declarations(folder)
    pipeline = Pipeline(folder / "warehouse", spark=spark)
    for table in (*declared.dimensions, *declared.facts):
        pipeline.load(table)
    return pipeline.warehouse


@pytest.fixture(scope="session")
def congress(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, declared: Declarations
) -> tuple[Warehouse, list[str]]:
    """A warehouse that the demo has loaded, and the lines that it printed."""
    output: list[str] = []
    warehouse = Warehouse(spark, tmp_path_factory.mktemp("congress") / "warehouse")
    demo.introduce(declared, warehouse.path, output.append)
    with demo.dagster_instance(tmp_path_factory.mktemp("dagster")) as instance:
        for job in demo.jobs(declared):
            location = definitions(spark, warehouse.path, declared)
            demo.run_job(location, job, warehouse.path, output.append, instance)
    demo.show(warehouse, declared, output.append)
    demo.suggest(output.append, "scd")
    return warehouse, output


@pytest.fixture(scope="session")
def snapshots() -> dict[str, list[dict[str, Any]]]:
    """Date to rows of every snapshot, without Spark."""
    files = sorted((EXAMPLE / "snapshots").glob("dim_*.parquet"))
    return {file.stem.removeprefix("dim_"): pyarrow.parquet.read_table(file).to_pylist() for file in files}


@pytest.fixture(scope="session")
def expected() -> dict[str, dict[str, str]]:
    """Date to counts, as an independent program counted them."""
    with EXPECTED.open(encoding="utf-8") as file:
        return {row["date"]: row for row in csv.DictReader(file)}
