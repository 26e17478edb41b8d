"""S42: closed versions that ended before a time are in the archive, and every reader sees the same rows as before."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Pipeline, queries
from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta import history_table
from scd_pipeline.delta.commits import Archiving
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError, HighWaterMarkError, SetupError, UsageError
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.archive import ArchiveResult, archive, declared_time
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.maintenance import maintain
from scd_pipeline.operations.repair import repair
from scd_pipeline.operations.status import status
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import feed, snapshot
from scd_pipeline_tests.storage.two_tables import Killed, between_the_commits, kill, records
from scd_pipeline_tests.text_tables import assert_same_rows

WHOLE = Dimension(
    "dim_customer",
    "id",
    {"city": 2},
    Source("crm", Snapshot(format="parquet"), Feed(format="parquet", effective_at="at", deletes="op = 'D'")),
)
CUSTOMER = replace(WHOLE, archive_after_years=7)
ARCHIVE = "dim_customer_archive"
VISIT, VISIT_OF_WHOLE = (
    Fact("fct_visit", {"visit": "int"}, "at", {"customer": Role(each, "id")}, Source("desk", feed=Feed()))
    for each in (CUSTOMER, WHOLE)
)
DELIVERIES: Sequence[Delivery] = (
    snapshot(1, {"a": "Rome", "b": "Bern"}),
    feed("one", ("a", 2, "Oslo"), ("a", 4, "Kyiv"), ("b", 3, None)),
)
ALL_VERSIONS = """
| id | city | from       | to         |
| a  | Rome | 2024-01-01 | 2024-02-01 |
| a  | Oslo | 2024-02-01 | 2024-04-01 |
| a  | Kyiv | 2024-04-01 | NULL       |
| b  | Bern | 2024-01-01 | 2024-03-01 |
"""
NOW = datetime(2024, 9, 1, tzinfo=timezone.utc)


def first_of(month: int) -> datetime:
    """The first day of a month of 2024."""
    return datetime(2024, month, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def loaded_folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with `ALL_VERSIONS` in one table, and with visits of `a` in January and of `b` in February."""
    folder = tmp_path_factory.mktemp("loaded")
    opened = Warehouse(spark, folder)
    load(opened, WHOLE, DELIVERIES, has_facts=True)
    rows = [{"visit": "1", "at": "2024-01-15", "id": "a"}, {"visit": "2", "at": "2024-02-15", "id": "b"}]
    load(opened, VISIT_OF_WHOLE, [visits(rows)])
    return folder


@pytest.fixture
def loaded(spark: SparkSession, loaded_folder: Path, tmp_path: Path) -> Warehouse:
    """A copy of `loaded_folder`."""
    shutil.copytree(loaded_folder, tmp_path / "warehouse")
    return Warehouse(spark, tmp_path / "warehouse")


@pytest.fixture(scope="module")
def archived_folder(spark: SparkSession, loaded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`loaded_folder` after an archive run: the versions that ended in February and March are archived."""
    folder = tmp_path_factory.mktemp("archived") / "warehouse"
    shutil.copytree(loaded_folder, folder)
    archive_before(Warehouse(spark, folder), first_of(4))
    return folder


@pytest.fixture
def archived(spark: SparkSession, archived_folder: Path, tmp_path: Path) -> Warehouse:
    """A copy of `archived_folder`."""
    shutil.copytree(archived_folder, tmp_path / "warehouse")
    return Warehouse(spark, tmp_path / "warehouse")


def visits(rows: list[dict[str, str]]) -> Delivery:
    return Delivery("desk", rows[0]["visit"], channel="feed", at=first_of(5), frame=rows)


def archive_before(warehouse: Warehouse, moment: datetime, dimension: Dimension = CUSTOMER) -> ArchiveResult:
    retry = Retry(sleep=lambda seconds: None)
    return archive(warehouse, dimension, closed_before=moment, by="ann", reason="age", retry=retry)


def versions(warehouse: Warehouse) -> list[dict[str, Any]]:
    """All versions, as `queries.history` returns them."""
    return records(queries.history(warehouse, CUSTOMER))


def versions_in_sql(warehouse: Warehouse) -> list[dict[str, Any]]:
    """All versions, as the view of a session has them."""
    queries.register(warehouse, query="dim_customer_versions")
    return records(warehouse.spark.sql("SELECT * FROM dim_customer_versions"))


def cities(warehouse: Warehouse, name: str) -> list[str]:
    """The cities in one table, without the unknown member, which has none."""
    rows = warehouse.table(name).read().select("city").collect()
    return sorted(row["city"] for row in rows if row["city"] is not None)


def violations(warehouse: Warehouse) -> list[str]:
    return [str(result) for each in (CUSTOMER, VISIT) for result in check_table(warehouse, each) if not result.passed]


@requirement("H36")
@pytest.mark.rule("S42")
def test_each_version_is_in_one_table_and_every_reader_sees_all(loaded: Warehouse) -> None:
    """A version that ended exactly at the time is not moved, and the second run moves only the versions closed since."""
    unchanged = ("dim_customer_audit", "dim_customer_changes", "fct_visit")
    before = {name: loaded.table(name).newest_version() for name in unchanged}
    keys = sorted(row["customer_key"] for row in queries.history(loaded, WHOLE).collect())
    assert archive_before(loaded, first_of(4)).moved == 2
    assert (cities(loaded, "dim_customer"), cities(loaded, ARCHIVE)) == (["Kyiv", "Oslo"], ["Bern", "Rome"])
    for read in (versions, versions_in_sql):
        assert_same_rows(ALL_VERSIONS, read(loaded))
    assert sorted(row["customer_key"] for row in queries.history(loaded, "dim_customer").collect()) == keys
    as_of = {month: queries.as_of(loaded, CUSTOMER, datetime(2024, month, 15)).collect() for month in (1, 2, 5)}
    assert {month: sorted(row["city"] for row in rows) for month, rows in as_of.items()} == {
        1: ["Bern", "Rome"],
        2: ["Bern", "Oslo"],
        5: ["Kyiv"],
    }
    pipeline = Pipeline(loaded.path, spark=loaded.spark)
    in_sql = pipeline.sql("SELECT city FROM dim_customer_as_of('2024-01-15') ORDER BY city").collect()
    assert [row["city"] for row in in_sql] == ["Bern", "Rome"]
    assert {name: loaded.table(name).newest_version() for name in unchanged} == before
    joined = {row["visit"]: row["customer_city"] for row in queries.with_dimensions(loaded, VISIT).collect()}
    assert joined == {1: "Rome", 2: "Bern"}
    assert violations(loaded) == []
    assert archive_before(loaded, datetime(2024, 4, 1, 0, 0, 1)).moved == 1
    assert (cities(loaded, "dim_customer"), cities(loaded, ARCHIVE)) == (["Kyiv"], ["Bern", "Oslo", "Rome"])
    assert_same_rows(ALL_VERSIONS, versions(loaded))


@requirement("H36")
@pytest.mark.rule("S42", "S15")
def test_a_run_without_versions_to_move_writes_nothing(archived: Warehouse) -> None:
    before = {name: archived.table(name).newest_version() for name in archived.tables()}
    result = archive_before(archived, first_of(4))
    assert (result.moved, result.commit) == (0, None)
    assert {name: archived.table(name).newest_version() for name in archived.tables()} == before


@pytest.mark.rule("S42", "S15")
def test_a_run_without_versions_to_move_creates_no_archive(loaded: Warehouse) -> None:
    assert archive_before(loaded, first_of(1)).commit is None
    assert not loaded.table(ARCHIVE).exists()


@requirement("H36")
@pytest.mark.rule("S42")
def test_the_commit_records_who_archived_what_and_why(archived: Warehouse) -> None:
    commit = archived.table("dim_customer").last_commit()
    assert commit.archiving == Archiving("2024-04-01T00:00:00+00:00", "ann", "age")


@pytest.mark.slow
@requirement("H36")
@pytest.mark.rule("S42", "S15")
def test_a_load_in_order_writes_nothing_to_the_archive(archived: Warehouse) -> None:
    """It opens a version, and closes the current one."""
    before = archived.table(ARCHIVE).newest_version()
    ingest_and_apply(archived, CUSTOMER, [feed("two", ("a", 6, "Bari"))])
    assert archived.table(ARCHIVE).newest_version() == before
    assert cities(archived, "dim_customer") == ["Bari", "Kyiv", "Oslo"]


LATE = {
    "a split version": (
        [feed("late", ("a", 1, "Bari"))],
        """
        | id | city | from       | to         |
        | a  | Bari | 2024-01-01 | 2024-02-01 |
        | a  | Oslo | 2024-02-01 | 2024-04-01 |
        | a  | Kyiv | 2024-04-01 | NULL       |
        | b  | Bern | 2024-01-01 | 2024-03-01 |
        """,
        (["Bari", "Kyiv", "Oslo"], ["Bern"]),
    ),
    "a new version in the middle": (
        [feed("late", ("b", 2, "Lyon"))],
        """
        | id | city | from       | to         |
        | a  | Rome | 2024-01-01 | 2024-02-01 |
        | a  | Oslo | 2024-02-01 | 2024-04-01 |
        | a  | Kyiv | 2024-04-01 | NULL       |
        | b  | Bern | 2024-01-01 | 2024-02-01 |
        | b  | Lyon | 2024-02-01 | 2024-03-01 |
        """,
        (["Bern", "Kyiv", "Lyon", "Oslo"], ["Rome"]),
    ),
    "a withdrawn delivery": (
        [feed("one", revision=2, withdrawn=True)],
        """
        | id | city | from       | to   |
        | a  | Rome | 2024-01-01 | NULL |
        | b  | Bern | 2024-01-01 | NULL |
        """,
        (["Bern", "Rome"], []),
    ),
}


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42", "S14", "S24")
@pytest.mark.parametrize("case", LATE)
def test_a_late_change_moves_the_versions_that_it_changes_back(
    archived: Warehouse, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """The load is killed between its two commits: readers see the rows before it, and the next load completes it."""
    deliveries, expected, tables = LATE[case]
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
        load(archived, CUSTOMER, deliveries)
    assert_same_rows(ALL_VERSIONS, versions(archived))
    load(archived, CUSTOMER)
    assert_same_rows(expected, versions(archived))
    assert (cities(archived, "dim_customer"), cities(archived, ARCHIVE)) == tables
    load(archived, VISIT)
    assert violations(archived) == []


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42", "S17")
def test_a_killed_run_moves_nothing_for_readers_and_the_next_one_nothing_twice(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in (first_of(3), first_of(4)):
        with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
            archive_before(loaded, moment)
        for read in (versions, versions_in_sql):
            assert_same_rows(ALL_VERSIONS, read(loaded))
    assert archive_before(loaded, first_of(4)).moved == 2
    assert (cities(loaded, "dim_customer"), cities(loaded, ARCHIVE)) == (["Kyiv", "Oslo"], ["Bern", "Rome"])


@pytest.mark.slow(30)
@pytest.mark.rule("S42", "S17")
@pytest.mark.parametrize("next_writer", ["a load", "maintenance"])
def test_after_a_killed_run_each_version_is_in_one_table(
    archived: Warehouse, monkeypatch: pytest.MonkeyPatch, next_writer: str
) -> None:
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch):
        archive_before(archived, first_of(5))
    assert cities(archived, ARCHIVE) == ["Bern", "Oslo", "Rome"]
    if next_writer == "a load":
        ingest_and_apply(archived, CUSTOMER, [feed("two", ("c", 6, "Bari"))])
    else:
        maintain(archived, CUSTOMER.table_names, now=NOW)
    assert cities(archived, ARCHIVE) == ["Bern", "Rome"]
    assert_same_rows(ALL_VERSIONS, [row for row in versions(archived) if row["id"] != "c"])


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42")
def test_a_reader_that_loops_during_a_run_sees_each_version_once(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits between its two commits until the reader has read twice, and after them likewise."""
    seen: list[list[dict[str, Any]]] = []
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            seen.append(versions(loaded))

    def wait_for_reads() -> None:
        before, deadline = len(seen), time.monotonic() + 60
        while len(seen) < before + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(seen) >= before + 2

    reader = threading.Thread(target=loop)
    reader.start()
    try:
        with between_the_commits(wait_for_reads, monkeypatch):
            archive_before(loaded, first_of(4))
        wait_for_reads()
    finally:
        ended.set()
        reader.join()
    assert len(seen) >= 4
    for rows in seen:
        assert_same_rows(ALL_VERSIONS, rows)


@pytest.mark.slow(30)
@pytest.mark.rule("S42")
def test_a_load_that_commits_during_a_run_loses_nothing(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run meets a write conflict, and is repeated with the rows of the load."""
    others = iter([feed("late", ("a", 3, "Bari"))])

    def write_first() -> None:
        for delivery in others:
            load(loaded, CUSTOMER, [delivery])

    with between_the_commits(write_first, monkeypatch):
        assert archive_before(loaded, first_of(4)).moved == 2
    assert_same_rows(
        """
        | id | city | from       | to         |
        | a  | Rome | 2024-01-01 | 2024-02-01 |
        | a  | Oslo | 2024-02-01 | 2024-03-01 |
        | a  | Bari | 2024-03-01 | 2024-04-01 |
        | a  | Kyiv | 2024-04-01 | NULL       |
        | b  | Bern | 2024-01-01 | 2024-03-01 |
        """,
        versions(loaded),
    )
