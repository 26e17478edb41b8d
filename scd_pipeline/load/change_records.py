"""The change records that a load appends: compare accepted batches with the log, count, apply the retire guard."""

from __future__ import annotations

from dataclasses import fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD_REASON, BATCH, COMMIT, KIND, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.accept import IntakeResult
from scd_pipeline.deliveries.conform import OUTSIDE_SCOPE
from scd_pipeline.deliveries.result import ChangeCounts
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.batch import batches_in_effect
from scd_pipeline.history.differences import DIFFERS, ORIGIN, VERSION_DIFFERS, records_to_store
from scd_pipeline.history.existence import ASSERTED_BEFORE, EXISTED_BEFORE
from scd_pipeline.history.snapshots import BatchChanges
from scd_pipeline.load.log import records_in_batches, records_in_effect
from scd_pipeline.load.state import StoredState

_COMPARISON_COLUMNS = (
    ORIGIN,
    EXISTED_BEFORE,
    ASSERTED_BEFORE,
    DIFFERS,
    VERSION_DIFFERS,
    "_row_at",
    "_row_sequence",
)


def compare_with_log(
    warehouse: Warehouse, state: StoredState, intake: IntakeResult
) -> tuple[DataFrame | None, IntakeResult]:
    """Return the change records to append, and the intake with its counts, without guarded snapshots (S27).

    Batches are compared in the order of their positions. A rejected batch changes what the later ones are compared
    with, so the others are compared again without it.

    Returns:
        The change records with the columns of the comparison; None if no batch is accepted or removed.
    """
    while intake.accepted or intake.removed:
        records = _compare_once(warehouse, state, intake)
        compared = intake.with_counts(_count_changes(records, state.dimension))
        rejections = compared.rejected_by_retire_guard()
        if not rejections:
            return records, compared
        intake = compared.without(rejections)
    return None, intake


def _compare_once(warehouse: Warehouse, state: StoredState, intake: IntakeResult) -> DataFrame:
    sources = sorted({batch.source for batch in (*intake.accepted, *intake.removed)})
    removed_ids = {batch.records_batch_id for batch in intake.removed}
    stored = records_in_effect(state.log, state.batches).where(F.col(SOURCE).isin(sources)).drop(COMMIT)
    in_effect = batches_in_effect(list(state.batches))
    compared = BatchChanges(
        new=intake.accepted,
        removed=intake.removed,
        stored_snapshots=tuple(b for b in in_effect if b.is_snapshot and b.records_batch_id not in removed_ids),
    )
    delivered = intake.change_records()
    if delivered is None:
        delivered = stored.limit(0)
    if not compared.new_snapshots:
        names = list(state.dimension.key_names)
        keys = [col(name) for name in names]
        concerned = (
            delivered.select(*keys).unionByName(records_in_batches(stored, removed_ids).select(*keys)).distinct()
        )
        stored = stored.join(F.broadcast(concerned), names, "left_semi")
    return checkpoint(records_to_store(warehouse.spark, stored, delivered, compared, state.dimension, checkpoint))


def _count_changes(records: DataFrame, dimension: Dimension) -> dict[str, ChangeCounts]:
    """Return the counts of each batch, by its id (`ChangeCounts`)."""
    delivered = F.col(ORIGIN) == "raw"
    existed, asserted = F.col(EXISTED_BEFORE), F.col(ASSERTED_BEFORE)
    upserts, deletes = delivered & (F.col(KIND) == "upsert"), F.col(KIND) == "delete"
    flags = {
        "new": upserts & ~existed,
        "changed": upserts & existed & F.col(DIFFERS),
        "closed": deletes & existed & F.col(ORIGIN).isin("raw", "absent"),
        "reopened": upserts & existed & F.col(VERSION_DIFFERS),
        "retired": deletes & (F.col(ORIGIN) == "absent"),
        "unasserted": upserts & ~asserted,
    }
    is_inside = ~F.coalesce(F.col(BAD_REASON), F.lit("")).contains(OUTSIDE_SCOPE)
    # Of several rows of an entity, the presence of the first one asserts the existence for the next ones.
    present = F.min(F.when(delivered & (F.col(KIND) == "presence"), asserted))
    bad = F.max(F.when(delivered & (F.col(KIND) == "bad") & is_inside, asserted))
    entities = records.groupBy(BATCH, *[col(name) for name in dimension.key_names]).agg(
        *[F.sum(flag.cast("int")).alias(f"_{name}") for name, flag in flags.items()],
        F.max(upserts).alias("_upserts"),
        F.coalesce(present, F.lit(False)).alias("_present"),
        F.coalesce(bad, F.lit(False)).alias("_bad"),
    )
    by_entity = {
        "asserted_present": F.col("_present"),
        "asserted_bad": F.col("_bad") & ~F.col("_upserts"),
    }
    sums = [F.sum(f"_{name}").cast("bigint").alias(name) for name in flags]
    sums += [F.sum(flag.cast("int")).cast("bigint").alias(name) for name, flag in by_entity.items()]
    names = [field.name for field in fields(ChangeCounts)]
    rows = entities.groupBy(BATCH).agg(*sums).collect()
    return {row[BATCH]: ChangeCounts(**{name: int(row[name] or 0) for name in names}) for row in rows}


def rows_to_append(records: DataFrame | None, intake: IntakeResult) -> DataFrame:
    """Return the rows that the log gets in addition to its batches: change records, and bad rows without a key."""
    unreadable = intake.rows_without_key()
    if records is None:
        return unreadable
    columns = [col(name) for name in records.columns if name not in _COMPARISON_COLUMNS]
    stored = records.where(F.col(KIND) != "presence").select(*columns)
    return stored.unionByName(unreadable.select(*columns))
