"""A warehouse that is loaded once and copied for each test that starts from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.storage.customers import CUSTOMER, snapshot


@pytest.fixture(scope="session")
def _in_rome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rome")
    ingest_and_apply(Warehouse(spark, folder), CUSTOMER, [snapshot(1, {"a": "Rome"})])
    return folder


@pytest.fixture
def in_rome(spark: SparkSession, warehouse: Path, _in_rome: Path) -> Warehouse:
    """A warehouse with one customer, in Rome since January, by the delivery `snapshot(1, {"a": "Rome"})`."""
    shutil.copytree(_in_rome, warehouse, dirs_exist_ok=True)
    return Warehouse(spark, warehouse)
