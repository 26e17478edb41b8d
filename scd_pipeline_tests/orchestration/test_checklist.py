"""The checklist in Dagster: the asset check, and what a code location defines."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from scd_pipeline.components import ScdDimension, WarehouseResource, alert_sensor, assets, checklist, maintenance
from scd_pipeline.components.code_location import describe_code_location, main
from scd_pipeline.components.dagster_internals import load_repository
from scd_pipeline.components.partitions import partitions_name
from scd_pipeline.declaration import Declarations, Dimension, Fact, Feed, Source
from scd_pipeline.definitions import defs
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.operations.checklist.evaluate import evaluate
from scd_pipeline.operations.checklist.state import CodeLocation, DimensionState
from scd_pipeline_tests.orchestration.fake_loads import NoWarehouse, fake_loads
from scd_pipeline_tests.semantics.specification import requirement

CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="c_{date}.csv"))
SALE = Fact("fct_sale", {"sale": "int"}, "at", {"customer": CUSTOMER}, Source("till", feed=Feed("s_{date}.csv")))
CHECK = dg.AssetCheckKey(dg.AssetKey("dim_customer"), "checklist_is_complete")


def location(dimension: Dimension = CUSTOMER, **options: Any) -> dg.Definitions:
    """A code location with the checklist of a dimension, whose warehouse is not opened."""
    definitions = ScdDimension(checklist=True, **options).definitions(Declarations((dimension,), (SALE,)))
    resources = {"warehouse": NoWarehouse(path="/nowhere")}
    shared = dg.Definitions(resources=resources, sensors=[alert_sensor()], executor=dg.in_process_executor)
    return dg.Definitions.merge(definitions, shared)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[DimensionState]:
    """The states that the check has collected; the tables of the dimension do not exist."""
    states: list[DimensionState] = []

    def collect_state(_: Any, dimension: Dimension, *, docs_url: str, **collected: Any) -> DimensionState:
        states.append(DimensionState(dimension, **collected))
        return states[-1]

    monkeypatch.setattr(checklist, "collect_state", collect_state)
    return states


def test_the_check_warns_of_the_lines_that_fail(
    collected: list[DimensionState], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the evidence of each item, those that fail first."""
    fake_loads(monkeypatch)
    job = location().get_repository_def().get_job("check_dim_customer_job")
    result = job.execute_in_process(instance=dg.DagsterInstance.ephemeral())
    (evaluation,) = [each for each in result.get_asset_check_evaluations() if each.check_name == CHECK.name]
    (state,) = collected
    failed = [result.item for result in evaluate(state) if result.failed]
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert evaluation.metadata["failed"].value == ", ".join(failed)
    records = evaluation.metadata["items"].records  # type: ignore[union-attr]
    passed = [result.item for result in evaluate(state) if not result.failed]
    assert [record.data["item"] for record in records] == [*failed, *passed]
    assert list(state.facts) == ["fct_sale"]
    assert state.code_location == "the job was executed without a code location"


@pytest.mark.slow
def test_a_run_evaluates_its_own_code_location(
    collected: list[DimensionState], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Dagster's processes load it by its module."""
    fake_loads(monkeypatch)
    monkeypatch.setattr(WarehouseResource, "open", lambda _: None)
    repository = ReconstructableRepository.for_module("scd_pipeline.definitions", "defs", None)
    with dg.instance_for_test() as instance:
        job = repository.get_reconstructable_job("check_dim_legislator_job")
        assert dg.execute_job(job, instance=instance).success
    (state,) = collected
    assert state.code_location == describe_code_location(defs.get_repository_def(), "this code location")
    assert list(state.facts) == ["fct_committee_seat"]


def test_the_check_is_an_option_of_the_component() -> None:
    keys = {key for check in location().asset_checks or () for key in check.check_keys}
    assert CHECK in keys
    without = ScdDimension().definitions(Declarations((CUSTOMER,)))
    assert not any(CHECK in check.check_keys for check in without.asset_checks or ())


def test_a_failed_load_leaves_the_checklist_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collected: list[DimensionState]
) -> None:
    """Its step runs the planned checks of the stored table only, as the checklist is none of them."""
    (tmp_path / "c_2024-01-01.csv").write_text("id,city\n1,Graz\n", encoding="utf-8")
    dimension = replace(CUSTOMER, sources=(Source("crm", snapshot=str(tmp_path / "c_{date}.csv")),))
    fake_loads(monkeypatch, rejected=["2024-01-01"])
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(partitions_name("dim_customer"), [EVERYTHING])
        result = dg.materialize(
            [assets.table_assets(dimension), checklist.checklist_check(dimension, [])],
            resources={"warehouse": NoWarehouse(path="/nowhere")},
            instance=instance,
            partition_key=EVERYTHING,
            raise_on_error=False,
        )
    assert not result.success
    assert result.get_asset_check_evaluations() == []


def test_a_code_location_is_described_by_what_its_schedules_run() -> None:
    described = describe_code_location(location(maintenance_cron="0 3 1 * *").get_repository_def(), "shop")
    schedules = {schedule.name: schedule for schedule in described.schedules}
    check, maintain = (schedules[f"{name}_dim_customer_schedule"] for name in ("check", "maintain"))
    assert (check.cron, check.gap_hours) == ("0 7 * * *", 24.0)
    assert set(check.ops) == {"check_dim_customer", "dim_customer_checklist_is_complete"}
    assert {"dim_customer:one_current_version", "dim_customer:checklist_is_complete"} <= set(check.checks)
    assert (maintain.gap_hours, maintain.ops, maintain.checks) == (31 * 24.0, ("maintain_dim_customer",), ())
    assert {"fct_sale_rekey", "alerts"} <= set(described.sensors)
    assert described.alert_sensors == ("alerts",)
    ops = ("load_dim_customer", "maintain_dim_customer", "check_dim_customer")
    assert {described.pools[op] for op in ops} == {"delta/dim_customer"}
    assert CodeLocation.from_json(described.to_json()) == described


@pytest.mark.parametrize(
    ("crons", "hours"),
    [("0 7 * * *", 24.0), ("0 7 * * 1-5", 72.0), ("0 */6 * * *", 6.0), (["0 7 * * *", "0 3 1 * *"], 24.0)],
)
def test_the_longest_gap_between_two_runs(crons: str | list[str], hours: float) -> None:
    @dg.job
    def nothing() -> None:
        pass

    schedule = dg.ScheduleDefinition(name="often", job=nothing, cron_schedule=crons)
    repository = dg.Definitions(jobs=[nothing], schedules=[schedule]).get_repository_def()
    (described,) = describe_code_location(repository, "x").schedules
    assert described.gap_hours == hours


def test_the_definitions_of_a_module_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["scd_pipeline.definitions"])
    described = CodeLocation.from_json(capsys.readouterr().out.strip().splitlines()[-1])
    assert (described.name, described.alert_sensors) == ("scd_pipeline.definitions", ("alerts",))
    with pytest.raises(Exception, match="no_such_module"):
        load_repository("no_such_module", Path.cwd())


@pytest.mark.slow
@requirement("F48")
def test_maintenance_waits_until_a_load_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both use the pool of the table, which has one slot in this instance."""
    order: list[str] = []
    monkeypatch.setattr(maintenance, "maintain", lambda *_, **__: order.append("maintenance") or ())
    repository = location().get_repository_def()
    (load,) = repository.get_job("dim_customer_job").graph.nodes
    settings = {"concurrency": {"pools": {"granularity": "op", "default_limit": 1}}}
    with dg.instance_for_test(overrides=settings) as instance:
        storage, pool = instance.event_log_storage, load.definition.pool
        storage.initialize_concurrency_limit_to_default(pool)
        assert storage.claim_concurrency_slot(pool, "load", load.name).is_claimed

        def end_load() -> None:
            order.append("load")
            storage.free_concurrency_slots_for_run("load")

        timer = threading.Timer(2, end_load)
        timer.start()
        assert repository.get_job("maintain_dim_customer_job").execute_in_process(instance=instance).success
        timer.join()
    assert order == ["load", "maintenance"]
