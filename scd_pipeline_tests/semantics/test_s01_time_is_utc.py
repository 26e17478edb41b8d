"""S1: all times are UTC with microsecond precision, whatever the zone of the session, the machine or the file."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline_tests.semantics.engine import OwnTables, load_once
from scd_pipeline_tests.semantics.specification import by_files, declare, feed, requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows, parse

EVENT = declare(
    """
    dimension: dim_event
    business_key: {id: int}
    sources:
      oslo:
        timezone: Europe/Oslo                # the zone of times without one
        feed: {effective_at: time}
        columns:
          day: {format: dd.MM.yyyy}
          minute: {format: dd.MM.yyyy HH:mm}
          offset: {format: dd.MM.yyyy HH:mm XXX}
          clock: {format: dd.MM.yyyy HH:mm}
    attributes:
      day: {scd: 2, type: date, missing: not_provided}
      minute: {scd: 2, type: timestamp, missing: not_provided}
      offset: {scd: 2, type: timestamp, missing: not_provided}
      plain: {scd: 2, type: timestamp, missing: not_provided}
      wall: {scd: 2, type: timestamp_ntz, missing: not_provided}
      clock: {scd: 2, type: timestamp_ntz, missing: not_provided}
    """
)

TIMES = """
| id | time                                   | effective_from             |
| -- | -------------------------------------- | -------------------------- |
| 1  | '2024-01-01 00:00:00'                  | 2023-12-31 23:00:00        |
| 2  | '2024-07-01 00:00:00'                  | 2024-06-30 22:00:00        |
| 3  | '2024-07-01T00:00:00.123456'           | 2024-06-30 22:00:00.123456 |
| 4  | '2024-07-01'                           | 2024-06-30 22:00:00        |
| 5  | '2024-07-01 00:00:00Z'                 | 2024-07-01 00:00:00        |
| 6  | '2024-07-01 00:00:00+05:30'            | 2024-06-30 18:30:00        |
| 7  | '2024-07-01T00:00:00-0800'             | 2024-07-01 08:00:00        |
| 8  | '2024-07-01 00:00:00 America/New_York' | 2024-07-01 04:00:00        |
| 9  | '2024-03-31 01:59:59'                  | 2024-03-31 00:59:59        |
| 10 | '2024-03-31 02:30:00'                  | 2024-03-31 01:30:00        |
| 11 | '2024-03-31 03:00:00'                  | 2024-03-31 01:00:00        |
| 12 | '2024-10-27 02:30:00'                  | 2024-10-27 00:30:00        |
| 13 | '2024-10-27 02:30:00+01:00'            | 2024-10-27 01:30:00        |
| 14 | '2024-10-27 03:00:00'                  | 2024-10-27 02:00:00        |
| 15 | '2024-07-01 10:00:00 PST'              | 2024-07-01 17:00:00        |
| 16 | '2024-07-01 10:00:00 UT'               | 2024-07-01 10:00:00        |
| 17 | '2024-07-01 10:00:00 America/Port-au-Prince' | 2024-07-01 14:00:00  |
"""

ATTRIBUTES = """
| id | day        | minute             | offset                    | plain                     | wall                  |
| 31 | 31.12.2023 | '01.07.2024 00:00' | '01.07.2024 00:00 +02:00' | '2024-07-01 00:00:00'     | '2024-03-31 02:30:00' |
| 32 |            | '01.01.2024 00:00' | '01.07.2024 00:00 Z'      | '2024-07-01 00:00:00.5-7' | '0001-01-01 00:00:00' |
"""

ATTRIBUTES_BECOME = """
| id | day        | minute              | offset              | plain                      | wall                |
| 31 | 2023-12-31 | 2024-06-30 22:00:00 | 2024-06-30 22:00:00 | 2024-06-30 22:00:00        | 2024-03-31 02:30:00 |
| 32 | NULL       | 2023-12-31 23:00:00 | 2024-07-01 00:00:00 | 2024-07-01 07:00:00.500000 | 0001-01-01 00:00:00 |
"""

CLOCKS = """
| id | clock              |
| 41 | '31.03.2024 02:30' |
"""

CLOCKS_BECOME = """
| id | clock               |
| 41 | 2024-03-31 02:30:00 |
"""

MIDNIGHT = dt.datetime(2024, 7, 1)
TOKYO = dt.timezone(dt.timedelta(hours=9))

FRAMES: dict[int, tuple[str, Callable[[SparkSession], Any]]] = {
    51: ("pandas, without a zone", lambda spark: pd.DataFrame({"time": [pd.Timestamp(MIDNIGHT)]})),
    52: ("pandas, Tokyo", lambda spark: pd.DataFrame({"time": [pd.Timestamp(MIDNIGHT, tz="Asia/Tokyo")]})),
    53: ("pandas, text", lambda spark: pd.DataFrame({"time": ["2024-07-01 00:00:00"]})),
    54: ("pandas, Python's datetime", lambda spark: pd.DataFrame({"time": pd.Series([MIDNIGHT], dtype=object)})),
    55: ("Arrow, without a zone", lambda spark: _arrow(pa.timestamp("us"), MIDNIGHT)),
    56: ("Arrow, nanoseconds", lambda spark: _arrow(pa.timestamp("ns"), MIDNIGHT)),
    57: ("Arrow, Tokyo", lambda spark: _arrow(pa.timestamp("ms", "Asia/Tokyo"), MIDNIGHT.replace(tzinfo=TOKYO))),
    58: ("Arrow, a date", lambda spark: _arrow(pa.date32(), MIDNIGHT.date())),
    59: ("Spark, an instant", lambda spark: spark.sql("SELECT timestamp'2024-07-01 00:00:00Z' AS time")),
    60: ("Spark, without a zone", lambda spark: spark.sql("SELECT timestamp_ntz'2024-07-01 00:00:00' AS time")),
}

FRAMES_BECOME = """
| id | frame                     | effective_from      |
| -- | ------------------------- | ------------------- |
| 51 | pandas, without a zone    | 2024-06-30 22:00:00 |
| 52 | pandas, Tokyo             | 2024-06-30 15:00:00 |
| 53 | pandas, text              | 2024-06-30 22:00:00 |
| 54 | pandas, Python's datetime | 2024-06-30 22:00:00 |
| 55 | Arrow, without a zone     | 2024-06-30 22:00:00 |
| 56 | Arrow, nanoseconds        | 2024-06-30 22:00:00 |
| 57 | Arrow, Tokyo              | 2024-06-30 15:00:00 |
| 58 | Arrow, a date             | 2024-06-30 22:00:00 |
| 59 | Spark, an instant         | 2024-07-01 00:00:00 |
| 60 | Spark, without a zone     | 2024-06-30 22:00:00 |
"""


def _arrow(kind: pa.DataType, value: object) -> pa.Table:
    return pa.table({"time": pa.array([value], kind)})


def _with_id(frame: Any, number: int) -> Any:
    """The frame with its key."""
    if isinstance(frame, pd.DataFrame):
        return frame.assign(id=number)
    if isinstance(frame, pa.Table):
        return frame.append_column("id", pa.array([number]))
    return frame.selectExpr("*", f"{number} AS id")


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process in a zone thirteen hours ahead."""
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@requirement("X21")
@rule("S1")
def test_times_without_a_zone_are_read_in_the_time_zone_of_the_source(
    spark: SparkSession, own_tables: OwnTables, far_from_utc: None
) -> None:
    """Texts, formats and frames. A skipped local time is read an hour later; of a repeated one, the first is used.

    A time with a zone or an offset is that instant; a `timestamp_ntz` attribute is stored as written.
    """
    dimension = EVENT.dimension
    rows = "\n".join(f"| times | {row['id']} | '{row['time']}' |" for row in parse(TIMES))
    times = feed(f"| delivery | id | time |\n{rows}", "oslo")
    others = [
        feed(_at_new_year(name, table), "oslo") for name, table in (("attributes", ATTRIBUTES), ("clocks", CLOCKS))
    ]
    deliveries = own_tables.deliveries(dimension, times, *others)
    deliveries += [
        Delivery("oslo", f"{i}", frame=_with_id(create_frame(spark), i)) for i, (_, create_frame) in FRAMES.items()
    ]
    load_once(own_tables.warehouse, by_files(dimension), deliveries).raise_if_rejected()
    dimension_rows = own_tables.rows(dimension)

    several = [row for row in dimension_rows if row["id"] < 31]
    titled = [{**row, "frame": FRAMES[row["id"]][0]} for row in dimension_rows if row["id"] in FRAMES]
    assert_same_rows(TIMES, [{**row, "time": _time(row["id"])} for row in several])
    assert_same_rows(ATTRIBUTES_BECOME, [row for row in dimension_rows if row["id"] in (31, 32)])
    assert_same_rows(CLOCKS_BECOME, [row for row in dimension_rows if row["id"] == 41])
    assert_same_rows(FRAMES_BECOME, titled)


def _at_new_year(delivery: str, table: str) -> str:
    """The table as a delivery, with a time for each line."""
    first, *lines = table.strip().splitlines()
    return "\n".join(
        [f"| delivery | time {first}", *(f"| {delivery} | '2024-01-01 00:00:00Z' {line}" for line in lines)]
    )


def _time(number: int) -> str:
    return next(row["time"] for row in parse(TIMES) if row["id"] == number)


@pytest.mark.slow
@rule("S1", "S26")
def test_a_time_of_day_without_a_date_is_a_bad_value(own_tables: OwnTables) -> None:
    """Spark would read it as a time of today, so that the result would depend on the clock."""
    delivery = feed("| delivery | id | time | allow |\n| times | 1 | '12:30:00' | bad_rows |", "oslo")
    result = own_tables.load(EVENT.dimension, delivery)
    assert [(batch.outcome, batch.bad_rows) for batch in result.results] == [("accepted", 1)]
    assert own_tables.rows(EVENT.dimension) == []


@rule("S1")
def test_a_session_in_another_time_zone_than_utc_is_rejected(spark: SparkSession, warehouse: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Oslo")
    try:
        with pytest.raises(SetupError, match="SESSION_TIME_ZONE"):
            Warehouse(spark, warehouse)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.slow
@rule("S1", "S26")
def test_times_in_nested_values_are_read_in_the_time_zone_of_the_source(
    spark: SparkSession, own_tables: OwnTables, far_from_utc: None
) -> None:
    """As text, in a JSON text or as times without a zone. A time of day is a bad value in a nested value too."""
    types = {"seen": "array<timestamp>", "last": "struct<at:timestamp>", "by": "map<string,timestamp>"}
    attributes = {name: Attribute(2, type=kind) for name, kind in types.items()}
    source = Source("oslo", feed=Feed(), timezone="Europe/Oslo", bad_row_limit=1.0)
    dimension = Dimension("dim_deep", "id", attributes, source)

    def arrow(number: int, at: object, kind: pa.DataType) -> pa.Table:
        shapes = (pa.list_(kind), pa.struct([("at", kind)]), pa.map_(pa.string(), kind))
        values = ([at], {"at": at}, [("a", at)])
        return pa.table(
            {"id": [number], **{n: pa.array([v], k) for n, v, k in zip(types, values, shapes, strict=True)}}
        )

    def as_json(number: int, at: str) -> pa.Table:
        texts = (f'["{at}"]', f'{{"at": "{at}"}}', f'{{"a": "{at}"}}')
        return pa.table({"id": [number], **{name: [text] for name, text in zip(types, texts, strict=True)}})

    midnight, wall = "2024-07-01 00:00:00", "TIMESTAMP_NTZ'2024-07-01 00:00:00'"
    frames = [
        as_json(1, midnight),
        arrow(2, midnight, pa.string()),
        arrow(3, dt.datetime(2024, 7, 1), pa.timestamp("ns")),
        spark.sql(f"SELECT 4 AS id, array({wall}) seen, named_struct('at', {wall}) last, map('a', {wall}) AS by"),
        as_json(5, "2024-06-30 22:00:00Z"),
        arrow(6, dt.datetime(2024, 6, 30, 22), pa.timestamp("us", "UTC")),
        as_json(7, "12:30:00"),
        arrow(8, "12:30:00", pa.string()),
    ]
    day = dt.datetime(2024, 7, 2, tzinfo=dt.timezone.utc)
    load_once(
        own_tables.warehouse, dimension, [Delivery("oslo", f"{n}", at=day, frame=f) for n, f in enumerate(frames)]
    )
    rows = sorted(own_tables.rows(dimension), key=lambda row: row["id"])
    at = dt.datetime(2024, 6, 30, 22, tzinfo=dt.timezone.utc)
    values = [(row["id"], row["seen"], row["last"], dict(row["by"])) for row in rows]
    assert values == [(str(number), [at], {"at": at}, {"a": at}) for number in range(1, 7)]
