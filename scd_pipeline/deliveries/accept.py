"""Accept or reject the deliveries of a load, each as one batch.

A delivery is rejected here if it has no time (S4), is a snapshot at the open end (S29), cannot be read, has too many
bad rows (S26) or changes without an order (S5), or has other content under the revision of an accepted one (S34). A
retry of an accepted delivery is unchanged. The retire guard (S27) needs the comparison with the change log and is
applied by the load, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from scd_pipeline.columns import BAD, BATCH, KIND
from scd_pipeline.declaration import Dimension, RetireGuard, Snapshot
from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.deliveries.batch_summary import MAX_SCOPE_VALUES, BatchContent, summarize_batches
from scd_pipeline.deliveries.cast_options import CastOptions
from scd_pipeline.deliveries.casts import cast
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.narrowed import AppliedState, NarrowedSnapshot
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.read import ReadResult, compute_deliveries, compute_narrowed, open_deliveries
from scd_pipeline.deliveries.result import BatchResult, ChangeCounts
from scd_pipeline.deliveries.row_columns import HASH, KEY_READABLE, NULLED, ROW_ORDER
from scd_pipeline.deliveries.ties import drop_deleted_ties, find_conflicts, merge_ties, merge_ties_by_row_order
from scd_pipeline.errors import BatchRejected, SourceDataError
from scd_pipeline.expressions import col, key_text
from scd_pipeline.frames import local_frame, union_all
from scd_pipeline.history.batch import (
    Batch,
    DeliveryKey,
    current_revisions,
    next_revision,
    overlap_groups,
    rank,
    revision_token,
)
from scd_pipeline.texts import pluralize

_SHOWN_KEYS = 10
_FILE_COLUMNS = (HASH, KEY_READABLE, NULLED, ROW_ORDER)


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """The deliveries of a load as far as each is accepted or rejected.

    Attributes:
        stored: Every batch of the change log.
        measured: The deliveries that were read, and the withdrawals, with the counts of their batches.
        other_results: The results of the other deliveries, by number.
        unordered: For a row tag, the keys that have several values without an order, as text.
        rejections: Why a batch is rejected after it was compared with the log, by its id.
        rows: The rows of everything that was read, with the columns of `conform`; of a narrowed snapshot only those
            that may change something, and bad rows.
        dimension: The declaration.
        counts: What each batch changes, by its id; empty before the comparison with the log.
        overlap_groups: For the delivery key of a snapshot, what it shares with all snapshots that cover the same
            entities.
        narrowed: The narrowed snapshot, if `rows` are those of one.
    """

    stored: tuple[Batch, ...]
    measured: tuple[PendingDelivery, ...]
    other_results: Mapping[int, BatchResult]
    unordered: Mapping[str, str]
    rows: DataFrame
    dimension: Dimension
    overlap_groups: Mapping[DeliveryKey, object]
    narrowed: NarrowedSnapshot | None = None
    rejections: Mapping[str, BatchRejected] = field(default_factory=dict)
    counts: Mapping[str, ChangeCounts] = field(default_factory=dict)
    decisions: _Decisions = field(init=False)

    def __post_init__(self) -> None:
        set_frozen_fields(self, decisions=_decide_all(self))

    @property
    def accepted(self) -> tuple[Batch, ...]:
        """The accepted batches."""
        return tuple(self._with_counts(delivery.batch) for delivery in self.decisions.accepted)

    @property
    def removed(self) -> tuple[Batch, ...]:
        """The stored batches that accepted ones replace or withdraw."""
        current = current_revisions(list(self.stored))
        replaced = [current.get(batch.delivery_key) for batch in self.accepted]
        return tuple(batch for batch in replaced if batch is not None and not batch.withdrawn)

    @property
    def batches_to_append(self) -> tuple[Batch, ...]:
        """The batches for the log: accepted ones, and higher revisions with the content of the current one."""
        return (*self.accepted, *(delivery.batch for delivery in self.decisions.repeated))

    @property
    def all_batches(self) -> tuple[Batch, ...]:
        """Every batch of the log after the load."""
        return (*self.stored, *self.batches_to_append)

    @property
    def has_row_times(self) -> bool:
        """Whether the log has row-timed snapshots after the load (S4)."""
        return any(batch.has_row_times for batch in self.all_batches)

    @property
    def results(self) -> tuple[BatchResult, ...]:
        """The result of each delivery, in their order."""
        return tuple(self._result_with_counts(result) for result in self.decisions.results)

    @property
    def row_count(self) -> int:
        """The number of delivered rows; an upper bound of the entities in accepted batches."""
        return sum(batch.rows for batch in self.accepted)

    def change_records(self) -> DataFrame | None:
        """Return the records of the accepted batches, one per key and position; None if they have none.

        Bad rows with a readable key are included.
        """
        rows = self._accepted_rows()
        if rows is None:
            return None
        rows = rows.where(F.col(KEY_READABLE))
        rest, parts = F.lit(True), []
        accepted = self.decisions.accepted
        for rule, ids in _by_tie_rule((delivery.batch.id, delivery) for delivery in accepted).items():
            has_ties = F.col(BATCH).isin(ids) & (F.col(KIND) != BAD)
            parts.append(_WITHOUT_TIES[rule](rows.where(has_ties), self.dimension))
            rest = rest & ~has_ties
        return union_all([rows.where(rest), *parts]).drop(*_FILE_COLUMNS)

    def rows_without_key(self) -> DataFrame:
        """Return the bad rows of the accepted batches whose business key is not readable."""
        accepted = self._accepted_rows()
        rows = self.rows.limit(0) if accepted is None else accepted.where(~F.col(KEY_READABLE))
        return rows.drop(*_FILE_COLUMNS)

    def _accepted_rows(self) -> DataFrame | None:
        ids = [delivery.batch.id for delivery in self.decisions.accepted if not delivery.batch.withdrawn]
        return self.rows.where(F.col(BATCH).isin(ids)) if ids else None

    def with_counts(self, counts: Mapping[str, ChangeCounts]) -> IntakeResult:
        """Return the result with what each batch changes."""
        return replace(self, counts=counts)

    def without(self, rejections: Sequence[BatchRejected]) -> IntakeResult:
        """Return the result with these batches rejected; the lower revisions that they replaced are accepted (S34)."""
        by_batch = {rejection.batch: rejection for rejection in rejections}
        return replace(self, rejections={**self.rejections, **by_batch}, counts={})

    def rejected_by_retire_guard(self) -> list[BatchRejected]:
        """Return the rejections of snapshots that would retire too many entities (S27).

        Only the first by position is returned among those that cover the same entities: what later ones would retire
        depends on it.
        """
        snapshots = [
            delivery
            for delivery in self.decisions.accepted
            if delivery.batch.is_snapshot and delivery.batch.retires and not delivery.batch.withdrawn
        ]
        first: dict[object, BatchRejected] = {}
        for delivery in sorted(snapshots, key=lambda delivery: delivery.batch.position):
            group = self.overlap_groups[delivery.batch.delivery_key]
            rejection = self._retire_guard(delivery, self.dimension.source(delivery.batch.source).retire_guard)
            if rejection and group not in first:
                first[group] = rejection
        return list(first.values())

    def _retire_guard(self, delivery: PendingDelivery, guard: RetireGuard) -> BatchRejected | None:
        counts = self.counts.get(delivery.batch.id, ChangeCounts())
        in_plain = delivery.batch.entities - counts.unasserted
        present = counts.asserted_present if delivery.batch.has_row_times else in_plain
        existing = counts.retired + present + counts.asserted_bad
        if "retire_guard" in delivery.delivery.allow or not guard.rejects(counts.retired, existing):
            return None
        return BatchRejected(
            "RETIRE_GUARD",
            delivery.batch.id,
            omitted=counts.retired,
            existing=existing,
            share=f"{counts.retired / existing:.0%}",
            limit=f"{guard.share:.0%}",
        )

    def _with_counts(self, batch: Batch) -> Batch:
        counts = self.counts.get(batch.id, ChangeCounts())
        return replace(batch, new=counts.new, changed=counts.changed, deleted=counts.deleted)

    def _result_with_counts(self, result: BatchResult) -> BatchResult:
        counts = self.counts.get(result.batch_id)
        if result.outcome != "accepted" or counts is None:
            return result
        return replace(
            result,
            new=counts.new,
            changed=counts.changed,
            deleted=counts.deleted,
            versions_opened=counts.new + counts.reopened,
            versions_closed=counts.deleted + counts.reopened,
        )


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

    Args:
        stored: Every batch of the change log.
        applied: What a snapshot can be compared with while it is read; None to read all rows first.

    Raises:
        SourceDataError: A delivery does not fit the declaration of its channel.
    """
    pending = [
        PendingDelivery.create(number, delivery, dimension, run_id) for number, delivery in enumerate(deliveries)
    ]
    pending = _encode_scopes(spark, dimension, _count_duplicates(pending))
    results = {**_reject_by_time(pending, dimension), **_stored_results(pending, stored)}
    pending = _count_duplicates(_raise_revisions(pending, stored))
    to_read = [delivery for delivery in pending if not delivery.batch.withdrawn and delivery.number not in results]
    to_read = _with_changes_only(to_read, stored)
    withdrawn = [delivery for delivery in pending if delivery.batch.withdrawn]
    while True:
        read = _read(spark, to_read, stored, None if withdrawn else applied, dimension)
        if read.readable:
            progress(f"{dimension.name}: reading {pluralize(len(read.readable), 'delivery')}")
        measured = _measure(read, dimension) + withdrawn
        intake = IntakeResult(
            stored=tuple(stored),
            measured=tuple(measured),
            other_results={**results, **read.rejected},
            unordered=_unordered_keys(read.rows, measured, dimension),
            rows=read.rows,
            dimension=dimension,
            overlap_groups=_overlap_groups(measured, stored),
            narrowed=read.narrowed,
        )
        whole = _versions_after_rejected(to_read, intake)
        if not whole:
            return intake
        to_read = _read_whole(to_read, whole)


def pending_deliveries(dimension: Dimension, deliveries: Sequence[Delivery], stored: Sequence[Batch]) -> list[Delivery]:
    """Return the deliveries of which the change log has no batch, and which are not known to be unchanged.

    Raises:
        SourceDataError: A delivery does not fit the declaration of its channel.
    """
    candidates = [PendingDelivery.create(number, delivery, dimension, "") for number, delivery in enumerate(deliveries)]
    results, ids = _stored_results(candidates, stored), {batch.id for batch in stored}
    return [each.delivery for each in candidates if each.number not in results and each.batch.id not in ids]


def _read(
    spark: SparkSession,
    to_read: Sequence[PendingDelivery],
    stored: Sequence[Batch],
    applied: AppliedState | None,
    dimension: Dimension,
) -> ReadResult:
    while True:
        opened = open_deliveries(spark, to_read, dimension)
        narrowed = compute_narrowed(opened, stored, applied, dimension) if applied is not None else None
        read = narrowed or compute_deliveries(spark, opened, dimension)
        whole = _versions_to_read_whole(to_read, read)
        if not whole:
            return read
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


def _overlap_groups(measured: Sequence[PendingDelivery], stored: Sequence[Batch]) -> Mapping[DeliveryKey, object]:
    snapshots = [delivery.batch for delivery in measured if delivery.batch.is_snapshot]
    delivery_keys = {batch.delivery_key for batch in snapshots}
    return overlap_groups([*snapshots, *(batch for batch in stored if batch.delivery_key in delivery_keys)])


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
        return BatchRejected("NO_TIME", batch.id, reason=problem)
    if batch.at is None or not batch.is_snapshot or batch.withdrawn:
        return None
    at = f"{batch.at:%Y-%m-%d %H:%M:%S}"
    if batch.at >= dimension.open_end_time:
        return BatchRejected("AT_OPEN_END", batch.id, at=at, open_end=dimension.computed_open_end)
    begin = dimension.begin
    if begin and batch.has_row_times and batch.at < begin.at_time:
        return BatchRejected("BEFORE_BEGIN", batch.id, at=at, begin=begin.at)
    return None


def _stored_results(pending: Sequence[PendingDelivery], stored: Sequence[Batch]) -> dict[int, BatchResult]:
    """Return the results of deliveries that need no reading: a stored batch, or one older than a stored revision."""
    by_id, current_by_key = {batch.id: batch for batch in stored}, current_revisions(list(stored))
    results = {}
    for delivery in pending:
        current = current_by_key.get(delivery.batch.delivery_key)
        if current is None or delivery.batch.withdrawn:
            continue
        existing = by_id.get(delivery.batch.id) if delivery.delivery.sealed else None
        if existing is not None:
            is_same = existing.records_batch_id == current.records_batch_id
            results[delivery.number] = delivery.result("unchanged" if is_same else "superseded")
        elif _is_older_than_withdrawal(delivery, current):
            results[delivery.number] = delivery.result("superseded", _lower_revision(delivery, current))
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


def _is_lower(batch: Batch, than: Batch) -> bool:
    return rank(batch.revision) < rank(than.revision)


def _raise_revisions(pending: Sequence[PendingDelivery], stored: Sequence[Batch]) -> list[PendingDelivery]:
    """Give deliveries a revision above the current one if their own does not order them (S34)."""
    current_by_key = current_revisions(list(stored))
    raised = []
    for delivery in pending:
        current = current_by_key.get(delivery.batch.delivery_key)
        if current is not None:
            revision = _raised_revision(delivery, current)
            delivery = replace(delivery, batch=replace(delivery.batch, revision=revision))
        raised.append(delivery)
    return raised


def _raised_revision(delivery: PendingDelivery, current: Batch) -> str:
    """Return the revision of a delivery, given the current one.

    A withdrawal without a revision follows the current one. The revision of a delivery whose source has only the latest
    content may not be higher, as after a move to a host whose clock is behind: the raised one is used only if the
    content differs from that of the current one; else the log gets the own revision, so that the delivery is not read
    again.
    """
    following = next_revision(current.revision)
    if delivery.batch.withdrawn and delivery.delivery.revision == 0:
        return current.revision if current.withdrawn else following
    is_raised = delivery.delivery.is_overwritten_in_place and rank(delivery.batch.revision) <= rank(current.revision)
    return following if is_raised else delivery.batch.revision


def _count_duplicates(pending: Sequence[PendingDelivery]) -> list[PendingDelivery]:
    """Number the deliveries that have the same batch id."""
    counts: dict[str, int] = {}
    numbered = []
    for delivery in pending:
        count = counts[delivery.batch.id] = counts.get(delivery.batch.id, -1) + 1
        numbered.append(replace(delivery, duplicate=count))
    return numbered


def _encode_scopes(
    spark: SparkSession, dimension: Dimension, pending: Sequence[PendingDelivery]
) -> list[PendingDelivery]:
    """Write given scope values as the types of the key columns write them, so that they compare with keys."""
    encoded = {delivery.number: delivery for delivery in pending}
    for names in sorted({d.batch.scope_columns for d in pending if d.delivery.scope is not None}):
        scoped = [d for d in pending if d.delivery.scope is not None and d.batch.scope_columns == names]
        texts = _scope_texts(spark, dimension, names, scoped)
        for delivery, values in zip(scoped, texts, strict=True):
            batch = replace(delivery.batch, scope=tuple(sorted(values)))
            encoded[delivery.number] = replace(delivery, batch=batch)
    return list(encoded.values())


def _scope_texts(
    spark: SparkSession, dimension: Dimension, names: Sequence[str], scoped: Sequence[PendingDelivery]
) -> list[set[str]]:
    """Return the scope values of each delivery as text, by one job.

    Raises:
        SourceDataError: A key column cannot have the value.
    """
    types = {key.name: key.data_type for key in dimension.business_key if key.name in names}
    delivered = {name: f"_delivered_{number}" for number, name in enumerate(names)}
    rows = [
        (number, *(None if value is None else str(value) for value in values))
        for number, delivery in enumerate(scoped)
        for values in delivery.delivery.scope or ()
    ]
    frame = local_frame(spark, rows, ", ".join(["_number int", *(f"{text} string" for text in delivered.values())]))
    typed = frame.withColumns(
        {name: cast(F.col(text), StringType(), types[name], CastOptions()).value for name, text in delivered.items()}
    )
    invalid = [
        F.when(F.col(text).isNotNull() & col(name).isNull(), F.array(F.lit(name), F.col(text)))
        for name, text in delivered.items()
    ]
    scope_values: list[set[str]] = [set() for _ in scoped]
    for number, text, invalid_value in typed.select(
        "_number", key_text(list(delivered)), F.coalesce(*invalid)
    ).collect():
        if invalid_value is not None:
            name, value = invalid_value
            location = f"{dimension.name}: {scoped[number].batch.id}"
            raise SourceDataError("SCOPE_VALUE", location, value=repr(value), type=types[name].ddl(), column=name)
        scope_values[number].add(text)
    return scope_values


def _measure(read: ReadResult, dimension: Dimension) -> list[PendingDelivery]:
    """Return the deliveries that were read with the counts, content hash and times of their batches."""
    readable = read.readable
    if not readable:
        return []
    scopes = {
        f"{d.batch.source}/{d.batch.channel}": d.batch.scope_columns
        for d in readable
        if d.batch.scope_columns and d.batch.scope is None
    }
    in_file_order = sorted({f"{d.batch.source}/{d.batch.channel}" for d in readable if d.channel.has_row_order})
    contents = summarize_batches(read.rows, scopes, in_file_order, dimension)
    if None in contents:
        raise SourceDataError("UNASSIGNED_FILES", dimension.name, rows=contents[None].rows)
    numbers = {channel: number for number, channel in enumerate(scopes)}
    measured = []
    for delivery in readable:
        content = contents.get(delivery.row_tag, BatchContent(scopes=(frozenset(),) * len(scopes)))
        if read.narrowed is not None:
            content = content.with_repeated_rows(read.narrowed.repeated, delivery.batch.at)
        measured.append(_with_content(delivery, content, numbers, dimension))
    return measured


def _with_content(
    delivery: PendingDelivery, content: BatchContent, scopes: Mapping[str, int], dimension: Dimension
) -> PendingDelivery:
    batch = delivery.batch
    scope = batch.scope
    if batch.scope_columns and scope is None:
        scope = tuple(sorted(content.scopes[scopes[f"{batch.source}/{batch.channel}"]]))
    decides_existence = batch.source == dimension.existence_source.name
    channel = delivery.channel
    retires_unreadable = isinstance(channel, Snapshot) and channel.unreadable_keys == "retire"
    retires = batch.is_snapshot and decides_existence and (retires_unreadable or not content.unreadable)
    filled = replace(
        batch,
        scope=scope,
        retires=retires,
        rows=content.rows,
        bad_rows=content.bad_rows,
        entities=content.entities,
        fingerprint=f"{content.rows}:{content.hash}",
        earliest=content.earliest,
        latest=content.latest,
    )
    return replace(
        delivery,
        batch=filled,
        tied_rows=content.repeated,
        bad_reason=content.bad_reason,
        nulled_values=content.nulled,
    )


def _by_tie_rule(deliveries: Iterable[tuple[str, PendingDelivery]]) -> dict[str, list[str]]:
    """Return the given ids of deliveries with tied rows, by the rule that decides between such rows (S5)."""
    ids: dict[str, list[str]] = {}
    for delivery_id, delivery in deliveries:
        if delivery.tied_rows:
            ids.setdefault(delivery.channel.ties, []).append(delivery_id)
    return ids


def _collapse_without_deleted(rows: DataFrame, dimension: Dimension) -> DataFrame:
    return merge_ties(drop_deleted_ties(rows, dimension), dimension)


_WITHOUT_TIES = {
    "reject": merge_ties,
    "delete_wins": _collapse_without_deleted,
    "first_row": merge_ties_by_row_order,
    "last_row": merge_ties_by_row_order,
}


def _unordered_keys(rows: DataFrame, measured: Sequence[PendingDelivery], dimension: Dimension) -> dict[str, str]:
    """Return, by row tag, the keys that have several values at one position without an order, as text (S5)."""
    by_rule = _by_tie_rule((delivery.row_tag, delivery) for delivery in measured)
    candidates = [rows.where(F.col(BATCH).isin(ids)) for rule, ids in by_rule.items() if rule == "reject"]
    if "delete_wins" in by_rule:
        good = rows.where(F.col(BATCH).isin(by_rule["delete_wins"]) & (F.col(KIND) != BAD))
        candidates.append(drop_deleted_ties(good, dimension))
    if not candidates:
        return {}
    keys_by_tag: dict[str, list[str]] = {}
    for row in find_conflicts(union_all(candidates), dimension, _SHOWN_KEYS + 1).collect():
        keys_by_tag.setdefault(row[BATCH], []).append(row["key"])
    return {
        tag: "; ".join(sorted(keys)[:_SHOWN_KEYS]) + (" and more" if len(keys) > _SHOWN_KEYS else "")
        for tag, keys in keys_by_tag.items()
    }


@dataclass(frozen=True, slots=True)
class _Decisions:
    """The accepted deliveries, higher revisions with the content of the current one, and the result of each."""

    accepted: tuple[PendingDelivery, ...]
    repeated: tuple[PendingDelivery, ...]
    results: tuple[BatchResult, ...]


def _decide_all(intake: IntakeResult) -> _Decisions:
    """Accept or reject each delivery by rising revision: an accepted one replaces lower ones (S34)."""
    results = dict(intake.other_results)
    numbers = {delivery.row_tag: delivery.number for delivery in intake.measured}
    stored_current = current_revisions(list(intake.stored))
    stored_ids = {batch.id for batch in intake.stored}
    accepted: dict[DeliveryKey, PendingDelivery] = {}
    repeated: dict[DeliveryKey, PendingDelivery] = {}
    for delivery in sorted(intake.measured, key=lambda delivery: rank(delivery.batch.revision)):
        key = delivery.batch.delivery_key
        replaced = accepted.get(key)
        in_load = [earlier.batch for earlier in (repeated.get(key), replaced) if earlier is not None]
        current = current_revisions([*([stored_current[key]] if key in stored_current else []), *in_load]).get(key)
        result = _decide(delivery, current, _rejection(delivery, intake), intake.stored)
        results[delivery.number] = result
        if result.outcome == "accepted":
            accepted[key] = delivery
            repeated.pop(key, None)
            if replaced is not None:
                results[numbers[replaced.row_tag]] = replaced.result("superseded")
        elif current is not None and _is_repeated(delivery.batch, current, result):
            revision = revision_token(delivery.delivery.revision)
            batch = replace(current, revision=revision, content_of=current.records_batch_id)
            if batch.id not in stored_ids:
                repeated[key] = replace(delivery, batch=batch)
    ordered = tuple(results[number] for number in sorted(results))
    return _Decisions(tuple(accepted.values()), tuple(repeated.values()), ordered)


def _is_repeated(batch: Batch, current: Batch, result: BatchResult) -> bool:
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
    if current is not None and _is_lower(batch, current):
        existing = [current, *(other for other in stored if other.id == batch.id)]
        has_same_content = any(_content(batch) == _content(other) for other in existing)
        return delivery.result("superseded", None if has_same_content else _lower_revision(delivery, current))
    is_same = current is not None and _content(batch) in _unchanged_contents(delivery, current, stored)
    if current is not None and rank(batch.revision) == rank(current.revision):
        return delivery.result("unchanged") if is_same else delivery.result("rejected", _other_content(delivery))
    if is_same:  # accepted content is not judged again, by other limits or rules
        return delivery.result("unchanged")
    if rejection is not None:
        return delivery.result("rejected", rejection)
    return delivery.result("rejected", _other_content(delivery)) if delivery.duplicate else delivery.result("accepted")


def _unchanged_contents(delivery: PendingDelivery, current: Batch, stored: Sequence[Batch]) -> list[tuple[object, ...]]:
    """Return the contents that change nothing: of the current revision, and of a file before it was withdrawn."""
    if not (delivery.delivery.is_overwritten_in_place and current.withdrawn):
        return [_content(current)]
    same_delivery = [b for b in stored if b.delivery_key == current.delivery_key and not b.withdrawn]
    return [_content(current), *(_content(batch) for batch in current_revisions(same_delivery).values())]


def _content(batch: Batch) -> tuple[object, ...]:
    if batch.withdrawn:
        return ("withdrawn",)
    return (batch.fingerprint, batch.at, batch.scope)


def _lower_revision(delivery: PendingDelivery, current: Batch) -> BatchRejected:
    state = "withdrew the delivery" if current.withdrawn else "has other content and is current"
    revisions = {"revision": _last_change(delivery), "current": current.revision}
    return BatchRejected("LOWER_REVISION", delivery.batch.id, **revisions, state=state)


def _other_content(delivery: PendingDelivery) -> BatchRejected:
    return BatchRejected("REVISION_CONTENT", delivery.batch.id, revision=delivery.batch.revision)


def _rejection(delivery: PendingDelivery, intake: IntakeResult) -> BatchRejected | None:
    """Return why the content of a delivery is rejected, None if it is not."""
    batch = delivery.batch
    rejection = intake.rejections.get(batch.id)
    if rejection is not None:
        return rejection
    if batch.scope is not None and len(batch.scope) > MAX_SCOPE_VALUES:
        details = {"columns": ", ".join(batch.scope_columns), "limit": f"{MAX_SCOPE_VALUES:,}"}
        return BatchRejected("SCOPE_TOO_LARGE", batch.id, **details)
    if keys := intake.unordered.get(delivery.row_tag):
        return BatchRejected("UNORDERED_CHANGES", batch.id, keys=keys)
    limit = intake.dimension.source(batch.source).bad_row_limit
    if batch.rows and batch.bad_rows > limit * batch.rows and "bad_rows" not in delivery.delivery.allow:
        return BatchRejected(
            "BAD_ROWS",
            batch.id,
            bad=batch.bad_rows,
            rows=batch.rows,
            share=f"{batch.bad_rows / batch.rows:.0%}",
            limit=f"{limit:.0%}",
            example=delivery.bad_reason,
        )
    return None
