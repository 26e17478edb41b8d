"""Deliveries in the bucket of an object store: they are listed, copied for a local Spark, and read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries import local_copies
from scd_pipeline.deliveries.discovery import discover, discover_all, file_version, list_files
from scd_pipeline.deliveries.paths import exists_for_spark
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.object_store import PRIVATE, ObjectStore, serve
from scd_pipeline_tests.storage.customers import history
from scd_pipeline_tests.storage.test_changes_while_read import replace_before_rows_are_read

OBJECTS = 10_000
OBJECTS_OF_A_REQUEST = 1_000


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with serve() as store:
        yield store


@pytest.fixture
def store(server: ObjectStore) -> ObjectStore:
    """The server with the empty bucket `landing`."""
    server.reset("landing", PRIVATE)
    return server


def customers(path: str, **options: object) -> Dimension:
    """Return a dimension with a snapshot, or with a feed whose rows have times."""
    has_times = "effective_at" in options
    source = Source("crm", feed=Feed(path, **options)) if has_times else Source("crm", Snapshot(path, **options))
    return Dimension("dim_c", "id", {"city": 2}, source)


def names(path: str, **options: object) -> list[str]:
    return [delivery.name for delivery in discover(customers(path, **options), None)]


def test_objects_are_discovered_as_files_are(store: ObjectStore) -> None:
    """Also folders of objects, and dates in the names of folders; other objects are not deliveries."""
    for key in (
        "in/c_2024-01-01.csv",
        "in/c_2024-02-01.csv",
        "in/c_2024-03-01.csv.bak/x",
        "in/_c_2024-04-01.csv",
        "days/2024-01-01/part-0.csv",
        "days/2024-01-01/part-1.csv",
        "tree/2024/01/31/c.csv",
        "tree/2024/02/29/c.csv",
        "tree/2024/02/other.csv",
        "in2/a b+ü%20.csv",
    ):
        store.put("landing", key, "id,city\n1,Graz\n")
    assert names("s3a://landing/in/c_{date}.csv") == ["2024-01-01", "2024-02-01"]
    assert names("s3://landing/days/{date}", format="csv") == ["2024-01-01"]
    assert names("s3a://landing/tree/{date:%Y/%m/%d}/c.csv") == ["2024-01-31", "2024-02-29"]
    assert names("s3a://landing/in2/{delivery}.csv", effective_at="at") == ["a b+ü%20"]
    assert names("s3a://landing/c_{date}.csv") == []


def test_an_object_has_the_time_and_the_size_that_its_bucket_lists(store: ObjectStore) -> None:
    store.put("landing", "in/c_2024-01-01.csv", "id,city\n1,Graz\n", at="2024-05-31T12:30:00")
    store.put("landing", "in/c_2024-02-01.csv/a.csv", "id,city\n", at="2024-05-31T12:30:00")
    store.put("landing", "in/c_2024-02-01.csv/b.csv", "id,city\n1,Graz\n", at="2024-06-01T12:30:00")
    deliveries = discover(customers("s3a://landing/in/c_{date}.csv"), None)
    assert [file_version(delivery) for delivery in deliveries] == [
        "2024-05-31T12:30:00.000000Z, 15 bytes",
        "2024-06-01T12:30:00.000000Z, 23 bytes",
    ]
    assert [delivery.path for delivery in deliveries] == [
        "s3a://landing/in/c_2024-01-01.csv",
        "s3a://landing/in/c_2024-02-01.csv",
    ]


def test_near_matches_in_a_bucket_are_reported(store: ObjectStore) -> None:
    store.put("landing", "in/c_31.01.2024.csv", "id,city\n")
    (near,) = discover_all(customers("s3a://landing/in/c_{date}.csv"), None).near_matches
    assert near.names == ["c_31.01.2024.csv"]
    assert "c_{date:%d.%m.%Y}.csv" in str(near.warning())


@pytest.mark.slow(10)
def test_a_request_lists_a_thousand_objects(store: ObjectStore) -> None:
    """The objects themselves are not requested."""
    for number in range(OBJECTS):
        store.put("landing", f"in/c_{number:05}.csv", "id,city\n")
    listing = list_files(customers("s3a://landing/in/c_{delivery}.csv", effective_at="at"))
    assert len({file_version(delivery) for delivery in listing.deliveries()}) == 1
    assert len(listing.files) == OBJECTS
    assert len(store.requests) <= OBJECTS / OBJECTS_OF_A_REQUEST + 1


def error_of_listing(path: str) -> SourceDataError:
    with pytest.raises(SourceDataError) as error:
        names(path)
    return error.value


def test_a_bucket_without_the_right_to_list_it_is_named(store: ObjectStore) -> None:
    error = error_of_listing(f"s3a://{PRIVATE}/in/c_{{date}}.csv")
    assert (error.code, error.location) == ("STORE_FAILS", "s3a://private")
    assert error.details["reason"] == "ListObjectsV2 failed with ACCESS_DENIED"


def test_the_error_of_a_process_without_credentials_names_bucket_and_action(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    error = error_of_listing("s3a://landing/in/c_{date}.csv")
    assert (error.code, error.location) == ("STORE_FAILS", "s3a://landing")
    assert error.details["reason"] == "ListObjectsV2 failed with ACCESS_DENIED"
    assert "AWS_ACCESS_KEY_ID" in error.fix


def test_a_missing_bucket_is_named(store: ObjectStore) -> None:
    error = error_of_listing("s3a://landed/in/c_{date}.csv")
    assert (error.code, error.location) == ("BUCKET_MISSING", "s3a://landed")


def versions(spark: SparkSession, warehouse: Path) -> list[str]:
    """Return the key, the city and the first day of each version."""
    rows = history(Warehouse(spark, warehouse), customers("c_{date}.csv"))
    return sorted(f"{row['id']} {row['city']} {row['from']:%Y-%m-%d}" for row in rows)


def parquet(cities: list[str]) -> bytes:
    table = pyarrow.table({"id": [str(key) for key in range(len(cities))], "city": cities})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def load(spark: SparkSession, warehouse: Path, dimension: Dimension) -> list[str]:
    """Load what is discovered, and return its outcomes."""
    results = ingest_and_apply(Warehouse(spark, warehouse), dimension, discover(dimension, None)).results
    return outcomes(results)


def outcomes(results: Sequence[BatchResult]) -> list[str]:
    return [f"{result.delivery} {result.outcome} {result.code}".strip() for result in results]


def test_a_local_spark_reads_copies_that_exist_as_long_as_they_are_read(
    spark: SparkSession, store: ObjectStore
) -> None:
    """An object that was removed since it was listed is not copied."""
    dimension = customers("s3a://landing/in/c_{date}.csv")
    store.put("landing", "in/c_2024-01-01.csv", "id,city\n1,Graz\n")
    store.put("landing", "in/c_2024-02-01.csv", "id,city\n1,Linz\n")
    deliveries = discover(dimension, None)
    store.delete("landing", "in/c_2024-02-01.csv")
    pending = [PendingDelivery.create(number, each, dimension, "") for number, each in enumerate(deliveries)]
    with local_copies.local_copies(spark, pending) as copies:
        first, second = (Path(str(each.delivery.path)) for each in copies.deliveries)
        assert first.read_text() == "id,city\n1,Graz\n"
        assert not second.exists()
        assert [each.delivery for each in copies.restored(copies.deliveries)] == deliveries
    assert not first.exists()


@pytest.mark.slow(30)
def test_a_load_reads_objects_of_which_some_are_late_replaced_removed_or_damaged(
    spark: SparkSession, store: ObjectStore, warehouse: Path
) -> None:
    """The errors name the objects, not their copies on this machine."""
    dimension = customers("s3a://landing/in/c_{date}.csv")
    store.put("landing", "in/c_2024-02-01.csv", "id,city\n1,Graz\n2,Bonn\n")
    assert load(spark, warehouse, dimension) == ["2024-02-01 accepted"]
    store.put("landing", "in/c_2024-01-01.csv", "id,city\n1,Linz\n2,Bonn\n")
    store.put("landing", "in/c_2024-02-01.csv", "id,city\n1,Wien\n2,Bonn\n", at="2024-06-02T00:00:00")
    store.put("landing", "in/c_2024-03-01.csv", "id,city\n1,Rome\n2,Bonn\n")
    store.put("landing", "in/c_2024-04-01.csv", b"PK\x03\x04 an archive")
    deliveries = discover(dimension, None)
    store.delete("landing", "in/c_2024-03-01.csv")
    results = ingest_and_apply(Warehouse(spark, warehouse), dimension, deliveries).results
    assert outcomes(results) == [
        "2024-01-01 accepted",
        "2024-02-01 accepted",
        "2024-03-01 rejected DELIVERY_MISSING",
        "2024-04-01 rejected UNREADABLE_DELIVERY",
    ]
    assert "s3a://landing/in/c_2024-03-01.csv" in results[2].problem
    assert "s3a://landing/in/c_2024-04-01.csv is a ZIP archive" in results[3].problem
    assert not any("scd-copies" in result.problem for result in results)
    assert versions(spark, warehouse) == ["1 Linz 2024-01-01", "1 Wien 2024-02-01", "2 Bonn 2024-01-01"]
    assert set(load(spark, warehouse, dimension)[:2]) == {
        "2024-01-01 unchanged",
        "2024-02-01 unchanged",
    }


@pytest.mark.slow(20)
def test_an_object_that_is_replaced_while_it_is_read_is_rejected(
    spark: SparkSession, store: ObjectStore, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dimension = customers("s3a://landing/in/c_{date}.parquet")
    store.put("landing", "in/c_2024-02-01.parquet", parquet(["Graz", "Bonn"]))
    replace_before_rows_are_read(
        monkeypatch,
        lambda: store.put("landing", "in/c_2024-02-01.parquet", parquet(["Wien", "Bonn"]), at="2024-06-02T00:00:00"),
    )
    rejected = load(spark, warehouse, dimension)
    assert rejected == ["2024-02-01 rejected CHANGED_WHILE_READ"]
    assert load(spark, warehouse, dimension) == ["2024-02-01 accepted"]


@pytest.mark.slow(20)
def test_folders_of_objects_are_read_with_the_values_in_their_names(
    spark: SparkSession, store: ObjectStore, warehouse: Path
) -> None:
    dimension = customers("s3a://landing/in/{date}", format="csv")
    store.put("landing", "in/2024-02-01/city=Graz/part-0.csv", "id\n1\n")
    store.put("landing", "in/2024-02-01/city=New York/part-0.csv", "id\n2\n")
    assert load(spark, warehouse, dimension) == ["2024-02-01 accepted"]
    assert versions(spark, warehouse) == ["1 Graz 2024-02-01", "2 New York 2024-02-01"]


@pytest.mark.slow(20)
def test_a_delivery_is_rejected_if_spark_can_read_neither_its_object_nor_a_copy(
    spark: SparkSession, store: ObjectStore, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a cluster without the jars of the store's file system."""
    dimension = customers("s3a://landing/in/c_{date}.csv")
    store.put("landing", "in/c_2024-02-01.csv", "id,city\n1,Graz\n")
    monkeypatch.setattr(local_copies, "exists_for_spark", lambda _, path: exists_for_spark(spark, f"{path}/none"))
    assert load(spark, warehouse, dimension) == ["2024-02-01 rejected NO_CONNECTOR"]
