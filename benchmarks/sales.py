"""Work items that load facts: sales, each of which refers to the version of its customer at the time of the sale."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import data
from benchmarks.data import KEY
from benchmarks.work import FACT, File, Rows, Work

YEAR = 365 * 86400
LARGE_KEY_SHARE = 10
SECOND_LOAD = 300_000
SALE_COLUMNS = ("sale_id", KEY, "sold_at", "amount", "effective_from")


@dataclass(frozen=True, slots=True)
class Customers:
    """Customers with several versions, evenly spread over a year.

    Attributes:
        number: The number of customers.
        versions: The number of versions of each.
        large_key_versions: The number of versions of the customer with key 0, to whom a tenth of the sales belongs;
            0 if that customer is like the others.
    """

    number: int
    versions: int
    large_key_versions: int = 0

    @property
    def id(self) -> str:
        """The name for folders."""
        return f"versions-{self.number}-{self.versions}-{self.large_key_versions}"

    def count(self) -> Column:
        """Return the number of versions of a customer."""
        if not self.large_key_versions:
            return F.lit(self.versions)
        return F.when(F.col(KEY) == 0, F.lit(self.large_key_versions)).otherwise(F.lit(self.versions))

    def step(self) -> Column:
        """Return the number of seconds from a version of a customer to the next."""
        return F.floor(F.lit(YEAR) / self.count())

    def file(self) -> File:
        """Return the change feed of all versions."""

        def rows(spark: SparkSession) -> DataFrame:
            numbers = F.explode(F.sequence(F.lit(0), self.count() - 1))
            numbered = spark.range(self.number).select(KEY, numbers.alias("change"))
            at = F.timestamp_seconds(F.lit(data.seconds(data.FIRST)) + F.col("change") * self.step())
            deleted = F.lit(False).alias("deleted")
            return data.with_attributes(numbered.select(KEY, "change", at.alias("changed_at"), deleted))

        return File("versions", "feed", data.FIRST, f"{self.id}.parquet", rows)

    def late_file(self) -> File:
        """Return a change feed with one late change, between the first two versions of 1% of the customers."""

        def rows(spark: SparkSession) -> DataFrame:
            at = F.timestamp_seconds(F.lit(data.seconds(data.FIRST)) + F.floor(self.step() / 2))
            late = spark.range(self.number).where(_is_late())
            change = (self.count() + 1).alias("change")
            return data.with_attributes(late.select(KEY, change, at.alias("changed_at"), F.lit(False).alias("deleted")))

        return File("late", "feed", data.FIRST + timedelta(days=400), f"{self.id}-late.parquet", rows)

    def effective_from(self, *, late: bool) -> Column:
        """Return when the version in force at `sold_at` begins; NULL if none is in force."""
        elapsed = F.unix_seconds("sold_at") - F.lit(data.seconds(data.FIRST))
        start = F.least(F.floor(elapsed / self.step()), self.count() - 1) * self.step()
        if late:
            half = F.floor(self.step() / 2)
            start = F.when(_is_late() & (start == 0) & (elapsed >= half), half).otherwise(start)
        exists = (elapsed >= 0) & (F.col(KEY) < self.number)
        return F.when(exists, F.timestamp_seconds(F.lit(data.seconds(data.FIRST)) + start))

    def sales(self, spark: SparkSession, start: int, end: int) -> DataFrame:
        """Return sales with these numbers; one in two hundred is of an unknown customer, some are too early."""
        code = F.pmod(F.xxhash64("sale_id"), F.lit(2**40))
        customer = code % (self.number + self.number // 200)
        if self.large_key_versions:
            customer = F.when(F.col("sale_id") % LARGE_KEY_SHARE == 0, F.lit(0)).otherwise(customer)
        sold_at = F.pmod(F.xxhash64("sale_id", F.lit(7)), F.lit(YEAR + 86400)) + (data.seconds(data.FIRST) - 86400)
        return (
            spark.range(start, end)
            .withColumnRenamed("id", "sale_id")
            .select(
                "sale_id",
                customer.cast("bigint").alias(KEY),
                F.timestamp_seconds(sold_at).alias("sold_at"),
                ((F.col("sale_id") * 37 % 100000) / 100).cast("decimal(12,2)").alias("amount"),
            )
        )

    def sales_file(self, name: str, start: int, end: int) -> File:
        """Return a delivery of sales."""
        folder = f"{self.id}-sales-{start}-{end}.parquet"
        at = data.FIRST + timedelta(days=366)
        return File(name, "feed", at, folder, lambda spark: self.sales(spark, start, end), FACT)

    def expected(self, end: int, *, late: bool = False) -> Rows:
        """Return the sales with the beginning of the version that each refers to."""

        def rows(spark: SparkSession) -> DataFrame:
            sales = self.sales(spark, 0, end)
            return sales.withColumn("effective_from", self.effective_from(late=late)).select(*SALE_COLUMNS)

        return rows

    def expected_totals(self, end: int) -> Rows:
        """Return the totals of the sales whose customer has a version, see `totals`."""

        def rows(spark: SparkSession) -> DataFrame:
            sales = self.sales(spark, 0, end).withColumn("effective_from", self.effective_from(late=False))
            elapsed = F.unix_seconds("effective_from") - F.lit(data.seconds(data.FIRST))
            change = F.floor(elapsed / self.step()).alias("change")
            return totals(data.with_attributes(sales.where("effective_from IS NOT NULL").select(KEY, change, "amount")))

        return rows


def _is_late() -> Column:
    return data.bucket(3) < 10


def sales(size: int, _changes: int) -> Work:
    """(f): a load of facts, half as many versions as facts, 5 for each customer."""
    return _load("f", size, Customers(size // 10, 5), "fact load, 5 versions per key")


def sales_of_many_versions(size: int, _changes: int) -> Work:
    """(f): the same with 200 versions for each customer."""
    return _load("f-versions", size, Customers(max(1, size // 400), 200), "fact load, 200 versions per key")


def sales_of_large_key(size: int, _changes: int) -> Work:
    """(f): the same with a customer who has a tenth of the facts and many versions."""
    customers = Customers(size // 10, 5, max(10, size // 2000))
    return _load("f-skew", size, customers, "fact load, one key has a tenth of the facts")


def _stored_sales(customers: Customers, size: int) -> tuple[str, tuple[File, ...]]:
    """Return the name and the deliveries of the state with this number of loaded sales."""
    return f"{customers.id}-sales-{size}", (customers.file(), customers.sales_file("sales", 0, size))


def _load(name: str, size: int, customers: Customers, description: str) -> Work:
    files = (customers.sales_file("sales", 0, size),)
    return Work(name, size, description, customers.id, (customers.file(),), files, customers.expected(size), table=FACT)


def second_sales(size: int, changes: int) -> Work:
    """(f): a second load of facts into `size` stored ones."""
    number = changes or min(SECOND_LOAD, size // 10)
    customers = Customers(number, 5)
    state, base = _stored_sales(customers, size)
    second = customers.sales_file("more-sales", size, size + number)
    return Work(
        "f-second",
        size,
        "second fact load into stored facts",
        state,
        base,
        (second,),
        customers.expected(size + number),
        changes=number,
        table=FACT,
    )


def joined_sales(size: int, _changes: int) -> Work:
    """(j): a query that joins stored facts with their dimension."""
    customers = Customers(min(SECOND_LOAD, size // 10), 5)
    state, base = _stored_sales(customers, size)
    return Work(
        "j",
        size,
        "aggregate of facts by attributes of the version at the time of the sale",
        state,
        base,
        (),
        customers.expected_totals(size),
        table=FACT,
    )


def totals(sales: DataFrame) -> DataFrame:
    """Return the totals by two attributes of the customer; `credit_limit` differs from version to version."""
    return sales.groupBy("status", "segment").agg(
        F.count("*").alias("sales"), F.sum("amount").alias("amount"), F.sum("credit_limit").alias("credit_limit")
    )


def rekeyed_sales(size: int, _changes: int) -> Work:
    """(g): the fact load after a late change of 1% of the customers."""
    customers = Customers(size // 10, 5)
    return Work(
        "g",
        size,
        "re-key after a late change of 1% of the entities",
        f"{customers.id}-sales-{size}-late",
        (customers.file(), customers.sales_file("sales", 0, size), customers.late_file()),
        (),
        customers.expected(size, late=True),
        table=FACT,
    )
