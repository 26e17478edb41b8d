"""Pages whose blocks are run in order, with the output that they show."""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import pipeline
from scd_pipeline.declaration import Dimension, read_declarations
from scd_pipeline.deliveries.discovery import select_deliveries
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import RetriesExhausted
from scd_pipeline.load import Retry, load, run
from scd_pipeline_tests.docs.blocks import ROOT, Block, blocks
from scd_pipeline_tests.docs.runner import run_page

RUN = (
    pytest.param("tutorial.md", marks=pytest.mark.slow(60)),
    pytest.param("how-to/dates-in-names.md", marks=pytest.mark.slow),
    pytest.param("how-to/history-of-a-table.md", marks=pytest.mark.slow),
    pytest.param("how-to/child-tables.md", marks=pytest.mark.slow),
    pytest.param("how-to/landing-tables.md", marks=pytest.mark.slow(40)),
    pytest.param("how-to/facts.md", marks=pytest.mark.slow(40)),
    pytest.param("how-to/audit-questions.md", marks=pytest.mark.slow(40)),
    pytest.param("coming-from/dbt.md", marks=pytest.mark.slow),
    pytest.param("coming-from/databricks.md", marks=pytest.mark.slow),
    pytest.param("how-to/bad-rows.md", marks=pytest.mark.slow(55)),
    pytest.param("how-to/change-feeds.md", marks=pytest.mark.slow(50)),
    pytest.param("how-to/rejected-deliveries.md", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("page", RUN)
def test_the_examples_of_a_page_do_what_it_shows(page: str, remote: str, tmp_path: Path) -> None:
    run_page(ROOT / "docs" / page, tmp_path, remote)


@pytest.mark.slow(150)
def test_the_runbooks_do_what_they_show(spark: SparkSession, remote: str, tmp_path: Path) -> None:
    """The page shows the UPDATE in Python, and the removal of the folder in its text."""
    page = ROOT / "docs" / "how-to" / "runbooks.md"
    (update,) = blocks(page, "python")

    def execute(block: Block, folder: Path) -> None:
        with mock.patch.object(pipeline, "_start", return_value=(spark, None)):
            exec(block.text, {})

    def drop_table(folder: Path) -> None:
        shutil.rmtree(folder / "warehouse" / "dim_customer")

    def exhaust_retries(folder: Path) -> None:
        """A load of the delivery of May has a write conflict at each attempt, because other loads commit first."""
        store = Warehouse(spark, folder / "warehouse")
        (customer,) = read_declarations(folder / "shop.yaml").dimensions
        write_customers(folder, "2024-05-01", "Wels")
        may, waits = select_deliveries(customer, spark, names=["2024-05-01"]), list[float]()
        with concurrent_loads(store, customer, folder), pytest.raises(RetriesExhausted, match="RETRIES_EXHAUSTED"):
            load(store, customer, may, retry=Retry(jitter=0.0, sleep=waits.append))
        assert waits == [1.0, 2.1, 4.2, pytest.approx(8.3)]
        assert cities(store) == LATER

    events = {
        "Repair duplicates": partial(execute, update),
        "Rebuild a table": drop_table,
        "Exhausted retries": exhaust_retries,
    }
    run_page(page, tmp_path, remote, events)
    assert cities(Warehouse(spark, tmp_path / "warehouse")) == ["Wels", *LATER]


LATER = [f"City {number}" for number in range(1, 6)]
"""The cities of a new customer in the deliveries of other loads, one for each attempt."""


def write_customers(folder: Path, day: str, city: str) -> None:
    rows = f"customer_id,city\n1,Wien\n2,Linz\n3,Bregenz\n4,{city}\n"
    (folder / "landing" / f"customers_{day}.csv").write_text(rows, encoding="utf-8")


def cities(store: Warehouse) -> list[str]:
    """The cities of the new customer in order of their time."""
    rows = store.table("dim_customer").read().where("customer_id = '4'").orderBy("effective_from").collect()
    return [row["city"] for row in rows]


@contextlib.contextmanager
def concurrent_loads(store: Warehouse, customer: Dimension, folder: Path) -> Iterator[None]:
    """Let another load commit to the change log between plan and commit of each attempt."""
    original, numbers = run.commit_log, itertools.count(1)

    def commit_second(*arguments: Any) -> PipelineCommit:
        number = next(numbers)
        write_customers(folder, f"2024-06-{number:02}", f"City {number}")
        with mock.patch.object(run, "commit_log", original):
            load(store, customer, select_deliveries(customer, store.spark, names=[f"2024-06-{number:02}"]))
        return original(*arguments)

    with mock.patch.object(run, "commit_log", commit_second):
        yield
