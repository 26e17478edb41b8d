"""What a program is to load. It needs only the standard library, because each program has other packages."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Delivery:
    """One delivery: its business time, the columns that it has, and its rows."""

    at: dt.datetime
    columns: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True)
class Task:
    """The deliveries of a history in order of arrival, and the options with which the tool loads them."""

    name: str
    options: Mapping[str, Any]
    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True)
class Result:
    """The rows of the table after the last delivery, and the numbers of the deliveries whose load failed."""

    rows: Rows
    failed: Sequence[int] = ()


def run_program(load: Callable[[Sequence[Task], Path], Iterable[Result]]) -> None:
    """Load the tasks of a file, and write their results to another one; the arguments are the names of the files.

    The tool has the folder of the second file for itself.
    """
    source, target = map(Path, sys.argv[1:])
    tasks = [_task(**fields) for fields in json.loads(source.read_text(encoding="utf-8"))]
    results = [{"rows": list(map(_texts, each.rows)), "failed": each.failed} for each in load(tasks, target.parent)]
    target.write_text(json.dumps(results), encoding="utf-8")


def fetch(connection: Any, query: str) -> Rows:
    """Return the rows of a query on a connection to a database."""
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _task(name: str, options: dict[str, Any], deliveries: list[dict[str, Any]]) -> Task:
    return Task(name, options, tuple(_delivery(**fields) for fields in deliveries))


def _delivery(at: str, columns: list[str], rows: list[dict[str, str | None]]) -> Delivery:
    return Delivery(_moment(at), tuple(columns), [{name: _value(name, row[name]) for name in row} for row in rows])


def _value(column: str, text: str | None) -> Any:
    return None if text is None else TYPES.get(column, str)(text)


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.timezone.utc)


TYPES: Mapping[str, Callable[[str], Any]] = {"id": int, "updated_at": _moment, "deleted": "true".__eq__}
"""The type of each column that is not text."""


def _texts(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else _text(value) for name, value in row.items()}


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dt.datetime():
            return str(value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value)
    return str(value)
