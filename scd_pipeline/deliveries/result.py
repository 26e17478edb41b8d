"""The result of each delivery of a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from scd_pipeline.history.batch import DeliveryKey
from scd_pipeline.texts import name_columns, pluralize

Outcome = Literal["accepted", "unchanged", "superseded", "missing", "rejected"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """What the change records of a batch change, each compared with what its own source had asserted just before.

    Attributes:
        new: Change records of entities that begin to exist, or return.
        changed: Change records with another value.
        deleted: Change records that delete an entity.
        reopened: Change records with a value that opens another version of an existing entity.
        retired: Entities that are deleted because a snapshot omits them.
        unasserted: Entities with an upsert whose existence was not asserted before.
        asserted_present: Entities of a row-timed snapshot whose existence was asserted before.
        asserted_bad: Entities that have only bad rows, and whose existence was asserted before.
    """

    new: int = 0
    changed: int = 0
    deleted: int = 0
    reopened: int = 0
    retired: int = 0
    unasserted: int = 0
    asserted_present: int = 0
    asserted_bad: int = 0


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one delivery.

    Attributes:
        batch_id: The id of the batch.
        source: The name of its source.
        channel: The channel of that source, `snapshot` or `feed`.
        delivery: The name of the delivery.
        outcome: `accepted`; `unchanged` (a retry); `superseded` (a higher revision is current); `missing` (a table
            version whose files no longer exist); or `rejected`.
        rows: The number of delivered rows, without filtered ones.
        filtered_rows: The number of rows that the channel's condition `rows` excludes.
        bad_rows: The number of rows that were quarantined.
        nulled_values: The number of values that are NULL because they do not cast (`on_bad_value: null`).
        new, changed, deleted: The number of change records by change (`ChangeCounts`); a snapshot without row times has
            one for each entity.
        versions_opened, versions_closed: The number of versions.
        undeclared: The delivered columns that the declaration does not name.
        code: The code of the condition because of which the batch was not accepted; empty if it was.
        problem: What is wrong, and what was expected.
        fix: How to fix it.
        details: The values in `problem`, by name.
    """

    batch_id: str
    source: str
    channel: str
    delivery: str
    outcome: Outcome
    rows: int = 0
    bad_rows: int = 0
    new: int = 0
    changed: int = 0
    deleted: int = 0
    versions_opened: int = 0
    versions_closed: int = 0
    undeclared: tuple[str, ...] = ()
    code: str = ""
    problem: str = ""
    fix: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    nulled_values: int = 0
    filtered_rows: int = 0

    @property
    def delivery_key(self) -> DeliveryKey:
        """Source, channel and name of the delivery, which all its revisions share."""
        return (self.source, self.channel, self.delivery)

    def __str__(self) -> str:
        text = f"{self.batch_id}: {self.outcome}"
        if self.outcome == "accepted":
            text += f", {pluralize(self.rows, 'row')}: {self.new} new, {self.changed} changed, {self.deleted} deleted"
            text += f", {self.bad_rows} quarantined" if self.bad_rows else ""
            text += f", {self.filtered_rows} filtered" if self.filtered_rows else ""
            text += f", {pluralize(self.nulled_values, 'bad value')} set to NULL" if self.nulled_values else ""
        text += f" [{self.code}]: {self.problem}; {self.fix}" if self.code else ""
        return f"{text}; {undeclared_summary(self.undeclared)}" if self.undeclared else text


def undeclared_summary(undeclared: Sequence[str]) -> str:
    """Return the first undeclared columns, and the number of the others, without names that may be values (S31)."""
    return f"undeclared columns: {name_columns(undeclared)}"
