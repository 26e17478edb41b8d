"""The daily window of loads by schedules: which ticks are in it, and the deadline that it sets for their runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta, timezone

import dagster as dg

from scd_pipeline.components.alerts import alert_from_run
from scd_pipeline.load.deadline import Deadline

DEADLINE_TAG = "scd/load_deadline"
"""The tag of a run with the time after which its load begins no further step, as ISO text in UTC."""
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


class LoadWindow(dg.Model, dg.Resolvable):
    """A daily window of loads: from `start` to `end`, times of day such as 01:00, also past midnight."""

    start: str
    end: str

    @property
    def problem(self) -> str:
        """What is invalid; empty if nothing is."""
        invalid = [value for value in (self.start, self.end) if not _TIME_OF_DAY.fullmatch(value)]
        if invalid:
            return f"{invalid[0]!r} is not a time of day such as 01:00; put it in quotes"
        return "its start is its end" if self.start == self.end else ""

    def end_after(self, tick: datetime) -> datetime | None:
        """Return the end of the window that contains a time, in its time zone; None if no window does."""
        start, end = time.fromisoformat(self.start), time.fromisoformat(self.end)
        for day in (tick.date() - timedelta(days=1), tick.date()):
            last = day if start < end else day + timedelta(days=1)
            begins, ends = (datetime.combine(*each, tzinfo=tick.tzinfo) for each in ((day, start), (last, end)))
            if begins <= tick < ends:
                return ends
        return None

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


def deadline_tags(end: datetime) -> dict[str, str]:
    """Return the tags of a run whose load ends by a time."""
    return {DEADLINE_TAG: end.astimezone(timezone.utc).isoformat()}


def run_deadline(tags: Mapping[str, str], clock: Callable[[], float]) -> Deadline | None:
    """Return the deadline of a run; None if its tags have none.

    Args:
        tags: The tags of the run.
        clock: Returns the current time, in seconds since 1970.
    """
    text = tags.get(DEADLINE_TAG)
    return None if text is None else Deadline(datetime.fromisoformat(text).timestamp(), clock)


def alert_after_deadline(context: dg.OpExecutionContext, table: str, deadline: Deadline | None) -> None:
    """Send an alert if a load has ended after its deadline: its last step began in time, and took longer.

    A load that began no further step has failed, and failed runs have an alert of their own (`alert_sensor`).
    """
    if deadline is not None and deadline.has_passed:
        ended = datetime.fromtimestamp(deadline.at, timezone.utc).isoformat()
        alert_from_run(context, f"{table} was loaded after its load window", f"the window ended at {ended}")
