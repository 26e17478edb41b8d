"""The command `scd checklist`, and the same checklist in Dagster, on the tables of both generated examples."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from examples.arrivals import Batch
from examples.casino import demo as casino_demo
from examples.casino.generator import Casino
from examples.demonstration import Demonstration, Options
from examples.federal import demo
from examples.federal.generator import Grants
from scd_pipeline import Pipeline
from scd_pipeline.cli import app as cli
from scd_pipeline.cli.checklist import describe_code_location, workspace_module
from scd_pipeline.cli.context import CODE_LOCATION, Settings
from scd_pipeline.components import ScdDimension, WarehouseResource, alert_sensor
from scd_pipeline.components import checklist as checklist_check
from scd_pipeline.declaration import read_declarations
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import Environment
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.checklist.items import SECTIONS
from scd_pipeline_tests.semantics.specification import requirement

Checklist = Callable[..., tuple[int, list[dict[str, Any]]]]

ROOT = Path(__file__).parents[2]
ITEMS = [item.name for items in SECTIONS.values() for item in items]


@dataclass(frozen=True)
class Broken:
    """A copy of an example in which declarations, tables, documentation, environment or definitions are broken.

    Attributes:
        edits: The texts of the declarations that are replaced, by dimension.
        statements: What another program does to the tables; `{dim_x}` is the table of that name.
        runbooks: The page of the runbooks.
        pages: The other pages of the documentation.
        environment: The variables of the command.
        definitions: The module of the Dagster definitions; empty for that of this package.
        items: The dimensions of which each item fails.
    """

    edits: Mapping[str, Sequence[tuple[str, str]]]
    statements: Sequence[str]
    runbooks: str
    pages: Sequence[str]
    environment: Mapping[str, str]
    definitions: str
    items: Mapping[str, Sequence[str]]

    def copy_declarations(self, original: Path, folder: Path) -> Path:
        """Copy the declarations, and break them."""
        shutil.copytree(original, folder)
        for dimension, edits in self.edits.items():
            file = folder / f"{dimension}.yaml"
            text = file.read_text(encoding="utf-8")
            for old, new in edits:
                assert text.count(old) == 1, (dimension, old)
                text = text.replace(old, new)
            file.write_text(text, encoding="utf-8")
        return folder

    def copy_tables(self, spark: SparkSession, original: Path, folder: Path) -> Path:
        """Copy the tables, and damage them."""
        shutil.copytree(original, folder)
        tables = {path.name: f"delta.`{path}`" for path in folder.iterdir()}
        for statement in self.statements:
            spark.sql(statement.format(**tables))
        return folder

    def write_pages(self, folder: Path) -> Path:
        """Write the pages of the documentation."""
        for page, text in {"runbooks.md": self.runbooks, **dict.fromkeys(self.pages, "")}.items():
            file = folder / "how-to" / page
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return folder

    @property
    def failing(self) -> set[tuple[str, str]]:
        """Dimension and name of each item that fails."""
        return {(dimension, item) for item, dimensions in self.items.items() for dimension in dimensions}


CASINO = ("dim_account", "dim_compliance_threshold", "dim_country", "dim_machine", "dim_player")
FEDERAL = ("dim_grant_recipient", "dim_program")
BROKEN = {
    "casino": Broken(
        edits={
            "dim_machine": [
                ("sign_offs:\n  business: {by: Head of slots, date: 2026-11-02}\n", ""),
                (", description: Game on the machine", ""),
            ],
            "dim_compliance_threshold": [
                ("  compliance: {by: Compliance officer, date: 2026-11-09}\n", ""),
            ],
            "dim_player": [
                ("column_names: {row_hash: _hash}\n", "column_names: {row_hash: other_hash}\nz_order: always\n"),
                ("product_card: https://example.com/casino/dim_player\n", "open_end: null\n"),
            ],
            "dim_account": [("\"operation = 'delete'\"", '"false"'), ("owner: team:demo\n", "")],
            "dim_country": [
                ("audit_retention_years: 7\n", "table_properties: {delta.parquet.vorder.enabled: true}\n"),
            ],
        },
        statements=[
            "ALTER TABLE {dim_machine_audit} UNSET TBLPROPERTIES ('delta.appendOnly')",
            "UPDATE {dim_player} SET tier = 'Gold' WHERE player_id = 'P0000001'",
            "ALTER TABLE {dim_country_changes} SET TBLPROPERTIES "
            "('delta.deletedFileRetentionDuration' = 'interval 1 hours')",
        ],
        runbooks="## Repair duplicates\n",
        pages=["facts.md"],
        environment={"SCD_ALERT_WEBHOOK": "https://example.com/alerts"},
        definitions="",
        items={
            "attributes_are_documented": ["dim_machine"],
            "business_has_signed_off": ["dim_machine"],
            "compliance_has_signed_off": ["dim_compliance_threshold"],
            "changes_are_detected": ["dim_player"],
            "rows_are_clustered": ["dim_player"],
            "product_card_is_linked": ["dim_player"],
            "open_end_is_a_sentinel": ["dim_player"],
            "one_writer": ["dim_player"],
            "deletes_are_handled": ["dim_account"],
            "owner_is_declared": ["dim_account"],
            "audit_is_retained": ["dim_country", "dim_machine"],
            "v_order_is_set": ["dim_country"],
            "vacuum_is_scheduled": ["dim_country"],
            "rebuild_has_a_runbook": CASINO,
        },
    ),
    "federal": Broken(
        edits={
            "dim_program": [
                ("sign_offs:\n  business: {by: Grants office, date: 2023-09-01}\n", ""),
                ("product_card: https://example.com/grants/dim_program\n", ""),
            ],
        },
        statements=[
            "CREATE OR REPLACE TABLE {dim_program} USING delta PARTITIONED BY (current_flag) AS "
            "SELECT CAST(program_key AS STRING) AS program_key, * EXCEPT (program_key, version) FROM {dim_program}",
            "ALTER TABLE {dim_grant_recipient_audit} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            "ALTER TABLE {dim_grant_recipient_audit} DROP COLUMN actor",
        ],
        runbooks="## Backfill\n",
        pages=[],
        environment={},
        definitions="""\
import os

import dagster as dg

from scd_pipeline.components import ScdDimension, WarehouseResource, alert_sensor
from scd_pipeline.declaration import Declarations, read_declarations

declared = read_declarations(os.environ["SCD_DECLARATIONS"])
programs = tuple(dimension for dimension in declared.dimensions if dimension.name == "dim_program")
component = ScdDimension(maintenance_cron="0 3 1 * *", check_cron="0 7 * * 1")
defs = dg.Definitions.merge(
    component.definitions(Declarations(programs)),
    dg.Definitions(sensors=[alert_sensor()], resources={"warehouse": WarehouseResource(path="/x")}),
)
""",
        items={
            "business_has_signed_off": ["dim_program"],
            "product_card_is_linked": ["dim_program"],
            "surrogate_keys_are_deterministic": ["dim_program"],
            "version_columns_exist": ["dim_program"],
            "partitions_fit": ["dim_program"],
            "one_writer": FEDERAL,
            "audit_has_actor_and_reason": ["dim_grant_recipient"],
            "loads_are_retried": ["dim_grant_recipient"],
            "vacuum_is_scheduled": ["dim_grant_recipient"],
            "optimize_is_scheduled": FEDERAL,
            "duplicates_are_checked": FEDERAL,
            "ends_are_checked": FEDERAL,
            "overlaps_are_checked": FEDERAL,
            "history_is_compared": FEDERAL,
            "late_facts_are_rekeyed": FEDERAL,
            "alerts_are_sent": FEDERAL,
            "repair_has_a_runbook": FEDERAL,
        },
    ),
}
EXAMPLES: dict[str, tuple[Path, Callable[[], Iterable[Batch]]]] = {
    "casino": (casino_demo.DECLARATIONS, Casino(players=20, days=4).batches),
    "federal": (
        demo.DECLARATIONS,
        lambda: (batch for batch in Grants(recipients=20).batches() if batch.day.month in (10, 2, 3)),
    ),
}


@pytest.fixture(scope="module")
def load_example(remote: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Demonstration]:
    """Load the first days of the casino, or some weeks of the federal grants, once."""

    @functools.cache
    def load(name: str) -> Demonstration:
        options = Options(rows=1, seed=1, faults=frozenset(), folder=tmp_path_factory.mktemp(name), remote=remote)
        demonstration = Demonstration(options, lambda _: None)
        declarations, batches = EXAMPLES[name]
        _, declared = demonstration.prepare(declarations, batches(), files=1)
        with Pipeline(demonstration.warehouse, remote=remote) as pipeline:
            for table in declared.tables:
                pipeline.load(table)
        return demonstration

    return load


@pytest.fixture
def federal(load_example: Callable[[str], Demonstration]) -> Demonstration:
    """The warehouse of federal grants."""
    return load_example("federal")


@pytest.fixture
def checklist(remote: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Checklist:
    """Runs the command on a warehouse; returns its exit code and its rows."""
    if not remote:
        pytest.skip("each command would stop the session of the tests")
    monkeypatch.setenv("SCD_REMOTE", remote)

    def run(
        warehouse: Path, declarations: Path, *arguments: str, **environment: str
    ) -> tuple[int, list[dict[str, Any]]]:
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as variables:
            for name, value in {"SCD_WAREHOUSE": str(warehouse), **environment}.items():
                variables.setenv(name, value)
            code = cli.main(["checklist", *arguments, "--declarations", str(declarations), "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def failing(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Dimension and name of each item that fails."""
    return {(row["table"], row["item"]) for row in rows if row["result"] == "failed"}


@pytest.mark.slow(20, together="checklist")
@requirement("F72", "F75", "F76")
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_demo_passes_every_item(
    name: str, load_example: Callable[[str], Demonstration], checklist: Checklist
) -> None:
    example = load_example(name)
    code, rows = checklist(example.warehouse, example.declarations, SCD_ALERT_WEBHOOK="https://example.com/alerts")
    assert failing(rows) == set()
    assert code == 0
    assert {row["table"] for row in rows} == set({"casino": CASINO, "federal": FEDERAL}[name])
    assert len(rows) == len(ITEMS) * len({row["table"] for row in rows})
    assert all(row["evidence"] for row in rows)
    if name == "federal":
        evidence = {(row["table"], row["item"]): row["evidence"] for row in rows}
        assert evidence["dim_program", "audit_is_retained"].endswith("10 years; table property delta.appendOnly: true")
        assert evidence["dim_program", "late_facts_are_rekeyed"] == "sensor fct_award_rekey; docs/how-to/facts.md"


@pytest.mark.slow(20, together="checklist")
@requirement("F73", "F74", "F76")
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_broken_copy_of_a_demo_fails_exactly_the_broken_items(
    name: str,
    load_example: Callable[[str], Demonstration],
    checklist: Checklist,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Declarations are edited, tables damaged, pages removed, and schedules and variables missing, all at once."""
    example, broken = load_example(name), BROKEN[name]
    arguments: list[str] = []
    if broken.definitions:
        (tmp_path / "grants.py").write_text(broken.definitions, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        arguments = ["--code-location", "grants"]
    code, rows = checklist(
        broken.copy_tables(spark, example.warehouse, tmp_path / "warehouse"),
        broken.copy_declarations(example.declarations, tmp_path / "declarations"),
        *arguments,
        SCD_DOCS_URL=str(broken.write_pages(tmp_path / "docs")),
        **broken.environment,
    )
    assert failing(rows) == broken.failing
    assert code == 4


def test_the_broken_copies_break_every_item() -> None:
    assert {item for broken in BROKEN.values() for item in broken.items} == set(ITEMS)


@pytest.mark.slow(20, together="checklist")
def test_the_definitions_are_evidence(federal: Demonstration, checklist: Checklist) -> None:
    """Those of a module that cannot be loaded are not."""
    arguments = ("dim_program", "--code-location", "no_such_module")
    code, rows = checklist(federal.warehouse, federal.declarations, *arguments)
    assert code == 4
    assert {row["table"] for row in rows} == {"dim_program"}
    assert any("No module named 'no_such_module'" in row["evidence"] for row in rows)


@pytest.mark.slow(20, together="checklist")
@requirement("F75")
def test_the_history_is_compared_with_expected_values(
    federal: Demonstration, spark: SparkSession, tmp_path: Path
) -> None:
    """R0000001 was debarred on 2024-03-01; other values, and expressions that cannot be evaluated, are violations."""
    store = Warehouse(spark, federal.warehouse)
    recipient = next(d for d in read_declarations(federal.declarations).dimensions if d.name == "dim_grant_recipient")
    assert [result.passed for result in check_table(store, recipient, ["expected_values_are_reproduced"])] == [True]
    text = (federal.declarations / "dim_grant_recipient.yaml").read_text(encoding="utf-8")
    text = text.replace("value: debarred", "value: suspended").replace("max(status) FILTER", "max(state) FILTER", 1)
    (tmp_path / "dim_grant_recipient.yaml").write_text(text, encoding="utf-8")
    (broken,) = read_declarations(tmp_path).dimensions
    (result,) = check_table(store, broken, ["expected_values_are_reproduced"])
    first, second = result.keys
    assert first.startswith("active_on_february_29: cannot be evaluated ([UNRESOLVED_COLUMN")
    assert second == "debarred_on_march_1: debarred as of 2024-03-01 00:00:00; expected suspended"


@pytest.mark.slow(20, together="checklist")
def test_dagster_has_the_same_checklist(federal: Demonstration, remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCD_ALERT_WEBHOOK", "https://example.com/alerts")
    declared = read_declarations(federal.declarations)
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


def test_a_fact_has_no_checklist(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["checklist", "fct_award", "--declarations", str(demo.DECLARATIONS)]) == 2
    assert "[ONE_DIMENSION_EXPECTED] fct_award: the argument names fct_award" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("as_argument", [True, False])
def test_the_code_location_has_the_declarations_of_the_command(as_argument: bool) -> None:
    """Those that the argument names, or else those of the settings."""
    folder = str(demo.DECLARATIONS)
    settings = Settings.resolve({} if as_argument else {"declarations": folder}, Environment.from_env())
    location = describe_code_location(settings, folder if as_argument else None, CODE_LOCATION)
    assert not isinstance(location, str), location
    assert "check_dim_program_schedule" in {schedule.name for schedule in location.schedules}


@pytest.mark.slow
@pytest.mark.process
def test_a_code_location_that_cannot_be_loaded_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text("raise ValueError('no shop today')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(demo.DECLARATIONS.parents[2]))
    monkeypatch.chdir(tmp_path)
    settings = Settings.resolve({}, Environment.from_env())
    assert describe_code_location(settings, None, "shop") == "shop: ValueError: no shop today"
