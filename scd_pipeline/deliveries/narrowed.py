"""Read one snapshot together with the current rows, and keep only the rows that may change something.

A snapshot usually repeats most of what its source had asserted. If the current rows show that (`can_narrow`), one join
of the delivered with the current rows counts the repeated rows and drops them, so that no later step reads them. The
snapshot is read by this one query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CORRELATION_ID, EFFECTIVE_AT
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.batch_summary import (
    Summary,
    content_figures,
    position_figures,
    summary_of,
)
from scd_pipeline.deliveries.conform import batch_texts
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.expressions import col, constant_time
from scd_pipeline.frames import (
    checkpoint,
    checkpoint_observed,
    number_in_task,
    observe,
    observe_numbered,
    task_number,
    with_broadcast,
)
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.narrowing import (
    EXISTS_ALREADY,
    IS_DELIVERED,
    IS_NEW,
    can_narrow,
    compare_with_current_rows,
    covering_snapshots,
    current_rows,
    entities_with_refused_values,
)
from scd_pipeline.history.snapshots import BatchChanges

_REFUSES = "_refuses"


@dataclass(frozen=True, slots=True)
class AppliedState:
    """What a load compares snapshots with: a dimension that has applied its whole change log.

    Attributes:
        rows: The rows of the table that has the current versions.
        log_rows: The change records of the log.
        in_effect: The batches of the log that are in effect.
    """

    rows: DataFrame
    log_rows: DataFrame
    in_effect: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class NarrowedSnapshot:
    """A snapshot without the rows that repeat what its source had asserted.

    Attributes:
        rows: The other rows, and all bad rows, with the columns of `conform`.
        omitted: The business keys of the entities that exist, and that the snapshot covers and omits.
        summary: The figures of all rows, and the range of the keys that are left.
        row_limit: An upper bound of the rows in `rows` and `omitted`.
    """

    rows: DataFrame
    omitted: DataFrame
    summary: Summary
    row_limit: int


def can_read_narrowed(batch: Batch, stored: Sequence[Batch], state: AppliedState, dimension: Dimension) -> bool:
    """Return whether a delivery, the only one of a load, can be read together with the current rows.

    Its batch must not replace a stored one, and must not derive its scope from its rows, which are not known yet.

    Args:
        batch: The batch with its columns.
        stored: Every batch of the change log.
        state: The applied state.
        dimension: The declaration.
    """
    is_first_revision = batch.delivery_key not in {other.delivery_key for other in stored}
    has_known_scope = not batch.scope_columns or batch.scope is not None
    is_candidate = batch.is_snapshot and is_first_revision and has_known_scope
    return is_candidate and can_narrow(_changes(batch, state), state.in_effect, dimension)


def _changes(batch: Batch, state: AppliedState) -> BatchChanges:
    return BatchChanges((batch,), (), tuple(other for other in state.in_effect if other.is_snapshot))


def narrow_snapshot(
    rows: DataFrame, delivery: PendingDelivery, state: AppliedState, dimension: Dimension
) -> NarrowedSnapshot | None:
    """Join a snapshot with the current rows, and drop the rows that repeat what its source had asserted.

    The cost is one join of the delivered with the current rows.

    Args:
        rows: The rows of the snapshot with the columns of `conform`, not computed yet.
        delivery: The snapshot, for whose batch `can_read_narrowed` is true.
        state: The applied state.
        dimension: The declaration.

    Returns:
        None if several rows of the snapshot may have the business key of one current row: they have to be compared with
        each other (S5).
    """
    batch, names = delivery.batch, list(dimension.key_names)
    current, of_current = observe_numbered(current_rows(state.rows, dimension), _figures_of_current())
    constants = _constant_columns(batch, delivery.row_tag)
    changes = _changes(batch, state)
    compared = compare_with_current_rows(rows, current, changes, state.in_effect, dimension)
    compared = _with_refusals(compared.withColumns(constants), state, changes, dimension)
    is_delivered = F.col(IS_DELIVERED)
    is_omitted = ~is_delivered & (covering_snapshots(changes) > 0)
    remains = is_omitted | (is_delivered & (F.col(IS_NEW) | F.col(_REFUSES)))
    figures = {
        "matched": F.count_if(is_delivered & F.col(EXISTS_ALREADY)),
        "omitted": F.count_if(~is_delivered),
        "remaining": F.count_if(remains),
        **content_figures([delivery], dimension, is_delivered),
    }
    compared, of_all = observe(compared, figures)
    remaining, of_remaining = observe_numbered(compared.where(remains), position_figures(dimension))
    observed = (of_current, of_all, of_remaining)
    remaining, (counted, totals, positions) = checkpoint_observed(remaining.drop(*constants), *observed)
    if not _are_matched_once(counted, totals):
        return None
    added = (IS_DELIVERED, EXISTS_ALREADY, IS_NEW, _REFUSES)
    restored = remaining.where(IS_DELIVERED).withColumns(constants).drop(*added)
    omitted = remaining.where(~F.col(IS_DELIVERED)).select(*[col(name) for name in names])
    summary = summary_of({**totals, **positions}, [delivery], dimension)
    return NarrowedSnapshot(restored, omitted, summary, totals["remaining"] or 0)


def _constant_columns(batch: Batch, row_tag: str) -> dict[str, Column]:
    """Return the columns with the same value in all rows of a plain snapshot, which the join need not carry."""
    return {**batch_texts(batch, row_tag), EFFECTIVE_AT: constant_time(batch.at, F.col(CORRELATION_ID))}


def _figures_of_current() -> dict[str, Column]:
    """Return the number of current rows, of tasks that read some, and of these tasks without their repetitions."""
    tasks = F.count_if(number_in_task() == 0)
    return {"current": F.count(F.lit(1)), "tasks": tasks, "distinct": F.size(F.collect_set(task_number()))}


def _are_matched_once(of_current: Mapping[str, Any], totals: Mapping[str, Any]) -> bool:
    """Return whether each current row has at most one row of the snapshot; False if a repeated task was counted twice.

    The current rows are counted before the shuffle of the join.
    """
    current, tasks, distinct = (of_current[name] or 0 for name in ("current", "tasks", "distinct"))
    return bool(tasks == distinct and (totals["matched"] or 0) == current - (totals["omitted"] or 0))


def _with_refusals(compared: DataFrame, state: AppliedState, changes: BatchChanges, dimension: Dimension) -> DataFrame:
    """Add whether values of a type 0 attribute were refused: then the current row does not show what was asserted."""
    refused = entities_with_refused_values(state.log_rows, changes, dimension)
    if refused is None:
        return compared.withColumn(_REFUSES, F.lit(False))
    entities = checkpoint(refused.withColumn(_REFUSES, F.lit(True)))
    joined = compared.join(with_broadcast(entities, entities.count()), list(dimension.key_names), "left")
    return joined.withColumn(_REFUSES, F.coalesce(_REFUSES, F.lit(False)))
