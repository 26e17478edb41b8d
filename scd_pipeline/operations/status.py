"""Where everything stands: of each source its last delivery and what waits, of each table how far it is behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scd_pipeline.columns import BATCH, KIND
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import select_deliveries
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.upstream import damage
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ScdError
from scd_pipeline.history.batch import Batch, batches_in_effect, rank
from scd_pipeline.instants import to_utc
from scd_pipeline.load.facts import pin_dimensions
from scd_pipeline.load.keys import recorded_commits
from scd_pipeline.load.log import log_high_water_mark, open_log
from scd_pipeline.load.run import plan


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of one table.

    `last` is the time of its last delivery that counts, or that at which it came in where it has none, and `age` how
    long ago that was; `waiting` are deliveries that lie there and are not in: they have come, or were replaced, since
    the last load. `stopped` are those of them that a load would leave out, with why, or what keeps all of it out.
    """

    table: str
    source: str
    batches: int
    last_delivery: str
    last: datetime | None
    age: timedelta | None
    waiting: tuple[str, ...]
    rejected: tuple[str, ...]
    quarantined: int


@dataclass(frozen=True, slots=True)
class TableStatus:
    """How many commits of the log a table has not taken in, and how many of the dimensions a fact has not.

    `damage` says what another program changed in its tables, or what they have lost, and the way back; until then every
    load is rejected.
    """

    table: str
    commits: int
    lag: int
    audit_lag: int
    dimensions_behind: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is declared."""

    sources: tuple[SourceStatus, ...]
    tables: tuple[TableStatus, ...]


def status(warehouse: Warehouse, dimensions: Sequence[Dimension], facts: Sequence[Fact], *, now: datetime) -> Status:
    """Where everything stands at `now`, which the caller tells."""
    shapes: list[tuple[Dimension, Fact | None]] = [(dimension, None) for dimension in dimensions]
    shapes += [(fact.as_dimension(), fact) for fact in facts]
    sources: list[SourceStatus] = []
    tables: list[TableStatus] = []
    for shape, fact in shapes:
        sources += _sources(warehouse, shape, fact, now)
        tables.append(_table(warehouse, shape, fact))
    return Status(tuple(sources), tuple(tables))


def last_deliveries(warehouse: Warehouse, dimension: Dimension) -> dict[str, tuple[str, datetime | None]]:
    """By source the last delivery that counts of a dimension, or of a fact's shape, and its time as `SourceStatus` has.

    A source of which nothing counts yet is left out. Only the log is read, and no delivery.
    """
    log = open_log(warehouse, dimension)
    return _last(log, log.committed_batches())


def _last(log: ChangeLog, committed: Sequence[tuple[int, Batch]]) -> dict[str, tuple[str, datetime | None]]:
    commits: dict[int, datetime | None] = {}
    if any(batch.at is None for _, batch in committed):
        commits = {commit.number: commit.at for commit in log.table.commits_since(0)}
    came = {batch.id: batch.at or commits.get(number) for number, batch in committed}
    current_revisions = batches_in_effect([batch for _, batch in committed])
    in_order = sorted(current_revisions, key=lambda b: (to_utc(came[b.id] or datetime.min), rank(b.delivery)))
    return {b.source: (b.delivery, to_utc(at) if (at := came[b.id]) else None) for b in in_order}


def _sources(warehouse: Warehouse, dimension: Dimension, fact: Fact | None, now: datetime) -> list[SourceStatus]:
    log = open_log(warehouse, dimension)
    committed = log.committed_batches()
    known = [batch for _, batch in committed]
    current_revisions, last = batches_in_effect(known), _last(log, committed)
    quarantined: dict[str, int] = {}
    if log.stored is not None:
        bad = log.stored.where(f"{KIND} = 'bad'").groupBy(BATCH).count().collect()
        quarantined = {row[BATCH]: int(row["count"]) for row in bad}
    accepted = {batch.id for batch in known}
    lying, rejected, wrong = _waiting(warehouse, dimension, fact, accepted)
    told = []
    for source in dimension.sources:
        mine = [batch for batch in current_revisions if batch.source == source.name]
        delivery, at = last.get(source.name, ("", None))
        told.append(
            SourceStatus(
                dimension.name,
                source.name,
                len(mine),
                delivery,
                at,
                to_utc(now) - at if at else None,
                tuple(d.name for d in lying if d.source == source.name),
                (*wrong, *(f"{b.delivery} [{b.code}]: {b.problem}" for b in rejected if b.source == source.name)),
                sum(quarantined.get(batch.records_batch_id, 0) for batch in mine),
            )
        )
    return told


def _waiting(
    warehouse: Warehouse, dimension: Dimension, fact: Fact | None, accepted: Collection[str]
) -> tuple[list[Delivery], list[BatchResult], list[str]]:
    """The deliveries that are not in, what a load of them would leave out, and why there would be none at all.

    What is wrong with one table keeps nobody from hearing of the others.
    """
    lying: list[Delivery] = []
    try:
        lying = [d for d in select_deliveries(dimension, warehouse.spark) if d.batch(dimension).id not in accepted]
        if not lying:
            return [], [], []
        made = plan(warehouse, fact or dimension, lying)
    except ScdError as error:
        return lying, [], [f"everything: {error}"]
    return lying, [result for result in made.results if result.outcome == "rejected"], []


def _table(warehouse: Warehouse, dimension: Dimension, fact: Fact | None) -> TableStatus:
    # The downstream tables are read before their upstream, which a load between can only move ahead.
    recorded_by = recorded_commits(warehouse, dimension) if fact is None else None  # a fact has no audit
    commit = warehouse.table(dimension.name).last_commit_or_zero()
    pinned = pin_dimensions(warehouse, fact) if fact else {}
    log = open_log(warehouse, dimension)
    high_water_marks = log_high_water_mark(log.commit, commit)
    recorded = recorded_by.audit.applied(log.table.name).commit if recorded_by else high_water_marks
    behind = [name for name, dimension_at in pinned.items() if dimension_at.is_newer_than(commit)]
    # A commit that only repeats the one before, as upkeep makes them, brings nothing to be taken in.
    brought = (
        [c.number for c in log.table.commits_since(min(high_water_marks, recorded)) if c.batches]
        if log.is_there
        else []
    )
    lag = sum(number > high_water_marks for number in brought)
    audit_lag = sum(recorded < number <= high_water_marks for number in brought)
    errors = damage(log.commit, [commit, *([recorded_by.audit] if recorded_by else [])])
    errors += recorded_by.damage() if recorded_by else []
    errors += [error for at in pinned.values() for error in at.damage(commit)]
    messages = tuple(dict.fromkeys(str(error) for error in errors))
    return TableStatus(dimension.name, commit.number, lag, audit_lag, tuple(behind), messages)
