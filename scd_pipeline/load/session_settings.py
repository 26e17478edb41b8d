"""The settings of Spark while it runs loads of few records, and checks of few rows.

Spark compiles code for each query, and adapts the query to the sizes that it meets. For a few thousand rows this takes
longer than the rows do. A load of few records therefore runs without code generation, and one that sorts and joins few
records without adaptive execution, in one or two partitions.

Every load overrides two settings of the session. It reads the state of Delta's tables in few partitions; Delta's
default is 50 partitions for each table. And it turns off Spark's constraint propagation, whose cost grows exponentially
with the computed columns of a query: with it, a first load of twenty columns did not end.

A load with a declared number of cores divides each step of its queries into as many tasks at most. A client of Spark
Connect cannot choose a pool of Spark's scheduler for its jobs; these settings, however, are those of any session.
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

from scd_pipeline.spark.configuration import NO_INFERRED_FILTERS
from scd_pipeline.spark.settings import restore_setting

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings for queries of few rows, whose generated code takes longer to compile than the interpreter takes to run."""
_STATE_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_EVERY_LOAD = {_STATE_PARTITIONS: "2", **NO_INFERRED_FILTERS}
_READ_FEW = {"spark.sql.leafNodeDefaultParallelism": "1", _STATE_PARTITIONS: "1", **INTERPRETED}
_SHUFFLED_FEW = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
_IN_ONE_PARTITION = {"spark.sql.shuffle.partitions": "1"}
_BY_READ_RECORDS = ((20_000, _READ_FEW),)
_BY_SHUFFLED_RECORDS = ((200_000, _SHUFFLED_FEW), (20_000, _IN_ONE_PARTITION))
"""Settings for loads of fewer records than a number, which were measured to take less time with them."""
_TASKS = ("spark.sql.shuffle.partitions", "spark.sql.files.maxPartitionNum", "spark.sql.leafNodeDefaultParallelism")
"""The settings that limit the number of tasks of a step of a query."""
STORED_PER_DELIVERED = 10
"""How many stored records take as long as a delivered one: a scan reads a few of their columns, and most go no further.

By the processor time of loads of 100 rows into 20,000 entities and into 200,000, where code begins to be worth it.
"""


@dataclass(eq=False, slots=True)
class RunningLoad:
    """A load that runs in a session, whose other threads may run more of them."""

    spark: SparkSession
    _session: _Session
    cores: int | None = None
    read_limit: int | None = None
    shuffled_limit: int | None = None

    def expect_records(self, *, read: int | None, shuffled: int | None) -> None:
        """Declare the work of the load from now on.

        Args:
            read: An upper bound of the records that it reads of a delivery or writes to a table, and of the records
                that it scans, divided by `STORED_PER_DELIVERED`; None if it is unknown.
            shuffled: An upper bound of the records that it sorts, groups, or joins without a broadcast; None if it is
                unknown.
        """
        self._session.change(self, read, shuffled)


@contextmanager
def running_load(spark: SparkSession, cores: int | None = None) -> Iterator[RunningLoad]:
    """Yield a load of the session, of which nothing is known yet; its settings are restored at the end.

    The settings of a session apply to all of its threads. So they are those for the largest of its loads.

    Args:
        spark: The session.
        cores: The largest number of tasks of a step of a query; None for that of the session's own settings.
    """
    with _REGISTRY_LOCK:
        session = _SESSIONS.setdefault(spark, _Session())
    load = RunningLoad(spark, session, cores)
    session.enter(load)
    try:
        yield load
    finally:
        session.leave(load)


@contextmanager
def running_queries(spark: SparkSession, records: int | None) -> Iterator[None]:
    """Let the session run queries that read and sort at most so many records; None if their number is unknown."""
    with running_load(spark) as load:
        load.expect_records(read=records, shuffled=records)
        yield


@dataclass(slots=True)
class _Session:
    """The running loads of a session, the settings for them, and its own settings that these replace."""

    loads: list[RunningLoad] = field(default_factory=list)
    chosen: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str | None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, load: RunningLoad) -> None:
        with self.lock:
            self.loads.append(load)
            self._update(load.spark)

    def change(self, load: RunningLoad, read_limit: int | None, shuffled_limit: int | None) -> None:
        with self.lock:
            load.read_limit, load.shuffled_limit = read_limit, shuffled_limit
            self._update(load.spark)

    def leave(self, load: RunningLoad) -> None:
        with self.lock:
            self.loads.remove(load)
            self._update(load.spark)

    def _update(self, spark: SparkSession) -> None:
        settings = _settings(self.loads)
        with suppress(Exception):  # of a server that is lost; the next load of the session tries again
            for name in self.replaced.keys() - settings.keys():
                restore_setting(spark, name, self.replaced[name])
                del self.replaced[name], self.chosen[name]
        for name, value in settings.items():
            if self.chosen.get(name) != value:
                with suppress(PySparkException, Py4JError):  # a managed service may refuse a setting
                    before = self.replaced[name] if name in self.replaced else spark.conf.get(name, None)
                    spark.conf.set(name, value)
                    self.chosen[name], self.replaced[name] = value, before


def _settings(loads: Sequence[RunningLoad]) -> dict[str, str]:
    """Return the settings for running loads, by the largest of them; none without loads."""
    if not loads:
        return {}
    limits_and_settings = (
        ([load.read_limit for load in loads], _BY_READ_RECORDS),
        ([load.shuffled_limit for load in loads], _BY_SHUFFLED_RECORDS),
    )
    cores = min((load.cores for load in loads if load.cores is not None), default=None)
    chosen = dict(_EVERY_LOAD) if cores is None else {**_EVERY_LOAD, **dict.fromkeys(_TASKS, str(cores))}
    for limits, settings_by_size in limits_and_settings:
        for few, settings in settings_by_size:
            if all(limit is not None and limit < few for limit in limits):
                chosen |= settings
    limited = {} if cores is None else {name: str(min(cores, int(chosen[name]))) for name in _TASKS}
    return {**chosen, **limited}


_REGISTRY_LOCK = threading.Lock()
_SESSIONS: WeakKeyDictionary[SparkSession, _Session] = WeakKeyDictionary()
