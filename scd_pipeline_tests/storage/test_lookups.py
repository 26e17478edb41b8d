"""How many files a lookup by business key reads: those whose minimum and maximum of the key contain it."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline.operations.maintenance import maintain
from scd_pipeline.spark.settings import temporary_settings
from scd_pipeline_tests.semantics.specification import requirement

NOW = datetime(2024, 6, 1, tzinfo=timezone.utc)
MACHINE = Dimension(
    "dim_machine",
    {"id": "int"},
    {"title": Attribute(2)},
    Source("floor", feed=Feed(format="parquet")),
    z_order="always",
)
FILES_OF_40_ROWS = {"spark.sql.files.maxRecordsPerFile": "40"}
FILES_OF_8_KB = {"spark.databricks.delta.optimize.maxFileSize": "8000"}


@requirement("D21")
def test_a_lookup_by_key_reads_one_of_many_files_after_maintenance(spark: SparkSession, warehouse: Path) -> None:
    """As they were loaded, nearly the whole range of keys is in each file. All files are small, as the table is."""
    store, keys = Warehouse(spark, warehouse), [*range(640)]
    random.Random(7).shuffle(keys)
    frame = pa.table({"id": pa.array(keys, pa.int32()), "title": [f"Machine {key}" for key in keys]})
    with temporary_settings(spark, FILES_OF_40_ROWS):
        ingest_and_apply(store, MACHINE, [Delivery("floor", "2024-01-01", frame=frame)])
    assert files(store, None, 77, 320, 501) == [16, 16, 16, 16]
    with temporary_settings(spark, FILES_OF_8_KB):
        maintain(store, [MACHINE.name], now=NOW, dimension=MACHINE)
    all_files, *files_of_keys = files(store, None, 77, 320, 501)
    assert all_files >= 8, "the parallelism of the server decides on more"
    assert files_of_keys == [1, 1, 1]


def files(store: Warehouse, *keys: int | None) -> list[int]:
    """Return how many files the query of each key reads after skipping others; None is the query of all rows."""
    rows = queries.history(store, MACHINE)
    return [len((rows if key is None else rows.where(f"id = {key}")).inputFiles()) for key in keys]
