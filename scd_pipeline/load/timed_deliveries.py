"""The deliveries of a timed table that is a source: its base, and the changes at each time of its log (S12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from scd_pipeline.declaration import Dimension, Source, TimedTable
from scd_pipeline.declaration.source import TIMED_FEED
from scd_pipeline.declaration.times import to_datetime
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.history.batch import batches_in_effect
from scd_pipeline.instants import from_micros
from scd_pipeline.load.log import read_log
from scd_pipeline.texts import first_names
from scd_pipeline.timed.base import base_changed_at
from scd_pipeline.timed.changes import changes_by_key
from scd_pipeline.timed.expressions import find_column
from scd_pipeline.timed.folded_base import folded
from scd_pipeline.timed.read import TimedState, read_whole_state
from scd_pipeline.timed.statements import Statement
from scd_pipeline.timed.times import from_millis, to_millis

BASE = "base"
"""The name of the delivery of the rows with which the history begins."""


def timed_deliveries(warehouse: Warehouse, dimension: Dimension) -> list[Delivery]:
    """Return the deliveries of the timed tables that are sources of a dimension; no row is computed.

    The delivery `base` has the rows at the earliest time of the dimension, after all statements up to then. Each later
    time of the log is a delivery of the changes at this time. Its revision is the last change of anything that it
    depends on: of the base, or of a statement at or before its time. The deliveries of times that the log has no longer
    are withdrawn, unless they were folded: these remain as they were loaded.

    Raises:
        SourceDataError: A log or a base cannot be read; or statements were folded before the dimension has loaded them,
            and the folded base has replaced the declared one.
    """
    timed = [(source, source.timed_table) for source in dimension.sources if source.timed_table is not None]
    return [each for source, table in timed for each in _deliveries(warehouse, dimension, source, table)]


def _deliveries(warehouse: Warehouse, dimension: Dimension, source: Source, table: TimedTable) -> Iterable[Delivery]:
    state = read_whole_state(warehouse, table)
    changed_at = base_changed_at(warehouse.spark, table.base) if state.fold is None else state.fold.at * 1000
    start = to_millis(to_datetime(dimension.earliest_time), "UTC")
    in_effect = batches_in_effect(read_log(warehouse, dimension).batches())
    loaded = {
        each.delivery: each.at for each in in_effect if (each.source, each.channel) == (source.name, TIMED_FEED.name)
    }
    _require_loaded(dimension, table, state, loaded, start)
    folded_names = {name for name, time in loaded.items() if _is_folded(time, state)}
    deliveries = [each for each in _available(source, state, table, start, changed_at) if each.name not in folded_names]
    names = {*folded_names, *(each.name for each in deliveries)}
    removed = [name for name in loaded if name not in names]
    return [*deliveries, *(Delivery(source.name, name, TIMED_FEED.name, withdrawn=True) for name in removed)]


def _require_loaded(
    dimension: Dimension, table: TimedTable, state: TimedState, loaded: Mapping[str, datetime | None], start: int
) -> None:
    """Check that a dimension has loaded the statements that the folded base contains, without whose changes it is read.

    Raises:
        SourceDataError: The log has statements up to the fold that it has not loaded.
    """
    if state.fold is None or not loaded:
        return
    missed = {_name(each.millis, start) for each in folded(state.log, state.fold.until)}.difference(loaded)
    if missed:
        details = {"times": first_names(sorted(missed)), "dimension": dimension.name}
        raise SourceDataError("FOLDED_BEFORE_LOAD", f"log of {table.name}", **details)


def _name(millis: int, start: int) -> str:
    """Return the name of the delivery of the changes at a time."""
    return BASE if millis <= start else from_millis(millis)


def _is_folded(time: datetime | None, state: TimedState) -> bool:
    return state.fold is not None and time is not None and to_millis(time, "UTC") <= state.fold.until


def _available(source: Source, state: TimedState, table: TimedTable, start: int, changed_at: int) -> Iterable[Delivery]:
    key = [find_column(name, state.columns) or name for name in table.business_key]
    frame = changes_by_key(state.states(), list(state.columns), key, start)
    by_time: dict[int, list[Statement]] = {start: []}
    for statement in state.statements:
        by_time.setdefault(max(statement.millis, start), []).append(statement)
    for millis, statements in by_time.items():
        changed_at = max([changed_at, *(each.recorded_at for each in statements)])
        yield Delivery(
            source.name,
            _name(millis, start),
            TIMED_FEED.name,
            at=from_micros(millis * 1000),
            revision=changed_at,
            frame=frame,
            partition=str(millis * 1000),
            actor=_joined(each.author for each in statements),
            reason=_joined(each.reason for each in statements),
            sealed=True,
            is_overwritten_in_place=True,
        )


def _joined(texts: Iterable[str]) -> str | None:
    """Return the different texts in their order; None without any."""
    return ", ".join(dict.fromkeys(filter(None, texts))) or None
