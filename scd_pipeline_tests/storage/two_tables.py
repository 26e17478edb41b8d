"""What tests share of a dimension with versions in two tables: its rows, and what happens between its two commits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame

from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.table import Table
from scd_pipeline_tests.storage.customers import CUSTOMER


class Killed(BaseException):
    """Represents the end of the process."""


def kill() -> None:
    raise Killed


def records(rows: DataFrame) -> list[dict[str, Any]]:
    """The rows, with windows as dates."""
    return [
        {
            "id": row["id"],
            "city": row["city"],
            "from": row["effective_from"].replace(tzinfo=None),
            "to": row["effective_to"] and row["effective_to"].replace(tzinfo=None),
        }
        for row in rows.toArrow().to_pylist()
    ]


@contextmanager
def between_the_commits(
    action: Callable[[], None], monkeypatch: pytest.MonkeyPatch, dimension: str = CUSTOMER.name
) -> Iterator[None]:
    """Perform an action after the writer in the block has committed to the other tables, and before it does to its own.

    `action` is called right before each write of the dimension's table.
    """

    def paused(write: Callable[..., PipelineCommit]) -> Callable[..., PipelineCommit]:
        def call(table: Table, *arguments: Any, **options: Any) -> PipelineCommit:
            if table.name == dimension:
                action()
            return write(table, *arguments, **options)

        return call

    with monkeypatch.context() as patched:
        for name in ("append", "replace", "replace_where", "merge"):
            patched.setattr(Table, name, paused(getattr(Table, name)))
        yield


@contextmanager
def reader_in_a_loop(
    read: Callable[[], list[dict[str, Any]]],
) -> Iterator[tuple[list[list[dict[str, Any]]], Callable[[], None]]]:
    """Read again and again in a thread during the block.

    Yields:
        The results so far, and a function that waits until the reader has read twice more.
    """
    seen: list[list[dict[str, Any]]] = []
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            seen.append(read())

    def wait_for_reads() -> None:
        before, deadline = len(seen), time.monotonic() + 60
        while len(seen) < before + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(seen) >= before + 2

    reader = threading.Thread(target=loop)
    reader.start()
    try:
        yield seen, wait_for_reads
    finally:
        ended.set()
        reader.join()
