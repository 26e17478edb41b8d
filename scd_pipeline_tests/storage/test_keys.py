from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Fact, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError, KeyCollision
from scd_pipeline.invariants import dimensions
from scd_pipeline.invariants.facts import duplicate_grain
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import CUSTOMER, history, snapshot


def collides_unsalted(text: Column) -> Column:
    """Every version of a dimension without salt gets one key; salted ones get keys of their own."""
    return F.when(text.startswith("0:"), F.lit(7).cast("bigint")).otherwise(F.xxhash64(text))


def reserved(text: Column) -> Column:
    return F.least(F.length(text).cast("bigint"), F.lit(-1).cast("bigint"))


def salted(salt: str) -> Dimension:
    return Dimension("dim_customer", "id", {"email": 1, "city": 2}, CUSTOMER.sources, key_salt=salt)


@pytest.mark.parametrize(
    "listed_keys", [pytest.param(20_000, id="few rows"), pytest.param(0, id="many rows", marks=pytest.mark.slow)]
)
@requirement("F32")
def test_a_key_collision_within_a_run_fails_it(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, listed_keys: int
) -> None:
    """S14: nothing is written, both versions are reported, and a salt resolves it."""
    monkeypatch.setattr(dimensions, "MAX_LISTED_KEYS", listed_keys)
    opened = Warehouse(spark, warehouse, key_hash=collides_unsalted)
    with pytest.raises(KeyCollision, match=r"KEY_COLLISION.*id=a.*id=b"):
        ingest_and_apply(opened, CUSTOMER, [snapshot(1, {"a": "Rome", "b": "Oslo"})])
    assert not opened.table("dim_customer_changes").exists()
    ingest_and_apply(opened, salted("x"), [snapshot(1, {"a": "Rome", "b": "Oslo"})])
    assert len(history(opened)) == 2


@requirement("F32")
def test_a_key_collision_with_a_stored_version_fails_the_run(spark: SparkSession, warehouse: Path) -> None:
    """S14: the stored version is not lost."""
    opened = Warehouse(spark, warehouse, key_hash=collides_unsalted)
    ingest_and_apply(opened, CUSTOMER, [snapshot(1, {"a": "Rome"})])
    with pytest.raises(KeyCollision, match="id=a from 2024-01-01 00:00:00 and id=b from 2024-02-01 00:00:00"):
        ingest_and_apply(opened, CUSTOMER, [snapshot(2, {"a": "Rome", "b": "Oslo"})])
    assert [row["id"] for row in history(opened)] == ["a"]
    assert opened.table("dim_customer_changes").last_commit().number == 1


@pytest.mark.slow(15)
@requirement("F32")
def test_the_fix_of_a_collision_with_a_stored_version_resolves_it(spark: SparkSession, warehouse: Path) -> None:
    """A stored table rejects another salt: all keys change, also those in facts and in the audit."""
    opened = Warehouse(spark, warehouse, key_hash=collides_unsalted)
    load(opened, CUSTOMER, [snapshot(1, {"a": "Rome"})])
    load(opened, order_fact(CUSTOMER), [ORDER])
    both = snapshot(2, {"a": "Rome", "b": "Oslo"})
    with pytest.raises(KeyCollision, match=r"another `key_salt` and drop dim_customer: the next load rebuilds it"):
        load(opened, CUSTOMER, [both])
    with pytest.raises(DeclarationError, match="key_salt"):
        load(opened, salted("x"), [both])

    shutil.rmtree(warehouse / "dim_customer")  # as the message says
    load(opened, salted("x"), [both])
    load(opened, order_fact(salted("x")), [])
    rows = opened.table("dim_customer").read().select("id", "customer_key").collect()
    keys = {row["id"]: row["customer_key"] for row in rows}
    assert keys.keys() == {"a", "b", None} and keys["a"] != 7
    assert [row["customer_key"] for row in opened.table("fct_order").read().collect()] == [keys["a"]]
    checked = [salted("x"), order_fact(salted("x"))]
    assert [str(result) for table in checked for result in check_table(opened, table) if not result.passed] == []


def order_fact(dimension: Dimension) -> Fact:
    source = Source("shop", feed=Feed())
    return Fact("fct_order", {"order": "int"}, "at", {"customer": dimension}, source, measures={"amount": "int"})


ORDER = Delivery(
    "shop", "1", at=datetime(2024, 2, 1), frame=[{"order": 1, "at": datetime(2024, 1, 15), "id": "a", "amount": 5}]
)


def test_the_key_of_a_reserved_member_is_a_collision(spark: SparkSession, warehouse: Path) -> None:
    opened = Warehouse(spark, warehouse, key_hash=reserved)
    with pytest.raises(KeyCollision, match="surrogate_keys_are_not_reserved: id=a"):
        ingest_and_apply(opened, CUSTOMER, [snapshot(1, {"a": "Rome"})])


@pytest.mark.slow
def test_surrogate_keys_depend_on_business_key_and_time_alone(spark: SparkSession, tmp_path: Path) -> None:
    """S14: another warehouse with other earlier batches has the same keys."""
    keys = []
    for name, before in (("one", {"a": "Rome"}), ("two", {"z": "Bonn", "a": "Rome"})):
        opened = Warehouse(spark, tmp_path / name)
        ingest_and_apply(opened, CUSTOMER, [snapshot(1, before)])
        rows = opened.table("dim_customer").read().where("id = 'a'").select("customer_key").collect()
        keys.append([row[0] for row in rows])
    assert keys[0] == keys[1]


@pytest.mark.slow
def test_a_business_key_and_a_grain_may_have_the_names_of_counts(spark: SparkSession, warehouse: Path) -> None:
    """The internal columns of a count have names that no declared column can have."""
    names = ("new", "changed", "deleted", "reopened", "retired", "count")
    dimension = Dimension("dim_tally", names, {"city": 1}, Source("crm", feed=Feed()))
    fact = Fact("fct_tally", {"count": "string"}, "at", {"tally": dimension}, Source("till", feed=Feed()))
    frame = pa.table({"city": ["Rome", "Oslo"], **{name: ["a", "b"] for name in names}})
    opened = Warehouse(spark, warehouse)
    done = ingest_and_apply(opened, dimension, [Delivery("crm", "1", at=datetime(2024, 1, 1), frame=frame)])
    assert [(batch.new, batch.changed, batch.deleted) for batch in done.results] == [(2, 0, 0)]
    rows = opened.table("dim_tally").read()
    assert duplicate_grain(rows, fact, {}).isEmpty()
    assert duplicate_grain(rows.unionByName(rows), fact, {}).count() == 2
