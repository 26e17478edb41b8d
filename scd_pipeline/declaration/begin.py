"""The beginning of histories (S29)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from scd_pipeline.declaration.frozen import checked_arguments, set_frozen_fields
from scd_pipeline.declaration.times import OPEN_END, canonical_time


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Begin:
    """An earlier start of the first version of each entity (S29).

    Args:
        at: The start, as ISO text in UTC, date or datetime.
        for_first_changes_until: The histories of entities whose first change is at or before this time start at `at`;
            by default those of all entities.
        column: Instead of `at`: the attribute with the start of each entity, a time or a date. Its value when the first
            version opens is the start, if it is before that.
    """

    at: str = ""
    for_first_changes_until: str = OPEN_END
    column: str = ""

    def __init__(self, at: str | date = "", for_first_changes_until: str | date = OPEN_END, column: str = "") -> None:
        set_frozen_fields(self, at=canonical_time(at), column=column)
        set_frozen_fields(self, for_first_changes_until=canonical_time(for_first_changes_until))
