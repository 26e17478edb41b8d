"""The line and the metadata that describe a load."""

from __future__ import annotations

import pytest

from scd_pipeline.components.load_metadata import examples, last_deliveries, log_counts, table_counts
from scd_pipeline.declaration import Dimension, Source
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.load.load_plan import LoadPlan
from scd_pipeline.load.run import LoadResult
from scd_pipeline.operations.summary import load_summary
from scd_pipeline.texts import pluralize
from scd_pipeline_tests.facts.players import PLAY


def test_rows_with_the_key_of_the_unknown_member_are_counted_by_role() -> None:
    result = LoadResult("fct_play", (), {"open": 6}, 2, 1, 0.1, unknown_members={"player": 2, "partner": 0})
    expected = (
        "fct_play: deliveries: none; rows: 6 opened; rows with the unknown member: 2 (role player); table version 2; "
        "0.1 s"
    )
    assert load_summary(result) == expected
    counts = table_counts(result)
    assert (counts["unknown_members_player"], counts["unknown_members_partner"]) == (2, 0)


def test_a_dimension_has_no_count_of_unknown_members() -> None:
    result = LoadResult("dim_player", (), {"open": 6}, 2, 1, 0.1)
    assert "unknown member" not in load_summary(result)
    assert not any(name.startswith("unknown_members") for name in table_counts(result))


def test_a_plan_counts_them_too() -> None:
    unused = dict.fromkeys(("log", "dimension_commit", "history_commit", "change_records", "changed_rows", "delivered"))
    load_plan = LoadPlan(
        dimension=PLAY.as_dimension(),
        run_id="",
        applied=0,
        schema_steps=(),
        results=(),
        batches=(),
        row_counts={"open": 6},
        unknown_members={"player": 2, "partner": 0},
        **unused,
    )
    assert (
        load_plan.explain().splitlines()[-1]
        == "  rows of fct_play: 6 to open; rows with the unknown member: 2 (role player)"
    )


def test_bad_values_that_were_set_to_null_are_counted() -> None:
    batch = BatchResult("crm/snapshot/1/1", "crm", "snapshot", "1", "accepted", rows=3, nulled_values=2)
    assert str(batch) == "crm/snapshot/1/1: accepted, 3 rows: 0 new, 0 changed, 0 deleted, 2 bad values set to NULL"
    assert log_counts(LoadResult("dim_player", (batch,), {}, 2, 1, 0.1))["values_set_to_null"] == 2


def test_tables_of_a_load_have_few_columns() -> None:
    """Dagster clips wide tables."""
    attributes = {"name": 1, "city": 2, "segment": 2, "street": 2}
    player = Dimension("dim_player", {"player_id": "int"}, attributes, Source("crm", snapshot="p_{date}.csv"))
    window = {"version": "2", "effective_from": "2024-02-01 00:00:00", "effective_to": None}
    row = {"_action": "open", "player_id": "7", **window, "name": "Ann", "city": "Graz", "segment": None, "street": "x"}
    batch = BatchResult("crm/1/1", "crm", "snapshot", "2024-02-01", "accepted", rows=3, bad_rows=1, new=2)
    result = LoadResult("dim_player", (batch,), {}, 2, 1, 0.1, (row,))
    assert examples(result, player)["examples"].records[0].data == {
        "action": "open",
        "row": "player_id: 7, version: 2",
        "window": "2024-02-01 00:00:00 to NULL",
        "values": "city: Graz, segment: NULL, street: x",
    }
    assert last_deliveries(result)["last_deliveries"].records[0].data == {
        "delivery": "crm 2024-02-01",
        "outcome": "accepted",
        "rows": "3 read, 1 quarantined",
        "changes": "2 new, 0 changed, 0 deleted",
        "code": "",
    }


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "row", "0 rows"),
        (1, "delivery", "1 delivery"),
        (2, "delivery", "2 deliveries"),
        (3, "day", "3 days"),
        (1, "batch", "1 batch"),
        (2, "batch", "2 batches"),
    ],
)
def test_a_count_and_its_noun_agree(count: int, noun: str, text: str) -> None:
    assert pluralize(count, noun) == text
