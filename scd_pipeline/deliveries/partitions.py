"""Partition keys of deliveries."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from scd_pipeline.declaration import Dimension

if TYPE_CHECKING:
    from scd_pipeline.deliveries.delivery import Delivery

EVERYTHING = "everything"
"""The partition of runs that load all available deliveries.

Dagster runs assets that are downstream of partitioned ones only by partition.
"""


def partition_key(delivery: Delivery, dimension: Dimension) -> str:
    """Return the partition key of a delivery: its name, qualified by its channel if the dimension has several."""
    has_several = sum(len(source.channels) for source in dimension.sources) > 1
    return qualified_name(delivery) if has_several else delivery.name


def matching_partition_keys(partition: str, available: Collection[Delivery], dimension: Dimension) -> list[str]:
    """Return the partition keys of the deliveries of a partition, which may have a former key.

    Adding or removing a channel changes the keys of all deliveries, while partitions with the former keys remain.
    """
    deliveries = {partition_key(delivery, dimension): delivery for delivery in available}
    if partition in deliveries:
        return [partition]
    return sorted(key for key, delivery in deliveries.items() if partition in delivery_names(delivery))


def delivery_names(delivery: Delivery) -> set[str]:
    """Return the names that identify a delivery: its own, and the one qualified by its channel."""
    return {delivery.name, qualified_name(delivery)}


def qualified_name(delivery: Delivery) -> str:
    """Return the name of a delivery with its source and its channel."""
    return f"{delivery.source}.{delivery.channel}.{delivery.name}"
