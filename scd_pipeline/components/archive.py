"""Archive of a dimension: a job in the pool of its loads, for a dimension that declares one.

No postponed annotations here: Dagster evaluates those of an op's function.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timezone

import dagster as dg
from pydantic import Field

from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.operations.archive import archive, archive_time
from scd_pipeline.operations.dagster_names import archive_job_name, archive_op_name, pool_name
from scd_pipeline.queries import create_views


class ArchiveConfig(dg.Config):
    """Run configuration of an archive run."""

    closed_before: str | None = Field(
        default=None,
        description="Time before which the moved versions ended. Default: `archive_after_years` of the declaration "
        "ago.",
    )
    by: str = Field(default="dagster", description="Person or program that archives, for the metadata of the commit.")
    reason: str = Field(default="declared age", description="Reason, for the metadata of the commit.")


def archive_job(dimension: Dimension, facts: Sequence[Fact] = ()) -> dg.JobDefinition:
    """Return the job that moves old closed versions of a dimension to its archive, in the pool of its loads.

    Args:
        facts: The facts whose views name versions of these tables.
    """
    name = archive_op_name(dimension.name)
    description = f"Moves closed versions of {dimension.name} to its archive after the declared number of years."

    @dg.op(name=name, pool=pool_name(dimension.name), description=description)
    def archive_versions(context: dg.OpExecutionContext, config: ArchiveConfig, warehouse: WarehouseResource) -> None:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with as_dagster_failure():
            opened = warehouse.open()
            result = archive(
                opened,
                dimension,
                closed_before=archive_time(dimension, config.closed_before, now=now),
                by=config.by,
                reason=config.reason,
                run_id=context.run_id,
            )
            if result.commit is not None:
                create_views(opened, [dimension.name], facts, on_failure=context.log.warning)
        context.log.info(str(result))

    @dg.job(
        name=archive_job_name(dimension.name),
        executor_def=dg.in_process_executor,
        description=f"{description} Loads and archive runs of its tables wait for each other.",
    )
    def job() -> None:
        archive_versions()

    return job
