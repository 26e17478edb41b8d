"""Deliveries as versions and as partitions of a table, and as files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StructField, TimestampType

from scd_pipeline.declaration import Attribute, Begin, Dimension, Feed, Snapshot, Source, read_dimension
from scd_pipeline.deliveries.delivery import NO_VALUE, Delivery
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.deliveries.source_commits import PartitionChanges, partition_changes
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.delta_operations import ENFORCE_TIME_TRAVEL_RETENTION
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.log import read_log
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline.operations.status import status
from scd_pipeline_tests.storage.customers import CUSTOMER, history, snapshot
from scd_pipeline_tests.text_tables import assert_same_rows


def declared(path: str, **options: object) -> Dimension:
    return Dimension("dim_customer", "id", {"city": 2}, Source("crm", Snapshot(path, **options)))  # type: ignore[arg-type]


def test_each_version_of_a_table_is_a_delivery(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "customers")
    for city in ("Rome", "Oslo"):
        spark.sql(f"SELECT 'a' AS id, '{city}' AS city").write.format("delta").mode("overwrite").save(path)
    dimension = declared(path, versions=True)
    deliveries = discover(dimension, spark)
    assert [(d.name, d.table_version) for d in deliveries] == [("0", 0), ("1", 1)]
    load_plan = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries)
    assert [batch.outcome for batch in load_plan.results] == ["accepted", "accepted"]
    rows = load_plan.changed_rows.orderBy("version").select("city", "current_flag").collect()
    assert [tuple(row) for row in rows] == [("Rome", False), ("Oslo", True)]


@pytest.mark.slow
def test_a_version_is_loaded_although_the_retention_of_its_files_has_passed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By default Delta refuses every version but the newest one, although it has the files."""
    spark.conf.unset(ENFORCE_TIME_TRAVEL_RETENTION)
    path, opened = str(tmp_path / "customers"), Warehouse(spark, tmp_path / "warehouse")
    for city in ("Rome", "Oslo"):
        spark.sql(f"SELECT 'a' AS id, '{city}' AS city").write.format("delta").mode("overwrite").save(path)
    retention = "'delta.deletedFileRetentionDuration' = 'interval 1 second'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({retention})")
    time.sleep(1.5)
    dimension = declared(path, versions=True)
    done = ingest_and_apply(opened, dimension, discover(dimension, spark))
    assert [batch.outcome for batch in done.results] == ["accepted", "accepted"]


@pytest.mark.slow
def test_a_feed_has_the_rows_that_each_version_of_a_table_changed(spark: SparkSession, tmp_path: Path) -> None:
    """Those before the change data feed are read whole. Other rows, and a column that is added later, are not read."""
    path = f"delta.`{tmp_path / 'customers'}`"
    for statement in (
        f"CREATE TABLE {path} (id STRING, city STRING) USING delta",
        f"INSERT INTO {path} VALUES ('a', 'Rome'), ('b', 'Bonn')",
        f"INSERT INTO {path} VALUES ('c', 'Graz')",
        f"ALTER TABLE {path} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        f"UPDATE {path} SET city = 'Oslo' WHERE id = 'a'",
        f"DELETE FROM {path} WHERE id = 'b'",
        f"ALTER TABLE {path} ADD COLUMNS (note STRING)",
        f"INSERT INTO {path} VALUES ('d', 'Wien', 'x')",
    ):
        spark.sql(statement)
    done, opened = load_changes(spark, tmp_path)
    assert done == {"1": 2, "2": 3, "4": 1, "5": 0, "7": 1}
    versions = opened.table("dim_customer").read().where("current_flag").orderBy("id").select("id", "city").collect()
    assert [tuple(row) for row in versions] == [("a", "Oslo"), ("b", "Bonn"), ("c", "Graz"), ("d", "Wien")]


def load_changes(spark: SparkSession, folder: Path, *names: str) -> tuple[dict[str, int], Warehouse]:
    """Load versions of the table `customers`, by default all; return the number of rows of each accepted one."""
    feed = Feed(str(folder / "customers"), versions=True)
    dimension = Dimension("dim_customer", "id", {"city": 2}, Source("crm", feed=feed))
    opened = Warehouse(spark, folder / "warehouse")
    selected = [each for each in discover(dimension, spark) if not names or each.name in names]
    batches = ingest_and_apply(opened, dimension, selected).results
    return {batch.delivery: batch.rows for batch in batches if batch.outcome == "accepted"}, opened


@pytest.mark.slow
def test_a_version_after_a_rejected_one_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Its changes correct the bad rows, and do not contain the others of the first one."""
    path = f"delta.`{tmp_path / 'sizes'}`"
    properties = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(f"CREATE TABLE {path} (id STRING, size STRING) USING delta {properties}")
    spark.sql(f"INSERT INTO {path} VALUES ('a', '1'), ('b', 'large')")
    spark.sql(f"UPDATE {path} SET size = '2' WHERE id = 'b'")
    feed = Feed(str(tmp_path / "sizes"), versions=True)
    dimension = Dimension("dim_size", "id", {"size": Attribute(2, type="int")}, Source("crm", feed=feed))
    done = ingest_and_apply(Warehouse(spark, tmp_path / "warehouse"), dimension, discover(dimension, spark))
    outcomes = [(batch.delivery, batch.outcome, batch.rows) for batch in done.results]
    assert outcomes == [("1", "rejected", 2), ("2", "accepted", 2)]


@pytest.mark.slow
@pytest.mark.rule("S34")
@pytest.mark.parametrize(
    ("values", "types", "attribute"),
    [
        pytest.param(
            (Decimal("150"), Decimal("1.50")),
            (pyarrow.decimal128(3, 0), pyarrow.decimal128(3, 2)),
            "decimal(12,2)",
            id="scale",
        ),
        pytest.param(
            (datetime(2024, 1, 1),) * 2,
            (pyarrow.timestamp("us"), pyarrow.timestamp("us", tz="UTC")),
            "timestamp",
            id="time zone",
            marks=pytest.mark.slow,
        ),
        pytest.param((True, 1), (pyarrow.bool_(), pyarrow.int32()), "string", id="boolean", marks=pytest.mark.slow),
    ],
)
def test_a_corrected_type_is_other_content(
    spark: SparkSession, tmp_path: Path, values: tuple[object, object], types: tuple[Any, Any], attribute: str
) -> None:
    """Spark stores both values with the same bits, and hashes only these."""
    source = Source("crm", snapshot=Snapshot(), timezone="Europe/Oslo")
    dimension = Dimension("dim_x", "id", {"a": Attribute(1, type=attribute)}, source)
    frames = [
        pyarrow.table({"id": ["1"], "a": pyarrow.array([value], data_type)})
        for value, data_type in zip(values, types, strict=True)
    ]
    deliveries = [Delivery("crm", "2024-01-01", revision=number, frame=frame) for number, frame in enumerate(frames)]
    opened, stored = Warehouse(spark, tmp_path / "warehouse"), []
    for delivery in deliveries:
        ingest_and_apply(opened, dimension, [delivery])
        stored.append(opened.table("dim_x").read().collect()[0]["a"])
    assert stored[0] != stored[1]


@pytest.mark.slow
def test_a_version_after_one_that_is_not_loaded_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    """The second version of two is loaded first: its changes do not contain the rows of the first one."""
    spark.sql(
        f"CREATE TABLE delta.`{tmp_path / 'customers'}` (id STRING, city STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    for row in ("('a', 'Rome')", "('b', 'Bonn')", "('c', 'Graz')"):
        spark.sql(f"INSERT INTO delta.`{tmp_path / 'customers'}` VALUES {row}")
    assert load_changes(spark, tmp_path, "2")[0] == {"2": 2}
    assert load_changes(spark, tmp_path)[0] == {"1": 1, "3": 1}


@pytest.mark.slow
def test_a_version_after_one_that_is_missing_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "customers"
    for number, rows in enumerate(("('a', 'Rome')", "('a', 'Oslo'), ('b', 'Bonn')", "('c', 'Graz')")):
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS (id, city)").repartition(1)
        writer = frame.write.format("delta").option("delta.enableChangeDataFeed", "true")
        writer.mode("append" if number == 2 else "overwrite").save(str(path))
        if number == 0:
            files = list(path.glob("*.parquet"))
    for file in files:
        file.unlink()
    assert load_changes(spark, tmp_path)[0] == {"1": 2, "2": 1}


def test_a_missing_table_has_no_deliveries_and_a_folder_of_files_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    dimension = declared(str(tmp_path / "customers"), versions=True)
    assert discover(dimension, spark) == []
    spark.sql("SELECT 'a' AS id").write.parquet(str(tmp_path / "customers"))
    with pytest.raises(SourceDataError, match="NOT_A_TABLE"):
        discover(dimension, spark)


@pytest.mark.parametrize("option", [{"versions": True}, {"partition": "day", "format": "parquet"}])
def test_a_file_in_place_of_a_table_is_an_error(spark: SparkSession, tmp_path: Path, option: dict[str, Any]) -> None:
    (tmp_path / "customers").write_text("id,city\na,Rome\n")
    with pytest.raises(SourceDataError, match=r"customers is not a (delta|parquet) table: it is a file"):
        discover(declared(str(tmp_path / "customers"), **option), spark)


@pytest.mark.slow
def test_a_loaded_delivery_is_not_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """Old table versions and files may no longer exist."""
    file = tmp_path / "c_2024-01-01.csv"
    file.write_text("id,city\na,Rome\n")
    dimension = declared("c_{date}.csv")
    deliveries = discover(dimension, spark, base=tmp_path)
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, dimension, deliveries)
    file.unlink()
    (batch,) = ingest_and_apply(opened, dimension, deliveries).results
    assert (batch.outcome, batch.rows) == ("unchanged", 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_each_partition_of_a_table_is_a_delivery(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "customers")
    rows = "SELECT 'a' AS id, 'Rome' AS city, DATE'2024-01-01' AS day UNION ALL SELECT 'a', 'Oslo', DATE'2024-02-01'"
    spark.sql(rows).write.format(kind).partitionBy("day").save(path)
    deliveries = discover(declared(path, partition="day", format=kind), spark)
    assert [(d.name, str(d.at)) for d in deliveries] == [
        ("2024-01-01", "2024-01-01 00:00:00+00:00"),
        ("2024-02-01", "2024-02-01 00:00:00+00:00"),
    ]
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, declared(path, partition="day", format=kind), deliveries)
    cities = opened.table("dim_customer").read().orderBy("version").select("city", "effective_from").collect()
    assert [row["city"] for row in cities] == ["Rome", "Oslo"]


@pytest.mark.slow
@pytest.mark.rule("S34")
def test_a_partition_of_files_that_grows_is_a_higher_revision(spark: SparkSession, tmp_path: Path) -> None:
    """The other partition is unchanged."""
    path = str(tmp_path / "customers")
    dimension, opened = declared(path, partition="day", format="parquet"), Warehouse(spark, tmp_path / "warehouse")

    def outcomes(*rows: str) -> list[str]:
        written = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS (id, city, day)").repartition(1)
        written.write.partitionBy("day").mode("append").parquet(path)
        return [batch.outcome for batch in ingest_and_apply(opened, dimension, discover(dimension, spark)).results]

    assert outcomes("('a', 'Rome', '2024-01-01')", "('a', 'Oslo', '2024-02-01')") == ["accepted", "accepted"]
    assert outcomes("('b', 'Bonn', '2024-02-01')") == ["unchanged", "accepted"]
    assert opened.table("dim_customer").read().where("current_flag").count() == 2


@pytest.mark.slow
@pytest.mark.rule("S34")
@pytest.mark.parametrize("layout", ["PARTITIONED BY (Day)", "CLUSTER BY (Day)"], ids=["parts", "whole"])
def test_a_partition_of_a_delta_table_is_read_again_after_a_commit_that_changed_it(
    spark: SparkSession, tmp_path: Path, layout: str
) -> None:
    """One of a table that is not partitioned is read again after each commit, and has no effect if it is unchanged."""
    path = f"delta.`{tmp_path / 'customers'}`"
    spark.sql(f"CREATE TABLE {path} (id STRING, city STRING, Day DATE) USING delta {layout}")
    source = Source("crm", feed=Feed(str(tmp_path / "customers"), partition="day", format="delta"))
    dimension = Dimension("dim_customer", "id", {"city": 2}, source)
    opened = Warehouse(spark, tmp_path / "warehouse")

    def load_after(*statements: str) -> list[tuple[str, bool]]:
        for statement in statements:
            spark.sql(statement)
        results = ingest_and_apply(opened, dimension, discover(dimension, spark)).results
        return [(batch.outcome, batch.rows > 0) for batch in results]

    def pending() -> tuple[str, ...]:
        (source,) = status(opened, [dimension], now=datetime(2024, 3, 1)).sources
        return source.pending

    unchanged = ("unchanged", layout.startswith("CLUSTER"))
    inserted = "('a', 'Rome', '2024-01-01'), ('a', 'Oslo', '2024-02-01'), ('b', 'Bonn', '2024-02-01')"
    assert load_after(f"INSERT INTO {path} VALUES {inserted}") == [("accepted", True)] * 2
    assert load_after() == [("unchanged", False)] * 2
    assert load_after(f"INSERT INTO {path} VALUES ('c', 'Graz', '2024-02-01')") == [unchanged, ("accepted", True)]
    assert pending() == ()
    assert load_after(f"OPTIMIZE {path}") == [("unchanged", False)] * 2
    assert load_after(f"UPDATE {path} SET city = 'Wien' WHERE day = '2024-01-01'") == [("accepted", True), unchanged]
    assert load_after(f"DELETE FROM {path} WHERE id = 'b'") == [unchanged, ("accepted", True)]
    versions = opened.table("dim_customer").read().where("id = 'a'").orderBy("version").select("city").collect()
    assert [row["city"] for row in versions] == ["Wien", "Oslo"]


def test_the_last_change_of_a_partition_is_not_earlier_than_what_is_known() -> None:
    changes = PartitionChanges(newest=50, oldest=10, by_partition={"a": 20, "b": 40}, of_any=30)
    assert [changes.changed_at(name) for name in ("a", "b", "c")] == [30, 40, 30]
    assert replace(changes, of_any=0).changed_at("c") == 10


def test_partitions_are_compared_by_value(spark: SparkSession, tmp_path: Path) -> None:
    """A change that is older than the log may have been made right before its oldest commit, whatever that did."""
    path, field = str(tmp_path / "customers"), StructField("N", IntegerType())
    spark.sql(f"CREATE TABLE delta.`{path}` (id STRING, n INT) USING delta PARTITIONED BY (n)")
    empty = partition_changes(spark, path, field)
    assert (empty.newest, empty.changed_at("1"), empty.by_partition) == (empty.oldest, empty.oldest, {})
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('a', 1), ('b', NULL)")
    first = partition_changes(spark, path, field)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('c', 1)")
    second = partition_changes(spark, path, field)
    assert first.by_partition == {"1": first.newest, NO_VALUE: first.newest}
    assert second.by_partition == {"1": second.newest, NO_VALUE: first.newest}
    assert (second.of_any, second.newest > first.newest > first.oldest) == (0, True)
    unknown = partition_changes(spark, path, StructField("n", TimestampType()))
    assert (unknown.by_partition, unknown.of_any) == ({}, second.newest)


@pytest.mark.slow
@pytest.mark.rule("S34")
def test_a_new_column_of_a_parquet_table_blocks_no_partition(spark: SparkSession, tmp_path: Path) -> None:
    """It is NULL in the other partitions, which makes their content another one at the same time of change."""
    path, opened = str(tmp_path / "customers"), Warehouse(spark, tmp_path / "warehouse")
    dimension = declared(path, partition="day", format="parquet")
    outcomes = []
    for columns in ("'Rome' AS city, '2024-01-01' AS day", "'Oslo' AS city, 'x' AS note, '2024-02-01' AS day", ""):
        if columns:
            spark.sql(f"SELECT 'a' AS id, {columns}").write.partitionBy("day").mode("append").parquet(path)
        done = ingest_and_apply(opened, dimension, discover(dimension, spark))
        outcomes.append([batch.outcome for batch in done.results])
    assert outcomes == [["accepted"], ["accepted", "accepted"], ["unchanged", "unchanged"]]
    assert opened.table("dim_customer").read().count() == 2


@pytest.mark.slow
@pytest.mark.rule("S34")
def test_a_withdrawal_without_a_revision_withdraws_the_current_one(spark: SparkSession, tmp_path: Path) -> None:
    file, opened = tmp_path / "c_2024-01-01.csv", Warehouse(spark, tmp_path / "warehouse")
    dimension = declared("c_{date}.csv")

    def outcomes(*deliveries: Delivery) -> list[str]:
        selected = deliveries or discover(dimension, spark, base=tmp_path)
        return [batch.outcome for batch in ingest_and_apply(opened, dimension, selected).results]

    file.write_text("id,city\na,Rome\n")
    withdrawal = Delivery("crm", "2024-01-01", withdrawn=True)
    assert outcomes() == ["accepted"]
    assert outcomes(withdrawal) == ["accepted"]
    assert opened.table("dim_customer").read().count() == 0
    assert (outcomes(withdrawal), outcomes()) == (["unchanged"], ["superseded"])
    file.write_text("id,city\na,Oslo\n")
    assert outcomes() == ["accepted"]
    assert [row["city"] for row in opened.table("dim_customer").read().collect()] == ["Oslo"]


@pytest.mark.slow
@pytest.mark.rule("S14", "S34")
def test_a_withdrawal_in_the_load_of_its_delivery_withdraws_it(in_rome: Warehouse) -> None:
    """As in a load of its own: a withdrawal without a revision follows the revision before it."""
    withdrawal = Delivery("crm", "2024-02-01", "snapshot", withdrawn=True)
    delivery = snapshot(2, {"a": "Oslo"})
    assert (delivery.name, delivery.channel) == (withdrawal.name, withdrawal.channel)
    before = history(in_rome)
    results = ingest_and_apply(in_rome, CUSTOMER, [replace(delivery, revision=5), withdrawal]).results
    assert [batch.outcome for batch in results] == ["superseded", "accepted"]
    assert history(in_rome) == before


@pytest.mark.slow
@pytest.mark.rule("S34")
def test_a_withdrawal_in_the_load_of_a_rejected_delivery_does_not_supersede_its_correction(in_rome: Warehouse) -> None:
    incorrect = snapshot(2, {"a": "Oslo", "b": "Bern", "c": "Nice", "d": "Pisa"}, revision=5)
    assert incorrect.frame is not None
    incorrect = replace(incorrect, frame=incorrect.frame.set_column(0, "id", [["a", None, None, None]]))
    withdrawal = Delivery("crm", "2024-02-01", "snapshot", withdrawn=True)
    results = ingest_and_apply(in_rome, CUSTOMER, [incorrect, withdrawal]).results
    assert [batch.outcome for batch in results] == ["rejected", "accepted"]
    (corrected,) = ingest_and_apply(in_rome, CUSTOMER, [snapshot(2, {"a": "Oslo"}, revision=5)]).results
    assert corrected.outcome == "accepted"


@pytest.mark.slow
@pytest.mark.rule("S34")
def test_accepted_content_is_not_judged_again(spark: SparkSession, tmp_path: Path) -> None:
    """Half of the rows are bad, which a load has overridden; then the file is touched."""
    file, opened = tmp_path / "c_2024-01-01.csv", Warehouse(spark, tmp_path / "warehouse")
    file.write_text("id,city\na,Rome\n,Oslo\n")
    dimension = declared("c_{date}.csv")
    allowed = [replace(each, allow=frozenset({"bad_rows"})) for each in discover(dimension, spark, base=tmp_path)]
    assert [batch.outcome for batch in ingest_and_apply(opened, dimension, allowed).results] == ["accepted"]
    time.sleep(0.02)
    file.touch()
    touched = discover(dimension, spark, base=tmp_path)
    assert touched[0].revision != allowed[0].revision
    assert [batch.outcome for batch in ingest_and_apply(opened, dimension, touched).results] == ["unchanged"]


@pytest.mark.slow
@pytest.mark.rule("S29")
def test_a_snapshot_with_row_times_is_not_before_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    """The next one omits an entity that was announced for later: it would end before it starts."""
    dimension = Dimension(
        "dim_customer", "id", {"city": 2}, Source("crm", Snapshot(effective_at="at")), begin=Begin("2024-01-01")
    )
    rows = {"2023-12-01": [{"id": "a", "city": "Rome", "at": "2024-02-01"}], "2023-12-08": [], "2024-03-01": []}
    rows["2024-03-01"] = [{"id": "b", "city": "Oslo", "at": "2024-02-01"}]
    columns = pyarrow.schema({"id": pyarrow.string(), "city": pyarrow.string(), "at": pyarrow.string()})
    deliveries = [Delivery("crm", day, frame=pyarrow.Table.from_pylist(r, columns)) for day, r in rows.items()]
    done = ingest_and_apply(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries)
    outcomes = [(batch.outcome, batch.code) for batch in done.results]
    assert outcomes == [("rejected", "BEFORE_BEGIN"), ("rejected", "BEFORE_BEGIN"), ("accepted", "")]


@pytest.mark.slow
def test_a_scope_has_a_limited_number_of_values(spark: SparkSession, tmp_path: Path) -> None:
    """Each load reads the distinct scopes of all snapshots to the driver."""
    source = Source("crm", Snapshot(scope="shop"))
    dimension = Dimension("dim_order", {"shop": "int", "line": "int"}, {"city": 2}, source)
    rows = [{"shop": 1, "line": 1, "city": "Rome"}]
    names = {"2024-01-01": 10_000, "2024-01-02": 10_001}
    deliveries = [
        Delivery("crm", name, frame=rows, scope=[[shop] for shop in range(count)]) for name, count in names.items()
    ]
    done = ingest_and_apply(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries)
    assert [batch.code for batch in done.results] == ["", "SCOPE_TOO_LARGE"]


@pytest.mark.slow
def test_snapshots_with_equal_scopes_share_their_values(spark: SparkSession, tmp_path: Path) -> None:
    """The memory of a load depends on the distinct scopes, not on those of all past deliveries."""
    dimension = Dimension(
        "dim_store", {"region": "string", "id": "int"}, {"city": 2}, Source("pos", Snapshot(scope="region"))
    )
    scopes = {
        "2024-01-01": ["north", "south"],
        "2024-01-02": ["south", "north"],
        "2024-01-03": ["north"],
        "2024-01-04": ['north","south'],  # one value
        "2024-01-05": [],
    }
    columns = pyarrow.schema({"region": pyarrow.string(), "id": pyarrow.int32(), "city": pyarrow.string()})
    deliveries = [
        Delivery(
            "pos",
            day,
            frame=pyarrow.Table.from_pylist([{"region": region, "id": 1, "city": day} for region in regions], columns),
            scope=[[region] for region in regions],
        )
        for day, regions in scopes.items()
    ]
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, dimension, deliveries)
    stored = {batch.delivery: batch.scope for batch in read_log(opened, dimension).batches()}
    assert stored == {
        day: tuple(sorted(f"{len(region)}:{region}" for region in regions)) for day, regions in scopes.items()
    }
    assert stored["2024-01-01"] is stored["2024-01-02"]
    assert_same_rows(
        """
        | region          | city         | current_flag |
        | north           | '2024-01-01' | false        |
        | north           | '2024-01-02' | false        |
        | north           | '2024-01-03' | true         |
        | south           | '2024-01-01' | false        |
        | south           | '2024-01-02' | true         |
        | 'north","south' | '2024-01-04' | true         |
        """,
        opened.table("dim_store").read().select("region", "city", "current_flag").toArrow().to_pylist(),
    )


@pytest.mark.slow
@pytest.mark.rule("S4")
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_partition_without_a_date_is_rejected_and_does_not_block_the_others(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Rows without a partition value are such a partition too: they are not lost silently."""
    path = str(tmp_path / "customers")
    rows = "('a', 'Rome', '2024-01-01'), ('a', 'Oslo', 'unknown'), ('b', 'Bonn', NULL)"
    spark.sql(f"SELECT * FROM VALUES {rows} AS (id, city, day)").write.format(kind).partitionBy("day").save(path)
    dimension, opened = declared(path, partition="day", format=kind), Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark))
    outcomes = [{"delivery": b.delivery, "outcome": b.outcome, "code": b.code} for b in done.results]
    assert_same_rows(
        """
        | delivery                   | outcome  | code    |
        | '2024-01-01'               | accepted | ''      |
        | __HIVE_DEFAULT_PARTITION__ | rejected | NO_TIME |
        | unknown                    | rejected | NO_TIME |
        """,
        outcomes,
    )
    assert done.rejected[0].details["reason"].startswith("its rows have no value in day")
    (crm,) = status(opened, [dimension], now=datetime(2024, 1, 2), plan_pending=True).sources
    assert crm.rejected is not None
    assert len(crm.rejected) == 2


@pytest.mark.slow
@pytest.mark.rule("S4")
def test_rows_without_a_partition_value_may_have_times_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "customers")
    rows = "('a', 'Rome', '2024-01-01', '2024-01-31'), ('a', 'Oslo', '2024-02-01', NULL)"
    spark.sql(f"SELECT * FROM VALUES {rows} AS (id, city, moved, day)").write.partitionBy("day").parquet(path)
    feed = Feed(path, partition="day", format="parquet", effective_at="moved")
    dimension = Dimension("dim_customer", "id", {"city": 2}, Source("crm", feed=feed))
    opened = Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark))
    assert [batch.outcome for batch in done.results] == ["accepted", "accepted"]
    cities = opened.table("dim_customer").read().orderBy("version").select("city").collect()
    assert [row["city"] for row in cities] == ["Rome", "Oslo"]


@pytest.mark.slow
def test_files_behind_a_link_are_read_by_their_declared_paths(spark: SparkSession, tmp_path: Path) -> None:
    """Several at once: their rows are distinguished by the paths of their files."""
    (tmp_path / "real").mkdir()
    for month, city in ((1, "Rome"), (2, "Oslo")):
        (tmp_path / "real" / f"c_2024-0{month}-01.csv").write_text(f"id,city\na,{city}\n")
    (tmp_path / "linked").symlink_to(tmp_path / "real", target_is_directory=True)
    dimension = declared(str(tmp_path / "linked" / "c_{date}.csv"))
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, dimension, discover(dimension, spark))
    rows = opened.table("dim_customer").read().orderBy("version").select("city").collect()
    assert [row["city"] for row in rows] == ["Rome", "Oslo"]


def test_files_are_selected_by_the_placeholder_in_their_path(tmp_path: Path) -> None:
    for name in ("c_2024-01-01.csv", "c_2024-02-01.csv", "c_other.csv", "_c_2024-03-01.csv"):
        (tmp_path / name).write_text("id,city\n")
    deliveries = discover(declared("c_{date}.csv"), None, base=tmp_path)
    assert [(d.name, d.channel, str(d.at)[:10]) for d in deliveries] == [
        ("2024-01-01", "snapshot", "2024-01-01"),
        ("2024-02-01", "snapshot", "2024-02-01"),
    ]


@pytest.mark.rule("S34")
@pytest.mark.parametrize("ahead", [-86_400, 86_400])
def test_a_file_that_replaces_another_is_a_higher_revision(tmp_path: Path, ahead: int) -> None:
    """Whatever its modification time, which a moved, copied or unpacked file keeps."""
    landing, replacement = tmp_path / "landing", tmp_path / "replacement.csv"
    landing.mkdir()
    dimension = declared("landing/c_{date}.csv")
    path = landing / "c_2024-01-01.csv"
    revisions = []
    for seconds in (0, ahead, 0):
        time.sleep(0.02)  # the clock of the file system is coarse
        replacement.write_text(f"id,city\na,{seconds}\n")
        os.utime(replacement, (time.time() + seconds,) * 2)
        replacement.rename(path)
        revisions += [delivery.revision for delivery in discover(dimension, None, base=tmp_path)]
    assert revisions == sorted(set(revisions))


@pytest.mark.rule("S34")
def test_a_folder_has_a_higher_revision_after_each_change_of_its_files(tmp_path: Path) -> None:
    """A file is rewritten, moved in, removed; the target of a link is created; at last nothing changes."""
    folder = tmp_path / "c_2024-01-01.csv"
    (folder / "deep").mkdir(parents=True)
    dimension, old = declared("c_{date}.csv"), tmp_path / "old.csv"
    for file in (folder / "deep" / "1.csv", old):
        file.write_text("id,city\na,Rome\n")
    os.utime(old, (0, 0))
    (folder / "2.csv").symlink_to(tmp_path / "linked.csv")
    changes: list[Callable[[], object]] = [
        lambda: (folder / "deep" / "1.csv").write_text("id,city\na,Oslo\n"),
        lambda: old.rename(folder / "deep" / "3.csv"),
        lambda: (folder / "deep" / "1.csv").unlink(),
        lambda: (tmp_path / "linked.csv").write_text("id,city\nb,Bonn\n"),
        lambda: None,
    ]
    revisions = []
    for change in changes:
        time.sleep(0.02)
        change()
        revisions += [delivery.revision for delivery in discover(dimension, None, base=tmp_path)]
    assert revisions[:-1] == sorted(set(revisions))
    assert revisions[-1] == revisions[-2]


ITEMS = """\
dimension: dim_item
business_key: id
sources:
  shop:
    timezone: Europe/Vienna
    feed:
      path: "items_{date}.%s"
      effective_at: changed
      effective_at_format: dd.MM.yyyy HH:mm
      sequence: counted
      sequence_type: timestamp
      %s
    columns:
      id: code
      label: {expression: upper(name)}
      size: {default: M}
attributes: {label: 2, size: 2}
"""
ROWS = [
    {"code": "7", "name": "shirt", "size": "", "changed": "05.01.2024 10:00", "counted": "2024-01-05 09:00:02"},
    {"code": "7", "name": "jacket", "size": "L", "changed": "05.01.2024 10:00", "counted": "2024-01-05 09:00:10"},
    {"code": "8", "name": "cap", "size": "", "changed": "06.01.2024 10:00", "counted": "2024-01-06 09:00:00"},
]


@pytest.mark.parametrize(("kind", "option"), [("csv", 'options: {sep: ";"}'), ("json", "deletes: name = 'gone'")])
def test_the_options_of_a_channel_and_of_its_columns_are_applied(
    spark: SparkSession, tmp_path: Path, kind: str, option: str
) -> None:
    """Of two changes at one time the one with the higher sequence is in force; an empty size gets the default."""
    (tmp_path / "dim_item.yaml").write_text(ITEMS % (kind, option), encoding="utf-8")
    lines = [";".join(ROWS[0]), *(";".join(row.values()) for row in ROWS)]
    if kind == "json":
        lines = [json.dumps({name: value or None for name, value in row.items()}) for row in ROWS]
    (tmp_path / f"items_2024-02-01.{kind}").write_text("\n".join(lines), encoding="utf-8")
    dimension = read_dimension(tmp_path / "dim_item.yaml")
    load_plan = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, discover(dimension, spark, base=tmp_path))
    rows = load_plan.changed_rows.select("id", "label", "size", "effective_from").toArrow().to_pylist()
    assert_same_rows(
        """
        | id  | label  | size | effective_from      |
        | '7' | JACKET | L    | 2024-01-05 09:00:00 |
        | '8' | CAP    | M    | 2024-01-06 09:00:00 |
        """,
        rows,
    )
