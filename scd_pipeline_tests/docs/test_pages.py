"""Pages whose blocks are run in order, with the output that they show."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import pipeline
from scd_pipeline_tests.docs.blocks import ROOT, blocks
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
    """The page shows the UPDATE in Python and the removal of the folder in its text."""
    page = ROOT / "docs" / "how-to" / "runbooks.md"
    (update,) = blocks(page, "python")

    def open_versions(folder: Path) -> None:
        with mock.patch.object(pipeline, "_start", return_value=(spark, None)):
            exec(update.text, {})

    def drop_table(folder: Path) -> None:
        shutil.rmtree(folder / "warehouse" / "dim_customer")

    run_page(page, tmp_path, remote, {"Repair duplicates": open_versions, "Rebuild a table": drop_table})
