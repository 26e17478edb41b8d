"""Assets on real tables: the metadata of materializations, and runs with rejected batches."""

from __future__ import annotations

import base64
import datetime as dt
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource

from scd_pipeline import queries
from scd_pipeline.components import DeltaSparkResource, ScdDimension, WarehouseResource, alerts
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.dagster_internals import last_evaluated_check
from scd_pipeline.components.overdue import overdue_check, overdue_limits
from scd_pipeline.components.rejections import deliveries_result
from scd_pipeline.declaration import Declarations, Dimension, Fact, Feed, Role, Source, read_dimension
from scd_pipeline.deliveries.discovery import discover_files, file_version, select_deliveries
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.orchestration.code_locations import definitions, warehouse_resource
from scd_pipeline_tests.semantics.specification import requirement, rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv", bad_row_limit: 0.4}}
attributes: {city: 2}
"""


@pytest.fixture
def customer(tmp_path: Path) -> Dimension:
    """A declaration, and one delivery."""
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION, encoding="utf-8")
    (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n2,Linz\n,Ulm\n", encoding="utf-8")
    return read_dimension(tmp_path / "dim_customer.yaml")


def materialize(
    spark: SparkSession,
    path: Path,
    dimension: Dimension,
    instance: dg.DagsterInstance | None = None,
    select: str | None = None,
    partition: str = EVERYTHING,
    **config: Any,
) -> dg.ExecuteInProcessResult:
    """Run a load of all deliveries, or of one, with one asset or all assets selected."""
    used_instance = instance or dg.DagsterInstance.ephemeral()
    used_instance.add_dynamic_partitions(f"{dimension.name}_deliveries", [partition])
    return dg.materialize(
        [table_assets(dimension)],
        resources={"warehouse": warehouse_resource(spark, str(path))},
        instance=used_instance,
        partition_key=partition,
        selection=dg.AssetSelection.assets(select) if select else None,
        run_config={"ops": {f"load_{dimension.name}": {"config": config}}},
        raise_on_error=False,
    )


def metadata_by_asset(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """Return the metadata of each asset as plain values."""
    events = result.asset_materializations_for_node("load_dim_customer")
    return {e.asset_key.to_user_string(): {n: v.value for n, v in e.metadata.items()} for e in events}


def test_a_materialization_has_counts_and_a_second_reports_no_change(
    spark: SparkSession, warehouse: Path, customer: Dimension
) -> None:
    first = materialize(spark, warehouse, customer)
    assert first.success
    log, table, first_audit = metadata_by_asset(first).values()
    names = ("deliveries_accepted", "rows_read", "rows_quarantined", "entities_new")
    assert [log[f"load/{name}"] for name in names] == [1, 3, 1, 2]
    names = ("versions_opened", "refusals", "rows_opened")
    assert [table[f"load/{name}"] for name in names] == [2, 0, 2]
    assert first_audit["load/transitions_insert"] == 2
    assert [metadata["dagster/row_count"] for metadata in (log, table, first_audit)] == [4, 2, 2]
    (batch,) = queries.batches(Warehouse(spark, warehouse), customer).collect()
    assert batch["run_id"] == first.run_id

    second = metadata_by_asset(materialize(spark, warehouse, customer))
    unchanged = second["dim_customer_changes"]["load/deliveries_unchanged"]
    assert (unchanged, second["dim_customer"]["load/rows_opened"]) == (1, 0)
    assert second["dim_customer"]["delta_version"] == table["delta_version"]


@pytest.mark.slow(25)
def test_a_rejected_delivery_fails_the_run_after_all_others_were_loaded(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """It also fails the check `deliveries_accepted`, until a run loads the corrected delivery."""
    rejected = tmp_path / "customers_2024-02-01.csv"
    rejected.write_text("id,city,town\n1,Wien,\n,Ulm,\n", encoding="utf-8")
    check = dg.AssetCheckKey(dg.AssetKey("dim_customer"), "deliveries_accepted")
    with dg.DagsterInstance.ephemeral() as instance:
        result = materialize(spark, warehouse, customer, instance, select="dim_customer")
        last = instance.get_latest_materialization_event(dg.AssetKey("dim_customer_changes"))
        failed = last_evaluated_check(instance, check)
        rejected.write_text("id,city\n1,Wien\n3,Ulm\n", encoding="utf-8")
        is_accepted_before_load = deliveries_result(instance, Warehouse(spark, warehouse), customer).passed
        assert materialize(spark, warehouse, customer, instance, select="dim_customer").success
        passed = last_evaluated_check(instance, check)
    assert failed is not None and passed is not None
    assert (failed.evaluation.passed, is_accepted_before_load, passed.evaluation.passed) == (False, False, True)
    assert not result.success
    assert last is not None and last.asset_materialization is not None
    log = {name: value.value for name, value in last.asset_materialization.metadata.items()}
    assert (log["load/deliveries_accepted"], log["load/deliveries_rejected"], log["load/rows_read"]) == (1, 1, 3)
    batches = last.asset_materialization.metadata["load/last_deliveries"]
    assert isinstance(batches, dg.TableMetadataValue)
    assert [record.data["outcome"] for record in batches.records] == ["accepted", "rejected"]
    reason, others = failure_description(result)[0].splitlines()
    assert reason.startswith(
        "2024-02-01: rejected [BAD_ROWS]: the business key is NULL or cannot be read; 1 of 2 rows are "
    )
    configuration = "{ops: {load_dim_customer: {config: {allow: [bad_rows]}}}}"
    assert f"or allow `bad_rows` by this run configuration in the launchpad: `{configuration}`" in reason
    assert reason.endswith("; undeclared columns: town")
    assert failed.evaluation.description == reason.removesuffix("; undeclared columns: town")
    assert others == "all other deliveries (1) were loaded"
    rows = queries.current(Warehouse(spark, warehouse), customer).collect()
    assert {(row["id"], row["city"]) for row in rows} == {("1", "Wien"), ("3", "Ulm")}


@pytest.mark.slow(10)
@requirement("F28")
def test_the_checks_of_a_failed_run_are_evaluated_and_send_alerts(
    spark: SparkSession, warehouse: Path, customer: Dimension, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(alerts, "send_alert", lambda subject, *_: sent.append(subject) or [])
    opened = Warehouse(spark, warehouse)
    ingest_and_apply(opened, customer, select_deliveries(customer, spark))
    table = opened.table("dim_customer").identifier
    columns = "customer_key + 1 AS customer_key, * EXCEPT (customer_key)"
    spark.sql(f"INSERT INTO {table} SELECT {columns} FROM {table} WHERE id = '1'").collect()
    location = ScdDimension(overdue_after_hours=1).definitions(Declarations((customer,), ()))
    resources = {"warehouse": warehouse_resource(spark, str(warehouse))}

    @dg.asset_check(asset="dim_customer")
    def own_check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    location = dg.Definitions.merge(location, dg.Definitions(resources=resources, asset_checks=[own_check]))
    names = ("dim_customer_changes", "dim_customer", "dim_customer_audit")
    selection = dg.AssetSelection.assets(*names)
    location = dg.Definitions.merge(location, dg.Definitions(jobs=[dg.define_asset_job("load_and_check", selection)]))
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_customer_deliveries", [EVERYTHING])
        job = location.resolve_job_def("load_and_check")
        result = job.execute_in_process(instance=instance, partition_key=EVERYTHING, raise_on_error=False)
        logged = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    evaluations = [entry.get_dagster_event().asset_check_evaluation_data for entry in logged]
    passed = {evaluation.check_name: evaluation.passed for evaluation in evaluations}
    assert not result.success
    assert sent == ["checks of dim_customer failed", "dim_customer is overdue"]
    assert (passed["one_current_version"], passed["sources_are_on_time"]) == (False, False)


@pytest.mark.slow
def test_a_failed_run_without_a_new_delivery_has_an_event_of_the_table(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """Facts follow these events, and the run may have changed the table by its declaration."""
    with dg.DagsterInstance.ephemeral() as instance:
        assert materialize(spark, warehouse, customer, instance).success
        (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n,Ulm\n", encoding="utf-8")
        assert not materialize(spark, warehouse, customer, instance).success
        records = instance.fetch_materializations(dg.AssetKey("dim_customer"), limit=1).records
        failed_run = instance.get_runs(limit=1)[0].run_id
    assert [record.run_id for record in records] == [failed_run]


@pytest.mark.slow
def test_an_error_of_the_package_fails_the_run_with_its_message(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    materialize(spark, warehouse, customer)
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace("city: 2", "city: 1"), encoding="utf-8")
    result = materialize(spark, warehouse, read_dimension(tmp_path / "dim_customer.yaml"))
    assert not result.success
    failure = result.failure_data_for_node("load_dim_customer")
    assert failure is not None
    assert failure.user_failure_data is not None
    assert "DeclarationError" in str(failure.user_failure_data.description)
    assert "attributes.city" in str(failure.user_failure_data.description)
    assert metadata_by_asset(result) == {}


def test_the_resource_can_replace_that_of_dagster_pyspark() -> None:
    assert issubclass(DeltaSparkResource, LazyPySparkResource)
    assert isinstance(WarehouseResource(path="/x").spark(), LazyPySparkResource)


@pytest.mark.slow
def test_run_configuration_overrides_a_rule(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """An unknown rule is an error: it would override nothing without notice."""
    (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n,Ulm\n", encoding="utf-8")
    unknown_rule = materialize(spark, warehouse, customer, allow=["bad row"]).failure_data_for_node("load_dim_customer")
    assert unknown_rule is not None
    assert unknown_rule.user_failure_data is not None
    assert "[UNKNOWN_RULE]" in str(unknown_rule.user_failure_data.description)
    result = materialize(spark, warehouse, customer, allow=["bad_rows"])
    assert result.success
    assert metadata_by_asset(result)["dim_customer_changes"]["load/deliveries_accepted"] == 2


@pytest.mark.slow
@rule("S34")
def test_a_run_withdraws_its_partitions_and_another_one_restores_them(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """A run of everything withdraws nothing, and does not load the withdrawn delivery."""
    name, instance = "2024-02-01", dg.DagsterInstance.ephemeral()
    (tmp_path / f"customers_{name}.csv").write_text("id,city\n1,Wien\n2,Linz\n", encoding="utf-8")

    def run(partition: str = EVERYTHING, **config: Any) -> bool:
        return materialize(spark, warehouse, customer, instance, partition=partition, **config).success

    def cities() -> set[str]:
        return {row["city"] for row in queries.current(Warehouse(spark, warehouse), customer).collect()}

    explained = {"withdraw": True, "by": "ann", "reason": "extract of the test system"}
    assert (run(), cities()) == (True, {"Wien", "Linz"})
    assert (run(**explained), cities()) == (False, {"Wien", "Linz"})
    assert (run(name, **explained), run(), cities()) == (True, True, {"Graz", "Linz"})
    assert (run(name, allow=["withdrawn"]), run(), cities()) == (True, True, {"Wien", "Linz"})


@pytest.mark.slow
def test_a_file_outside_the_run_configuration_is_loaded_by_the_next_run(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """So is a file that was replaced after the sensor saw it."""
    for month in (2, 3):
        (tmp_path / f"customers_2024-0{month}-01.csv").write_text("id,city\n1,Wien\n2,Linz\n", encoding="utf-8")
    seen = {
        delivery.name: file_version(delivery) for delivery in discover_files(customer) if delivery.name != "2024-03-01"
    }
    (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wie", encoding="utf-8")
    first = materialize(spark, warehouse, customer, files=seen)
    assert (first.success, metadata_by_asset(first)["dim_customer_changes"]["load/deliveries_accepted"]) == (True, 1)
    (tmp_path / "customers_2024-03-01.csv").unlink()
    (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n2,Linz\n", encoding="utf-8")
    assert (
        metadata_by_asset(materialize(spark, warehouse, customer))["dim_customer_changes"]["load/deliveries_accepted"]
        == 1
    )


@pytest.mark.slow
def test_each_partition_has_the_counts_of_its_delivery(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """Also a loaded delivery whose file was removed; a delivery that never existed fails the run."""
    (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n2,Linz\n3,Bonn\n", encoding="utf-8")
    ingest_and_apply(Warehouse(spark, warehouse), customer, select_deliveries(customer, spark, names=["2024-01-01"]))
    (tmp_path / "customers_2024-01-01.csv").unlink()
    (tmp_path / "customers_2024-03-01.csv").write_text("id,city\n1,Wien\n2,Linz\n3,Rome\n", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        months = [f"2024-0{month}-01" for month in (1, 2, 3, 4)]
        instance.add_dynamic_partitions("dim_customer_deliveries", months)

        def run(last: str) -> dg.ExecuteInProcessResult:
            tags = {"dagster/asset_partition_range_start": months[0], "dagster/asset_partition_range_end": last}
            resources = {"warehouse": warehouse_resource(spark, str(warehouse))}
            assets = [table_assets(customer)]
            return dg.materialize(assets, resources=resources, instance=instance, tags=tags, raise_on_error=False)

        assert run(months[2]).success
        events = instance.fetch_materializations(dg.AssetKey("dim_customer"), limit=10).records
        materializations = {e.partition_key: e.asset_materialization for e in events}
        names = ("versions_opened", "versions_closed", "load/rows_opened", "dagster/row_count")
        counts = {
            key: [event.metadata[n].value for n in names] for key, event in materializations.items() if event and key
        }
        assert counts == {months[0]: [2, 0, 3, 5], months[1]: [2, 1, 3, 5], months[2]: [1, 1, 3, 5]}
        plotted = {
            key for key, event in materializations.items() if event and "load/versions_per_delivery" in event.metadata
        }
        assert plotted == {events[0].partition_key}  # the latest event, in an order of Dagster's own
        logged = instance.fetch_materializations(dg.AssetKey("dim_customer_changes"), limit=10).records
        read = {e.partition_key: e.asset_materialization.metadata for e in logged if e.asset_materialization}
        names = ("rows_read", "entities_new", "entities_changed", "load/rows_read")
        assert [[read[month][name].value for name in names] for month in months[:3]] == [
            [0, 0, 0, 6],  # nothing is read of the delivery whose file was removed
            [3, 1, 1, 6],
            [3, 0, 1, 6],
        ]
        audited = instance.fetch_materializations(dg.AssetKey("dim_customer_audit"), limit=10).records
        rows = {e.partition_key: e.asset_materialization.metadata for e in audited if e.asset_materialization}
        assert [rows[month]["transitions"].value for month in months[:3]] == [2, 2, 1]
        instance.add_dynamic_partitions("dim_customer_deliveries", [EVERYTHING])
        for last in (months[3], EVERYTHING):
            description, _ = failure_description(run(last))
            assert description.startswith("2024-04-01: missing delivery; expected a delivery of this name")
            assert description.endswith("all other deliveries (3) were loaded")
        assert months[3] not in instance.get_materialized_partitions(dg.AssetKey("dim_customer"))


@pytest.mark.slow
def test_a_run_of_partitions_and_everything_records_each_once(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    """As a backfill of all partitions requests them."""
    (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n2,Linz\n", encoding="utf-8")
    keys = ["2024-01-01", "2024-02-01", EVERYTHING]
    tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": EVERYTHING}
    resources = {"warehouse": warehouse_resource(spark, str(warehouse))}
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_customer_deliveries", keys)
        done = dg.materialize([table_assets(customer)], resources=resources, instance=instance, tags=tags)
    events = done.asset_materializations_for_node("load_dim_customer")
    names = {"_changes": "rows_read", "": "versions_opened", "_audit": "transitions"}
    counts = []
    for event in events:
        key, asset = str(event.partition), event.asset_key.to_user_string()
        name = names[asset.removeprefix("dim_customer")]
        counts.append((key, asset, event.metadata[f"load/{name}" if key == EVERYTHING else name].value))
    assert sorted(counts) == [
        ("2024-01-01", "dim_customer", 2),
        ("2024-01-01", "dim_customer_audit", 2),
        ("2024-01-01", "dim_customer_changes", 3),
        ("2024-02-01", "dim_customer", 1),
        ("2024-02-01", "dim_customer_audit", 1),
        ("2024-02-01", "dim_customer_changes", 2),
        (EVERYTHING, "dim_customer", 3),
        (EVERYTHING, "dim_customer_audit", 3),
        (EVERYTHING, "dim_customer_changes", 5),
    ]


TWO_SOURCES = """\
dimension: dim_customer
business_key: id
sources:
  crm: {snapshot: "customers_{date}.csv", attributes: city, existence: true, bad_row_limit: 0.4}
  shop: {feed: "orders_{date}.csv", attributes: loyalty, bad_row_limit: 0.4}
attributes: {city: 2, loyalty: 1}
"""


def failure_description(result: dg.ExecuteInProcessResult) -> tuple[str, dict[str, str]]:
    """Return the description of a failed run, and its metadata."""
    failure = result.failure_data_for_node("load_dim_customer")
    assert failure is not None
    assert failure.user_failure_data is not None
    metadata = {name: str(value.value) for name, value in failure.user_failure_data.metadata.items()}
    return str(failure.user_failure_data.description), metadata


@pytest.mark.slow
def test_rejected_deliveries_of_one_date_are_named_with_their_sources(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """Other deliveries are mentioned only if there are any."""
    (tmp_path / "dim_customer.yaml").write_text(TWO_SOURCES, encoding="utf-8")
    for name, attribute in (("customers", "city"), ("orders", "loyalty")):
        (tmp_path / f"{name}_2024-01-05.csv").write_text(f"id,{attribute}\n1,5\n,6\n", encoding="utf-8")
    description, metadata = failure_description(
        materialize(spark, warehouse, read_dimension(tmp_path / "dim_customer.yaml"))
    )
    assert [line.partition(" [")[0] for line in description.splitlines()] == [
        "crm.snapshot.2024-01-05: rejected",
        "shop.feed.2024-01-05: rejected",
        "nothing was loaded",
    ]
    assert sorted(metadata) == ["crm.snapshot.2024-01-05", "shop.feed.2024-01-05"]


@pytest.mark.slow
def test_a_partition_keeps_its_delivery_when_a_source_is_added(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """By its former name, if only one delivery matches; otherwise the failure lists the current names."""
    (tmp_path / "dim_customer.yaml").write_text(TWO_SOURCES, encoding="utf-8")
    for name, attribute in (
        ("customers_2024-01-01", "city"),
        ("customers_2024-01-02", "city"),
        ("orders_2024-01-02", "loyalty"),
    ):
        (tmp_path / f"{name}.csv").write_text(f"id,{attribute}\n1,5\n", encoding="utf-8")
    keys = ["2024-01-01", "2024-01-02"]
    tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[1]}
    resources = {"warehouse": warehouse_resource(spark, str(warehouse))}
    assets = [table_assets(read_dimension(tmp_path / "dim_customer.yaml"))]
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_customer_deliveries", keys)
        done = dg.materialize(assets, resources=resources, instance=instance, tags=tags, raise_on_error=False)
        assert instance.get_materialized_partitions(dg.AssetKey("dim_customer")) == {"2024-01-01"}
    description, metadata = failure_description(done)
    assert description.startswith("2024-01-02: several deliveries have this name")
    assert "materialize crm.snapshot.2024-01-02 or shop.feed.2024-01-02 instead" in metadata["2024-01-02"]
    (batch,) = queries.batches(Warehouse(spark, warehouse), "dim_customer").collect()
    assert (batch["source"], batch["delivery"]) == ("crm", "2024-01-01")


@pytest.mark.slow
@pytest.mark.rule("S23")
def test_the_step_of_a_dimension_writes_its_reserved_member(
    spark: SparkSession, warehouse: Path, customer: Dimension
) -> None:
    """The step of a fact, which has its own pool, need not write it."""
    roles = {"customer": Role(customer)}
    sale = Fact("fct_sale", {"n": "int"}, "at", roles, Source("till", feed=Feed("sales_{date}.csv")))
    assets = ScdDimension().definitions(Declarations((customer,), (sale,))).assets or ()
    customer_assets = next(a for a in assets if isinstance(a, dg.AssetsDefinition))
    resources, opened = {"warehouse": warehouse_resource(spark, str(warehouse))}, Warehouse(spark, warehouse)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_customer_deliveries", [EVERYTHING])
        done = dg.materialize([customer_assets], resources=resources, instance=instance, partition_key=EVERYTHING)
    assert opened.table("dim_customer").read().where("customer_key = -1").count() == 1
    assert opened.table("dim_customer").last_commit().reserved_member
    metadata = metadata_by_asset(done)["dim_customer"]
    assert metadata["delta_version"] == opened.table("dim_customer").last_commit().newest
    assert metadata["dagster/row_count"] == 2, "the reserved member is excluded from all counts"


@pytest.mark.slow
def test_a_source_is_overdue_by_its_last_delivery(
    spark: SparkSession, warehouse: Path, customer: Dimension, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alert is sent as for failed runs."""
    sent: list[str] = []
    monkeypatch.setattr(alerts, "send_alert", lambda subject, text, *_: sent.append(f"{subject}: {text}") or [])
    resources = {"warehouse": warehouse_resource(spark, str(warehouse))}

    def evaluate(*day: int, customer: Dimension = customer) -> tuple[bool, str]:
        clock = dt.datetime(*day, 6, tzinfo=dt.timezone.utc).timestamp  # type: ignore[arg-type,misc]
        with dg.DagsterInstance.ephemeral() as instance:
            limits = overdue_limits(customer, 36, clock=clock)
            assert limits is not None
            check = overdue_check(limits)
            selection = dg.AssetSelection.checks(check)
            result = dg.materialize([check], selection=selection, resources=resources, instance=instance)
        (evaluation,) = result.get_asset_check_evaluations()
        return evaluation.passed, str(evaluation.metadata["crm"].value)

    assert evaluate(2024, 1, 1) == (False, "no delivery yet")
    ingest_and_apply(Warehouse(spark, warehouse), customer, select_deliveries(customer, spark))
    assert evaluate(2024, 1, 2) == (True, "2024-01-01, 1 day, 6:00:00 ago")
    assert evaluate(2024, 1, 3) == (False, "2024-01-01, 2 days, 6:00:00 ago")
    assert sent == [
        "dim_customer is overdue: crm: no delivery yet",
        "dim_customer is overdue: crm: 2024-01-01, 2 days, 6:00:00 ago",
    ]
    monthly = replace(customer, sources=(replace(customer.sources[0], overdue_after_hours=31 * 24),))
    assert evaluate(2024, 1, 3, customer=monthly)[0], "the limit of the source has priority"


@pytest.mark.slow
@requirement("F28")
def test_the_daily_check_of_a_table_with_two_current_versions_sends_an_alert(
    spark: SparkSession, warehouse: Path, customer: Dimension, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(alerts, "send_alert", lambda subject, text, *_: sent.append(f"{subject}: {text}") or [])
    opened = Warehouse(spark, warehouse)
    ingest_and_apply(opened, customer, select_deliveries(customer, spark))
    table = opened.table("dim_customer").identifier
    columns = "customer_key + 1 AS customer_key, * EXCEPT (customer_key)"
    spark.sql(f"INSERT INTO {table} SELECT {columns} FROM {table} WHERE id = '1'").collect()
    location = definitions(spark, str(warehouse), Declarations((customer,), ()))
    schedule = location.resolve_schedule_def("check_dim_customer_schedule")
    assert schedule.cron_schedule == "0 7 * * *"
    with dg.DagsterInstance.ephemeral() as instance:
        assert location.resolve_job_def(schedule.job_name).execute_in_process(instance=instance).success
    (alert,) = sent
    assert alert.startswith("checks of dim_customer failed: ")
    assert "one_current_version: 2 (id=1)" in alert


@pytest.mark.slow
def test_deliveries_loaded_by_another_program_are_materialized(
    spark: SparkSession, warehouse: Path, customer: Dimension
) -> None:
    """Also those of a run that was killed right after its commit."""
    ingest_and_apply(Warehouse(spark, warehouse), customer, select_deliveries(customer, spark))
    with dg.DagsterInstance.ephemeral() as instance:
        assert materialize(spark, warehouse, customer, instance).success
        partitions = instance.get_materialized_partitions(dg.AssetKey("dim_customer"))
    assert partitions == {"2024-01-01", EVERYTHING}


@pytest.mark.slow
def test_each_version_of_a_source_table_is_loaded(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    """A missing table has no deliveries."""
    text = DECLARATION.replace('"customers_{date}.csv"', "{path: table, format: delta, versions: true}")
    (tmp_path / "dim_customer.yaml").write_text(text, encoding="utf-8")
    customer = read_dimension(tmp_path / "dim_customer.yaml")
    assert materialize(spark, warehouse, customer).success
    for number, city in enumerate(("Graz", "Wien"), 1):
        rows = spark.sql(f"SELECT '1' AS id, '{city}' AS city")
        rows.write.format("delta").mode("overwrite").save(str(tmp_path / "table"))
        result = metadata_by_asset(materialize(spark, warehouse, customer))["dim_customer_changes"]
        assert (result["load/deliveries_accepted"], result["load/deliveries_unchanged"]) == (1, number - 1)
    versions = queries.history(Warehouse(spark, warehouse), customer).orderBy("version").collect()
    assert [row["city"] for row in versions] == ["Graz", "Wien"]


@pytest.mark.slow
def test_version_counts_with_several_sources_are_those_of_the_table(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """An entity that is new to a source may exist already, and opens no version (S30). Bytes are hex digits."""
    (tmp_path / "dim_customer.yaml").write_text(
        "dimension: dim_customer\nbusiness_key: id\n"
        "sources:\n"
        '  crm: {snapshot: "customers_{date}.csv", attributes: city, existence: true}\n'
        '  shop: {snapshot: "shop_{date}.csv", attributes: tier}\n'
        "attributes: {city: 2, tier: {scd: 2, type: binary}}\n",
        encoding="utf-8",
    )
    (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n2,Linz\n", encoding="utf-8")
    (tmp_path / "shop_2024-01-02.csv").write_text("id,tier\n2,gold\n5,gold\n", encoding="utf-8")
    result = materialize(spark, warehouse, read_dimension(tmp_path / "dim_customer.yaml"))
    names = ("versions_opened", "versions_closed")
    events = result.asset_materializations_for_node("load_dim_customer")
    table_metadata = {
        event.partition: event.metadata for event in events if event.asset_key == dg.AssetKey("dim_customer")
    }
    counts = {
        key: [metadata[f"load/{name}" if key == EVERYTHING else name].value for name in names]
        for key, metadata in table_metadata.items()
    }
    assert counts == {"crm.snapshot.2024-01-01": [2, 0], "shop.snapshot.2024-01-02": [1, 1], EVERYTHING: [3, 1]}
    plots = [
        base64.b64decode(data).decode() for data in re.findall(r"base64,([\w+/=]+)", str(metadata_by_asset(result)))
    ]
    assert any("676F6C64" in plot for plot in plots)


@pytest.mark.slow
def test_examples_and_plots_omit_personal_attributes(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    """Attributes that open no version are not plotted."""
    text = DECLARATION.replace("{city: 2}", "{city: 2, phone: 1, name: {scd: 2, personal: true}}")
    (tmp_path / "dim_customer.yaml").write_text(text, encoding="utf-8")
    for day, phone in (("01", "1"), ("02", "2")):
        row = f"id,city,phone,name\n1,Graz,{phone},Ann Secret\n"
        (tmp_path / f"customers_2024-01-{day}.csv").write_text(row, encoding="utf-8")
    customer = read_dimension(tmp_path / "dim_customer.yaml")
    result = materialize(spark, warehouse, customer)
    metadata = str(metadata_by_asset(result))
    plots = [base64.b64decode(data).decode() for data in re.findall(r"base64,([\w+/=]+)", metadata)]
    assert len(plots) == 2
    assert "Graz" in metadata
    assert "Secret" not in metadata + "".join(plots)
    assert any("Personal attributes are not shown." in plot for plot in plots)


def test_an_unreachable_server_fails_each_job_with_one_line(customer: Dimension) -> None:
    """The load, the checks and the status."""
    definitions = ScdDimension(overdue_after_hours=30).definitions(Declarations((customer,), ()))
    resources = {"warehouse": WarehouseResource(path="/x", remote="sc://localhost:1")}
    location = dg.Definitions.merge(definitions, dg.Definitions(resources=resources, executor=dg.in_process_executor))
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_customer_deliveries", [EVERYTHING])
        for job, key in (
            ("dim_customer_job", EVERYTHING),
            ("check_dim_customer_job", None),
            ("scd_status_job", None),
            ("maintain_dim_customer_job", None),
        ):
            job_definition = location.resolve_job_def(job)
            done = job_definition.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
            failures = [event.step_failure_data.user_failure_data for event in done.all_events if event.is_step_failure]
            descriptions = [str(failure.description) for failure in failures if failure]
            assert descriptions and len(descriptions) == len(failures)
            assert {text.partition(" (")[0] for text in descriptions} == {
                "SetupError: [SERVER_UNREACHABLE] sc://localhost:1: cannot connect"
            }


def test_the_spark_description_has_no_token() -> None:
    assert WarehouseResource(path="/x").spark_description == "an embedded Spark session"
    assert WarehouseResource(path="/x", remote="sc://h:1").spark_description == "the Spark Connect server sc://h:1"
    remote = WarehouseResource(path="/x", remote="sc://h:1/;token=SECRET;use_ssl=true")
    assert remote.spark_description == "the Spark Connect server sc://h:1"
