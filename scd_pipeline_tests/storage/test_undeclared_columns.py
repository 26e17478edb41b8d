"""Undeclared columns whose names, types or values Spark cannot read: they are reported, and block nothing (S20)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Column, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import plan
from scd_pipeline_tests.text_tables import assert_same_rows

AT = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
COLUMNS: Mapping[str, Mapping[str, pa.Array]] = {
    "case": {"note": pa.array(["a"]), "Note": pa.array([1])},
    "inner case": {"note": pa.array([{"a": 1, "A": 2}])},
    "time": {"note": pa.array([dt.time(1)], pa.time64("us"))},
    "half": {"note": pa.array([np.float16(1)], pa.float16())},
    "wide": {"note": pa.array([Decimal(1)], pa.decimal256(50, 2))},
    "nanoseconds": {"note": pa.array([1], pa.timestamp("ns"))},
}
PROBLEMS = {
    "case": ("DUPLICATE_COLUMN", "note and Note"),
    "inner case": ("DUPLICATE_COLUMN", "note"),
    "time": ("COLUMN_TYPE", "note (Time(isAdjustedToUTC"),
    "half": ("COLUMN_TYPE", "note (Float16)"),
    "wide": ("COLUMN_TYPE", "note (Decimal(precision=50"),
    "nanoseconds": ("NANOSECONDS", "note"),
}
OTHERS = {
    "day": pa.array([dt.date(2024, 1, 2)]),
    "at": pa.array([dt.datetime(2024, 1, 1, 12)], pa.timestamp("us", "UTC")),
    "size": pa.array([7], pa.uint32()),
    "nothing": pa.nulls(1),
    "took": pa.array([1], pa.duration("s")),
    "tags": pa.array([["x"]]),
}


def dimension(**attributes: Any) -> Dimension:
    types = {"city": 2, "day": Attribute(1, type="date"), "size": Attribute(1, type="int"), **attributes}
    return Dimension("dim_c", "id", types, Source("crm", feed=Feed(format="parquet"), bad_row_limit=1.0))


def table(key: str, columns: Mapping[str, pa.Array]) -> pa.Table:
    return pa.table({"id": pa.array([key]), "city": pa.array(["Graz"]), **OTHERS, **columns})


def deliveries(folder: Path) -> list[Delivery]:
    for name, columns in COLUMNS.items():
        pq.write_table(table(name, columns), folder / f"{name}.parquet")
    (folder / "folder").mkdir()
    for number, values in enumerate((["a"], [1])):
        pq.write_table(table(f"folder {number}", {"note": pa.array(values)}), folder / "folder" / f"{number}.parquet")
    paths = {**{name: folder / f"{name}.parquet" for name in COLUMNS}, "folder": folder / "folder"}
    return [Delivery("crm", name, at=AT, path=str(path)) for name, path in paths.items()]


def frames() -> dict[str, Any]:
    row = {"id": "x", "city": "Graz", "day": dt.date(2024, 1, 2), "size": 7}
    return {
        "arrow case": table("arrow case", COLUMNS["case"]),
        "arrow time": table("arrow time", COLUMNS["time"]),
        "arrow half": table("arrow half", COLUMNS["half"]),
        "pandas": pd.DataFrame([{**row, "id": "pandas 1", "note": 1}, {**row, "id": "pandas 2", "note": "a"}]),
        "dicts": [{**row, "id": "dicts 1", "note": [1], "Note": 2}, {**row, "id": "dicts 2", "other": dt.time(1)}],
    }


@pytest.mark.rule("S20")
def test_undeclared_columns_that_cannot_be_read_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    from_python = [Delivery("crm", name, at=AT, frame=frame) for name, frame in frames().items()]
    done = plan(Warehouse(spark, tmp_path / "warehouse"), dimension(), [*deliveries(tmp_path), *from_python])
    assert {batch.delivery: batch.problem for batch in done.results if batch.outcome != "accepted"} == {}
    missing = {batch.delivery: batch.undeclared for batch in done.results if "note" not in batch.undeclared}
    assert missing == {}
    rows = done.changed_rows.select("id", "city", "day", "size").toArrow().to_pylist()
    keys = [*COLUMNS, "folder 0", "folder 1", *("arrow case", "arrow time", "arrow half")]
    keys += [f"{name} {number}" for name in ("pandas", "dicts") for number in (1, 2)]
    expected = [{"id": key, "city": "Graz", "day": dt.date(2024, 1, 2), "size": 7} for key in keys]
    assert_same_rows(expected, rows)


@pytest.mark.rule("S20")
def test_the_error_of_a_declared_column_names_it(spark: SparkSession, tmp_path: Path) -> None:
    from_python = [Delivery("crm", name, at=AT, frame=frame) for name, frame in frames().items()]
    done = plan(Warehouse(spark, tmp_path / "warehouse"), dimension(note=1), [*deliveries(tmp_path), *from_python])
    rejected: dict[str, BatchResult] = {batch.delivery: batch for batch in done.results if batch.outcome == "rejected"}
    for name, (code, text) in PROBLEMS.items():
        assert (rejected[name].code, text in rejected[name].problem) == (code, True), rejected[name].problem
    assert set(rejected) == {*COLUMNS, *frames(), "folder"}
    assert all("note" in batch.problem for batch in rejected.values()), [b.problem for b in rejected.values()]


@pytest.mark.rule("S20")
def test_times_of_the_type_int96_are_moments_whatever_the_other_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Also in a folder with a file whose times have another type."""
    times = {"opened": pa.array([AT], pa.timestamp("us", "UTC")), "hours": pa.array([[AT]])}
    folders = {"alone": {}, "case": COLUMNS["case"], "time": COLUMNS["time"], "mixed": COLUMNS["time"]}
    for name, columns in folders.items():
        (tmp_path / name).mkdir()
        rows = pa.table({"id": pa.array([name]), **times, **columns})
        pq.write_table(rows, tmp_path / name / "a.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(pa.table({"id": pa.array(["later"]), **times}), tmp_path / "mixed" / "b.parquet")
    attributes = {"opened": Attribute(1, type="timestamp"), "hours": Attribute(1, type="array<timestamp>")}
    source = Source("crm", feed=Feed(format="parquet"), timezone="Europe/Vienna")
    delivered = [Delivery("crm", name, at=AT, path=str(tmp_path / name)) for name in folders]
    done = plan(Warehouse(spark, tmp_path / "warehouse"), Dimension("dim_c", "id", attributes, source), delivered)
    assert {batch.delivery: batch.problem for batch in done.results if batch.outcome != "accepted"} == {}
    rows = done.changed_rows.selectExpr("id", "opened", "hours[0] AS hour").toArrow().to_pylist()
    assert_same_rows([{"id": key, "opened": AT, "hour": AT} for key in (*folders, "later")], rows)


@pytest.mark.rule("S20")
def test_a_column_by_the_name_of_a_text_or_a_keyword_of_an_expression_is_undeclared(
    spark: SparkSession, tmp_path: Path
) -> None:
    city = Column(expression="case when kind = 'a' then cast(city as string) else \"note\" end")
    feed = Feed(format="parquet", deletes="op = 'D'", rows="upper(kind) > 'Z'")
    source = Source("crm", feed=feed, columns={"city": city})
    declared = Dimension("dim_c", "id", {"city": 2}, source)
    columns = {name: pa.array(["a"]) for name in ("id", "city", "kind", "op", "D", "d", "Upper", "upper")}
    times = {name: pa.array([dt.time(1)], pa.time64("us")) for name in ("end", "string", "note", "z")}
    pq.write_table(pa.table({**columns, **times}), tmp_path / "1.parquet")
    deliveries = [Delivery("crm", "1", at=AT, path=str(tmp_path / "1.parquet"))]
    deliveries.append(Delivery("crm", "2", at=AT, frame=pa.table({**columns, **times, "op": pa.array([dt.time(1)])})))
    file, frame = plan(Warehouse(spark, tmp_path / "warehouse"), declared, deliveries).results
    assert (file.outcome, set(file.undeclared)) == ("accepted", {"D", "d", "Upper", "upper", *times})
    assert (frame.code, "op (" in frame.problem, "end" in frame.problem) == ("COLUMN_TYPE", True, False)
