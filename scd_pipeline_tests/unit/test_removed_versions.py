"""Whether the loads so far may have removed a version, so that only the audit has its surrogate key (S14)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from scd_pipeline.declaration import Dimension, Feed, Source
from scd_pipeline.history.batch import Batch
from scd_pipeline.load.log import may_have_removed_versions

DIMENSION = Dimension("dim_x", "id", {"city": 2}, Source("crm", feed=Feed()))


def batch(commit: int, first: int, last: int, *, name: str = "", revision: str = "1") -> tuple[int, Batch]:
    """A batch of a commit, with changes from one day of January to another."""
    days = [datetime(2024, 1, day) for day in (first, last)]
    return commit, Batch("crm", "feed", name or f"{commit}/{first}", revision, None, earliest=days[0], latest=days[1])


@pytest.mark.rule("S14")
@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([], False),
        ([batch(1, 1, 3), batch(2, 4, 4)], False),
        ([batch(1, 1, 3), batch(2, 3, 4)], True),
        ([batch(2, 4, 4), batch(1, 1, 3)], False),
        ([batch(1, 5, 5), batch(1, 1, 3), batch(2, 6, 6)], False),
        ([batch(1, 5, 5), batch(2, 6, 6), batch(3, 1, 1)], True),
        ([batch(1, 1, 1, name="a"), batch(2, 2, 2, name="a", revision="2")], True),
        ([(1, Batch("crm", "feed", "empty", "1", None)), batch(2, 2, 2)], False),
    ],
    ids=["none", "in order", "at one time", "not sorted", "backfill", "late", "revision", "without rows"],
)
def test_only_commits_in_order_remove_no_version(batches: list[tuple[int, Batch]], expected: bool) -> None:
    assert may_have_removed_versions(batches, DIMENSION) is expected


def test_deletes_may_remove_rows() -> None:
    dimension = replace(DIMENSION, attributes={"city": 1}, deleted_rows="remove")
    assert may_have_removed_versions([], dimension)
