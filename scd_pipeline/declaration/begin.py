"""Where the history of an entity begins (S29)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.times import canonical_time, moment


@dataclass(frozen=True, slots=True)
class Begin:
    """Start of the first version of entities whose first change is early enough (S29).

    An entity whose first change is at or before `for_first_changes_until` begins at `at`.
    """

    at: str
    for_first_changes_until: str

    def __post_init__(self) -> None:
        set_frozen_fields(self, at=canonical_time(self.at))
        set_frozen_fields(self, for_first_changes_until=canonical_time(self.for_first_changes_until))

    @property
    def at_time(self) -> datetime:
        """Return `at` as a time in UTC."""
        return moment(self.at)

    @property
    def until_time(self) -> datetime:
        """Return `for_first_changes_until` as a time in UTC."""
        return moment(self.for_first_changes_until)
