"""The partition of each delivery: its status, the reason of a rejection, and its counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from scd_pipeline.components import assets, load_metadata
from scd_pipeline.components.load_step import load_run_config
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.discovery import discover_files, file_version
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.errors import ConflictError
from scd_pipeline.operations.check import check_names
from scd_pipeline_tests.orchestration.fake_loads import DAYS, PARTITIONS, NoWarehouse, fake_loads, run

ASSETS = ["dim_customer_changes", "dim_customer", "dim_customer_audit"]


def statuses(instance: dg.DagsterInstance, asset: str) -> list[str]:
    """Return the status of the partitions of the three deliveries."""
    statuses_by_day = instance.get_status_by_partition(dg.AssetKey(asset), DAYS, PARTITIONS) or {}
    return [status.value if (status := statuses_by_day[day]) else "" for day in DAYS]


def failure(result: dg.ExecuteInProcessResult) -> list[str]:
    """Return the lines of a failed run's headline."""
    data = result.failure_data_for_node("load_dim_customer")
    assert data is not None and data.user_failure_data is not None
    return str(data.user_failure_data.description).splitlines()


def events(instance: dg.DagsterInstance, asset: str) -> dict[str | None, dict[str, Any]]:
    """Return the metadata of an asset's materializations, by partition."""
    records = instance.fetch_materializations(dg.AssetKey(asset), limit=20).records
    materializations = [(record.partition_key, record.asset_materialization) for record in reversed(records)]
    return {key: {n: v.value for n, v in event.metadata.items()} for key, event in materializations if event}


@pytest.mark.parametrize("requested", [[EVERYTHING], [DAYS[0], EVERYTHING], [DAYS[0], DAYS[2]]])
@pytest.mark.parametrize("select", [[], ["dim_customer"]])
def test_the_partition_of_a_rejected_delivery_is_failed_with_its_reason(
    requested: list[str],
    select: list[str],
    customer: Dimension,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each asset, whichever partitions and assets were requested, until the delivery is loaded."""
    reject = fake_loads(monkeypatch, rejected=[DAYS[1]])
    failed = run(customer, instance, *requested, select=select)
    assert not failed.success
    assert failure(failed) == [
        "2024-01-02: rejected [BAD_ROWS]: 2 of 3 rows are bad; deliver it again",
        "all other deliveries (2) were loaded",
    ]
    for asset in ASSETS:
        assert statuses(instance, asset) == ["MATERIALIZED", "FAILED", "MATERIALIZED"]
        (observed,) = instance.fetch_observations(dg.AssetKey(asset), limit=9).records
        reason = observed.asset_observation
        assert reason is not None and reason.partition == DAYS[1]
        assert [reason.metadata[name].value for name in ("code", "problem")] == ["BAD_ROWS", "2 of 3 rows are bad"]
    reject([])
    assert run(customer, instance, EVERYTHING, select=select).success
    assert [statuses(instance, asset) for asset in ASSETS] == [["MATERIALIZED"] * 3] * 3


@pytest.mark.parametrize("outcome", ["rejected", "missing"])
def test_a_failed_partition_has_the_outcome_of_its_delivery(
    outcome: str, customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A requested version of a table whose files no longer exist is missing, not rejected."""
    fake_loads(monkeypatch, rejected=[DAYS[1]], failure=outcome)
    failed = run(customer, instance, DAYS[1])
    assert not failed.success
    reason, others = failure(failed)
    assert reason.startswith(f"2024-01-02: {outcome} [")
    assert others == "nothing was loaded"
    (observed,) = instance.fetch_observations(dg.AssetKey("dim_customer"), limit=9).records
    assert observed.asset_observation is not None
    assert observed.asset_observation.metadata["outcome"].value == outcome


def test_missing_deliveries_are_not_counted_as_loaded(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two missing ones, only that which was requested fails the run."""
    fake_loads(monkeypatch, rejected=DAYS[:2], failure="missing")
    reason, others = failure(run(customer, instance, DAYS[1], EVERYTHING))
    assert reason.startswith("2024-01-02: missing [")
    assert others == "all other deliveries (1) were loaded"


def test_a_delivery_that_another_program_loaded_is_no_longer_failed(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A higher revision is rejected, and accepted by `scd load --allow`."""
    reject = fake_loads(monkeypatch)
    assert run(customer, instance, EVERYTHING).success
    reject([DAYS[0]])
    assert not run(customer, instance, EVERYTHING).success
    assert statuses(instance, "dim_customer") == ["FAILED", "MATERIALIZED", "MATERIALIZED"]
    reject([])
    assert run(customer, instance, EVERYTHING).success
    assert statuses(instance, "dim_customer") == ["MATERIALIZED"] * 3


def test_a_file_replaced_during_the_load_is_recorded_with_its_old_version(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sensor then requests it again. A file that is removed meanwhile fails no run."""
    fake_loads(monkeypatch)
    load = assets.load_table

    def slow_load(*args: Any, **kwargs: Any) -> Any:
        (tmp_path / f"customers_{DAYS[0]}.csv").write_text("id,city\n1,Salzburg\n", encoding="utf-8")
        (tmp_path / f"customers_{DAYS[1]}.csv").unlink()
        return load(*args, **kwargs)

    monkeypatch.setattr(assets, "load_table", slow_load)
    assert run(customer, instance, EVERYTHING).success
    metadata = events(instance, "dim_customer_changes")
    assert [metadata[day]["file"].partition(", ")[2] for day in DAYS] == ["15 bytes"] * 3


def test_a_failed_run_still_runs_the_checks(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster skips the step of the checks, and would show all checks as failed."""
    fake_loads(monkeypatch, rejected=[DAYS[1]])
    assert not run(customer, instance, EVERYTHING).success
    names = check_names(customer)
    keys = [dg.AssetCheckKey(dg.AssetKey("dim_customer"), name) for name in names]
    executions = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert {key.name: record.status.value for key, record in executions.items()} == {
        **dict.fromkeys(names, "SUCCEEDED"),
        "one_current_version": "FAILED",
    }


@pytest.mark.parametrize(
    ("rejected", "rows", "expected"),
    [(DAYS, {"overwrite": 1}, [None]), (DAYS, {"overwrite": 0}, []), (DAYS[:1], {"overwrite": 0}, [DAYS[1], DAYS[2]])],
)
def test_a_failed_run_that_changed_the_table_has_an_event(
    customer: Dimension,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    rejected: list[str],
    rows: dict[str, int],
    expected: list[str | None],
) -> None:
    """Facts follow the events of a table, and the declaration alone may have changed it."""
    fake_loads(monkeypatch, rejected=rejected)
    load = assets.load_table
    monkeypatch.setattr(assets, "load_table", lambda *args, **options: replace(load(*args, **options), row_counts=rows))
    assert not run(customer, instance, EVERYTHING).success
    assert list(events(instance, "dim_customer")) == expected


def test_a_load_that_an_error_ends_still_runs_the_checks(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check may name the cause, such as the commit of another program."""
    fake_loads(monkeypatch)

    def fail(*_: Any, **__: Any) -> Any:
        raise ConflictError("WRITE_CONFLICT", "table dim_customer", number=7, previous=6)

    monkeypatch.setattr(assets, "load_table", fail)
    assert not run(customer, instance, EVERYTHING).success
    keys = [dg.AssetCheckKey(dg.AssetKey("dim_customer"), name) for name in check_names(customer)]
    executions = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert {record.status.value for record in executions.values()} == {"SUCCEEDED", "FAILED"}


def test_an_unchanged_file_is_recorded_with_the_version_that_the_sensor_saw(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Otherwise the sensor would request it for ever: its time of change differs, and its content does not."""
    fake_loads(monkeypatch)
    assert run(customer, instance, EVERYTHING).success
    (tmp_path / f"customers_{DAYS[0]}.csv").chmod(0o600)
    versions = {d.name: file_version(d) for d in discover_files(customer)}
    recorded = events(instance, "dim_customer_changes")[DAYS[0]]["file"]
    assert recorded != versions[DAYS[0]]
    config = load_run_config("dim_customer", {DAYS[0]: versions[DAYS[0]]})
    assert run(customer, instance, EVERYTHING, run_config=config).success
    assert events(instance, "dim_customer_changes")[DAYS[0]]["file"] == versions[DAYS[0]]


def test_the_seconds_of_a_load_are_those_of_its_step(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the start of Spark and the metadata, not only those between the plan and the commit of the table."""
    fake_loads(monkeypatch)
    monkeypatch.setattr(NoWarehouse, "open", slowed(NoWarehouse.open))
    monkeypatch.setattr(load_metadata, "examples", slowed(load_metadata.examples))
    assert run(customer, instance, DAYS[0]).success
    for asset in ASSETS:
        assert events(instance, asset)[DAYS[0]]["load/seconds"] >= 0.4


def slowed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes 0.2 seconds longer."""

    def slow(*args: Any, **options: Any) -> Any:
        time.sleep(0.2)
        return function(*args, **options)

    return slow


def test_a_requested_file_that_does_not_exist_is_a_warning(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run may see another folder than the sensor."""
    fake_loads(monkeypatch)
    done = run(customer, instance, EVERYTHING, run_config=load_run_config("dim_customer", {"2023-12-31": "15 bytes"}))
    messages = [entry.user_message for entry in instance.all_logs(done.run_id)]
    assert any("1 requested file not at the paths of the sources: 2023-12-31" in message for message in messages)


def test_the_headline_lists_the_first_reasons(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The metadata of the failure has all reasons."""
    names = [f"2024-02-0{day}" for day in range(1, 8)]
    for name in names:
        (tmp_path / f"customers_{name}.csv").touch()
    fake_loads(monkeypatch, rejected=[*names, *DAYS])
    failed = run(customer, instance, EVERYTHING)
    lines = failure(failed)
    assert lines[5:] == ["and 5 more deliveries, see the metadata of this event", "nothing was loaded"]
    data = failed.failure_data_for_node("load_dim_customer")
    assert data is not None and data.user_failure_data is not None
    assert len(data.user_failure_data.metadata) == 10


@pytest.mark.parametrize("select", [[], ["dim_customer"], ["dim_customer_audit", "dim_customer_changes"]])
@pytest.mark.parametrize("requested", [[EVERYTHING], [DAYS[0], DAYS[2]], [DAYS[0], EVERYTHING]])
def test_counts_of_the_delivery_and_of_the_load_have_different_keys(
    select: list[str],
    requested: list[str],
    customer: Dimension,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each asset, whichever assets were selected. The latest event of an asset has the plots."""
    fake_loads(monkeypatch)
    assert run(customer, instance, *requested, select=select).success
    for asset, own, load_key in (
        ("dim_customer_changes", "rows_read", "load/rows_read"),
        ("dim_customer", "versions_opened", "load/rows_opened"),
        ("dim_customer_audit", "transitions_insert", "load/transitions_insert"),
    ):
        metadata = events(instance, asset)
        assert set(metadata) == {*DAYS, *({EVERYTHING} & set(requested))}
        assert [(metadata[day][own], metadata[day][load_key], metadata[day]["dagster/row_count"]) for day in DAYS] == [
            (1, 3, 9)
        ] * 3
        if EVERYTHING in requested:
            assert metadata[EVERYTHING][load_key] == 3
            assert not [name for name in metadata[EVERYTHING] if name == own]
    files = {
        day: metadata["file"] for day, metadata in events(instance, "dim_customer_changes").items() if day != EVERYTHING
    }
    assert {day: metadata.partition(", ")[2] for day, metadata in files.items()} == dict.fromkeys(DAYS, "15 bytes")
    plots = [
        key for key, metadata in events(instance, "dim_customer").items() if "load/versions_per_delivery" in metadata
    ]
    assert plots == [[*events(instance, "dim_customer")][-1]]
