"""Maintenance of the tables of a dimension or a fact: a job in the pool of their loads.

How often a table is compacted depends on how it is written: loads replace rows of the table itself, which leaves small
files and deletion vectors behind. They only append to the change log and the audit, and mostly to a history table.

No postponed annotations here: Dagster evaluates those of an op's function.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from pydantic import Field

from scd_pipeline.components.dagster_internals import finished_backfills
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import DeclaredTable, Dimension, Fact, TimedTable
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.table_properties import LOG_RETENTION, MIN_HOURS
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.operations.dagster_names import dagster_name, maintenance_job_name, maintenance_op_name, pool_name
from scd_pipeline.operations.maintenance import MaintenanceResult, maintain
from scd_pipeline.queries import create_views
from scd_pipeline.texts import pluralize

_LAST_BACKFILLS = 100
"""The number of backfills of the instance that one tick reads."""


class MaintenanceConfig(dg.Config):
    """Run configuration of maintenance."""

    retention_hours: int | None = Field(
        default=None,
        description=f"Hours for which VACUUM retains files that no longer belong to a table, at least {MIN_HOURS} "
        f"and at most those of its `{LOG_RETENTION}`. Default: the retention that each table has set.",
    )
    compacted: list[str] | None = Field(
        default=None,
        description="Tables for OPTIMIZE and VACUUM; only the last commits of the others are repeated before they "
        "expire. Default: all tables.",
    )


def maintenance_job(table: DeclaredTable, facts: Sequence[Fact] = ()) -> dg.JobDefinition:
    """Return the job that runs OPTIMIZE and VACUUM on all tables of a dimension or a fact, in the pool of its loads.

    Args:
        facts: The facts whose views name versions of these tables.
    """
    dimension = as_dimension(table)
    name = maintenance_op_name(dimension.name)
    description = f"Runs OPTIMIZE and VACUUM on {', '.join(dimension.table_names)}."
    # An event of another table would add an asset to the catalog that no definition has.
    assets = {dimension.name, dimension.name + LOG_SUFFIX, dimension.name + AUDIT_SUFFIX}

    @dg.op(name=name, pool=pool_name(dimension.name), description=description)
    def maintain_tables(
        context: dg.OpExecutionContext, config: MaintenanceConfig, warehouse: WarehouseResource
    ) -> None:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with as_dagster_failure():
            opened = warehouse.open()
            results = maintain(
                opened,
                dimension.table_names,
                now=now,
                retention_hours=config.retention_hours,
                run_id=context.run_id,
                tables_to_compact=config.compacted,
                dimension=table if isinstance(table, Dimension) else None,  # rows of a fact are not arranged
            )
            # The views name versions of a history table. Other sessions cannot read a version a week after it was
            # written, unless it is the newest one.
            create_views(opened, [dimension.name], facts, on_failure=context.log.warning)
        for done in results:
            if config.compacted is None or done.table in config.compacted:
                _record(context, done, done.table if done.table in assets else "")

    @dg.job(
        name=maintenance_job_name(dimension.name),
        executor_def=dg.in_process_executor,
        description=f"{description} Loads and maintenance of these tables wait for each other.",
    )
    def job() -> None:
        maintain_tables()

    return job


def timed_table_maintenance_job(table: TimedTable) -> dg.JobDefinition:
    """Return the job that runs OPTIMIZE and VACUUM on the stored rows of a timed table, in the pool of its asset."""
    description = f"Runs OPTIMIZE and VACUUM on {table.present_table}."

    @dg.op(name=maintenance_op_name(table.name), pool=pool_name(table.name), description=description)
    def maintain_stored_rows(context: dg.OpExecutionContext, warehouse: WarehouseResource) -> None:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with as_dagster_failure():
            results = maintain(warehouse.open(), [table.present_table], now=now, run_id=context.run_id)
        for done in results:
            _record(context, done, table.name)

    @dg.job(name=maintenance_job_name(table.name), executor_def=dg.in_process_executor, description=description)
    def job() -> None:
        maintain_stored_rows()

    return job


def _record(context: dg.OpExecutionContext, done: MaintenanceResult, asset: str) -> None:
    """Record the maintenance of a table, as an observation of its asset if it has one."""
    sizes = {"files_before": done.files_before, "files_after": done.files_after, "bytes": done.bytes_after}
    if asset:
        context.log_event(dg.AssetObservation(asset_key=asset, metadata=sizes))
    context.log.info(f"{done.table}: compacted {pluralize(done.files_before, 'file')} into {done.files_after}")


def maintenance_schedules(
    dimension: Dimension, job: dg.JobDefinition, *, cron: str, log_cron: str, timezone: str
) -> list[dg.ScheduleDefinition]:
    """Return the schedules by which the table itself, and the tables that loads mostly append to, are compacted.

    Args:
        dimension: The dimension, or that of the same shape as the fact.
        cron: The cron expression for the table itself.
        log_cron: The cron expression for the others.
    """
    table, *logs = dimension.table_names
    schedules = {"": (cron, [table]), "_logs": (log_cron, logs)}
    return [
        dg.ScheduleDefinition(
            name=f"{maintenance_op_name(table)}{suffix}_schedule",
            job=job,
            cron_schedule=schedule,
            execution_timezone=timezone,
            run_config=maintenance_run_config(table, compacted),
            description=f"Runs OPTIMIZE and VACUUM on {', '.join(compacted)}.",
        )
        for suffix, (schedule, compacted) in schedules.items()
    ]


def backfill_sensor(dimension: Dimension) -> dg.SensorDefinition:
    """Return the sensor that runs the maintenance of a table once after each backfill, which replaces many rows.

    Backfills that ended before the first tick are ignored. The sensor names the job: Dagster copies a sensor that
    refers to a job with resources, and each copy prints a warning of a beta parameter, which is not set.
    """
    table = dimension.name
    targets = {f"{dagster_name(table)}_job", *dimension.table_names}

    @dg.sensor(
        name=f"{maintenance_op_name(table)}_after_backfill",
        job_name=maintenance_job_name(table),
        minimum_interval_seconds=60,
        description=f"Runs OPTIMIZE and VACUUM on {table} after a backfill has loaded it.",
    )
    def compact_after_backfill(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        backfills = finished_backfills(context.instance, limit=_LAST_BACKFILLS)
        last_end = max((backfill.ended_at for backfill in backfills), default=0.0)
        before = float(context.cursor) if context.cursor else last_end
        new = [each for each in backfills if each.ended_at > before and each.targets & targets]
        cursor = repr(max(before, last_end))
        if not new:
            return dg.SensorResult(skip_reason=f"no backfill of {table} has ended", cursor=cursor)
        key = ",".join(sorted(backfill.id for backfill in new))
        request = dg.RunRequest(key, run_config=maintenance_run_config(table, [table]))
        return dg.SensorResult(run_requests=[request], cursor=cursor)

    return compact_after_backfill


def maintenance_run_config(table: str, compacted: Sequence[str]) -> dict[str, Any]:
    """Return the run configuration of a maintenance that compacts some of the tables."""
    return {"ops": {maintenance_op_name(table): {"config": {"compacted": list(compacted)}}}}
