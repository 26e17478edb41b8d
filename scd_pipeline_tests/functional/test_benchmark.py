"""All contestants of the quick benchmark have equal rows. Their times are not tested."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.report import table
from benchmarks.results import read_results
from benchmarks.runner import Runner
from benchmarks.suites import quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_contestants_have_equal_rows(spark: SparkSession, tmp_path: Path) -> None:
    runner = Runner(spark, tmp_path, tmp_path / "results.jsonl", report=lambda line: None)
    for step in quick(2_000):
        runner.run(step.entries(), step.rounds)
    results = read_results(runner.results)
    assert results
    assert all(result.is_valid for result in results), table(results)
