"""What the audit tells of worlds: replayed up to each moment it is the dimension as it was then (S21, S22)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline import reading
from scd_pipeline.columns import COMMIT
from scd_pipeline.delta.audit_table import current_transitions
from scd_pipeline.history.transitions import WITHDRAWN, build_transitions
from scd_pipeline.load.log import open_log, records_in_effect
from scd_pipeline.load.run import ingest_and_apply, record
from scd_pipeline_tests import worlds as w
from scd_pipeline_tests.generative.ground import Ground, Record, Site, records, steps
from scd_pipeline_tests.text_tables import same_rows

SEED, WORLDS, LOADS = 30_000, 12, 3


def ground_of(site: Site, shape: w.Shape) -> list[w.World]:
    """Worlds that are delivered under one declaration, and in any number of loads."""
    drawn = w.worlds_of(shape, range(SEED, SEED + 4 * WORLDS))
    return [world for world in drawn if not world.first and not world.one_load][:WORLDS]


def rows_then(ground: Ground) -> dict[object, list[Record]]:
    """The dimension's rows at each of its pipeline commits, by the time of the commit."""
    table = ground.warehouse.table(ground.dimension.name)
    return {commit.at: records(table.read(commit.table_version)) for commit in table.commits_since(0)}


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True], ids=["after each load", "once at the end"])
@pytest.mark.parametrize("shape", w.SHAPES, ids=lambda shape: shape.name)
def test_replayed_up_to_each_moment_it_is_the_dimension_as_it_was(
    spark: SparkSession, tmp_path: Path, shape: w.Shape, at_once: bool
) -> None:
    """Late, replaced and withdrawn batches included; a recording that comes late tells the same."""
    site = Site(spark, tmp_path / "site")
    with site.ground(ground_of(site, shape)) as ground:
        for batches in steps(ground.worlds, 1, LOADS):
            ingest_and_apply(ground.warehouse, ground.dimension, ground.deliveries(batches))
            if not at_once:
                record(ground.warehouse, ground.dimension)
        record(ground.warehouse, ground.dimension)
        told = records(reading.audit(ground.warehouse, ground.dimension))
        for moment, rows in rows_then(ground).items():
            known = records(reading.rows_known_at(ground.warehouse, ground.dimension, moment))
            assert not same_rows(rows, known)
        assert_each_once(told)
        assert_standing_are_those_of_the_log(ground)
        again = record(ground.warehouse, ground.dimension)
        assert (again.steps, again.rows) == (0, {})


def assert_each_once(told: list[Record]) -> None:
    """Ids name one row; each withdrawal names one row that came before it, and no row is withdrawn twice."""
    ids = Counter(row["audit_id"] for row in told)
    assert set(ids.values()) <= {1}
    withdrawals = [row for row in told if row["change_type"] == WITHDRAWN]
    withdrawn = Counter(row["withdraws"] for row in withdrawals)
    assert set(withdrawn.values()) <= {1}
    when = {row["audit_id"]: row["recorded_at"] for row in told}
    assert all(when[row["withdraws"]] < row["recorded_at"] for row in withdrawals)
    assert withdrawals


def assert_standing_are_those_of_the_log(ground: Ground) -> None:
    """S14: whatever came in which order, what stands is a function of the batches that count."""
    log = open_log(ground.warehouse, ground.dimension)
    batches = log.batches()
    statements = records_in_effect(log.rows(), batches).drop(COMMIT)
    row_timed = any(batch.row_times for batch in batches)
    wanted = build_transitions(statements, ground.dimension, row_timed=row_timed).drop("effective_from")
    audit = reading.audit(ground.warehouse, ground.dimension)
    found = current_transitions(audit, ground.dimension).select(*wanted.columns)
    assert not same_rows(records(_plain(wanted)), records(_plain(found)))


def _plain(rows: object) -> object:
    """Empty maps and no maps are the same to a reader."""
    maps = {name: F.when(F.size(name) > 0, F.col(name)) for name in ("old_values", "new_values")}
    return rows.withColumns(maps)  # type: ignore[attr-defined]
