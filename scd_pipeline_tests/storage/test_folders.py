"""Deliveries of several files in folders whose names have values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.deliveries.folders import folder_names
from scd_pipeline.deliveries.readers import read_path, read_table

NUMBERS = ("007", "1e3")
KEYS = (*NUMBERS, "a +b/")
TEXTS = {
    "csv": "city\nBonn\n",
    "quoted.csv": 'city\n"Bo\nnn"\n',
    "json": '{"city": "Bonn"}\n',
}


def store_partitions(folder: Path, kind: str, keys: Sequence[str]) -> Path:
    """Store one row in a folder for each key, whose name has the key."""
    for key in keys:
        part = folder / kind / f"key={key.replace('/', '%2F')}"
        part.mkdir(parents=True)
        if kind == "parquet":
            pq.write_table(pa.table({"city": ["Bonn"]}), part / "1.parquet")
        else:
            (part / f"1.{kind}").write_text(TEXTS[kind])
    return folder / kind


@pytest.mark.parametrize(
    ("kind", "keys"), [("parquet", NUMBERS), ("parquet", KEYS), ("csv", NUMBERS), ("quoted.csv", KEYS), ("json", KEYS)]
)
def test_the_value_in_the_name_of_a_folder_is_read_as_text(
    spark: SparkSession, tmp_path: Path, kind: str, keys: Sequence[str]
) -> None:
    folder = store_partitions(tmp_path / "env=1", kind, keys)
    channel = Feed(format=kind.rpartition(".")[2])
    rows = read_path(spark, channel, [str(folder)]).select("key", "city").collect()
    assert sorted((row["key"], row["city"].replace("\n", "")) for row in rows) == [(key, "Bonn") for key in keys]


def test_files_and_folders_without_folders_are_not_listed_by_spark(tmp_path: Path) -> None:
    """It takes no frame to see that the names of folders have no values."""
    (tmp_path / "part-0.parquet").touch()
    no_frame = cast(DataFrame, None)
    assert folder_names(no_frame, [str(tmp_path), str(tmp_path / "part-0.parquet")]) == {}
    (tmp_path / "city=Graz").mkdir()
    with pytest.raises(AttributeError, match="inputFiles"):
        folder_names(no_frame, [str(tmp_path)])


def test_a_partition_has_the_name_of_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    folder = store_partitions(tmp_path, "parquet", NUMBERS)
    channel = Snapshot(str(folder), format="parquet", partition="key")
    dimension = Dimension("dim_x", "city", {}, Source("crm", channel))
    deliveries = discover(dimension, spark)
    assert [delivery.name for delivery in deliveries] == list(NUMBERS)
    assert [read_table(spark, channel, delivery).count() for delivery in deliveries] == [1, 1]
