"""When the current rows of a dimension show what a source has asserted, so that a load may compare with them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from scd_pipeline import Attribute, Dimension, Source
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.narrowing import NARROWED_FROM, can_narrow, has_few_records
from scd_pipeline.history.snapshots import BatchChanges


def time(day: int) -> datetime:
    return datetime(2024, 1, day, tzinfo=timezone.utc)


CRM = Source("crm", snapshot="crm/{date}.csv", attributes=["city", "tier"], existence=True)
WEB = Source("web", snapshot="web/{date}.csv", attributes=["phone"])
ATTRIBUTES = {"city": Attribute(2), "tier": Attribute(1), "phone": Attribute(1)}
DIMENSION = Dimension("dim_x", "id", ATTRIBUTES, [CRM, WEB])
STORED = Batch("crm", "snapshot", "1", "0", time(1), columns=("city", "tier"), earliest=time(1), latest=time(1))
NEW = replace(STORED, delivery="2", at=time(2), earliest=time(2), latest=time(2))
OF_WEB = replace(NEW, source="web", delivery="1", columns=("phone",))
LATE_FEED = Batch("crm", "feed", "1", "0", None, columns=("city",), earliest=time(1), latest=time(3))
CASES = {
    "the newest snapshot of its source": ([NEW], [STORED], True),
    "the first one": ([NEW], [], True),
    "several": ([NEW, replace(NEW, delivery="3", at=time(3))], [STORED], True),
    "together with a feed": ([NEW, LATE_FEED], [STORED], True),
    "another source is newer": ([NEW], [STORED, replace(OF_WEB, at=time(5))], True),
    "a late snapshot": ([NEW], [STORED, replace(NEW, delivery="3", at=time(3))], False),
    "a snapshot of the same time": ([NEW], [replace(STORED, at=time(2))], False),
    "a stored row is newer": ([NEW], [STORED, LATE_FEED], False),
    "not of the existence source": ([OF_WEB], [STORED], False),
    "of two sources": ([NEW, OF_WEB], [STORED], False),
    "rows have their own times": ([replace(NEW, has_row_times=True)], [STORED], False),
    "another source has provided the attribute": ([NEW], [STORED, replace(OF_WEB, columns=("tier",))], False),
    "too many scope values": ([replace(NEW, scope=tuple(map(str, range(1001))))], [STORED], False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_load_is_narrowed_if_the_current_rows_show_what_was_asserted(case: str) -> None:
    new, in_effect, expected = CASES[case]
    snapshots = tuple(batch for batch in in_effect if batch.is_snapshot)
    assert can_narrow(BatchChanges(tuple(new), (), snapshots), in_effect, DIMENSION) is expected


def test_a_load_that_replaces_a_batch_is_not_narrowed() -> None:
    assert not can_narrow(BatchChanges((NEW,), (STORED,), ()), [STORED], DIMENSION)


def test_rows_that_do_not_show_deletes_are_not_compared() -> None:
    keeps_deleted = Dimension("dim_x", "id", {"city": Attribute(1)}, [Source("crm", snapshot="crm/{date}.csv")])
    new = replace(NEW, columns=("city",))
    assert not can_narrow(BatchChanges((new,), (), ()), [], keeps_deleted)


@pytest.mark.parametrize(
    ("stored", "delivered", "expected"),
    [(0, 1, True), (NARROWED_FROM - 2, 1, True), (NARROWED_FROM - 1, 1, False), (0, NARROWED_FROM, False)],
)
def test_a_load_is_not_narrowed_if_it_and_the_log_have_few_records(stored: int, delivered: int, expected: bool) -> None:
    assert has_few_records(stored, delivered) is expected


def test_a_log_of_an_unknown_number_of_records_may_have_many() -> None:
    assert not has_few_records(None)


@pytest.mark.rule("S4", "S34")
def test_rows_with_times_of_a_withdrawn_snapshot_are_known_to_have_them() -> None:
    """The channel may have no `effective_at` any more."""
    timed = replace(STORED, has_row_times=True)
    assert BatchChanges((), (timed,), ()).has_row_times
    assert not BatchChanges((), (STORED,), ()).has_row_times
