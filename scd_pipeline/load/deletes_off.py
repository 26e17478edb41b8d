"""The warning that snapshots of a source delete no entities, because keys of their rows cannot be read (S27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BAD_REASON, BATCH, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.intake import IntakeResult
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.errors import LoadWarning
from scd_pipeline.expressions import any_of, col
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.deletes import DeletesOff, deletes_off
from scd_pipeline.texts import pluralize


class _UnreadableRows(NamedTuple):
    """The number of rows whose key cannot be read, and the reason of one of them."""

    rows: int
    reason: str


def warnings_of_load(intake: IntakeResult) -> tuple[LoadWarning, ...]:
    """Return the warning if deletes are off after a load, from what the load has read; there is no query.

    The reason is that of a row in the last snapshot, if the load has read it.
    """
    dimension = intake.dimension
    off = deletes_off(intake.all_batches, dimension.existence_source.name)
    if off is None:
        return ()
    read = {delivery.batch.id: delivery for delivery in intake.decisions.accepted}
    delivery = read.get(off.last.records_batch_id)
    if delivery is None:
        return (_warning(dimension, off, _UnreadableRows(off.last.bad_rows, "")),)
    unreadable = _UnreadableRows(delivery.content.unreadable, delivery.content.unreadable_reason)
    return (_warning(dimension, off, unreadable),)


def warnings_of_log(log: ChangeLog, batches: Sequence[Batch], dimension: Dimension) -> tuple[LoadWarning, ...]:
    """Return the warning if deletes are off according to the log; there is one query if they are.

    Args:
        log: The change log.
        batches: All of its batches.
        dimension: The declaration.
    """
    off = deletes_off(batches, dimension.existence_source.name)
    if off is None or log.stored is None:
        return ()
    has_no_key = any_of([col(name).isNull() for name in dimension.key_names])
    bad = log.stored.where((F.col(KIND) == BAD) & (F.col(BATCH) == off.last.records_batch_id) & has_no_key)
    (row,) = bad.agg(F.count(F.lit(1)).alias("rows"), F.min(BAD_REASON).alias("reason")).collect()
    return (_warning(dimension, off, _UnreadableRows(row["rows"], row["reason"] or "")),)


def _warning(dimension: Dimension, off: DeletesOff, unreadable: _UnreadableRows) -> LoadWarning:
    details = {
        "since": off.first.delivery,
        "count": pluralize(off.count, "snapshot"),
        "rows": pluralize(unreadable.rows, "row"),
        "last": off.last.delivery,
        "example": f", for example: {unreadable.reason}" if unreadable.reason else "",
    }
    return LoadWarning("DELETES_OFF", f"{dimension.name}.{off.first.source}", details)
