"""The audit of scenarios: replayed up to a time, it is the dimension as it was then (S21, S22)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.columns import COMMIT
from scd_pipeline.declaration.change_types import WITHDRAWN
from scd_pipeline.delta.audit_table import AUDIT_ID, assigned_keys_query, current_transitions
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.table import Table
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.keys import surrogate_key
from scd_pipeline.history.transitions import build_transitions, key_columns
from scd_pipeline.load.log import read_log, records_in_effect
from scd_pipeline.load.run import ingest_and_apply, record
from scd_pipeline.queries.dimension import rows_known_at
from scd_pipeline_tests import scenarios as s
from scd_pipeline_tests.generative.scenario_warehouse import Record, ScenarioWarehouse, Site, records, steps
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import same_rows

SEED, SCENARIOS, LOADS = 30_000, 12, 3


def select_scenarios(site: Site, shape: s.Shape) -> list[s.Scenario]:
    """Scenarios that are delivered under one declaration, and in any number of loads."""
    drawn = s.scenarios_of(shape, range(SEED, SEED + 4 * SCENARIOS))
    return [scenario for scenario in drawn if not scenario.first and not scenario.one_load][:SCENARIOS]


def rows_by_commit_time(opened: ScenarioWarehouse) -> dict[object, list[Record]]:
    """The dimension's rows at each of its pipeline commits, by the time of the commit."""
    table = opened.warehouse.table(opened.dimension.name)
    return {commit.at: records(table.read(commit.table_version)) for commit in table.commits_since(0)}


@requirement("F54")
@pytest.mark.slow(90)
@pytest.mark.parametrize(
    ("shape", "at_once"),
    [
        *[pytest.param(shape, False, id=f"{shape.name}-after each load") for shape in s.DIMENSION_SHAPES],
        *[pytest.param(shape, True, id=f"{shape.name}-once at the end") for shape in (*s.SHAPES, *s.DELETED_SHAPES)],
    ],
)
def test_the_audit_replayed_up_to_a_commit_equals_the_dimension_at_that_commit(
    spark: SparkSession, tmp_path: Path, shape: s.Shape, at_once: bool
) -> None:
    """Also with late, replaced and withdrawn batches; one recording at the end gives the same rows."""
    site = Site(spark, tmp_path / "site")
    with site.open(select_scenarios(site, shape)) as opened:
        for batches in steps(opened.scenarios, 1, LOADS):
            ingest_and_apply(opened.warehouse, opened.dimension, opened.deliveries(batches))
            if not at_once:
                record(opened.warehouse, opened.dimension)
        recorded = record(opened.warehouse, opened.dimension)
        transitions = records(queries.audit(opened.warehouse, opened.dimension))
        for moment, rows in rows_by_commit_time(opened).items():
            replayed = records(rows_known_at(opened.warehouse, opened.dimension, moment))
            assert not same_rows(rows, replayed)
        assert_each_withdrawn_once(transitions)
        assert_current_transitions_follow_from_the_log(opened)
        assert_keys_follow_from_the_audit(opened)
        repeated = record(opened.warehouse, opened.dimension)
        assert (repeated.table_version, repeated.counts.transitions) == (recorded.table_version, {})


def assert_each_withdrawn_once(transitions: list[Record]) -> None:
    """An id belongs to one row; each withdrawal names one earlier row, and no row is withdrawn twice."""
    ids = Counter(row["audit_id"] for row in transitions)
    assert set(ids.values()) <= {1}
    withdrawals = [row for row in transitions if row["change_type"] == WITHDRAWN]
    withdrawn = Counter(row["withdraws"] for row in withdrawals)
    assert set(withdrawn.values()) <= {1}
    recorded_at = {row["audit_id"]: row["recorded_at"] for row in transitions}
    assert all(recorded_at[row["withdraws"]] < row["recorded_at"] for row in withdrawals)
    assert withdrawals


def assert_current_transitions_follow_from_the_log(opened: ScenarioWarehouse) -> None:
    """S14: in any order of arrival, the current transitions are a function of the batches in effect."""
    log = read_log(opened.warehouse, opened.dimension)
    batches = log.batches()
    statements = records_in_effect(log.rows(), batches).drop(COMMIT)
    kinds = SnapshotKinds.from_batches(batches, opened.dimension)
    expected = build_transitions(statements, opened.dimension, kinds=kinds).drop("effective_from")
    audit = queries.audit(opened.warehouse, opened.dimension)
    actual = current_transitions(audit, opened.dimension).select(*expected.columns)
    assert not same_rows(records(_plain(expected)), records(_plain(actual)))


def assert_keys_follow_from_the_audit(opened: ScenarioWarehouse) -> None:
    """S14: each row names the version of its new key, also without `effective_from`, as withdrawn transitions do."""
    dimension, audit = opened.dimension, opened.warehouse.table(f"{opened.dimension.name}_audit")
    new_key = F.col(key_columns(dimension)[1])
    rows = audit.read().where(new_key.isNotNull())
    assert rows.where(new_key != surrogate_key(dimension)).isEmpty()
    stored = StoredDeclaration.from_dimension(dimension)
    with patch.object(Table, "columns", lambda table: {AUDIT_ID: "bigint"}):
        derived = opened.warehouse.spark.sql(assigned_keys_query(audit, stored) or "")
    recorded = opened.warehouse.spark.sql(assigned_keys_query(audit, stored) or "")
    assert not same_rows(records(recorded), records(derived))


def _plain(rows: object) -> object:
    """Replace empty maps by NULL, which is the same to a reader."""
    maps = {name: F.when(F.size(name) > 0, F.col(name)) for name in ("old_values", "new_values")}
    return rows.withColumns(maps)  # type: ignore[attr-defined]
