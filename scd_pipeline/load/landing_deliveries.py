"""The deliveries of a landing table that is a source: the changes of its rows at each time of its deliveries (S38)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import COMMIT, CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension, LandingTable, Source
from scd_pipeline.declaration.attribute import ScdType
from scd_pipeline.declaration.source import TIMED_DELETE, TIMED_DELIVERY, TIMED_FEED
from scd_pipeline.declaration.times import to_datetime
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.batch import Batch, DeliveryKey, batches_in_effect
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.timeline import build_timeline
from scd_pipeline.instants import time_name, to_micros
from scd_pipeline.load.log import read_log, records_in_effect
from scd_pipeline.timed.changes import changes_by_key
from scd_pipeline.timed.evaluate import FROM, TO


def landing_deliveries(warehouse: Warehouse, dimension: Dimension, run_id: str | None = None) -> list[Delivery]:
    """Return the deliveries of the landing tables that are sources of a dimension.

    Each time of the deliveries in effect is a delivery of the changes at this time: late, revised and withdrawn
    deliveries change the rows of their times and of later ones, whenever they arrived. Its revision is the last commit
    of the change log that concerns this time or an earlier one. The deliveries of times that no delivery has any more
    are withdrawn. All rows are those of one version of the change log: of the last commit of the run, if that has
    committed to it, otherwise of the newest commit. They are computed if one of the deliveries is not loaded.

    A landing table without a change log has no deliveries: it is not loaded yet, or it was dropped.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        run_id: The run that loads the dimension.
    """
    landed = [(source, source.landing_table) for source in dimension.sources if source.landing_table is not None]
    return [each for source, table in landed for each in _deliveries(warehouse, dimension, source, table, run_id)]


def _deliveries(
    warehouse: Warehouse, dimension: Dimension, source: Source, table: LandingTable, run_id: str | None
) -> list[Delivery]:
    log = read_log(warehouse, table.as_dimension())
    if not log.exists:
        return []
    loaded = [
        batch
        for batch in read_log(warehouse, dimension).batches()
        if (batch.source, batch.channel) == (source.name, TIMED_FEED.name)
    ]
    committed = log.committed_batches()
    last = _last_commit(committed, loaded, run_id, log.commit.number)
    log, committed = log.until(last), [each for each in committed if each[0] <= last]
    batches = [batch for _, batch in committed]
    times = sorted({batch.at for batch in batches_in_effect(batches) if batch.at is not None})
    revisions = _revisions(committed)
    deliveries = [
        Delivery(
            source.name,
            time_name(time),
            TIMED_FEED.name,
            at=time,
            revision=max(commit for since, commit in revisions if since <= time),
            partition=str(to_micros(time)),
            sealed=True,
            is_overwritten_in_place=True,
        )
        for time in times
    ]
    frame = _changes(log, dimension, source, table, batches)
    if {(each.name, str(each.revision)) for each in deliveries} - {(each.delivery, each.revision) for each in loaded}:
        frame = checkpoint(frame)  # its plan is too deep to be read as a part of another one
    removed = {batch.delivery for batch in batches_in_effect(loaded)} - {each.name for each in deliveries}
    withdrawn = [
        Delivery(source.name, name, TIMED_FEED.name, revision=last, withdrawn=True, is_overwritten_in_place=True)
        for name in sorted(removed)
    ]
    return [*(replace(each, frame=frame) for each in deliveries), *withdrawn]


def _last_commit(
    committed: Sequence[tuple[int, Batch]], loaded: Sequence[Batch], run_id: str | None, newest: int
) -> int:
    """Return the number of the last commit of a landing table's change log that a load of a dimension reads.

    It is that of the run, if that has committed, although another run may have committed since then. A dimension that
    has read a later commit never returns to an earlier one: the revisions of its deliveries are numbers of commits.

    Args:
        committed: All batches of the change log, each with the number of its commit.
        loaded: The deliveries that the dimension has loaded from the landing table.
        run_id: The run; None for the newest commit.
        newest: The number of the newest commit.
    """
    last = max((number for number, batch in committed if batch.run_id == run_id), default=newest)
    return min(newest, max([last, *(int(batch.revision) for batch in loaded)]))


def _revisions(batches: Sequence[tuple[int, Batch]]) -> list[tuple[datetime, int]]:
    """Return for each batch the earliest time at which it changes rows, and the number of its commit.

    A revision changes the rows of its own time, and those of the time that its delivery had before.
    """
    earliest: dict[DeliveryKey, datetime] = {}
    revisions = []
    for commit, batch in sorted(batches, key=lambda each: each[0]):
        times = [time for time in (batch.at, earliest.get(batch.delivery_key)) if time is not None]
        if times:
            earliest[batch.delivery_key] = min(times)
            revisions.append((min(times), commit))
    return revisions


def _changes(
    log: ChangeLog, dimension: Dimension, source: Source, table: LandingTable, batches: Sequence[Batch]
) -> DataFrame:
    """Return the rows of the landing table at each time at which they change, by the business key of the dimension."""
    states = _states(log, batches)
    names = [*log.dimension.delivered_key_names, *log.dimension.attribute_names]
    if table.disposition == "append":
        # The rows of a delivery remain: the last one with a business key is in force.
        at = F.unix_micros(FROM).cast("string").alias(TIMED_DELIVERY)
        return states.select(*map(col, names), at, F.lit(False).alias(TIMED_DELETE))
    key = [source.column(name).from_[0] for name in dimension.delivered_key_names if source.column(name).from_]
    start = to_micros(to_datetime(dimension.earliest_time)) // 1000
    return changes_by_key(states, names, key, start)


def _states(log: ChangeLog, batches: Sequence[Batch]) -> DataFrame:
    """Return the rows of a landing table, each in its window: `FROM`, and `TO`, NULL while it is open."""
    tracked = [replace(attribute, scd=ScdType.ADD_ROW) for attribute in log.dimension.attributes]
    dimension = replace(log.dimension, attributes=tuple(tracked), mirror=None, deleted_rows="keep")
    records = records_in_effect(log.rows(), batches).drop(COMMIT)
    kinds = SnapshotKinds.from_batches(batches, log.dimension)
    versions = build_timeline(records, dimension, kinds=kinds)
    end = F.when(~F.col(CURRENT_FLAG), F.col(EFFECTIVE_TO))
    names = [*dimension.delivered_key_names, *dimension.attribute_names]
    return versions.select(*map(col, names), F.col(EFFECTIVE_FROM).alias(FROM), end.alias(TO))
