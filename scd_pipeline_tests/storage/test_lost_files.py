"""A table without some of its data files: each message names the way back, which is tried literally."""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.data_files import missing_files, missing_files_reported
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DataFilesLost
from scd_pipeline.invariants.check_descriptions import DATA_FILES_EXIST
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline.operations.status import status
from scd_pipeline_tests.storage.customers import feed
from scd_pipeline_tests.storage.test_half_created import (
    DIMENSION,
    FACT,
    FACT_TABLES,
    TABLES,
    contents,
    failed_checks,
    load_all,
)

NOW = datetime(2024, 3, 2, tzinfo=timezone.utc)
NEXT = feed("two", ("a", 3, "Bonn"))
MESSAGE = r"\[DATA_FILES_LOST\] table (\w+): data files of its newest version do not exist \(\d+, for example part-.*\)"


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    opened = Warehouse(spark, tmp_path_factory.mktemp("lost") / "a [b] c")
    load_all(opened)
    return opened


@pytest.fixture
def copied(loaded: Warehouse, tmp_path: Path) -> Warehouse:
    shutil.copytree(loaded.path, tmp_path / "a [b] c")
    return Warehouse(loaded.spark, tmp_path / "a [b] c")


def lose_files(warehouse: Warehouse, names: list[str]) -> None:
    for name in names:
        files = list(Path(warehouse.path, name).glob("part-*.parquet"))
        assert files, name
        for file in files:
            file.unlink()


def findings(warehouse: Warehouse) -> list[str]:
    """The messages of the check, which are those of the status."""
    results = [result for table in (DIMENSION, FACT) for result in check_table(warehouse, table) if not result.passed]
    assert {result.check for result in results} == {DATA_FILES_EXIST}
    messages = list(dict.fromkeys(message for result in results for message in result.keys))
    tables = status(warehouse, [DIMENSION, FACT], now=NOW).tables
    reported = [message for table in tables for message in table.damage if "DATA_FILES_LOST" in message]
    assert reported == messages
    return messages


def follow(warehouse: Warehouse, messages: list[str]) -> None:
    """Drop the tables that the messages name, and load all deliveries."""
    for message in messages:
        dropped = re.search(r"or drop (\w+)(?: and (\w+))?: a load rebuilds", message)
        every = re.search(r"drop every table of (\w+) and load all deliveries", message)
        assert dropped or every, message
        all_tables = [name for name in (*TABLES, *FACT_TABLES) if every and name.startswith(every[1])]
        for name in all_tables or [name for name in dropped.groups() if name]:  # type: ignore[union-attr]
            shutil.rmtree(Path(warehouse.path, name), ignore_errors=True)
    load_all(warehouse)


@pytest.mark.rule("S17")
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        pytest.param(
            ["dim_customer", "fct_order"],
            "a load rebuilds it from its change log",
            marks=pytest.mark.slow(20),
            id="dimension",
        ),
        pytest.param(
            ["dim_customer_history", "dim_customer_audit"],
            "without withdrawn transitions, repairs and keys of removed versions",
            marks=pytest.mark.slow(20),
            id="history and audit",
        ),
        pytest.param(
            ["dim_customer_changes", "fct_order_changes"],
            "no other table can rebuild them",
            marks=pytest.mark.slow(20),
            id="change logs",
        ),
    ],
)
def test_lost_files_are_reported_and_recovered(
    loaded: Warehouse, copied: Warehouse, names: list[str], reason: str
) -> None:
    lose_files(copied, names)
    messages = findings(copied)
    assert sorted(match[1] for message in messages if (match := re.search(MESSAGE, message))) == sorted(names)
    assert any(reason in message for message in messages)
    with pytest.raises(DataFilesLost, match=MESSAGE):
        load(copied, DIMENSION, [NEXT])
    follow(copied, messages)
    assert contents(copied) == contents(loaded)
    assert failed_checks(copied) == []


def test_a_deleted_file_of_an_older_version_is_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    """A VACUUM has deleted it while a query reads that version; the table is as it should be."""
    table = Warehouse(spark, tmp_path).table("dim_old")
    spark.range(1).coalesce(1).write.format("delta").save(str(table.path))
    (deleted,) = Path(str(table.path)).glob("*.parquet")
    spark.range(2).write.format("delta").mode("overwrite").save(str(table.path))
    deleted.unlink()
    with (
        pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist") as raised,
        missing_files_reported(Warehouse(spark, tmp_path), ["dim_old"]),
    ):
        table.read(0).collect()
    assert not isinstance(raised.value, DataFilesLost)


def test_the_first_error_remains_if_the_table_cannot_be_examined(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "dim_torn" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{", encoding="utf-8")
    opened = Warehouse(spark, tmp_path)
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        missing_files(opened.table("dim_torn"))
    first = FileNotFoundError(f"FileNotFoundException: {tmp_path}/dim_torn/part-0.parquet")
    with pytest.raises(FileNotFoundError) as raised, missing_files_reported(opened, ["dim_torn"]):
        raise first
    assert raised.value is first


@pytest.mark.slow
def test_files_of_the_table_that_was_cloned_are_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    """Its folder begins with the name of the clone's."""
    spark.range(1).coalesce(1).write.format("delta").save(f"{tmp_path}/dim_v1")
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/dim` SHALLOW CLONE delta.`{tmp_path}/dim_v1`")
    clone = Warehouse(spark, tmp_path).table("dim")
    spark.range(1).coalesce(1).write.format("delta").mode("append").save(str(clone.path))
    assert missing_files(clone) == []
    (file,) = Path(str(clone.path)).glob("*.parquet")
    file.unlink()
    assert missing_files(clone) == [file.name]


@pytest.mark.slow
def test_a_repair_of_a_table_without_its_files_names_the_way_back(copied: Warehouse) -> None:
    lose_files(copied, ["dim_customer"])
    with pytest.raises(DataFilesLost, match="or drop dim_customer: a load rebuilds it from its change log"):
        repair(copied, DIMENSION, now=NOW, actor="test")
    with pytest.raises(DataFilesLost, match="or drop dim_customer: a load rebuilds it from its change log"):
        check_table(copied, DIMENSION, ["one_current_version"])
