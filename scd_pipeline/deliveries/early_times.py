"""Warn of times that a declared unit makes implausibly early, such as seconds that are read as milliseconds (S4).

It reads the times of rows and the event times of facts. Other attributes, such as birthdays, may have early times. The
query that counts the rows of a delivery finds the earliest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.errors import LoadWarning

_PLAUSIBLE = datetime(1990, 1, 1, tzinfo=timezone.utc)
"""A count of seconds of any later time is before February 1970 as a count of milliseconds or microseconds."""


def event_time_unit(dimension: Dimension) -> tuple[str, str] | None:
    """Return the event time of a fact and the declared unit that reads it; None for a dimension, or without a unit."""
    for attribute in dimension.attributes if dimension.is_of_fact else ():
        unit = dimension.existence_source.column(attribute.name).unit
        if attribute.required and attribute.type == "timestamp" and unit:
            return attribute.name, unit
    return None


def early_time_warnings(dimension: Dimension, accepted: Sequence[PendingDelivery]) -> tuple[LoadWarning, ...]:
    """Return a warning for each delivery with a time before 1990 that was read by a declared unit."""
    warnings, event_time = [], event_time_unit(dimension)
    for delivery in accepted:
        times: dict[str, datetime | None] = {}
        if event_time:
            times["columns.{}.unit: {}".format(*event_time)] = delivery.content.earliest_event
        if delivery.channel.effective_at_unit and not _is_personal_time(delivery, dimension):
            times[f"effective_at_unit: {delivery.channel.effective_at_unit}"] = delivery.batch.earliest
        for option, earliest in times.items():
            if earliest is not None and earliest < _PLAUSIBLE:
                details = {"earliest": f"{earliest:%Y-%m-%d}", "option": option}
                warnings.append(LoadWarning("EARLY_TIMES", f"{dimension.name}: {delivery.batch.id}", details))
    return tuple(warnings)


def _is_personal_time(delivery: PendingDelivery, dimension: Dimension) -> bool:
    """Return whether a personal attribute has the business time of the rows as its value."""
    source, time = dimension.source(delivery.batch.source), delivery.channel.time_column
    personal = [source.column(attribute.name) for attribute in dimension.attributes if attribute.personal]
    return time is not None and any({*time.from_} & {*column.from_} for column in personal)
