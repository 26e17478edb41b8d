"""The deliveries of sources that have none of their own: what a cursor reads, and snapshots of a database (S39)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scd_pipeline.declaration import Dimension, Feed, Jdbc, Snapshot
from scd_pipeline.declaration.jdbc import EnvVar
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import absolute_path, declaration_folder
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.history.batch import CursorState
from scd_pipeline.load.landing_deliveries import landing_deliveries
from scd_pipeline.load.log import read_log
from scd_pipeline.load.timed_deliveries import timed_deliveries


def cursor_delivery(log: ChangeLog, source: str, feed: Feed, **rows: Any) -> Delivery:
    """Return the next delivery of a cursor.

    Its name is the next number after those of the loaded ones, so that a retry of a load that has committed changes
    nothing, and one of a load that has not reads the same rows, and those that were added since. It has the higher
    position wherever two deliveries have rows of one time.

    Args:
        log: The change log.
        source: The name of the source.
        feed: Its channel.
        rows: The fields of the delivery that say where its rows are.
    """
    number, state = log.last_cursor(source, feed.name)
    loaded = state or CursorState(str(feed.start))
    return Delivery(source, str(number + 1), feed.name, cursor=loaded, sealed=True, **rows)


def other_deliveries(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    variables: Mapping[str, str],
    now: datetime,
    run_id: str | None = None,
) -> list[Delivery]:
    """Return the deliveries that are not at the paths of channels: of stored tables, of cursors and of databases.

    The arguments and the errors are those of `source_deliveries` and `stored_deliveries`.
    """
    stored = stored_deliveries(warehouse, dimension, run_id)
    return [*stored, *source_deliveries(warehouse, dimension, variables=variables, now=now)]


def stored_deliveries(warehouse: Warehouse, dimension: Dimension, run_id: str | None = None) -> list[Delivery]:
    """Return the deliveries of the timed tables and the landing tables that are sources of a dimension.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        run_id: A run: of a landing table to which it has committed, what it and earlier ones have committed.

    Raises:
        SourceDataError: As `timed_deliveries`.
    """
    return [*timed_deliveries(warehouse, dimension), *landing_deliveries(warehouse, dimension, run_id)]


def source_deliveries(
    warehouse: Warehouse, dimension: Dimension, *, variables: Mapping[str, str], now: datetime
) -> list[Delivery]:
    """Return a delivery for each table that is read by a cursor, and for each table or query of a database.

    No row is read yet.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        variables: The environment variables, with those that the declaration names.
        now: The time of snapshots of a database, by which they are named.

    Raises:
        SetupError: A variable is not set.
    """
    channels = [(source.name, channel) for source in dimension.sources for _, channel in source.channels]
    channels = [each for each in channels if each[1].jdbc or (each[1].path and each[1].has_cursor)]
    if not channels:
        return []
    log = read_log(warehouse, dimension)
    return [_delivery(log, dimension, source, channel, variables, now) for source, channel in channels]


def _delivery(
    log: ChangeLog,
    dimension: Dimension,
    source: str,
    channel: Snapshot | Feed,
    variables: Mapping[str, str],
    now: datetime,
) -> Delivery:
    location = f"{dimension.name}: sources.{source}.{channel.name}.jdbc"
    connection = None if channel.jdbc is None else _connection(channel.jdbc, variables, location)
    if isinstance(channel, Feed):
        path = None if channel.path is None else absolute_path(channel.path, declaration_folder(dimension))
        return cursor_delivery(log, source, channel, path=path, connection=connection)
    return Delivery(source, f"{now:%Y-%m-%dT%H:%M:%S.%f}", channel.name, at=now, connection=connection)


def _connection(jdbc: Jdbc, variables: Mapping[str, str], location: str) -> dict[str, str]:
    """Return address and login, with the values of the environment variables that the declaration names."""
    declared = {"url": jdbc.url, "user": jdbc.user, "password": jdbc.password}
    return {
        option: _value(value, variables, location, option) for option, value in declared.items() if value is not None
    }


def _value(value: str | EnvVar, variables: Mapping[str, str], location: str, option: str) -> str:
    if not isinstance(value, EnvVar):
        return value
    if not variables.get(value.env):
        raise SetupError("VARIABLE_OF_SOURCE_MISSING", location, variable=value.env, option=option)
    return variables[value.env]
