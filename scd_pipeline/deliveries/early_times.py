"""Warn of times that a declared unit makes implausibly early, such as seconds that are read as milliseconds (S4).

The times are those of the rows, or of a fact its event times. The query that counts the rows of a delivery finds the
earliest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.errors import LoadWarning

_PLAUSIBLE = datetime(1990, 1, 1, tzinfo=timezone.utc)
"""A count of seconds of any later time is before February 1970 as a count of milliseconds or microseconds."""


def units_of_required_times(dimension: Dimension) -> dict[str, str]:
    """Return the declared units of required timestamps, by attribute; the event time of a fact is one."""
    return {
        attribute.name: str(unit)
        for source in dimension.sources
        for attribute in dimension.source_attributes(source.name)
        if attribute.required and attribute.type == "timestamp" and (unit := source.column(attribute.name).unit)
    }


def early_time_warnings(dimension: Dimension, accepted: Sequence[PendingDelivery]) -> tuple[LoadWarning, ...]:
    """Return a warning for each delivery with a time before 1990 that was read by a declared unit."""
    warnings = []
    for delivery in accepted:
        units = {f"columns.{name}.unit": unit for name, unit in units_of_required_times(dimension).items()}
        times: dict[str, datetime | None] = dict.fromkeys(units, delivery.earliest_required)
        if delivery.channel.effective_at_unit:
            units["effective_at_unit"] = delivery.channel.effective_at_unit
            times["effective_at_unit"] = delivery.batch.earliest
        for option, earliest in times.items():
            if earliest is not None and earliest < _PLAUSIBLE:
                details = {"earliest": f"{earliest:%Y-%m-%d}", "option": f"{option}: {units[option]}"}
                warnings.append(LoadWarning("EARLY_TIMES", f"{dimension.name}: {delivery.batch.id}", details))
    return tuple(warnings)
