"""A batch as data: what one source delivered at once, and where it stands among the others (S34)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scd_pipeline.instants import utc

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE_NUMBER = re.compile(r"\d{1,20}")


def rank(name: str) -> str:
    """A text that sorts deliveries and revisions: dates and whole numbers as such, everything else as text.

    Dates come before whole numbers, and these before other texts, so that the order is total.
    """
    if _DATE.fullmatch(name):
        return f"d{name}"
    if _WHOLE_NUMBER.fullmatch(name):
        number = name.lstrip("0") or "0"
        return f"i{number.zfill(20)}" if name == number else f"i{number.zfill(20)}/{name}"  # 1 and 01 are two names
    return f"t{name}"


def token(revision: str | int | datetime) -> str:
    """A revision as text; instants are written so that they sort as text."""
    if isinstance(revision, datetime):
        return utc(revision).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(revision)


def successor(revision: str) -> str:
    """The text of a revision that is higher than this one, and as a number the next."""
    return str(int(revision) + 1) if rank(revision).startswith("i") else f"{revision}+1"


DeliveryKey = tuple[str, str, str]
"""Source, channel and name of a delivery."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One revision of one delivery, as the change log knows it.

    `columns` are the attributes that the delivery stated; `retires` tells whether an entity that it leaves out
    is gone; `scope` holds the encoded values of `scope_columns` (None: everything); `reason`, `actor` and
    `correlation_id` are told of all of it.
    """

    source: str
    channel: str
    delivery: str
    revision: str
    at: datetime | None
    columns: tuple[str, ...] = ()
    scope_columns: tuple[str, ...] = ()
    scope: tuple[str, ...] | None = None
    row_times: bool = False
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
    closed: int = 0
    run_id: str = ""
    reason: str | None = None
    actor: str | None = None
    correlation_id: str | None = None

    @property
    def id(self) -> str:
        """The same on every retry, and never the content alone."""
        return f"{self.source}/{self.channel}/{self.delivery}/{self.revision}"

    @property
    def delivery_key(self) -> DeliveryKey:
        """What all revisions of one delivery share."""
        return (self.source, self.channel, self.delivery)

    @property
    def is_snapshot(self) -> bool:
        return self.channel == "snapshot"

    @property
    def records_batch_id(self) -> str:
        """The id under which the log keeps this batch's statements: an equal earlier revision's, or its own."""
        return self.content_of or self.id

    @property
    def position(self) -> tuple[datetime, str, str, str]:
        """Where the batch itself lies in its source's order (a batch of its own time only); the revision last (S5)."""
        if self.at is None:
            raise ValueError(f"batch {self.id} has no time of its own")
        return (self.at, rank(self.delivery), self.channel, rank(self.revision))

    def covers_all_of(self, other: Batch) -> bool:
        """Whether every entity that `other` speaks of is in this batch's scope too."""
        if self.scope is None:
            return True
        return (
            other.scope is not None
            and other.scope_columns == self.scope_columns
            and set(other.scope) <= set(self.scope)
        )


def standing(batches: list[Batch]) -> dict[DeliveryKey, Batch]:
    """Of each delivery the revision that counts: the highest one (S34)."""
    highest: dict[DeliveryKey, Batch] = {}
    for batch in batches:
        rival = highest.get(batch.delivery_key)
        if rival is None or rank(batch.revision) >= rank(rival.revision):
            highest[batch.delivery_key] = batch
    return highest


def regions(snapshots: Sequence[Batch]) -> dict[DeliveryKey, object]:
    """For each delivery what those have in common that may speak of the same entities, by themselves or through others.

    Of a source whose snapshots have scopes by different columns, or none, all have. A withdrawn one speaks of nobody.
    """
    parents: dict[object, object] = {}

    def root(of: object) -> object:
        while (parent := parents.setdefault(of, of)) != of:
            of = parent
        return of

    snapshots = [batch for batch in snapshots if not batch.withdrawn]
    kinds: dict[str, set[tuple[str, ...] | None]] = {}
    for batch in snapshots:
        kinds.setdefault(batch.source, set()).add(None if batch.scope is None else batch.scope_columns)
    for batch in snapshots:
        comparable = len(kinds[batch.source]) == 1
        for place in batch.scope if comparable and batch.scope is not None else ("",):
            parents[root(batch.delivery_key)] = root((batch.source, place))
    return {batch.delivery_key: root(batch.delivery_key) for batch in snapshots}


def counted(batches: list[Batch]) -> list[Batch]:
    """The standing batches that state anything, withdrawn ones left out."""
    return [batch for batch in standing(batches).values() if not batch.withdrawn]
