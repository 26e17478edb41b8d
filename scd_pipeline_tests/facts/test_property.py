"""S24 as a property: after any sequence of deliveries each stored key is what a fresh as-of join gives."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.load.run import ingest_and_apply, load, record
from scd_pipeline.operations import check
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests import worlds as w
from scd_pipeline_tests.generative.ground import Ground, Site, steps
from scd_pipeline_tests.semantics.specification import rule

SEED, WORLDS, FACTS, DIMENSION_LOADS = 60_000, 6, 90, 2
SCHEMA = pa.schema([(name, pa.string()) for name in ("n", "at", "world", "id", "other")])


def fact_rows(worlds: list[w.World], rng: random.Random) -> list[dict[str, str | None]]:
    """Events of entities of the worlds, and of nobody, at, before and between the times of their changes."""
    entities = sorted({row.key for world in worlds for batch in world.batches for row in batch.rows if row.readable})
    rows: list[dict[str, str | None]] = []
    for number in range(FACTS):
        world, one = rng.choice(entities)
        day = w.START + rng.randint(-3, 14) * w.DAY + rng.choice((-1, 0, 1)) * dt.timedelta(microseconds=1)
        rows.append(
            {
                "n": str(number),
                "at": day.strftime("%Y-%m-%d %H:%M:%S.%f"),
                "world": str(world),
                "id": str(one),
                "other": rng.choice([None, "nobody", str(one)]),
            }
        )
    return rows


@dataclass(frozen=True)
class Edition:
    """A revision of a delivery of facts; without rows it takes the delivery back."""

    number: int
    revision: int
    rows: list[dict[str, str | None]] | None

    def delivered(self) -> Delivery:
        at, frame = w.START + self.number * w.DAY, None
        if self.rows is not None:
            frame = pa.Table.from_pylist(self.rows, schema=SCHEMA)
        name, withdrawn = str(self.number), self.rows is None
        return Delivery("floor", name, "feed", at=at, revision=self.revision, frame=frame, withdrawn=withdrawn)


def drawn_editions(rows: list[dict[str, str | None]], rng: random.Random) -> list[Edition]:
    """Three deliveries that overlap: one is revised, with other times and fewer rows, and one is withdrawn."""

    def moved(part: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
        return [{**row, "at": rng.choice(rows)["at"]} for row in part]

    return [
        Edition(0, 1, rows[:50]),
        Edition(0, 2, moved(rows[5:50])),
        Edition(1, 1, moved(rows[40:])),
        Edition(2, 1, moved(rows[30:60])),
        Edition(2, 2, None),
    ]


def standing_rows(editions: list[Edition]) -> list[dict[str, str | None]]:
    """Of each fact what the last of the deliveries says of it that stand, each in its highest revision."""
    standing = {e.number: e for e in sorted(editions, key=lambda e: e.revision)}
    rows = {row["n"]: row for number in sorted(standing) for row in standing[number].rows or ()}
    return list(rows.values())


def expected_keys(worlds: list[w.World], rows: list[dict[str, str | None]]) -> dict[str, tuple[object, object]]:
    """Of each fact the beginning of the version that held, in both roles; None for nobody."""
    versions: dict[tuple[str, str], list[dict[str, object]]] = {}
    for world in worlds:
        for row in o.oracle(world.dim, world.batches):
            versions.setdefault((str(row["world"]), str(row["id"])), []).append(row)

    def held(row: dict[str, str | None], key: str) -> object:
        moment = dt.datetime.fromisoformat(str(row["at"]))
        for version in versions.get((str(row["world"]), str(row[key])), []):
            if version["effective_from"] <= moment < version["effective_to"]:  # type: ignore[operator]
                return version["effective_from"]
        return None

    return {str(row["n"]): (held(row, "id"), held(row, "other")) for row in rows}


@pytest.mark.slow
@rule("S14", "S23", "S24")
def test_stored_keys_equal_those_of_a_fresh_as_of_join(spark: SparkSession, tmp_path: Path) -> None:
    """In an order that is drawn; keys are held against a fresh join each time, at the end against the oracle."""
    rng = random.Random(SEED)
    drawn = w.worlds_of(w.PLAYER, range(SEED, SEED + 3 * WORLDS))
    worlds = [world for world in drawn if not world.first and not world.one_load][:WORLDS]
    rows = fact_rows(worlds, rng)
    with Site(spark, tmp_path / "site").ground(worlds) as ground:
        fact = Fact(
            "fct_event",
            grain={"n": "int"},
            event_time="at",
            dimensions={
                "player": Role(ground.dimension, ("world", "id")),
                "other": Role(ground.dimension, ("world", "other")),
            },
            source=Source("floor", feed=Feed()),
        )
        editions = drawn_editions(rows, rng)
        loads = [lambda of=of: load_dimension(ground, of) for of in steps(worlds, 1, DIMENSION_LOADS)]
        loads += [lambda of=of: load(ground.warehouse, fact, [of.delivered()]) for of in editions]
        rng.shuffle(loads)
        for act in loads:
            act()
            if ground.warehouse.table(fact.name).exists():
                load(ground.warehouse, fact)
                assert not [f for f in check.check_fact(ground.warehouse, fact) if not f.passed]
        assert not [f for f in check.check_fact(ground.warehouse, fact) if not f.passed]
        stored = ground.warehouse.table(fact.name).read().toArrow().to_pylist()
        begins = {row["player_key"]: row["effective_from"].replace(tzinfo=None) for row in ground.rows()}
    found = {str(r["n"]): (begins.get(r["player_key"]), begins.get(r["other_key"])) for r in stored}
    nobody = dt.datetime(1, 1, 1)
    found = {n: tuple(None if at == nobody else at for at in keys) for n, keys in found.items()}  # type: ignore[misc]
    assert found == expected_keys(worlds, standing_rows(editions))


def load_dimension(ground: Ground, batches: list[o.Batch]) -> None:
    ingest_and_apply(ground.warehouse, ground.dimension, ground.deliveries(batches))
    record(ground.warehouse, ground.dimension)
