"""The deadline of a load, which stops between two of its steps and never in one of them (S17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scd_pipeline.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time after which a load begins no further step.

    Attributes:
        at: The time, in seconds by the clock.
        clock: Returns the current time in seconds, such as `time.monotonic`.
    """

    at: float
    clock: Callable[[], float]

    @property
    def has_passed(self) -> bool:
        """Whether the time is over."""
        return self.clock() >= self.at

    def require_time(self, table: str, step: str) -> None:
        """Check that a step may begin.

        Args:
            table: The name of the table that is loaded.
            step: The step, as a verb and its object, for the message.

        Raises:
            DeadlineExceeded: The time is over.
        """
        if self.has_passed:
            raise DeadlineExceeded("DEADLINE_EXCEEDED", table, step=step)
