"""The revisions of deliveries: which need no reading, and which get a higher revision (S34)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.errors import BatchRejected
from scd_pipeline.history.batch import Batch, current_revisions, next_revision, rank, revision_token


def stored_results(pending: Sequence[PendingDelivery], stored: Sequence[Batch]) -> dict[int, BatchResult]:
    """Return the results of deliveries that need no reading: a stored batch, or one older than a stored revision."""
    by_id, current_by_key = {batch.id: batch for batch in stored}, current_revisions(list(stored))
    results = {}
    for delivery in pending:
        current = current_by_key.get(delivery.batch.delivery_key)
        if current is None or delivery.batch.withdrawn or restores(delivery, current):
            continue
        existing = by_id.get(delivery.batch.id) if delivery.delivery.sealed else None
        if existing is not None:
            is_same = content(existing) == content(current)
            results[delivery.number] = delivery.result("unchanged" if is_same else "superseded")
        elif _is_older_than_withdrawal(delivery, current):
            results[delivery.number] = delivery.result("superseded", lower_revision(delivery, current))
        elif _is_unchanged_since(delivery, current):
            results[delivery.number] = delivery.result("unchanged")
    return results


def _last_change(delivery: PendingDelivery) -> str:
    """Return the revision in which the content last changed, according to the delivery."""
    since = delivery.delivery.unchanged_since
    return delivery.batch.revision if since is None else revision_token(since)


def _is_older_than_withdrawal(delivery: PendingDelivery, current: Batch) -> bool:
    is_older = rank(_last_change(delivery)) < rank(current.revision)
    return delivery.delivery.is_overwritten_in_place and current.withdrawn and is_older


def _is_unchanged_since(delivery: PendingDelivery, current: Batch) -> bool:
    """Return whether the current revision is one of those between the last change and the present."""
    is_between = rank(_last_change(delivery)) <= rank(current.revision) <= rank(delivery.batch.revision)
    return delivery.delivery.unchanged_since is not None and not current.withdrawn and is_between


def restores(delivery: PendingDelivery, current: Batch) -> bool:
    """Return whether a delivery is loaded again although its current revision withdraws it."""
    return "withdrawn" in delivery.delivery.allow and current.withdrawn and not delivery.batch.withdrawn


def content(batch: Batch) -> tuple[object, ...]:
    """Return what a batch asserts, in a form that can be compared."""
    if batch.withdrawn:
        return ("withdrawn",)
    return (batch.fingerprint, batch.at, batch.scope)


def is_lower(batch: Batch, than: Batch) -> bool:
    """Return whether a revision ranks below another one of its delivery."""
    return rank(batch.revision) < rank(than.revision)


def lower_revision(delivery: PendingDelivery, current: Batch) -> BatchRejected:
    """Return the rejection of a revision that ranks below the current one and has other content."""
    state = "withdrew the delivery" if current.withdrawn else "has other content and is current"
    revisions = {"revision": _last_change(delivery), "current": current.revision}
    return BatchRejected("LOWER_REVISION", delivery.batch.id, **revisions, state=state)


def raise_revisions(pending: Sequence[PendingDelivery], stored: Sequence[Batch]) -> list[PendingDelivery]:
    """Give deliveries a revision above the current one if their own does not order them (S34)."""
    stored_by_key = current_revisions(list(stored))
    newest_by_key = dict(stored_by_key)  # and of the deliveries before
    raised = []
    for delivery in pending:
        key = delivery.batch.delivery_key
        current = (newest_by_key if _withdraws_current(delivery) else stored_by_key).get(key)
        if current is not None:
            revision = _raised_revision(delivery, current)
            delivery = replace(delivery, batch=replace(delivery.batch, revision=revision))
        raised.append(delivery)
        newest = newest_by_key.get(key)
        if newest is None or is_lower(newest, delivery.batch):
            newest_by_key[key] = delivery.batch
    return raised


def with_current_revision(delivery: PendingDelivery, current: Batch | None) -> PendingDelivery:
    """Return a withdrawal without a revision with the one that follows the current revision, and others as they are.

    `raise_revisions` lets it follow an earlier delivery of the load, which may have been rejected since then.
    """
    if not _withdraws_current(delivery):
        return delivery
    revision = revision_token(0) if current is None else _raised_revision(delivery, current)
    return replace(delivery, batch=replace(delivery.batch, revision=revision))


def _withdraws_current(delivery: PendingDelivery) -> bool:
    """Return whether it is a withdrawal without a revision, which withdraws the current one."""
    return delivery.batch.withdrawn and delivery.delivery.revision == 0


def _raised_revision(delivery: PendingDelivery, current: Batch) -> str:
    """Return the revision of a delivery, given the current one.

    A withdrawal without a revision follows the current one, which may be an earlier delivery of the same load. The
    revision of a delivery whose source has only the latest content may not be higher, as after a move to a host whose
    clock is behind: the raised one is used only if the content differs from that of the current one; else the log gets
    the own revision, so that the delivery is not read again. A restored delivery follows its withdrawal.
    """
    following = next_revision(current.revision)
    if _withdraws_current(delivery):
        return current.revision if current.withdrawn else following
    is_unordered = delivery.delivery.is_overwritten_in_place or restores(delivery, current)
    is_raised = is_unordered and rank(delivery.batch.revision) <= rank(current.revision)
    return following if is_raised else delivery.batch.revision


def count_duplicates(pending: Sequence[PendingDelivery]) -> list[PendingDelivery]:
    """Number the deliveries that have the same batch id."""
    counts: dict[str, int] = {}
    numbered = []
    for delivery in pending:
        count = counts[delivery.batch.id] = counts.get(delivery.batch.id, -1) + 1
        numbered.append(replace(delivery, duplicate=count))
    return numbered
