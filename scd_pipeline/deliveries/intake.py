"""The deliveries of a load as far as each is accepted or rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BATCH, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.deliveries.batch_summary import MAX_SCOPE_VALUES
from scd_pipeline.deliveries.control_totals import control_rejection
from scd_pipeline.deliveries.decisions import Decisions, decide
from scd_pipeline.deliveries.narrowed import NarrowedSnapshot
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.result import BatchResult, ChangeCounts
from scd_pipeline.deliveries.revisions import restores
from scd_pipeline.deliveries.row_columns import HASH, KEY_READABLE, NULLED, ROW_ORDER, TOTALS
from scd_pipeline.deliveries.tie_rules import MERGE_BY_TIE_RULE, by_tie_rule
from scd_pipeline.errors import BatchRejected
from scd_pipeline.frames import union_all
from scd_pipeline.history.batch import Batch, DeliveryKey, current_revisions
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.texts import first_names, readable_parts

_FILE_COLUMNS = (HASH, KEY_READABLE, NULLED, ROW_ORDER, TOTALS)
_RETIRE_GUARD = "retire_guard"
_STORED_TABLE_KEYS = {"timed_table": "TIMED_TABLE_KEY", "landing_table": "LANDING_TABLE_KEY"}
"""The codes of several rows of a key in the table that a source reads, by its option."""


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
        overlap_groups: For the delivery key of a snapshot, what it shares with all snapshots that may cover the same
            entities.
        key_range: A condition on the business key that holds for every delivered entity (`key_ranges`).
        narrowed: The narrowed snapshot, if `rows` are those of one.
    """

    stored: tuple[Batch, ...]
    measured: tuple[PendingDelivery, ...]
    other_results: Mapping[int, BatchResult]
    unordered: Mapping[str, str]
    rows: DataFrame
    dimension: Dimension
    overlap_groups: Mapping[DeliveryKey, object]
    key_range: Column
    narrowed: NarrowedSnapshot | None = None
    rejections: Mapping[str, BatchRejected] = field(default_factory=dict)
    counts: Mapping[str, ChangeCounts] = field(default_factory=dict)
    decisions: Decisions = field(init=False)

    def __post_init__(self) -> None:
        decisions = decide(self.measured, self.stored, self.other_results, lambda delivery: _rejection(delivery, self))
        set_frozen_fields(self, decisions=decisions)

    @property
    def accepted(self) -> tuple[Batch, ...]:
        """The accepted batches."""
        accepted = self.decisions.accepted
        has_overrides = any(delivery.delivery.allow for delivery in accepted)
        current = current_revisions(list(self.stored)) if has_overrides else {}
        overridden = (self._with_overridden(each, current.get(each.batch.delivery_key)) for each in accepted)
        return tuple(self._with_counts(batch) for batch in overridden)

    @property
    def removed(self) -> tuple[Batch, ...]:
        """The stored batches that accepted ones replace or withdraw."""
        current = current_revisions(list(self.stored))
        replaced = [current.get(batch.delivery_key) for batch in self.accepted]
        return tuple(batch for batch in replaced if batch is not None and not batch.withdrawn)

    @property
    def batches_to_append(self) -> tuple[Batch, ...]:
        """The batches for the log: accepted ones, and higher revisions with the content of the current one."""
        return (*self.accepted, *(delivery.batch for delivery in self.decisions.same_content))

    @property
    def all_batches(self) -> tuple[Batch, ...]:
        """Every batch of the log after the load."""
        return (*self.stored, *self.batches_to_append)

    @property
    def kinds(self) -> SnapshotKinds:
        """The kinds of the snapshots that the log has after the load."""
        return SnapshotKinds.from_batches(self.all_batches, self.dimension)

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
        for rule, ids in by_tie_rule((delivery.batch.id, delivery) for delivery in accepted).items():
            has_ties = F.col(BATCH).isin(ids) & (F.col(KIND) != BAD)
            parts.append(MERGE_BY_TIE_RULE[rule](rows.where(has_ties), self.dimension))
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
            if _retires(delivery.batch) and _RETIRE_GUARD not in delivery.delivery.allow
        ]
        first: dict[object, BatchRejected] = {}
        for delivery in sorted(snapshots, key=lambda delivery: delivery.batch.position):
            group = self.overlap_groups[delivery.batch.delivery_key]
            rejection = self._retire_guard(delivery)
            if rejection and group not in first:
                first[group] = rejection
        return list(first.values())

    def _retire_guard(self, delivery: PendingDelivery) -> BatchRejected | None:
        guard = self.dimension.source(delivery.batch.source).retire_guard
        counts = self.counts.get(delivery.batch.id, ChangeCounts())
        in_plain = delivery.batch.entities - counts.unasserted
        present = counts.asserted_present if delivery.batch.has_row_times else in_plain
        existing = counts.retired + present + counts.asserted_bad
        # A row without a key that changes is omitted, and another one is new.
        omitted = max(counts.retired - counts.new, 0) if self.dimension.has_row_identity else counts.retired
        if not guard.rejects(omitted, existing):
            return None
        return BatchRejected(
            "RETIRE_GUARD",
            delivery.batch.id,
            omitted=omitted,
            existing=existing,
            share=f"{omitted / existing:.0%}",
            limit=f"{guard.share:.0%}",
        )

    def _with_overridden(self, delivery: PendingDelivery, current: Batch | None) -> Batch:
        """Return the batch of a delivery with the rules that reject it, and that its load overrides.

        Args:
            delivery: The delivery.
            current: Its current revision in the change log.
        """
        batch, allowed = delivery.batch, delivery.delivery.allow
        if not allowed:
            return batch
        rejections = _overridable_rejections(delivery, self.dimension)
        if _retires(batch):
            rejections[_RETIRE_GUARD] = self._retire_guard(delivery)
        rules = {rule for rule, rejection in rejections.items() if rejection is not None}
        if current is not None and restores(delivery, current):
            rules.add("withdrawn")
        return replace(batch, overridden=tuple(sorted(rules & allowed)))

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


def _rejection(delivery: PendingDelivery, intake: IntakeResult) -> BatchRejected | None:
    """Return why the content of a delivery is rejected, None if it is not."""
    batch = delivery.batch
    rejection = intake.rejections.get(batch.id)
    if rejection is not None:
        return rejection
    if batch.scope is not None and len(batch.scope) > MAX_SCOPE_VALUES:
        details = {"columns": ", ".join(batch.scope_columns), "limit": f"{MAX_SCOPE_VALUES:,}"}
        return BatchRejected("SCOPE_TOO_LARGE", batch.id, **details)
    if delivery.rejects_empty_scope and (values := delivery.empty_scope):
        return BatchRejected("EMPTY_SCOPE", batch.id, scope=_scope_text(batch.scope_columns, values))
    source = intake.dimension.source(batch.source)
    if keys := intake.unordered.get(delivery.row_tag):
        code = next((_STORED_TABLE_KEYS[option] for option in source.stored_tables), "UNORDERED_CHANGES")
        return BatchRejected(code, batch.id, keys=keys)
    rejections = _overridable_rejections(delivery, intake.dimension).items()
    allowed = delivery.delivery.allow
    return next((rejection for rule, rejection in rejections if rejection and rule not in allowed), None)


def _overridable_rejections(delivery: PendingDelivery, dimension: Dimension) -> dict[str, BatchRejected | None]:
    """Return the rejection of the content of a delivery by each rule that a load can override."""
    return {"bad_rows": _bad_rows_rejection(delivery, dimension), "control_totals": control_rejection(delivery)}


def _bad_rows_rejection(delivery: PendingDelivery, dimension: Dimension) -> BatchRejected | None:
    batch = delivery.batch
    limit = dimension.source(batch.source).bad_row_limit
    if not batch.rows or batch.bad_rows <= limit * batch.rows:
        return None
    return BatchRejected(
        "BAD_ROWS",
        batch.id,
        bad=batch.bad_rows,
        rows=batch.rows,
        share=f"{batch.bad_rows / batch.rows:.0%}",
        limit=f"{limit:.0%}",
        example=delivery.content.bad_reason,
    )


def _retires(batch: Batch) -> bool:
    """Return whether a batch deletes what it omits."""
    return batch.is_snapshot and batch.retires and not batch.withdrawn


def _scope_text(columns: Sequence[str], values: Sequence[str]) -> str:
    """Return scope values for a message, such as ` of day 2024-01-31`; an empty text for the scope of everything."""
    return f" of {', '.join(columns)} {first_names([readable_parts(value) for value in values])}" if columns else ""
