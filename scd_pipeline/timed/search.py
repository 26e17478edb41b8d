"""The search of the statements that may hit a row, by the values and the intervals of their conditions (S12)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scd_pipeline.timed.expressions import Interval


@dataclass(frozen=True, slots=True)
class Cluster:
    """Intervals that overlap, as one, and the numbers of their statements in order."""

    interval: Interval
    numbers: tuple[int, ...]


def clusters(intervals: Iterable[tuple[Interval, int]]) -> list[Cluster]:
    """Return disjoint clusters of intervals, each with the numbers of their statements, in order of the values."""
    ordered = sorted(intervals, key=lambda each: (each[0].low is not None, each[0].low and each[0].low.key))
    merged: list[Cluster] = []
    for interval, number in ordered:
        if not merged or _is_after(interval, merged[-1].interval):
            merged.append(Cluster(interval, (number,)))
        else:
            last = merged.pop()
            merged.append(Cluster(_union(last.interval, interval), (*last.numbers, number)))
    return [Cluster(each.interval, tuple(sorted(set(each.numbers)))) for each in merged]


def search(value: str, ordered: Sequence[Cluster], result: Callable[[Cluster], str]) -> str:
    """Return an expression that finds the cluster that may have a value, by a binary search.

    Args:
        value: The SQL of the value.
        ordered: At least one cluster, as `clusters` returns them.
        result: Returns the result for a cluster.
    """
    middle = len(ordered) // 2
    first = ordered[middle].interval.low
    if not middle or first is None:
        return result(ordered[middle])
    left, right = search(value, ordered[:middle], result), search(value, ordered[middle:], result)
    return f"if({value} < {first.text}, {left}, {right})"


def cluster_at(ordered: Sequence[Cluster], key: Any) -> Cluster | None:
    """Return the cluster that may have the value of a key, None if none has it."""
    bounds = [each.interval.low.key for each in ordered if each.interval.low is not None]
    index = bisect_right(bounds, key) + len(ordered) - len(bounds) - 1
    if index < 0:
        return None
    high = ordered[index].interval.high
    return ordered[index] if high is None or key <= high.key else None


def _is_after(interval: Interval, other: Interval) -> bool:
    return interval.low is not None and other.high is not None and other.high.key < interval.low.key


def _union(first: Interval, second: Interval) -> Interval:
    """Return an interval from the begin of the first one to the later of the two ends."""
    if first.high is None or second.high is None:
        return Interval(first.low, None)
    return Interval(first.low, max(first.high, second.high, key=lambda bound: bound.key))
