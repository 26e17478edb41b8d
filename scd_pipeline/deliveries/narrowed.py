"""Read one snapshot together with the current rows, and keep only the rows that may change something.

A snapshot usually repeats most of what its source had asserted. If the current rows show that (`can_narrow`), one join
of the delivered with the current rows counts the repeated rows and drops them, so that no later step reads them. The
snapshot is read by this one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CORRELATION_ID, EFFECTIVE_AT
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.conform import batch_texts
from scd_pipeline.deliveries.hash_sums import hash_halves, hash_sum
from scd_pipeline.deliveries.row_columns import HASH, NULLED
from scd_pipeline.expressions import col, constant_time
from scd_pipeline.frames import checkpoint, checkpoint_with_counts, with_broadcast
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
class RepeatedRows:
    """The rows of a snapshot that repeat what its source had asserted: one upsert of each of their entities.

    Attributes:
        rows: Their number.
        hash: The sum of their content hashes.
        nulled: The number of their values that are NULL because they do not cast.
    """

    rows: int
    hash: int
    nulled: int


@dataclass(frozen=True, slots=True)
class NarrowedSnapshot:
    """A snapshot without the rows that repeat what its source had asserted.

    Attributes:
        rows: The other rows, and all bad rows, with the columns of `conform`.
        omitted: The business keys of the entities that exist, and that the snapshot covers and omits.
        repeated: The rows that were dropped.
        row_limit: An upper bound of the rows in `rows` and `omitted`.
    """

    rows: DataFrame
    omitted: DataFrame
    repeated: RepeatedRows
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
    rows: DataFrame, batch: Batch, state: AppliedState, dimension: Dimension
) -> NarrowedSnapshot | None:
    """Join a snapshot with the current rows, and drop the rows that repeat what its source had asserted.

    The cost is one join of the delivered with the current rows, and one scan of the columns by which the current rows
    are counted.

    Args:
        rows: The rows of the snapshot with the columns of `conform`, not computed yet.
        batch: Its batch, for which `can_read_narrowed` is true.
        state: The applied state.
        dimension: The declaration.

    Returns:
        None if several rows of the snapshot have the business key of one current row: they have to be compared with
        each other (S5).
    """
    current, names = current_rows(state.rows, dimension), list(dimension.key_names)
    constants = _constant_columns(batch)
    changes = _changes(batch, state)
    compared = compare_with_current_rows(rows, current, changes, state.in_effect, dimension)
    compared = _with_refusals(compared.drop(*constants), state, changes, dimension)
    is_repeated = F.col(IS_DELIVERED) & ~F.col(IS_NEW) & ~F.col(_REFUSES)
    is_omitted = ~F.col(IS_DELIVERED) & (covering_snapshots(changes) > 0)
    remains = is_omitted | (F.col(IS_DELIVERED) & ~is_repeated)
    with ThreadPoolExecutor(max_workers=1) as background:
        current_count = background.submit(current.count)
        remaining, figures = checkpoint_with_counts(compared, _counts(is_repeated), remains)
    if figures["matched"] != current_count.result() - figures["omitted"]:
        return None
    added = (IS_DELIVERED, EXISTS_ALREADY, IS_NEW, _REFUSES)
    restored = remaining.where(IS_DELIVERED).withColumns(constants).drop(*added)
    repeated = RepeatedRows(figures["rows"], hash_sum(figures), figures["nulled"])
    omitted = remaining.where(~F.col(IS_DELIVERED)).select(*[col(name) for name in names])
    return NarrowedSnapshot(restored, omitted, repeated, figures["remaining"])


def _constant_columns(batch: Batch) -> dict[str, Column]:
    """Return the columns with the same value in all rows of a plain snapshot, which the join need not carry."""
    return {**batch_texts(batch, batch.id), EFFECTIVE_AT: constant_time(batch.at, F.col(CORRELATION_ID))}


def _with_refusals(compared: DataFrame, state: AppliedState, changes: BatchChanges, dimension: Dimension) -> DataFrame:
    """Add whether values of a type 0 attribute were refused: then the current row does not show what was asserted."""
    refused = entities_with_refused_values(state.log_rows, changes, dimension)
    if refused is None:
        return compared.withColumn(_REFUSES, F.lit(False))
    entities = checkpoint(refused.withColumn(_REFUSES, F.lit(True)))
    joined = compared.join(with_broadcast(entities, entities.count()), list(dimension.key_names), "left")
    return joined.withColumn(_REFUSES, F.coalesce(_REFUSES, F.lit(False)))


def _counts(is_repeated: Column) -> dict[str, Column]:
    """Return the number of matched, omitted, remaining and repeated rows, and the sums of the repeated ones."""
    is_delivered, content = F.col(IS_DELIVERED), F.when(is_repeated, F.col(HASH))
    return {
        "matched": F.count_if(is_delivered & F.col(EXISTS_ALREADY)),
        "omitted": F.count_if(~is_delivered),
        "remaining": F.count_if(~is_repeated),
        "rows": F.count_if(is_repeated),
        "nulled": F.sum(F.when(is_repeated, F.col(NULLED))),
        **hash_halves(content),
    }
