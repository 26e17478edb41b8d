"""Pages whose blocks are run in order, with the output that they show."""

from __future__ import annotations

from pathlib import Path

import pytest

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
