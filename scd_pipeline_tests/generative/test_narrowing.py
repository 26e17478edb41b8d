"""A load that is narrowed to the entities that may change appends and writes the same rows as one that compares all."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Attribute, Delivery, Dimension, Feed, Snapshot, Source, Warehouse
from scd_pipeline.deliveries import read
from scd_pipeline.deliveries.narrowed import NarrowedSnapshot, narrow_snapshot
from scd_pipeline.history import narrowing
from scd_pipeline.history.narrowing import can_narrow
from scd_pipeline.load import change_records
from scd_pipeline.load.run import load

ENTITIES = 40
REPEATED_UNTIL = 4
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
VALUES = ("a", "b", "c", None)
SNAPSHOT = Snapshot(path="crm/{date}.csv")
FEED = Feed(path="crm/feed/{delivery}.csv", effective_at="at", deletes="gone")
ATTRIBUTES = {
    "birthplace": Attribute(0, missing="not_provided"),
    "phone": Attribute(1, missing="not_provided"),
    "city": Attribute(2, missing="not_provided"),
    "url": Attribute(3, missing="not_provided"),
    "tier": Attribute(6, missing="not_provided", previous=True),
}


def dimension(sources: Sequence[Source], **options: Any) -> Dimension:
    attributes = options.pop("attributes", ATTRIBUTES)
    return Dimension("dim_person", {"region": "string", "id": "int"}, attributes, sources, "person_key", **options)


def crm(**options: Any) -> Source:
    return Source("crm", bad_row_limit=1.0, retire_guard=1.0, **{"snapshot": SNAPSHOT, **options})


TWO_SOURCES = [
    crm(attributes=["birthplace", "phone", "city", "url"], existence=True),
    Source("web", feed=Feed(path="web/{delivery}.csv", effective_at="at"), attributes=["tier"]),
]
WITHOUT_WINDOWS = {name: Attribute(1, missing="not_provided") for name in ("phone", "city")}
SHAPES = {
    "one source": dimension([crm()]),
    "snapshots and a feed": dimension([crm(feed=FEED)]),
    "snapshots by region": dimension([crm(snapshot=Snapshot(path="crm/{date}.csv", scope=["region"]))]),
    "two sources": dimension(TWO_SOURCES),
    "without windows": dimension([crm()], attributes=WITHOUT_WINDOWS, deleted_at=True),
}


def row(number: int, names: Sequence[str], draw: random.Random, changes: float) -> dict[str, Any]:
    """Return the row of an entity with the values that it always has, one of which may change for this delivery.

    A single change shows whether each attribute by itself makes an entity one that may change.
    """
    usual = random.Random(number)
    values = {name: usual.choice(VALUES) for name in ATTRIBUTES}
    if draw.random() < changes:
        values[draw.choice(names)] = draw.choice(VALUES)
    return {"region": f"r{number % 3}", "id": str(number), **{name: values[name] for name in names}}


def snapshot(day: int, dim: Dimension, draw: random.Random) -> Delivery:
    """Return a snapshot that omits some entities and changes some; in the first days it has bad and duplicate rows."""
    names = [attribute.name for attribute in dim.source_attributes("crm")]
    delivered = names[: len(names) - (day == 0)]  # the first snapshot lacks an attribute
    numbers = [n for n in range(ENTITIES) if draw.random() < 0.9]
    rows = [row(n, delivered, draw, changes=0.4) for n in numbers]
    if day < REPEATED_UNTIL:
        rows.append(dict(rows[0]))
    if day % 2:
        rows.append({**rows[1], "id": "none"})
    at, scope = START + timedelta(days=day), None
    if dim.source("crm").channel("snapshot").scope:  # type: ignore[union-attr]
        regions = draw.sample(["r0", "r1", "r2"], 2)
        rows, scope = [r for r in rows if r["region"] in regions], [[region] for region in regions]
    return Delivery("crm", f"2024-01-{day + 1:02d}", "snapshot", at=at, frame=rows, scope=scope)


def feed(day: int, source: str, dim: Dimension, draw: random.Random) -> Delivery:
    """Return some changes before or after the last snapshot."""
    names = [attribute.name for attribute in dim.source_attributes(source)]
    rows = []
    for number in draw.sample(range(ENTITIES), 6):
        at = START + timedelta(days=day, hours=draw.choice([-30, 6]))
        change = {**row(number, names, draw, changes=1.0), "at": at.isoformat()}
        rows.append({**change, "gone": draw.random() < 0.3} if source == "crm" else change)
    return Delivery(source, f"f{day}", "feed", frame=rows)


def loads(dim: Dimension, seed: int) -> Iterator[list[Delivery]]:
    draw = random.Random(seed)
    for days in ([0], [1], [2, 3], [4], [5], [6]):
        deliveries = [snapshot(day, dim, draw) for day in days]
        deliveries += [feed(days[0], source.name, dim, draw) for source in dim.sources if source.feed is not None]
        yield deliveries


def contents(warehouse: Warehouse, dim: Dimension) -> dict[str, list[str]]:
    """Return the rows of all tables as sorted texts, without the times and versions of commits."""
    ignored = ("recorded_at", "recorded_version")
    tables = [dim.name, f"{dim.name}_changes", f"{dim.name}_audit"]
    frames = {name: warehouse.table(name).read().drop(*ignored).toArrow().to_pylist() for name in tables}
    return {name: sorted(map(repr, rows)) for name, rows in frames.items()}


@pytest.mark.slow(60)
@pytest.mark.parametrize("name", SHAPES)
def test_a_narrowed_load_writes_the_same_rows(spark: SparkSession, tmp_path: Path, name: str) -> None:
    dim, decisions, reads = SHAPES[name], [], []

    def spied(*args: Any) -> bool:
        decisions.append(can_narrow(*args))
        return decisions[-1]

    def spied_read(*args: Any) -> NarrowedSnapshot | None:
        reads.append(narrow_snapshot(*args))
        return reads[-1]

    narrowed, exact = Warehouse(spark, tmp_path / "narrowed"), Warehouse(spark, tmp_path / "exact")
    first, *others = loads(dim, seed=7)
    load(narrowed, dim, first).raise_if_rejected()  # the first load has no current rows to be narrowed by
    shutil.copytree(narrowed.path, exact.path, dirs_exist_ok=True)
    for deliveries in others:
        with (
            patch.object(change_records, "can_narrow", spied),
            patch.object(read, "narrow_snapshot", spied_read),
            patch.object(narrowing, "NARROWED_FROM", 0),
        ):
            load(narrowed, dim, deliveries).raise_if_rejected()
        load(exact, dim, deliveries).raise_if_rejected()  # the log is too small to be narrowed
    assert any(decisions)
    # A snapshot is read together with the current rows if it comes alone, and if it has each entity once.
    is_alone = not any(source.feed for source in dim.sources)
    assert [result is not None for result in reads[1:]] == ([True, True, True] if is_alone else [])
    assert name != "one source" or reads[0] is None
    assert contents(narrowed, dim) == contents(exact, dim)
