"""The programs of the page about landing tables do what it shows."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import pipeline
from scd_pipeline_tests.docs.blocks import ROOT, blocks
from scd_pipeline_tests.semantics.specification import rule


@rule("S38")
@pytest.mark.slow(12)
def test_records_are_loaded_without_a_declaration(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(warehouse.parent)
    for block in blocks(ROOT / "docs" / "how-to" / "landing-tables.md", "python"):
        with mock.patch.object(pipeline, "_start", return_value=(spark, None)):
            exec(block.text, {})
    printed = capsys.readouterr().out
    rows = {tuple(line.split()[1:4]) for line in printed.splitlines() if line.split()[1:2] in (["1"], ["2"], ["3"])}
    assert rows == {("1", "Crash", "open"), ("2", "Typo", "closed"), ("3", "Slow", "open")}
    assert "{'raw_push': {'open': 1}, 'raw_issue': {'open': 1}}" in printed
