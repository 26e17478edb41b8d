"""F11 to F70: surrogate keys of players, and of their plays, through late changes and a rebuild."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.requirements.test_f_types import PLAYER, WALK, walk
from scd_pipeline_tests.semantics.specification import by_files, requirement
from scd_pipeline_tests.text_tables import assert_same_rows

DIMENSION = by_files(PLAYER.dimension)
PLAY = Fact(
    "fct_slot_play",
    {"event_id": "int"},
    "event_ts",
    {"player": Role(DIMENSION)},
    Source("floor", feed=Feed()),
    {"coin_in": "decimal(12,2)", "coin_out": "decimal(12,2)"},
)
OTHER_WALK = tuple(line.replace("| ", "| 1", 1).replace("P1", "P2") for line in WALK)
LATE = (
    "| 21 | P1 | 2024-03-01 | | Gold   | North | 10 | a |",
    "| 21 | P2 | 2024-05-01 | | Silver | North | 10 | a |",
)
"""A late change of P1 that splits a version, and one of P2 that moves the start of a version to another time."""

PLAYS = (("P1", "2024-03-05"), ("P1", "2024-06-05"), ("P2", "2024-03-05"), ("P2", "2024-05-31"), ("P2", "2024-06-05"))
OFTEN_USED = """
SELECT player_key FROM {keys}
GROUP BY player_key HAVING count(DISTINCT player_id, effective_from) <> 1
"""

Entity = tuple[str, str]
"""A player, and the first day of a version or the day of a play."""


@dataclass(frozen=True)
class Step:
    """The versions of the players, and the surrogate keys of the plays."""

    versions: dict[Entity, dict[str, Any]]
    plays: dict[Entity, int]

    @property
    def keys(self) -> dict[Entity, int]:
        """The surrogate keys of the versions."""
        return {entity: version["player_key"] for entity, version in self.versions.items()}


@dataclass(frozen=True)
class Steps:
    """The warehouse after all steps, and what it had after each of them."""

    warehouse: Warehouse
    early: dict[Entity, int]
    walked: Step
    late: Step
    rebuilt: Step


@pytest.fixture(scope="module")
def steps(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """A play before its dimension, two walks, late plays, late changes, and the rebuild of the dropped dimension."""
    tables = OwnTables(Warehouse(spark, tmp_path_factory.mktemp("keys")), tmp_path_factory.mktemp("deliveries"))
    warehouse = tables.warehouse

    def load_players(*lines: str) -> None:
        load(warehouse, DIMENSION, tables.deliveries(DIMENSION, walk(*lines)))

    coins = {"coin_in": "1.50", "coin_out": "0.25"}
    events = [{"player_id": player, "event_ts": day} for player, day in PLAYS]
    rows = [{"event_id": str(number), **event, **coins} for number, event in enumerate(events)]

    def load_plays(name: str, rows: list[dict[str, str]]) -> None:
        load(warehouse, PLAY, [Delivery("floor", name, "feed", frame=pa.Table.from_pylist(rows))])

    load_plays("2024-03-06", rows[:1])
    early = plays(warehouse)
    load_players(*WALK, *OTHER_WALK)
    load_plays("2024-12-31", rows[1:])
    walked = step(warehouse)
    load_players(*LATE)
    load(warehouse, PLAY)
    late = step(warehouse)
    shutil.rmtree(Path(warehouse.path) / DIMENSION.name)
    load(warehouse, DIMENSION)
    return Steps(warehouse, early, walked, late, step(warehouse))


def step(warehouse: Warehouse) -> Step:
    """What the tables have now."""
    versions = {
        (row["player_id"], f"{row['effective_from']:%m-%d}"): row
        for row in records(queries.history(warehouse, DIMENSION))
    }
    return Step(versions, plays(warehouse))


def plays(warehouse: Warehouse) -> dict[Entity, int]:
    """The surrogate keys that the plays have now."""
    rows = records(warehouse.table(PLAY.name).read())
    return {(row["player_id"], f"{row['event_ts']:%m-%d}"): row["player_key"] for row in rows}


@pytest.mark.slow(25)
@requirement("F17", "F20", "F21")
def test_each_version_has_a_key_of_its_own_and_a_late_change_leaves_later_rows_unchanged(steps: Steps) -> None:
    """The Bronze version retains its key; later rows differ in their version number only."""
    before, after = steps.walked, steps.late
    assert len(set(before.keys.values())) == len(before.keys) == 6
    versions = {day: (row["tier"], row["version"]) for (player, day), row in after.versions.items() if player == "P1"}
    assert versions == {"01-01": ("Bronze", 1), "03-01": ("Gold", 2), "06-01": ("Silver", 3), "11-01": ("Silver", 4)}
    bronze, gold = after.versions["P1", "01-01"], after.versions["P1", "03-01"]
    assert bronze["effective_to"] == gold["effective_from"]
    assert bronze["player_key"] == before.keys["P1", "01-01"]
    assert gold["player_key"] not in before.keys.values()
    for entity in (("P1", "06-01"), ("P1", "11-01"), ("P2", "11-01")):
        assert {**before.versions[entity], "version": after.versions[entity]["version"]} == after.versions[entity]


@requirement("F33", "F65")
def test_a_surrogate_key_never_identifies_another_version(steps: Steps) -> None:
    """Not after a delete and a return, a late change, a version that vanished, or a rebuild."""
    (keys,) = queries.register(steps.warehouse, [f"{DIMENSION.name}_keys"])
    assert steps.warehouse.spark.sql(OFTEN_USED.format(keys=keys)).collect() == []
    rows = records(steps.warehouse.spark.table(keys))
    days = sorted((row["player_id"], f"{row['effective_from']:%m-%d}") for row in rows)
    assert days == sorted({*steps.walked.keys, *steps.late.keys})
    assert len({row["player_key"] for row in rows}) == len(rows) == 8
    assert ("P2", "06-01") in steps.walked.keys
    assert ("P2", "06-01") not in steps.late.keys


@requirement("F60")
def test_a_dropped_dimension_is_rebuilt_with_the_keys_that_its_facts_have_stored(steps: Steps) -> None:
    """The facts are not loaded again."""
    assert steps.rebuilt == steps.late
    assert set(steps.rebuilt.plays.values()) < set(steps.rebuilt.keys.values())


@requirement("F61")
def test_late_facts_and_those_of_moved_windows_have_the_keys_of_their_event_times(steps: Steps) -> None:
    """The play of P1 on 2024-03-05 is loaded before the dimension and moves to the key of Gold; the others are late."""
    walked, late = steps.walked, steps.late
    assert steps.early == {("P1", "03-05"): -1}
    assert walked.plays == {
        ("P1", "03-05"): walked.keys["P1", "01-01"],
        ("P1", "06-05"): walked.keys["P1", "06-01"],
        ("P2", "03-05"): walked.keys["P2", "01-01"],
        ("P2", "05-31"): walked.keys["P2", "01-01"],
        ("P2", "06-05"): walked.keys["P2", "06-01"],
    }
    moved = {
        ("P1", "03-05"): late.keys["P1", "03-01"],
        ("P2", "05-31"): late.keys["P2", "05-01"],
        ("P2", "06-05"): late.keys["P2", "05-01"],
    }
    assert late.plays == {**walked.plays, **moved}


@requirement("F31", "F66", "X8")
def test_surrogate_keys_are_hashes_of_the_business_key_and_the_start(steps: Steps) -> None:
    """Each version has one, and the same one in any warehouse: xxhash64('0:2:P1' and the microseconds since 1970)."""
    assert steps.late.keys == {
        ("P1", "01-01"): 2863801750658671787,
        ("P1", "03-01"): -4567503425577509743,
        ("P1", "06-01"): 1847123905435109121,
        ("P1", "11-01"): 2991303255453491109,
        ("P2", "01-01"): -8050200343718555929,
        ("P2", "05-01"): 3165842658734158660,
        ("P2", "11-01"): -40415024743821770,
    }


@requirement("F67")
def test_a_delete_removes_no_version(steps: Steps) -> None:
    """Both players were deleted on 2024-09-01 and returned; the versions before it remain, also after a rebuild."""
    assert_same_rows(
        """
        | player_id | tier   | effective_from | effective_to | current_flag |
        | P1        | Bronze | 2024-01-01     | 2024-03-01   | false        |
        | P1        | Gold   | 2024-03-01     | 2024-06-01   | false        |
        | P1        | Silver | 2024-06-01     | 2024-09-01   | false        |
        | P1        | Silver | 2024-11-01     | NULL         | true         |
        | P2        | Bronze | 2024-01-01     | 2024-05-01   | false        |
        | P2        | Silver | 2024-05-01     | 2024-09-01   | false        |
        | P2        | Silver | 2024-11-01     | NULL         | true         |
        """,
        list(steps.rebuilt.versions.values()),
    )


@requirement("F70")
def test_each_load_of_a_dimension_writes_its_audit(steps: Steps) -> None:
    """The walks of both players and the late changes.

    Each of these withdraws the transition to Silver. That of P2 gives Silver another key, so the two later transitions
    of that version are withdrawn too.
    """
    audit = records(queries.audit(steps.warehouse, DIMENSION))
    assert Counter((row["player_id"], row["change_type"]) for row in audit) == {
        ("P1", "INSERT"): 2,
        ("P1", "UPDATE"): 3,
        ("P1", "WITHDRAWN"): 1,
        ("P1", "OVERWRITE"): 1,
        ("P1", "LOGICAL_DELETE"): 1,
        ("P2", "INSERT"): 2,
        ("P2", "UPDATE"): 2,
        ("P2", "WITHDRAWN"): 3,
        ("P2", "OVERWRITE"): 2,
        ("P2", "LOGICAL_DELETE"): 2,
    }


@requirement("F11")
def test_a_play_has_its_event_its_player_and_its_coins(steps: Steps) -> None:
    rows = records(steps.warehouse.table(PLAY.name).read())
    assert_same_rows(
        """
        | event_id | event_ts   | player_id | coin_in | coin_out |
        | 0        | 2024-03-05 | P1        | 1.50    | 0.25     |
        | 1        | 2024-06-05 | P1        | 1.50    | 0.25     |
        | 2        | 2024-03-05 | P2        | 1.50    | 0.25     |
        | 3        | 2024-05-31 | P2        | 1.50    | 0.25     |
        | 4        | 2024-06-05 | P2        | 1.50    | 0.25     |
        """,
        rows,
    )
    assert {row["player_key"] for row in rows} <= set(steps.late.keys.values())
