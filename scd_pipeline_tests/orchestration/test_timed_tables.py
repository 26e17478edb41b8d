"""The asset of a timed table on real tables: its rows, its check, its sensor and statements of run configurations."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from scd_pipeline import Base, Dimension, Pipeline, Source, TimedTable, read_declarations
from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.timed_tables import NEXT_STATEMENT, timed_table_asset, timed_table_sensor
from scd_pipeline.declaration import Declarations
from scd_pipeline_tests.docs.blocks import ROOT
from scd_pipeline_tests.orchestration.code_locations import definitions, warehouse_resource
from scd_pipeline_tests.semantics.specification import requirement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = """UPDATE doctors SET number = 12 WHERE number = 2;
-- time=2014-09-01
DELETE FROM doctors WHERE first_name = 'Colin';
-- time=2999-01-01
DELETE FROM doctors;
"""
DOCTORS = dg.AssetKey("doctors")


@pytest.fixture
def doctors(tmp_path: Path) -> TimedTable:
    """Three doctors, and a log with a statement of the future."""
    folder = tmp_path / "doctors"
    folder.mkdir()
    (folder / "doctors.csv").write_text("number,first_name\n2,Patrick\n6,Colin\n11,Matt\n", encoding="utf-8")
    (folder / ".updates").write_text(LOG, encoding="utf-8")
    return TimedTable("doctors", Base(str(folder), {"number": "int", "first_name": "string"}, "csv"))


class Location:
    """A code location with the timed table, on the session of the tests."""

    def __init__(self, spark: SparkSession, warehouse: Path, table: TimedTable) -> None:
        self.instance = dg.DagsterInstance.ephemeral()
        self.defs = definitions(spark, str(warehouse), Declarations((), (), (table,)))

    def run(self, job: str, **config: str) -> dg.ExecuteInProcessResult:
        run_config = {"ops": {"doctors": {"config": config}}} if config else None
        resolved = self.defs.resolve_job_def(job)
        return resolved.execute_in_process(run_config=run_config, instance=self.instance, raise_on_error=False)

    def store(self, **config: str) -> dict[str, Any]:
        """Materialize the asset, and return its metadata."""
        result = self.run("doctors_job", **config)
        assert result.success
        (event,) = result.asset_materializations_for_node("doctors")
        return {name: value.value for name, value in event.metadata.items()}

    def check(self) -> tuple[bool, str]:
        """Return whether the check passes, and its description."""
        (evaluation,) = self.run("check_doctors_job").get_asset_check_evaluations()
        return evaluation.passed, evaluation.description or ""


def numbers(rows: DataFrame) -> list[int]:
    return sorted(row["number"] for row in rows.collect())


@pytest.mark.slow(8)
@requirement("V24")
def test_the_stored_rows_equal_a_read_until_another_program_changes_them(
    spark: SparkSession, warehouse: Path, doctors: TimedTable
) -> None:
    location, pipeline = Location(spark, warehouse, doctors), Pipeline(warehouse, spark=spark)
    stored = pipeline.warehouse.table("doctors_present")
    assert location.store() == {
        "dagster/row_count": 2,
        "delta_version": 1,
        "statements_applied": 2,
        "last_statement": "statement 2, at 2014-09-01",
        NEXT_STATEMENT: 32472144000000,
    }
    assert numbers(stored.read()) == numbers(pipeline.read(doctors)) == [11, 12]
    assert location.run("maintain_doctors_job").success
    assert location.check() == (True, "")
    spark.sql(f"UPDATE {stored.identifier} SET number = 13 WHERE number = 12").collect()
    passed, description = location.check()
    assert not passed
    assert description.startswith("doctors_present lacks 1 row of a read at ")


@pytest.mark.slow
@requirement("V24")
def test_rows_are_stored_again_and_remain_readable_while_the_log_is_invalid(
    spark: SparkSession, warehouse: Path, doctors: TimedTable
) -> None:
    location, pipeline = Location(spark, warehouse, doctors), Pipeline(warehouse, spark=spark)
    assert location.check() == (True, "No rows are stored yet.")
    location.store()
    spark.sql(f"DELETE FROM {pipeline.warehouse.table('doctors_present').identifier}").collect()
    location.store()
    assert location.check() == (True, "")
    (Path(doctors.base.path) / ".updates").write_text("DROP TABLE doctors", encoding="utf-8")
    query = "SELECT number FROM doctors_present"
    assert numbers(pipeline.sql(query, timed_tables=[doctors])) == [11, 12]
    passed, description = location.check()
    assert not passed
    assert "[STATEMENT_KIND]" in description


@requirement("V24")
def test_a_run_appends_the_statement_of_its_configuration(
    spark: SparkSession, warehouse: Path, doctors: TimedTable
) -> None:
    location = Location(spark, warehouse, doctors)
    statement = "DELETE FROM doctors WHERE number = 11"
    metadata = location.store(statement=statement, at="2020-01-01", by="Ada", reason="retired")
    assert (metadata["dagster/row_count"], metadata["last_statement"]) == (1, "statement 4, at 2020-01-01")
    log = Path(doctors.base.path) / ".updates"
    assert log.read_text(encoding="utf-8").endswith(f"-- 2020-01-01, by Ada: retired\n{statement}\n;\n")
    before = log.read_text(encoding="utf-8")
    for config in ({"statement": "DROP TABLE doctors", "by": "Ada"}, {"statement": statement}):
        assert not location.run("doctors_job", **config).success
    assert log.read_text(encoding="utf-8") == before


class Ticks:
    """The sensor of a timed table, with a simulated clock."""

    def __init__(self, table: TimedTable, warehouse: Path) -> None:
        self.now, self.cursor, self.instance = 1_000_000_000.0, None, dg.DagsterInstance.ephemeral()
        self.warehouse = WarehouseResource(path=str(warehouse))
        self.run_key = ""
        self.sensor = timed_table_sensor(table, dg.define_asset_job("doctors_job"), clock=lambda: self.now)

    def __call__(self) -> int:
        """Return the number of requested runs."""
        self.now += 30
        resources = {"warehouse": self.warehouse}
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, resources=resources) as context:
            result = self.sensor(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor  # type: ignore[assignment]
        for request in result.run_requests or ():
            self.run_key = request.run_key or ""
        return len(result.run_requests or ())

    def finish_run(self, *, fails: bool) -> None:
        """Record the last requested run, which ends now."""

        @dg.op
        def store_rows() -> None:
            if fails:
                raise dg.Failure("the server is unavailable")

        @dg.job
        def doctors_job() -> None:
            store_rows()

        tags = {"dagster/run_key": self.run_key}
        doctors_job.execute_in_process(instance=self.instance, tags=tags, raise_on_error=False)
        self.now = time.time()


@requirement("V24")
def test_a_change_of_log_or_base_starts_a_run(warehouse: Path, doctors: TimedTable) -> None:
    tick, folder = Ticks(doctors, warehouse), Path(doctors.base.path)
    assert [tick(), tick(), tick()] == [1, 0, 0]
    (folder / ".updates").write_text(LOG.replace("2999", "2040"), encoding="utf-8")
    assert [tick(), tick()] == [1, 0]
    (folder / "more.csv").write_text("number,first_name\n13,Jodie\n", encoding="utf-8")
    assert [tick(), tick()] == [1, 0]
    (folder / "more.csv").unlink()
    assert [tick(), tick()] == [1, 0]


def test_the_time_of_a_statement_starts_a_run(warehouse: Path, doctors: TimedTable) -> None:
    tick = Ticks(doctors, warehouse)
    assert [tick(), tick()] == [1, 0]
    next_statement = {NEXT_STATEMENT: int((tick.now + 45) * 1000)}
    tick.instance.report_runless_asset_event(dg.AssetMaterialization(DOCTORS, metadata=next_statement))
    assert [tick(), tick(), tick()] == [0, 1, 0]


def test_a_failed_run_is_requested_again_after_some_minutes(warehouse: Path, doctors: TimedTable) -> None:
    tick = Ticks(doctors, warehouse)
    next_statement = {NEXT_STATEMENT: int((tick.now + 45) * 1000)}
    tick.instance.report_runless_asset_event(dg.AssetMaterialization(DOCTORS, metadata=next_statement))
    assert [tick(), tick()] == [1, 1]
    tick.finish_run(fails=True)
    assert tick() == 0
    tick.now += 300
    assert [tick(), tick()] == [1, 0]
    tick.finish_run(fails=True)
    tick.now += 360
    assert tick() == 0, "the wait grows"
    tick.now += 240
    assert tick() == 1
    tick.finish_run(fails=False)
    tick.now += 10_000
    assert tick() == 0


@pytest.mark.slow(30)
def test_a_run_stores_the_rows_before_it_loads_their_history(
    spark: SparkSession, warehouse: Path, doctors: TimedTable
) -> None:
    """The statement that the run appends is in the history."""
    (Path(doctors.base.path) / ".updates").write_text(LOG.partition("-- time=2999")[0], encoding="utf-8")
    doctors = replace(doctors, business_key="number")
    history = Dimension("dim_doctor", {"number": "int"}, {"first_name": 2}, Source("doctors", timed_table=doctors))
    assets = [table_assets(history), timed_table_asset(doctors)]
    deps = {spec.key.to_user_string(): DOCTORS in {dep.asset_key for dep in spec.deps} for spec in assets[0].specs}
    assert deps == {"dim_doctor_changes": True, "dim_doctor": True, "dim_doctor_audit": True}
    statement = {"statement": "DELETE FROM doctors WHERE number = 11", "at": "2020-01-01", "by": "Ada"}
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            assets,
            resources={"warehouse": warehouse_resource(spark, str(warehouse))},
            instance=instance,
            run_config={"ops": {"doctors": {"config": statement}}},
        )
    assert result.success
    assert numbers(Pipeline(warehouse, spark=spark).current(history)) == [12]


def test_an_append_to_a_log_in_a_table_starts_a_run(spark: SparkSession, warehouse: Path, doctors: TimedTable) -> None:
    table = TimedTable("doctors", doctors.base, log="table")
    tick, pipeline = Ticks(table, warehouse), Pipeline(warehouse, spark=spark)
    assert [tick(), tick()] == [1, 0]
    pipeline.append_to_log(table, "DELETE FROM doctors", author="Ada")
    assert [tick(), tick()] == [1, 0]


def test_the_example_defines_its_asset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    declared = read_declarations(ROOT / "examples" / "doctors")
    defs = dg.Definitions.merge(
        ScdDimension().definitions(declared),
        dg.Definitions(resources={"warehouse": WarehouseResource(path="warehouse")}),
    )
    dg.Definitions.validate_loadable(defs)
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    spec = specs[DOCTORS]
    assert (spec.group_name, spec.kinds) == ("timed_tables", {"spark", "deltalake"})
    assert spec.metadata["dagster/table_name"] == "doctors_present"
    assert {job.name for job in defs.resolve_all_job_defs()} >= {
        "doctors_job",
        "check_doctors_job",
        "maintain_doctors_job",
    }
    assert {schedule.name for schedule in defs.schedules or ()} >= {
        "check_doctors_schedule",
        "maintain_doctors_schedule",
    }
    assert "doctors_refresh" in {sensor.name for sensor in defs.sensors or ()}
