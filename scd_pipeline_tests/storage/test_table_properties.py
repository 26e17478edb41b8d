"""Declared properties of Delta tables: set when a table is created, and in an existing one by the next load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.table_properties import V_ORDER
from scd_pipeline.delta.schema import HIDDEN_VALUE, declaration_properties, has_properties
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import CUSTOMER, history, snapshot

CHANGE_DATA, WRITES, COMPACTION = (
    "delta.enableChangeDataFeed",
    "delta.autoOptimize.optimizeWrite",
    "delta.autoOptimize.autoCompact",
)
ALL = dict.fromkeys((CHANGE_DATA, WRITES, COMPACTION), True)
_MIN_FILES = "spark.databricks.delta.autoCompact.minNumFiles"


def with_properties(**properties: bool | str) -> Dimension:
    """The dimension of customers with table properties."""
    return replace(CUSTOMER, table_properties=properties)


@requirement("F2", "F45")
def test_a_new_table_has_the_declared_properties(spark: SparkSession, warehouse: Path) -> None:
    """V-Order is stored, though only another platform has it; the setting of the session stays as it was."""
    store, dimension = Warehouse(spark, warehouse), with_properties(**ALL, **{V_ORDER: True, "team": "sales"})
    ingest_and_apply(store, dimension, [snapshot(1, {"a": "Rome"})])
    table = store.table(dimension.name)
    properties = table.properties()
    assert {name: properties[name] for name in (*ALL, V_ORDER)} == dict.fromkeys((*ALL, V_ORDER), "true")
    assert (properties["team"], properties["delta.enableDeletionVectors"]) == ("sales", "true")
    before = table.last_commit().newest
    assert ingest_and_apply(store, dimension, [snapshot(1, {"a": "Rome"})]).row_counts == {}
    assert table.last_commit().newest == before
    assert V_ORDER not in store.table(f"{dimension.name}_changes").properties()
    assert spark.conf.get("spark.databricks.delta.allowArbitraryProperties.enabled") == "false"


@pytest.mark.slow
def test_an_existing_table_gets_its_properties_by_the_next_load_that_writes(in_rome: Warehouse) -> None:
    """By one commit, also if the name is written in another case; later loads make no such commit."""
    dimension = with_properties(**{CHANGE_DATA.lower(): True})
    table = in_rome.table(dimension.name)
    ingest_and_apply(in_rome, dimension, [snapshot(1, {"a": "Rome"})])
    assert CHANGE_DATA not in table.properties()
    ingest_and_apply(in_rome, dimension, [snapshot(2, {"a": "Oslo"})])
    assert table.properties()[CHANGE_DATA] == "true"
    before = table.last_commit().newest
    ingest_and_apply(in_rome, dimension, [snapshot(3, {"a": "Bern"})])
    assert table.last_commit().newest == before + 1
    assert [row["city"] for row in sorted(history(in_rome), key=lambda row: row["version"])] == ["Rome", "Oslo", "Bern"]


@pytest.mark.slow
def test_both_tables_of_a_dimension_have_the_declared_properties(spark: SparkSession, warehouse: Path) -> None:
    """When they are created; later declared ones by the next load that writes to the dimension."""
    store, dimension = Warehouse(spark, warehouse), replace(with_properties(**ALL), history_table=True)
    ingest_and_apply(store, dimension, [snapshot(1, {"a": "Rome"})])
    tables = [store.table(name) for name in (dimension.name, f"{dimension.name}_history")]
    for table in tables:
        assert {name: table.properties()[name] for name in ALL} == dict.fromkeys(ALL, "true")
    assert [table.newest_version() for table in tables] == [1, 0]
    changed = replace(dimension, table_properties={CHANGE_DATA: "false"})
    ingest_and_apply(store, changed, [snapshot(2, {"a": "Oslo"})])
    assert {table.properties()[CHANGE_DATA] for table in tables} == {"false"}
    before = [table.newest_version() for table in tables]
    ingest_and_apply(store, changed, [snapshot(3, {"a": "Bern"})])
    assert [table.newest_version() for table in tables] == [version + 1 for version in before]


@pytest.mark.slow
def test_a_history_table_that_lacks_the_properties_of_its_dimension_gets_them(
    spark: SparkSession, warehouse: Path
) -> None:
    """As one that was created before the dimension's table had them, or another program removed them."""
    store, dimension = Warehouse(spark, warehouse), replace(with_properties(**ALL), history_table=True)
    ingest_and_apply(store, dimension, [snapshot(1, {"a": "Rome"})])
    table, history_table = (store.table(name) for name in (dimension.name, f"{dimension.name}_history"))
    spark.sql(f"ALTER TABLE {history_table.identifier} UNSET TBLPROPERTIES ('{CHANGE_DATA}')").collect()
    before = table.newest_version()
    ingest_and_apply(store, dimension, [snapshot(2, {"a": "Oslo"})])
    assert history_table.properties()[CHANGE_DATA] == "true"
    assert table.newest_version() == before + 1


@pytest.mark.slow
def test_a_property_that_delta_does_not_know_is_an_error(spark: SparkSession, warehouse: Path) -> None:
    store, dimension = Warehouse(spark, warehouse), with_properties(**{"delta.enableChangeDataFed": True})
    with pytest.raises(UsageError) as error:
        ingest_and_apply(store, dimension, [snapshot(1, {"a": "Rome"})])
    assert (error.value.code, error.value.location) == ("TABLE_PROPERTY_UNKNOWN", "table dim_customer")
    assert "delta.enableChangeDataFed" in str(error.value)
    assert not store.table(dimension.name).exists()
    ingest_and_apply(store, with_properties(**{CHANGE_DATA: True}), [snapshot(1, {"a": "Rome"})])
    assert len(history(store)) == 1


@pytest.mark.slow
def test_delta_compacts_a_table_between_loads(spark: SparkSession, warehouse: Path) -> None:
    """Its commits change no rows, so that they are no damage; the change data feed has the versions of each load."""
    store, dimension = Warehouse(spark, warehouse), with_properties(**ALL)
    before = spark.conf.get(_MIN_FILES, None)
    spark.conf.set(_MIN_FILES, "2")
    # Each load adds a file, until one replaces rows: MERGE leaves no small files of the replaced rows to compact.
    new = [{"a": "Rome"}, {"a": "Rome", "b": "Linz"}, {"a": "Rome", "b": "Linz", "c": "Bern"}]
    changed = {"a": "Oslo", "b": "Linz", "c": "Bern"}
    try:
        for month, cities in enumerate([*new, changed], 1):
            load(store, dimension, [snapshot(month, cities)])
    finally:
        spark.conf.set(_MIN_FILES, before) if before else spark.conf.unset(_MIN_FILES)
    table = store.table(dimension.name)
    operations = {row["operation"] for row in spark.sql(f"DESCRIBE HISTORY {table.identifier}").collect()}
    assert "OPTIMIZE" in operations
    assert [str(result) for result in check_table(store, dimension) if not result.passed] == []
    assert sorted(row["city"] for row in history(store) if row["to"] is None) == ["Bern", "Linz", "Oslo"]
    changes = spark.read.option("readChangeFeed", "true").option("startingVersion", "0").table(table.identifier)
    opened = {row["city"] for row in changes.where("_change_type = 'insert'").select("city").collect()}
    assert opened == {"Rome", "Linz", "Bern", "Oslo"}


def test_delta_ignores_the_case_of_names() -> None:
    assert has_properties({"delta.X": "1", "y": "2"}, {"DELTA.x": "1"})
    assert not has_properties({"delta.X": "1"}, {"delta.X": "2"})
    assert not has_properties({}, {"delta.X": "1"})


def test_a_value_that_spark_hides_is_compared_by_a_fingerprint() -> None:
    declared, other = (declaration_properties(with_properties(docs=url)) for url in ("https://a.com", "https://b.com"))
    redacted = {**declared, "docs": HIDDEN_VALUE}
    assert has_properties(redacted, declared)
    assert not has_properties(redacted, other)
