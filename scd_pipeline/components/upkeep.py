"""Upkeep of a declaration's tables: a job that compacts them, and never runs beside a load of the same table.

No postponed annotations here: Dagster reads those of an op's function as they stand.
"""

import time
from datetime import datetime, timezone

import dagster as dg
from pydantic import Field

from scd_pipeline.components.assets import plain, pool
from scd_pipeline.components.resources import WarehouseResource, told_as_failure
from scd_pipeline.declaration.tables import tables_of
from scd_pipeline.operations.maintenance import LEAST_HOURS, maintain


class UpkeepConfig(dg.Config):
    """What a run of the interface may say."""

    retention_hours: int | None = Field(
        default=None,
        description=f"How long files stay that no version needs, {LEAST_HOURS} or more; else as each table has it set.",
    )


def upkeep_job(name: str) -> dg.JobDefinition:
    """OPTIMIZE and VACUUM of all tables of a dimension or a fact, in the pool of its loads."""

    @dg.op(name=f"maintain_{plain(name)}", pool=pool(name), description=f"Compacts the tables of {name}.")
    def maintain_tables(context: dg.OpExecutionContext, config: UpkeepConfig, warehouse: WarehouseResource) -> None:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with told_as_failure():
            done = maintain(
                warehouse.open(),
                tables_of(name),
                now=now,
                retention_hours=config.retention_hours,
                run_id=context.run_id,
            )
        for table in done:
            told = {"files_before": table.files_before, "files_after": table.files_after, "bytes": table.bytes_after}
            context.log_event(dg.AssetObservation(asset_key=table.table, metadata=told))
            context.log.info(f"{table.table}: {table.files_before} files, then {table.files_after}")

    @dg.job(
        name=f"maintain_{plain(name)}_job",
        executor_def=dg.in_process_executor,
        description=f"OPTIMIZE and VACUUM of the tables of {name}; waits for its loads, and they for it.",
    )
    def job() -> None:
        maintain_tables()

    return job
