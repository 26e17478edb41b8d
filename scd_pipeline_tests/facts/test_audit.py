"""S21, S22: the audit has each transition exactly once, and the history can be read as known at a time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.audit_table import RecordedTransitions, audit_changes, audit_schema, recorded_rows
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.frames import checkpoint, empty_frame
from scd_pipeline.history.transitions import transition_schema
from scd_pipeline.load.run import ingest_and_apply, load, record
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.checklist.collect import collect_state
from scd_pipeline.queries.dimension import rows_known_at
from scd_pipeline_tests.facts.players import PLAYER, W, players
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows

COLUMNS = ("change_type", "change_ts", "columns", "old", "new", "batch", "effective_from")


def transitions(opened: Warehouse) -> list[dict[str, Any]]:
    """Return the rows of the audit, with values as text."""
    rows = queries.audit(opened, PLAYER).toArrow().to_pylist(maps_as_pydicts="strict")
    return [
        {
            **row,
            **{name: row[name] and row[name].replace(tzinfo=None) for name in ("change_ts", "effective_from")},
            "columns": " ".join(row["changed_columns"] or ()),
            "old": _values(row["old_values"]),
            "new": _values(row["new_values"]),
            "batch": int(str(row["source_batch_id"]).removeprefix("loyalty/feed/")),
        }
        for row in rows
    ]


def _values(values: dict[str, str | None] | None) -> str:
    return " ".join(str(value) for value in (values or {}).values())


@requirement("X16")
@rule("S6", "S21")
def test_every_transition_is_recorded_exactly_once(recorded: Warehouse) -> None:
    """A retry adds nothing. The actor comes from the source if it provides one."""
    ingest_and_apply(recorded, PLAYER, [players("1", W)])
    record(recorded, PLAYER)
    assert_same_rows(
        """
        | change_type    | change_ts  | columns         | old           | new           | batch | effective_from |
        | INSERT         | 2019-03-01 | tier email born | ''            | Bronze a 1990 | 1     | 2019-03-01     |
        | UPDATE         | 2019-06-01 | tier            | Bronze        | Silver        | 1     | 2019-06-01     |
        | OVERWRITE      | 2019-06-01 | email           | a             | b             | 1     | 2019-06-01     |
        | LOGICAL_DELETE | 2019-10-01 | tier email born | Silver b 1990 | ''            | 1     | NULL           |
        | INSERT         | 2019-12-01 | tier email born | ''            | Gold b 1990   | 1     | 2019-12-01     |
        | REFUSED        | 2019-12-01 | born            | '1990'        | '1991'        | 1     | 2019-12-01     |
        """,
        transitions(recorded),
        COLUMNS,
    )
    actors = {(row["change_ts"].month, row["actor"]) for row in transitions(recorded)}
    assert actors == {(6, "ann"), *((month, "pipeline:dim_player") for month in (3, 10, 12))}
    keys = {row["version"]: row["player_key"] for row in recorded.table("dim_player").read().collect()}
    moved = {(row["change_type"], row["player_key_old"], row["player_key_new"]) for row in transitions(recorded)}
    assert {
        ("INSERT", None, keys[1]),
        ("UPDATE", keys[1], keys[2]),
        ("LOGICAL_DELETE", keys[2], None),
        ("INSERT", None, keys[3]),
    } <= moved


@pytest.mark.slow
@rule("S21")
def test_a_change_that_leaves_no_row_in_the_dimension_is_recorded(opened: Warehouse) -> None:
    """A refused change, for which the dimension has no commit; and a value that its batch replaces."""
    head = "| player_id | at         | op | tier   | email | born | by   |"
    ingest_and_apply(opened, PLAYER, [players("1", f"{head}\n| p | 2019-03-01 |  | Bronze | a | 1990 | NULL |")])
    record(opened, PLAYER)
    before = opened.table("dim_player").last_commit()
    ingest_and_apply(opened, PLAYER, [players("2", f"{head}\n| p | 2019-04-01 |  | Bronze | a | 1991 | NULL |")])
    assert opened.table("dim_player").last_commit() == before
    record(opened, PLAYER)
    changes = "| p | 2019-05-01 |  | Bronze | x | 1990 | NULL |\n| p | 2019-05-02 |  | Bronze | a | 1990 | NULL |"
    ingest_and_apply(opened, PLAYER, [players("3", f"{head}\n{changes}")])
    record(opened, PLAYER)
    assert record(opened, PLAYER).counts.transitions == {}
    assert_same_rows(
        """
        | change_type | change_ts  | columns         | old    | new           | batch |
        | INSERT      | 2019-03-01 | tier email born | ''     | Bronze a 1990 | 1     |
        | REFUSED     | 2019-04-01 | born            | '1990' | '1991'        | 2     |
        | OVERWRITE   | 2019-05-01 | email           | a      | x             | 3     |
        | OVERWRITE   | 2019-05-02 | email           | x      | a             | 3     |
        """,
        transitions(opened),
        ("change_type", "change_ts", "columns", "old", "new", "batch"),
    )


@requirement("F55")
@rule("S22")
def test_the_past_is_rebuilt_from_the_audit_alone(recorded: Warehouse) -> None:
    """The other tables are missing: the dimension and its change log."""
    expected = recorded.table(PLAYER.name).read().toArrow().to_pylist()
    moment = recorded.table(f"{PLAYER.name}_audit").last_commit().at
    assert moment is not None
    for name in (PLAYER.name, f"{PLAYER.name}_changes"):
        shutil.rmtree(Path(recorded.path) / name)
    rebuilt = rows_known_at(recorded, PLAYER, moment).toArrow().to_pylist()
    columns = ("player_key", "player_id", "tier", "email", "born", "effective_from", "effective_to", "version")
    assert len(expected) == 3
    assert_same_rows(expected, rebuilt, columns)


@pytest.mark.slow
@rule("S21")
def test_the_order_of_declared_attributes_has_no_effect(recorded: Warehouse) -> None:
    attributes = {attribute.name: attribute for attribute in reversed(PLAYER.attributes)}
    turned = Dimension(PLAYER.name, {"player_id": "string"}, attributes, PLAYER.sources)
    head = "| player_id | at         | op | tier   | email | born | by   |"
    ingest_and_apply(recorded, turned, [players("2", f"{head}\n| p | 2020-01-01 |  | Gold | c | 1990 | NULL |")])
    assert record(recorded, turned).counts.transitions == {"OVERWRITE": 1}


@pytest.mark.slow
@rule("S21", "S22")
def test_a_transition_that_a_late_batch_invalidates_is_withdrawn(recorded: Warehouse) -> None:
    """The dimension can still be read as known before."""
    late = """
    | player_id | at         | op | tier   | email | born | by   |
    | p         | 2019-02-01 |    | Silver | b     | 1989 | NULL |
    """
    ingest_and_apply(recorded, PLAYER, [players("0", late)])
    record(recorded, PLAYER)
    rows = transitions(recorded)
    withdrawing_batches = {row["withdraws"]: row["batch"] for row in rows if row["change_type"] == "WITHDRAWN"}
    assert set(withdrawing_batches.values()) == {0}
    withdrawn = [row for row in rows if row["audit_id"] in withdrawing_batches]
    assert {(row["change_type"], str(row["change_ts"].date())) for row in withdrawn} >= {("INSERT", "2019-03-01")}
    before, after = (commit.at for commit in recorded.table("dim_player").commits_since(0))
    assert before is not None
    assert after is not None
    first = rows_known_at(recorded, PLAYER, before).where("version = 1").select("effective_from", "born").collect()
    assert [(row[0].isoformat()[:10], row[1]) for row in first] == [("2019-03-01", "1990")]
    now = queries.as_of(recorded, PLAYER, before, known_at=after).collect()
    assert [row["born"] for row in now] == ["1989"]
    rows = recorded.spark.sql("SELECT 'p' AS player_id, timestamp'2019-02-15' AS at")
    tiers = [
        queries.join_as_of(recorded, rows, PLAYER, time="at", known_at=moment).collect()[0]["player_tier"]
        for moment in (before, after)
    ]
    assert tiers == [None, "Silver"]


@rule("S21")
def test_a_withdrawn_transition_can_become_current_again(spark: SparkSession) -> None:
    """A correction replaces Bronze by Silver, a second one Silver by Bronze, and a third one changes nothing."""
    recorded = empty_frame(spark, {name: ddl for name, ddl, _ in audit_schema(PLAYER)})
    steps = []
    for step, tier in enumerate(("Bronze", "Silver", "Bronze", "Bronze"), 1):
        current = spark.sql(
            f"SELECT 'p' AS player_id, 7L AS player_key_new, 'INSERT' AS change_type, array('tier') AS changed_columns,"
            f" map('tier', '{tier}') AS new_values, timestamp'2019-03-01' AS change_ts, 'ann' AS actor,"
            " timestamp'2019-03-01' AS effective_from"
        )
        missing = {
            name: F.lit(None).cast(ddl) for name, ddl in transition_schema(PLAYER) if name not in current.columns
        }
        causes = spark.sql(f"SELECT 'p' AS player_id, 'loyalty/feed/{step}' AS source_batch_id")
        changes = audit_changes(
            current.withColumns(missing), PLAYER, recorded=RecordedTransitions(recorded, causes), log_commit=step
        )
        new = recorded_rows(changes, PLAYER, at=F.current_timestamp(), version=F.lit(step))
        recorded = checkpoint(recorded.unionByName(new))
        rows = recorded.where(F.col("recorded_version") == step).orderBy("change_type").collect()
        steps.append([(row["change_type"], (row["new_values"] or {}).get("tier")) for row in rows])
    withdrawn = ("WITHDRAWN", None)
    assert steps == [
        [("INSERT", "Bronze")],
        [("INSERT", "Silver"), withdrawn],
        [("INSERT", "Bronze"), withdrawn],
        [],
    ]


@pytest.mark.slow(8)
@requirement("F54")
@rule("S17", "S21")
def test_a_load_after_a_killed_one_completes_the_audit(opened: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was killed before the commit to the audit. The view has the keys of the dimension all the same."""
    ingest_and_apply(opened, PLAYER, [players("1", W)])

    class Killed(Exception):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("scd_pipeline.delta.table.Table.append", _dies_at("_audit", die))
        with pytest.raises(Killed):
            record(opened, PLAYER)
    queries.register(opened, ["dim_player_keys"])
    assert opened.spark.table("dim_player_keys").count() == 3
    record(opened, PLAYER)
    assert opened.spark.table("dim_player_keys").count() == 3
    assert len(transitions(opened)) == 6


@pytest.mark.slow
@rule("S14", "S21")
def test_changes_of_a_source_that_is_not_declared_any_more_are_recorded(opened: Warehouse) -> None:
    """They become transitions when a delivery of another source lets the entity exist, whatever its time."""

    def customers(source: str, name: str, **values: str) -> Delivery:
        return Delivery(source, name, "feed", frame=[{"id": "a", **values}])

    crm, web = (Source(name, feed=Feed(), existence=name == "crm" or None) for name in ("crm", "web"))
    city, phone = Attribute(2, source="crm"), Attribute(1, source="web")
    both = Dimension("dim_customer", "id", {"city": city, "phone": phone}, [crm, web])
    alone = Dimension("dim_customer", "id", {"city": Attribute(2), "phone": Attribute(1)}, Source("crm", feed=Feed()))
    load(opened, both, [customers("web", "2024-01-01", phone="1")])
    load(opened, alone, [customers("crm", "2024-03-01", city="Rome", phone="2")])
    names = ("change_type", "change_ts", "changed_columns", "new_values")
    audits = []
    for _ in range(2):
        audits.append(sorted(str(row) for row in queries.audit(opened, "dim_customer").select(*names).collect()))
        shutil.rmtree(Path(opened.path) / "dim_customer_audit", ignore_errors=True)
        load(opened, alone)
    assert audits[0] == audits[1] != []


@pytest.mark.slow
@rule("S20", "S21")
def test_a_retired_attribute_keeps_its_transitions_although_no_source_provides_it(opened: Warehouse) -> None:
    """All transitions of an entity are computed again after a change."""
    crm, web = (Source(name, feed=Feed(), existence=name == "crm" or None) for name in ("crm", "web"))
    attributes = {"city": Attribute(2, source="crm"), "fax": Attribute(1, source="web")}
    phone = Attribute(1, source="web")
    before = Dimension("dim_customer", "id", {**attributes, "phone": phone}, [crm, web])
    after = Dimension("dim_customer", "id", {**attributes, "phone": Attribute(1, retired=True)}, [crm, web])

    def phones(day: int) -> Delivery:
        return Delivery("web", f"2024-01-0{day}", frame=[{"id": "a", "phone": str(day), "fax": "0"}])

    load(opened, before, [Delivery("crm", "2024-01-01", frame=[{"id": "a", "city": "Rome"}]), phones(1)])
    for day in (2, 3):
        load(opened, before, [phones(day)])
    load(opened, after, [Delivery("crm", "2024-01-04", frame=[{"id": "a", "city": "Oslo"}])])
    audit = queries.audit(opened, "dim_customer")
    assert audit.where("change_type = 'WITHDRAWN'").count() == 0
    overwrites = audit.where("change_type = 'OVERWRITE'").orderBy("change_ts").collect()
    assert [row["new_values"] for row in overwrites] == [{"phone": "2"}, {"phone": "3"}]
    assert [str(result) for result in check_table(opened, after) if not result.passed] == []


@pytest.mark.slow
@rule("S17", "S21")
def test_the_audit_continues_after_the_dimension_is_recreated(recorded: Warehouse) -> None:
    """Its commit numbers restart at 1, below the high-water mark that the audit has of the table before."""
    head = "| player_id | at         | op | tier   | email | born | by   |"
    ingest_and_apply(recorded, PLAYER, [players("2", f"{head}\n| p | 2020-01-01 |  | Silver | b | 1990 | NULL |")])
    record(recorded, PLAYER)
    shutil.rmtree(Path(recorded.path) / PLAYER.name)
    ingest_and_apply(recorded, PLAYER, [players("3", f"{head}\n| p | 2020-02-01 |  | Gold | b | 1990 | NULL |")])
    result = record(recorded, PLAYER)
    assert result.counts.transitions == {"UPDATE": 1}
    keys = queries.audit(recorded, PLAYER).select(F.col("player_key_new").alias("player_key"))
    assert recorded.table(PLAYER.name).read().join(keys, "player_key", "left_anti").isEmpty()


def _dies_at(suffix: str, die: Any) -> Any:
    from scd_pipeline.delta.table import Table

    original = Table.append

    def append(self: Table, *arguments: Any) -> Any:
        return die() if self.name.endswith(suffix) else original(self, *arguments)

    return append


@requirement("F73")
def test_the_checklist_has_the_day_on_which_a_delete_was_recorded(recorded: Warehouse) -> None:
    audit = queries.audit(recorded, PLAYER).toArrow().to_pylist()
    days = [row["recorded_at"].date() for row in audit if row["change_type"] == "LOGICAL_DELETE"]
    assert collect_state(recorded, PLAYER).last_delete == max(days)
