"""S14, S24: every surrogate key that was ever assigned is known by the dimension and its audit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration import Attribute, Begin, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta import audit_table
from scd_pipeline.delta.commits import HighWaterMark
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTIES, FORMAT
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import KeyCollision
from scd_pipeline.history.keys import surrogate_key
from scd_pipeline.load import audit
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.storage.customers import CUSTOMER, feed
from scd_pipeline_tests.text_tables import assert_same_rows

CURRENT_SCHEMA = audit_table.audit_schema
COLLIDING = {("a", 3), ("b", 6)}
"""Business key and month of the versions that have one surrogate key."""


def collides(text: Column) -> Column:
    def hashed(key: str, month: int) -> str:
        return f"0:1:{key}{int(datetime(2024, month, 1, tzinfo=timezone.utc).timestamp())}000000"

    return F.when(text.isin([hashed(*version) for version in COLLIDING]), F.lit(7)).otherwise(F.xxhash64(text))


@pytest.mark.rule("S14")
@pytest.mark.slow
def test_a_key_of_a_removed_version_is_not_given_to_another_version(spark: SparkSession, warehouse: Any) -> None:
    """Only the audit has it. The version itself gets it again."""
    opened = Warehouse(spark, warehouse, key_hash=collides)
    load(opened, CUSTOMER, [feed("1", ("a", 1, "Rome"), ("a", 3, "Oslo"))])
    load(opened, CUSTOMER, [feed("2", ("a", 2, "Oslo"), revision=1)])  # the version of March becomes one of February
    assert 7 not in [row["customer_key"] for row in opened.table("dim_customer").read().collect()]
    with pytest.raises(KeyCollision, match="id=a from 2024-03-01 00:00:00 and id=b from 2024-06-01 00:00:00"):
        plan(opened, CUSTOMER, [feed("3", ("b", 6, "Bonn"))])
    reopened = plan(opened, CUSTOMER, [feed("2", ("a", 2, "Kiel"), revision=2)])
    rows = reopened.changed_rows.where("customer_key = 7").collect()
    assert [(row["id"], row["effective_from"].month) for row in rows] == [("a", 3)]


MEMBER = Dimension(
    "dim_member",
    "id",
    {"city": 2, "since": Attribute(1, "date")},
    Source("crm", feed=Feed(effective_at="at")),
    begin=Begin(column="since"),
)
KEYS = """
| id | from       |
| a  | 2023-05-01 |
| a  | 2024-03-01 |
| a  | 2023-06-01 |
| b  | 2024-02-01 |
"""
"""The first version of `a` began in May, and after a revision in June; `b` has no declared begin."""


def members(name: str, *changes: tuple[str, str, str, str | None], revision: int = 1) -> Delivery:
    rows = [dict(zip(("id", "at", "city", "since"), change, strict=True)) for change in changes]
    return Delivery("crm", name, "feed", revision=revision, frame=rows)


def keys(warehouse: Warehouse) -> list[dict[str, Any]]:
    """The rows of the view, whose surrogate keys are those of their versions."""
    queries.register(warehouse, ["dim_member_keys"])
    view = warehouse.spark.table("dim_member_keys")
    assert view.columns == ["member_key", "id", EFFECTIVE_FROM]
    rows = view.withColumn("is_key", F.col("member_key") == surrogate_key(MEMBER)).toArrow().to_pylist()
    assert all(row["is_key"] for row in rows)
    return [{"id": row["id"], "from": row[EFFECTIVE_FROM].replace(tzinfo=None)} for row in rows]


def with_key_list(warehouse: Warehouse) -> None:
    """Add what an earlier release left: a key list, which a commit of the audit names."""
    table = warehouse.writable("dim_member_keys")
    columns = [("member_key", "bigint", False), ("id", "string", False), (EFFECTIVE_FROM, "timestamp", False)]
    table.create(columns, {FORMAT: "1", **APPEND_ONLY_PROPERTIES}, "")
    recorded = warehouse.writable("dim_member_audit")
    last = recorded.last_commit()
    marks = {**last.high_water_marks, table.name: HighWaterMark(1, 5, 1)}
    recorded.commit_empty(last.next(high_water_marks=marks))


def unused_tables(warehouse: Warehouse) -> Sequence[str]:
    (result,) = check_table(warehouse, MEMBER, ["no_unused_tables"])
    assert result.is_warning or result.passed
    return result.keys


def earlier_schema(dimension: Dimension) -> list[tuple[str, str, bool]]:
    return [column for column in CURRENT_SCHEMA(dimension) if column[0] != EFFECTIVE_FROM]


@pytest.mark.slow
def test_an_audit_that_an_earlier_release_created_but_never_wrote_gets_the_new_column(
    spark: SparkSession, warehouse: Any
) -> None:
    opened = Warehouse(spark, warehouse)
    opened.writable("dim_customer_audit").create(earlier_schema(CUSTOMER), {FORMAT: "1", **APPEND_ONLY_PROPERTIES}, "")
    load(opened, CUSTOMER, [feed("1", ("a", 1, "Rome"))])
    assert [row[EFFECTIVE_FROM].month for row in queries.audit(opened, CUSTOMER).collect()] == [1]


@pytest.mark.slow
@pytest.mark.rule("S14", "S24")
def test_an_audit_of_an_earlier_release_has_all_assigned_keys(
    spark: SparkSession, warehouse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lacks `effective_from`, which its next commit adds, and has a key list, which is not used any more."""
    opened = Warehouse(spark, warehouse)
    first = ("a", "2024-02-01", "Rome", "2023-05-01"), ("a", "2024-03-01", "Oslo", "2023-05-01")
    revised = ("a", "2024-02-01", "Rome", "2023-06-01"), ("a", "2024-03-01", "Oslo", "2023-06-01")
    with monkeypatch.context() as patched:
        for module in (audit_table, audit):
            patched.setattr(module, "audit_schema", earlier_schema)
        load(opened, MEMBER, [members("1", *first), members("2", ("b", "2024-02-01", "Bonn", None))])
        load(opened, MEMBER, [members("1", *revised, revision=2)])
    with_key_list(opened)
    assert_same_rows(KEYS, keys(opened))
    assert EFFECTIVE_FROM not in queries.audit(opened, MEMBER).columns
    assert unused_tables(opened) == ("dim_member_keys: drop the table; no load uses it",)

    restored = members("1", *first, revision=3)
    load(opened, MEMBER, [restored, members("3", ("c", "2024-07-01", "Ulm", None))]).raise_if_rejected()
    assert_same_rows(KEYS + "| c  | 2024-07-01 |\n", keys(opened))
    rows = queries.audit(opened, MEMBER).where("id = 'c'").collect()
    assert [row[EFFECTIVE_FROM].month for row in rows] == [7]
    assert opened.table("dim_member_keys").read().isEmpty()
    assert [str(result) for result in check_table(opened, MEMBER) if not (result.passed or result.is_warning)] == []
