"""Counts what a client makes Spark do: executing calls, AnalyzePlan requests and commits.

Such numbers are the same on every machine, unlike seconds.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

_PACKAGE = str(Path(__file__).parents[1] / "scd_pipeline") + "/"
_ACTIONS = ("collect", "count", "isEmpty", "localCheckpoint", "toArrow", "toPandas", "take", "first")
_WRITES = ("save", "saveAsTable")
_PROJECTIONS = ("select", "withColumn")
_OF_COMMAND = "_is_result_of_command"


@dataclass(slots=True)
class Calls:
    """The calls of a block, each as a text with its call site in the package.

    Attributes:
        executing: The calls that execute a query, a write or an SQL command. To collect the rows of a command is no
            further call.
        analyzing: The AnalyzePlan requests; none where Spark is embedded.
        commits: The number of commits by table, without those that create it.
    """

    executing: list[str] = field(default_factory=list)
    analyzing: list[str] = field(default_factory=list)
    commits: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return "\n".join([*self.executing, *self.analyzing, *map(str, sorted(self.commits.items()))])


@contextmanager
def counted_calls(spark: SparkSession, warehouse: Path) -> Iterator[Calls]:
    """Yield what the block makes Spark do; its commits are counted at the end of the block."""
    calls, before = Calls(), _commits(warehouse)
    with pytest.MonkeyPatch.context() as patched:
        _patch_calls(spark, calls, patched)
        yield calls
    calls.commits = _commits(warehouse) - before


def _patch_calls(spark: SparkSession, calls: Calls, patched: pytest.MonkeyPatch) -> None:
    """Record the calls of this process in `calls`."""
    frame = spark.range(0)
    methods = [(type(frame), name) for name in _ACTIONS] + [(type(frame.write), name) for name in _WRITES]
    running = threading.local()
    for owner, name in [*methods, (type(spark), "sql")]:
        patched.setattr(owner, name, _executing(getattr(owner, name), name, calls, running))
    for name in _PROJECTIONS:
        patched.setattr(type(frame), name, _projecting(getattr(type(frame), name)))
    if is_remote():
        client = type(spark.client)  # type: ignore[attr-defined]  # only Connect's session has it
        patched.setattr(client, "_analyze", _analyzing(client._analyze, calls))


def _executing(method: Callable[..., Any], name: str, calls: Calls, running: threading.local) -> Callable[..., Any]:
    """Return a method that records its calls, unless another recorded one calls it."""

    def call(self: Any, *args: Any, **options: Any) -> Any:
        if getattr(running, "call", False) or _OF_COMMAND in vars(self):
            return method(self, *args, **options)
        calls.executing.append(f"{name} {_call_site()}")
        running.call = True
        try:
            result = method(self, *args, **options)
        finally:
            running.call = False
        if name == "sql":
            setattr(result, _OF_COMMAND, True)
        return result

    return call


def _projecting(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose frame still has the rows of a command."""

    def call(self: Any, *args: Any) -> Any:
        result = method(self, *args)
        if _OF_COMMAND in vars(self):
            setattr(result, _OF_COMMAND, True)
        return result

    return call


def _analyzing(request: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    """Return a client's method that records its requests."""

    def call(self: Any, method: str, **options: Any) -> Any:
        calls.analyzing.append(f"AnalyzePlan {method} {_call_site()}")
        return request(self, method, **options)

    return call


def _call_site() -> str:
    """Return the line of the package that makes a recorded call."""
    frame = sys._getframe(2)
    while frame.f_back is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.removeprefix(_PACKAGE)}:{frame.f_lineno}"


def _commits(warehouse: Path) -> Counter[str]:
    """Return the number of commits of each table, without those that created it."""
    files = warehouse.glob("*/_delta_log/*.json")
    return Counter(file.parts[-3] for file in files if int(file.stem) > 0)
