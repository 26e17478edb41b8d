"""Deliveries of a load that are not accepted or rejected yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.result import BatchResult, Outcome
from scd_pipeline.errors import BatchRejected
from scd_pipeline.history.batch import Batch


@dataclass(frozen=True, slots=True)
class BatchContent:
    """What the rows of a batch contain.

    Attributes:
        rows: The number of rows, without filtered ones.
        filtered: The number of rows that the channel's condition excludes.
        bad_rows: The number of bad rows.
        nulled: The number of values of good rows that are NULL because they do not cast.
        unreadable: The number of bad rows without a key.
        entities: The number of distinct keys and times of good rows.
        repeated: How many of these occur more than once.
        deletes: The number of good rows that delete their entity.
        hash: The sum of the content hashes.
        bad_reason: The reason of one bad row; empty if there is none.
        unreadable_reason: The reason of one bad row without a key; empty if there is none.
        earliest, latest: The earliest and the latest time of good rows.
        earliest_event: The earliest event time of a fact, if a declared unit reads it.
        scope: The distinct encoded values of the columns of a scope that the rows determine.
        sums: The sum of each column that has a control total, over the good rows.
        totals: The different texts of each control total in the rows, at most two.
    """

    rows: int = 0
    filtered: int = 0
    bad_rows: int = 0
    nulled: int = 0
    unreadable: int = 0
    entities: int = 0
    repeated: int = 0
    deletes: int = 0
    hash: int = 0
    bad_reason: str = ""
    unreadable_reason: str = ""
    earliest: datetime | None = None
    latest: datetime | None = None
    earliest_event: datetime | None = None
    scope: tuple[str, ...] = ()
    sums: Mapping[str, Decimal] = field(default_factory=dict)
    totals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A delivery of a load, and its batch as far as it is known.

    Attributes:
        number: Its index among the deliveries of the load, from 0.
        delivery: The delivery.
        batch: Its batch.
        channel: The channel that it comes by.
        column_mapping: How its columns are read; None before that is known.
        content: What its rows contain, once they are read.
        duplicate: How many earlier deliveries of the load have the same batch id.
        totals: The control totals of its argument or its file, as texts by name.
        changes_only: Whether only the rows are read that its version of a table inserted or updated.
    """

    number: int
    delivery: Delivery
    batch: Batch
    channel: Snapshot | Feed
    column_mapping: ColumnMapping | None = None
    content: BatchContent = BatchContent()
    duplicate: int = 0
    changes_only: bool = False
    totals: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, number: int, delivery: Delivery, dimension: Dimension, run_id: str) -> PendingDelivery:
        """Return a delivery as pending.

        Raises:
            SourceDataError: It does not fit the declaration of its channel.
        """
        batch = replace(delivery.batch(dimension), run_id=run_id)
        return cls(number, delivery, batch, delivery.declared_channel(dimension))

    @property
    def row_tag(self) -> str:
        """The text that its rows carry: the batch id, with a number if the load has the same batch twice."""
        return f"{self.batch.id}#{self.duplicate}" if self.duplicate else self.batch.id

    @property
    def is_read_by_path(self) -> bool:
        """Whether the delivery is files in the channel's format, not a frame or a part of a table."""
        is_in_table = self.channel.format == "delta" or self.delivery.partition is not None
        return self.delivery.frame is None and self.delivery.path is not None and not is_in_table

    @property
    def derives_scope(self) -> bool:
        """Whether its rows determine what it covers."""
        return bool(self.batch.scope_columns) and self.batch.scope is None

    @property
    def rejects_empty_scope(self) -> bool:
        """Whether it is rejected if it has no rows of a scope that it covers."""
        is_declared = isinstance(self.channel, Snapshot) and self.channel.empty_scope == "reject"
        return is_declared and not self.batch.withdrawn

    @property
    def empty_scope(self) -> tuple[str, ...]:
        """The scope values that it covers and has no rows of; that of a snapshot of everything is an empty text."""
        if self.batch.scope is None:
            return () if self.batch.rows else ("",)
        return tuple(value for value in self.batch.scope if value not in set(self.content.scope))

    def result(self, outcome: Outcome, rejection: BatchRejected | None = None) -> BatchResult:
        """Return its result, with the condition if there is a rejection."""
        batch = self.batch
        result = BatchResult(
            batch.id,
            batch.source,
            batch.channel,
            batch.delivery,
            outcome,
            batch.rows,
            batch.bad_rows,
            batch.new,
            batch.changed,
            batch.deleted,
            undeclared=self.column_mapping.undeclared if self.column_mapping else (),
            nulled_values=self.content.nulled,
            filtered_rows=self.content.filtered,
        )
        if rejection is None:
            return result
        return replace(
            result, code=rejection.code, problem=rejection.problem, fix=rejection.fix, details=rejection.details
        )
