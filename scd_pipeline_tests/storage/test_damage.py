"""Tables that were lost, replaced, or changed by another program: a load is rejected before it writes anything."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ForeignCommitError, HighWaterMarkError, LoadError, SetupError
from scd_pipeline.invariants.check_descriptions import (
    NO_FOREIGN_COMMITS,
    UPSTREAM_HAS_APPLIED_COMMITS,
)
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline.operations.repair_without_log import repair_without_log
from scd_pipeline.operations.status import status
from scd_pipeline_tests.storage.customers import CUSTOMER, history, snapshot

TABLE, LOG, AUDIT = (f"dim_customer{suffix}" for suffix in ("", "_changes", "_audit"))
NOW = datetime(2024, 3, 2, tzinfo=timezone.utc)
SINCE_JANUARY = dict.fromkeys(("a", "b", "c", "d"), "Rome")
ONLY_NEW = snapshot(3, {"e": "Bonn"}, allow=frozenset({"retire_guard"}))
"""Without the log this delivery would remove every customer."""


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    opened = Warehouse(spark, tmp_path_factory.mktemp("damage") / "warehouse")
    load(opened, CUSTOMER, [snapshot(1, SINCE_JANUARY)])
    return opened


@pytest.fixture(scope="module")
def recreated_log(loaded: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of the same name and with as many commits, but another table."""
    opened = Warehouse(loaded.spark, tmp_path_factory.mktemp("recreated") / "warehouse")
    opened.capabilities = loaded.capabilities
    ingest_and_apply(opened, CUSTOMER, [snapshot(2, {"z": "Oslo"})])
    return Path(opened.path) / LOG


@pytest.fixture
def sound(loaded: Warehouse, tmp_path: Path) -> Warehouse:
    """A copy of the tables, to be damaged."""
    shutil.copytree(loaded.path, tmp_path / "copy")
    return Warehouse(loaded.spark, tmp_path / "copy")


def sql(warehouse: Warehouse, name: str, statement: str) -> None:
    warehouse.spark.sql(statement.format(table=warehouse.table(name).identifier)).collect()


def drop(*names: str) -> Callable[[Warehouse, Path], None]:
    def damage(warehouse: Warehouse, other_log: Path) -> None:
        for name in names:
            shutil.rmtree(Path(warehouse.path) / name)

    return damage


def run(name: str, *statements: str) -> Callable[[Warehouse, Path], None]:
    def damage(warehouse: Warehouse, other_log: Path) -> None:
        for statement in statements:
            sql(warehouse, name, statement)

    return damage


def replace_log(warehouse: Warehouse, other_log: Path) -> None:
    shutil.rmtree(Path(warehouse.path) / LOG)
    shutil.copytree(other_log, Path(warehouse.path) / LOG)


def lose_last_commit_of_the_log(warehouse: Warehouse, other_log: Path) -> None:
    for file in (Path(warehouse.path) / LOG / "_delta_log").glob("*1.*"):
        file.unlink()


MAY_CHANGE = "ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.appendOnly')"
DAMAGES: dict[str, tuple[Callable[[Warehouse, Path], None], type[LoadError], str]] = {
    "the log is dropped": (drop(LOG), HighWaterMarkError, rf"\[LOG_LOST\] table {TABLE}: .* commit 1 of {LOG}"),
    "log and dimension are dropped": (
        drop(LOG, TABLE),
        HighWaterMarkError,
        rf"\[LOG_LOST\] table {AUDIT}: .*commit 1 of {LOG}",
    ),
    "the log lost its last commit": (lose_last_commit_of_the_log, HighWaterMarkError, "LOG_COMMITS_LOST"),
    "the log is another table": (replace_log, HighWaterMarkError, "LOG_REPLACED"),
    "the log is restored to an earlier version": (
        run(LOG, "RESTORE TABLE {table} TO VERSION AS OF 0"),
        ForeignCommitError,
        rf"\[FOREIGN_COMMIT\] table {LOG}: table version 2 \(RESTORE to version 0\) .* after commit 1 \(table "
        r"version 1\).*RESTORE TABLE delta.`.*` TO VERSION AS OF 1",
    ),
    "rows of the dimension are deleted": (
        run(TABLE, "DELETE FROM {table} WHERE id = 'a'"),
        ForeignCommitError,
        rf"\[FOREIGN_COMMIT\] table {TABLE}: table version 2 \(DELETE\)",
    ),
    "the dimension is restored to an earlier version": (
        run(TABLE, "RESTORE TABLE {table} TO VERSION AS OF 0"),
        ForeignCommitError,
        rf"\[FOREIGN_COMMIT\] table {TABLE}: table version 2 \(RESTORE",
    ),
    "rows of the audit are deleted": (
        run(AUDIT, MAY_CHANGE, "DELETE FROM {table} WHERE id = 'a'"),
        ForeignCommitError,
        rf"\[FOREIGN_COMMIT\] table {AUDIT}: table version 3 \(DELETE\)",
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow(6)] * ("restored" in name)) for name in DAMAGES]
)
def test_a_load_is_rejected_before_it_writes(sound: Warehouse, recreated_log: Path, name: str) -> None:
    damage, error, message = DAMAGES[name]
    damage(sound, recreated_log)
    before = commits(sound)
    with pytest.raises(error, match=message):
        load(sound, CUSTOMER, [ONLY_NEW])
    assert commits(sound) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("the log lost its last commit", UPSTREAM_HAS_APPLIED_COMMITS),
        ("rows of the dimension are deleted", NO_FOREIGN_COMMITS),
    ],
)
def test_status_and_check_report_the_damage(sound: Warehouse, recreated_log: Path, name: str, rule: str) -> None:
    damage, _, message = DAMAGES[name]
    damage(sound, recreated_log)
    (table,) = status(sound, [CUSTOMER], now=NOW).tables
    assert re.search(message, table.damage[0])
    results = check_table(sound, CUSTOMER, [NO_FOREIGN_COMMITS, UPSTREAM_HAS_APPLIED_COMMITS])
    assert [result.check for result in results if not result.passed] == [rule]


@pytest.mark.parametrize("run", [load, functools.partial(repair, now=NOW, actor="test")])
def test_a_replaced_table_is_restored_or_dropped(sound: Warehouse, run: Callable[..., object]) -> None:
    sql(sound, TABLE, "CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1 AS n")
    with pytest.raises(SetupError, match=f"TABLE_REPLACED.*drop it: a load rebuilds it from {LOG}"):
        run(sound, CUSTOMER)


@pytest.mark.parametrize("run_repair", [repair, repair_without_log])
def test_a_repair_needs_the_change_log(
    sound: Warehouse, recreated_log: Path, run_repair: Callable[..., object]
) -> None:
    """Without it, the rows that another program changed cannot be recomputed."""
    DAMAGES["the log is dropped"][0](sound, recreated_log)
    sql(sound, TABLE, "DELETE FROM {table} WHERE id = 'a'")
    before = commits(sound)
    with pytest.raises(HighWaterMarkError, match="LOG_LOST"):
        run_repair(sound, CUSTOMER, now=NOW, actor="test")
    assert commits(sound) == before


@pytest.mark.parametrize("name", ["the log is dropped", "log and dimension are dropped"])
def test_a_load_without_audit_is_rejected_too(sound: Warehouse, recreated_log: Path, name: str) -> None:
    DAMAGES[name][0](sound, recreated_log)
    before = commits(sound)
    with pytest.raises(HighWaterMarkError, match="LOG_LOST"):
        ingest_and_apply(sound, CUSTOMER, [ONLY_NEW])
    assert commits(sound) == before


def commits(warehouse: Warehouse) -> set[str]:
    """The commit files of all tables."""
    return {str(file) for file in Path(warehouse.path).glob("dim_*/_delta_log/*.json")}


@pytest.mark.slow
def test_restoring_the_last_pipeline_commit_repairs_a_table(sound: Warehouse) -> None:
    """The message has the statement; after it loads continue, and all checks pass."""
    before = history(sound)
    sql(sound, TABLE, "DELETE FROM {table} WHERE id = 'a'")
    sql(sound, TABLE, "OPTIMIZE {table}")
    with pytest.raises(ForeignCommitError) as rejected:
        load(sound, CUSTOMER, [])
    sound.spark.sql(str(rejected.value).split("or `")[1].split("` (if")[0]).collect()
    assert sorted_rows(history(sound)) == sorted_rows(before)
    result = load(sound, CUSTOMER, [snapshot(1, SINCE_JANUARY)])
    assert ([batch.outcome for batch in result.results], result.table_version) == (["unchanged"], newest(sound))
    checks = check_table(sound, CUSTOMER, [NO_FOREIGN_COMMITS, UPSTREAM_HAS_APPLIED_COMMITS])
    assert [str(check) for check in checks if not check.passed] == []


def newest(warehouse: Warehouse) -> int:
    return max(int(file.stem) for file in (Path(warehouse.path) / TABLE / "_delta_log").glob("*.json"))


def sorted_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["id"], row["from"]))
