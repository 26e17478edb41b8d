"""F15, F19, F53, F57: what the audit and the queries show of a player who rises, leaves and returns."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.requirements.test_f_types import PLAYER, WALK, walk
from scd_pipeline_tests.semantics.specification import by_files, requirement
from scd_pipeline_tests.text_tables import assert_same_rows, parse

DIMENSION = by_files(PLAYER.dimension)


@pytest.fixture(scope="module")
def walked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> OwnTables:
    """The walk, loaded with its audit; its last delivery has the actor of a steward. No test changes it."""
    tables = OwnTables(Warehouse(spark, tmp_path_factory.mktemp("walked")), tmp_path_factory.mktemp("deliveries"))
    deliveries = [replace(delivery, correlation_id="ticket 9") for delivery in walk_deliveries(tables)]
    load(tables.warehouse, DIMENSION, [*deliveries[:-1], replace(deliveries[-1], actor="steward:ann")])
    return tables


def walk_deliveries(tables: OwnTables) -> list[Delivery]:
    """The deliveries of the walk."""
    return tables.deliveries(DIMENSION, walk(*WALK))


@requirement("F53", "F57", "F15")
def test_the_walk_of_a_player_has_five_transitions_and_three_versions(walked: OwnTables) -> None:
    """One test, because each load takes seconds: the audit, the bounds of the windows, and the same load again."""
    warehouse = walked.warehouse
    versions = {row["version"]: row["player_key"] for row in records(queries.history(warehouse, DIMENSION))}
    k1, k2, k3 = (versions[number] for number in (1, 2, 3))
    transitions = [_transition(row) for row in records(queries.audit(warehouse, DIMENSION))]
    assert_same_rows(
        [
            {"type": "INSERT", "old": None, "new": k1, "columns": None, "change": None},
            {"type": "UPDATE", "old": k1, "new": k2, "columns": "tier", "change": "Bronze to Silver"},
            {"type": "OVERWRITE", "old": k2, "new": k2, "columns": "email", "change": "a to b"},
            {"type": "LOGICAL_DELETE", "old": k2, "new": None, "columns": None, "change": None},
            {"type": "INSERT", "old": None, "new": k3, "columns": None, "change": None},
        ],
        transitions,
        ("type", "old", "new", "columns", "change"),
    )
    in_force = """
    | at                         | version |
    | 2024-03-05                 | 1       |
    | 2024-05-31 23:59:59.999999 | 1       |
    | 2024-06-01                 | 2       |
    | 2024-08-01                 | 2       |
    | 2024-10-01                 | NULL    |
    | 2024-12-01                 | 3       |
    """
    for row in parse(in_force):
        at = datetime.fromisoformat(str(row["at"])).replace(tzinfo=timezone.utc)
        rows = records(queries.as_of(warehouse, DIMENSION, at))
        assert [version["version"] for version in rows] == [row["version"]] * (row["version"] is not None), row["at"]
    origins = {f"{row['change_ts']:%m-%d}": row for row in records(queries.audit(warehouse, DIMENSION))}
    actors = {day: row["actor"] for day, row in origins.items()}
    others = dict.fromkeys(("01-01", "06-01", "07-01", "09-01"), "pipeline:dim_player")
    assert actors == {**others, "11-01": "steward:ann"}
    assert [origins[day]["source_batch_id"] for day in sorted(origins)] == [f"loyalty/feed/{n}" for n in range(1, 6)]
    assert {row["correlation_id"] for row in origins.values()} == {"ticket 9"}
    before = [warehouse.table(name).last_commit().newest for name in warehouse.tables()]
    load(warehouse, DIMENSION, walk_deliveries(walked))
    assert [warehouse.table(name).last_commit().newest for name in warehouse.tables()] == before


@requirement("F19", "F25", "X17")
def test_a_delete_has_a_reason_of_its_own_and_leaves_that_of_the_opening(walked: OwnTables) -> None:
    """The audit has reason and delivery of the delete at 2024-09-01, and the Silver version those of its opening."""
    audit = records(queries.audit(walked.warehouse, DIMENSION))
    reasons = {(row["change_type"], f"{row['change_ts']:%Y-%m-%d}"): row["reason"] for row in audit}
    assert reasons.pop(("LOGICAL_DELETE", "2024-09-01")) == "deleted_in_source"
    assert set(reasons.values()) == {"source_load"}
    (silver,) = records(queries.as_of(walked.warehouse, DIMENSION, datetime(2024, 8, 1, tzinfo=timezone.utc)))
    assert (silver["tier"], silver["change_reason"]) == ("Silver", "source_load")
    (closing,) = (row for row in audit if row["change_type"] == "LOGICAL_DELETE")
    assert (silver["load_run_id"], closing["source_batch_id"]) == ("loyalty/feed/2", "loyalty/feed/4")
    assert closing["player_key_old"] == silver["player_key"]


def _transition(row: dict[str, Any]) -> dict[str, Any]:
    is_row_change = row["change_type"] in ("INSERT", "LOGICAL_DELETE")
    changed = None if is_row_change else row["changed_columns"]
    old, new = (dict(row[name] or ()) for name in ("old_values", "new_values"))
    return {
        "type": row["change_type"],
        "old": row["player_key_old"],
        "new": row["player_key_new"],
        "columns": ", ".join(changed) if changed else None,
        "change": ", ".join(f"{old[name]} to {new[name]}" for name in changed) if changed else None,
    }
