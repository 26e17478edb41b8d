"""Accept or reject the deliveries of a load, each as one batch.

A delivery is rejected here if it has no time (S4), is a snapshot at the open end (S29), cannot be read, changes while
it is read, has too many bad rows (S26) or changes without an order (S5), or has other content under the revision of an
accepted one (S34). A retry of an accepted delivery is unchanged. The retire guard (S27) needs the comparison with the
change log and is applied by the load, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.columns import KIND
from scd_pipeline.declaration import Dimension, Snapshot
from scd_pipeline.declaration.times import to_datetime
from scd_pipeline.deliveries.batch_summary import with_exact_ties
from scd_pipeline.deliveries.control_totals import with_control_totals
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.file_changes import changed_deliveries, fingerprint_deliveries
from scd_pipeline.deliveries.intake import IntakeResult
from scd_pipeline.deliveries.local_copies import local_copies
from scd_pipeline.deliveries.narrowed import AppliedState
from scd_pipeline.deliveries.pending import BatchContent, PendingDelivery
from scd_pipeline.deliveries.read import (
    ReadResult,
    compute_deliveries,
    compute_narrowed,
    may_have_uncounted_rows,
    open_deliveries,
)
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.deliveries.revisions import count_duplicates, raise_revisions, stored_results
from scd_pipeline.deliveries.row_columns import ABSENT, FILTERED
from scd_pipeline.deliveries.scopes import encode_scopes
from scd_pipeline.deliveries.tie_rules import unordered_keys
from scd_pipeline.errors import BatchRejected, SourceDataError
from scd_pipeline.history.attribute_scopes import by_keys
from scd_pipeline.history.batch import Batch, DeliveryKey, overlap_groups
from scd_pipeline.texts import pluralize


def accept(
    spark: SparkSession,
    dimension: Dimension,
    deliveries: Sequence[Delivery],
    stored: Sequence[Batch],
    *,
    run_id: str,
    progress: Callable[[str], None],
    applied: AppliedState | None = None,
) -> IntakeResult:
    """Read the deliveries, and accept or reject each; a sealed one is not read if its batch, or its content, is stored.

    The attributes of a mirrored dimension follow from the columns of the deliveries (S36).

    Args:
        stored: Every batch of the change log.
        applied: What a snapshot can be compared with while it is read; None to read all rows first.

    Raises:
        SourceDataError: A delivery does not fit the declaration of its channel.
    """
    pending = [
        PendingDelivery.create(number, delivery, dimension, run_id) for number, delivery in enumerate(deliveries)
    ]
    pending = encode_scopes(spark, dimension, count_duplicates(pending))
    results = {**_reject_by_time(pending, dimension), **stored_results(pending, stored)}
    pending = count_duplicates(raise_revisions(pending, stored))
    to_read = [delivery for delivery in pending if not delivery.batch.withdrawn and delivery.number not in results]
    to_read = [with_control_totals(each, dimension) for each in _with_changes_only(to_read, stored)]
    withdrawn = [delivery for delivery in pending if delivery.batch.withdrawn]
    fingerprints = fingerprint_deliveries(to_read)
    while True:
        read = _read(spark, to_read, stored, None if withdrawn else applied, dimension)
        resolved = read.dimension
        if read.readable:
            progress(f"{dimension.name}: reading {pluralize(len(read.readable), 'delivery')}")
        measured = _measure(read, resolved) + withdrawn
        rows = _without_uncounted(read)
        intake = IntakeResult(
            stored=tuple(stored),
            measured=tuple(measured),
            other_results={**results, **read.rejected},
            unordered=unordered_keys(rows, measured, resolved),
            rows=rows,
            dimension=resolved,
            overlap_groups=_overlap_groups(measured, stored, resolved),
            key_range=read.summary.key_range,
            narrowed=read.narrowed,
        )
        whole = _versions_after_rejected(to_read, intake)
        if not whole:
            changed = changed_deliveries(read.readable, fingerprints)
            rejections = [BatchRejected("CHANGED_WHILE_READ", each.batch.id) for each in changed]
            return intake.without(rejections) if rejections else intake
        to_read = _read_whole(to_read, whole)


def pending_deliveries(dimension: Dimension, deliveries: Sequence[Delivery], stored: Sequence[Batch]) -> list[Delivery]:
    """Return the deliveries of which the change log has no batch, and which are not known to be unchanged.

    Raises:
        SourceDataError: A delivery does not fit the declaration of its channel.
    """
    candidates = [PendingDelivery.create(number, delivery, dimension, "") for number, delivery in enumerate(deliveries)]
    results, ids = stored_results(candidates, stored), {batch.id for batch in stored}
    return [each.delivery for each in candidates if each.number not in results and each.batch.id not in ids]


def _read(
    spark: SparkSession,
    to_read: Sequence[PendingDelivery],
    stored: Sequence[Batch],
    applied: AppliedState | None,
    dimension: Dimension,
) -> ReadResult:
    with local_copies(spark, to_read) as copies:
        to_read = copies.deliveries
        while True:
            opened = open_deliveries(spark, to_read, dimension)
            has_applied = applied is not None and opened.dimension == dimension
            narrowed = compute_narrowed(opened, stored, applied, dimension) if applied and has_applied else None
            read = narrowed or compute_deliveries(spark, opened, opened.dimension)
            whole = _versions_to_read_whole(to_read, read)
            if not whole:
                rejected = copies.restored_results(read.rejected)
                return replace(read, readable=copies.restored(read.readable), rejected=rejected)
            to_read = _read_whole(to_read, whole)


def _with_changes_only(to_read: Sequence[PendingDelivery], stored: Sequence[Batch]) -> list[PendingDelivery]:
    """Let a version of a table be read as changes if the version before is stored, or read too."""
    loaded = {batch.delivery_key for batch in (*stored, *(each.batch for each in to_read))}
    return [replace(each, changes_only=_version_before(each) in loaded) for each in to_read]


def _read_whole(to_read: Sequence[PendingDelivery], numbers: Collection[int]) -> list[PendingDelivery]:
    """Return the deliveries; read those with these numbers in full."""
    return [replace(each, changes_only=each.changes_only and each.number not in numbers) for each in to_read]


def _version_before(delivery: PendingDelivery) -> DeliveryKey | None:
    version, batch = delivery.delivery.changes_since, delivery.batch
    return None if version is None else (batch.source, batch.channel, str(version))


def _versions_to_read_whole(to_read: Sequence[PendingDelivery], read: ReadResult) -> set[int]:
    """Return the versions, by number, whose changes cannot be read, or do not follow a version that could be read.

    Delta may not have recorded the changes of a version, or cannot read them since a column was removed.
    """
    missing = {number for number, result in read.rejected.items() if result.outcome == "missing"}
    gaps = {each.batch.delivery_key for each in to_read if each.number in missing}
    changes = [each for each in to_read if each.changes_only]
    return {each.number for each in changes if each.number in read.rejected or _version_before(each) in gaps}


def _versions_after_rejected(to_read: Sequence[PendingDelivery], intake: IntakeResult) -> set[int]:
    """Return the versions, by number, that were read as changes since a version whose rows are rejected."""
    rejected = {result.batch_id for result in intake.decisions.results if result.outcome == "rejected"}
    keys = {each.batch.delivery_key for each in to_read if each.batch.id in rejected}
    return {each.number for each in to_read if each.changes_only and _version_before(each) in keys}


def _overlap_groups(
    measured: Sequence[PendingDelivery], stored: Sequence[Batch], dimension: Dimension
) -> Mapping[DeliveryKey, object]:
    """Return the group of each snapshot; the retire guard decides about snapshots of different groups independently.

    Snapshots whose scopes are attributes are one group, even if no two scopes have a common value: a rejected snapshot
    leaves the entities that it would have moved in the scopes of others, and so changes what these would retire.
    """
    snapshots = [delivery.batch for delivery in measured if delivery.batch.is_snapshot]
    delivery_keys = {batch.delivery_key for batch in snapshots}
    overlapping = (*snapshots, *(batch for batch in stored if batch.delivery_key in delivery_keys))
    return overlap_groups([by_keys(batch, dimension) for batch in overlapping])


def _reject_by_time(pending: Sequence[PendingDelivery], dimension: Dimension) -> dict[int, BatchResult]:
    """Return the rejections of deliveries whose own time is missing or impossible, by number."""
    rejections = {delivery.number: _time_rejection(delivery, dimension) for delivery in pending}
    return {
        number: pending[number].result("rejected", rejection)
        for number, rejection in rejections.items()
        if rejection is not None
    }


def _time_rejection(delivery: PendingDelivery, dimension: Dimension) -> BatchRejected | None:
    """Return the rejection of a delivery without a time (S4), or of a snapshot outside of the dimension's time (S29).

    A row of such a time is a bad row, but a snapshot would retire the entities that it omits at that time.
    """
    batch = delivery.batch
    if problem := delivery.delivery.time_problem(dimension):
        fix = delivery.delivery.time_fix(dimension)
        return BatchRejected("NO_TIME", batch.id, reason=problem, **({"fix": fix} if fix else {}))
    if batch.at is None or not batch.is_snapshot or batch.withdrawn:
        return None
    at = f"{batch.at:%Y-%m-%d %H:%M:%S}"
    if batch.at >= dimension.open_end_time:
        return BatchRejected("AT_OPEN_END", batch.id, at=at, open_end=dimension.computed_open_end)
    if batch.has_row_times and batch.at < to_datetime(dimension.earliest_time):
        return BatchRejected("BEFORE_BEGIN", batch.id, at=at, begin=dimension.earliest_time)
    return None


def _measure(read: ReadResult, dimension: Dimension) -> list[PendingDelivery]:
    """Return the deliveries that were read with the counts, content hash and times of their batches."""
    contents = read.summary.contents
    if read.summary.unassigned:
        raise SourceDataError("UNASSIGNED_FILES", dimension.name, rows=read.summary.unassigned)
    if read.summary.may_have_ties:
        in_file_order = {f"{d.batch.source}/{d.batch.channel}" for d in read.readable if d.channel.has_row_order}
        contents = with_exact_ties(contents, read.rows, sorted(in_file_order), dimension)
    return [_with_content(each, contents.get(each.row_tag, BatchContent()), dimension) for each in read.readable]


def _without_uncounted(read: ReadResult) -> DataFrame:
    """Return the rows without filtered ones, and without those of snapshots whose entities count as absent."""
    if not any(may_have_uncounted_rows(delivery.channel, read.dimension) for delivery in read.readable):
        return read.rows
    return read.rows.where(~F.col(KIND).isin(FILTERED, ABSENT))


def _with_content(delivery: PendingDelivery, content: BatchContent, dimension: Dimension) -> PendingDelivery:
    batch, channel = delivery.batch, delivery.channel
    decides_existence = batch.source == dimension.existence_source.name
    retires_unreadable = isinstance(channel, Snapshot) and channel.unreadable_keys == "retire"
    filled = replace(
        batch,
        scope=content.scope if delivery.derives_scope else batch.scope,
        retires=batch.is_snapshot and decides_existence and (retires_unreadable or not content.unreadable),
        rows=content.rows,
        bad_rows=content.bad_rows,
        entities=content.entities,
        fingerprint=f"{content.rows}:{content.hash}",
        earliest=content.earliest,
        latest=content.latest,
    )
    return replace(delivery, batch=filled, content=content)
