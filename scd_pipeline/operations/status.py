"""The status of everything declared: last and pending deliveries of each source, and the lag of each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from scd_pipeline.columns import BAD, BATCH, KIND
from scd_pipeline.declaration import DeclaredTable, Dimension, Fact
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX
from scd_pipeline.deliveries.accept import pending_deliveries
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import select
from scd_pipeline.deliveries.near_matches import NearMatches
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.data_files import missing_files_errors, missing_files_reported
from scd_pipeline.delta.history_table import history_error
from scd_pipeline.delta.upstream import damage
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import LoadWarning, ScdError
from scd_pipeline.expressions import any_of, col
from scd_pipeline.history.batch import Batch, batches_in_effect, rank
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.instants import to_utc
from scd_pipeline.load.deletes_off import warnings_of_log
from scd_pipeline.load.facts import PinnedDimension, pin_dimensions
from scd_pipeline.load.log import log_high_water_mark, read_log
from scd_pipeline.load.run import plan
from scd_pipeline.load.session_settings import running_queries
from scd_pipeline.load.source_deliveries import stored_deliveries


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The status of one source of one table.

    Attributes:
        table: The dimension or fact.
        source: The name of the source.
        batches: The number of batches in effect.
        last_delivery: The name of the last delivery in effect; empty without one.
        last: The time of that delivery, or that of its load if it has no time.
        age: How long ago that was.
        pending: Available deliveries that are new or were replaced since the last load.
        rejected: Those of them that a load would reject, each with the code and the problem, or the error that prevents
            the whole load; None if the pending deliveries were not read.
        quarantined: The number of bad rows of the batches in effect.
        warnings: What needs attention, such as files whose names nearly match the path of a channel.
    """

    table: str
    source: str
    batches: int
    last_delivery: str
    last: datetime | None
    age: timedelta | None
    pending: tuple[str, ...]
    rejected: tuple[str, ...] | None
    quarantined: int
    warnings: tuple[LoadWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The status of one dimension or fact.

    Attributes:
        table: The dimension or fact.
        commits: The number of its pipeline commits.
        lag: The number of commits of the log that the table has not applied.
        audit_lag: The number of commits that the table has applied and the audit has not recorded.
        dimensions_ahead: For a fact, the dimensions that have changed since its last load.
        damage: What another program changed or removed, with the fix; until then every load fails.
        unknown_members: For a fact, the number of rows with a key of the unknown member; None for a dimension, before
            the first load, or if data files are lost.
        retired: The time since which no delivery provides an attribute, by the names of such attributes.
    """

    table: str
    commits: int
    lag: int
    audit_lag: int
    dimensions_ahead: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    unknown_members: int | None = None
    retired: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """The status of everything declared."""

    sources: tuple[SourceStatus, ...]
    tables: tuple[TableStatus, ...]

    @property
    def rejected_count(self) -> int | None:
        """The number of pending deliveries that a load would reject; None if not all of them were read."""
        counts = [None if source.rejected is None else len(source.rejected) for source in self.sources]
        return None if None in counts else sum(count or 0 for count in counts)


def status(
    warehouse: Warehouse, declared: Sequence[DeclaredTable], *, now: datetime, plan_pending: bool = False
) -> Status:
    """Return the status of dimensions, and then that of facts.

    The cost is that of the past deliveries, of the names of the available ones, and of the names of all data files.
    Sources of a table whose change log has lost files are omitted.

    Args:
        plan_pending: Whether a load of the pending deliveries is planned, to find those that it would reject. It takes
            about as long as the load.
    """
    sources: list[SourceStatus] = []
    tables: list[TableStatus] = []
    for table in sorted(declared, key=lambda table: isinstance(table, Fact)):
        names = as_dimension(table).table_names
        missing = missing_files_errors(warehouse, names)
        with missing_files_reported(warehouse, names):
            table_status, log = _table_status(warehouse, table, missing)
            if all(error.location != f"table {log.table.name}" for error in missing):
                sources += _source_statuses(warehouse, table, log, now, plan_pending=plan_pending)
            tables.append(table_status)
    return Status(tuple(sources), tuple(tables))


def last_deliveries(warehouse: Warehouse, dimension: Dimension) -> dict[str, tuple[str, datetime | None]]:
    """Return the last delivery in effect of each source, and its time as in `SourceStatus`.

    Sources without such a delivery are omitted. Only the log is read, no delivery.
    """
    log = read_log(warehouse, dimension)
    return _last_deliveries(log, log.committed_batches())


def _last_deliveries(log: ChangeLog, committed: Sequence[tuple[int, Batch]]) -> dict[str, tuple[str, datetime | None]]:
    in_effect = batches_in_effect([batch for _, batch in committed])
    ids = {batch.id for batch in in_effect}
    # Of a source's deliveries without a time, only the last one can be its last delivery.
    last_commits: dict[str, int] = {}
    for number, batch in committed:
        if batch.at is None and batch.id in ids:
            last_commits[batch.source] = max(number, last_commits.get(batch.source, 0))
    commit_times: dict[int, datetime | None] = {}
    if last_commits:
        commits = log.table.commits_since(min(last_commits.values()) - 1)
        commit_times = {commit.number: commit.at for commit in commits}
    times = {batch.id: batch.at or commit_times.get(number) for number, batch in committed}
    in_order = sorted(in_effect, key=lambda b: (to_utc(times[b.id] or datetime.min), rank(b.delivery)))
    return {b.source: (b.delivery, to_utc(at) if (at := times[b.id]) else None) for b in in_order}


def _source_statuses(
    warehouse: Warehouse, table: DeclaredTable, log: ChangeLog, now: datetime, *, plan_pending: bool
) -> list[SourceStatus]:
    dimension = as_dimension(table)
    with running_queries(warehouse.spark, log.commit.records):
        committed = log.committed_batches()
        batches = [batch for _, batch in committed]
        in_effect, last = batches_in_effect(batches), _last_deliveries(log, committed)
        bad_rows, off = _bad_rows_by_batch(log), warnings_of_log(log, batches, dimension)
    pending = _pending(warehouse, table, batches, plan_pending=plan_pending)
    rejected = [result for result in pending.results or () if result.outcome == "rejected"]
    statuses = []
    for source in dimension.sources:
        source_batches = [batch for batch in in_effect if batch.source == source.name]
        delivery, at = last.get(source.name, ("", None))
        source_pending = tuple(d.name for d in pending.deliveries if d.source == source.name)
        source_rejected = tuple(f"{b.delivery} [{b.code}]: {b.problem}" for b in rejected if b.source == source.name)
        statuses.append(
            SourceStatus(
                table=dimension.name,
                source=source.name,
                batches=len(source_batches),
                last_delivery=delivery,
                last=at,
                age=to_utc(now) - at if at else None,
                pending=source_pending,
                rejected=None if pending.results is None and source_pending else (*pending.problems, *source_rejected),
                quarantined=sum(bad_rows.get(batch.records_batch_id, 0) for batch in source_batches),
                warnings=(
                    *(near.warning() for near in pending.near_matches if near.source == source.name),
                    *(off if source.name == dimension.existence_source.name else ()),
                ),
            )
        )
    return statuses


def _bad_rows_by_batch(log: ChangeLog) -> dict[str, int]:
    if log.stored is None:
        return {}
    counts = log.stored.where(f"{KIND} = '{BAD}'").groupBy(BATCH).count().collect()
    return {row[BATCH]: int(row["count"]) for row in counts}


@dataclass(frozen=True, slots=True)
class _Pending:
    """The deliveries of a table that are not loaded, and the files that nearly match its paths.

    Attributes:
        results: The results that a load of the deliveries would have; None if there are any and no load is planned.
        problems: What prevents the load.
    """

    deliveries: Sequence[Delivery] = ()
    results: Sequence[BatchResult] | None = ()
    problems: Sequence[str] = ()
    near_matches: Sequence[NearMatches] = ()


def _pending(warehouse: Warehouse, table: DeclaredTable, stored: Sequence[Batch], *, plan_pending: bool) -> _Pending:
    """Return what a table's sources have that is not loaded; an error does not hide the status of other tables."""
    pending, dimension = _Pending(), as_dimension(table)
    try:
        available = select(dimension, warehouse.spark, others=partial(stored_deliveries, warehouse))
        deliveries = pending_deliveries(dimension, available.deliveries, stored)
        pending = _Pending(deliveries, None if deliveries else (), near_matches=available.near_matches)
        if not deliveries or not plan_pending:
            return pending
        return replace(pending, results=plan(warehouse, table, deliveries).results)
    except ScdError as error:
        return replace(pending, results=(), problems=[f"all deliveries: {error}"])


def _table_status(
    warehouse: Warehouse, table: DeclaredTable, missing: Sequence[ScdError]
) -> tuple[TableStatus, ChangeLog]:
    """Return the status of a table, and the change log that it was compared with."""
    dimension, fact = as_dimension(table), table if isinstance(table, Fact) else None
    # Downstream tables are read before their upstream, which a concurrent load can only move ahead.
    audit = warehouse.table(dimension.name + AUDIT_SUFFIX).last_commit_or_zero() if dimension.has_audit else None
    commit = warehouse.table(dimension.name).last_commit_or_zero()
    names = [dimension.name + dimension.closed_suffix] if dimension.closed_suffix else []
    histories = [warehouse.table(name).last_commit_or_zero() for name in names]
    children = [warehouse.table(name).last_commit_or_zero() for name in dimension.child_names]
    pinned, errors = _pinned(warehouse, fact)
    errors = [*missing, *errors]
    log = read_log(warehouse, dimension)
    applied = log_high_water_mark(log.commit, commit)
    recorded = audit.applied(log.table.name).commit if audit else applied
    behind = min(applied, recorded)
    # A commit without batches, as maintenance creates them, brings nothing to apply.
    commits = log.table.commits_since(behind) if log.commit.number > behind else []
    with_batches = [c.number for c in commits if c.batches]
    downstream = [commit, *histories, *children, *([audit] if audit else [])]
    errors += damage(log.commit, downstream)
    errors += [error for last in histories if (error := history_error(commit, last)) is not None]
    errors += [error for dimension in pinned.values() for error in dimension.damage(commit)]
    table_status = TableStatus(
        table=dimension.name,
        commits=commit.number,
        lag=sum(number > applied for number in with_batches),
        audit_lag=sum(recorded < number <= applied for number in with_batches),
        dimensions_ahead=tuple(name for name, dimension in pinned.items() if dimension.is_newer_than(commit)),
        damage=tuple(dict.fromkeys(str(error) for error in errors)),
        unknown_members=_unknown_members(warehouse, fact) if fact and not missing else None,
        retired={a.name: a.retired_at for a in log.dimension.attributes if a.retired_at},
    )
    return table_status, log


def _pinned(warehouse: Warehouse, fact: Fact | None) -> tuple[Mapping[str, PinnedDimension], list[ScdError]]:
    """Return the dimensions of a fact, or the error that prevents reading them."""
    try:
        return (pin_dimensions(warehouse, fact) if fact else {}), []
    except ScdError as error:
        return {}, [error]


def _unknown_members(warehouse: Warehouse, fact: Fact) -> int | None:
    """Return the number of a fact's rows with a key of the unknown member; None before its first load."""
    newest = warehouse.table(fact.name).newest()
    if newest is None:
        return None
    keys = [name for name in fact.key_columns if name in newest.columns()]
    with running_queries(warehouse.spark, newest.commit.records):
        return newest.rows.where(any_of([col(name) == UNKNOWN_KEY for name in keys])).count()
