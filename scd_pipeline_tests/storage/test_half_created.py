"""S17: a load that is killed while it creates a table is continued by the next one.

Such a load leaves the folder of the table with a Delta log without commits, in which `CREATE TABLE IF NOT EXISTS`
creates nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.capabilities import TABLE_NAME as CAPABILITIES
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTY, FORMAT
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, snapshot

DIMENSION = replace(CUSTOMER, history_table=True, description="Customers")
FACT = Fact(
    "fct_order",
    grain={"order": "int"},
    event_time="ordered_at",
    dimensions={"customer": Role(DIMENSION)},
    measures={"amount": "int"},
    source=Source("shop", feed=Feed(format="parquet")),
)
TABLES = tuple(f"dim_customer{suffix}" for suffix in ("", "_changes", "_history", "_audit"))
FACT_TABLES = ("fct_order", "fct_order_changes")
DELIVERIES = [snapshot(1, {"a": "Rome"}), feed("one", ("a", 2, "Oslo"))]
ORDER = {"order": 1, "ordered_at": datetime(2024, 1, 15, tzinfo=timezone.utc), "id": "a", "amount": 5}
ORDERS = Delivery(
    "shop", "one", channel="feed", at=datetime(2024, 2, 1, tzinfo=timezone.utc), frame=pa.Table.from_pylist([ORDER])
)


def load_all(warehouse: Warehouse) -> None:
    load(warehouse, DIMENSION, DELIVERIES)
    load(warehouse, FACT, [ORDERS])


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse that was loaded without a kill."""
    opened = Warehouse(spark, tmp_path_factory.mktemp("undisturbed"))
    load_all(opened)
    return opened


def contents(warehouse: Warehouse) -> dict[str, Any]:
    """Rows, columns with their nullability, and properties of each table."""
    tables = {name: warehouse.table(name) for name in (*TABLES, *FACT_TABLES)}
    return {
        name: (
            sorted(str(row) for row in table.read().drop("recorded_at", "recorded_version").toArrow().to_pylist()),
            table.read().schema.jsonValue(),
            table.properties(),
        )
        for name, table in tables.items()
    }


def failed_checks(warehouse: Warehouse) -> list[str]:
    return [str(result) for table in (DIMENSION, FACT) for result in check_table(warehouse, table) if not result.passed]


def empty_log(folder: Path) -> None:
    (folder / "_delta_log").mkdir(parents=True)


def files_of_a_commit(folder: Path) -> None:
    empty_log(folder)
    (folder / "_delta_log" / ".00000000000000000000.json.3f0c.tmp").write_text('{"commitInfo":')
    (folder / "_delta_log" / "00000000000000000000.crc").write_text("")


def data_without_a_commit(folder: Path) -> None:
    empty_log(folder)
    (folder / "part-00000-3f0c.snappy.parquet").write_bytes(b"PAR1")


HALF_CREATED = (empty_log, files_of_a_commit, data_without_a_commit)


@pytest.mark.slow(40)
@pytest.mark.rule("S17")
@pytest.mark.usefixtures("each_warehouse_probes")
def test_half_created_tables_are_created_again(spark: SparkSession, undisturbed: Warehouse, warehouse: Path) -> None:
    """Each of them, with its properties; a scratch table of the killed load is removed."""
    for number, name in enumerate((CAPABILITIES, *TABLES, *FACT_TABLES)):
        HALF_CREATED[number % len(HALF_CREATED)](warehouse / name)
    abandoned = warehouse / "_scratch" / "3f0c"
    empty_log(abandoned)
    os.utime(abandoned, (0, 0))

    opened = Warehouse(spark, warehouse)
    assert opened.tables() == []
    load_all(opened)

    assert contents(opened) == contents(undisturbed)
    assert opened.table("dim_customer").details()["description"] == "Customers"
    assert failed_checks(opened) == []
    assert not (warehouse / "_scratch").exists()
    assert Warehouse(spark, warehouse).capabilities == opened.capabilities
    versions = {name: opened.table(name).newest_version() for name in (*TABLES, *FACT_TABLES)}
    load_all(opened)
    assert versions == {name: opened.table(name).newest_version() for name in versions}


@pytest.mark.slow
def test_a_folder_with_data_and_without_a_delta_log_is_not_overwritten(spark: SparkSession, warehouse: Path) -> None:
    """A load cannot have left it: somebody removed the log of a table."""
    file = warehouse / "dim_customer_changes" / "part-00000-3f0c.snappy.parquet"
    file.parent.mkdir()
    file.write_bytes(b"PAR1")
    with pytest.raises(SetupError, match=r"\[FOLDER_NOT_EMPTY\] table dim_customer_changes: .*_delta_log.*backup"):
        ingest_and_apply(Warehouse(spark, warehouse), CUSTOMER, [snapshot(1, {"a": "Rome"})])
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    shutil.rmtree(file.parent)  # as the message says
    ingest_and_apply(Warehouse(spark, warehouse), CUSTOMER, [snapshot(1, {"a": "Rome"})])


@pytest.mark.slow(10)
def test_a_load_sets_the_properties_of_tables_that_a_plain_write_created(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions of this package wrote to half-created tables."""
    create, append_only = Table.create, [f"dim_customer{suffix}" for suffix in ("_changes", "_audit")]

    def create_others(table: Table, *arguments: Any) -> None:
        if table.name not in append_only:
            create(table, *arguments)

    opened = Warehouse(spark, warehouse)
    with monkeypatch.context() as patched:
        patched.setattr(Table, "create", create_others)
        load(opened, CUSTOMER, [snapshot(1, {"a": "Rome"})])
    assert {FORMAT, APPEND_ONLY_PROPERTY}.isdisjoint(opened.table("dim_customer_changes").properties())
    assert [result.check for result in check_table(opened, CUSTOMER) if not result.passed] == ["tables_are_append_only"]

    load(opened, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    for name in append_only:
        assert opened.table(name).properties().items() >= {FORMAT: "1", APPEND_ONLY_PROPERTY: "true"}.items(), name
    assert [str(result) for result in check_table(opened, CUSTOMER) if not result.passed] == []


class Killed(BaseException):
    """Represents the end of the process."""


@pytest.fixture
def killed_once_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, str]]]:
    """Kill a load once before and once after each kind of write of each table; yields where loads were killed.

    Before a creation, a kill leaves the folder with an empty Delta log.
    """
    killed: set[tuple[str, str]] = set()

    def die_once(point: str, table: Table) -> None:
        if (point, table.name) not in killed:
            killed.add((point, table.name))
            raise Killed(point)

    def wrap(name: str, before: Callable[[Table], None]) -> None:
        write = getattr(Table, name)

        def killing(table: Table, *arguments: Any, **options: Any) -> Any:
            if table.name in ("scratch", CAPABILITIES):
                return write(table, *arguments, **options)
            if (f"before {name}", table.name) not in killed:
                before(table)
            die_once(f"before {name}", table)
            result = write(table, *arguments, **options)
            die_once(f"after {name}", table)
            return result

        monkeypatch.setattr(Table, name, killing)

    def half_create(table: Table) -> None:
        Path(str(table.path), "_delta_log").mkdir(parents=True, exist_ok=True)

    wrap("create", half_create)
    wrap("_commit", lambda table: None)
    wrap("set_properties", lambda table: None)
    yield killed
    monkeypatch.undo()


@pytest.mark.slow(60)
def test_a_first_load_is_killed_at_each_of_its_writes(
    spark: SparkSession, undisturbed: Warehouse, warehouse: Path, killed_once_everywhere: set[tuple[str, str]]
) -> None:
    opened = Warehouse(spark, warehouse)
    for _ in range(60):
        try:
            load_all(opened)
            break
        except Killed:
            continue
    points = {point for point, _ in killed_once_everywhere}
    assert {name for point, name in killed_once_everywhere if point == "before create"} == {*TABLES, *FACT_TABLES}
    assert points >= {f"{when} {write}" for when in ("before", "after") for write in ("create", "_commit")}
    assert contents(opened) == contents(undisturbed)
    assert failed_checks(opened) == []


SCRIPT = """
import sys
from scd_pipeline.environment import Environment
from scd_pipeline.load.run import load
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.spark import session
from scd_pipeline_tests.storage.test_half_created import DELIVERIES, DIMENSION

spark = session.open_spark(sys.argv[2], Environment.from_env(), quick=True)
load(Warehouse(spark, sys.argv[1]), DIMENSION, DELIVERIES)
"""


def is_half_created(log: Path) -> bool:
    try:
        return not any(path.suffix == ".json" and not path.name.startswith(".") for path in log.iterdir())
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("table", ["_scd_capabilities", "dim_customer_changes", "dim_customer", "dim_customer_audit"])
def test_an_embedded_process_is_killed_while_it_creates_a_table(
    spark: SparkSession, undisturbed: Warehouse, warehouse: Path, table: str
) -> None:
    """Python and Java at once. The next load, in this process, completes what they left."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(warehouse), ""], start_new_session=True)
    log, deadline = warehouse / table / "_delta_log", time.monotonic() + 240
    while process.poll() is None and not is_half_created(log) and not any(log.glob("*.json")):
        assert time.monotonic() < deadline
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = sorted(path.name for path in log.iterdir())
    print(f"{table}: killed with {left}")
    opened = Warehouse(spark, warehouse)
    load_all(opened)
    assert contents(opened) == contents(undisturbed)
    assert failed_checks(opened) == []
