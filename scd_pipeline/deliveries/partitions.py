"""Partition keys of deliveries."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from scd_pipeline.declaration import Dimension

if TYPE_CHECKING:
    from scd_pipeline.deliveries.delivery import Delivery


EVERYTHING = "everything"
"""The partition of runs that take all that lies there; Dagster runs assets below partitioned ones only by partition."""


def partition_key(delivery: Delivery, dimension: Dimension) -> str:
    """What tells a delivery from all others: its name, with the channel before it where there are several."""
    several = sum(len(source.channels) for source in dimension.sources) > 1
    return _with_channel(delivery) if several else delivery.name


def keys_meant(partition: str, there: Collection[Delivery], dimension: Dimension) -> list[str]:
    """The partition keys of the deliveries that a partition means: its own, or those that had its name before.

    A channel that comes or goes renames the keys of all others, and the partitions of the former names stay.
    """
    keys = {partition_key(delivery, dimension): delivery for delivery in there}
    if partition in keys:
        return [partition]
    return sorted(key for key, delivery in keys.items() if partition in names_of(delivery))


def names_of(delivery: Delivery) -> set[str]:
    """The names of a delivery: its own, and the same with its channel."""
    return {delivery.name, _with_channel(delivery)}


def _with_channel(delivery: Delivery) -> str:
    return f"{delivery.source}.{delivery.channel}.{delivery.name}"
