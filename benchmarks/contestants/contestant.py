"""What every contestant does: prepare the state before the measurement, load, and return its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from benchmarks.work import File, Work


@dataclass(frozen=True, slots=True)
class Site:
    """Where a contestant works.

    Attributes:
        spark: The session of all contestants with Spark, and of the comparison of the results.
        data: The folder of the deliveries.
        state: The folder of the contestant's tables.
        environments: The folder of the Python environments of contestants without Spark.
    """

    spark: SparkSession
    data: Path
    state: Path
    environments: Path

    def delivery(self, file: File) -> Path:
        """Return the folder of a delivery."""
        return self.data / file.folder

    def rows(self, file: File) -> DataFrame:
        """Return the rows of a delivery."""
        return self.spark.read.parquet(str(self.delivery(file)))


class Contestant(ABC):
    """One way to load deliveries.

    Attributes:
        name: The name in the results.
        description: What it does, in a few words.
        state_of: The name of the prepared state, which contestants can share.
        is_process: Whether the measured load is a process of its own.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    state_of: ClassVar[str]
    is_process: ClassVar[bool] = False

    def server_ids(self, site: Site) -> tuple[int, ...]:
        """Return the processes of the servers that the measured load uses, which are measured with it."""
        return ()

    @abstractmethod
    def prepare(self, work: Work, site: Site) -> None:
        """Create the state before the measured load in the empty folder of the state."""

    @abstractmethod
    def load(self, work: Work, site: Site) -> Sequence[float] | None:
        """Run the measured load; return the seconds of each part if it has several that are compared."""

    @abstractmethod
    def rows(self, work: Work, site: Site) -> DataFrame | None:
        """Return the rows after the load, as `Work.expected`; None for a floor that writes none."""
