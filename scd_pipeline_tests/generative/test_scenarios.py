"""The engine agrees with the oracle on scenarios in order of delivery, with duplicates, and in one pass (S14).

The scenarios of one shape share their loads; each scenario has its own keys. `soak.py` compares many more. Those of
facts are compared in `facts/test_property.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import SparkSession

from scd_pipeline_tests import scenarios as s
from scd_pipeline_tests.generative.comparison import differences, expected
from scd_pipeline_tests.generative.journal import ROOT, code
from scd_pipeline_tests.generative.scenario_warehouse import (
    DOUBLE,
    HALVES,
    ORDER,
    PASS,
    ScenarioWarehouse,
    Site,
    Way,
)
from scd_pipeline_tests.semantics.specification import requirement

QUICK = 10
COMPARED = (*s.DIMENSION_SHAPES, *s.DELETED_SHAPES)
SEED = 20_000


@pytest.fixture
def site(spark: SparkSession, tmp_path: Path) -> Site:
    return Site(spark, tmp_path / "site")


def _differences(site: Site, shape: s.Shape, way: Way) -> dict[int, str]:
    scenarios = s.scenarios_of(shape, range(SEED, SEED + QUICK))
    with site.open(scenarios) as opened:
        opened.load(way)
        return differences(opened, expected(scenarios))


@pytest.mark.slow(40)
@pytest.mark.parametrize("shape", COMPARED, ids=lambda shape: shape.name)
def test_deliveries_loaded_twice_agree_with_the_oracle(site: Site, shape: s.Shape) -> None:
    assert not _differences(site, shape, DOUBLE)


@pytest.mark.slow(40)
@pytest.mark.parametrize("way", [PASS, ORDER], ids=lambda way: way.name)
@pytest.mark.parametrize("shape", [each for each in COMPARED if each not in s.SHAPES], ids=lambda shape: shape.name)
def test_any_order_agrees_with_the_oracle(site: Site, shape: s.Shape, way: Way) -> None:
    """The other shapes are loaded so with their versions in two tables."""
    assert not _differences(site, shape, way)


@pytest.mark.slow(35)
@pytest.mark.parametrize(
    ("way", "columns"),
    [pytest.param(PASS, "changing", id="pass"), pytest.param(ORDER, "all", id="order", marks=pytest.mark.slow(110))],
)
@pytest.mark.parametrize("shape", s.SHAPES, ids=lambda shape: shape.name)
def test_two_tables_agree_with_the_oracle(
    site: Site, shape: s.Shape, way: Way, columns: Literal["all", "changing"]
) -> None:
    """S11: the current versions in one table and the closed ones in another are the rows of one table."""
    scenarios = s.scenarios_of(shape, range(SEED, SEED + QUICK))
    with site.open(scenarios, history_columns=columns) as opened:
        opened.load(way)
        assert not differences(opened, expected(scenarios))


@pytest.mark.slow(60)
@requirement("H36")
@pytest.mark.rule("S42")
@pytest.mark.parametrize("shape", s.SHAPES, ids=lambda shape: shape.name)
def test_archive_runs_between_the_loads_agree_with_the_oracle(site: Site, shape: s.Shape) -> None:
    """S14, S42: the table and the archive have the rows of one table, whenever versions were archived."""
    scenarios = s.scenarios_of(shape, range(SEED, SEED + QUICK))
    with site.open(scenarios, archives=True) as opened:
        opened.load(HALVES)
        assert not differences(opened, expected(scenarios))
        assert (opened.archived > 0) == opened.dimension.has_windows


@pytest.mark.slow
def test_loading_everything_again_changes_nothing(site: Site) -> None:
    """S13, S15: neither table gets a new version."""
    scenarios = [scenario for scenario in s.scenarios_of(s.PLAYER, range(SEED, SEED + QUICK)) if not scenario.one_load]
    with site.open(scenarios) as opened:
        opened.load(PASS)
        before = _commits(opened)
        opened.repeat_all()
        assert _commits(opened) == before


def _commits(opened: ScenarioWarehouse) -> list[object]:
    return [opened.warehouse.table(name).last_commit() for name in ("dim_player", "dim_player_changes")]


def test_a_change_of_the_engine_or_the_oracle_restarts_long_runs() -> None:
    names = {str(path.relative_to(ROOT)) for path in code() if path.is_file()}
    assert len(names) == len(code())
    assert {"scd_pipeline/load/rows.py", "scd_pipeline/load/run.py", "scd_pipeline_tests/oracle.py"} <= names
