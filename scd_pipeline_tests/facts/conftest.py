"""Warehouses to begin with: made once, and copied for each test that goes on from there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, load, record
from scd_pipeline_tests.facts.given import PLAY, PLAYER, PLAYS, W, players, plays


@pytest.fixture
def opened(spark: SparkSession, warehouse: Path) -> Warehouse:
    """An empty one."""
    return Warehouse(spark, warehouse)


@pytest.fixture
def recorded(spark: SparkSession, warehouse: Path, _recorded: Path) -> Warehouse:
    """One with the history of player p, and its audit."""
    return _copy(spark, _recorded, warehouse)


@pytest.fixture
def played(spark: SparkSession, warehouse: Path, _played: Path) -> Warehouse:
    """The same with three plays."""
    return _copy(spark, _played, warehouse)


@pytest.fixture(scope="session")
def _recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    opened = Warehouse(spark, folder)
    ingest_and_apply(opened, PLAYER, [players("1", W)])
    record(opened, PLAYER)
    return folder


@pytest.fixture(scope="session")
def _played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, _recorded: Path) -> Path:
    folder = tmp_path_factory.mktemp("played")
    load(_copy(spark, _recorded, folder), PLAY, [plays("1", PLAYS)])
    return folder


def _copy(spark: SparkSession, made: Path, folder: Path) -> Warehouse:
    """Delta's tables name their files by where they lie in them, so a copy is a table."""
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return Warehouse(spark, folder)
