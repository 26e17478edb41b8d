"""Warn of row times that a declared unit makes implausibly early, such as seconds that are read as milliseconds (S4).

The times are those that each batch was measured with anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from scd_pipeline.declaration import Dimension
from scd_pipeline.errors import LoadWarning
from scd_pipeline.history.batch import Batch

_PLAUSIBLE = datetime(1990, 1, 1, tzinfo=timezone.utc)
"""A count of seconds of any later time is before February 1970 as a count of milliseconds or microseconds."""


def early_time_warnings(dimension: Dimension, batches: Sequence[Batch]) -> tuple[LoadWarning, ...]:
    """Return a warning for each batch with a row before 1990 whose time was read by a declared unit."""
    warnings = []
    for batch in batches:
        channel = dimension.source(batch.source).channel(batch.channel)
        if channel.effective_at_unit and batch.earliest is not None and batch.earliest < _PLAUSIBLE:
            details = {"earliest": f"{batch.earliest:%Y-%m-%d}", "unit": channel.effective_at_unit}
            warnings.append(LoadWarning("EARLY_TIMES", f"{dimension.name}: {batch.id}", details))
    return tuple(warnings)
