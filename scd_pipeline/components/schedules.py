"""Schedules that load all deliveries."""

from __future__ import annotations

from typing import Any

import dagster as dg

from scd_pipeline.components.partitions import partitions_name
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.operations.dagster_names import dagster_name


def load_schedule(dimension: Dimension, job: Any, cron: str, timezone: str) -> dg.ScheduleDefinition:
    """Return the schedule that loads all deliveries of a dimension or a fact at the times of a cron expression."""

    @dg.schedule(
        name=f"{dagster_name(dimension.name)}_schedule",
        job=job,
        cron_schedule=cron,
        execution_timezone=timezone,
        description=f"Loads all new deliveries of {dimension.name}.",
    )
    def load_everything(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        context.instance.add_dynamic_partitions(partitions_name(dimension.name), [EVERYTHING])
        return dg.RunRequest(partition_key=EVERYTHING)

    return load_everything
