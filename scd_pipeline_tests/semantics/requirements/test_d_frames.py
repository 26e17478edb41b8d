"""D26 to D39: changed declarations of whole rows, and rows of Spark, pandas and Arrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.specification import declare, requirement
from scd_pipeline_tests.text_tables import assert_same_rows

CUSTOMER = declare(
    """
    dimension: dim_customer
    business_key: whole_row
    surrogate_key: row_key
    profile: dlt
    sources:
      shop: {feed: {}}
    attributes:
      customer_key: {scd: 2, type: int}
      c1: 2
    """
).dimension
EXTRACTS = replace(CUSTOMER, sources=(Source("shop", snapshot=Snapshot()),))
INCREMENTS = replace(CUSTOMER, sources=(Source("shop", snapshot=Snapshot(scope="customer_key")),))
FOO, BAR, NEW = ({"customer_key": key, "c1": c1} for key, c1 in ((1, "foo"), (2, "bar"), (1, "foo_updated")))


def delivered(channel: str, day: str, *rows: dict[str, Any]) -> Delivery:
    return Delivery("shop", day, channel, frame=pa.Table.from_pylist(list(rows)))


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """The rows of two customers, as a feed delivered them."""
    warehouse = Warehouse(spark, tmp_path_factory.mktemp("customers"))
    ingest_and_apply(warehouse, CUSTOMER, [delivered("feed", "2024-01-01", FOO, BAR)])
    return warehouse


@requirement("D26", "D36")
@pytest.mark.parametrize(
    ("dimension", "delivery", "becomes"),
    [
        (
            EXTRACTS,
            delivered("snapshot", "2024-01-02", NEW),
            """
            | effective_from | effective_to | customer_key | c1          |
            | 2024-01-01     | 2024-01-02   | 1            | foo         |
            | 2024-01-01     | 2024-01-02   | 2            | bar         |
            | 2024-01-02     | OPEN         | 1            | foo_updated |
            """,
        ),
        (
            INCREMENTS,
            delivered("snapshot", "2024-01-02", NEW),
            """
            | effective_from | effective_to | customer_key | c1          |
            | 2024-01-01     | 2024-01-02   | 1            | foo         |
            | 2024-01-02     | OPEN         | 1            | foo_updated |
            """,
        ),
        (
            CUSTOMER,
            delivered("feed", "2024-01-02", NEW),
            """
            | effective_from | effective_to | customer_key | c1          |
            | 2024-01-02     | OPEN         | 1            | foo_updated |
            """,
        ),
    ],
    ids=["full extracts", "increments by the natural key", "the feed as before"],
)
def test_a_source_that_is_declared_otherwise_delivers_otherwise(
    loaded: Warehouse, dimension: Dimension, delivery: Delivery, becomes: str
) -> None:
    """No mode is stored: each delivery is what the declaration says. The rows are those that the load changes."""
    assert_same_rows(becomes, records(plan(loaded, dimension, [delivery]).changed_rows))


@requirement("D31", "D36")
@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"open_end": "9999-12-31"}, ["open_end"]),
        ({"profile": "auto_cdc", "column_names": {"row_hash": "hash"}}, ["key", "column_names"]),
        ({"column_names": {"effective_from": "from", "effective_to": "to"}}, ["column_names"]),
        (
            {"business_key": "customer_key", "attributes": {"c1": 2}},
            ["key", "row_entity", "column_names", "customer_key"],
        ),
        ({"profile": "default"}, ["key", "open_end", "column_names"]),
    ],
    ids=["open end", "profile", "names of the window", "business key", "no profile"],
)
def test_an_option_that_changes_stored_rows_is_rejected_for_an_existing_table(
    loaded: Warehouse, changes: dict[str, Any], fields: Sequence[str]
) -> None:
    """Nothing is written, and the error names each option."""
    version = loaded.table("dim_customer").newest_version()
    with pytest.raises(DeclarationError) as caught:
        plan(loaded, replace(EXTRACTS, **changes), [delivered("snapshot", "2024-01-02", NEW)])
    assert [error.field.removeprefix("attributes.") for error in caught.value.errors] == fields
    assert loaded.table("dim_customer").newest_version() == version


READING = declare(
    """
    dimension: dim_reading
    business_key: whole_row
    profile: dlt
    sources: {plant: {snapshot: {}}}
    attributes: mirror
    """
).dimension
MEASURED = dt.datetime(2024, 1, 1, 12, 30, 15, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))
READINGS = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "value": pa.array([1.5, float("nan"), float("nan")], pa.float64()),
        "measured": pa.array([MEASURED, MEASURED, None], pa.timestamp("us", tz="Europe/Oslo")),
        "place": pa.array(["roof", None, ""], pa.string()),
    }
)
FRAMES: dict[str, Callable[[SparkSession], Any]] = {
    "2024-01-01": lambda spark: spark.createDataFrame(READINGS),
    "2024-01-02": lambda _: READINGS.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
    "2024-01-03": lambda _: READINGS.select(["place", "measured", "value", "id"]),
}
"""The same rows as a frame of Spark, of pandas and of Arrow, by the days of their deliveries."""


@requirement("D35")
def test_rows_of_spark_pandas_and_arrow_have_the_same_hashes(own_tables: OwnTables) -> None:
    """No row of a later delivery is new, with NaN, NULL, empty text, times with a zone and nullable integers."""
    frames = {day: frame(own_tables.warehouse.spark) for day, frame in FRAMES.items()}
    planned = plan(
        own_tables.warehouse, READING, [Delivery("plant", day, frame=frame) for day, frame in frames.items()]
    )
    becomes = """
    | effective_from | effective_to | id   | value | measured                   | place |
    | 2024-01-01     | OPEN         | 1    | 1.5   | 2024-01-01 10:30:15.123456 | roof  |
    | 2024-01-01     | OPEN         | 2    | NaN   | 2024-01-01 10:30:15.123456 | NULL  |
    | 2024-01-01     | OPEN         | NULL | NaN   | NULL                       | ''    |
    """
    assert_same_rows(becomes, records(planned.changed_rows))


@requirement("D35")
def test_nan_of_pandas_is_null_in_a_column_of_whole_numbers(own_tables: OwnTables) -> None:
    frame = pd.DataFrame({"customer_key": [1.0, float("nan")], "c1": ["foo", "bar"]})
    planned = plan(own_tables.warehouse, EXTRACTS, [Delivery("shop", "2024-01-01", frame=frame)])
    rows = {row["c1"]: row["customer_key"] for row in records(planned.changed_rows)}
    assert rows == {"foo": 1, "bar": None}


@requirement("D39")
def test_a_change_in_a_nested_value_alone_is_a_change_of_the_row(own_tables: OwnTables) -> None:
    deliveries = [
        Delivery("plant", day, frame=pa.table({"id": [1], "items": [[{"sku": "a", "count": count}]]}))
        for day, count in (("2024-01-01", 1), ("2024-01-02", 2), ("2024-01-03", 2))
    ]
    rows = records(plan(own_tables.warehouse, READING, deliveries).changed_rows)
    becomes = """
    | id | count | effective_from | effective_to |
    | 1  | 1     | 2024-01-01     | 2024-01-02   |
    | 1  | 2     | 2024-01-02     | OPEN         |
    """
    assert_same_rows(becomes, [{**row, "count": row["items"][0]["count"]} for row in rows])
