"""The checks whose results the step of a load records: rejected deliveries, and invariants of the changed entities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from scd_pipeline.components import ScdDimension, assets, checks, load_checks
from scd_pipeline.components.rule_texts import rule_texts
from scd_pipeline.declaration import Declarations, Dimension
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.invariants.check_descriptions import CHECK_DESCRIPTIONS
from scd_pipeline.operations.check import CheckResult, checks_of_loads
from scd_pipeline_tests.orchestration.fake_loads import DAYS, NoWarehouse, fake_loads, run

TABLE = dg.AssetKey("dim_customer")
REASON = "2024-01-02: rejected [BAD_ROWS]: 2 of 3 rows are bad; deliver it again"


def load(dimension: Dimension, instance: dg.DagsterInstance, *partitions: str) -> bool:
    """Load as a sensor or a schedule does, without the checks; return whether the run succeeded."""
    return run(dimension, instance, *partitions, with_checks=False).success


def execute_checks(dimension: Dimension, instance: dg.DagsterInstance, *names: str) -> None:
    """Execute checks without a load."""
    keys = [dg.AssetCheckKey(TABLE, name) for name in names]
    done = dg.materialize(
        [assets.table_assets(dimension), checks.table_checks(dimension)],
        resources={"warehouse": NoWarehouse(path="/nowhere")},
        instance=instance,
        selection=dg.AssetSelection.checks(*keys),
    )
    assert done.success


def evaluation(instance: dg.DagsterInstance, name: str) -> dg.AssetCheckEvaluation:
    """Return the last result of a check."""
    key = dg.AssetCheckKey(TABLE, name)
    record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert record.evaluation is not None
    return record.evaluation


def values(instance: dg.DagsterInstance, name: str) -> dict[str, Any]:
    """Return the metadata of the last result of a check."""
    return {key: value.value for key, value in evaluation(instance, name).metadata.items()}


@pytest.mark.parametrize("requested", [[EVERYTHING], [DAYS[1]], [DAYS[0], DAYS[2]]])
@pytest.mark.parametrize("with_checks", [False, True])
def test_a_rejected_delivery_fails_the_check_of_its_table_until_it_is_loaded(
    requested: list[str],
    with_checks: bool,
    customer: Dimension,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs of other deliveries do not change that."""
    reject = fake_loads(monkeypatch, rejected=[DAYS[1]])
    assert not run(customer, instance, *requested, with_checks=with_checks).success
    reject([])
    assert run(customer, instance, DAYS[0], with_checks=with_checks).success
    failed = evaluation(instance, "deliveries_accepted")
    assert (failed.passed, failed.description) == (False, REASON)
    assert failed.severity is dg.AssetCheckSeverity.ERROR
    (row,) = values(instance, "deliveries_accepted")["rejections"].records
    assert row.data == {
        "delivery": DAYS[1],
        "code": "BAD_ROWS",
        "problem": "2 of 3 rows are bad",
        "fix": "deliver it again",
    }
    assert run(customer, instance, EVERYTHING, with_checks=with_checks).success
    assert evaluation(instance, "deliveries_accepted").passed
    assert values(instance, "deliveries_accepted")["rejected_deliveries"] == 0


def test_a_run_that_loads_a_rejected_delivery_is_the_last_one_of_its_partition(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a partition shows the failure of the last run that was planned for it, even after a later event."""
    reject = fake_loads(monkeypatch, rejected=[DAYS[1]])
    assert not load(customer, instance, DAYS[1])
    reject([])
    loaded = run(customer, instance, EVERYTHING, with_checks=False)
    assert loaded.success
    for asset in ("dim_customer_changes", "dim_customer"):
        planned = dg.EventRecordsFilter(
            dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED, dg.AssetKey(asset), asset_partitions=[DAYS[1]]
        )
        assert [record.run_id for record in instance.event_log_storage.get_event_records(planned, limit=1)] == [
            loaded.run_id
        ]


def test_checks_that_loads_do_not_evaluate_name_their_job(customer: Dimension) -> None:
    descriptions = {spec.name: str(spec.description) for spec in checks.table_checks(customer).check_specs}
    job = "run the job check_dim_customer_job"
    named = {name for name, description in descriptions.items() if job in description}
    assert named == descriptions.keys() - {*checks_of_loads(customer), "deliveries_accepted"}
    assert "audit_rebuilds_dimension" in named


def test_a_rejected_delivery_that_is_removed_passes_the_check(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The check can be executed alone."""
    fake_loads(monkeypatch, rejected=[DAYS[1]])
    assert not load(customer, instance, EVERYTHING)
    execute_checks(customer, instance, "deliveries_accepted")
    assert evaluation(instance, "deliveries_accepted").description == REASON
    (tmp_path / f"customers_{DAYS[1]}.csv").unlink()
    execute_checks(customer, instance, "deliveries_accepted")
    assert evaluation(instance, "deliveries_accepted").passed


def test_a_load_records_the_invariants_that_it_has_verified(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rows that it changed, and with the last check of the whole table."""
    fake_loads(monkeypatch)
    assert load(customer, instance, DAYS[0])
    names = ["one_current_version", "windows_do_not_overlap", "windows_have_both_ends"]
    assert set(names) < set(checks_of_loads(customer))
    for name in checks_of_loads(customer):
        assert evaluation(instance, name).passed
        assert values(instance, name)["checked"] == "the entities of this load (1 changed row)"
        assert values(instance, name)["whole_table_checked"] == "not yet"
    execute_checks(customer, instance, *names)
    assert "checked" not in values(instance, names[0])
    for requested in ([DAYS[1]], [DAYS[2]]):
        assert load(customer, instance, *requested)
    assert isinstance(values(instance, names[0])["whole_table_checked"], float)
    assert values(instance, "windows_are_not_empty")["whole_table_checked"] == "not yet"


def test_a_violation_remains_until_the_whole_table_is_checked(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load verifies other entities."""
    name = "one_current_version"
    fake_loads(monkeypatch)
    monkeypatch.setattr(checks, "check_table", lambda *_: (CheckResult("dim_customer", name, 1, ("id=7",)),))
    assert load(customer, instance, DAYS[0])
    execute_checks(customer, instance, name)
    for day in DAYS[1:]:
        assert load(customer, instance, day)
        assert not evaluation(instance, name).passed
        assert values(instance, name)["violating_keys"] == "id=7"
        assert isinstance(values(instance, name)["whole_table_checked"], float)
    monkeypatch.setattr(checks, "check_table", lambda *_: (CheckResult("dim_customer", name, 0, ()),))
    execute_checks(customer, instance, name)
    assert evaluation(instance, name).passed


def test_a_result_contains_the_text_of_its_rules(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A link needs the address of the docs. An installation without the docs has the path of the rule."""
    fake_loads(monkeypatch)
    assert load(customer, instance, DAYS[0])
    for check in (check for check in CHECK_DESCRIPTIONS.values() if check.name in checks_of_loads(customer)):
        for rule in check.rules:
            assert values(instance, check.name)[f"rule {rule}"].startswith(f"**{rule}. ")
    rule = values(instance, "windows_do_not_overlap")["rule S2"]
    assert rule.startswith("**S2. Half-open windows**\n\nA version is in force from `effective_from`")
    assert "Example" not in rule
    assert rule_texts(tmp_path) == {}


@pytest.mark.parametrize("with_checks", [False, True])
@pytest.mark.parametrize("rejected", [[], [DAYS[0]]])
def test_a_result_links_to_its_rules_if_the_docs_have_an_address(
    with_checks: bool,
    rejected: list[str],
    customer: Dimension,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether the load, its step in place of the checks, or the checks themselves record it."""
    fake_loads(monkeypatch, rejected=rejected)
    location = ScdDimension(docs_url="https://docs").definitions(Declarations((customer,), ()))
    selection = dg.AssetSelection.assets("dim_customer")
    job = dg.define_asset_job("load", selection if with_checks else selection.without_checks())
    resources = {"warehouse": NoWarehouse(path="/nowhere")}
    location = dg.Definitions.merge(location, dg.Definitions(jobs=[job], resources=resources))
    load = location.resolve_job_def("load")
    done = load.execute_in_process(instance=instance, partition_key=DAYS[0], raise_on_error=False)
    assert done.success is not bool(rejected)
    assert values(instance, "one_current_version")["rule S3"] == "https://docs/semantics.md#s3"


def test_an_error_of_the_check_does_not_fail_the_load(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load has committed, or fails for another reason."""
    fake_loads(monkeypatch)

    def fail(*_: Any) -> Any:
        raise OSError("no such folder")

    monkeypatch.setattr(load_checks, "deliveries_result", fail)
    done = run(customer, instance, DAYS[0], with_checks=False)
    assert done.success
    warnings = [entry.user_message for entry in instance.all_logs(done.run_id)]
    assert "dim_customer: the checks did not run: no such folder" in warnings


def test_a_check_that_the_run_has_planned_is_not_recorded_by_the_load(
    customer: Dimension, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_loads(monkeypatch)
    recorded: list[dg.AssetCheckEvaluation] = []
    monkeypatch.setattr(load_checks, "report_check", lambda _, evaluation: recorded.append(evaluation))
    assert run(customer, instance, DAYS[0]).success
    assert recorded == []
    assert "checked" not in values(instance, "one_current_version")
