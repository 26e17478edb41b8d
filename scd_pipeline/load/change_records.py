"""Which statements a load keeps: snapshots against what they find, guards, and counts per batch."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD_REASON, BATCH, COMMIT, KIND, ROW_AT, ROW_SEQUENCE, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.accept import Taken
from scd_pipeline.deliveries.conform import OUTSIDE_SCOPE
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.batch import Batch, batches_in_effect
from scd_pipeline.history.differences import DIFFERS, ORIGIN, VERSION_DIFFERS, records_to_store
from scd_pipeline.history.existence import ASSERTED_BEFORE, EXISTED_BEFORE
from scd_pipeline.history.snapshots import BatchChanges
from scd_pipeline.load.log import of_batches, records_in_effect


def records_to_append(
    warehouse: Warehouse, log: ChangeLog, old: Sequence[Batch], taken: Taken, dimension: Dimension
) -> tuple[DataFrame | None, Taken]:
    """The statements to append, and what was taken with its counts; a guarded snapshot is left out (S27).

    Batches go by position: where some are stopped, the others are looked at again without them.
    """
    while taken.accepted or taken.removed:
        kept = _kept_once(warehouse, log, old, taken, dimension)
        counted_in = taken.with_counts(_change_counts(kept, dimension))
        guarded = counted_in.guarded(dimension)
        if not guarded:
            return kept, counted_in
        taken = counted_in.without(guarded)
    return None, taken


def _kept_once(
    warehouse: Warehouse, log: ChangeLog, old: Sequence[Batch], taken: Taken, dimension: Dimension
) -> DataFrame:
    sources = sorted({batch.source for batch in (*taken.accepted, *taken.removed)})
    removed_ids = {batch.records_batch_id for batch in taken.removed}
    stored = records_in_effect(log, old).where(F.col(SOURCE).isin(sources)).drop(COMMIT)
    intake = BatchChanges(
        new=taken.accepted,
        removed=taken.removed,
        stored_snapshots=tuple(
            b for b in batches_in_effect(list(old)) if b.is_snapshot and b.records_batch_id not in removed_ids
        ),
    )
    raw = taken.statements()
    if raw is None:
        raw = stored.limit(0)
    if not intake.new_snapshots:
        keys = [col(name) for name in dimension.key_names]
        spoken = raw.select(*keys).unionByName(of_batches(stored, removed_ids).select(*keys)).distinct()
        stored = stored.join(F.broadcast(spoken), list(dimension.key_names), "left_semi")
    return checkpoint(records_to_store(warehouse.spark, stored, raw, intake, dimension, checkpoint))


def _change_counts(kept: DataFrame, dimension: Dimension) -> dict[str, dict[str, int]]:
    """Per batch: statements by which entities are new, changed, closed and retired, and versions end anew.

    For the guard also how many entities of the batch were asserted to exist before it, by others (S27): all that it
    has but the `unasserted` ones in a plain snapshot, `asserted_present` in a row-timed one, and in both
    `asserted_bad`, those that it has bad rows of alone.
    """
    raw, exists, asserted = F.col(ORIGIN) == "raw", F.col(EXISTED_BEFORE), F.col(ASSERTED_BEFORE)
    values = raw & (F.col(KIND) == "upsert")
    gone = F.col(KIND) == "delete"
    counts = {
        "new": values & ~exists,
        "changed": values & exists & F.col(DIFFERS),
        "closed": gone & exists & F.col(ORIGIN).isin("raw", "absent"),
        "reopened": values & exists & F.col(VERSION_DIFFERS),
        "retired": gone & (F.col(ORIGIN) == "absent"),
        "unasserted": values & ~asserted,
    }
    inside = ~F.coalesce(F.col(BAD_REASON), F.lit("")).contains(OUTSIDE_SCOPE)
    # Of several rows of an entity the first one's presence makes the next ones' asserted.
    present = F.min(F.when(raw & (F.col(KIND) == "presence"), asserted))
    bad = F.max(F.when(raw & (F.col(KIND) == "bad") & inside, asserted))
    entities = kept.groupBy(BATCH, *[col(name) for name in dimension.key_names]).agg(
        *[F.sum(flag.cast("int")).alias(f"_{name}") for name, flag in counts.items()],
        F.max(values).alias("_values"),
        F.coalesce(present, F.lit(False)).alias("_present"),
        F.coalesce(bad, F.lit(False)).alias("_bad"),
    )
    asserted_by = {
        "asserted_present": F.col("_present"),
        "asserted_bad": F.col("_bad") & ~F.col("_values"),
    }
    sums = [F.sum(f"_{name}").cast("bigint").alias(name) for name in counts]
    sums += [F.sum(flag.cast("int")).cast("bigint").alias(name) for name, flag in asserted_by.items()]
    rows = entities.groupBy(BATCH).agg(*sums).collect()
    return {row[BATCH]: {name: int(row[name] or 0) for name in (*counts, *asserted_by)} for row in rows}


def to_append(kept: DataFrame | None, taken: Taken) -> DataFrame:
    """Everything that goes into the log beside the batches: kept statements, and bad rows without a key."""
    unreadable = taken.unreadable()
    if kept is None:
        return unreadable
    looked_at = (ORIGIN, EXISTED_BEFORE, ASSERTED_BEFORE, DIFFERS, VERSION_DIFFERS, ROW_AT, ROW_SEQUENCE)
    columns = [name for name in kept.columns if name not in looked_at]
    told = kept.where(F.col(KIND) != "presence").select(*[col(name) for name in columns])
    return told.unionByName(unreadable.select(*[col(name) for name in columns]))
