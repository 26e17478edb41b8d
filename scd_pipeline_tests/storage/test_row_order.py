"""The order of a file's rows, by which a channel with `ties: last_row` decides (S5)."""

from __future__ import annotations

import json
from datetime import datetime

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import LoadResult, ingest_and_apply
from scd_pipeline_tests.semantics.specification import rule

pytestmark = pytest.mark.slow(2, together="row order")

KEYS, ROUNDS = 200, 40
BY_ROWS = Dimension(
    "dim_ordered",
    {"name": "string", "id": "int"},
    {"city": 2},
    Source("crm", Snapshot(format="json", ties="last_row"), Feed(format="csv", ties="last_row")),
)


def feed(name: str, **more: object) -> Delivery:
    return Delivery("crm", name, channel="feed", at=datetime(2024, 2, 1), **more)  # type: ignore[arg-type]


def rows(name: str) -> list[dict[str, object]]:
    """Each key in each round; its last row is the one of the last round."""
    return [{"name": name, "id": i, "city": f"{turn:08}"} for turn in range(ROUNDS) for i in range(KEYS)]


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, LoadResult]:
    """Deliveries of many rows, read by many tasks."""
    folder = tmp_path_factory.mktemp("row_order")
    lines = [",".join(map(str, row.values())) for row in rows("csv")]
    (folder / "a.csv").write_text("\n".join(["name,id,city", *lines]) + "\n")
    (folder / "a.json").write_text("\n".join(map(json.dumps, rows("json"))) + "\n")
    (folder / "parts").mkdir()
    for number in (1, 2):
        (folder / "parts" / f"{number}.csv").write_text("name,id,city\nfolder,1,Bonn\n")
    warehouse = Warehouse(spark, folder / "warehouse")
    size = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        result = ingest_and_apply(
            warehouse,
            BY_ROWS,
            [
                feed("csv", path=str(folder / "a.csv")),
                Delivery("crm", "json", channel="snapshot", at=datetime(2024, 1, 1), path=str(folder / "a.json")),
                feed("pandas", frame=pd.DataFrame(rows("pandas"))),
                feed("arrow", frame=pa.Table.from_pylist(rows("arrow"))),
                feed("folder", path=str(folder / "parts")),
                feed("pattern", path=str(folder / "parts" / "*.csv")),
                feed("spark", frame=spark.sql("SELECT 'spark' AS name, 1 AS id, 'Bonn' AS city")),
            ],
        )
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    return warehouse, result


@rule("S5")
@pytest.mark.parametrize("name", ["csv", "json", "pandas", "arrow"])
def test_the_last_row_of_each_key_decides(loaded: tuple[Warehouse, LoadResult], name: str) -> None:
    warehouse, _ = loaded
    versions = warehouse.table("dim_ordered").read().where(f"name = '{name}'").select("id", "city").collect()
    assert sorted(map(tuple, versions)) == [(i, f"{ROUNDS - 1:08}") for i in range(KEYS)]


@rule("S5")
@pytest.mark.parametrize(
    ("name", "expected_input"),
    [("folder", "a folder of files"), ("pattern", "a path of several files"), ("spark", "a Spark DataFrame")],
)
def test_a_delivery_without_a_row_order_is_rejected(
    loaded: tuple[Warehouse, LoadResult], name: str, expected_input: str
) -> None:
    (result,) = [batch for batch in loaded[1].results if batch.delivery == name]
    assert (result.outcome, result.code) == ("rejected", "NO_ROW_ORDER")
    assert result.details == {"input": expected_input}
