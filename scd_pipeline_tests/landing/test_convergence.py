"""S14, S34, S38: the rows do not depend on when, in which order and how often deliveries arrive, as the oracle says."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pyarrow as pa
import pytest

from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.landing import oracle as o
from scd_pipeline_tests.landing.tables import landing_table, stored_rows
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows

COLUMNS = {
    "id": pa.int32(),
    "day": pa.string(),
    "lsn": pa.int32(),
    "value": pa.string(),
    "deleted": pa.bool_(),
}
TYPES = "{id: int, day: string, lsn: int, value: string, deleted: boolean}"
SEED, DELIVERIES, LOADS = 38_000, 7, 3


@dataclass(frozen=True)
class Shape:
    """A declaration in YAML, and as the oracle has it; `has_one_row` is whether a delivery has one row of each key."""

    text: str
    table: o.Table
    has_one_row: bool = False


SHAPES = {
    "append": Shape("disposition: append", o.Table("append")),
    "replace": Shape("disposition: replace", o.Table("replace")),
    "primary key": Shape(
        "disposition: merge\nprimary_key: id\ndedup_sort: {lsn: desc}\nhard_delete: deleted",
        o.Table("merge", ("id",), dedup_sort=("lsn", True), hard_delete="deleted"),
    ),
    "upsert": Shape(
        "disposition: merge\nstrategy: upsert\nprimary_key: [id, day]\nhard_delete: deleted",
        o.Table("merge", ("id", "day"), hard_delete="deleted"),
        has_one_row=True,
    ),
    "merge key": Shape(
        "disposition: merge\nmerge_key: day\nhard_delete: deleted",
        o.Table("merge", merge_key=("day",), hard_delete="deleted"),
    ),
    "both keys": Shape(
        "disposition: merge\nprimary_key: id\nmerge_key: day\ndedup_sort: {lsn: asc}\nhard_delete: deleted",
        o.Table("merge", ("id",), ("day",), dedup_sort=("lsn", False), hard_delete="deleted"),
    ),
    "merge key in the primary key": Shape(
        "disposition: merge\nprimary_key: [id, day]\nmerge_key: day\ndedup_sort: {lsn: asc}\nhard_delete: deleted",
        o.Table("merge", ("id", "day"), ("day",), dedup_sort=("lsn", False), hard_delete="deleted"),
    ),
}


def draw_rows(shape: Shape, rng: random.Random) -> tuple[o.Row, ...]:
    """Return the rows of a delivery, some of which are equal or have a key in common."""
    rows: list[o.Row] = [
        {
            "id": rng.randint(1, 6),
            "day": rng.choice(["d1", "d2", "d3", "d4"]),
            "lsn": rng.choice([None, 1, 2, 3]),
            "value": rng.choice([None, "", "a", "b"]),
            "deleted": rng.choice([None, False, False, True]),
        }
        for _ in range(rng.randint(1, 8))
    ]
    rows += rows[:1] * rng.randint(0, 1)
    if shape.has_one_row:
        keys = shape.table.primary_key
        rows = list({tuple(row[name] for name in keys): row for row in rows}.values())
    return tuple(rows)


def draw_batches(shape: Shape, rng: random.Random) -> list[o.Batch]:
    """Return deliveries of which some have a second revision, or are withdrawn."""
    batches = []
    for number in range(DELIVERIES):
        name = f"2024-01-{number + 1:02d}"
        batches.append(o.Batch(name, 1, draw_rows(shape, rng)))
        match rng.randint(0, 3):
            case 0:
                batches.append(o.Batch(name, 2, draw_rows(shape, rng)))
            case 1:
                batches.append(o.Batch(name, 2, None))
    return batches


def to_delivery(batch: o.Batch) -> Delivery:
    if batch.rows is None:
        return Delivery("api", batch.delivery, at=batch.delivery, revision=batch.revision, withdrawn=True)
    frame = pa.Table.from_pylist(list(batch.rows), schema=pa.schema(list(COLUMNS.items())))
    return Delivery("api", batch.delivery, at=batch.delivery, revision=batch.revision, frame=frame)


@pytest.mark.slow(90)
@requirement("D3")
@rule("S14", "S34", "S38")
@pytest.mark.parametrize("name", SHAPES)
def test_any_order_of_arrival_leaves_the_rows_of_the_order_of_positions(opened: Warehouse, name: str) -> None:
    shape, rng = SHAPES[name], random.Random(f"{SEED} {name}")
    declared = landing_table(f"{shape.text}\ncolumns: {TYPES}", guard="1.0")
    batches = draw_batches(shape, rng)
    arrivals = rng.sample(batches, len(batches)) + rng.sample(batches, 2)
    for number in range(LOADS):
        load(opened, declared, [to_delivery(batch) for batch in arrivals[number::LOADS]])
    assert_same_rows(o.stored_rows(shape.table, batches), stored_rows(opened), COLUMNS)
    assert all(result.passed for result in check_table(opened, declared))
