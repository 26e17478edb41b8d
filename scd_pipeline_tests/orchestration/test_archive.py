"""The job that archives by the declared age, for dimensions that declare one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.archive import archive_job
from scd_pipeline.declaration import Declarations
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, snapshot

ARCHIVED = replace(CUSTOMER, name="dim_archived", surrogate_key="archived_key", archive_after_years=1)


def test_only_a_dimension_with_an_archive_has_the_job_and_its_schedule() -> None:
    definitions = ScdDimension(archive_cron="0 1 * * *").definitions(Declarations((CUSTOMER, ARCHIVED)))
    jobs = {job.name for job in definitions.jobs or () if job.name.startswith("archive_")}
    assert jobs == {"archive_dim_archived_job"}
    schedules = [each for each in definitions.schedules or () if each.name.startswith("archive_")]
    (schedule,) = (each for each in schedules if isinstance(each, dg.ScheduleDefinition))
    assert (schedule.name, schedule.cron_schedule) == ("archive_dim_archived_schedule", "0 1 * * *")
    assert schedule.job_name == "archive_dim_archived_job"


@pytest.mark.slow(30)
@requirement("H36")
@pytest.mark.rule("S42")
def test_the_job_moves_versions_over_the_declared_age(spark: SparkSession, remote: str, tmp_path: Path) -> None:
    """It moves versions that ended before another time if its run configuration has one."""
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, ARCHIVED, [snapshot(1, {"a": "Rome"}), feed("one", ("a", 2, "Oslo"), ("a", 4, "Kyiv"))])
    resources = {"warehouse": WarehouseResource(path=opened.path, remote=remote)}
    march = {"closed_before": "2024-03-01", "by": "ann", "reason": "age"}
    for config, archived in ((march, {"Rome"}), ({}, {"Oslo", "Rome"})):
        run_config = {"ops": {"archive_dim_archived": {"config": config}}}
        assert archive_job(ARCHIVED).execute_in_process(run_config=run_config, resources=resources).success
        rows = opened.table("dim_archived_archive").read().select("city").collect()
        assert {row["city"] for row in rows} == archived
    archiving = opened.table("dim_archived").last_commit().archiving
    assert archiving is not None
    assert (archiving.by, archiving.reason) == ("dagster", "declared age")
    assert datetime.fromisoformat(archiving.closed_before) < datetime.now(timezone.utc)
