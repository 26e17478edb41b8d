"""A first load that computes each entity from its only record writes the same rows as one with windows."""

from __future__ import annotations

import random
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Begin, Delivery, Dimension, Feed, Warehouse
from scd_pipeline.history import differences, timeline, transitions
from scd_pipeline.history.row_windows import RowWindows
from scd_pipeline.load import change_records
from scd_pipeline.load.run import load
from scd_pipeline_tests.generative.test_narrowing import (
    ENTITIES,
    SHAPES,
    START,
    WITHOUT_WINDOWS,
    contents,
    crm,
    dimension,
    row,
)

DELETES = Feed(path="crm/{date}.csv", deletes="gone")
FIRST_LOADS = {
    **SHAPES,
    "a feed": dimension([crm(snapshot=None, feed=DELETES)]),
    "a fixed begin": dimension([crm()], begin=Begin("1970-01-01")),
    "without deleted rows": dimension(
        [crm(snapshot=None, feed=DELETES)], attributes=WITHOUT_WINDOWS, deleted_rows="remove"
    ),
}


def delivery(dim: Dimension, seed: int, repeated: int = 0) -> Delivery:
    """Return rows of all entities, some of them deletes if the channel has any; the first `repeated` rows twice."""
    draw = random.Random(seed)
    names = [attribute.name for attribute in dim.source_attributes("crm")]
    rows = [row(number, names, draw, changes=0.5) for number in range(ENTITIES)]
    channel = dim.source("crm").snapshot or dim.source("crm").feed
    if channel == DELETES:
        rows = [{**values, "gone": draw.random() < 0.2} for values in rows]
    scope = [["r0"], ["r1"], ["r2"]] if getattr(channel, "scope", ()) else None
    return Delivery("crm", "2024-01-01", channel.name, at=START, frame=[*rows, *rows[:repeated]], scope=scope)  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST_LOADS)
def test_a_first_load_of_one_record_for_each_entity_writes_the_same_rows(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    dim, modes = FIRST_LOADS[name], []

    class Spied(RowWindows):
        def __init__(self, dimension: Dimension, *, has_one_record_per_entity: bool = False) -> None:
            modes.append(has_one_record_per_entity)
            super().__init__(dimension, has_one_record_per_entity=has_one_record_per_entity)

    short, exact = Warehouse(spark, tmp_path / "short"), Warehouse(spark, tmp_path / "exact")
    with (
        patch.object(differences, "RowWindows", Spied),
        patch.object(timeline, "RowWindows", Spied),
        patch.object(transitions, "RowWindows", Spied),
    ):
        load(short, dim, [delivery(dim, 3)]).raise_if_rejected()
        with patch.object(change_records, "_has_one_record_per_entity", return_value=False):
            load(exact, dim, [delivery(dim, 3)]).raise_if_rejected()
    assert modes == [True, True, True, False, False, False]
    assert contents(short, dim) == contents(exact, dim)


@pytest.mark.slow
def test_repeated_rows_are_computed_with_windows(spark: SparkSession, tmp_path: Path) -> None:
    dim = SHAPES["one source"]
    once, twice = Warehouse(spark, tmp_path / "once"), Warehouse(spark, tmp_path / "twice")
    load(once, dim, [delivery(dim, 3)]).raise_if_rejected()
    with patch.object(change_records, "_has_one_record_per_entity", side_effect=expect_false):
        load(twice, dim, [delivery(dim, 3, repeated=2)]).raise_if_rejected()
    without_counts = {f"{dim.name}_changes"}
    first, second = contents(once, dim), contents(twice, dim)
    assert all(first[table] == second[table] for table in first.keys() - without_counts)


_decide = change_records._has_one_record_per_entity


def expect_false(*arguments: object) -> bool:
    assert not _decide(*arguments)  # type: ignore[arg-type]
    return False
