"""S42: closed versions that ended before a time are in the archive, and every reader sees the same rows as before."""

from __future__ import annotations

import shutil
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
from scd_pipeline.delta.commits import Archiving
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError, HighWaterMarkError, SetupError, UsageError
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.archive import ArchiveResult, archive, archive_time
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.maintenance import maintain
from scd_pipeline.operations.repair import repair
from scd_pipeline.operations.status import status
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import feed, snapshot
from scd_pipeline_tests.storage.two_tables import Killed, between_the_commits, kill, reader_in_a_loop, records
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
def test_versions_that_ended_before_the_time_are_in_the_archive(archived: Warehouse) -> None:
    """The commit of the dimension records the person, the reason and the time."""
    assert (cities(archived, "dim_customer"), cities(archived, ARCHIVE)) == (["Kyiv", "Oslo"], ["Bern", "Rome"])
    assert_same_rows(ALL_VERSIONS, versions(archived))
    commit = archived.table("dim_customer").last_commit()
    assert commit.archiving == Archiving("2024-04-01T00:00:00+00:00", "ann", "age")


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42")
def test_each_version_is_in_one_table_and_every_reader_sees_all(loaded: Warehouse) -> None:
    """A version that ended exactly at the time is not moved. A second run moves only the versions closed since."""
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


@pytest.mark.slow
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
    with reader_in_a_loop(lambda: versions(loaded)) as (seen, wait_for_reads):
        with between_the_commits(wait_for_reads, monkeypatch):
            archive_before(loaded, first_of(4))
        wait_for_reads()
    assert len(seen) >= 4
    for rows in seen:
        assert_same_rows(ALL_VERSIONS, rows)


@pytest.mark.slow(30)
@pytest.mark.rule("S42")
def test_a_load_that_commits_during_a_run_loses_nothing(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes a version that the run is moving. The run meets a write conflict, and is repeated."""
    others = iter([feed("late", ("a", 1, "Bari"))])

    def write_first() -> None:
        for delivery in others:
            load(loaded, CUSTOMER, [delivery])

    with between_the_commits(write_first, monkeypatch):
        assert archive_before(loaded, first_of(4)).moved == 2
    assert_same_rows(ALL_VERSIONS.replace("Rome", "Bari"), versions(loaded))
    assert (cities(loaded, "dim_customer"), cities(loaded, ARCHIVE)) == (["Kyiv", "Oslo"], ["Bari", "Bern"])


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42")
def test_an_archive_can_be_added_to_an_existing_table_and_is_not_forgotten(loaded: Warehouse) -> None:
    """The first archive run creates it; without the option, readers would lack versions."""
    dimension = replace(CUSTOMER, table_properties={"team": "sales"})
    ingest_and_apply(loaded, dimension, [feed("two", ("c", 6, "Bari"))])
    assert not loaded.table(ARCHIVE).exists()
    assert_same_rows(ALL_VERSIONS, [row for row in versions_in_sql(loaded) if row["id"] != "c"])
    assert violations(loaded) == []
    assert archive_before(loaded, first_of(4), dimension).moved == 2
    assert loaded.table(ARCHIVE).properties()["team"] == "sales"
    assert_same_rows(ALL_VERSIONS, [row for row in versions(loaded) if row["id"] != "c"])
    with pytest.raises(DeclarationError) as caught:
        load(loaded, WHOLE)
    assert [(error.code, error.field) for error in caught.value.errors] == [("TABLE_DIFFERS", "archive_after_years")]


@pytest.mark.slow(30)
@pytest.mark.rule("S42", "S14")
@pytest.mark.parametrize("dropped", [["dim_customer"], ["dim_customer", ARCHIVE]], ids=["one", "both"])
def test_a_dropped_table_is_rebuilt_with_every_version(archived: Warehouse, dropped: list[str]) -> None:
    keys = sorted(row["customer_key"] for row in queries.history(archived, CUSTOMER).collect())
    for name in dropped:
        shutil.rmtree(Path(archived.path) / name)
    load(archived, CUSTOMER)
    assert_same_rows(ALL_VERSIONS, versions(archived))
    assert sorted(row["customer_key"] for row in queries.history(archived, CUSTOMER).collect()) == keys
    assert not archived.table(ARCHIVE).exists() or cities(archived, ARCHIVE) == []
    assert archive_before(archived, first_of(4)).moved == 2


@pytest.mark.slow(30)
@pytest.mark.rule("S42")
def test_a_dropped_archive_is_reported(archived: Warehouse) -> None:
    shutil.rmtree(Path(archived.path) / ARCHIVE)
    for use in (lambda: load(archived, CUSTOMER, [feed("two", ("a", 6, "Bari"))]), lambda: versions(archived)):
        with pytest.raises(HighWaterMarkError) as caught:
            use()
        assert (caught.value.code, caught.value.location) == ("HISTORY_LOST", f"table {ARCHIVE}")
    (table,) = status(archived, [CUSTOMER], now=NOW).tables
    assert "[HISTORY_LOST]" in table.damage[0]


@pytest.mark.slow(45)
@requirement("H36")
@pytest.mark.rule("S42", "S14")
def test_rows_that_another_program_changed_are_repaired_in_both_tables(archived: Warehouse) -> None:
    """An archived version that was deleted comes back to the dimension; one that was copied there is removed."""
    table, archive_table = (archived.table(name).identifier for name in ("dim_customer", ARCHIVE))
    for statement in (
        f"INSERT INTO {table} SELECT * FROM {archive_table} WHERE city = 'Rome'",
        f"DELETE FROM {archive_table} WHERE city = 'Bern'",
        f"UPDATE {archive_table} SET city = 'Roma' WHERE city = 'Rome'",
    ):
        archived.spark.sql(statement)
    result = repair(archived, CUSTOMER, now=NOW, actor="ann")
    assert dict(result.row_counts) == {"open": 1, "overwrite": 1, "remove": 1}
    assert_same_rows(ALL_VERSIONS, versions(archived))
    assert (cities(archived, "dim_customer"), cities(archived, ARCHIVE)) == (["Bern", "Kyiv", "Oslo"], ["Rome"])
    assert violations(archived) == []
    assert archive_before(archived, first_of(4)).moved == 1


@pytest.mark.slow(30)
@pytest.mark.rule("S42", "S20")
def test_attributes_are_added_and_renamed_in_both_tables(archived: Warehouse) -> None:
    """By an archive run too, if it is the first to have the new declaration."""
    attributes = {"town": Attribute(2, former_names="city"), "tier": Attribute(2, missing="not_provided")}
    changes = Feed(format="parquet", effective_at="at", deletes="op = 'D'")
    source = Source("crm", Snapshot(format="parquet"), changes, columns={"town": "city"})
    changed = replace(CUSTOMER, attributes=attributes, sources=source)
    assert archive_before(archived, first_of(5), changed).moved == 1
    load(archived, changed, [feed("late", ("a", 3, "Bari"))]).raise_if_rejected()
    towns = queries.history(archived, changed).select("town", "tier").collect()
    assert sorted(map(tuple, towns), key=str) == [(town, None) for town in ("Bari", "Bern", "Kyiv", "Oslo", "Rome")]
    names = [archived.table(name).read().select("town").collect() for name in ("dim_customer", ARCHIVE)]
    assert [sorted(row["town"] for row in rows if row["town"]) for rows in names] == [
        ["Bari", "Kyiv", "Oslo"],
        ["Bern", "Rome"],
    ]


@pytest.mark.slow(30)
@pytest.mark.rule("S42", "S20")
def test_an_archive_shows_which_columns_were_retired_before_it_was_created(loaded: Warehouse) -> None:
    """The archive run renames one of them, in the first table."""
    retired = replace(CUSTOMER, attributes={"city": Attribute(2, retired=True)})
    load(loaded, retired, [snapshot(6, {"a": "Kyiv"})]).raise_if_rejected()
    renamed = replace(CUSTOMER, attributes={"town": Attribute(2, former_names="city", retired=True)})
    assert archive_before(loaded, first_of(4), renamed).moved == 2
    for name in ("dim_customer", ARCHIVE):
        columns = loaded.spark.sql(f"DESCRIBE TABLE {loaded.table(name).identifier}").toArrow().to_pylist()
        comments = {row["col_name"]: row["comment"] for row in columns if row["comment"]}
        assert comments == {"town": "Retired at 2024-06-01 00:00:00: no longer provided"}


@pytest.mark.slow(30)
@pytest.mark.rule("S42")
@pytest.mark.parametrize(
    "layout",
    [
        {"open_end": None, "column_names": {"current_flag": False, "effective_to": "valid_to"}},
        {"deleted_rows": "new_version", "column_names": {"row_hash": "row_hash"}},
    ],
    ids=["without a flag", "with deleted versions and a hash"],
)
def test_versions_are_moved_whatever_the_columns_of_the_table(
    spark: SparkSession, tmp_path: Path, layout: dict[str, Any]
) -> None:
    opened, dimension = Warehouse(spark, tmp_path / "warehouse"), replace(CUSTOMER, **layout)
    load(opened, dimension, DELIVERIES, has_facts=True)
    before = sorted(map(str, queries.history(opened, dimension).collect()))
    assert archive_before(opened, first_of(4), dimension).moved == 2
    assert sorted(map(str, queries.history(opened, dimension).collect())) == before
    load(opened, dimension, [feed("late", ("a", 1, "Bari"))])
    assert (cities(opened, "dim_customer")[0], cities(opened, ARCHIVE)) == ("Bari", ["Bern"])
    assert [str(result) for result in check_table(opened, dimension) if not result.passed] == []


@requirement("H36")
@pytest.mark.parametrize(
    ("years", "now", "expected"),
    [(7, "2027-03-31", "2020-03-31"), (1, "2024-02-29", "2023-02-28"), (4, "2024-02-29", "2020-02-29")],
)
def test_the_declared_age_is_a_number_of_calendar_years(years: int, now: str, expected: str) -> None:
    dimension = replace(CUSTOMER, archive_after_years=years)
    day = datetime.fromisoformat(now).replace(tzinfo=timezone.utc)
    assert archive_time(dimension, None, now=day).date().isoformat() == expected


@pytest.mark.parametrize(
    ("use", "code"),
    [
        (lambda: archive_time(WHOLE, "2020-01-01", now=NOW), "ARCHIVE_NOT_DECLARED"),
        (lambda: archive_time(CUSTOMER, "last year", now=NOW), "NOT_A_TIME"),
    ],
)
def test_an_archive_needs_a_declaration_and_a_time(use: Callable[[], object], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        use()
    assert caught.value.code == code


def test_an_archive_needs_a_reason_and_a_table(spark: SparkSession, tmp_path: Path) -> None:
    opened, arguments = Warehouse(spark, tmp_path), {"closed_before": NOW, "by": "ann", "reason": "age"}
    with pytest.raises(SetupError) as not_loaded:
        archive(opened, CUSTOMER, **arguments)
    assert (not_loaded.value.code, not_loaded.value.details["table"]) == ("TABLE_NOT_LOADED", "dim_customer")
    for argument in ("by", "reason"):
        with pytest.raises(UsageError) as caught:
            archive(opened, CUSTOMER, **{**arguments, argument: " "})
        assert (caught.value.code, caught.value.details["argument"]) == ("ARCHIVE_NOT_EXPLAINED", argument)


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42")
def test_the_library_archives_by_the_declared_age_or_up_to_a_time(loaded: Warehouse) -> None:
    pipeline = Pipeline(loaded.path, spark=loaded.spark)
    result = pipeline.archive(CUSTOMER, by="ann", reason="age", now="2031-03-01")
    assert str(result) == (
        "dim_customer: moved 1 version closed before 2024-03-01T00:00:00+00:00 to the archive; "
        f"table version {loaded.table('dim_customer').newest_version()}"
    )
    result = pipeline.archive(CUSTOMER, by="ann", reason="age", closed_before="2024-02-01")
    assert str(result) == (
        "dim_customer: moved 0 versions closed before 2024-02-01T00:00:00+00:00 to the archive; nothing was written"
    )
    assert_same_rows(ALL_VERSIONS, records(pipeline.history("dim_customer")))
