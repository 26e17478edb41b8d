"""Partitions of the assets: one for each delivery, and `everything` for all deliveries, with its schedule."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg

from scd_pipeline.components.load_window import LoadWindow, deadline_tags
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.operations.dagster_names import dagster_name


def partitions_name(table: str) -> str:
    """Return the name of the dynamic partitions definition of a dimension or a fact."""
    return f"{table}_deliveries"


def delivery_partitions(table: str) -> dg.DynamicPartitionsDefinition:
    """Return the partitions of a dimension or a fact; sensors and runs add the keys of new deliveries."""
    return dg.DynamicPartitionsDefinition(name=partitions_name(table))


def has_everything(partitions: Collection[str]) -> bool:
    """Return whether a run of these partitions loads all deliveries; a run without partitions does, too."""
    return EVERYTHING in partitions or not partitions


def load_schedule(
    dimension: Dimension, job: Any, cron: str, timezone: str, window: LoadWindow | None = None
) -> dg.ScheduleDefinition:
    """Return the schedule that loads all deliveries of a dimension or a fact at the times of a cron expression.

    With a window, it skips times outside of it, and the end of the window is the deadline of a run.
    """

    @dg.schedule(
        name=f"{dagster_name(dimension.name)}_schedule",
        job=job,
        cron_schedule=cron,
        execution_timezone=timezone,
        description=f"Loads all new deliveries of {dimension.name}.",
    )
    def load_everything(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        tick = context.scheduled_execution_time.astimezone(ZoneInfo(timezone))
        end = window.end_after(tick) if window else None
        if window and end is None:
            return dg.SkipReason(f"{tick:%H:%M} is outside the load window, {window}")
        context.instance.add_dynamic_partitions(partitions_name(dimension.name), [EVERYTHING])
        return dg.RunRequest(partition_key=EVERYTHING, tags=deadline_tags(end) if end else {})

    return load_everything
