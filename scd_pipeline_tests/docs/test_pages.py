"""Pages whose blocks are run in order, with the output that they show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline_tests.docs.blocks import ROOT
from scd_pipeline_tests.docs.runner import run_page

RUN = (
    pytest.param("tutorial.md", marks=pytest.mark.slow),
    pytest.param("how-to/facts.md", marks=pytest.mark.slow),
    pytest.param("how-to/bad-rows.md", marks=pytest.mark.slow),
    pytest.param("how-to/rejected-deliveries.md", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("page", RUN)
def test_the_examples_of_a_page_do_what_it_shows(page: str, remote: str, tmp_path: Path) -> None:
    run_page(ROOT / "docs" / page, tmp_path, remote)


@pytest.mark.slow
def test_the_runbooks_do_what_they_show(spark: SparkSession, remote: str, tmp_path: Path) -> None:
    """The events happen here, because a page shows only commands of this project."""

    def open_versions(folder: Path) -> None:
        table = f"delta.`{folder}/warehouse/dim_customer`"
        spark.sql(f"UPDATE {table} SET current_flag = true, effective_to = '9999-12-31 23:59:59' WHERE city = 'Graz'")

    def drop_table(folder: Path) -> None:
        shutil.rmtree(folder / "warehouse" / "dim_customer")

    events = {"Repair duplicates": open_versions, "Rebuild a table": drop_table}
    run_page(ROOT / "docs" / "how-to" / "runbooks.md", tmp_path, remote, events)
