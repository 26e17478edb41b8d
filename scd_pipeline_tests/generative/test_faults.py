"""The faults of the mutation tests fit the current engine, so that none of them stops to apply unnoticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from scd_pipeline.declaration import Dimension, RetireGuard, Snapshot, Source
from scd_pipeline.deliveries import accept, revisions
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.pending import BatchContent, PendingDelivery
from scd_pipeline.history.batch import Batch, current_revisions, rank
from scd_pipeline_tests.generative.faults import FAULTS
from scd_pipeline_tests.generative.mutants import problems

BY_NAME = {fault.name: fault for fault in FAULTS}
JANUARY, FEBRUARY = datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(2024, 2, 1, tzinfo=timezone.utc)


def customer() -> Dimension:
    """A dimension whose source decides existence by snapshots."""
    return Dimension("dim_customer", "id", {"city": 2}, Source("crm", Snapshot()))


def measured(**content: Any) -> Batch:
    """The batch of a snapshot with this content."""
    delivery = PendingDelivery.create(0, Delivery("crm", "1", at=JANUARY, revision=1), customer(), "run")
    return accept._with_content(delivery, BatchContent(rows=2, **content), customer()).batch


def snapshot(revision: str, **more: Any) -> Batch:
    """A revision of a snapshot."""
    return Batch("crm", "snapshot", "1", revision, JANUARY, **more)


PURE: dict[str, Callable[[], object]] = {
    "numbers_as_text": lambda: rank("9") < rank("10"),
    "dates_as_text": lambda: rank("2024-01-01") < rank("1"),
    "unreadable_key_retires": lambda: measured(unreadable=1).retires,
    "content_is_its_row_count": lambda: measured(hash=1).fingerprint == measured(hash=2).fingerprint,
    "content_without_its_time": lambda: (
        revisions.content(snapshot("1")) == revisions.content(Batch("crm", "snapshot", "1", "1", FEBRUARY))
    ),
    "snapshots_cover_keys_of_other_scopes": lambda: snapshot("1", scope=("a",)).covers(snapshot("2", scope=("b",))),
    "last_to_arrive_is_current": lambda: (
        current_revisions([snapshot("2"), snapshot("1")])["crm", "snapshot", "1"].revision
    ),
    "withdrawn_revisions_read": lambda: (
        current_revisions([snapshot("1"), snapshot("2", withdrawn=True)])["crm", "snapshot", "1"].withdrawn
    ),
    "retire_guard_off": lambda: RetireGuard().rejects(20, 24),
    "retire_guard_rejects_at_its_share": lambda: RetireGuard().rejects(6, 24),
}
"""Calls whose results the faults of functions without Spark change."""


def test_every_fault_applies_to_the_engine() -> None:
    assert problems(list(FAULTS)) == []


def test_the_names_of_the_faults_are_unique() -> None:
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


@pytest.mark.parametrize("name", PURE)
def test_a_fault_of_a_function_without_spark_changes_its_result(name: str) -> None:
    call, patch = PURE[name], BY_NAME[name].patch
    before = call()
    with patch.applied():
        assert call() != before
    assert call() == before
