"""The settings of Spark while it runs loads of few records.

Spark compiles code for each query, and adapts the query to the sizes that it meets. For a few thousand rows this takes
longer than the rows do. A load of few records therefore runs without code generation and adaptive execution, in one
partition.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_PLANNED_ONCE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
_NOT_COMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_SETTINGS = ((20_000, _PLANNED_ONCE), (2_000, _NOT_COMPILED))
"""Settings for loads of fewer records than this number, which were measured to take less time with them."""


@dataclass(eq=False, slots=True)
class RunningLoad:
    """A load that runs in a session, whose other threads may run more of them."""

    spark: SparkSession
    _session: _Session
    record_limit: int | None = None

    def expect_records(self, limit: int | None) -> None:
        """Declare that the load reads and writes at most so many records from now on; None if that is unknown."""
        self._session.change(self, limit)


@contextmanager
def running_load(spark: SparkSession) -> Iterator[RunningLoad]:
    """Yield a load of the session, of which nothing is known yet; its settings are restored at the end.

    The settings of a session apply to all of its threads. So they are those for the largest of its loads.
    """
    with _REGISTRY_LOCK:
        session = _SESSIONS.setdefault(spark, _Session())
    load = RunningLoad(spark, session)
    session.enter(load)
    try:
        yield load
    finally:
        session.leave(load)


@dataclass(slots=True)
class _Session:
    """The running loads of a session, and its own settings while others replace them."""

    loads: list[RunningLoad] = field(default_factory=list)
    replaced: dict[str, str | None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, load: RunningLoad) -> None:
        with self.lock:
            self.loads.append(load)
            self._update(load.spark)

    def change(self, load: RunningLoad, record_limit: int | None) -> None:
        with self.lock:
            load.record_limit = record_limit
            self._update(load.spark)

    def leave(self, load: RunningLoad) -> None:
        with self.lock:
            self.loads.remove(load)
            self._update(load.spark)

    def _update(self, spark: SparkSession) -> None:
        settings = _settings([load.record_limit for load in self.loads])
        with suppress(Exception):  # of a server that is lost; the next load of the session tries again
            for name in self.replaced.keys() - settings.keys():
                _restore(spark, name, self.replaced[name])
                del self.replaced[name]
        for name in settings.keys() - self.replaced.keys():
            with suppress(PySparkException, Py4JError):  # a managed service may refuse a setting
                before = spark.conf.get(name, None)
                spark.conf.set(name, settings[name])
                self.replaced[name] = before


def _settings(record_limits: Sequence[int | None]) -> dict[str, str]:
    """Return the settings for running loads of at most so many records each; none without loads, or if one is None."""
    if not record_limits:
        return {}
    chosen: dict[str, str] = {}
    for few, settings in _SETTINGS:
        if all(limit is not None and limit < few for limit in record_limits):
            chosen |= settings
    return chosen


def _restore(spark: SparkSession, name: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, value)


_REGISTRY_LOCK = threading.Lock()
_SESSIONS: WeakKeyDictionary[SparkSession, _Session] = WeakKeyDictionary()
