"""S14, S23, S24, S41 as properties: facts agree with the oracle after any sequence of deliveries."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Fact
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests import scenarios as s
from scd_pipeline_tests.generative.comparison import differences, expected
from scd_pipeline_tests.generative.scenario_warehouse import (
    DOUBLE,
    HALVES,
    ORDER,
    PASS,
    ScenarioWarehouse,
    Site,
    Way,
)
from scd_pipeline_tests.semantics.specification import requirement, rule

SEED, SCENARIOS = 60_000, 10


@pytest.mark.slow(20)
@requirement("L9", "L12", "L14")
@rule("S14", "S23", "S24", "S34", "S41")
@pytest.mark.parametrize(
    ("shape", "way"),
    [
        pytest.param(s.SALE, PASS, id="sale-pass"),
        *[pytest.param(shape, PASS, id=f"{shape.name}-pass") for shape in (s.RENT, s.PURCHASE)],
        *[
            pytest.param(shape, way, id=f"{shape.name}-{way.name}", marks=pytest.mark.slow(seconds))
            for shape in s.FACT_SHAPES
            for way, seconds in ((DOUBLE, 60), (ORDER, 90))
        ],
    ],
)
def test_facts_by_scope_and_their_members_agree_with_the_oracle(
    spark: SparkSession, tmp_path: Path, shape: s.Shape, way: Way
) -> None:
    """With late, repeated, revised, withdrawn and rejected deliveries of the fact and of its dimension."""
    scenarios = s.scenarios_of(shape, range(SEED, SEED + SCENARIOS))
    with Site(spark, tmp_path / "site").open(scenarios) as opened:
        opened.load(way)
        assert not differences(opened, expected(scenarios))


@requirement("F59")
@pytest.mark.slow(60)
@rule("S14", "S23", "S24")
def test_stored_keys_equal_those_of_a_fresh_as_of_join(spark: SparkSession, tmp_path: Path) -> None:
    """Loads of the fact and its dimension take turns. Each key is compared with a fresh join after each of them."""
    scenarios = s.scenarios_of(s.SALE, range(SEED, SEED + SCENARIOS))
    with Site(spark, tmp_path / "site").open(scenarios) as opened:
        for _ in opened.loads(HALVES):
            assert failed_after_the_next_load(opened) == []
        assert not differences(opened, expected(scenarios))


def failed_after_the_next_load(opened: ScenarioWarehouse) -> list[str]:
    """Load the fact, which re-keys it; return the checks that fail."""
    assert isinstance(opened.table, Fact)
    load(opened.warehouse, opened.table)
    return [str(result) for result in check_table(opened.warehouse, opened.table) if not result.passed]
