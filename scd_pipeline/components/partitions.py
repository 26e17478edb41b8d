"""Partitions of the assets: one for each delivery, and `everything` for all deliveries, with its schedule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg

from scd_pipeline.components.load_window import LoadWindow, deadline_tags
from scd_pipeline.declaration import DeclaredTable, Dimension
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.operations.dagster_names import dagster_name


def partitions_name(table: str) -> str:
    """Return the name of the dynamic partitions definition of a table."""
    return f"{table}_deliveries"


def delivery_partitions(table: DeclaredTable) -> dg.DynamicPartitionsDefinition | None:
    """Return the partitions of a table, one for each of its deliveries; sensors and runs add their keys.

    None for a dimension whose sources are all stored tables: its deliveries follow from theirs, and each load brings it
    up to date with them.
    """
    has_deliveries = as_dimension(table).has_own_deliveries
    return dg.DynamicPartitionsDefinition(name=partitions_name(table.name)) if has_deliveries else None


def partition_of_everything(table: DeclaredTable) -> str | None:
    """Return the partition of a run that loads all deliveries; None for a table without partitions."""
    return None if delivery_partitions(table) is None else EVERYTHING


def add_requests(table: DeclaredTable, keys: Sequence[str]) -> list[dg.AddDynamicPartitionsRequest]:
    """Return the request of a sensor to add partitions of a table, if there are any to add."""
    definition = delivery_partitions(table)
    return [] if definition is None or not keys else [definition.build_add_request(keys)]


def add_partitions(instance: dg.DagsterInstance, table: DeclaredTable, keys: Collection[str]) -> None:
    """Add partitions of a table; do nothing for a table without partitions."""
    if delivery_partitions(table) is not None:
        instance.add_dynamic_partitions(partitions_name(table.name), sorted(keys))


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
        add_partitions(context.instance, dimension, [EVERYTHING])
        partition = partition_of_everything(dimension)
        return dg.RunRequest(partition_key=partition, tags=deadline_tags(end) if end else {})

    return load_everything
