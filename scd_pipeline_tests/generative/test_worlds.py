"""What the engine makes of worlds in order of delivery, doubled, and in one pass is what the oracle says (S14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.load import load
from scd_pipeline.warehouse import Warehouse
from scd_pipeline_tests import worlds as w
from scd_pipeline_tests.generative import engine as e
from scd_pipeline_tests.text_tables import same_rows

WAYS = {"order": {}, "doubled": {"doubled": True}, "one pass": {"one_pass": True}}
QUICK = 10
SEED = 20_000


def differences(rows: list[dict[str, Any]], worlds: list[w.World]) -> list[str]:
    """Of each world whose rows are not the oracle's: its seed's number, and the rows."""
    expected = e.expected_rows(worlds)
    found = []
    for world in worlds:
        wanted = [row for row in expected if row["world"] == world.number]
        actual = [row for row in rows if row["world"] == world.number]
        if difference := same_rows(wanted, actual, list(expected[0])):
            found.append(f"world {world.number} of {world.shape.name}:\n{difference}")
    return found


def loaded(spark: SparkSession, folder: Path, worlds: list[w.World], way: str) -> list[dict[str, Any]]:
    """The rows of the dimension after the worlds went in that way."""
    folder.mkdir()
    warehouse = Warehouse(spark, folder)
    e.run(warehouse, worlds, folder / "in", **WAYS[way])
    return e.dimension_rows(warehouse, e.declaration(worlds[0].shape, worlds[0].shape.final))


@pytest.mark.parametrize(
    "shape",
    [*w.SHAPES[:5], pytest.param(w.MACHINE, marks=pytest.mark.slow)],
    ids=lambda shape: shape.name,
)
def test_one_pass_agrees_with_the_oracle(spark: SparkSession, tmp_path: Path, shape: w.Shape) -> None:
    worlds = w.worlds_of(shape, range(SEED, SEED + QUICK))
    rows = loaded(spark, tmp_path / "one", worlds, "one pass")
    assert not differences(rows, worlds)


@pytest.mark.slow
@pytest.mark.parametrize("shape", w.SHAPES[:2], ids=lambda shape: shape.name)
def test_any_order_agrees_with_the_oracle(spark: SparkSession, tmp_path: Path, shape: w.Shape) -> None:
    """In order of delivery; and the same surrogate keys as in one pass, each naming one version."""
    worlds = w.worlds_of(shape, range(SEED, SEED + QUICK))
    rows = loaded(spark, tmp_path / "order", worlds, "order")
    assert not differences(rows, worlds)
    key = f"{shape.name}_key"
    assert {row[key] for row in rows} == {row[key] for row in loaded(spark, tmp_path / "one", worlds, "one pass")}
    assert len({row[key] for row in rows}) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["order", "doubled"])
@pytest.mark.parametrize("shape", w.SHAPES, ids=lambda shape: shape.name)
def test_every_shape_in_every_way(spark: SparkSession, tmp_path: Path, shape: w.Shape, way: str) -> None:
    worlds = w.worlds_of(shape, range(SEED + 1000, SEED + 1000 + QUICK))
    assert not differences(loaded(spark, tmp_path / "way", worlds, way), worlds)


@pytest.mark.slow
def test_loading_everything_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """S13, S15: no new version of either table."""
    worlds = [world for world in w.worlds_of(w.PLAYER, range(SEED, SEED + QUICK)) if not world.one_load]
    folder = tmp_path / "again"
    folder.mkdir()
    warehouse, dimension = Warehouse(spark, folder), e.declaration(w.PLAYER, w.PLAYER.final)
    e.run(warehouse, worlds, folder / "in", one_pass=True)
    before = [warehouse.table(name).last_commit() for name in ("dim_player", "dim_player_changes")]
    batches = [batch for world in worlds for batch in world.delivered]
    load(warehouse, dimension, [e.delivery(batch, w.PLAYER, folder / "in") for batch in batches])
    assert [warehouse.table(name).last_commit() for name in ("dim_player", "dim_player_changes")] == before
