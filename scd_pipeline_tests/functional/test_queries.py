"""Queries of a small dimension: its windows, its batches with their states, its quarantine, its views."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from scd_pipeline import Pipeline, queries
from scd_pipeline.declaration import Attribute, Begin, Dimension, Feed, RetireGuard, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta import change_log
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline.operations.withdrawals import withdrawal
from scd_pipeline_tests.semantics.specification import rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CITY = Dimension(
    "dim_customer",
    "id",
    {"city": 2, "state": 1},
    Source("crm", snapshot=Snapshot(), bad_row_limit=1.0),
    begin=Begin(at="0001-01-01 00:00:00", for_first_changes_until="2024-01-01 00:00:00"),
)
PLAIN = Dimension("dim_plain", "id", {"city": 1}, Source("crm", snapshot=Snapshot()))


def snapshot(day: int, rows: dict[str, list[Any]], revision: int = 0, **options: Any) -> Delivery:
    return Delivery(
        "crm", f"2024-01-{day:02}", at=datetime(2024, 1, day), revision=revision, frame=pd.DataFrame(rows), **options
    )


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Four days of customers: one moves, one is retired; a revised day, a withdrawn day, and rows without a key."""
    store = Warehouse(spark, tmp_path_factory.mktemp("readings") / "warehouse")
    first = {"id": ["1", "2"], "city": ["Graz", "Linz"], "state": ["a", "b"]}
    second = {"id": ["1", None], "city": ["Wien", "Ulm"], "state": ["a", "c"]}
    incorrect = {"id": ["1", "2", "3", None], "city": ["Oslo", "Oslo", "Oslo", "Oslo"], "state": ["x", "x", "x", "x"]}
    ingest_and_apply(
        store, CITY, [snapshot(1, first), snapshot(2, second), snapshot(3, incorrect), snapshot(4, incorrect)]
    )
    corrected = {"id": ["1"], "city": ["Wien"], "state": ["a"]}
    withdrawal = Delivery("crm", "2024-01-04", revision=1, withdrawn=True)
    ingest_and_apply(store, CITY, [snapshot(3, corrected, revision=1), withdrawal])
    ingest_and_apply(store, PLAIN, [snapshot(1, {"id": ["1"], "city": ["Graz"]})])
    return store


def values(frame: DataFrame, *names: str) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in names) for row in frame.collect()}


@pytest.mark.parametrize("dimension", [CITY, "dim_customer"])
def test_history_ends_in_null_and_does_not_begin_in_year_1(store: Warehouse, dimension: Dimension | str) -> None:
    third = datetime(2024, 1, 3)
    assert values(queries.history(store, dimension), "id", "city", "effective_from", "effective_to") == {
        ("1", "Graz", None, datetime(2024, 1, 2)),
        ("1", "Wien", datetime(2024, 1, 2), None),
        ("2", "Linz", None, third),
    }


def test_current_rows(store: Warehouse) -> None:
    assert values(queries.current(store, CITY), "id", "city", "effective_to") == {("1", "Wien", None)}


@pytest.mark.parametrize(
    ("time", "rows"),
    [
        (datetime(1900, 1, 1), {("1", "Graz"), ("2", "Linz")}),
        (datetime(2024, 1, 1, 23, 59, 59, 999999), {("1", "Graz"), ("2", "Linz")}),
        (datetime(2024, 1, 2), {("1", "Wien"), ("2", "Linz")}),
        (datetime(2024, 1, 3), {("1", "Wien")}),
        (datetime(9999, 12, 31, 23, 59, 59), {("1", "Wien")}),
    ],
)
def test_as_of_uses_half_open_windows(store: Warehouse, time: datetime, rows: set[tuple[str, str]]) -> None:
    assert values(queries.as_of(store, CITY, time), "id", "city") == rows


def test_a_dimension_without_windows_has_the_same_rows_at_any_time(store: Warehouse) -> None:
    for frame in (
        queries.current(store, PLAIN),
        queries.history(store, "dim_plain"),
        queries.as_of(store, "dim_plain", datetime(1900, 1, 1)),
    ):
        assert values(frame, "id", "city") == {("1", "Graz")}


def test_batches_have_the_state_of_their_revision(store: Warehouse) -> None:
    batches = values(queries.batches(store, CITY), "delivery", "revision", "state", "rows", "bad_rows")
    assert batches == {
        ("2024-01-01", "0", "current", 2, 0),
        ("2024-01-02", "0", "current", 2, 1),
        ("2024-01-03", "0", "superseded", 4, 1),
        ("2024-01-03", "1", "current", 1, 0),
        ("2024-01-04", "0", "superseded", 4, 1),
        ("2024-01-04", "1", "withdrawn", 0, 0),
    }
    assert values(queries.batches(store, CITY).where("batch LIKE '%01-01%'"), "new", "changed", "deleted") == {
        (2, 0, 0)
    }


def test_quarantined_rows_have_the_state_of_their_batch(store: Warehouse) -> None:
    rows = queries.quarantine(store, CITY)
    assert rows.columns == ["batch", "state", "at", "key", "reason", "row"]
    assert values(rows, "at", "state", "key") == {
        (datetime(2024, 1, 2), "current", "id=NULL"),
        (datetime(2024, 1, 3), "superseded", "id=NULL"),
        (datetime(2024, 1, 4), "superseded", "id=NULL"),
    }
    (row,) = rows.where("state = 'current'").collect()
    assert row["row"] == '{"id":null,"city":"Ulm","state":"c"}'
    assert "business key" in row["reason"]


@pytest.mark.slow
def test_a_time_outside_the_calendar_can_be_collected(spark: SparkSession, warehouse: Path) -> None:
    """The quarantined row has its original text."""
    far = Dimension("dim_far", "id", {"city": 1}, Source("crm", feed=Feed(effective_at="at"), bad_row_limit=1.0))
    opened = Warehouse(spark, warehouse)
    rows = "'1', timestamp'9999-12-31 23:59:59' + interval 5 hours), ('2', timestamp'0001-01-01' - interval 5 hours"
    frame = spark.sql(f"SELECT id, 'Graz' AS city, at FROM VALUES ({rows}) AS t(id, at)")
    ingest_and_apply(opened, far, [Delivery("crm", "1", frame=frame)])
    assert values(queries.quarantine(opened, far), "key", "at") == {("id=1", None), ("id=2", None)}
    rows_by_key = {row["key"]: row["row"] for row in queries.quarantine(opened, far).collect()}
    assert "10000-01-01" in rows_by_key["id=1"]


def test_every_table_has_a_view(store: Warehouse) -> None:
    counts = {"": (3, 1), "_batches": (6, 1), "_keys": (3, 1), "_quarantine": (3, 0)}
    query_views = ["dim_customer_as_of", "dim_customer_current", "dim_customer_in_force"]
    query_views += ["dim_plain_as_of", "dim_plain_current", "dim_plain_in_force"]
    table_views = [f"{name}{part}" for name in ("dim_customer", "dim_plain") for part in (*counts, "_changes")]
    assert queries.view_names(store) == sorted([*table_views, *query_views])
    assert queries.register(store) == sorted([*table_views, *query_views])
    for part, (customer_count, plain_count) in counts.items():
        assert store.spark.table(f"dim_customer{part}").count() == customer_count
        assert store.spark.table(f"dim_plain{part}").count() == plain_count
    open_ends = store.spark.sql("SELECT string(effective_to) FROM dim_customer WHERE current_flag").collect()
    assert [row[0] for row in open_ends] == ["9999-12-31 23:59:59"]


def test_business_keys_are_read_from_the_table(store: Warehouse) -> None:
    assert queries.queried_table(store, "dim_customer").key_names == ("id",)


def test_a_missing_table_is_an_error_that_names_the_loaded_dimensions(store: Warehouse) -> None:
    with pytest.raises(SetupError) as missing:
        queries.current(store, "dim_client")
    assert (missing.value.code, missing.value.location) == ("DIMENSION_NOT_LOADED", "dim_client")
    assert missing.value.details["names"] == "dim_customer, dim_plain"
    other = Dimension("dim_other", "id", {"a": 2}, Source("s", snapshot=Snapshot()))
    with pytest.raises(SetupError) as not_loaded:
        queries.batches(store, other)
    assert (not_loaded.value.code, not_loaded.value.details["table"]) == ("TABLE_NOT_LOADED", "dim_other_changes")


def test_an_empty_warehouse_has_no_tables(spark: SparkSession, warehouse: Path) -> None:
    assert queries.view_names(Warehouse(spark, warehouse)) == []
    with pytest.raises(SetupError, match="DIMENSION_NOT_LOADED"):
        queries.history(Warehouse(spark, warehouse / "not_there"), "dim_x")


def test_tables_of_a_remote_folder_cannot_be_listed(spark: SparkSession) -> None:
    with pytest.raises(SetupError, match="TABLES_NOT_LISTED"):
        Warehouse(spark, "s3://bucket/warehouse").tables()


def test_a_query_of_a_remote_folder_reads_the_tables_that_are_passed(store: Warehouse) -> None:
    with Pipeline(f"file://{store.path}", spark=store.spark) as pipeline:
        assert pipeline.sql("SELECT * FROM dim_plain_current", dimensions=[PLAIN]).count() == 1
        assert pipeline.sql(f"SELECT * FROM delta.`{store.path}/dim_plain`").count() == 1


def test_only_declared_tables_of_a_remote_folder_are_listed(store: Warehouse) -> None:
    """An address may have one slash."""
    remote = Warehouse(store.spark, f"file:{store.path}", declared=["dim_plain", "dim_missing"])
    assert remote.tables() == ["dim_plain", "dim_plain_changes"]
    assert queries.register(remote, query="dim_plain_as_of") == ["dim_plain", "dim_plain_as_of"]
    now, then = (store.spark.sql(f"SELECT * FROM dim_plain_as_of({at})") for at in ("current_timestamp()", "NULL"))
    assert now.count() == then.count() == 1


GUARDED = Dimension(
    "dim_shop",
    "id",
    {"staff": Attribute(2, "int")},
    Source("erp", Snapshot(), retire_guard=RetireGuard(0.25, at_least=2), bad_row_limit=0.1),
)


def shops(day: int, rows: Mapping[str, str], *, allow: Collection[str] = (), **more: Any) -> Delivery:
    frame = [{"id": key, "staff": staff} for key, staff in rows.items()]
    return Delivery("erp", f"2024-01-{day:02}", frame=frame, allow=frozenset(allow), **more)


@pytest.mark.slow(13)
@rule("S27", "S26", "S34")
def test_batches_have_the_rules_that_rejected_them_and_that_their_load_has_overridden(
    spark: SparkSession, warehouse: Path
) -> None:
    """A rule that is allowed without need is not one of them."""
    store, every = Warehouse(spark, warehouse), ["bad_rows", "control_totals", "retire_guard", "withdrawn"]
    ingest_and_apply(store, GUARDED, [shops(1, {"a": "1", "b": "2", "c": "3"}, allow=every)])
    ingest_and_apply(store, GUARDED, [shops(2, {"a": "1"}, allow=every)])
    ingest_and_apply(store, GUARDED, [shops(3, {"a": "1", "b": "x"}, allow=every)])
    ingest_and_apply(store, GUARDED, [shops(3, {}, revision=1, withdrawn=True)])
    ingest_and_apply(store, GUARDED, [shops(3, {"a": "1", "b": "x"}, revision=2, allow=every)])
    rows = queries.batches(store, GUARDED).orderBy("delivery", "revision").collect()
    assert [(row["delivery"], row["revision"], row["overridden"]) for row in rows] == [
        ("2024-01-01", "0", []),
        ("2024-01-02", "0", ["retire_guard"]),
        ("2024-01-03", "0", ["bad_rows"]),
        ("2024-01-03", "1", []),
        ("2024-01-03", "2", ["bad_rows", "withdrawn"]),
    ]


@pytest.mark.slow
@rule("S27")
def test_a_log_without_overridden_rules_gets_them_with_the_next_batch(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Warehouse(spark, warehouse)
    fields, info = change_log._INFO_FIELDS, change_log._info
    with monkeypatch.context() as patch:
        patch.setattr(change_log, "_INFO_FIELDS", fields.removesuffix(", overridden array<string>"))
        patch.setattr(change_log, "_info", lambda batch: info(batch)[:-1])
        ingest_and_apply(store, GUARDED, [shops(1, {"a": "1", "b": "2", "c": "3"})])
    assert [row["overridden"] for row in queries.batches(store, GUARDED).collect()] == [[]]
    ingest_and_apply(store, GUARDED, [shops(2, {"a": "1"}, allow=["retire_guard"])])
    rows = queries.batches(store, GUARDED).orderBy("delivery").collect()
    assert [row["overridden"] for row in rows] == [[], ["retire_guard"]]


FOREVER = datetime(2100, 1, 1, tzinfo=timezone.utc)


@pytest.mark.slow(8)
@rule("S22", "S20")
def test_a_row_hash_is_that_of_the_first_names_also_as_it_was_known(spark: SparkSession, warehouse: Path) -> None:
    store, source = Warehouse(spark, warehouse), Source("crm", Snapshot())
    declared = Dimension(
        "dim_town", "id", {"city": 2}, source, column_names={"row_hash": "row_hash"}, single_scd_type=True
    )
    renamed = replace(declared, attributes=(Attribute(2, name="town", former_names=("city",)),))
    ingest_and_apply(store, declared, [Delivery("crm", "2024-01-01", frame=[{"id": "1", "city": "Bonn"}])])
    load(store, declared)
    load(store, renamed, [Delivery("crm", "2024-01-02", frame=[{"id": "1", "town": "Bonn"}])])
    hashes = [queries.as_of(store, renamed, FOREVER, known_at=time).collect() for time in (None, FOREVER)]
    assert hashes[0][0]["row_hash"] == hashes[1][0]["row_hash"]


@pytest.mark.slow(8)
@rule("S22", "S36")
def test_what_was_known_of_a_mirrored_dimension_needs_the_table_that_has_its_attributes(
    spark: SparkSession, warehouse: Path
) -> None:
    """Without them, the history would have one version of each entity."""
    store = Warehouse(spark, warehouse)
    mirrored = Dimension("dim_town", "id", "mirror", Source("crm", Snapshot()))
    load(store, mirrored, [Delivery("crm", f"2024-01-0{day}", frame=[{"id": "1", "city": f"{day}"}]) for day in (1, 2)])
    assert [row["city"] for row in queries.as_of(store, mirrored, FOREVER, known_at=FOREVER).collect()] == ["2"]
    shutil.rmtree(warehouse / "dim_town")
    with pytest.raises(SetupError, match="TABLE_NOT_LOADED"):
        queries.as_of(store, mirrored, FOREVER, known_at=FOREVER)
    load(store, mirrored)
    assert [row["city"] for row in queries.as_of(store, mirrored, FOREVER, known_at=FOREVER).collect()] == ["2"]


@pytest.mark.slow(6)
@rule("S34")
def test_a_withdrawal_needs_the_channel_if_two_channels_have_a_delivery_of_its_name(
    spark: SparkSession, warehouse: Path
) -> None:
    """The declaration has only the second channel any more."""
    store, row = Warehouse(spark, warehouse), {"id": "1", "city": "Bonn", "at": "2024-01-02"}
    first = Dimension("dim_town", "id", {"city": 2}, Source("crm", Snapshot()), single_scd_type=True)
    second = replace(first, sources=(Source("crm", feed=Feed(effective_at="at")),))
    ingest_and_apply(store, first, [Delivery("crm", "2024-01-01", frame=[{"id": "1", "city": "Ulm"}])])
    ingest_and_apply(store, second, [Delivery("crm", "2024-01-01", frame=[row])])
    with pytest.raises(UsageError, match=r"crm\.feed\.2024-01-01 or crm\.snapshot\.2024-01-01"):
        withdrawal(store, second, "2024-01-01", by="ann", reason="test")
    delivery = withdrawal(store, second, "crm.feed.2024-01-01", by="ann", reason="test")
    assert (delivery.channel, delivery.withdrawn) == ("feed", True)


@pytest.mark.slow(8)
@rule("S20")
def test_a_table_is_checked_and_repaired_before_a_load_gives_its_structs_the_declared_fields(
    spark: SparkSession, warehouse: Path
) -> None:
    store, source = Warehouse(spark, warehouse), Source("crm", Snapshot())
    narrow, wide = (
        Dimension("dim_town", "id", {"address": Attribute(2, f"struct<{fields}>")}, source, single_scd_type=True)
        for fields in ("town:string", "town:string,zip:string")
    )
    load(store, narrow, [Delivery("crm", "2024-01-01", frame=[{"id": "1", "address": {"town": "Bonn"}}])])
    load(store, wide)
    assert [str(result) for result in check_table(store, wide) if not result.passed] == []
    repaired = repair(store, wide, actor="ann", reason="test", now=FOREVER, dry_run=True)
    assert repaired.row_counts == {}


@pytest.mark.slow(7)
@rule("S15", "S30")
def test_a_first_load_by_a_source_that_does_not_decide_existence_opens_no_version(
    spark: SparkSession, warehouse: Path
) -> None:
    sources = (
        Source("crm", Snapshot(), existence=True, attributes=("city",)),
        Source("erp", Snapshot(), attributes=("phone",)),
    )
    declared = Dimension("dim_town", "id", {"city": 2, "phone": 2}, sources, single_scd_type=True)
    store = Warehouse(spark, warehouse)
    result = load(store, declared, [Delivery("erp", "2024-01-01", frame=[{"id": "1", "phone": "5"}])])
    assert (result.row_counts, result.audit.counts_by_delivery if result.audit else {}) == ({}, {})
    assert queries.history(store, declared).count() == 0
    result = load(store, declared, [Delivery("crm", "2024-01-02", frame=[{"id": "1", "city": "Bonn"}])])
    assert result.row_counts == {"open": 1}
    assert [row["phone"] for row in queries.current(store, declared).collect()] == ["5"]
