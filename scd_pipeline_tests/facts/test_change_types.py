"""An audit whose change types have other labels rebuilds the same dimension and has the same surrogate keys."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.facts.players import PLAYER, W, players
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

LABELS = {"INSERT": "new", "UPDATE": "changed", "LOGICAL_DELETE": "deleted", "WITHDRAWN": "void"}
LABELLED = replace(PLAYER, change_types=LABELS)
LATE = """
| player_id | at         | op | tier   | email | born | by   |
| p         | 2019-05-01 |    | Silver | b     | 1990 | NULL |
"""
"""A change that moves the start of the version of Silver."""

RECORDED = """
| change_type | change_ts  |
| new         | 2019-03-01 |
| changed     | 2019-06-01 |
| OVERWRITE   | 2019-06-01 |
| deleted     | 2019-10-01 |
| new         | 2019-12-01 |
| REFUSED     | 2019-12-01 |
"""
MOVED = """
| change_type | change_ts  |
| changed     | 2019-05-01 |
| OVERWRITE   | 2019-05-01 |
| deleted     | 2019-10-01 |
| void        | 2019-06-01 |
| void        | 2019-06-01 |
| void        | 2019-10-01 |
"""
"""What the late change records: the key of the deleted version is another one."""


@pytest.mark.slow
@requirement("X16")
def test_an_audit_with_labels_rebuilds_the_dimension_and_its_keys(opened: Warehouse) -> None:
    """One test, because each load takes seconds: labels, withdrawn transitions, keys, and the past."""
    result = load(opened, LABELLED, [players("1", W)])
    assert result.audit is not None
    assert result.audit.counts.transitions["INSERT"] == 2
    for dimension in (LABELLED, "dim_player"):
        assert_same_rows(RECORDED, queries.audit(opened, dimension).toArrow().to_pylist())
    before = queries.audit(opened, LABELLED).agg({"recorded_at": "max"}).collect()[0][0]
    load(opened, LABELLED, [players("2", LATE)])
    audit = queries.audit(opened, LABELLED)
    assert_same_rows(MOVED, audit.where(audit["recorded_at"] > before).toArrow().to_pylist())
    assert {result.check for result in check_table(opened, LABELLED) if not result.passed} == set()
    queries.register(opened, ["dim_player_keys"])
    assert opened.spark.table("dim_player_keys").count() == 4
    past = queries.as_of(opened, LABELLED, dt.datetime(2019, 5, 15), known_at=before)
    assert [row["tier"] for row in past.collect()] == ["Bronze"]


@pytest.mark.slow
def test_a_repair_is_recorded_with_its_label_and_is_not_withdrawn(opened: Warehouse) -> None:
    """Also if two change types have exchanged their names: each is converted once."""
    exchanged = {"INSERT": "UPDATE", "UPDATE": "INSERT", "REPAIRED": "fixed"}
    dimension = replace(PLAYER, change_types=exchanged)
    load(opened, dimension, [players("1", W)])
    identifier = opened.table("dim_player").identifier
    opened.spark.sql(f"UPDATE {identifier} SET tier = 'Iron' WHERE version = 1").collect()
    repair(opened, dimension, now=dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), actor="ann")
    load(opened, dimension, [players("2", LATE)])
    audit = queries.audit(opened, dimension)
    (repaired,) = audit.where("change_type = 'fixed'").collect()
    assert (repaired["old_values"]["tier"], repaired["new_values"]["tier"]) == ("Iron", "Bronze")
    assert audit.where(audit["withdraws"] == repaired["audit_id"]).isEmpty()
    first = audit.where("change_ts = '2019-03-01' AND change_type <> 'fixed'").collect()
    assert [row["change_type"] for row in first] == ["UPDATE"]
    assert {result.check for result in check_table(opened, dimension) if not result.passed} == set()
