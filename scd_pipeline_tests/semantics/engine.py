"""Run the cases on the engine: those of one declaration are loaded together, separated by an additional key column."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from scd_pipeline import queries
from scd_pipeline.columns import BATCH, EFFECTIVE_AT, KIND
from scd_pipeline.declaration import Dimension, Snapshot
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import LoadResult, ingest_and_apply
from scd_pipeline_tests.semantics.specification import CASE, Case, Declaration, DeliveredBatch, DeliveryTable, by_files
from scd_pipeline_tests.servers import several_partitions

Records = list[dict[str, Any]]
_Item = TypeVar("_Item")

_FIRST_DAY, _MAX_CASES = dt.date(2020, 1, 1), 500
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def records(frame: DataFrame) -> Records:
    """The rows of a frame as dictionaries, with aware UTC times, whatever the process's zone."""
    return frame.toArrow().to_pylist()


def load_once(warehouse: Warehouse, dimension: Dimension, deliveries: Iterable[Delivery] = ()) -> LoadResult:
    """Load without a retry."""
    return ingest_and_apply(warehouse, dimension, list(deliveries), retry=Retry(attempts=1))


def delivery_name(name: str, number: int) -> str:
    """The name of a delivery of a case: unique among the cases, and in the same order within the case."""
    if _DATE.fullmatch(name):
        days = (dt.date.fromisoformat(name) - _FIRST_DAY).days
        return str(dt.date(1, 1, 1) + dt.timedelta(days * _MAX_CASES + number))
    return str(int(name) * _MAX_CASES + number) if name.isdecimal() else f"{name}-{number}"


def physical_columns(batch: DeliveredBatch, dimension: Dimension) -> list[str]:
    """The columns of the file: those of the table, and those that the channel declares in addition."""
    channel = dimension.source(batch.source).channel(batch.channel)
    declared = [channel.sequence, channel.reason]
    declared.append("op" if channel.deletes else None)
    return sorted({*batch.columns, *(name for name in declared if isinstance(name, str))})


def write(batch: DeliveredBatch, dimension: Dimension, path: Path, fixed: Mapping[str, str]) -> None:
    """The batch as a file of text columns; `fixed` are columns with one value."""
    names = physical_columns(batch, dimension)
    rows = [{**{name: row.get(name) for name in names}, **fixed} for row in batch.rows]
    schema = pa.schema([(name, pa.string()) for name in sorted({*names, *fixed})])
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def delivery(batch: DeliveredBatch, dimension: Dimension, path: Path, number: int | None = None) -> Delivery:
    """The batch as a delivery of one file, or of a list of dicts; with a number, a delivery of that case."""
    fixed = {} if number is None else {CASE: str(number)}
    has_file = not (batch.withdrawn or batch.has_absent_values)
    if has_file:
        write(batch, dimension, path, fixed)
    return Delivery(
        batch.source,
        batch.delivery if number is None else delivery_name(batch.delivery, number),
        channel=batch.channel,
        at=batch.at,
        revision=batch.revision,
        path=str(path) if has_file else None,
        frame=[{**row, **fixed} for row in batch.rows] if batch.has_absent_values else None,
        scope=_scope(batch, dimension, number),
        reason=batch.reason,
        allow=batch.allow,
        withdrawn=batch.withdrawn,
    )


def _scope(batch: DeliveredBatch, dimension: Dimension, number: int | None) -> Sequence[Sequence[Any]] | None:
    """The scope in the table, in shared tables with the case; None if it is derived from the rows."""
    channel = dimension.source(batch.source).channel(batch.channel)
    if not isinstance(channel, Snapshot) or batch.withdrawn:
        return None
    shared = () if number is None else (number,)
    if batch.scope is not None:
        return [(*shared, value) for value in batch.scope]
    return [shared] if shared and not channel.scope else None


def split_into_loads(case: Case, queue: Sequence[_Item]) -> list[Sequence[_Item]]:
    """Return the deliveries of each load of a case.

    The first late delivery begins a load, so that it meets the rows of the deliveries after it, and so does each one
    that is not accepted. If there are none, the second delivery begins a load, unless the declaration is not loaded by
    increments. All others share a load, as a load of all cases of a declaration takes seconds.
    """
    begins = {_first_late(case.batches, case.declaration.dimension), *case.not_accepted} - {len(queue)}
    begins = begins or ({1} if case.declaration.by_increments else set())
    borders = sorted({0, len(queue), *begins})
    return [queue[start:end] for start, end in pairwise(borders)]


def _first_late(batches: Sequence[DeliveredBatch], dimension: Dimension) -> int:
    """Return the number of the first delivery that begins before an earlier one, or is another revision of it."""
    times = [_time(batch, dimension) for batch in batches]
    keys = [(batch.source, batch.channel, batch.delivery) for batch in batches]
    late = (n for n in range(1, len(times)) if times[n] < max(times[:n]) or keys[n] in keys[:n])
    return next(late, len(times))


def _time(batch: DeliveredBatch, dimension: Dimension) -> str:
    """Return the first business time of a delivery as text, or the empty text if it has none."""
    column = None if batch.withdrawn else dimension.source(batch.source).channel(batch.channel).effective_at
    times = [row[column] or "" for row in batch.rows if column in row] if column else []
    return min(times, default=str(batch.at or ""))


class SharedTables:
    """Some cases of one declaration, loaded into one warehouse: the first delivery of each, then the second, ..."""

    def __init__(self, warehouse: Warehouse, declaration: Declaration, cases: Sequence[Case], files: Path) -> None:
        self.warehouse, self.declaration, self.cases, self.files = warehouse, declaration, list(cases), files
        self.results: dict[int, list[BatchResult]] = {number: [] for number, _ in enumerate(self.cases)}
        self.loads: list[LoadResult] = []
        self._names: dict[str, str] = {}
        for step in self._steps():
            self._load(step)

    @property
    def dimension(self) -> Dimension:
        return self.declaration.shared

    def number(self, case: Case) -> int:
        return next(number for number, other in enumerate(self.cases) if other is case)

    def deliveries(self, number: int) -> list[Delivery]:
        """Write the files of a case and return its deliveries, in order of arrival."""
        deliveries = []
        for i, batch in enumerate(self.cases[number].batches):
            path = self.files / f"{self.dimension.name}_{number}_{i}.parquet"
            deliveries.append(delivery(batch, self.declaration.dimension, path, number))
            batch_id = deliveries[-1].batch(self.dimension).id
            self._names |= {batch_id: batch.id, batch_id.rpartition("/")[0]: batch.id.rpartition("/")[0]}
        return deliveries

    def _steps(self) -> list[list[tuple[int, Delivery]]]:
        queues = [[(number, d) for d in self.deliveries(number)] for number, _ in enumerate(self.cases)]
        together = [pair for case, queue in zip(self.cases, queues, strict=True) if case.together for pair in queue]
        single = [split_into_loads(case, q) for case, q in zip(self.cases, queues, strict=True) if not case.together]
        rounds = [[pair for load in loads for pair in load] for loads in zip_longest(*single, fillvalue=())]
        rounds = rounds or [[]]
        return [together + rounds[0], *rounds[1:]]

    def _load(self, step: Sequence[tuple[int, Delivery]]) -> None:
        with several_partitions(self.warehouse.spark):
            load = load_once(self.warehouse, self.dimension, [delivery for _, delivery in step])
        self.loads.append(load)
        for (number, _), result in zip(step, load.results, strict=True):
            self.results[number].append(result)

    def case_rows(self, frame: str, case: Case) -> Records:
        """The rows of a case: of its `dimension`, `quarantine` or `log`, with the delivery names of its tables."""
        number = self.number(case)
        rows = [row for row in getattr(self, f"{frame}_rows") if row[CASE] == number]
        return [{name: self._original_name(value) for name, value in row.items()} for row in rows]

    def case_results(self, case: Case) -> Records:
        """The results of the batches of a case."""
        number = self.number(case)
        return [
            {
                "arrives": i,
                "batch": self._original_name(result.batch_id),
                **{name: getattr(result, name) for name in ("outcome", "code", "rows", "bad_rows")},
                **{name: getattr(result, name) for name in ("new", "changed", "deleted")},
                "problem": result.problem.replace(f"{CASE}={number}, ", ""),
                "keys": str(result.details.get("keys", "")).replace(f"{CASE}={number}, ", ""),
                "undeclared": ", ".join(result.undeclared),
            }
            for i, result in enumerate(self.results[number], 1)
        ]

    def _original_name(self, value: Any) -> Any:
        return self._names.get(value, value) if isinstance(value, str) else value

    @cached_property
    def dimension_rows(self) -> Records:
        """The rows of the dimension."""
        return records(self.warehouse.table(self.dimension.name).read())

    @cached_property
    def log_rows(self) -> Records:
        """The change records of the change log."""
        log = self.warehouse.table(f"{self.dimension.name}_changes").read()
        rows = records(log.where(f"{KIND} != 'batch'"))
        return [{**row, "batch": row[BATCH], "kind": row[KIND], "time": row[EFFECTIVE_AT]} for row in rows]

    @cached_property
    def quarantine_rows(self) -> Records:
        """The bad rows, with the case in a column and not in the key."""
        rows = records(queries.quarantine(self.warehouse, self.dimension))
        matches = [(row, re.fullmatch(rf"{CASE}=(\d+)(?:, )?(.*)", row["key"])) for row in rows]
        return [{**row, CASE: int(match[1]), "key": match[2]} for row, match in matches if match]


class OwnTables:
    """An empty warehouse for a test that checks the result of each load."""

    def __init__(self, warehouse: Warehouse, files: Path) -> None:
        self.warehouse, self.files = warehouse, files

    def deliveries(self, dimension: Dimension, *tables: DeliveryTable) -> list[Delivery]:
        """Write the files of the tables and return their deliveries."""
        deliveries = []
        for batch in (batch for table in tables for batch in table.batches(dimension)):
            path = self.files / f"{batch.id.replace('/', '_')}_{len(list(self.files.iterdir()))}.parquet"
            deliveries.append(delivery(batch, dimension, path))
        return deliveries

    def load(self, dimension: Dimension, *tables: DeliveryTable) -> LoadResult:
        """Load the tables in one load."""
        return load_once(self.warehouse, by_files(dimension), self.deliveries(dimension, *tables))

    def rows(self, dimension: Dimension) -> Records:
        """The rows of the dimension."""
        return records(self.warehouse.table(dimension.name).read())

    def history(self, dimension: Dimension) -> list[dict[str, Any]]:
        """Delta's history of the dimension's table, oldest first."""
        identifier = self.warehouse.table(dimension.name).identifier
        frame = self.warehouse.spark.sql(f"DESCRIBE HISTORY {identifier}").select("version", "userMetadata")
        rows = [row.asDict() for row in frame.collect()]
        commits = [{**row, **json.loads(row["userMetadata"] or "{}")} for row in rows]
        return sorted(commits, key=lambda row: row["version"])
