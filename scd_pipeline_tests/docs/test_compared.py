"""The rows of dlt and dbt on the page that compares them are those of the real tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from scd_pipeline_tests.semantics.compared.peers import ENVIRONMENTS, differences, is_installed


@pytest.mark.process
@pytest.mark.slow(70)
@pytest.mark.parametrize("program", ENVIRONMENTS)
def test_other_tools_have_the_rows_of_the_page(program: str, tmp_path: Path) -> None:
    """`make compare` installs their environments, which need the network; without them, nothing is measured."""
    if not is_installed(program):
        pytest.skip("`make compare` has not installed the other tools")
    assert differences(program, tmp_path) == []
