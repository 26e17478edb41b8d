"""Retry a load after a write conflict or the loss of an executor."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from scd_pipeline.delta.table import is_superseded
from scd_pipeline.errors import ConflictError, RetriesExhausted, first_line
from scd_pipeline.frames import is_lost

Progress = Callable[[str], None]
Result = TypeVar("Result")


def ignore_progress(message: str) -> None:
    """Discard a progress message."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a load is attempted, and how long it waits between attempts.

    The n-th wait, counted from 0, is 2^n + 0.1 n seconds, plus up to `jitter` times that, by `random`.
    """

    attempts: int = 5
    jitter: float = 0.25
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def wait(self, attempt: int) -> None:
        """Sleep after the attempt of this number, counted from 0."""
        self.sleep(shortest_wait(attempt) * (1 + self.jitter * self.random()))


def shortest_wait(attempt: int) -> float:
    """Return the seconds to wait after the attempt of this number, counted from 0, without jitter."""
    seconds: float = 2**attempt + 0.1 * attempt
    return seconds


def with_retries(table: str, attempt: Callable[[int], Result], retry: Retry, progress: Progress) -> Result:
    """Return the result of the attempt, which gets its number from 0 and is repeated after a passing failure.

    These are write conflicts, and computed rows that were lost with their executor. Delta also refuses to read a
    version that another writer replaced, once the retention of its files has passed.

    Raises:
        RetriesExhausted: The last attempt of `retry` failed so.
    """
    for number in range(retry.attempts):
        try:
            return attempt(number)
        except Exception as error:
            cause = _passing_cause(error)
            if not cause:
                raise
            if number == retry.attempts - 1:
                last = first_line(error)
                raise RetriesExhausted("RETRIES_EXHAUSTED", table, attempts=retry.attempts, last=last) from error
            progress(f"{table}: {cause}, retrying (attempt {number + 2} of {retry.attempts})")
            retry.wait(number)
    raise AssertionError("the loop returns or raises")


def _passing_cause(error: Exception) -> str:
    """Return why a new attempt may succeed; empty if nothing suggests that it does."""
    if isinstance(error, ConflictError) or is_superseded(error):
        return "write conflict"
    return "computed rows lost with their executor" if is_lost(error) else ""
