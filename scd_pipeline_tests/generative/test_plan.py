"""A plan predicts the row actions of the load, and writes nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from scd_pipeline.columns import CURRENT_FLAG
from scd_pipeline.declaration import Dimension
from scd_pipeline.load.log import read_log
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline_tests import scenarios as s
from scd_pipeline_tests.generative.scenario_warehouse import Record, ScenarioWarehouse, Site, Way, steps
from scd_pipeline_tests.text_tables import plain

TWO = Way("two", 2)
SCENARIOS = 30


def row_actions(before: list[Record], after: list[Record], dimension: Dimension) -> Counter[str]:
    """Count the row actions (open, close, overwrite, remove) by comparing rows of equal surrogate key."""
    old, new = ({row[dimension.surrogate_key]: plain(row) for row in rows} for rows in (before, after))
    current = {row[dimension.surrogate_key]: row.get(CURRENT_FLAG) for row in (*before, *after)}
    was = {row[dimension.surrogate_key]: row.get(CURRENT_FLAG) for row in before}
    counts = Counter(open=len(new.keys() - old.keys()), remove=len(old.keys() - new.keys()))
    changed = [key for key in old.keys() & new.keys() if old[key] != new[key]]
    closed = [key for key in changed if was[key] and not current[key]]
    return counts + Counter(close=len(closed), overwrite=len(changed) - len(closed))


def compare_plans_with_loads(opened: ScenarioWarehouse, way: Way) -> Counter[str]:
    """Plan and load each step; return the number of rows of each action."""
    total: Counter[str] = Counter()
    dimension = opened.dimension
    for batches in steps(opened.scenarios, 1, way.loads):
        deliveries = opened.deliveries(batches)
        before, log = opened.rows(), opened.log()
        planned = plan(opened.warehouse, dimension, deliveries)
        assert (_plain(opened.rows()), opened.log()) == (_plain(before), log)
        loaded = ingest_and_apply(opened.warehouse, dimension, deliveries)
        assert planned.results == loaded.results
        assert Counter(planned.row_counts) == Counter(loaded.row_counts)
        assert Counter(loaded.row_counts) == row_actions(before, opened.rows(), dimension)
        _check_record_count(opened)
        total.update(loaded.row_counts)
    return total


def _check_record_count(opened: ScenarioWarehouse) -> None:
    """Check the number of change records that the log's last commit stores; bad rows may be counted twice."""
    log = read_log(opened.warehouse, opened.dimension)
    stored, bad = log.rows().count(), sum(batch.bad_rows for batch in log.batches())
    assert log.commit.records is not None
    assert stored <= log.commit.records <= stored + bad


def _plain(rows: list[Record]) -> Counter[object]:
    return Counter(map(plain, rows))


@settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 1_000_000))
@pytest.mark.slow
@pytest.mark.parametrize("shape", [s.CUSTOMER, s.PARTNER], ids=lambda shape: shape.name)
def test_a_plan_counts_what_the_load_does(spark: SparkSession, tmp_path: Path, shape: s.Shape, seed: int) -> None:
    drawn = s.scenarios_of(shape, range(seed, seed + 3 * SCENARIOS))
    chosen = [scenario for scenario in drawn if not scenario.first and not scenario.one_load][:SCENARIOS]
    with Site(spark, tmp_path / str(seed)).open(chosen) as opened:
        total = compare_plans_with_loads(opened, TWO)
    assert total["open"] and total["overwrite"]
    assert total["close"] if shape is s.CUSTOMER else total["remove"]
