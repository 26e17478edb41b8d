"""S11: current versions in one table and closed ones in another are, for every reader, the rows of one table."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from scd_pipeline import Pipeline, queries
from scd_pipeline.components import WarehouseResource
from scd_pipeline.components.maintenance import maintenance_job
from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta import history_table
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.delta_operations import ENFORCE_TIME_TRAVEL_RETENTION
from scd_pipeline.errors import ConflictError, ForeignCommitError, HighWaterMarkError
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import commit_log, commit_table, ingest_and_apply, load, plan
from scd_pipeline.operations import maintenance
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.maintenance import RENEWED_AFTER, maintain
from scd_pipeline.operations.status import status
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, snapshot
from scd_pipeline_tests.storage.two_tables import Killed, between_the_commits, kill, reader_in_a_loop, records
from scd_pipeline_tests.text_tables import assert_same_rows, parse

SPLIT = replace(CUSTOMER, history_table=True)
HISTORY = "dim_customer_history"
WALK: Sequence[Delivery] = (
    snapshot(1, {"a": "Rome", "b": "Bern"}),
    feed("one", ("a", 2, "Oslo"), ("c", 2, "Nice")),
    snapshot(4, {"a": "Oslo", "b": "Bern"}),
    feed("late", ("a", 3, "Kyiv"), ("b", 1, "Lyon")),
    feed("return", ("c", 6, "Nice"), ("b", 5, None)),
    feed("one", revision=2, withdrawn=True),
    feed("one", ("a", 2, "Oslo"), ("c", 2, "Pisa"), revision=3),
)
"""In order of arrival: changes, a delete, late changes, a return, and a delivery that is withdrawn and restored."""
AFTER_ROME = """
| id | city | from       | to         |
| a  | Rome | 2024-01-01 | 2024-02-01 |
| a  | Oslo | 2024-02-01 | NULL       |
"""
ROME = """
| id | city | from       | to   |
| a  | Rome | 2024-01-01 | NULL |
"""


@pytest.fixture
def opened(spark: SparkSession, warehouse: Path) -> Warehouse:
    """An empty warehouse."""
    return Warehouse(spark, warehouse)


@pytest.fixture(scope="module")
def in_rome_folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one customer in two tables, in Rome since January."""
    folder = tmp_path_factory.mktemp("split")
    load(Warehouse(spark, folder), SPLIT, [snapshot(1, {"a": "Rome"})])
    return folder


@pytest.fixture
def in_rome(spark: SparkSession, warehouse: Path, in_rome_folder: Path) -> Warehouse:
    """A copy of `in_rome_folder`."""
    shutil.copytree(in_rome_folder, warehouse, dirs_exist_ok=True)
    return Warehouse(spark, warehouse)


def versions(warehouse: Warehouse) -> list[dict[str, Any]]:
    """All versions, as `queries.history` returns them."""
    return records(queries.history(warehouse, SPLIT))


def versions_of_pipeline(warehouse: Warehouse) -> list[dict[str, Any]]:
    """All versions, as `Pipeline.sql` returns them; `queries.history` returns the same."""
    query = "SELECT * FROM dim_customer_versions ORDER BY effective_from"
    rows = records(Pipeline(warehouse.path, spark=warehouse.spark).sql(query))
    assert_same_rows(versions(warehouse), rows)
    return rows


def versions_in_sql(warehouse: Warehouse) -> list[dict[str, Any]]:
    """All versions, as the views of a session have them, first as one table and then as two."""
    queries.register(warehouse, query="dim_customer_versions dim_customer_history dim_customer")
    whole = warehouse.spark.sql("SELECT * FROM dim_customer_versions ORDER BY effective_from")
    names = "customer_key, id, city"
    parts = warehouse.spark.sql(f"SELECT {names} FROM dim_customer UNION ALL SELECT {names} FROM dim_customer_history")
    assert sorted(whole.select("customer_key", "id", "city").collect()) == sorted(parts.collect())
    return records(whole)


@pytest.mark.slow(30)
@requirement("F6", "F39")
@pytest.mark.rule("S11")
def test_two_tables_have_the_rows_of_one_after_each_load(spark: SparkSession, tmp_path: Path) -> None:
    """One option of the declaration is the difference; keys, attributes and windows are the same, as of any time."""
    split, whole = (Warehouse(spark, tmp_path / name) for name in ("split", "whole"))
    days = [datetime(2024, month, 15, tzinfo=timezone.utc) for month in (1, 2, 3, 5, 7)]
    for deliveries in (WALK[:3], WALK[3:]):
        for warehouse, dimension in ((split, SPLIT), (whole, CUSTOMER)):
            load(warehouse, dimension, deliveries)
        for query in (queries.history, queries.current):
            expected, rows = query(whole, CUSTOMER), query(split, SPLIT)
            assert rows.columns == expected.columns
            assert sorted(rows.collect(), key=str) == sorted(expected.collect(), key=str)
    for day in days:
        expected, rows = queries.as_of(whole, CUSTOMER, day), queries.as_of(split, SPLIT, day)
        assert sorted(rows.collect(), key=str) == sorted(expected.collect(), key=str)
    current, closed = (split.table(name).read() for name in (SPLIT.name, HISTORY))
    assert not current.where("NOT current_flag").count()
    assert not closed.where("current_flag").count()
    assert [str(result) for result in check_table(split, SPLIT) if not result.passed] == []


MACHINE = Dimension(
    "dim_machine",
    "machine_id",
    {"game_title": 2, "denomination": Attribute(2, "decimal(10,2)"), "location": 2},
    Source("floor", Snapshot(format="parquet")),
    history_table=True,
)
MACHINE_IN_ONE_TABLE = replace(MACHINE, name="dim_machine_of_type_2", history_table=False, surrogate_key="machine_key")
MACHINES_BY_DAY = (
    """
    | machine_id | game_title | denomination | location |
    | M1         | G1         | 0.25         | A        |
    | M2         | G2         | 0.05         | B        |
    | M3         | G3         | 0.05         | NULL     |
    | M4         | G4         | 0.05         | EU       |
    """,
    """
    | machine_id | game_title | denomination | location |
    | M1         | G1         | 1.00         | A        |
    | M2         | G2         | 0.05         | B        |
    | M3         | G3         | 0.05         | EU       |
    | M4         | G4         | 0.05         | NULL     |
    """,
)
"""A snapshot of 2024-01-01, and one of the next day."""


@pytest.fixture(scope="module")
def machines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """The machines of two days in two tables, and the same in one."""
    opened, deliveries = Warehouse(spark, tmp_path_factory.mktemp("machines")), []
    for day, table in enumerate(MACHINES_BY_DAY, start=1):
        rows = [{name: None if value is None else str(value) for name, value in row.items()} for row in parse(table)]
        at = datetime(2024, 1, day, tzinfo=timezone.utc)
        deliveries.append(Delivery("floor", str(day), channel="snapshot", at=at, frame=rows))
        ingest_and_apply(opened, MACHINE, deliveries[-1:])
    ingest_and_apply(opened, MACHINE_IN_ONE_TABLE, deliveries)
    return opened


def machine(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    """The versions of one machine, of its two tables, in order of time."""
    rows = [row for row in queries.history(warehouse, MACHINE).toArrow().to_pylist() if row["machine_id"] == name]
    return sorted(rows, key=lambda row: row["effective_from"])


@requirement("F6", "F39", "X23")
@pytest.mark.parametrize(
    ("query", "count"),
    [(queries.history, 7), (lambda *table: queries.as_of(*table, datetime(2024, 1, 1)), 4)],
    ids=["history", "as of the first day"],
)
def test_machines_in_two_tables_have_the_rows_of_one(
    machines: Warehouse, query: Callable[..., DataFrame], count: int
) -> None:
    rows_of_both, rows_of_one = (query(machines, each).collect() for each in (MACHINE, MACHINE_IN_ONE_TABLE))
    assert len(rows_of_one) == count
    assert sorted(map(str, rows_of_both)) == sorted(map(str, rows_of_one))
    assert not machines.table("dim_machine_of_type_2_history").exists()


@requirement("F5", "F36")
def test_a_machine_has_a_closed_version_and_another_one_is_unchanged(machines: Warehouse) -> None:
    current, closed = (machines.table(name).read() for name in ("dim_machine", "dim_machine_history"))
    assert closed.dtypes == current.dtypes
    assert_same_rows(
        """
        | machine_id | game_title | denomination | location | effective_from | effective_to | change_reason |
        | M1         | G1         | 0.25         | A        | 2024-01-01     | 2024-01-02   | source_load   |
        """,
        closed.where("machine_id IN ('M1', 'M2')").toArrow().to_pylist(),
    )
    assert_same_rows(
        """
        | machine_id | game_title | denomination | location | last_updated |
        | M1         | G1         | 1.00         | A        | 2024-01-02   |
        | M2         | G2         | 0.05         | B        | 2024-01-01   |
        """,
        current.where("machine_id IN ('M1', 'M2')").toArrow().to_pylist(),
    )


@requirement("F14")
@pytest.mark.parametrize(("name", "locations"), [("M3", [None, "EU"]), ("M4", ["EU", None])])
def test_null_is_a_change_of_two_tables_in_both_directions(
    machines: Warehouse, name: str, locations: list[str | None]
) -> None:
    versions = machine(machines, name)
    assert [version["location"] for version in versions] == locations
    closed = machines.table("dim_machine_history").read().where(f"machine_id = '{name}'").toArrow().to_pylist()
    assert [row["machine_key"] for row in closed] == [versions[0]["machine_key"]]


@pytest.mark.slow(30)
@requirement("F38")
def test_the_history_has_a_retention_of_its_own(in_rome: Warehouse) -> None:
    hours = 20 * 24
    maintain(in_rome, [HISTORY], now=datetime.now(timezone.utc), retention_hours=hours)
    retention = {
        name: in_rome.table(name).properties().get("delta.deletedFileRetentionDuration")
        for name in (SPLIT.name, HISTORY)
    }
    assert retention == {SPLIT.name: None, HISTORY: f"interval {hours} hours"}


@pytest.mark.slow(30)
@requirement("F38")
def test_the_history_has_declared_properties_of_its_own(in_rome: Warehouse) -> None:
    """They override those that both tables have, and an existing history table gets them by the next load."""
    both = {"team": "sales", "delta.enableChangeDataFeed": True}
    own = {"DELTA.enableChangeDataFeed": False, "delta.deletedFileRetentionDuration": "interval 20 days"}
    dimension = replace(SPLIT, table_properties=both, history_table_properties=own)
    ingest_and_apply(in_rome, dimension, [feed("one", ("a", 2, "Oslo"))])
    names = ("team", "delta.enableChangeDataFeed", "delta.deletedFileRetentionDuration")
    properties = {
        table: tuple(in_rome.table(table).properties().get(name) for name in names) for table in (SPLIT.name, HISTORY)
    }
    assert properties == {SPLIT.name: ("sales", "true", None), HISTORY: ("sales", "false", "interval 20 days")}
    assert [name for name in in_rome.tables() if name.endswith("_audit")] == ["dim_customer_audit"]


@requirement("F37")
@pytest.mark.parametrize(
    "read", [versions_of_pipeline, pytest.param(versions_in_sql, marks=pytest.mark.slow)], ids=["library", "views"]
)
def test_a_reader_between_the_two_commits_sees_the_versions_before_the_load(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch, read: Callable[[Warehouse], list[dict[str, Any]]]
) -> None:
    seen = []
    with between_the_commits(lambda: seen.append(read(in_rome)), monkeypatch):
        ingest_and_apply(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    assert in_rome.table(HISTORY).read().count() == 1
    (before,) = seen
    assert_same_rows(ROME, before)
    assert_same_rows(AFTER_ROME, read(in_rome))


@pytest.mark.slow(30)
@requirement("F37")
def test_the_views_of_a_session_have_each_version_once_after_another_load(in_rome: Warehouse) -> None:
    """Each reads the table versions that belonged together when the views were created."""
    queries.register(in_rome, ["dim_customer_current", "dim_customer_versions"])
    ingest_and_apply(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    closed = "SELECT * FROM dim_customer_versions WHERE NOT current_flag"
    assert_same_rows(ROME, records(in_rome.spark.sql(f"SELECT * FROM dim_customer_current UNION ALL {closed}")))
    queries.register(in_rome, ["dim_customer_current", "dim_customer_versions"])
    rows = in_rome.spark.sql(f"{closed} UNION ALL SELECT * FROM dim_customer_current")
    assert_same_rows(AFTER_ROME, records(rows))


@pytest.mark.slow(30)
@requirement("F37")
def test_a_reader_that_loops_during_a_load_sees_the_versions_before_it_or_after_it(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load waits between its two commits until the reader has read twice, and after them likewise."""
    with reader_in_a_loop(lambda: versions(in_rome)) as (seen, wait_for_reads):
        with between_the_commits(wait_for_reads, monkeypatch):
            ingest_and_apply(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
        wait_for_reads()
    cities = [sorted(row["city"] for row in rows) for rows in seen]
    number_before = cities.count(["Rome"])
    assert number_before >= 2
    assert cities == [["Rome"]] * number_before + [["Oslo", "Rome"]] * (len(cities) - number_before)
    assert_same_rows(ROME, seen[number_before - 1])
    assert_same_rows(AFTER_ROME, seen[-1])


@pytest.mark.slow(30)
@requirement("F37", "F38")
def test_the_views_of_a_catalog_have_the_versions_of_the_last_load(
    spark: SparkSession, remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history is in a schema of its own. Maintenance adds versions of the tables, and the views name those."""
    mart, archive = (f"{name}_{uuid.uuid4().hex}" for name in ("mart", "archive"))
    for schema in (mart, archive):
        spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path / schema}'")
    opened = Warehouse(spark, tmp_path / "scratch", schema=mart, schemas={"history": archive})

    def read() -> list[dict[str, Any]]:
        return records(spark.table(f"{mart}.dim_customer_versions"))

    try:
        load(opened, SPLIT, [snapshot(1, {"a": "Rome"})])
        created = [f"dim_customer_{query}" for query in ("as_of", "current", "in_force", "keys", "versions")]
        assert sorted(queries.create_views(opened)) == created
        seen = []
        with between_the_commits(lambda: seen.append(read()), monkeypatch):
            load(opened, SPLIT, [feed("one", ("a", 2, "Oslo"))])
        assert_same_rows(ROME, seen[0])
        queries.create_views(opened, [SPLIT.name])
        assert_same_rows(AFTER_ROME, read())
        resource = WarehouseResource(path=opened.path, remote=remote, schema=mart, schemas={"history": archive})
        assert maintenance_job(SPLIT).execute_in_process(resources={"warehouse": resource}).success
        (view,) = spark.sql(f"SHOW CREATE TABLE {mart}.dim_customer_versions").collect()
        newest = opened.table(HISTORY).newest_version()
        assert f"{HISTORY}` VERSION AS OF {newest}" in view[0]
        assert_same_rows(AFTER_ROME, read())
        assert [row["city"] for row in spark.table(f"{archive}.{HISTORY}").collect()] == ["Rome"]
    finally:
        for schema in (mart, archive):
            spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.slow(30)
@requirement("F37")
def test_a_load_that_was_killed_between_the_two_commits_archives_no_version_twice(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next load has more deliveries, of which one moves the start of the version that was archived."""
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
        ingest_and_apply(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    assert in_rome.table(HISTORY).read().count() == 1
    assert_same_rows(ROME, versions(in_rome))
    load(in_rome, SPLIT, [feed("late", ("a", 1, "Bari"))])
    assert_same_rows(
        """
        | id | city | from       | to         |
        | a  | Bari | 2024-01-01 | 2024-02-01 |
        | a  | Oslo | 2024-02-01 | NULL       |
        """,
        versions(in_rome),
    )
    assert in_rome.table(HISTORY).read().count() == 1


@pytest.mark.slow(30)
@pytest.mark.rule("S14", "S17")
def test_a_commit_without_rows_retains_the_closed_versions(in_rome: Warehouse) -> None:
    """A delivery is withdrawn before the load that has committed it to the log writes the dimension."""
    ingest_and_apply(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    outdated_plan = plan(in_rome, SPLIT, [feed("two", ("a", 3, "Kyiv"))])
    log = commit_log(in_rome, outdated_plan)
    ingest_and_apply(in_rome, SPLIT, [feed("two", revision=2, withdrawn=True)])
    with pytest.raises(ConflictError):
        commit_table(in_rome, outdated_plan, log)
    assert_same_rows(AFTER_ROME, versions(in_rome))
    load(in_rome, SPLIT, [feed("three", ("b", 3, "Bern"))])
    assert_same_rows(AFTER_ROME, [row for row in versions(in_rome) if row["id"] == "a"])


@pytest.mark.slow(30)
def test_a_writer_that_commits_between_the_two_commits_of_another_loses_nothing(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = iter([feed("two", ("a", 3, "Bern"))])

    def write_first() -> None:
        for delivery in others:
            load(in_rome, SPLIT, [delivery])

    with between_the_commits(write_first, monkeypatch):
        load(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    assert_same_rows(
        """
        | id | city | from       | to         |
        | a  | Rome | 2024-01-01 | 2024-02-01 |
        | a  | Oslo | 2024-02-01 | 2024-03-01 |
        | a  | Bern | 2024-03-01 | NULL       |
        """,
        versions(in_rome),
    )
    assert in_rome.table(HISTORY).read().count() == 2


@pytest.mark.slow(30)
@pytest.mark.parametrize("dropped", [[SPLIT.name], [SPLIT.name, HISTORY]], ids=["one", "both"])
def test_dropped_tables_are_rebuilt_from_the_log(opened: Warehouse, dropped: list[str]) -> None:
    for delivery in WALK[:4]:
        load(opened, SPLIT, [delivery])
    before = versions(opened)
    for name in dropped:
        shutil.rmtree(Path(opened.path) / name)
    load(opened, SPLIT)
    assert sorted(map(str, versions(opened))) == sorted(map(str, before))


@pytest.mark.slow(30)
def test_a_dropped_history_is_reported(in_rome: Warehouse) -> None:
    load(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    shutil.rmtree(Path(in_rome.path) / HISTORY)
    with pytest.raises(HighWaterMarkError) as caught:
        load(in_rome, SPLIT, [feed("two", ("a", 3, "Bern"))])
    assert (caught.value.code, caught.value.location) == ("HISTORY_LOST", f"table {HISTORY}")
    customer, visits = status(in_rome, [SPLIT, VISIT], now=datetime(2024, 3, 2, tzinfo=timezone.utc)).tables
    assert "[HISTORY_LOST]" in customer.damage[0], "also without a pending delivery"
    assert "[HISTORY_LOST]" in visits.damage[0], "an error in one table does not hide the status of the others"


@pytest.mark.slow(30)
def test_a_change_of_the_history_by_hand_is_reported(in_rome: Warehouse) -> None:
    load(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    in_rome.spark.sql(f"DELETE FROM {in_rome.table(HISTORY).identifier}")
    with pytest.raises(ForeignCommitError):
        load(in_rome, SPLIT, [feed("two", ("a", 3, "Bern"))])


@pytest.mark.slow(30)
def test_maintenance_rolls_back_what_a_killed_load_left_and_repeats_commits(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After VACUUM, the files of the earlier version of the history could be missing."""
    load(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
        ingest_and_apply(in_rome, SPLIT, [feed("two", ("a", 3, "Bern"))])
    now = datetime.now(timezone.utc)
    maintain(in_rome, SPLIT.table_names, now=now)
    assert in_rome.table(HISTORY).read().count() == 1
    recorded = history_table.table_versions(in_rome, in_rome.table(SPLIT.name).last_commit(), [HISTORY])
    assert recorded[HISTORY] == in_rome.table(HISTORY).last_commit().newest
    results = maintain(in_rome, SPLIT.table_names, now=now + RENEWED_AFTER + timedelta(days=1))
    assert {result.table for result in results if result.renewed} >= {SPLIT.name, HISTORY}
    assert_same_rows(AFTER_ROME, versions(in_rome))
    load(in_rome, SPLIT)
    assert in_rome.table(HISTORY).read().count() == 2


@pytest.mark.slow(30)
@pytest.mark.rule("S17")
def test_a_killed_load_is_completed_although_the_retention_of_files_has_passed(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default Delta refuses the version of the history that the dimension records, although it has its files."""
    in_rome.spark.conf.unset(ENFORCE_TIME_TRAVEL_RETENTION)
    opened = Warehouse(in_rome.spark, in_rome.path)
    load(opened, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    opened.table(HISTORY).set_properties({"delta.deletedFileRetentionDuration": "interval 1 second"})
    time.sleep(1.5)
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
        ingest_and_apply(opened, SPLIT, [feed("two", ("a", 3, "Bern"))])
    assert_same_rows(AFTER_ROME, versions(opened))
    load(opened, SPLIT)
    assert opened.table(HISTORY).read().count() == 2
    assert all(result.passed for result in check_table(opened, SPLIT))


@pytest.mark.slow(30)
@pytest.mark.rule("S17")
def test_a_load_during_maintenance_loses_no_closed_version(in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """It commits after maintenance has rolled the history back, and before that is recorded in the dimension."""
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
        ingest_and_apply(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    deliveries = iter([feed("two", ("a", 3, "Bern"))])

    def roll_back_and_load(*arguments: Any, **options: Any) -> PipelineCommit:
        done = history_table.roll_back(*arguments, **options)
        for delivery in deliveries:
            load(in_rome, SPLIT, [delivery])
        return done

    monkeypatch.setattr(maintenance, "roll_back", roll_back_and_load)
    maintain(in_rome, [HISTORY], now=datetime.now(timezone.utc), retry=Retry(sleep=lambda seconds: None))
    assert sorted(row["city"] for row in versions(in_rome)) == ["Bern", "Oslo", "Rome"]
    assert all(result.passed for result in check_table(in_rome, SPLIT))


@pytest.mark.slow(30)
def test_attributes_are_added_and_renamed_in_both_tables(in_rome: Warehouse) -> None:
    load(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    attributes = {"email": 1, "town": Attribute(2, former_names="city"), "tier": Attribute(1, missing="not_provided")}
    changes = Feed(format="parquet", effective_at="at")
    changed = replace(SPLIT, attributes=attributes, sources=Source("crm", feed=changes, columns={"town": "city"}))
    load(in_rome, changed, [feed("two", ("a", 3, "Bern"))]).raise_if_rejected()
    towns = queries.history(in_rome, changed).select("town").collect()
    assert sorted(row["town"] for row in towns) == ["Bern", "Oslo", "Rome"]


VISIT = Fact("fct_visit", {"visit": "int"}, "at", {"customer": Role(SPLIT, "id")}, Source("desk", feed=Feed()))


@pytest.mark.slow(30)
@pytest.mark.rule("S24")
def test_a_fact_is_not_loaded_if_another_program_changed_the_history(in_rome: Warehouse) -> None:
    load(in_rome, SPLIT, [feed("one", ("a", 2, "Oslo"))])
    in_rome.spark.sql(f"DELETE FROM {in_rome.table(HISTORY).identifier}")
    rows = [{"visit": "1", "at": "2024-01-15", "id": "a"}]
    delivery = Delivery("desk", "1", channel="feed", at=datetime(2024, 3, 1, tzinfo=timezone.utc), frame=rows)
    with pytest.raises(ForeignCommitError, match=f"table {HISTORY}: "):
        load(in_rome, VISIT, [delivery])
    (table, _) = status(in_rome, [SPLIT, VISIT], now=datetime(2024, 3, 1, tzinfo=timezone.utc)).tables
    assert [HISTORY in text for text in table.damage] == [True]


@pytest.mark.slow(30)
def test_facts_have_the_keys_of_closed_versions(opened: Warehouse) -> None:
    load(opened, SPLIT, [snapshot(1, {"a": "Rome"}), feed("one", ("a", 2, "Oslo"))])
    rows = [{"visit": "1", "at": "2024-01-15", "id": "a"}, {"visit": "2", "at": "2024-02-15", "id": "a"}]
    load(
        opened, VISIT, [Delivery("desk", "1", channel="feed", at=datetime(2024, 3, 1, tzinfo=timezone.utc), frame=rows)]
    )
    load(opened, SPLIT, [feed("late", ("a", 1, "Bari"))])
    load(opened, VISIT)
    joined = {row["visit"]: row["customer_city"] for row in queries.with_dimensions(opened, VISIT).collect()}
    assert joined == {1: "Bari", 2: "Oslo"}
    queries.register(opened, facts=[VISIT], query="fct_visit_joined")
    in_sql = opened.spark.sql("SELECT visit, customer_city FROM fct_visit_joined").collect()
    assert dict(map(tuple, in_sql)) == joined
