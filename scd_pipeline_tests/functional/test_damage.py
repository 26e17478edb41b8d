"""A table that another program changed: the commands and Dagster's load report it with the command that restores it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.cli import app as cli
from scd_pipeline.components import WarehouseResource
from scd_pipeline.components.assets import table_assets
from scd_pipeline.declaration import read_dimension
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.semantics.specification import requirement

DECLARED = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
"""
FOREIGN = "table dim_customer: table version 2 (DELETE) is a foreign commit"
RESTORE = "` TO VERSION AS OF 1`"


@pytest.mark.slow
@requirement("F29", "F52", "F67")
def test_load_status_and_dagster_report_rows_deleted_by_hand(
    spark: SparkSession,
    remote: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not remote:
        pytest.skip("each command would stop the session of the tests")
    file = tmp_path / "declared" / "dim_customer.yaml"
    file.parent.mkdir()
    file.write_text(DECLARED, encoding="utf-8")
    (file.parent / "customers_2024-01-01.csv").write_text("id,city\n7,Graz\n8,Linz\n", encoding="utf-8")
    store = Warehouse(spark, tmp_path / "warehouse")
    settings = {"SCD_WAREHOUSE": store.path, "SCD_REMOTE": remote, "SCD_DECLARATIONS": str(file.parent)}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    assert cli.main(["load"]) == 0
    assert "table version 1;" in capsys.readouterr().out
    spark.sql(f"DELETE FROM {store.table('dim_customer').identifier} WHERE id = '7'").collect()

    assert cli.main(["load"]) == 4
    error = capsys.readouterr().err
    assert FOREIGN in error and RESTORE in error and "`scd check`" in error and "Traceback" not in error

    assert cli.main(["status"]) == 4
    report = capsys.readouterr().out
    assert "damaged: dim_customer: " in report and FOREIGN in report and RESTORE in report

    with dg.DagsterInstance.ephemeral() as instance:
        resources = {"warehouse": WarehouseResource(path=store.path, remote=remote)}
        assets = [table_assets(read_dimension(file))]
        instance.add_dynamic_partitions("dim_customer_deliveries", ["2024-01-01"])
        run = dg.materialize(
            assets, partition_key="2024-01-01", resources=resources, instance=instance, raise_on_error=False
        )
    (failure,) = [event for event in run.all_events if event.is_step_failure]
    assert FOREIGN in str(failure.event_specific_data)
