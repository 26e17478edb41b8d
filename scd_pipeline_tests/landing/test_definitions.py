"""S38: the assets, checks, jobs, schedules and sensors of a landing table in Dagster are those of a fact's table."""

from __future__ import annotations

import dagster as dg
import pytest

from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.declaration import parse_declarations
from scd_pipeline_tests.semantics.specification import rule

DECLARED = parse_declarations(
    """
landing_table: raw_days
disposition: merge
merge_key: {day: date}
columns: {value: string}
sources:
  api: {snapshot: "days_{date}.csv"}
""".lstrip()
)
TABLE, LOG = dg.AssetKey("raw_days"), dg.AssetKey("raw_days_changes")


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    resources = dg.Definitions(resources={"warehouse": WarehouseResource(path="/nowhere")})
    return dg.Definitions.merge(ScdDimension().definitions(DECLARED), resources)


@rule("S38")
def test_a_landing_table_has_the_assets_of_its_tables(definitions: dg.Definitions) -> None:
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    assert specs.keys() == {TABLE, LOG, dg.AssetKey("scd_status")}, "it has no audit"
    assert specs[TABLE].group_name == "landing_tables"
    assert specs[TABLE].partitions_def is not None
    columns = {column.name: column.description for column in specs[TABLE].metadata["dagster/column_schema"].columns}
    assert list(columns) == [
        "day",
        "value",
        "scd_row_hash",
        "scd_row_number",
        "raw_days_row",
        "change_reason",
        "change_source",
        "load_run_id",
        "last_updated",
    ]
    assert columns["scd_row_number"] == "Number of the row among equal rows of its delivery, from 1."


@rule("S38")
def test_a_landing_table_is_loaded_checked_and_maintained_by_jobs(definitions: dg.Definitions) -> None:
    repository = definitions.get_repository_def()
    assert {"raw_days_job", "check_raw_days_job"} <= {job.name for job in repository.get_all_jobs()}
    assert {"raw_days_arrivals"} <= {sensor.name for sensor in repository.sensor_defs}
    assert "raw_days_schedule" in {schedule.name for schedule in repository.schedule_defs}
    names = {key.name for key in repository.asset_graph.get_check_keys_for_assets({TABLE})}
    assert "surrogate_keys_are_unique" in names
    assert "audit_rebuilds_dimension" not in names
