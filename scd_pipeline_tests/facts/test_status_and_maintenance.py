"""Status and maintenance: compacted tables have the same rows, and loads continue."""

from __future__ import annotations

import datetime as dt
import os
import time
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline import queries
from scd_pipeline.components import WarehouseResource
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.maintenance import maintenance_job
from scd_pipeline.components.status import status_asset
from scd_pipeline.declaration import Declarations, Dimension, Snapshot, Source, parse, read_declarations
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import select_deliveries
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.load import compaction
from scd_pipeline.load.run import ingest_and_apply, load, record
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.maintenance import maintain
from scd_pipeline.operations.status import Status, status
from scd_pipeline_tests.facts.players import PLAYER, W, players
from scd_pipeline_tests.semantics.specification import requirement

DECLARED = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
---
fact: fct_sale
grain: {sale: int}
event_time: sold_at
dimensions: {customer: {dimension: dim_customer, key: id}}
sources: {till: {feed: "sales_{date}.csv", bad_row_limit: 0.5}}
"""
FILES = {
    "customers_2024-01-01.csv": "id,city\n7,Graz\n8,Linz\n",
    "customers_2024-01-02.csv": "id,city\n7,Wien\n8,Linz\n",
    "sales_2024-01-03.csv": "sale,sold_at,id\n1,2024-01-01 12:00:00,7\n2,no time,7\n",
}
RETENTION = "delta.deletedFileRetentionDuration"
NOW = dt.datetime(2024, 1, 11, tzinfo=dt.timezone.utc)


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Declarations:
    folder = tmp_path_factory.mktemp("declared")
    (folder / "all.yaml").write_text(DECLARED, encoding="utf-8")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return read_declarations(folder)


@pytest.fixture(scope="module")
def statuses(
    spark: SparkSession, declared: Declarations, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Status]:
    """Statuses before any load, of a dimension ahead of its audit and fact, with a rejected delivery, at the end."""
    store = Warehouse(spark, tmp_path_factory.mktemp("status"))
    (customer,), (sale,) = declared.dimensions, declared.facts

    def current_status(*, plan_pending: bool = False) -> Status:
        return status(store, declared.tables, now=NOW, plan_pending=plan_pending)

    folder = Path(customer.origin.rpartition(":")[0]).parent
    collected, (first, second) = {"before": current_status()}, select_deliveries(customer, spark)
    load(store, customer, [first])
    load(store, sale, select_deliveries(sale.as_dimension(), spark))
    ingest_and_apply(store, customer, [second])
    collected["ahead"] = current_status()
    (folder / "customers_2024-01-03.csv").write_text(FILES["customers_2024-01-02.csv"] + ",Ulm\n", encoding="utf-8")
    collected["unread"] = current_status()
    collected["rejected"] = current_status(plan_pending=True)
    (folder / "customers_2024-01-03.csv").unlink()
    record(store, customer)
    load(store, sale)
    return {**collected, "after": current_status()}


def sources(report: Status) -> list[tuple[object, ...]]:
    return [(s.source, s.batches, s.last_delivery, s.age, s.pending, s.quarantined) for s in report.sources]


def tables(report: Status) -> list[tuple[object, ...]]:
    return [(t.table, t.commits > 0, t.lag, t.audit_lag, t.dimensions_ahead) for t in report.tables]


@pytest.mark.slow
def test_status_reports_all_deliveries_as_pending_before_the_first_load(statuses: dict[str, Status]) -> None:
    assert sources(statuses["before"]) == [
        ("crm", 0, "", None, ("2024-01-01", "2024-01-02"), 0),
        ("till", 0, "", None, ("2024-01-03",), 0),
    ]
    assert tables(statuses["before"]) == [("dim_customer", False, 0, 0, ()), ("fct_sale", False, 0, 0, ())]


@pytest.mark.slow
def test_status_reports_lag(statuses: dict[str, Status]) -> None:
    assert sources(statuses["ahead"]) == [
        ("crm", 2, "2024-01-02", dt.timedelta(days=9), (), 0),
        ("till", 1, "2024-01-03", dt.timedelta(days=8), (), 1),
    ]
    assert tables(statuses["ahead"]) == [("dim_customer", True, 0, 1, ()), ("fct_sale", True, 0, 0, ("dim_customer",))]


@pytest.mark.slow
def test_status_reports_the_deliveries_that_a_load_would_reject(statuses: dict[str, Status]) -> None:
    """Only if it is asked to read the pending deliveries."""
    crm, till = statuses["unread"].sources
    assert (crm.pending, crm.rejected) == (("2024-01-03",), None)
    assert (till.pending, till.rejected) == ((), ())
    crm, _ = statuses["rejected"].sources
    assert crm.rejected is not None
    (text,) = crm.rejected
    assert crm.pending == ("2024-01-03",)
    assert text.startswith("2024-01-03 [BAD_ROWS]: the business key is NULL or cannot be read; 1 of 3 rows are bad ")


@pytest.mark.slow
def test_status_reports_all_tables_even_if_one_does_not_fit_its_declaration(
    spark: SparkSession, declared: Declarations, warehouse: Path
) -> None:
    """It also reports the deliveries that a load of a new table would reject."""
    (customer,), store = declared.dimensions, Warehouse(spark, warehouse)
    ingest_and_apply(store, customer, select_deliveries(customer, spark)[:1])
    folder = Path(customer.origin.rpartition(":")[0]).parent
    (misfit,) = parse(DECLARED.partition("---")[0].replace("city: 2", "city: 1"), str(folder / "all.yaml"))
    lacking = DECLARED.partition("---")[0].replace("city: 2", "town: 2").replace("dim_customer", "dim_other")
    (other,) = parse(lacking, str(folder / "all.yaml"))
    first, second = status(store, [misfit, other], now=NOW, plan_pending=True).sources
    assert first.rejected is not None
    assert second.rejected is not None
    assert first.rejected[0].startswith("all deliveries: ")
    assert "city" in first.rejected[0]
    assert [text.partition(":")[0] for text in second.rejected] == [
        "2024-01-01 [COLUMN_MISSING]",
        "2024-01-02 [COLUMN_MISSING]",
    ]


@pytest.mark.slow
def test_status_reports_no_lag_after_all_loads(statuses: dict[str, Status]) -> None:
    assert tables(statuses["after"]) == [("dim_customer", True, 0, 0, ()), ("fct_sale", True, 0, 0, ())]


@requirement("F44")
@pytest.mark.slow
def test_maintenance_reduces_files_and_preserves_rows(
    spark: SparkSession, remote: str, declared: Declarations, warehouse: Path
) -> None:
    store, (customer,) = Warehouse(spark, warehouse), declared.dimensions
    for delivery in select_deliveries(customer, spark):
        load(store, customer, [delivery])
    before = queries.history(store, customer).orderBy("id", "version").collect()
    resource = WarehouseResource(path=str(warehouse), remote=remote)
    result = maintenance_job(customer).execute_in_process(resources={"warehouse": resource})
    assert result.success
    observations = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION
    ]
    file_counts = {
        o.asset_key.to_user_string(): (o.metadata["files_before"], o.metadata["files_after"]) for o in observations
    }
    assert set(file_counts) == {"dim_customer", "dim_customer_changes", "dim_customer_audit"}, "the assets"
    assert all(int(str(after.value)) <= int(str(was.value)) for was, after in file_counts.values())
    assert file_counts["dim_customer_changes"][1].value == 1
    assert queries.history(store, customer).orderBy("id", "version").collect() == before


@pytest.mark.slow(10)
@requirement("F44", "F65")
def test_a_query_as_of_a_time_needs_no_earlier_version_of_the_table(recorded: Warehouse) -> None:
    """OPTIMIZE, VACUUM without a retention, and an expired transaction log leave the last version of the table only."""
    days = [dt.datetime(2019, month, 15, tzinfo=dt.timezone.utc) for month in (4, 7, 11)]

    def tiers() -> list[list[str]]:
        frames = [queries.as_of(recorded, PLAYER, day).select("tier", "player_key", "effective_to") for day in days]
        return [[str(row) for row in frame.collect()] for frame in frames]

    header, *_ = W.strip().splitlines()
    ingest_and_apply(recorded, PLAYER, [players("2", f"{header}\n| p | 2019-07-01 | | Iron | b | 1990 | NULL |")])
    before, table = tiers(), recorded.table(PLAYER.name)
    assert [[text.partition("'")[2].partition("'")[0] for text in rows] for rows in before] == [
        ["Bronze"],
        ["Iron"],
        [],
    ]
    table.compact()
    remove_earlier_versions(recorded, PLAYER.name)
    assert {int(file.stem) for file in log_files(recorded, PLAYER.name)} == {table.newest_version()}
    with pytest.raises(Exception, match="DELTA_"):
        table.read(1).collect()
    assert tiers() == before


@pytest.mark.slow
@requirement("F46")
def test_a_load_combines_small_files_after_a_number_of_commits(
    opened: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "COMMITS_BETWEEN", 2)
    header = "| player_id | at | op | tier | email | born | by |"
    files: list[list[int]] = []
    for number in (1, 2):
        row = f"| p{number} | 2019-01-0{number} | | Gold | a | 1990 | NULL |"
        load(opened, PLAYER, [players(str(number), f"{header}\n{row}")])
        files.append([opened.table(name).details()["numFiles"] for name in PLAYER.table_names])
    assert files == [[1, 2, 1], [1, 1, 1]], "the log has a file of batches, and one of records"
    assert queries.history(opened, PLAYER).count() == 2
    assert all(check.passed for check in check_table(opened, PLAYER))


@pytest.mark.slow
@requirement("F46")
def test_a_load_reads_only_small_files_to_combine_them(spark: SparkSession, opened: Warehouse) -> None:
    table = Table(spark, "sizes", f"{opened.path}/sizes")
    rows = spark.range(2_200_000).select(F.rand(1).alias("value"))
    for part in (rows, rows.limit(1), rows.limit(2)):
        part.coalesce(1).write.format("delta").mode("append").save(table.path)
    before = {file for file, size in file_sizes(table) if size > 16 << 20}
    assert len(before) == 1
    table.combine_small_files()
    after = file_sizes(table)
    assert len(after) == 2
    assert before < {file for file, _ in after}


def test_a_load_leaves_a_clustered_table_to_maintenance(spark: SparkSession, opened: Warehouse) -> None:
    """Delta would rewrite all of its files."""
    table = Table(spark, "clustered", f"{opened.path}/clustered")
    spark.sql(f"CREATE TABLE {table.identifier} (n int) USING delta CLUSTER BY (n)")
    for number in (1, 2):
        spark.sql(f"INSERT INTO {table.identifier} VALUES ({number})")
    table.combine_small_files()
    assert len(file_sizes(table)) == 2


def file_sizes(table: Table) -> list[tuple[str, int]]:
    """Return the name and the size in bytes of each file that the newest version of a table has."""
    file = F.col("_metadata")
    files = table.read().select(file["file_name"].alias("name"), file["file_size"].alias("size")).distinct()
    return [(row["name"], row["size"]) for row in files.collect()]


def log_files(warehouse: Warehouse, name: str) -> list[Path]:
    """Return the files of a table's transaction log, one for each commit."""
    return list((Path(warehouse.path) / name / "_delta_log").glob("*.json"))


def remove_earlier_versions(warehouse: Warehouse, name: str) -> None:
    """Let Delta remove the files that the last version of a table does not need, and the earlier entries of its log."""
    spark, table = warehouse.spark, warehouse.table(name).identifier
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    retention = f"'{RETENTION}' = 'interval 0 hours', 'delta.logRetentionDuration' = 'interval 0 hours'"
    spark.conf.set(check, "false")
    try:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({retention}, 'delta.checkpointInterval' = '1')").collect()
        spark.sql(f"VACUUM {table}").collect()
        for file in log_files(warehouse, name):
            os.utime(file, (file.stat().st_mtime - 40 * 24 * 3600,) * 2)
        spark.sql(f"COMMENT ON TABLE {table} IS 'a commit that writes a checkpoint'").collect()
    finally:
        spark.conf.unset(check)


@pytest.mark.slow
def test_maintenance_renews_a_pipeline_commit_before_it_expires(
    spark: SparkSession, declared: Declarations, warehouse: Path
) -> None:
    store, (customer,) = Warehouse(spark, warehouse), declared.dimensions
    first, second = select_deliveries(customer, spark)
    load(store, customer, [first])
    commit, log = (store.table(customer.name + suffix).last_commit() for suffix in ("", LOG_SUFFIX))
    assert commit.at is not None
    soon, late = commit.at + dt.timedelta(days=1), commit.at + dt.timedelta(days=16)
    assert not any(result.renewed for result in maintain(store, [customer.name], now=soon))
    results = maintain(store, customer.table_names, now=late)
    assert store.table(customer.name).properties().get(RETENTION) is None
    store.table(customer.name).set_properties({RETENTION: "interval 30 days"})
    maintain(store, [customer.name], now=soon)
    assert store.table(customer.name).properties()[RETENTION] == "interval 30 days"
    renewed = store.table(customer.name).last_commit()
    assert (renewed.number, renewed.high_water_marks) == (commit.number + 1, commit.high_water_marks)
    assert store.table(customer.name + LOG_SUFFIX).last_commit().records == log.records == 2
    assert {result.table: result.renewed for result in results} == dict.fromkeys(set(customer.table_names), True)
    (table,) = status(store, [customer], now=NOW).tables
    assert (table.lag, table.audit_lag) == (0, 0)
    load(store, customer, [second])
    assert queries.history(store, customer).count() == 3


@pytest.mark.slow
def test_maintenance_compacts_some_tables_and_renews_the_commits_of_all(
    spark: SparkSession, declared: Declarations, warehouse: Path
) -> None:
    store, (customer,) = Warehouse(spark, warehouse), declared.dimensions
    for delivery in select_deliveries(customer, spark):
        load(store, customer, [delivery])
    late = NOW + dt.timedelta(days=36500)
    results = maintain(store, customer.table_names, now=late, tables_to_compact=[customer.name])
    files = {result.table.removeprefix(customer.name): (result.files_before, result.files_after) for result in results}
    assert files[""][0] > files[""][1] == 1
    assert files["_changes"][0] == files["_changes"][1] > 1
    assert all(result.renewed for result in results)


@requirement("F46")
@pytest.mark.slow
def test_only_maintenance_arranges_rows_and_not_twice(
    spark: SparkSession, declared: Declarations, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default from a number of rows on, and at any number by the declaration."""
    store, (customer,) = Warehouse(spark, warehouse), declared.dimensions
    large = replace(customer, z_order="always")
    for delivery in select_deliveries(customer, spark):
        load(store, large, [delivery])
    table = store.table(customer.name)

    def arranged() -> list[str]:
        history = spark.sql(f"DESCRIBE HISTORY {table.identifier}").where("operation = 'OPTIMIZE'")
        return [row["operationParameters"]["zOrderBy"] for row in history.collect()]

    assert arranged() == []
    before = queries.history(store, customer).orderBy("id", "version").collect()
    maintain(store, customer.table_names, now=NOW, dimension=customer)
    assert arranged() == ["[]"]
    monkeypatch.setattr("scd_pipeline.operations.z_order.LARGE_TABLE_ROWS", table.read().count())
    for dimension in (customer, large):
        maintain(store, customer.table_names, now=NOW, dimension=dimension)
    assert arranged() == ['["id"]', "[]"]
    spark.sql(f"OPTIMIZE {table.identifier} ZORDER BY (city)")
    maintain(store, customer.table_names, now=NOW, dimension=large)
    assert arranged()[:2] == ['["id"]', '["city"]']
    assert queries.history(store, customer).orderBy("id", "version").collect() == before
    assert load(store, large, select_deliveries(customer, spark)).row_counts == {}
    spark.sql(f"ALTER TABLE {table.identifier} CLUSTER BY (city)")  # Delta rejects a Z-order of such a table
    maintain(store, customer.table_names, now=NOW, dimension=large)
    assert set(arranged()[:1]) == {"[]"}


@pytest.mark.slow
def test_a_fact_is_loaded_after_maintenance_of_an_unchanged_dimension(
    spark: SparkSession, declared: Declarations, warehouse: Path
) -> None:
    """Also after the retention of the files before the OPTIMIZE has passed, which Delta may still have."""
    store, (customer,), (sale,) = Warehouse(spark, warehouse), declared.dimensions, declared.facts
    for delivery in select_deliveries(customer, spark):
        ingest_and_apply(store, customer, [delivery])
    table = store.table(customer.name)
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 1 second"})
    table.compact()
    time.sleep(1.5)
    assert table.read(table.last_commit().table_version).count() == 3
    assert load(store, sale, select_deliveries(sale.as_dimension(), spark)).row_counts == {"open": 1}
    assert status(store, [customer, sale], now=NOW).tables[1].dimensions_ahead == ()


@requirement("F48")
def test_a_retention_that_is_too_short_for_readers_is_an_error(recorded: Warehouse) -> None:
    """167 hours are rejected, and 168 hours accepted."""
    before = recorded.table(PLAYER.name).newest_version()
    with pytest.raises(UsageError) as error:
        maintain(recorded, [PLAYER.name], now=NOW, retention_hours=167)
    assert (error.value.code, error.value.details["least"]) == ("RETENTION_TOO_SHORT", 168)
    assert recorded.table(PLAYER.name).newest_version() == before
    (maintained,) = maintain(recorded, [PLAYER.name], now=NOW, retention_hours=168)
    assert maintained.table == PLAYER.name


@pytest.mark.slow
def test_a_retention_that_is_longer_than_that_of_the_history_is_an_error(spark: SparkSession, warehouse: Path) -> None:
    """Nothing is written until the history of the table is retained as long."""
    store, hours = Warehouse(spark, warehouse), 24 * 40
    country = Dimension("dim_country", "code", {"name": 1}, Source("iso", snapshot=Snapshot()))
    load(store, country, [Delivery("iso", "1", at=NOW, frame=[{"code": "de", "name": "Germany"}])])
    table = store.table(country.name)
    before = table.newest_version()
    with pytest.raises(UsageError) as error:
        maintain(store, country.table_names, now=NOW, retention_hours=hours)
    assert (error.value.code, error.value.location) == ("RETENTION_TOO_LONG", "table dim_country")
    assert (error.value.details["hours"], error.value.details["log_hours"]) == (hours, 720)
    assert table.newest_version() == before
    table.set_properties({"delta.logRetentionDuration": "interval 40 days"})
    maintain(store, country.table_names, now=NOW, retention_hours=hours, tables_to_compact=[country.name])
    assert table.properties()[RETENTION] == f"interval {hours} hours"


def test_the_status_is_an_asset(spark: SparkSession, remote: str, declared: Declarations, warehouse: Path) -> None:
    """Also if the dimension, whose partitions it does not have, was materialized before."""
    assert spark
    (customer,), (sale,) = declared.dimensions, declared.facts
    assets = [table_assets(customer), table_assets(sale), status_asset([customer, sale])]
    resource = WarehouseResource(path=str(warehouse), remote=remote)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_customer_deliveries", ["2024-01-01"])
        instance.report_runless_asset_event(dg.AssetMaterialization("dim_customer", partition="2024-01-01"))
        resources = {"warehouse": resource}
        result = dg.materialize(assets, selection=["scd_status"], resources=resources, instance=instance)
    (materialization,) = result.asset_materializations_for_node("scd_status")
    names = ("pending_deliveries", "rows_quarantined", "pending_commits", "stale_facts")
    assert [materialization.metadata[name].value for name in names] == [3, 0, 0, 0]
