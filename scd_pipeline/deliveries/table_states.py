"""The state of source tables: a text that differs after each change, found without Spark."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import absolute_path, declaration_folder, is_table
from scd_pipeline.deliveries.files import last_changed, total_size

_PREFIX = "table "


class TableState(NamedTuple):
    """The state of a source table.

    Attributes:
        text: A text that differs after each change.
        is_delta: Whether each change is a commit, so that no reader sees a part of it.
    """

    text: str
    is_delta: bool


def table_states(dimension: Dimension) -> dict[str, TableState]:
    """Return the states of the source tables of a dimension that exist in local folders, by name (`table_name`)."""
    folder = declaration_folder(dimension)
    paths = [channel.path for source in dimension.sources for _, channel in source.channels if is_table(channel)]
    tables = {path: Path(absolute_path(path, folder)) for path in paths if path}
    states = {}
    for path, table in tables.items():
        if not table.exists():
            continue
        with contextlib.suppress(FileNotFoundError):  # the table was removed since it was listed
            states[_PREFIX + path] = TableState(_state(table), _delta_log(table).is_dir())
    return states


def table_name(delivery: Delivery, dimension: Dimension) -> str:
    """Return the name of the table that a delivery is in."""
    return _PREFIX + str(dimension.source(delivery.source).channel(str(delivery.channel)).path)


def _delta_log(table: Path) -> Path:
    return table / "_delta_log"


def _state(table: Path) -> str:
    """Return the last version of a Delta table, or time and size of the files of another table.

    A version has the time of its commit: a table that is created again has versions that it had before.
    """
    if not (log := _delta_log(table)).is_dir():
        return f"{last_changed(table)}, {total_size(table)} bytes"
    commits = [path for path in log.glob("*.json") if path.stem.isdecimal()]
    if not commits:
        return "no version"
    last = max(commits, key=lambda path: int(path.stem))
    return f"version {int(last.stem)} of {last.stat().st_mtime_ns}"
