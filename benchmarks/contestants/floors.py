"""Floors: the least that a load has to do. They write no versions, apart from the plain write."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.contestants.merges import as_changes
from benchmarks.data import ATTRIBUTES, KEY, OPEN_END, VERSION_COLUMNS, timestamp
from benchmarks.tables import SURROGATE_KEY, as_dimension, read_table, write_table
from benchmarks.work import Work


class _Floor(Contestant):
    state_of = "plain_table"

    def prepare(self, work: Work, site: Site) -> None:
        if work.base_versions is not None:
            write_table(as_dimension(work.base_versions(site.spark)), site.state / "dim")

    def rows(self, work: Work, site: Site) -> DataFrame | None:
        return None


class Comparison(_Floor):
    """The exact comparison of a delivery with the current versions: one full outer join, without a write."""

    name = "comparison"
    description = "floor: full outer join of delivery and current versions"

    def load(self, work: Work, site: Site) -> None:
        current = read_table(site.spark, site.state / "dim").where("current_flag")
        equal = " AND ".join(f"s.{name} <=> t.{name}" for name in ATTRIBUTES)
        for file in work.deliveries:
            delivered = as_changes(site, file).alias("s")
            joined = delivered.join(current.alias("t"), F.expr(f"s.{KEY} = t.{KEY}"), "full_outer")
            joined.where(f"s.{KEY} IS NULL OR t.{KEY} IS NULL OR NOT ({equal})").count()


class KeyScan(_Floor):
    """A scan of the key column of the table."""

    name = "key_scan"
    description = "floor: scan of the key column"

    def load(self, work: Work, site: Site) -> None:
        read_table(site.spark, site.state / "dim").agg(F.bit_xor(KEY)).collect()


class EmptyAppend(_Floor):
    """A commit without rows."""

    name = "empty_append"
    description = "floor: commit without rows"

    def load(self, work: Work, site: Site) -> None:
        table = read_table(site.spark, site.state / "dim")
        rows = site.spark.createDataFrame([], table.schema)
        rows.write.format("delta").mode("append").save(str(site.state / "dim"))


class PlainWrite(_Floor):
    """The first delivery written as a table of versions, without any comparison."""

    name = "plain_write"
    description = "floor: write of the table"

    def prepare(self, work: Work, site: Site) -> None:
        """Nothing exists before the write."""

    def load(self, work: Work, site: Site) -> None:
        for file in work.deliveries:
            write_table(_new_versions(as_changes(site, file)), site.state / "dim")

    def rows(self, work: Work, site: Site) -> DataFrame:
        return read_table(site.spark, site.state / "dim").select(*VERSION_COLUMNS)


def _new_versions(changes: DataFrame) -> DataFrame:
    return changes.select(
        F.xxhash64(KEY, "changed_at").alias(SURROGATE_KEY),
        KEY,
        *ATTRIBUTES,
        F.col("changed_at").alias("effective_from"),
        timestamp(OPEN_END).alias("effective_to"),
        F.lit(True).alias("current_flag"),
    )
