"""Which snapshots a late batch can affect: those up to the next complete snapshot of the same or a wider scope."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.snapshots import BatchChanges, CoveringSnapshot, snapshots_to_recheck

DIMENSION = Dimension("dim_x", {"region": "string"}, {"city": 2}, Source("crm", Snapshot(scope="region")))


def time(day: int) -> datetime:
    return datetime(2024, 1, day, tzinfo=timezone.utc)


def snapshot(day: int, scope: str | None = None, *, retires: bool = True, source: str = "crm") -> Batch:
    """A snapshot of a day; each letter of `scope` is a value of the column `region`."""
    values = {} if scope is None else {"scope_columns": ("region",), "scope": tuple(scope)}
    return Batch(source, "snapshot", f"{day:02} {scope}", "0", time(day), retires=retires, **values)  # type: ignore[arg-type]


def affected(new: list[Batch], stored: list[Batch]) -> list[tuple[int, int | None]]:
    """The days of the snapshots to recheck, and the days from which changes affect them."""
    rechecked = snapshots_to_recheck(BatchChanges(tuple(new), (), tuple(stored)), DIMENSION)
    return [(each.snapshot.position[0].day, each.changes_from and each.changes_from.day) for each in rechecked]


CASES: dict[str, tuple[list[Batch], list[tuple[int, int | None]]]] = {
    "in order": ([snapshot(1)], []),
    "all entities": ([snapshot(3), snapshot(4), snapshot(5)], [(3, None)]),
    "at its own time": ([snapshot(2), snapshot(3)], [(2, None), (3, 2)]),
    "an incomplete one covers nothing": (
        [snapshot(3, retires=False), snapshot(4), snapshot(5)],
        [(3, None), (4, None)],
    ),
    "each scope has its next snapshot": (
        [snapshot(3, "a"), snapshot(4, "b"), snapshot(5, "a")],
        [(3, None), (4, None)],
    ),
    "a wider scope covers": ([snapshot(3, "ab"), snapshot(4, "b"), snapshot(5)], [(3, None), (5, None)]),
    "a narrower one does not": ([snapshot(3, "a"), snapshot(4, "ab")], [(3, None), (4, None)]),
    "another first value": ([snapshot(3, "ba"), snapshot(4, "ab")], [(3, None)]),
    "of another source": ([snapshot(3, source="web")], []),
}


@pytest.mark.rule("S19")
@pytest.mark.parametrize("case", CASES)
def test_snapshots_after_a_batch_of_the_second_day(case: str) -> None:
    stored, expected = CASES[case]
    assert affected([snapshot(2)], stored) == expected


def one_by_one(new: list[Batch], stored: list[Batch]) -> list[CoveringSnapshot]:
    """What the function returns, computed by comparing each snapshot with each earlier one."""
    rechecked = []
    for batch in sorted(stored, key=lambda each: each.position):
        earlier = [
            other for other in stored if other.position < batch.position and other.retires and other.covers(batch)
        ]
        changes_from = max((other.position[0] for other in earlier), default=None)
        changes = [other.position[0] for other in new if other.position[0] <= batch.position[0]]
        if changes and (changes_from is None or max(changes) >= changes_from):
            rechecked.append(CoveringSnapshot(batch, changes_from))
    return rechecked


SNAPSHOTS = st.builds(
    snapshot, st.integers(1, 9), st.sampled_from([None, "a", "b", "ab", "ba", "abc", "cb"]), retires=st.booleans()
)


@settings(deadline=None)
@given(st.lists(SNAPSHOTS, min_size=1, max_size=3), st.lists(SNAPSHOTS, max_size=8, unique_by=lambda batch: batch.id))
def test_the_result_equals_that_of_comparing_each_with_each(new: list[Batch], stored: list[Batch]) -> None:
    assert snapshots_to_recheck(BatchChanges(tuple(new), (), tuple(stored)), DIMENSION) == one_by_one(new, stored)
