"""Sensors of deliveries in the bucket of an object store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from scd_pipeline.components.sensors import partitions_sensor
from scd_pipeline.declaration import Dimension, read_dimension
from scd_pipeline_tests.object_store import ObjectStore, serve
from scd_pipeline_tests.orchestration.test_sensors import DECLARATION, Ticks, files_of

FILES = 2_500


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with serve() as served:
        yield served


@pytest.fixture
def customer(tmp_path: Path, store: ObjectStore) -> Dimension:
    store.reset("landing")
    path = tmp_path / "dim_customer.yaml"
    path.write_text(DECLARATION.replace("customers_{date}", "s3a://landing/customers_{date}"), encoding="utf-8")
    return read_dimension(path)


def test_new_late_and_replaced_objects_start_one_run_each(customer: Dimension, store: ObjectStore) -> None:
    """As soon as a listing has shown them twice."""
    tick = Ticks(customer)
    store.put("landing", "customers_2024-02-01.csv", "id,city\n")
    assert "still being written: 2024-02-01" in str(tick(30).skip_reason)
    (request,) = tick(30).run_requests or ()
    assert files_of(request) == {"2024-02-01": "2024-06-01T00:00:00.000000Z, 8 bytes"}
    assert not tick(30).run_requests
    store.put("landing", "customers_2024-01-01.csv", "id,city\n")
    store.put("landing", "customers_2024-02-01.csv", "id,city\n1,Graz\n", at="2024-06-02T00:00:00")
    tick(30)
    (request,) = tick(30).run_requests or ()
    assert {name: version.split()[0] for name, version in files_of(request).items()} == {
        "2024-01-01": "2024-06-01T00:00:00.000000Z,",
        "2024-02-01": "2024-06-02T00:00:00.000000Z,",
    }


@pytest.mark.slow(3)
def test_a_tick_lists_the_bucket_once(customer: Dimension, store: ObjectStore) -> None:
    """A thousand objects are one request, also in a tick that requests a run."""
    for number in range(FILES):
        store.put("landing", f"customers_{1000 + number // 336:04}-{number % 12 + 1:02}-{number % 28 + 1:02}.csv", "")
    tick, requests = Ticks(customer), []
    for _ in range(3):
        store.requests.clear()
        tick(30)
        requests.append(len(store.requests))
    assert max(requests) <= FILES // 1_000 + 1


def test_the_partitions_of_objects_are_added(customer: Dimension, store: ObjectStore) -> None:
    store.put("landing", "customers_2024-02-01.csv", "id,city\n")
    sensor = partitions_sensor("scd_partitions", [customer])
    with dg.DagsterInstance.ephemeral() as instance:
        result = sensor(dg.build_sensor_context(instance=instance))
    assert isinstance(result, dg.SensorResult)
    (added,) = result.dynamic_partitions_requests or ()
    assert "2024-02-01" in added.partition_keys
