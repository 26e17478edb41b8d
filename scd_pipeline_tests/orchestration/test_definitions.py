"""The code location: it loads from a clone and from a bare package, and describes its assets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

import scd_pipeline
from scd_pipeline.components import WarehouseResource
from scd_pipeline.definitions import defs
from scd_pipeline.operations.dagster_names import pool_name
from scd_pipeline_tests.semantics.specification import requirement

LOG, TABLE, AUDIT = (dg.AssetKey(f"dim_legislator{suffix}") for suffix in ("_changes", "", "_audit"))
SEATS, SEATS_LOG = dg.AssetKey("fct_committee_seat"), dg.AssetKey("fct_committee_seat_changes")
STATUS = dg.AssetKey("scd_status")


@pytest.fixture(scope="module")
def specs() -> dict[dg.AssetKey, dg.AssetSpec]:
    """The assets of the example."""
    return {spec.key: spec for spec in defs.resolve_all_asset_specs()}


def test_the_location_loads() -> None:
    dg.Definitions.validate_loadable(defs)


def test_lineage_from_change_log_to_fact(specs: dict[dg.AssetKey, dg.AssetSpec]) -> None:
    assert specs.keys() == {LOG, TABLE, AUDIT, SEATS, SEATS_LOG, STATUS}
    edges = {key: {dep.asset_key for dep in spec.deps} for key, spec in specs.items()}
    assert edges == {
        LOG: set(),
        TABLE: {LOG},
        AUDIT: {TABLE},
        SEATS_LOG: set(),
        SEATS: {SEATS_LOG, TABLE},
        STATUS: {TABLE, SEATS},
    }
    for spec in (specs[LOG], specs[TABLE], specs[AUDIT]):
        assert spec.kinds == {"spark", "deltalake"}, "the names that have icons in the UI"
        assert spec.group_name == "congress"
        assert list(spec.owners) == ["team:demo"]
        assert str(spec.metadata["declaration"]).endswith("dim_legislator.yaml:2")


def test_columns_have_type_nullability_and_description(specs: dict[dg.AssetKey, dg.AssetSpec]) -> None:
    schema = specs[TABLE].metadata["dagster/column_schema"]
    columns = {column.name: column for column in schema.columns}
    assert columns["legislator_key"].type == "bigint"
    assert columns["legislator_key"].constraints.nullable is False
    assert columns["chamber"].description == (
        "sen: Senate, rep: House of Representatives. Type 2: a different value opens a version."
    )
    assert {"previous_url", "url_changed_at", "current_state_rank", "effective_to"} <= columns.keys()


@pytest.mark.parametrize("asset", [LOG, TABLE, AUDIT, SEATS, SEATS_LOG])
def test_every_column_is_described(asset: dg.AssetKey, specs: dict[dg.AssetKey, dg.AssetSpec]) -> None:
    columns = specs[asset].metadata["dagster/column_schema"].columns
    assert columns
    assert [column.name for column in columns if not column.description] == []


def test_columns_of_a_fact_are_described_by_their_roles(specs: dict[dg.AssetKey, dg.AssetSpec]) -> None:
    output = {column.name: column.description for column in specs[SEATS].metadata["dagster/column_schema"].columns}
    generated = {"change_reason", "change_source", "load_run_id", "last_updated"}
    assert {name: text for name, text in output.items() if name not in generated} == {
        "committee_seat_row": "Row key: permanent identifier of one row.",
        "committee": "Grain: identifies a row of the fact.",
        "bioguide": "Grain: identifies a row of the fact. Business key of dim_legislator, in the role legislator.",
        "seat_on": "Grain: identifies a row of the fact. Event time: business time of the event.",
        "legislator_key": "Surrogate key of the version of dim_legislator in force at `seat_on`, or -1 if none is.",
        **dict.fromkeys(("rank", "title", "side"), "Measure."),
    }


@requirement("F48", "F65")
def test_all_ops_of_a_table_share_its_pool() -> None:
    """Loads, checks and maintenance: one writer, and no VACUUM during a load."""
    for name in ("dim_legislator", "fct_committee_seat"):
        nodes = [n for job in ("", "check_", "maintain_") for n in defs.resolve_job_def(f"{job}{name}_job").graph.nodes]
        checklist = {f"{name}_checklist_is_complete"} if name.startswith("dim_") else set()
        assert {node.name for node in nodes} == {f"load_{name}", f"check_{name}", f"maintain_{name}", *checklist}
        assert {node.definition.pool for node in nodes} == {pool_name(name)} == {f"delta/{name}"}
        assert defs.resolve_job_def(f"{name}_job").executor_def.name == "in_process"


def test_only_alerts_and_partitions_are_on_by_default() -> None:
    running = {sensor.name for sensor in defs.sensors or () if sensor.default_status.value == "RUNNING"}
    assert running == {"alerts", "scd_partitions"}
    assert {schedule.default_status.value for schedule in defs.schedules or ()} == {"STOPPED"}  # type: ignore[union-attr]


def test_runs_from_the_ui_use_the_in_process_executor() -> None:
    assert defs.get_repository_def().get_job("__ASSET_JOB").executor_def.name == "in_process"


def test_the_warehouse_is_an_absolute_path() -> None:
    resource = (defs.resources or {})["warehouse"]
    assert isinstance(resource, WarehouseResource)
    assert Path(resource.path).is_absolute()


def run_python(program: str, folder: Path, **environ: str) -> str:
    """Return the output of a program that imports the package from `folder` only."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SCD_", "DAGSTER_"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.process
def test_the_location_loads_from_a_bare_package(tmp_path: Path) -> None:
    package = Path(scd_pipeline.__file__).parent
    shutil.copytree(package, tmp_path / "scd_pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import scd_pipeline.definitions as d\n"
        f"assert d.__file__.startswith({str(tmp_path)!r}), d.__file__\n"
        "d.defs.get_repository_def()\n"
        "print(sorted(key.to_user_string() for key in d.defs.resolve_all_asset_keys()))\n"
    )
    assert run_python(program, tmp_path) == "[]"
    declared = tmp_path / "declared"
    declared.mkdir()
    (declared / "dim_x.yaml").write_text(
        "dimension: dim_x\nbusiness_key: id\nsources: {s: {snapshot: 'x_{date}.csv'}}\nattributes: {a: 2}\n"
    )
    output = run_python(program, tmp_path, SCD_DECLARATIONS=str(declared))
    assert output == "['dim_x', 'dim_x_audit', 'dim_x_changes', 'scd_status']"


@pytest.mark.slow
def test_dagster_definitions_validate_passes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-m", "scd_pipeline.definitions"]
    environ = {**os.environ, "DAGSTER_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
