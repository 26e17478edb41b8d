"""The beginning of histories (S29)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from scd_pipeline.declaration.frozen import checked_arguments, set_frozen_fields
from scd_pipeline.declaration.times import OPEN_END, canonical_time, to_datetime


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Begin:
    """An earlier start of the first version of each entity (S29).

    Args:
        at: The start, as ISO text in UTC, date or datetime.
        for_first_changes_until: The histories of entities whose first change is at or before this time start at `at`;
            by default those of all entities.
    """

    at: str
    for_first_changes_until: str = OPEN_END

    def __init__(self, at: str | date, for_first_changes_until: str | date = OPEN_END) -> None:
        set_frozen_fields(self, at=canonical_time(at))
        set_frozen_fields(self, for_first_changes_until=canonical_time(for_first_changes_until))

    @property
    def at_time(self) -> datetime:
        """Return `at` as a time in UTC."""
        return to_datetime(self.at)
