"""As-of joins with the dimension of the package: those that create a fact table, and queries of a loaded one."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from benchmarks.contestants.contestant import Site
from benchmarks.contestants.pipeline import Pipeline, sales_with_windows, warehouse
from benchmarks.data import KEY
from benchmarks.sales import SALE_COLUMNS, totals
from benchmarks.tables import SURROGATE_KEY, identifier, read_table, table_properties
from benchmarks.work import DIMENSION, FACT, Work


class PlainJoin(Pipeline):
    """CREATE TABLE AS the equi-join of facts and dimension, with the validity window as a further condition."""

    name = "plain_join"
    description = "CREATE TABLE AS the plain join"

    def load(self, work: Work, site: Site) -> None:
        for file in work.deliveries:
            site.spark.sql(
                f"CREATE TABLE {identifier(site.state / 'sales')} USING delta {table_properties()} AS "
                f"SELECT f.*, coalesce(d.{SURROGATE_KEY}, -1L) AS {SURROGATE_KEY} FROM {{facts}} f "
                f"LEFT JOIN {{dimension}} d ON f.{KEY} = d.{KEY} AND d.version > 0 "
                f"AND f.sold_at >= d.effective_from AND f.sold_at < d.effective_to",
                facts=site.rows(file),
                dimension=warehouse(site).table(DIMENSION).read(),
            )

    def rows(self, work: Work, site: Site) -> DataFrame:
        return sales_with_windows(read_table(site.spark, site.state / "sales"), warehouse(site).table(DIMENSION).read())


class UnionWindow(PlainJoin):
    """The as-of join of Tempo: facts and versions in one frame, ordered by time, the last version carried forward."""

    name = "union_window"
    description = "union of facts and versions, last value in a window"

    def load(self, work: Work, site: Site) -> None:
        columns = [*SALE_COLUMNS[:-1]]
        versions = warehouse(site).table(DIMENSION).read().where("version > 0")
        version = F.struct(SURROGATE_KEY, "effective_to").alias("version")
        right = versions.select(KEY, F.col("effective_from").alias("sold_at"), version)
        for file in work.deliveries:
            union = (
                site.rows(file)
                .withColumn("is_fact", F.lit(1))
                .unionByName(right.withColumn("is_fact", F.lit(0)), allowMissingColumns=True)
            )
            window = Window.partitionBy(KEY).orderBy("sold_at", "is_fact").rowsBetween(Window.unboundedPreceding, 0)
            carried = union.withColumn("version", F.last("version", ignorenulls=True).over(window)).where("is_fact = 1")
            key = F.when(F.col("sold_at") < F.col("version.effective_to"), F.col(f"version.{SURROGATE_KEY}"))
            rows = carried.select(*columns, F.coalesce(key, F.lit(-1)).alias(SURROGATE_KEY))
            site.spark.sql(
                f"CREATE TABLE {identifier(site.state / 'sales')} USING delta {table_properties()} AS "
                "SELECT * FROM {rows}",
                rows=rows,
            )


class StoredKeyJoin(Pipeline):
    """A query that joins loaded facts with their dimension by the surrogate key that they store."""

    name = "stored_key_join"
    description = "query: join by the stored surrogate key"
    condition = f"f.{SURROGATE_KEY} = d.{SURROGATE_KEY} AND d.version > 0"
    _totals: tuple[list[Row], StructType]

    def load(self, work: Work, site: Site) -> None:
        joined = site.spark.sql(
            f"SELECT d.status, d.segment, d.credit_limit, f.amount FROM {{facts}} f "
            f"JOIN {{dimension}} d ON {self.condition}",
            facts=warehouse(site).table(FACT).read(),
            dimension=warehouse(site).table(DIMENSION).read(),
        )
        result = totals(joined)
        self._totals = result.collect(), result.schema

    def rows(self, work: Work, site: Site) -> DataFrame:
        return site.spark.createDataFrame(*self._totals)


class AsOfJoin(StoredKeyJoin):
    """The same query without the stored key: a join by business key, and by the time of the sale."""

    name = "as_of_join"
    description = "query: join by business key and time"
    condition = f"f.{KEY} = d.{KEY} AND f.sold_at >= d.effective_from AND f.sold_at < d.effective_to"
