"""The command `scd checklist`, and the same checklist in Dagster, on the tables of a loaded example."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from examples.demonstration import Demonstration, Options
from examples.federal import demo
from examples.federal.world import Grants
from scd_pipeline import Pipeline
from scd_pipeline.cli import app as cli
from scd_pipeline.cli.checklist import describe_code_location, workspace_module
from scd_pipeline.cli.context import CODE_LOCATION, Settings
from scd_pipeline.components import ScdDimension, WarehouseResource, alert_sensor
from scd_pipeline.components import checklist as checklist_check
from scd_pipeline.declaration import load_declarations
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import Environment
from scd_pipeline.operations.check import check_dimension
from scd_pipeline_tests.semantics.specification import requirement

Checklist = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def federal(remote: str, tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    """The warehouse of federal grants, of which some weeks are loaded."""
    options = Options(rows=1, seed=1, faults=frozenset(), folder=tmp_path_factory.mktemp("federal"), remote=remote)
    demonstration = Demonstration(options, lambda _: None)
    batches = (batch for batch in Grants(recipients=20).batches() if batch.day.month in (10, 2, 3))
    _, declared = demonstration.prepare(demo.DECLARATIONS, batches, files=1)
    with Pipeline(demonstration.warehouse, remote=remote) as pipeline:
        for table in (*declared.dimensions, *declared.facts):
            pipeline.load(table)
    return demonstration


@pytest.fixture
def checklist(
    federal: Demonstration, remote: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Checklist:
    """Runs the command on the warehouse; returns its exit code and its rows."""
    if not remote:
        pytest.skip("each command would stop the session of the tests")
    monkeypatch.setenv("SCD_WAREHOUSE", str(federal.warehouse))
    monkeypatch.setenv("SCD_REMOTE", remote)
    monkeypatch.setenv("SCD_ALERT_WEBHOOK", "https://example.com/alerts")

    def run(declarations: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        capsys.readouterr()
        code = cli.main(["checklist", *arguments, "--declarations", str(declarations), "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def failing(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Dimension and name of each item that fails."""
    return {(row["table"], row["item"]) for row in rows if row["result"] == "failed"}


@pytest.mark.slow
@requirement("F72", "F75", "F76")
def test_a_complete_example_passes_and_a_copy_fails_where_it_is_broken(
    federal: Demonstration, checklist: Checklist, tmp_path: Path
) -> None:
    """Without the business sign-off and the product card, and with another number of sunset programs."""
    code, rows = checklist(federal.declarations)
    assert (code, failing(rows)) == (0, set())
    assert {row["table"] for row in rows} == {"dim_grant_recipient", "dim_program"}
    evidence = {(row["table"], row["item"]): row["evidence"] for row in rows}
    assert evidence["dim_program", "audit_is_retained"].endswith("10 years; table property delta.appendOnly: true")
    assert evidence["dim_program", "late_facts_are_rekeyed"] == "sensor fct_award_follows; docs/how-to/facts.md"
    broken = tmp_path / "declarations"
    shutil.copytree(federal.declarations, broken)
    program = broken / "dim_program.yaml"
    text = program.read_text(encoding="utf-8")
    for line in (
        "sign_offs:\n  business: {by: Grants office, date: 2023-09-01}\n",
        "product_card: https://example.com/grants/dim_program\n",
    ):
        assert text.count(line) == 1
        text = text.replace(line, "")
    program.write_text(text, encoding="utf-8")
    expected = {("dim_program", "business_has_signed_off"), ("dim_program", "product_card_is_linked")}
    assert checklist(broken)[0] == 4
    assert failing(checklist(broken)[1]) == expected
    assert failing(checklist(broken, "dim_grant_recipient")[1]) == set()
    code, rows = checklist(federal.declarations, "dim_program", "--code-location", "no_such_module")
    assert code == 4
    assert any("No module named 'no_such_module'" in row["evidence"] for row in rows)


@pytest.mark.slow
@requirement("F75")
def test_the_history_is_compared_with_expected_values(
    federal: Demonstration, spark: SparkSession, tmp_path: Path
) -> None:
    """R0000001 was debarred on 2024-03-01; other values, and expressions that cannot be evaluated, are violations."""
    store = Warehouse(spark, federal.warehouse)
    recipient = next(d for d in load_declarations(federal.declarations).dimensions if d.name == "dim_grant_recipient")
    assert [result.passed for result in check_dimension(store, recipient, ["expected_values_are_reproduced"])] == [True]
    text = (federal.declarations / "dim_grant_recipient.yaml").read_text(encoding="utf-8")
    text = text.replace("value: debarred", "value: suspended").replace("max(status) FILTER", "max(state) FILTER", 1)
    (tmp_path / "dim_grant_recipient.yaml").write_text(text, encoding="utf-8")
    (broken,) = load_declarations(tmp_path).dimensions
    (result,) = check_dimension(store, broken, ["expected_values_are_reproduced"])
    first, second = result.keys
    assert first.startswith("active_on_february_29: cannot be evaluated ([UNRESOLVED_COLUMN")
    assert second == "debarred_on_march_1: debarred as of 2024-03-01 00:00:00; expected suspended"


@pytest.mark.slow
def test_dagster_has_the_same_checklist(federal: Demonstration, remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCD_ALERT_WEBHOOK", "https://example.com/alerts")
    declared = load_declarations(federal.declarations)
    resources = {"warehouse": WarehouseResource(path=str(federal.warehouse), remote=remote)}
    shared = dg.Definitions(resources=resources, sensors=[alert_sensor()], executor=dg.in_process_executor)
    definitions = dg.Definitions.merge(ScdDimension(checklist=True).definitions(declared), shared)
    repository = definitions.get_repository_def()
    monkeypatch.setattr(checklist_check, "repository_of_run", lambda _: repository)
    job = repository.get_job("check_dim_program_job")
    result = job.execute_in_process(instance=dg.DagsterInstance.ephemeral())
    evaluations = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert evaluations["checklist_is_complete"].passed, evaluations["checklist_is_complete"].metadata
    assert evaluations["expected_values_are_reproduced"].passed


def test_the_code_location_is_the_first_module_of_the_workspace(tmp_path: Path) -> None:
    assert workspace_module(tmp_path) == ""
    file = tmp_path / "workspace.yaml"
    for text, module in {
        "load_from: [{python_file: a.py}, {python_module: shop}]": "shop",
        "load_from: [{python_module: {module_name: shop.definitions, working_directory: .}}]": "shop.definitions",
        "load_from: [{python_file: a.py}]": "",
        "": "",
    }.items():
        file.write_text(text, encoding="utf-8")
        assert workspace_module(tmp_path) == module


@pytest.mark.parametrize("as_argument", [True, False])
def test_the_code_location_has_the_declarations_of_the_command(as_argument: bool) -> None:
    """Those that the argument names, or else those of the settings."""
    folder = str(demo.DECLARATIONS)
    settings = Settings.resolve({} if as_argument else {"declarations": folder}, Environment.from_env())
    location, problem = describe_code_location(settings, folder if as_argument else None, CODE_LOCATION)
    assert location is not None, problem
    assert "check_dim_program_schedule" in {schedule.name for schedule in location.schedules}


def test_a_code_location_that_cannot_be_loaded_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text("raise ValueError('no shop today')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(demo.DECLARATIONS.parents[2]))
    monkeypatch.chdir(tmp_path)
    settings = Settings.resolve({}, Environment.from_env())
    location, problem = describe_code_location(settings, None, "shop")
    assert location is None
    assert problem == "shop: ValueError: no shop today"
