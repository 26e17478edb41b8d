"""Maintenance of the tables of a dimension or a fact: a job that never runs at the same time as a load of them.

No postponed annotations here: Dagster evaluates those of an op's function.
"""

import time
from datetime import datetime, timezone

import dagster as dg
from pydantic import Field

from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.names import dagster_name, pool_name
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration.names import counted
from scd_pipeline.declaration.tables import table_names
from scd_pipeline.operations.maintenance import LEAST_HOURS, maintain


class MaintenanceConfig(dg.Config):
    """Run configuration of maintenance."""

    retention_hours: int | None = Field(
        default=None,
        description=f"Hours for which VACUUM retains files that no longer belong to a table, at least {LEAST_HOURS}. "
        "Default: the retention that each table has set.",
    )


def maintenance_job(table: str) -> dg.JobDefinition:
    """Return the job that runs OPTIMIZE and VACUUM on all tables of a dimension or a fact, in the pool of its loads."""
    name = dagster_name(table)
    description = f"Runs OPTIMIZE and VACUUM on {', '.join(table_names(table))}."

    @dg.op(name=f"maintain_{name}", pool=pool_name(table), description=description)
    def maintain_tables(
        context: dg.OpExecutionContext, config: MaintenanceConfig, warehouse: WarehouseResource
    ) -> None:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with as_dagster_failure():
            results = maintain(
                warehouse.open(),
                table_names(table),
                now=now,
                retention_hours=config.retention_hours,
                run_id=context.run_id,
            )
        for done in results:
            sizes = {"files_before": done.files_before, "files_after": done.files_after, "bytes": done.bytes_after}
            context.log_event(dg.AssetObservation(asset_key=done.table, metadata=sizes))
            context.log.info(f"{done.table}: compacted {counted(done.files_before, 'file')} into {done.files_after}")

    @dg.job(
        name=f"maintain_{name}_job",
        executor_def=dg.in_process_executor,
        description=f"{description} Loads and maintenance of these tables wait for each other.",
    )
    def job() -> None:
        maintain_tables()

    return job
