"""The example in Python of the page about databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import pipeline as entry_point
from scd_pipeline_tests.docs.blocks import ROOT, blocks


@pytest.mark.slow(40)
def test_pages_of_an_api_may_overlap(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = blocks(ROOT / "docs" / "how-to" / "databases.md", "python")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(entry_point, "_start", lambda: (spark, None))
    exec(example.text, {})
    assert capsys.readouterr().out.splitlines()[-1] == "2"
