"""A backfill through GraphQL on the real webserver and daemon: some partitions with gaps, one of them broken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.dagster_client import DagsterClient
from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.spark.server import free_port

ROOT = Path(__file__).parents[2]
DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
"""
FACT = """\
fact: fct_sale
grain: {sale: int}
event_time: sold_at
dimensions: {customer: {dimension: dim_customer, key: customer}}
sources: {till: {feed: "sales_{date}.csv"}}
"""
SALES = ["2024-01-10", "2024-05-10"]
"""Days of the fact's deliveries; the dimension has none on these days."""
DAYS = [f"2024-0{month}-01" for month in range(1, 7)]
REQUESTED, BROKEN = [DAYS[0], DAYS[1], DAYS[3], DAYS[5]], DAYS[1]
LAUNCH = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status } } }"""
RUNS = """query($backfill: String!) { runsOrError(filter: {tags: [{key: "dagster/backfill", value: $backfill}]}) {
  ... on Runs { results { runId } } } }"""
PARTITIONS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses { materializedPartitions failedPartitions } } } } }"""


class Dagster(DagsterClient):
    """The webserver, with the partitions of its assets."""

    def partitions(self, asset: str) -> tuple[set[str], set[str]]:
        """Return the materialized partitions and the failed ones."""
        statuses = self.execute(PARTITIONS, key={"path": [asset]})["assetPartitionStatuses"]
        return set(statuses["materializedPartitions"]), set(statuses["failedPartitions"])


@pytest.fixture
def dagster(tmp_path: Path, remote: str, warehouse: Path) -> Iterator[Dagster]:
    """`dagster dev` on a declaration and six deliveries, one of which lacks a column."""
    for number, day in enumerate(DAYS):
        header = "id,town" if day == BROKEN else "id,city"
        (tmp_path / f"customers_{day}.csv").write_text(f"{header}\n1,City {number}\n2,Linz\n", encoding="utf-8")
    for number, day in enumerate(SALES):
        (tmp_path / f"sales_{day}.csv").write_text(f"sale,sold_at,customer\n{number},{day},1\n", encoding="utf-8")
    declared = tmp_path / "declared"
    declared.mkdir()
    for name, text in (("dim_customer", DECLARATION), ("fct_sale", FACT)):
        declaration = text.replace('"customers', '"../customers').replace('"sales', '"../sales')
        (declared / f"{name}.yaml").write_text(declaration, encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    port = free_port()
    environ = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "SCD_REMOTE": remote,
        "SCD_WAREHOUSE": str(warehouse),
        "SCD_DECLARATIONS": str(declared),
    }
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", str(port)]
    command += ["-m", "scd_pipeline.definitions"]
    with (tmp_path / "log").open("w") as log:
        started = subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
    served = Dagster(port)
    try:
        served.wait(started)
        yield served
    finally:
        started.send_signal(signal.SIGINT)
        try:
            started.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)


@pytest.mark.slow(120)
def test_a_backfill_with_gaps_stores_all_but_the_broken_delivery(
    dagster: Dagster, spark: SparkSession, warehouse: Path
) -> None:
    """One run loads each range without a gap. The facts, which have other days, are then loaded in one run."""
    assets = ("dim_customer_changes", "dim_customer", "dim_customer_audit")
    assert _run_backfill(dagster, assets, DAYS, REQUESTED, runs=3) in ("COMPLETED_FAILED", "FAILED")
    for asset in assets:
        materialized, failed = dagster.partitions(asset)
        assert materialized == set(REQUESTED) - {BROKEN}
        assert BROKEN in failed
    batches = queries.batches(Warehouse(spark, warehouse), "dim_customer").collect()
    assert {row["delivery"] for row in batches} == set(REQUESTED) - {BROKEN}
    rows = queries.history(Warehouse(spark, warehouse), "dim_customer").where("id = '1'").orderBy("version").collect()
    assert [row["city"] for row in rows] == ["City 0", "City 3", "City 5"]

    facts = ("fct_sale_changes", "fct_sale")
    assert _run_backfill(dagster, facts, SALES, SALES, runs=1) in ("COMPLETED_SUCCESS", "COMPLETED")
    for asset in facts:
        assert dagster.partitions(asset) == (set(SALES), set())
    opened = Warehouse(spark, warehouse)
    opened.table("fct_sale").read().createOrReplaceTempView("sold")
    opened.table("dim_customer").read().createOrReplaceTempView("customers")
    sales = spark.sql("SELECT sale, city FROM sold JOIN customers USING (customer_key) ORDER BY sale").collect()
    assert [tuple(row) for row in sales] == [(0, "City 0"), (1, "City 3")]


def _run_backfill(
    dagster: Dagster, assets: tuple[str, ...], partitions: list[str], requested: list[str], runs: int
) -> str:
    """Add partitions, backfill the requested ones, expect a number of runs, and return the final status."""
    for day in partitions:
        dagster.add_partition(f"{assets[1]}_deliveries", day)
    params = {"assetSelection": [{"path": [asset]} for asset in assets], "partitionNames": requested}
    launched = dagster.execute(LAUNCH, params=params)
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    status = _final_status(dagster, launched["backfillId"])
    assert len(dagster.execute(RUNS, backfill=launched["backfillId"])["results"]) == runs
    return status


def _final_status(dagster: Dagster, backfill: str, seconds: float = 300) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = str(dagster.execute(STATUS, id=backfill)["status"])
        if status not in ("REQUESTED", "CANCELING", "FAILING"):
            return status
        time.sleep(2)
    raise AssertionError(f"backfill {backfill} has not ended after {seconds} seconds")
