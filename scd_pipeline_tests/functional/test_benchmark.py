"""All contestants of the benchmark that share the session have equal rows. Their times are not tested."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import fact_strategies
from benchmarks.report import table
from benchmarks.results import read_results
from benchmarks.runner import Runner
from benchmarks.suites import Step, quick, smallest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow(32)
@pytest.mark.parametrize(
    "steps",
    [pytest.param(smallest(300), id="smallest"), pytest.param(quick(2_000), id="quick", marks=pytest.mark.slow(120))],
)
def test_contestants_have_equal_rows(spark: SparkSession, tmp_path: Path, steps: tuple[Step, ...]) -> None:
    runner = Runner(spark, tmp_path, tmp_path / "results.jsonl", report=lambda line: None)
    for step in steps:
        runner.run(step.entries(), step.rounds)
    results = read_results(runner.results)
    assert {result.contestant for result in results} == {name for step in steps for name in step.names}
    assert all(result.is_valid for result in results), table(results)


@pytest.mark.slow(20)
def test_the_strategies_of_a_fact_have_equal_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The comparison raises an error otherwise."""
    cases = [fact_strategies.Case(1_000, 10, by_day) for by_day in (False, True)]
    seconds = fact_strategies.compare(spark, tmp_path, cases, rounds=1, limit=600)
    measured = {case: set(by_strategy) for case, by_strategy in seconds.items()}
    assert measured == {cases[0]: {"increments", "whole"}, cases[1]: {"increments", "scope", "whole"}}
