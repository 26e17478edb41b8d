"""The resources: their configuration by the environment, and that no run, log or snapshot contains a token."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value

from examples.congress import demo
from scd_pipeline.cli.context import CODE_LOCATION
from scd_pipeline.components import DeltaSparkResource, ScdDimension, WarehouseResource
from scd_pipeline.components.resources import _setting
from scd_pipeline.declaration import Declarations, Dimension, Source
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.errors import LoadError, ScdError, SetupError

TOKEN = "planted-2f6f9f"
REMOTE = f"sc://127.0.0.1:1/;token={TOKEN};x-key={TOKEN}"
CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="none/customers_{date}.csv"))


def test_the_environment_names_the_warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    resource = WarehouseResource.from_env(
        {"SCD_WAREHOUSE": "s3://bucket/x", "SCD_SCHEMA": "mart", "SCD_SCHEMA_KEYS": "k"}
    )
    assert (resource.path, resource.schema_name, resource.schemas) == ("s3://bucket/x", "mart", {"keys": "k"})
    assert WarehouseResource.from_env({"SCD_WAREHOUSE": "x"}).path == str(tmp_path / "x")
    assert WarehouseResource.from_env({}).path == str(tmp_path / "warehouse")
    assert WarehouseResource.from_env({}, path=tmp_path / "of_the_project").path == str(tmp_path / "of_the_project")


@pytest.mark.parametrize(
    ("resource", "description"),
    [
        (lambda: WarehouseResource.from_env(), "the Spark Connect server sc://127.0.0.1:1"),
        (lambda: WarehouseResource(path="/x"), "the Spark Connect server sc://127.0.0.1:1"),
        (lambda: WarehouseResource(path="/x", remote=""), "an embedded Spark session"),
        (lambda: WarehouseResource(path="/x", remote="sc://other:2"), "the Spark Connect server sc://other:2"),
        (lambda: WarehouseResource(path="/x", remote="background"), "the Spark Connect server in the background"),
        (
            lambda: WarehouseResource(path="/x", remote="background", spark_config={"spark.driver.memory": "4g"}),
            "an embedded Spark session",
        ),
    ],
)
def test_the_server_of_the_environment_is_used_unless_another_is_configured(
    resource: type[WarehouseResource], description: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCD_REMOTE", REMOTE)
    descriptions: list[str] = []

    @dg.op
    def note(warehouse: WarehouseResource) -> None:
        descriptions.append(warehouse.spark_description)

    @dg.job(resource_defs={"warehouse": resource()})
    def job() -> None:
        note()

    job.execute_in_process(instance=dg.DagsterInstance.ephemeral())
    assert descriptions == [description]


def test_a_spark_setting_may_be_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a key of an object store."""
    monkeypatch.setenv("STORE_KEY", TOKEN)
    resource = DeltaSparkResource(spark_config={"spark.hadoop.key": dg.EnvVar("STORE_KEY"), "spark.cores": 2})
    with resource.process_config_and_initialize_cm() as processed:
        settings = {name: _setting(value) for name, value in processed.spark_config.items()}
    assert settings == {"spark.hadoop.key": TOKEN, "spark.cores": "2"}
    monkeypatch.delenv("STORE_KEY")
    with pytest.raises(SetupError) as error:
        _setting({"env": "STORE_KEY"})
    assert (error.value.code, error.value.details) == ("ENVIRONMENT_VARIABLE_MISSING", {"variable": "STORE_KEY"})


@pytest.mark.parametrize("resource_type", [WarehouseResource, DeltaSparkResource])
def test_a_token_in_the_configuration_is_rejected_when_the_location_loads(
    resource_type: type[dg.ConfigurableResource[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster stores and shows the configuration. The name of a variable may be in it, and an address without token."""

    def location(remote: str) -> dg.Definitions:
        settings = {"path": "/x"} if resource_type is WarehouseResource else {}
        return dg.Definitions(resources={"spark": resource_type(remote=remote, **settings)})

    monkeypatch.setenv("SCD_REMOTE", REMOTE)
    for remote in (REMOTE, f"sc://h:1/;use_ssl=true;x-key={TOKEN}"):
        with pytest.raises(SetupError) as error:
            location(remote).get_repository_def()
        assert error.value.code == "SECRET_IN_RESOURCE"
        assert TOKEN not in str(error.value)
    for remote in (dg.EnvVar("SCD_REMOTE"), "sc://h:1/;use_ssl=true;user_id=ann", "sc://h:1", ""):
        location(remote).get_repository_def()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Dagster home in an environment with a token."""
    monkeypatch.setenv("SCD_REMOTE", REMOTE)
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_token_is_in_no_stored_run_log_or_snapshot(home: Path, tmp_path: Path) -> None:
    """Neither for runs of the UI, nor for those of the demo, nor in the snapshot of the code location."""
    resources = {"warehouse": WarehouseResource.from_env(), "other": WarehouseResource(path=str(tmp_path))}
    definitions = ScdDimension(overdue_after_hours=30).definitions(Declarations((CUSTOMER,)))
    defs = dg.Definitions.merge(definitions, dg.Definitions(resources=resources, executor=dg.in_process_executor))
    messages: list[str] = []
    with demo.dagster_instance(home) as instance:
        for job in ("dim_customer_job", "check_dim_customer_job", "scd_status_job", "maintain_dim_customer_job"):
            with pytest.raises((ScdError, LoadError)) as failed:
                demo.run_job(defs, job, str(tmp_path), messages.append, instance)
            messages.append(str(failed.value))
            key = EVERYTHING if job == "dim_customer_job" else None
            chosen = defs.resolve_job_def(job)
            chosen.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
        assert len(instance.get_runs()) == 8
    snapshot = serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    assert "SCD_REMOTE" in snapshot, "the name of the variable is shown"
    stored = [*messages, snapshot, *_texts(home)]
    assert any("sc://127.0.0.1:1" in text for text in stored), "the address without its token is shown"
    assert not [text for text in stored if TOKEN in text]


def _texts(folder: Path) -> Iterator[str]:
    """Yield all that Dagster stored: its files, and the values of its databases, uncompressed."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield file.read_bytes().decode("utf-8", "replace")
        with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(file)) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for value in (
                value for table in tables for row in database.execute(f'SELECT * FROM "{table}"') for value in row
            ):
                yield _text(value)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        with contextlib.suppress(zlib.error):
            return zlib.decompress(value).decode()
    return str(value)


@pytest.mark.parametrize("has_workspace", [True, False])
def test_runs_of_the_demo_belong_to_the_code_location(home: Path, tmp_path: Path, has_workspace: bool) -> None:
    """By the name under which `scd dev` serves it, so that its timeline contains them."""

    @dg.op
    def nothing(warehouse: WarehouseResource) -> None:
        assert warehouse.path == "/x"

    @dg.job
    def demo_job() -> None:
        nothing()

    name = CODE_LOCATION
    if has_workspace:
        name = "named"
        module = f"{{module_name: {CODE_LOCATION}, location_name: {name}}}"
        (tmp_path / "workspace.yaml").write_text(f"load_from: [{{python_module: {module}}}]\n", encoding="utf-8")
    defs = dg.Definitions(
        jobs=[demo_job], resources={"warehouse": WarehouseResource(path="/y")}, executor=dg.in_process_executor
    )
    with demo.dagster_instance(home) as instance:
        location = demo.location_of(tmp_path, CODE_LOCATION)
        demo.run_job(defs, "demo_job", "/x", lambda _: None, instance, location=location)
        of_location = dg.RunsFilter(tags={".dagster/repository": f"__repository__@{name}"})
        (run,) = instance.get_runs(of_location)
    assert run.is_success and run.job_name == "demo_job"


def test_a_workspace_without_the_package_has_no_such_location(tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").write_text("load_from: [{python_module: another}]\n", encoding="utf-8")
    assert demo.location_of(tmp_path, CODE_LOCATION) is None
