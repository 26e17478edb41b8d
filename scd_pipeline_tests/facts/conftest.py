"""Warehouses that are loaded once and copied for each test that starts from one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, load, record
from scd_pipeline_tests.facts.bets import BET, BETS, bets
from scd_pipeline_tests.facts.players import PLAY, PLAYER, PLAYS, W, players, plays


@pytest.fixture
def opened(spark: SparkSession, warehouse: Path) -> Warehouse:
    """An empty warehouse."""
    return Warehouse(spark, warehouse)


@pytest.fixture
def recorded(spark: SparkSession, warehouse: Path, _recorded: Path) -> Warehouse:
    """A warehouse with the history of player p and its audit."""
    return copied(spark, _recorded, warehouse)


@pytest.fixture
def played(spark: SparkSession, warehouse: Path, _played: Path) -> Warehouse:
    """The warehouse `recorded` with three plays."""
    return copied(spark, _played, warehouse)


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
    load(copied(spark, _recorded, folder), PLAY, [plays("1", PLAYS)])
    return folder


@pytest.fixture(scope="session")
def _bet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, _recorded: Path) -> Path:
    folder = tmp_path_factory.mktemp("bet")
    load(copied(spark, _recorded, folder), BET, [bets(1, BETS)])
    return folder


@pytest.fixture
def bet(spark: SparkSession, warehouse: Path, _bet: Path) -> Warehouse:
    """The warehouse `recorded` with four bets of two days."""
    return copied(spark, _bet, warehouse)


def copied(spark: SparkSession, source: Path, folder: Path) -> Warehouse:
    """Copy the tables as folders: Delta's logs have the paths of files relative to the table."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    return Warehouse(spark, folder)
