"""Snapshots as data: the keys that each one covers, and the stored ones that new batches can affect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.frames import local_frame, with_broadcast
from scd_pipeline.history.attribute_scopes import has_attribute_scope, possible_scope_texts
from scd_pipeline.history.batch import Batch, rank
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.instants import to_utc

_SCHEMA = (
    "_source string, _channel string, _batch string, _delivery_rank string, _revision_rank string, "
    "_at timestamp, _changes_from timestamp, _retires boolean, _columns array<string>, "
    "_reason string, _actor string, _correlation_id string, _scope bigint"
)
_SCOPE, _SCOPE_VALUE = "_scope", "_scope_value"
_SCOPE_SCHEMA = f"{_SCOPE} bigint, {_SCOPE_VALUE} string"
_COLUMNS = _SCHEMA.count(",") + 2
_EVERYTHING = ""
"""The scope value of a snapshot that covers all entities."""

AuditTexts = tuple[str | None, str | None, str | None]
_Scope = tuple[tuple[str, ...], tuple[str, ...] | None]
"""Columns, and their values; None if a snapshot covers everything."""


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """The batches by which a run changes the log.

    Attributes:
        new: Accepted batches.
        removed: Batches of the log that the new ones supersede or withdraw.
        stored_snapshots: Snapshots of the log that are and remain in effect.
    """

    new: tuple[Batch, ...]
    removed: tuple[Batch, ...]
    stored_snapshots: tuple[Batch, ...]

    @property
    def new_snapshots(self) -> tuple[Batch, ...]:
        """The new snapshots, without withdrawals."""
        return tuple(batch for batch in self.new if batch.is_snapshot and not batch.withdrawn)

    @property
    def has_row_times(self) -> bool:
        """Whether rows of any snapshot have times of their own (S4)."""
        return any(batch.has_row_times for batch in (*self.new, *self.removed, *self.stored_snapshots))

    def kinds(self, dimension: Dimension) -> SnapshotKinds:
        """Return the kinds of the snapshots among them."""
        return SnapshotKinds.from_batches((*self.new, *self.removed, *self.stored_snapshots), dimension)


@dataclass(frozen=True, slots=True)
class CoveringSnapshot:
    """A snapshot, and the time before which changes do not affect it.

    Without that time, any earlier change may affect it.
    """

    snapshot: Batch
    changes_from: datetime | None = None


def audit_texts(batch: Batch) -> AuditTexts:
    """Return reason, actor and correlation id of a batch: those of its change records that have none of their own."""
    return (batch.reason, batch.actor, batch.correlation_id)


def covered_by(
    spark: SparkSession, keys: DataFrame, snapshots: Sequence[CoveringSnapshot], dimension: Dimension
) -> DataFrame:
    """Join keys with the snapshots that cover them, or that may if an attribute is the scope.

    Args:
        spark: The session.
        keys: Rows with `_source`, the business key, and the values of the scope attributes (`provided_scope_values`).
        snapshots: The snapshots.
        dimension: The declaration.

    Returns:
        One row per key and snapshot of its source that covers it: the columns of `keys`, the snapshot's columns of a
        change record, and `_at`, `_changes_from`, `_retires`, `_columns`.
    """
    scope_columns = sorted({each.snapshot.scope_columns for each in snapshots if each.snapshot.scope is not None})
    scopes: dict[_Scope, int] = {}
    rows = [
        (
            b.source,
            b.channel,
            b.records_batch_id,
            rank(b.delivery),
            rank(b.revision),
            b.at,
            changes_from,
            b.retires,
            list(b.columns),
            *audit_texts(b),
            scopes.setdefault((b.scope_columns, b.scope), len(scopes)),
        )
        for b, changes_from in ((each.snapshot, each.changes_from) for each in snapshots)
    ]
    values = [_scope_values(scope, scope_columns) for scope in scopes]
    row_count = sum(1 if each.snapshot.scope is None else len(each.snapshot.scope) for each in snapshots)
    snapshot_rows = with_broadcast(_with_scope_values(local_frame(spark, rows, _SCHEMA), values), row_count, _COLUMNS)
    # A snapshot covers a key if they share a scope value.
    scoped_keys = keys.withColumn(_SCOPE_VALUE, _scope_values_of_key(scope_columns, dimension))
    covered = scoped_keys.join(snapshot_rows, [SOURCE, _SCOPE_VALUE])
    # They share at most one value, unless the entity has moved from one to another.
    movable = [each.snapshot.scope or () for each in snapshots if has_attribute_scope(each.snapshot, dimension)]
    has_several_values = any(len(scope) > 1 for scope in movable)
    return covered.dropDuplicates([SOURCE, *dimension.key_names, BATCH]) if has_several_values else covered


def _with_scope_values(snapshot_rows: DataFrame, values: Sequence[Sequence[str]]) -> DataFrame:
    """Return a row for each scope value of each snapshot; `values` has those of each scope.

    Snapshots usually have the same scopes, so that the driver holds the values of each scope once.
    """
    if all(each == [_EVERYTHING] for each in values):
        return snapshot_rows.withColumn(_SCOPE_VALUE, F.lit(_EVERYTHING))
    rows = [(scope, value) for scope, values_of_scope in enumerate(values) for value in values_of_scope]
    return snapshot_rows.join(local_frame(snapshot_rows.sparkSession, rows, _SCOPE_SCHEMA), _SCOPE)


def _scope_values(scope: _Scope, scope_columns: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the values of a scope, each with the number of its columns in front."""
    columns, values = scope
    return [_EVERYTHING] if values is None else [f"{scope_columns.index(columns)}/{value}" for value in values]


def _scope_values_of_key(scope_columns: Sequence[tuple[str, ...]], dimension: Dimension) -> Column:
    """Return one row for each scope value that includes the key of a row, or that may include it."""
    if not scope_columns:
        return F.lit(_EVERYTHING)
    values = [possible_scope_texts(names, dimension, f"{number}/") for number, names in enumerate(scope_columns)]
    return F.explode(F.concat(F.array(F.lit(_EVERYTHING)), *values))


def snapshots_to_recheck(batches: BatchChanges, dimension: Dimension) -> list[CoveringSnapshot]:
    """Return the stored snapshots whose implied records may have to be stored now.

    A new or removed batch affects a later snapshot of its source only up to the next complete snapshot with the same
    or a wider scope: that one provides all values of all entities in its scope, so that earlier changes have no
    effect after it. The latest complete snapshot before a snapshot therefore gives its `changes_from`.

    In a source with row times no snapshot is complete, because an absence deletes only what was asserted before (S4),
    nor is one in a source whose scope is an attribute.
    """
    source_columns: dict[str, set[str]] = {}
    for batch in (*batches.stored_snapshots, *batches.new, *batches.removed):
        source_columns.setdefault(batch.source, set()).update(batch.columns)
    affected: list[CoveringSnapshot] = []
    spans = [(b.source, *_span(b)) for b in (*batches.new, *batches.removed)]
    incomplete_sources = {
        batch.source
        for batch in (*batches.stored_snapshots, *batches.new, *batches.removed)
        if batch.has_row_times or has_attribute_scope(batch, dimension)
    }
    for source in {span[0] for span in spans}:
        ordered = sorted((b for b in batches.stored_snapshots if b.source == source), key=lambda b: b.position)
        # In order no change is before a stored snapshot, and their scopes are not read.
        last_time = _time(ordered[-1]) if ordered else None
        late = sorted((first, last) for s, first, last in spans if s == source and last_time and first <= last_time)
        if not late:
            continue
        complete, last_change = _CompleteSnapshots(), None
        for snapshot in ordered:
            while late and late[0][0] <= _time(snapshot):
                last = late.pop(0)[1]
                last_change = last if last_change is None else max(last, last_change)
            if last_change is not None:
                changes_from = complete.latest_time(snapshot)
                if changes_from is None or last_change >= changes_from:
                    affected.append(CoveringSnapshot(snapshot, changes_from))
            if source not in incomplete_sources and _is_complete(snapshot, source_columns[source]):
                complete.add(snapshot)
    return affected


class _CompleteSnapshots:
    """Complete snapshots of a source, added in order of time, by the scopes that they cover.

    A lookup compares the snapshots that share a scope value, not all: their number may be that of the deliveries.
    """

    def __init__(self) -> None:
        self._unscoped: datetime | None = None
        self._scoped: dict[tuple[tuple[str, ...], str], dict[tuple[str, ...], Batch]] = {}

    def add(self, snapshot: Batch) -> None:
        """Add a snapshot, which replaces an earlier one with the same scope."""
        if snapshot.scope is None:
            self._unscoped = _time(snapshot)
            return
        for value in snapshot.scope:
            by_scope = self._scoped.setdefault((snapshot.scope_columns, value), {})
            by_scope.pop(snapshot.scope, None)  # the newest one is the last
            by_scope[snapshot.scope] = snapshot

    def latest_time(self, snapshot: Batch) -> datetime | None:
        """Return the time of the latest one that covers the scope of a snapshot; None if none does."""
        candidates = self._scoped.get((snapshot.scope_columns, snapshot.scope[0]), {}) if snapshot.scope else {}
        scoped = next((_time(each) for each in reversed(candidates.values()) if each.covers(snapshot)), None)
        return max((time for time in (scoped, self._unscoped) if time is not None), default=None)


def _is_complete(snapshot: Batch, columns: set[str]) -> bool:
    """Return whether the snapshot provides all `columns` of all entities in its scope; bad rows provide nothing."""
    return snapshot.retires and not snapshot.bad_rows and columns <= set(snapshot.complete_columns)


def _time(batch: Batch) -> datetime:
    return to_utc(batch.position[0])


def business_times(batch: Batch) -> list[datetime]:
    """Return the time of a batch, and the earliest and the latest one of its rows; those that it has."""
    return [to_utc(time) for time in (batch.at, batch.earliest, batch.latest) if time is not None]


def last_business_time(batches: Iterable[Batch]) -> datetime | None:
    """Return the latest time of the batches and of their rows; None if they have none."""
    return max((time for batch in batches for time in business_times(batch)), default=None)


def are_newest(batches: Iterable[Batch], stored: Iterable[Batch]) -> bool:
    """Return whether all batches and their rows are later than all stored batches and their rows."""
    last = last_business_time(stored)
    return last is None or all(time > last for batch in batches for time in business_times(batch))


def _span(batch: Batch) -> tuple[datetime, datetime]:
    """Return the earliest and the latest business time of a batch; an empty span if it has none."""
    times = business_times(batch)
    if not times:
        return (datetime.max.replace(tzinfo=timezone.utc), to_utc(datetime.min))
    return (min(times), max(times))
