"""Partitions of the assets: one for each delivery, and `everything` for all deliveries."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg

from scd_pipeline.deliveries.partitions import EVERYTHING


def partitions_name(table: str) -> str:
    """Return the name of the dynamic partitions definition of a dimension or a fact."""
    return f"{table}_deliveries"


def delivery_partitions(table: str) -> dg.DynamicPartitionsDefinition:
    """Return the partitions of a dimension or a fact; sensors and runs add the keys of new deliveries."""
    return dg.DynamicPartitionsDefinition(name=partitions_name(table))


def has_everything(partitions: Collection[str]) -> bool:
    """Return whether a run of these partitions loads all deliveries; a run without partitions does, too."""
    return EVERYTHING in partitions or not partitions
