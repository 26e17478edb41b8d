"""H27: names of columns that SQL needs in quotes, in deliveries and in tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.engine import records
from scd_pipeline_tests.semantics.specification import requirement

COLUMNS = {
    "order": "select",
    "select": "order",
    "blank": "last name",
    "dot": "a.b",
    "backtick": "c`d",
    "quote": "it's",
    "double_quote": 'the "best"',
    "UPPER": "UPPER",
    "größe": "Größe",
    "名前": "名 前",
    "semicolon": "x;y,z",
    "braces": "{n}(m)=",
    "o'\"k": "plain",
}
"""The source column of each attribute."""
NAMES = ("id", *COLUMNS.values())


def write(spark: SparkSession, folder: Path, file_format: str, values: Sequence[str]) -> None:
    """Write a row with the columns of a delivery: a file, or a version of a Delta table with column mapping."""
    row, path = dict(zip(NAMES, values, strict=True)), folder / f"base_2024-01-01.{file_format}"
    match file_format:
        case "csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([row.keys(), row.values()])
        case "json":
            path.write_text(json.dumps(row), encoding="utf-8")
        case "parquet":
            pq.write_table(pa.Table.from_pylist([row]), path)
        case _:
            frame = spark.createDataFrame([tuple(values)], list(NAMES)).write.format("delta").mode("append")
            frame.option("delta.columnMapping.mode", "name").save(str(folder / "base"))


def declared(folder: Path, file_format: str) -> Dimension:
    """The declaration for deliveries of a format."""
    is_table = file_format == "delta"
    path = folder / ("base" if is_table else f"base_{{date}}.{file_format}")
    source = Source("erp", Snapshot(str(path), versions=is_table, format=file_format), columns=COLUMNS)
    return Dimension("dim_name", "id", dict.fromkeys(COLUMNS, 2), source)


@requirement("H27")
@pytest.mark.parametrize("file_format", ["csv", "json", "parquet", "delta"])
def test_a_column_of_any_name_is_read_as_an_attribute(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    values = [str(number) for number, _ in enumerate(NAMES)]
    write(spark, tmp_path, file_format, values)
    dimension = declared(tmp_path, file_format)
    load_plan = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, discover(dimension, spark))
    (batch,) = load_plan.results
    assert (batch.outcome, batch.problem, batch.undeclared) == ("accepted", "", ())
    (row,) = records(load_plan.changed_rows)
    assert {name: row[name] for name in ("id", *COLUMNS)} == dict(zip(("id", *COLUMNS), values, strict=True))


@pytest.mark.slow
@requirement("H27")
def test_an_attribute_with_a_reserved_name_has_a_history(spark: SparkSession, tmp_path: Path) -> None:
    """In the table, its audit and its queries; quotes and letters of any alphabet may be in the name as well."""
    dimension, opened = declared(tmp_path, "json"), Warehouse(spark, tmp_path / "warehouse")
    for day in (1, 2):
        row = dict.fromkeys(NAMES, str(day)) | {"id": "1"}
        (tmp_path / f"base_2024-01-0{day}.json").write_text(json.dumps(row), encoding="utf-8")
        load(opened, dimension, discover(dimension, spark)).raise_if_rejected()
    rows = records(queries.history(opened, dimension).orderBy("version"))
    assert [{name: row[name] for name in COLUMNS} for row in rows] == [
        dict.fromkeys(COLUMNS, "1"),
        dict.fromkeys(COLUMNS, "2"),
    ]
    (update,) = records(queries.audit(opened, dimension).where("change_type = 'UPDATE'"))
    assert dict(update["new_values"]) == dict.fromkeys(COLUMNS, "2")
    assert {result.passed for result in check_table(opened, dimension)} == {True}
