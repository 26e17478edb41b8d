"""S24 as a property: after any sequence of deliveries each stored key equals that of a fresh as-of join."""

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
from scd_pipeline_tests import scenarios as s
from scd_pipeline_tests.generative.scenario_warehouse import ScenarioWarehouse, Site, steps
from scd_pipeline_tests.semantics.specification import requirement, rule

SEED, SCENARIOS, FACTS, DIMENSION_LOADS = 60_000, 6, 90, 2
SCHEMA = pa.schema([(name, pa.string()) for name in ("n", "at", "scenario", "id", "other", "op")])


def fact_rows(scenarios: list[s.Scenario], rng: random.Random) -> list[dict[str, str | None]]:
    """Return events of entities of the scenarios and of an unknown one, at, before and between the times of changes."""
    batches = [batch for scenario in scenarios for batch in scenario.batches]
    entities = sorted({row.key for batch in batches for row in batch.rows if row.readable})
    rows: list[dict[str, str | None]] = []
    for number in range(FACTS):
        scenario, entity = rng.choice(entities)
        day = s.START + rng.randint(-3, 14) * s.DAY + rng.choice((-1, 0, 1)) * dt.timedelta(microseconds=1)
        rows.append(
            {
                "n": str(number),
                "at": day.strftime("%Y-%m-%d %H:%M:%S.%f"),
                "scenario": str(scenario),
                "id": str(entity),
                "other": rng.choice([None, "unknown", str(entity)]),
            }
        )
    return rows


@dataclass(frozen=True)
class FactRevision:
    """A revision of a delivery of facts; without rows it withdraws the delivery."""

    number: int
    revision: int
    rows: list[dict[str, str | None]] | None

    def to_delivery(self) -> Delivery:
        at, frame = s.START + self.number * s.DAY, None
        if self.rows is not None:
            frame = pa.Table.from_pylist(self.rows, schema=SCHEMA)
        name, withdrawn = str(self.number), self.rows is None
        return Delivery("floor", name, "feed", at=at, revision=self.revision, frame=frame, withdrawn=withdrawn)


def draw_revisions(rows: list[dict[str, str | None]], rng: random.Random) -> list[FactRevision]:
    """Return five deliveries that overlap: one is revised, with other times and fewer rows, and one is withdrawn.

    One has deletes, of unknown facts too, and some of the deleted facts return with the last one.
    """

    def moved(part: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
        return [{**row, "at": rng.choice(rows)["at"]} for row in part]

    unknown: list[dict[str, str | None]] = [{"n": str(FACTS + number)} for number in range(3)]
    return [
        FactRevision(0, 1, rows[:50]),
        FactRevision(0, 2, moved(rows[5:50])),
        FactRevision(1, 1, moved(rows[40:])),
        FactRevision(2, 1, moved(rows[30:60])),
        FactRevision(2, 2, None),
        FactRevision(3, 1, [{"n": row["n"], "op": "D"} for row in (*rng.sample(rows, 20), *unknown)]),
        FactRevision(4, 1, moved(rng.sample(rows, 15))),
    ]


def current_rows(revisions: list[FactRevision]) -> list[dict[str, str | None]]:
    """Return each fact as in the last delivery that has it, by the highest revision of each delivery.

    A fact that this delivery deletes does not exist.
    """
    current = {e.number: e for e in sorted(revisions, key=lambda e: e.revision)}
    rows = {row["n"]: row for number in sorted(current) for row in current[number].rows or ()}
    return [row for row in rows.values() if row.get("op") != "D"]


def expected_keys(scenarios: list[s.Scenario], rows: list[dict[str, str | None]]) -> dict[str, tuple[object, object]]:
    """Return the beginning of the version in force for each fact and role; None for the unknown member."""
    versions: dict[tuple[str, str], list[dict[str, object]]] = {}
    for scenario in scenarios:
        for row in o.oracle(scenario.dim, scenario.batches):
            versions.setdefault((str(row["scenario"]), str(row["id"])), []).append(row)

    def begin_in_force(row: dict[str, str | None], key: str) -> object:
        moment = dt.datetime.fromisoformat(str(row["at"]))
        for version in versions.get((str(row["scenario"]), str(row[key])), []):
            if version["effective_from"] <= moment < version["effective_to"]:  # type: ignore[operator]
                return version["effective_from"]
        return None

    return {str(row["n"]): (begin_in_force(row, "id"), begin_in_force(row, "other")) for row in rows}


@requirement("F59")
@pytest.mark.slow(80)
@rule("S14", "S23", "S24")
def test_stored_keys_equal_those_of_a_fresh_as_of_join(spark: SparkSession, tmp_path: Path) -> None:
    """Loads run in random order. Keys are compared with a fresh join after each one, and with the oracle at the end."""
    rng = random.Random(SEED)
    drawn = s.scenarios_of(s.PLAYER, range(SEED, SEED + 3 * SCENARIOS))
    scenarios = [scenario for scenario in drawn if not scenario.first and not scenario.one_load][:SCENARIOS]
    rows = fact_rows(scenarios, rng)
    with Site(spark, tmp_path / "site").open(scenarios) as opened:
        fact = Fact(
            "fct_event",
            grain={"n": "int"},
            event_time="at",
            dimensions={
                "player": Role(opened.dimension, ("scenario", "id")),
                "other": Role(opened.dimension, ("scenario", "other")),
            },
            source=Source("floor", feed=Feed(deletes="op = 'D'")),
        )
        revisions = draw_revisions(rows, rng)
        loads = [
            lambda batches=batches: load_dimension(opened, batches) for batches in steps(scenarios, 1, DIMENSION_LOADS)
        ]
        loads += [
            lambda revision=revision: load(opened.warehouse, fact, [revision.to_delivery()]) for revision in revisions
        ]
        rng.shuffle(loads)
        for run_load in loads:
            run_load()
            if opened.warehouse.table(fact.name).exists():
                load(opened.warehouse, fact)
                assert not [f for f in check.check_table(opened.warehouse, fact) if not f.passed]
        assert not [f for f in check.check_table(opened.warehouse, fact) if not f.passed]
        stored = opened.warehouse.table(fact.name).read().toArrow().to_pylist()
        begins = {row["player_key"]: row["effective_from"].replace(tzinfo=None) for row in opened.rows()}
    stored_keys = {str(r["n"]): (begins.get(r["player_key"]), begins.get(r["other_key"])) for r in stored}
    unknown_begin = dt.datetime(1, 1, 1)
    stored_keys = {n: tuple(None if at == unknown_begin else at for at in keys) for n, keys in stored_keys.items()}  # type: ignore[misc]
    assert stored_keys == expected_keys(scenarios, current_rows(revisions))


def load_dimension(opened: ScenarioWarehouse, batches: list[o.Batch]) -> None:
    ingest_and_apply(opened.warehouse, opened.dimension, opened.deliveries(batches))
    record(opened.warehouse, opened.dimension)
