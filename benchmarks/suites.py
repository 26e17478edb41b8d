"""The quick and the full benchmark: which work at which size, and how often."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.catalog import WORK
from benchmarks.contestants.registry import contestants
from benchmarks.runner import Entry

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """Work items whose contestants all run in turn, so that the noise of the machine is the same for all.

    Attributes:
        work: Name, size and number of changes of each work item; 0 changes is what the item has by itself.
        rounds: The number of measured rounds.
        names: The contestants; by default all of the work item.
    """

    work: tuple[tuple[str, int, int], ...]
    rounds: int
    names: tuple[str, ...] = ()

    def entries(self) -> list[Entry]:
        """Return the work items with their contestants."""
        return [Entry(WORK[name](size, changes), contestants(name, self.names)) for name, size, changes in self.work]


FULL = (
    Step((("a", MILLION, 0), ("h", MILLION, 0)), 5),
    Step((("c", MILLION, 25_000), ("c", MILLION, 1_000), ("d", MILLION, 25_000)), 3),
    Step((("c", 20_000, 100),), 5, ("documented_merge", "scd_pipeline")),
    Step((("first", MILLION, 0),), 3),
    Step((("e1", 50_000, 0), ("e", 50_000, 0)), 3),
    Step((("j", 3 * MILLION, 0),), 3),
    Step((("f", 10 * MILLION, 0), ("f-versions", 10 * MILLION, 0), ("f-skew", 10 * MILLION, 0)), 2),
    Step((("g", 10 * MILLION, 0),), 2),
    Step((("a", 10 * MILLION, 0),), 2, ("documented_merge", "scd_pipeline")),
    Step((("c", 10 * MILLION, 25_000), ("c", 10 * MILLION, 1_000)), 3, ("prefiltered_merge", "scd_pipeline")),
    Step((("i", 100_000, 300), ("i-after", 100_000, 5_000)), 1),
    Step((("f-second", 3 * MILLION, 300_000), ("f-second", 30 * MILLION, 300_000)), 2),
    Step((("c", 30 * MILLION, 25_000), ("c", 30 * MILLION, 1_000)), 3, ("prefiltered_merge", "scd_pipeline")),
)
"""What the comparisons of `targets.TARGETS` need, the most telling first: the time may end before all is done."""

_IN_THE_SESSION = (
    "documented_merge",
    "prefiltered_merge",
    "two_pass_merge",
    "comparison",
    "plain_join",
    "union_window",
    "scd_pipeline",
    "scd_pipeline_dimension",
)
"""Contestants that need no environment of their own."""


def smallest(size: int) -> tuple[Step, ...]:
    """Return loads of one dimension, for a test of seconds: the loads of the quick benchmark need a minute or more."""
    snapshot, feed, repeated = (("a", size, 0),), ("c", size, size // 40), ("h", size, 0)
    return (
        Step(snapshot, 1, ("documented_merge", "scd_pipeline")),
        Step((feed, repeated), 1, ("scd_pipeline",)),
    )


def quick(size: int) -> tuple[Step, ...]:
    """Return a few work items at one size, which show in minutes whether all contestants have equal rows."""
    work = (("a", size, 0), ("c", size, size // 40), ("h", size, 0), ("f", size // 5, 0))
    return (Step(work, 1, _IN_THE_SESSION),)


def warm_up(size: int) -> tuple[Step, ...]:
    """Return what runs before a full benchmark, so that code is compiled in the session and in the warm server."""
    return (*quick(size), Step((("a", size, 0),), 1, ("scd_load",)))
