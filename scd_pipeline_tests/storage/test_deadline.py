"""The deadline of a load: it stops before any of its steps, and the next load has the rows of one without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeadlineExceeded
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline.load.deadline import Deadline
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, snapshot

TABLES = ("dim_customer_changes", "dim_customer", "dim_customer_audit")
STOPS = {
    "read the stored state": (1, 1, 1),
    "plan its rows": (1, 1, 1),
    "write to its change log": (1, 1, 1),
    "write its rows": (2, 1, 1),
    "record the audit": (2, 2, 1),
}
"""Each step of a load, and the commits of change log, table and audit when the second load stops before it."""
SECOND = [snapshot(2, {"a": "Oslo", "b": "Linz"}), feed("one", ("a", 3, "Kyiv"))]


@pytest.fixture(scope="module")
def loaded_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a warehouse after the first load."""
    folder = tmp_path_factory.mktemp("once")
    load(Warehouse(spark, folder), CUSTOMER, [snapshot(1, {"a": "Rome"})])
    return folder


@pytest.fixture(scope="module")
def complete(spark: SparkSession, loaded_once: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The rows after the second load without a deadline."""
    opened = Warehouse(spark, shutil.copytree(loaded_once, tmp_path_factory.mktemp("complete") / "warehouse"))
    load(opened, CUSTOMER, SECOND)
    return rows(opened)


@requirement("L16")
@pytest.mark.slow
@pytest.mark.parametrize("step", STOPS)
@rule("S14", "S17")
def test_a_load_stops_before_any_step_and_the_next_one_continues(
    spark: SparkSession, loaded_once: Path, complete: list[Row], warehouse: Path, step: str
) -> None:
    """By a clock that reaches the deadline at that step. Until then readers have the rows of the last load."""
    opened = Warehouse(spark, shutil.copytree(loaded_once, warehouse, dirs_exist_ok=True))
    clock = iter([0] * list(STOPS).index(step) + [1])
    with pytest.raises(DeadlineExceeded) as raised:
        load(opened, CUSTOMER, SECOND, deadline=Deadline(1, lambda: next(clock)))
    assert (raised.value.code, raised.value.details) == ("DEADLINE_EXCEEDED", {"step": step})
    assert raised.value.exit_code is ExitCode.FAILED
    assert tuple(opened.table(name).last_commit().number for name in TABLES) == STOPS[step]
    assert [str(result) for result in check_table(opened, CUSTOMER) if not result.passed] == []
    load(opened, CUSTOMER, SECOND)
    assert rows(opened) == complete


def rows(opened: Warehouse) -> list[Row]:
    """Return the rows of the dimension."""
    return opened.table("dim_customer").read().orderBy("customer_key").collect()
