"""Decide by their revisions which deliveries of a load are accepted (S34)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.deliveries.revisions import content, is_lower, lower_revision, restores, with_current_revision
from scd_pipeline.errors import BatchRejected
from scd_pipeline.history.batch import Batch, DeliveryKey, current_revisions, rank, revision_token


@dataclass(frozen=True, slots=True)
class Decisions:
    """Which deliveries are accepted.

    Attributes:
        accepted: The accepted deliveries.
        same_content: Higher revisions with the content of the current one, which the log records as that one.
        results: The result of each delivery, in their order.
    """

    accepted: tuple[PendingDelivery, ...]
    same_content: tuple[PendingDelivery, ...]
    results: tuple[BatchResult, ...]


def decide(
    measured: Sequence[PendingDelivery],
    stored: Sequence[Batch],
    other_results: Mapping[int, BatchResult],
    rejection: Callable[[PendingDelivery], BatchRejected | None],
) -> Decisions:
    """Accept or reject each delivery by rising revision: an accepted one replaces lower ones.

    Args:
        measured: The deliveries that were read, and the withdrawals.
        stored: Every batch of the change log.
        other_results: The results of the other deliveries, by number.
        rejection: Returns why the content of a delivery is rejected, None if it is not.
    """
    results = dict(other_results)
    stored_current = current_revisions(list(stored))
    stored_ids = {batch.id for batch in stored}
    accepted: dict[DeliveryKey, PendingDelivery] = {}
    same_content: dict[DeliveryKey, PendingDelivery] = {}
    for delivery in sorted(measured, key=lambda delivery: rank(delivery.batch.revision)):
        key = delivery.batch.delivery_key
        replaced = accepted.get(key)
        in_load = [earlier.batch for earlier in (same_content.get(key), replaced) if earlier is not None]
        current = current_revisions([*([stored_current[key]] if key in stored_current else []), *in_load]).get(key)
        delivery = with_current_revision(delivery, current)
        result = _decide(delivery, current, rejection(delivery), stored)
        results[delivery.number] = result
        if result.outcome == "accepted":
            accepted[key] = delivery
            same_content.pop(key, None)
            if replaced is not None:
                results[replaced.number] = replaced.result("superseded")
        elif current is not None and _has_same_content(delivery.batch, current, result):
            revision = revision_token(delivery.delivery.revision)
            batch = replace(current, revision=revision, content_of=current.records_batch_id)
            if batch.id not in stored_ids:
                same_content[key] = replace(delivery, batch=batch)
    ordered = tuple(results[number] for number in sorted(results))
    return Decisions(tuple(accepted.values()), tuple(same_content.values()), ordered)


def _has_same_content(batch: Batch, current: Batch, result: BatchResult) -> bool:
    """Return whether it is a higher revision with the same content, which the log records as the current one."""
    return result.outcome == "unchanged" and rank(batch.revision) > rank(current.revision)


def _decide(
    delivery: PendingDelivery, current: Batch | None, rejection: BatchRejected | None, stored: Sequence[Batch]
) -> BatchResult:
    """Return the result of a delivery, given the current revision, if any.

    Args:
        rejection: Why its content is rejected, unless the revision decides first.
    """
    batch = delivery.batch
    if current is not None and is_lower(batch, current):
        existing = [current, *(other for other in stored if other.id == batch.id)]
        has_same_content = any(content(batch) == content(other) for other in existing)
        return delivery.result("superseded", None if has_same_content else lower_revision(delivery, current))
    is_same = current is not None and content(batch) in _unchanged_contents(delivery, current, stored)
    if current is not None and rank(batch.revision) == rank(current.revision):
        return delivery.result("unchanged") if is_same else delivery.result("rejected", _other_content(delivery))
    if is_same:  # accepted content is not judged again, by other limits or rules
        return delivery.result("unchanged")
    if rejection is not None:
        return delivery.result("rejected", rejection)
    return delivery.result("rejected", _other_content(delivery)) if delivery.duplicate else delivery.result("accepted")


def _unchanged_contents(delivery: PendingDelivery, current: Batch, stored: Sequence[Batch]) -> list[tuple[object, ...]]:
    """Return the contents that change nothing: of the current revision, and of a file before it was withdrawn."""
    if restores(delivery, current) or not (delivery.delivery.is_overwritten_in_place and current.withdrawn):
        return [content(current)]
    same_delivery = [b for b in stored if b.delivery_key == current.delivery_key and not b.withdrawn]
    return [content(current), *(content(batch) for batch in current_revisions(same_delivery).values())]


def _other_content(delivery: PendingDelivery) -> BatchRejected:
    return BatchRejected("REVISION_CONTENT", delivery.batch.id, revision=delivery.batch.revision)
