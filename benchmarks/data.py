"""Deterministic customers: every value is a function of the key and of the number of the change.

Customers are described by events: (id, at, change, deleted). Deliveries and the expected versions are both derived from
the events, so the expected rows do not depend on any contestant.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

KEY = "id"
ATTRIBUTES = {
    "name": "string",
    "email": "string",
    "city": "string",
    "state": "string",
    "segment": "string",
    "status": "string",
    "credit_limit": "int",
    "balance": "decimal(12,2)",
    "signup_date": "date",
    "updated_at": "timestamp",
}
FIRST = datetime(2024, 1, 1)
SECOND = datetime(2024, 1, 2)
OPEN_END = datetime(9999, 12, 31, 23, 59, 59)
VERSION_COLUMNS = (KEY, *ATTRIBUTES, "effective_from", "effective_to")

_VALUES = {
    "name": "concat('Customer ', id)",
    "email": "concat('c', id, '@example', id % 97, '.com')",
    "city": "concat('City ', (id * 31 + change * 7) % 4000)",
    "state": "CASE WHEN id % 41 <> 0 THEN concat('S', (id * 31) % 50) END",
    "segment": "concat('segment ', id % 5)",
    "status": "element_at(array('active', 'dormant', 'closed'), cast((id + change) % 3 + 1 AS int))",
    "credit_limit": "cast((id * 13) % 20000 + change AS int)",
    "balance": "cast((id * 7919) % 10000000 / 100 AS decimal(12,2))",
    "signup_date": "date_add(DATE'2000-01-01', cast(id % 8000 AS int))",
    "updated_at": "timestamp_seconds(1672531200 + id % 31536000 + change * 86400)",
}


def with_attributes(rows: DataFrame) -> DataFrame:
    """Replace `change` by the attributes that a customer has after that change; NULL without a change."""
    values = [F.expr(f"CASE WHEN change IS NOT NULL THEN {sql} END").alias(name) for name, sql in _VALUES.items()]
    others = [name for name in rows.columns if name not in (KEY, "change")]
    return rows.select(KEY, *values, *others)


def timestamp(time: datetime) -> Column:
    """Return a time in UTC as a literal."""
    return F.expr(f"TIMESTAMP'{time:%Y-%m-%d %H:%M:%S}'")


def events(rows: DataFrame, at: Column, change: Column, deleted: Column | None = None) -> DataFrame:
    """Return events of the entities in `rows`."""
    is_deleted = F.lit(False) if deleted is None else deleted
    return rows.select(
        KEY,
        at.alias("at"),
        F.when(~is_deleted, change).cast("int").alias("change"),
        is_deleted.alias("deleted"),
    )


def first_events(spark: SparkSession, size: int) -> DataFrame:
    """Return the first event of each of `size` customers."""
    return events(spark.range(size), timestamp(FIRST), F.lit(0))


def seconds(time: datetime) -> int:
    """Return a time in UTC as seconds since 1970."""
    return int((time - datetime(1970, 1, 1)).total_seconds())


def bucket(salt: int | Column) -> Column:
    """Return a number from 0 to 999 for each entity, evenly distributed and another one for each salt."""
    return F.pmod(F.col(KEY) * 7919 + salt * 104729, F.lit(1000))


def snapshot_events(spark: SparkSession, size: int) -> DataFrame:
    """Return the events of the second snapshot: 2% of the customers changed, 0.5% new, 0.5% deleted."""
    existing = spark.range(size).where(bucket(1) < 25)
    new = spark.range(size, size + size // 200)
    changed = events(existing, timestamp(SECOND), F.lit(1), bucket(1) >= 20)
    return changed.unionByName(events(new, timestamp(SECOND), F.lit(0)))


def feed_events(spark: SparkSession, size: int, changes: int, *, late: bool = False) -> DataFrame:
    """Return the events of a change feed: 90% updates, 5% new, 5% deletes, each of another customer.

    Args:
        spark: The session.
        size: The number of existing customers.
        changes: The number of events, at most `size`.
        late: Whether one event in a hundred is three years late.
    """
    number = F.col("number")
    rows = spark.range(changes).withColumnRenamed("id", "number")
    is_new, is_deleted = number % 20 == 0, number % 20 == 1
    entity = F.when(is_new, size + number).otherwise(number * (size // changes))
    at = F.timestamp_seconds(F.lit(seconds(SECOND)) + number % 86400)
    if late:
        at = F.when(number % 100 == 50, timestamp(FIRST - timedelta(days=3 * 365))).otherwise(at)
    change = F.when(is_new, F.lit(0)).otherwise(F.lit(1))
    described = rows.select(entity.alias(KEY), at.alias("at"), change.alias("change"), is_deleted.alias("deleted"))
    return events(described, F.col("at"), F.col("change"), F.col("deleted"))


def state(history: DataFrame, at: datetime) -> DataFrame:
    """Return the customers that exist at a time, with their attributes."""
    latest = F.max_by(F.struct("change", "deleted"), "at").alias("latest")
    states = history.where(F.col("at") <= timestamp(at)).groupBy(KEY).agg(latest)
    return with_attributes(states.where("NOT latest.deleted").select(KEY, "latest.change"))


def versions(history: DataFrame) -> DataFrame:
    """Return the versions that result from events: `VERSION_COLUMNS`, one row for each validity window."""
    by_entity = Window.partitionBy(KEY).orderBy("at")
    previous = F.lag("change").over(by_entity)
    distinct = history.withColumn("previous", previous).where("NOT (change <=> previous)").drop("previous")
    windows = distinct.withColumn("until", F.lead("at").over(by_entity)).where("NOT deleted")
    end = F.coalesce("until", timestamp(OPEN_END))
    return with_attributes(
        windows.select(KEY, "change", F.col("at").alias("effective_from"), end.alias("effective_to"))
    )
