"""The package itself."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.data import ATTRIBUTES, KEY, VERSION_COLUMNS
from benchmarks.sales import SALE_COLUMNS
from benchmarks.tables import SURROGATE_KEY
from benchmarks.work import DIMENSION, FACT, File, Work
from scd_pipeline import Attribute, Delivery, Dimension, Fact, Feed, Snapshot, Source, Warehouse
from scd_pipeline.load.run import ingest_and_apply, load

CUSTOMER = Dimension(
    DIMENSION,
    {KEY: "bigint"},
    {name: Attribute(2, data_type) for name, data_type in ATTRIBUTES.items()},
    Source("crm", snapshot=Snapshot(), feed=Feed(effective_at="changed_at", deletes="deleted")),
)
SALE = Fact(
    FACT,
    {"sale_id": "bigint"},
    "sold_at",
    {"customer": CUSTOMER},
    Source("crm", feed=Feed()),
    {"amount": "decimal(12,2)"},
)
DECLARED: dict[str, Dimension | Fact] = {DIMENSION: CUSTOMER, FACT: SALE}


def warehouse(site: Site) -> Warehouse:
    """Return the warehouse in the folder of the state."""
    return Warehouse(site.spark, site.state / "warehouse")


def deliveries(site: Site, files: Sequence[File]) -> list[Delivery]:
    """Return the files as deliveries."""
    return [Delivery("crm", file.name, file.channel, file.at, path=str(site.delivery(file))) for file in files]


def sales_with_windows(sales: DataFrame, dimension: DataFrame) -> DataFrame:
    """Return sales with the beginning of the version whose surrogate key they have, for the comparison."""
    versions = dimension.where("version > 0").select(
        F.col(SURROGATE_KEY), F.col(KEY).alias("version_id"), "effective_from"
    )
    joined = sales.join(versions, SURROGATE_KEY, "left")
    # A key of another customer's version would be an error that its window alone may not show.
    start = F.when(F.col("version_id") == F.col(KEY), F.col("effective_from")).alias("effective_from")
    return joined.select(*SALE_COLUMNS[:-1], start)


def _commits(work: Work, site: Site) -> int:
    """Return the number of commits of the table that a work item loads."""
    return len(list((site.state / "warehouse" / work.table / "_delta_log").glob("*.json")))


def _check_rekeyed_files(before: DataFrame, after: DataFrame) -> None:
    """Check that re-keying has rewritten no file that has no moved fact.

    Raises:
        RuntimeError: It has.
    """
    new_keys = after.select("sale_id", F.col(SURROGATE_KEY).alias("new_key"))
    stored = before.select("sale_id", SURROGATE_KEY, F.col("_metadata.file_name").alias("file"))
    moved = stored.join(new_keys, "sale_id").where(f"{SURROGATE_KEY} <> new_key").select("file").distinct()
    with_moved_facts = {row["file"] for row in moved.collect()}
    files_before, files_after = ({Path(uri).name for uri in rows.inputFiles()} for rows in (before, after))
    if others := files_before - files_after - with_moved_facts:
        raise RuntimeError(f"{FACT}: {len(others)} files without a moved fact were rewritten")


class Pipeline(Contestant):
    """Change log, dimension, audit, and the checks before the commit."""

    name = "scd_pipeline"
    description = "log, dimension, audit, keys and checks"
    state_of = "scd_pipeline"
    _commits_before = 0

    def prepare(self, work: Work, site: Site) -> None:
        for table, files in groupby(work.base, key=lambda file: file.table):
            listed = list(files)
            for start in range(0, len(listed), work.base_chunk):
                chunk = deliveries(site, listed[start : start + work.base_chunk])
                load(warehouse(site), DECLARED[table], chunk, has_facts=True).raise_if_rejected()
        # The capabilities of the server are probed once for each warehouse.
        _ = warehouse(site).capabilities

    def load(self, work: Work, site: Site) -> Sequence[float] | None:
        self._commits_before = _commits(work, site)
        if not work.loaded_one_by_one:
            self.load_files(work, site, work.deliveries)
            return None
        seconds = []
        for file in work.deliveries:
            start = time.perf_counter()
            self.load_files(work, site, [file])
            seconds.append(time.perf_counter() - start)
        return seconds

    def _check(self, work: Work, site: Site) -> None:
        """Check what the rows do not show: commits and rewritten files.

        Raises:
            RuntimeError: A load of an unchanged delivery made a commit, or re-keying rewrote too many files.
        """
        commits = _commits(work, site)
        if work.is_unchanged and commits != self._commits_before:
            raise RuntimeError(f"{work.table}: {commits - self._commits_before} commits for an unchanged delivery")
        if work.table == FACT and not work.deliveries and 0 < self._commits_before < commits:
            table = warehouse(site).table(FACT)
            _check_rekeyed_files(table.read(self._commits_before - 1), table.read())

    def load_files(self, work: Work, site: Site, files: Sequence[File]) -> None:
        """Load some deliveries in one load."""
        files_to_load, table = deliveries(site, files), DECLARED[work.table]
        load(warehouse(site), table, files_to_load, has_facts=True).raise_if_rejected()

    def rows(self, work: Work, site: Site) -> DataFrame:
        self._check(work, site)
        dimension = warehouse(site).table(DIMENSION).read()
        if work.table == DIMENSION:
            return dimension.where("version > 0").select(*VERSION_COLUMNS)
        return sales_with_windows(warehouse(site).table(FACT).read(), dimension)


class PipelineDimension(Pipeline):
    """Change log and dimension, without audit and keys."""

    name = "scd_pipeline_dimension"
    description = "log and dimension, without audit and keys"

    def load_files(self, work: Work, site: Site, files: Sequence[File]) -> None:
        ingest_and_apply(warehouse(site), CUSTOMER, deliveries(site, files)).raise_if_rejected()


class PipelineReload(Pipeline):
    """All facts loaded again, in place of re-keying those that a late change has moved."""

    name = "scd_pipeline_reload"
    description = "drop the facts and load all of them"

    def load(self, work: Work, site: Site) -> Sequence[float] | None:
        for folder in (site.state / "warehouse").glob(f"{FACT}*"):
            shutil.rmtree(folder)
        self._commits_before = 0
        self.load_files(work, site, [file for file in work.base if file.table == FACT])
        return None
