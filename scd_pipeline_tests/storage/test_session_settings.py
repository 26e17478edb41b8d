"""A load of few records changes settings of its session, and restores them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load import session_settings
from scd_pipeline.load.run import load
from scd_pipeline_tests.storage.customers import CUSTOMER, feed
from scd_pipeline_tests.text_tables import assert_same_rows

PARTITIONS, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings of its own."""
    before = {name: spark.conf.get(name) for name in (PARTITIONS, ADAPTIVE)}
    spark.conf.set(PARTITIONS, "3")
    spark.conf.set(ADAPTIVE, "true")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")


def test_a_load_of_few_records_is_planned_once_and_in_one_partition(session: SparkSession, warehouse: Path) -> None:
    during = set()

    def remember(message: str) -> None:
        if "wrote commit" in message:
            during.add((session.conf.get(PARTITIONS), session.conf.get(ADAPTIVE)))

    load(Warehouse(session, warehouse), CUSTOMER, [feed("one", ("a", 1, "Rome"))], progress=remember)
    assert during == {("1", "false")}
    assert (session.conf.get(PARTITIONS), session.conf.get(ADAPTIVE)) == ("3", "true")


PRODUCTION = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.leafNodeDefaultParallelism": "4",
}
"""Spark's own settings, which a load of many records has, with fewer partitions."""
FEW = 2_000
"""The limit of a load of few records in this file: at the real one, the loads take a minute."""
MANY = 2_100
"""More entities than that."""


@pytest.fixture
def as_in_production(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session with generated code, adaptive execution and several partitions."""
    for limits in ("_BY_READ_RECORDS", "_BY_SHUFFLED_RECORDS"):
        settings = [changed for _, changed in getattr(session_settings, limits)]
        monkeypatch.setattr(session_settings, limits, ((FEW, settings[-1]),))
    before = {name: spark.conf.get(name, None) for name in PRODUCTION}
    for name, value in PRODUCTION.items():
        spark.conf.set(name, value)
    yield spark
    for name, setting in before.items():
        spark.conf.unset(name) if setting is None else spark.conf.set(name, setting)


@pytest.mark.slow(30)
def test_many_records_are_loaded_by_generated_code_in_several_partitions(
    as_in_production: SparkSession, warehouse: Path
) -> None:
    """A version of each entity, then an earlier one of each, and a change of one entity."""
    during = set()

    def remember(message: str) -> None:
        if "wrote commit" in message:
            during.add(tuple(as_in_production.conf.get(name) for name in PRODUCTION))

    opened = Warehouse(as_in_production, warehouse)
    for name, month, city in (("one", 3, "Oslo"), ("two", 1, "Rome")):
        changes = [(f"c{number}", month, city) for number in range(MANY)]
        load(opened, CUSTOMER, [feed(name, *changes)], progress=remember)
    assert during == {tuple(PRODUCTION.values())}
    during.clear()
    load(opened, CUSTOMER, [feed("three", ("c1", 4, "Kiel"))], progress=remember)
    assert {code for code, *_ in during} == {"false"}, "few rows, whatever the tables have"
    columns = ("city", "effective_from", "effective_to", "current_flag", "version")
    rows = opened.table(CUSTOMER.name).read().groupBy(*columns).agg(F.countDistinct("id").alias("entities"))
    assert_same_rows(
        f"""
        | city | effective_from | effective_to | current_flag | version | entities |
        | Rome | 2024-01-01     | 2024-03-01   | false        | 1       | {MANY}   |
        | Oslo | 2024-03-01     | OPEN         | true         | 2       | {MANY - 1} |
        | Oslo | 2024-03-01     | 2024-04-01   | false        | 2       | 1        |
        | Kiel | 2024-04-01     | OPEN         | true         | 3       | 1        |
        """,
        rows.toArrow().to_pylist(),
    )
