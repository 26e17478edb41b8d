"""Retry a load after a write conflict or the loss of an executor."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from scd_pipeline.delta.table import is_version_expired
from scd_pipeline.errors import ConflictError, RetriesExhausted, UsageError, first_line
from scd_pipeline.frames import is_checkpoint_lost

Progress = Callable[[str], None]
Result = TypeVar("Result")
_LONGEST_WAIT = 60
"""The largest number of seconds between two attempts, without jitter."""


def ignore_progress(message: str) -> None:
    """Discard a progress message."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a load is attempted, and how long it waits between attempts.

    The n-th wait, counted from 0, is 2^n + 0.1 n seconds, at most a minute, plus up to `jitter` times that, by
    `random`.

    Raises:
        UsageError: `attempts` is not a whole number of at least 1.
    """

    attempts: int = 5
    jitter: float = 0.25
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise UsageError("TOO_FEW_ATTEMPTS", "retry", attempts=repr(self.attempts))

    def wait(self, attempt: int) -> None:
        """Sleep after the attempt of this number, counted from 0."""
        self.sleep(shortest_wait(attempt) * (1 + self.jitter * self.random()))


def shortest_wait(attempt: int) -> float:
    """Return the seconds to wait after the attempt of this number, counted from 0, without jitter."""
    # The power is limited by itself: a large one is no float.
    doubled: int = min(2**attempt, _LONGEST_WAIT)
    return min(doubled + 0.1 * attempt, _LONGEST_WAIT)


def with_retries(table: str, attempt: Callable[[int], Result], retry: Retry, progress: Progress) -> Result:
    """Return the result of the attempt, which is repeated after a transient failure.

    The attempt is called with its number, from 0. A transient failure is a write conflict, the loss of an executor with
    computed rows, or a table version that another writer replaced and that Delta no longer reads.

    Raises:
        RetriesExhausted: The last attempt failed in this way.
    """
    for number in range(retry.attempts):
        try:
            return attempt(number)
        except Exception as error:
            cause = _transient_cause(error)
            if not cause:
                raise
            if number == retry.attempts - 1:
                last = first_line(error)
                raise RetriesExhausted("RETRIES_EXHAUSTED", table, attempts=retry.attempts, last=last) from error
            progress(f"{table}: {cause}, retrying (attempt {number + 2} of {retry.attempts})")
            retry.wait(number)
    raise AssertionError("the loop returns or raises")


def _transient_cause(error: Exception) -> str:
    """Return why a new attempt may succeed; empty if nothing suggests that it does."""
    if isinstance(error, ConflictError) or is_version_expired(error):
        return "write conflict"
    return "computed rows lost with their executor" if is_checkpoint_lost(error) else ""
