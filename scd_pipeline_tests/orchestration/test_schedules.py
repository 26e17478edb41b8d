"""Ticks of the schedules of loads: each requests a run that loads everything, and the run loads new deliveries."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.partitions import partitions_name
from scd_pipeline.declaration import parse_declarations, read_declarations
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.orchestration.code_locations import definitions

DECLARATIONS = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
---
fact: fct_sale
grain: sale
event_time: sold_at
dimensions: {customer: {dimension: dim_customer, key: id}}
sources: {till: {feed: "sales_{date}.csv"}}
"""
FIVE = dt.datetime(2024, 1, 2, 5, tzinfo=ZoneInfo("UTC"))


def tick(defs: dg.Definitions, name: str, instance: dg.DagsterInstance, at: dt.datetime = FIVE) -> dg.RunRequest:
    """Evaluate a schedule as Dagster's daemon does, and return the run that it requests."""
    repository = defs.get_repository_def()
    context = dg.build_schedule_context(
        instance=instance, scheduled_execution_time=at, repository_def=repository, resources={}
    )
    (request,) = repository.get_schedule_def(name).evaluate_tick(context).run_requests or ()
    return request


def location(component: ScdDimension) -> dg.Definitions:
    """Return the code location of a component whose warehouse is never opened."""
    shared = dg.Definitions(resources={"warehouse": WarehouseResource(path="/nowhere")})
    return dg.Definitions.merge(component.definitions(parse_declarations(DECLARATIONS)), shared)


def test_a_tick_of_each_schedule_of_a_load_requests_the_partition_of_everything() -> None:
    """The partition is added before: Dagster would not start a run of one that does not exist."""
    component = ScdDimension(load_cron="0 5 * * *", fact_cron="30 5 * * 1-5", timezone="Europe/Vienna")
    defs = location(component)
    repository = defs.get_repository_def()
    for table, cron in (("dim_customer", "0 5 * * *"), ("fct_sale", "30 5 * * 1-5")):
        with dg.instance_for_test() as instance:
            schedule = repository.get_schedule_def(f"{table}_schedule")
            assert (schedule.cron_schedule, schedule.execution_timezone) == (cron, "Europe/Vienna")
            request = tick(defs, f"{table}_schedule", instance)
            assert (request.partition_key, request.run_config) == (EVERYTHING, {})
            assert instance.get_dynamic_partitions(partitions_name(table)) == [EVERYTHING]
        job = repository.get_job(schedule.job_name)
        loaded = {key.to_user_string() for key in job.asset_layer.selected_asset_keys}
        assert loaded == {name for name in (table, f"{table}_changes", f"{table}_audit") if name != "fct_sale_audit"}


@pytest.mark.slow(15)
def test_the_run_of_a_tick_loads_new_deliveries(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    """Each day another file has arrived; the run of a tick without one changes nothing."""
    (tmp_path / "declarations.yaml").write_text(DECLARATIONS.split("---")[0], encoding="utf-8")
    defs = definitions(spark, str(warehouse), read_declarations(tmp_path / "declarations.yaml"))

    def run_of_tick(day: int, instance: dg.DagsterInstance) -> set[str]:
        request = tick(defs, "dim_customer_schedule", instance, FIVE + dt.timedelta(days=day))
        job = defs.resolve_job_def(defs.get_repository_def().get_schedule_def("dim_customer_schedule").job_name)
        result = job.execute_in_process(
            instance=instance,
            partition_key=request.partition_key,
            run_config=request.run_config,
            tags=request.tags,
        )
        assert result.success
        return instance.get_materialized_partitions(dg.AssetKey("dim_customer")) - {EVERYTHING}

    with dg.instance_for_test() as instance:
        (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n", encoding="utf-8")
        assert run_of_tick(0, instance) == {"2024-01-01"}
        (tmp_path / "customers_2024-01-02.csv").write_text("id,city\n1,Linz\n", encoding="utf-8")
        assert run_of_tick(1, instance) == {"2024-01-01", "2024-01-02"}
        version = Warehouse(spark, warehouse).table("dim_customer").last_commit().table_version
        assert run_of_tick(2, instance) == {"2024-01-01", "2024-01-02"}
    opened = Warehouse(spark, warehouse)
    assert opened.table("dim_customer").last_commit().table_version == version
    customer = read_declarations(tmp_path / "declarations.yaml").dimensions[0]
    rows = queries.history(opened, customer).orderBy("version").collect()
    assert [row["city"] for row in rows] == ["Graz", "Linz"]
