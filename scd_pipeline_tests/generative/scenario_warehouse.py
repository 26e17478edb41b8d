"""A warehouse for the scenarios of one shape, the ways of loading them, and the rows of its tables."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, INFO, KIND, VERSION
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.history_table import newest_versions
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import narrowing
from scd_pipeline.history.batch import current_revisions
from scd_pipeline.load.log import read_log
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import LoadResult, ingest_and_apply, load
from scd_pipeline.operations.archive import archive
from scd_pipeline.operations.withdrawals import withdrawal
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.generative.engine import declaration, delivery, fact_declaration
from scd_pipeline_tests.scenarios import DAY, START, Scenario, Shape
from scd_pipeline_tests.servers import several_partitions

Record = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """How scenarios are loaded: in at most how many loads (None: each delivery by itself), and whether twice.

    The number applies to each of the two declarations under which batches are delivered.
    """

    name: str
    loads: int | None
    twice: bool = False


PASS, ORDER, DOUBLE = Way("pass", 1), Way("order", None), Way("double", 2, twice=True)
WAYS = {way.name: way for way in (PASS, ORDER, DOUBLE)}
HALVES = Way("halves", 2)
"""Late batches at the cost of two loads: enough for a fault that needs several."""


def pieces(scenario: Scenario, phase: int, most: int | None) -> list[tuple[o.Batch, ...]]:
    """The batches of a scenario that are loaded at once, in order of delivery; the cuts are drawn for the scenario."""
    batches = scenario.second if phase else scenario.first
    limit = 1 if scenario.one_load else len(batches) if most is None else most
    cuts = max(min(limit, len(batches)) - 1, 0)
    positions = random.Random(repr(scenario.phases)).sample(range(1, len(batches)), cuts) if cuts else []
    return [batches[start:end] for start, end in pairwise(sorted({0, len(batches), *positions}))]


def steps(scenarios: Sequence[Scenario], phase: int, most: int | None) -> list[list[o.Batch]]:
    """The batches that are loaded at once: the k-th piece of each scenario."""
    rounds = zip_longest(*(pieces(scenario, phase, most) for scenario in scenarios), fillvalue=())
    return [[batch for piece in together for batch in piece] for together in rounds]


@dataclass
class ScenarioWarehouse:
    """An empty warehouse in `folder`, and the scenarios of one shape to be loaded into it.

    The scenarios of a fact come with those of its dimension, which `upstream` loads into the same folder.

    `files` holds their deliveries; warehouses of the same scenarios may share it. `done` are the results of the loads;
    `repeats` pairs a load with the next one, of the same deliveries. With `history_columns`, the closed versions are in
    a table of their own, if the dimension has windows. With `archives`, such a dimension has an archive, and versions
    are moved to it after each load.
    """

    spark: SparkSession
    folder: Path
    scenarios: Sequence[Scenario]
    files: Path
    history_columns: Literal["all", "changing"] | None = None
    archives: bool = False
    done: list[LoadResult] = field(default_factory=list)
    repeats: list[tuple[LoadResult, LoadResult]] = field(default_factory=list)
    archived: int = 0
    upstream: ScenarioWarehouse | None = None

    def __post_init__(self) -> None:
        self.files.mkdir(parents=True, exist_ok=True)
        self.warehouse = Warehouse(self.spark, self.folder)
        if self.shape.upstream is not None:
            scenarios = [scenario.upstream for scenario in self.scenarios if scenario.upstream is not None]
            self.upstream = ScenarioWarehouse(self.spark, self.folder, scenarios, self.files)
            self.upstream.warehouse = self.warehouse

    @property
    def shape(self) -> Shape:
        return self.scenarios[0].shape

    @property
    def table(self) -> Dimension | Fact:
        """The final declaration."""
        return self._declared(self.shape.final)

    @property
    def dimension(self) -> Dimension:
        """The final declaration; that of the rows of a fact."""
        return as_dimension(self.table)

    def _declared(self, dim: o.Dim) -> Dimension | Fact:
        if self.shape.fact is not None:
            return fact_declaration(self.shape, self.shape.fact)
        declared = declaration(self.shape, dim)
        if self.archives and declared.has_windows:
            return replace(declared, archive_after_years=1)
        if self.history_columns is None or not declared.has_windows:
            return declared
        columns = self.history_columns if declared.common_columns else "all"
        return replace(declared, history_table=True, history_columns=columns)

    def load(self, way: Way) -> None:
        """Load the scenarios; those of a fact in turn with those of its dimension, which the last load follows."""
        for _ in self.loads(way):
            pass

    def loads(self, way: Way) -> Iterator[None]:
        """Load the scenarios step by step.

        A step of a fact comes before one of its dimension, so that entities are referenced before they are delivered.
        """
        if self.upstream is None:
            yield from self._own_loads(way)
            return
        yield from zip_longest(self._own_loads(way), self.upstream.loads(way))
        self._load(self.table, ())
        yield

    def _own_loads(self, way: Way) -> Iterator[None]:
        """Load the scenarios step by step, first under their first declaration, then under the final one."""
        for phase, dim in enumerate((self.shape.first, self.shape.final)):
            table = self._declared(dim)
            for batches in steps(self.scenarios, phase, way.loads):
                self._load(table, batches)
                if way.twice:
                    self._repeat(table, batches[::-1])
                yield

    def repeat_all(self) -> None:
        """Load everything a second time, in one pass under the final declaration."""
        self._repeat(self.table, [batch for scenario in self.scenarios for batch in reversed(scenario.delivered)])

    def _load(self, table: Dimension | Fact, batches: Sequence[o.Batch]) -> None:
        """Load; of three loads two are narrowed, as those of a large log are."""
        deliveries, limit = self.deliveries(batches), 20_000 if len(self.done) % 3 == 2 else 0
        load_table = load if isinstance(table, Fact) else ingest_and_apply
        with patch.object(narrowing, "NARROWED_FROM", limit):
            self.done.append(load_table(self.warehouse, table, deliveries, retry=Retry(attempts=1)))
        if isinstance(table, Dimension) and table.archive_after_years is not None:
            self._archive(table)

    def _archive(self, dimension: Dimension) -> None:
        """Archive versions that ended before a time among those of the scenarios, which is drawn for the load."""
        if not self.warehouse.table(dimension.name).exists():
            return
        time = START + random.Random(len(self.done)).randrange(1, 12) * DAY
        self.archived += archive(self.warehouse, dimension, closed_before=time, by="scenarios", reason="test").moved

    def _repeat(self, table: Dimension | Fact, batches: Sequence[o.Batch]) -> None:
        before = self.done[-1]
        self._load(table, batches)
        self.repeats.append((before, self.done.pop()))

    def deliveries(self, batches: Sequence[o.Batch]) -> list[Delivery]:
        """The batches as deliveries; a withdrawal of what is loaded is that of the command (S34)."""
        by_command = self._withdrawn_by_command(batches)
        return [
            self._withdrawal(batch) if batch.id in by_command else delivery(batch, self.shape, self.files)
            for batch in batches
        ]

    def _withdrawn_by_command(self, batches: Sequence[o.Batch]) -> set[str]:
        """The withdrawals that follow the current revisions of the log, which no other batch of the load changes."""
        times = Counter(batch.run_id for batch in batches)
        withdrawn = [batch for batch in batches if batch.withdrawn and times[batch.run_id] == 1]
        if not withdrawn:
            return set()
        stored = current_revisions(read_log(self.warehouse, self.dimension).batches()).values()
        loaded = {batch.id for batch in stored if not batch.withdrawn}
        return {batch.id for batch in withdrawn if replace(batch, revision=batch.revision - 1).id in loaded}

    def _withdrawal(self, batch: o.Batch) -> Delivery:
        name = f"{batch.source}.{batch.channel}.{batch.delivery}"
        return withdrawal(self.warehouse, self.table, name, by="scenarios", reason="test")

    def rows(self) -> list[Record]:
        """The rows of the dimension's table, its history table or its archive, or of the fact; without members."""
        newest = newest_versions(self.warehouse, self.dimension.name)
        rows = records(newest.rows) if newest is not None else []
        return [row for row in rows if row.get(VERSION) != 0]

    def members(self) -> list[Record]:
        """The reserved and inferred members of the dimension's table."""
        return [row for row in records(self.warehouse.table(self.dimension.name).read()) if row.get(VERSION) == 0]

    def log(self) -> list[Record]:
        """The batches (with `content_of`) and the bad rows of the change log."""
        table = self.warehouse.table(f"{self.dimension.name}_changes")
        if not table.exists():
            return []
        names = [KIND, BATCH, *self.dimension.key_names, F.col(INFO)["content_of"].alias("content_of")]
        return records(table.read().where(F.col(KIND).isin("batch", "bad")).select(*names))


@dataclass
class Site:
    """A folder for one warehouse after the other; they share one probe of the platform capabilities."""

    spark: SparkSession
    folder: Path
    used: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.warehouse = Warehouse(self.spark, self.folder)

    @contextlib.contextmanager
    def open(
        self,
        scenarios: Sequence[Scenario],
        files: Path | None = None,
        *,
        history_columns: Literal["all", "changing"] | None = None,
        archives: bool = False,
    ) -> Iterator[ScenarioWarehouse]:
        """Open an empty warehouse, whose folder is removed at the end; deliveries in `files` stay."""
        self.used += 1
        folder = self.folder / f"warehouse_{self.used}"
        try:
            landing = files or folder / "landing"
            opened = ScenarioWarehouse(self.spark, folder, scenarios, landing, history_columns, archives)
            opened.warehouse.capabilities = self.warehouse.capabilities
            with several_partitions(self.spark):
                yield opened
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def records(frame: DataFrame) -> list[Record]:
    """The rows of a frame as dictionaries, with aware UTC times, whatever the process's zone."""
    return list(frame.toArrow().to_pylist(maps_as_pydicts="strict"))
