"""Batches without their rows: identity, current revision, order and scope (S34).

A source delivers under a name, such as a file's date. Each issue of that delivery is a revision, and one revision of
one delivery is a batch. Only the highest revision of a delivery is in effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scd_pipeline.instants import to_utc

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE_NUMBER = re.compile(r"\d{1,20}")


def rank(name: str) -> str:
    """Return a text that sorts the names of deliveries and revisions: dates first, whole numbers next, texts last.

    Dates and numbers sort by value. Different names have different ranks, so that the order is total.
    """
    if _DATE.fullmatch(name):
        return f"d{name}"
    if _is_whole_number(name):
        number = name.lstrip("0") or "0"
        return f"i{number.zfill(20)}" if name == number else f"i{number.zfill(20)}/{name}"  # 1 and 01 are two names
    return f"t{name}"


def _is_whole_number(name: str) -> bool:
    return _WHOLE_NUMBER.fullmatch(name) is not None


def revision_token(revision: str | int | datetime) -> str:
    """Return a revision as text; times are written so that their texts sort by time."""
    if isinstance(revision, datetime):
        return to_utc(revision).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(revision)


def next_revision(revision: str) -> str:
    """Return a revision of higher rank: the next number if the revision is a number."""
    return str(int(revision) + 1) if _is_whole_number(revision) else f"{revision}+1"


DeliveryKey = tuple[str, str, str]
"""Source, channel and name of a delivery."""


@dataclass(frozen=True, slots=True)
class CursorState:
    """How far a cursor has read its source (S39).

    Attributes:
        value: The highest value that was loaded, as text; before the first load the declared start.
        rows: A hash of each loaded row that has this value.
    """

    value: str
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """One revision of one delivery, as the change log records it.

    Attributes:
        at: The batch's own time; None for a feed whose rows have the times.
        columns: The attributes that the delivery provides.
        sparse_columns: Those of them that some of its rows may not provide.
        scope_columns: The columns by which a snapshot is scoped.
        scope: The encoded values of `scope_columns` that a snapshot covers; None if it covers everything.
        has_row_times: Whether the rows of this snapshot have times of their own (S4).
        retires: Whether the snapshot deletes the entities of its scope that it omits (S27).
        withdrawn: Whether this revision withdraws the delivery.
        fingerprint: Order-independent hash of the content.
        content_of: The id of an earlier revision with the same content, or an empty text.
        earliest: The earliest business time in the rows; None if there is none.
        latest: The latest business time in the rows; None if there is none.
        new, changed, deleted: The number of its change records that create, change or delete an entity, each compared
            with what its source had asserted before.
        overridden: The rules that rejected the batch, and that its load overrode.
        cursor: The state of the cursor after its rows, if the change log stores it with the batch.
        reason: Change reason of all its change records, for the audit; so are `actor` and `correlation_id`.
    """

    source: str
    channel: str
    delivery: str
    revision: str
    at: datetime | None
    columns: tuple[str, ...] = ()
    sparse_columns: tuple[str, ...] = ()
    scope_columns: tuple[str, ...] = ()
    scope: tuple[str, ...] | None = None
    has_row_times: bool = False
    retires: bool = False
    withdrawn: bool = False
    rows: int = 0
    bad_rows: int = 0
    entities: int = 0
    fingerprint: str = ""
    content_of: str = ""
    earliest: datetime | None = None
    latest: datetime | None = None
    new: int = 0
    changed: int = 0
    deleted: int = 0
    run_id: str = ""
    reason: str | None = None
    actor: str | None = None
    correlation_id: str | None = None
    overridden: tuple[str, ...] = ()
    cursor: CursorState | None = None

    @property
    def id(self) -> str:
        """The batch id: the same on every retry, and not derived from the content."""
        return f"{self.source}/{self.channel}/{self.delivery}/{self.revision}"

    @property
    def delivery_key(self) -> DeliveryKey:
        """The key that all revisions of one delivery share."""
        return (self.source, self.channel, self.delivery)

    @property
    def complete_columns(self) -> tuple[str, ...]:
        """The attributes that each of its rows provides, unless the row is bad or deletes."""
        return tuple(name for name in self.columns if name not in self.sparse_columns)

    @property
    def is_snapshot(self) -> bool:
        """Whether the batch came through the snapshot channel."""
        return self.channel == "snapshot"

    @property
    def records_batch_id(self) -> str:
        """The batch id under which the log stores these change records: an earlier revision's if the content equals."""
        return self.content_of or self.id

    @property
    def position(self) -> tuple[datetime, str, str, str]:
        """The position of the batch itself among those of its source (S5).

        Raises:
            ValueError: The batch has no time of its own.
        """
        if self.at is None:
            raise ValueError(f"batch {self.id} has no time of its own")
        return (self.at, rank(self.delivery), self.channel, rank(self.revision))

    def covers(self, other: Batch) -> bool:
        """Return whether this batch's scope includes the whole scope of the other."""
        if self.scope is None:
            return True
        return (
            other.scope is not None
            and other.scope_columns == self.scope_columns
            and set(other.scope) <= set(self.scope)
        )


def current_revisions(batches: list[Batch]) -> dict[DeliveryKey, Batch]:
    """Return the highest revision of each delivery; of equal ranks the last in the list (S34)."""
    highest: dict[DeliveryKey, Batch] = {}
    for batch in batches:
        other = highest.get(batch.delivery_key)
        if other is None or rank(batch.revision) >= rank(other.revision):
            highest[batch.delivery_key] = batch
    return highest


def batches_in_effect(batches: list[Batch]) -> list[Batch]:
    """Return the current revisions that are not withdrawals."""
    return [batch for batch in current_revisions(batches).values() if not batch.withdrawn]


def overlap_groups(snapshots: Sequence[Batch]) -> dict[DeliveryKey, object]:
    """Group deliveries whose snapshots may cover the same entities, directly or through other snapshots.

    Two scopes of a source overlap if they share a value. If the source has a snapshot without scope, or scopes by
    different columns, all its snapshots form one group. Withdrawals cover no entities.

    Returns:
        An opaque group id by delivery.
    """
    snapshots = [batch for batch in snapshots if not batch.withdrawn]
    scope_kinds: dict[str, set[tuple[str, ...] | None]] = {}
    for batch in snapshots:
        scope_kinds.setdefault(batch.source, set()).add(None if batch.scope is None else batch.scope_columns)

    # Union-find over deliveries and scope values: deliveries with a common scope value have a common root.
    parents: dict[object, object] = {}

    def root(node: object) -> object:
        while (parent := parents.setdefault(node, node)) != node:
            node = parent
        return node

    for batch in snapshots:
        has_common_columns = len(scope_kinds[batch.source]) == 1
        for value in batch.scope if has_common_columns and batch.scope is not None else ("",):
            parents[root(batch.delivery_key)] = root((batch.source, value))
    return {batch.delivery_key: root(batch.delivery_key) for batch in snapshots}
