"""Where everything stands: of each source its last delivery and what waits, of each table how far it is behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scd_pipeline.batch import counted, rank, utc
from scd_pipeline.columns import BATCH, KIND
from scd_pipeline.delta.audit_table import AUDIT_SUFFIX
from scd_pipeline.delta.commits import OwnCommit
from scd_pipeline.facts import pin
from scd_pipeline.landing import deliveries
from scd_pipeline.plan import dimension_took, open_log
from scd_pipeline.spec import Dimension, Fact
from scd_pipeline.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of one table.

    `last` is the time of its last delivery that counts, `age` how long ago that was; `waiting` are deliveries that lie
    there and are not in: they have come, or were replaced, since the last load, or were stopped.
    """

    table: str
    source: str
    batches: int
    last_delivery: str
    last: datetime | None
    age: timedelta | None
    waiting: tuple[str, ...]
    quarantined: int


@dataclass(frozen=True, slots=True)
class TableStatus:
    """How many commits of the log a table has not taken in, and how many of the dimensions a fact has not."""

    table: str
    commits: int
    lag: int
    audit_lag: int
    dimensions_behind: tuple[str, ...] = ()


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
        sources += status_of_sources(warehouse, shape, now)
        tables.append(_table(warehouse, shape, fact))
    return Status(tuple(sources), tuple(tables))


def status_of_sources(warehouse: Warehouse, dimension: Dimension, now: datetime) -> list[SourceStatus]:
    """Where the sources of one dimension or fact stand at `now`."""
    log = open_log(warehouse, dimension)
    known = log.batches()
    standing = counted(known)
    quarantined: dict[str, int] = {}
    if log.is_there:
        bad = log.table.read().where(f"{KIND} = 'bad'").groupBy(BATCH).count().collect()
        quarantined = {row[BATCH]: int(row["count"]) for row in bad}
    accepted = {batch.id for batch in known}
    found = deliveries(dimension, warehouse.spark)
    told = []
    for source in dimension.sources:
        mine = [batch for batch in standing if batch.source == source.name]
        last = max(mine, key=lambda b: (utc(b.latest or b.at or datetime.min), rank(b.delivery)), default=None)
        at = utc(last.at) if last is not None and last.at is not None else None
        waiting = [d.name for d in found if d.source == source.name and d.batch(dimension).id not in accepted]
        told.append(
            SourceStatus(
                dimension.name,
                source.name,
                len(mine),
                last.delivery if last else "",
                at,
                utc(now) - at if at else None,
                tuple(waiting),
                sum(quarantined.get(batch.statements_of, 0) for batch in mine),
            )
        )
    return told


def _table(warehouse: Warehouse, dimension: Dimension, fact: Fact | None) -> TableStatus:
    log = open_log(warehouse, dimension)
    table = warehouse.table(dimension.name)
    commit = table.last_commit() if table.exists() else OwnCommit(dimension.name, 0)
    took = dimension_took(log, commit)
    audit = warehouse.table(dimension.name + AUDIT_SUFFIX)
    recorded = audit.last_commit().took.get("log", 0) if fact is None and audit.exists() else 0
    behind = []
    for of in fact.dimensions if fact else ():
        if pin(warehouse, of).took[of.name] > commit.took.get(of.name, 0):
            behind.append(of.name)
    audit_lag = 0 if fact else max(0, took - recorded)
    return TableStatus(dimension.name, commit.number, log.commit.number - took, audit_lag, tuple(behind))
