"""A warehouse for the scenarios of one shape, the ways of loading them, and the rows of its tables."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, INFO, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.history_table import newest_versions
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import narrowing
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import LoadResult, ingest_and_apply
from scd_pipeline.operations.archive import archive
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.generative.engine import declaration, delivery
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

    def __post_init__(self) -> None:
        self.files.mkdir(parents=True, exist_ok=True)
        self.warehouse = Warehouse(self.spark, self.folder)

    @property
    def shape(self) -> Shape:
        return self.scenarios[0].shape

    @property
    def dimension(self) -> Dimension:
        return self._declared(self.shape.final)

    def _declared(self, dim: o.Dim) -> Dimension:
        declared = declaration(self.shape, dim)
        if self.archives and declared.has_windows:
            return replace(declared, archive_after_years=1)
        if self.history_columns is None or not declared.has_windows:
            return declared
        columns = self.history_columns if declared.common_columns else "all"
        return replace(declared, history_table=True, history_columns=columns)

    def load(self, way: Way) -> None:
        """Load the scenarios, first under their first declaration, then under the final one."""
        for phase, dim in enumerate((self.shape.first, self.shape.final)):
            dimension = self._declared(dim)
            for batches in steps(self.scenarios, phase, way.loads):
                self._load(dimension, batches)
                if way.twice:
                    self._repeat(dimension, batches[::-1])

    def repeat_all(self) -> None:
        """Load everything a second time, in one pass under the final declaration."""
        self._repeat(self.dimension, [batch for scenario in self.scenarios for batch in reversed(scenario.delivered)])

    def _load(self, dimension: Dimension, batches: Sequence[o.Batch]) -> None:
        """Load; of three loads two are narrowed, as those of a large log are."""
        deliveries, limit = self.deliveries(batches), 20_000 if len(self.done) % 3 == 2 else 0
        with patch.object(narrowing, "NARROWED_FROM", limit):
            self.done.append(ingest_and_apply(self.warehouse, dimension, deliveries, retry=Retry(attempts=1)))
        if dimension.archive_after_years is not None and self.warehouse.table(dimension.name).exists():
            self._archive(dimension)

    def _archive(self, dimension: Dimension) -> None:
        """Archive versions that ended before a time among those of the scenarios, which is drawn for the load."""
        time = START + random.Random(len(self.done)).randrange(1, 12) * DAY
        self.archived += archive(self.warehouse, dimension, closed_before=time, by="scenarios", reason="test").moved

    def _repeat(self, dimension: Dimension, batches: Sequence[o.Batch]) -> None:
        before = self.done[-1]
        self._load(dimension, batches)
        self.repeats.append((before, self.done.pop()))

    def deliveries(self, batches: Sequence[o.Batch]) -> list[Delivery]:
        return [delivery(batch, self.shape, self.files) for batch in batches]

    def rows(self) -> list[Record]:
        """The current rows of the dimension's table, and of its history table or archive."""
        newest = newest_versions(self.warehouse, self.dimension.name)
        return records(newest.rows) if newest is not None else []

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
