"""Assets on a real table: what a materialization tells, what a stopped batch does to the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource

from scd_pipeline import reading
from scd_pipeline.components import DeltaSparkResource, WarehouseResource
from scd_pipeline.components.assets import dimension_assets
from scd_pipeline.errors import SetupError
from scd_pipeline.spec import Dimension, load_dimension
from scd_pipeline.warehouse import Warehouse
from scd_pipeline_tests.orchestration.given import given_warehouse

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
    return load_dimension(tmp_path / "dim_customer.yaml")


def materialize(spark: SparkSession, path: Path, dimension: Dimension) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [dimension_assets(dimension)],
        resources={"warehouse": given_warehouse(spark, str(path))},
        instance=dg.DagsterInstance.ephemeral(),
        raise_on_error=False,
    )


def told(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """Asset to its metadata as plain values."""
    events = result.asset_materializations_for_node("load_dim_customer")
    return {e.asset_key.to_user_string(): {n: v.value for n, v in e.metadata.items()} for e in events}


def test_a_run_tells_what_it_did_and_a_second_that_nothing_was_new(
    spark: SparkSession, warehouse: Path, customer: Dimension
) -> None:
    first = materialize(spark, warehouse, customer)
    assert first.success
    log, table = told(first)["dim_customer_changes"], told(first)["dim_customer"]
    assert {name: log[name] for name in ("batches_accepted", "rows_read", "rows_quarantined", "rows_new")} == {
        "batches_accepted": 1,
        "rows_read": 3,
        "rows_quarantined": 1,
        "rows_new": 2,
    }
    assert (table["rows_opened"], table["rows_closed"]) == (2, 0)
    (batch,) = reading.batches(Warehouse(spark, warehouse), customer).collect()
    assert batch["run_id"] == first.run_id

    again = told(materialize(spark, warehouse, customer))
    assert (again["dim_customer_changes"]["batches_unchanged"], again["dim_customer"]["rows_opened"]) == (1, 0)
    assert again["dim_customer"]["delta_version"] == table["delta_version"]


def test_a_stopped_batch_fails_the_run_after_the_others_went_in(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    (tmp_path / "customers_2024-02-01.csv").write_text("id,city\n1,Wien\n,Ulm\n", encoding="utf-8")
    result = materialize(spark, warehouse, customer)
    assert not result.success
    assert told(result)["dim_customer_changes"]["batches_accepted"] == 1
    assert told(result)["dim_customer_changes"]["batches_stopped"] == 1
    failure = result.failure_data_for_node("load_dim_customer")
    assert failure is not None
    assert failure.user_failure_data is not None
    assert failure.user_failure_data.description == "stopped: 2024-02-01; the others went in"
    (text,) = [str(value.value) for value in failure.user_failure_data.metadata.values()]
    assert "1 of 2 rows cannot be taken; at most 40% may be bad; mend the rows" in text
    rows = reading.current(Warehouse(spark, warehouse), customer).collect()
    assert {(row["id"], row["city"]) for row in rows} == {("1", "Graz"), ("2", "Linz")}


def test_a_fault_of_ours_fails_the_run_with_its_message(
    spark: SparkSession, warehouse: Path, customer: Dimension, tmp_path: Path
) -> None:
    materialize(spark, warehouse, customer)
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace("city: 2", "city: 1"), encoding="utf-8")
    result = materialize(spark, warehouse, load_dimension(tmp_path / "dim_customer.yaml"))
    assert not result.success
    failure = result.failure_data_for_node("load_dim_customer")
    assert failure is not None
    assert failure.user_failure_data is not None
    assert "DeclarationError" in str(failure.user_failure_data.description)
    assert "attributes.city" in str(failure.user_failure_data.description)
    assert told(result) == {}


def test_the_resource_fits_where_dagster_pysparks_does() -> None:
    assert issubclass(DeltaSparkResource, LazyPySparkResource)
    assert isinstance(WarehouseResource(path="/x").spark(), LazyPySparkResource)


def test_a_session_without_delta_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SetupError("this process already has a Spark session without Delta")

    monkeypatch.setattr("scd_pipeline.session.local_spark", refuse)
    with pytest.raises(SetupError, match="without Delta"):
        WarehouseResource(path=str(tmp_path)).open()


def test_the_place_is_told() -> None:
    assert WarehouseResource(path="/x").place == "an embedded Spark"
    assert WarehouseResource(path="/x", remote="sc://h:1").place == "the Spark Connect server sc://h:1"
