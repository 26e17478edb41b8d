"""Deliveries of a load that are not accepted or rejected yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.result import BatchResult, Outcome
from scd_pipeline.errors import BatchRejected
from scd_pipeline.history.batch import Batch


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A delivery of a load, and its batch as far as it is known.

    Attributes:
        number: Its index among the deliveries of the load, from 0.
        delivery: The delivery.
        batch: Its batch.
        channel: The channel that it comes by.
        column_mapping: How its columns are read; None before that is known.
        tied_rows: The number of rows that have the key and the position of another row.
        bad_reason: The reason of one of its bad rows.
        unreadable_keys: The number of its rows whose business key cannot be read.
        unreadable_reason: The reason of one of these rows.
        nulled_values: The number of values that are NULL because they do not cast.
        filtered_rows: The number of rows that the channel's condition `rows` excludes.
        earliest_event: The earliest event time of a fact, if a declared unit reads it.
        duplicate: How many earlier deliveries of the load have the same batch id.
        changes_only: Whether only the rows are read that its version of a table inserted or updated.
    """

    number: int
    delivery: Delivery
    batch: Batch
    channel: Snapshot | Feed
    column_mapping: ColumnMapping | None = None
    tied_rows: int = 0
    bad_reason: str = ""
    unreadable_keys: int = 0
    unreadable_reason: str = ""
    nulled_values: int = 0
    filtered_rows: int = 0
    earliest_event: datetime | None = None
    duplicate: int = 0
    changes_only: bool = False

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
            nulled_values=self.nulled_values,
            filtered_rows=self.filtered_rows,
        )
        if rejection is None:
            return result
        return replace(
            result, code=rejection.code, problem=rejection.problem, fix=rejection.fix, details=rejection.details
        )
