"""Times of deliveries that are read from paths and partitions in a declared form, at a time of day and in a zone."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration.path_times import suggested_form
from scd_pipeline.deliveries.delivery import NO_VALUE
from scd_pipeline.deliveries.discovery import discover, select_deliveries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.storage.customers import history
from scd_pipeline_tests.text_tables import assert_same_rows


def declared(path: Path, pattern: str, **options: str) -> Dimension:
    return Dimension("dim_user", "id", {"city": 2}, Source("hr", Snapshot(str(path / pattern), **options)))  # type: ignore[arg-type]


@pytest.mark.rule("S4")
@pytest.mark.parametrize(
    ("pattern", "file", "name", "at"),
    [
        ("u_{date}.csv", "u_2024-01-31.csv", "2024-01-31", "2024-01-31 00:00"),
        ("u_{datetime}.csv", "u_2024-01-31T23-59-58.csv", "2024-01-31T23-59-58", "2024-01-31 23:59:58"),
        ("u_{date:%Y%m%d}.csv", "u_20240131.csv", "2024-01-31", "2024-01-31 00:00"),
        ("u_{date:%d.%m.%y}.csv", "u_31.01.24.csv", "2024-01-31", "2024-01-31 00:00"),
        ("{date:%Y/%m/%d}/u.csv", "2024/01/31/u.csv", "2024-01-31", "2024-01-31 00:00"),
        ("{date:year=%Y/month=%m/day=%d}", "year=2024/month=01/day=31", "2024-01-31", "2024-01-31 00:00"),
        ("u_{datetime:%Y%m%dT%H%M%S}.csv", "u_20240131T235958.csv", "2024-01-31T23-59-58", "2024-01-31 23:59:58"),
        ("u_{datetime:%Y%m%d%H}.csv", "u_2024013123.csv", "2024-01-31T23-00-00", "2024-01-31 23:00"),
    ],
)
def test_the_name_of_a_delivery_does_not_depend_on_the_form_of_its_time(
    tmp_path: Path, pattern: str, file: str, name: str, at: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("id,city\n1,Graz\n")
    (delivery,) = discover(declared(tmp_path, pattern, format="csv"), None)
    assert (delivery.name, delivery.path) == (name, str(tmp_path / file))
    assert delivery.at == datetime.fromisoformat(at).replace(tzinfo=timezone.utc)


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("day", "time_of_day", "zone", "at"),
    [
        ("20240131", "23:59:59", "UTC", "2024-01-31 23:59:59"),
        ("20240131", None, "Europe/Vienna", "2024-01-30 23:00:00"),
        ("20240131", "23:59", "Europe/Vienna", "2024-01-31 22:59:00"),
        ("20240731", "23:59:59", "Europe/Vienna", "2024-07-31 21:59:59"),
        # A time that the zone skips is after the change of its offset, one that it repeats is the first of both.
        ("20240331", "02:30", "Europe/Vienna", "2024-03-31 01:30:00"),
        ("20241027", "02:30", "Europe/Vienna", "2024-10-27 00:30:00"),
        ("99991231", "23:59", "America/New_York", None),
        ("20241399", "23:59", "UTC", None),
    ],
)
def test_a_date_has_the_declared_time_of_day_in_the_declared_zone(
    tmp_path: Path, day: str, time_of_day: str | None, zone: str, at: str | None
) -> None:
    (tmp_path / f"u_{day}.csv").write_text("id,city\n1,Graz\n")
    options = {"delivery_timezone": zone, **({"time_of_day": time_of_day} if time_of_day else {})}
    (delivery,) = discover(declared(tmp_path, "u_{date:%Y%m%d}.csv", **options), None)
    assert delivery.at == (datetime.fromisoformat(at).replace(tzinfo=timezone.utc) if at else None)


@pytest.mark.slow
@pytest.mark.rule("S4")
def test_daily_extracts_named_by_compact_dates_begin_at_the_end_of_their_day(
    spark: SparkSession, tmp_path: Path
) -> None:
    for day, city in (("20190701", "Graz"), ("20190702", "Linz"), ("20191301", "Wien")):
        (tmp_path / f"users_{day}.csv").write_text(f"id,city\n1,{city}\n")
    dimension = declared(tmp_path, "users_{date:%Y%m%d}.csv", time_of_day="23:59:59", delivery_timezone="Europe/Vienna")
    opened = Warehouse(spark, tmp_path / "warehouse")
    (first,) = select_deliveries(dimension, spark, names=["2019-07-01"])
    assert [batch.outcome for batch in ingest_and_apply(opened, dimension, [first]).results] == ["accepted"]
    done = ingest_and_apply(opened, dimension, select_deliveries(dimension, spark))
    assert [batch.outcome for batch in done.results] == ["unchanged", "accepted", "rejected"]
    assert done.rejected[0].details["reason"] == (
        "2019-13-01 in the name of users_20191301.csv is not a date of the calendar"
    )
    rows = [(row["city"], str(row["from"]), row["to"] and str(row["to"])) for row in history(opened, dimension)]
    assert sorted(rows) == [
        ("Graz", "2019-07-01 21:59:59", "2019-07-02 21:59:59"),
        ("Linz", "2019-07-02 21:59:59", None),
    ]


@pytest.mark.slow
@pytest.mark.rule("S4")
def test_partitions_are_named_and_dated_by_the_declared_form(spark: SparkSession, tmp_path: Path) -> None:
    """Without the form they are rejected, and the fix is to declare it."""
    for day, city in (("20240131", "Graz"), ("20240201", "Linz"), ("latest", "Wien")):
        folder = tmp_path / "lake" / f"dt={day}"
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table({"id": ["1"], "city": [city]}), folder / "p.parquet")
    undeclared = declared(tmp_path, "lake", format="parquet", partition="dt")
    rejected = ingest_and_apply(Warehouse(spark, tmp_path / "none"), undeclared, discover(undeclared, spark)).rejected
    assert {batch.delivery for batch in rejected} == {"20240131", "20240201", "latest"}
    assert str(rejected[0]).startswith("hr/snapshot/20240131/")
    assert rejected[0].problem.startswith("20240131 in dt is not a date of the form 2024-01-31, or a time of the form")
    assert rejected[0].fix == 'declare the form of its date, `partition_format: "%Y%m%d"`'

    dimension = declared(tmp_path, "lake", format="parquet", partition="dt", partition_format="%Y%m%d")
    opened = Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark))
    outcomes = [{"delivery": batch.delivery, "outcome": batch.outcome} for batch in done.results]
    assert_same_rows(
        """
        | delivery   | outcome  |
        | '2024-01-31' | accepted |
        | '2024-02-01' | accepted |
        | latest     | rejected |
        """,
        outcomes,
    )
    assert done.rejected[0].problem.startswith("latest in dt is not a date or time of the form %Y%m%d")
    rows = [
        (row["city"], str(row["from"])[:10], row["to"] and str(row["to"])[:10]) for row in history(opened, dimension)
    ]
    assert sorted(rows) == [("Graz", "2024-01-31", "2024-02-01"), ("Linz", "2024-02-01", None)]


def test_a_partition_without_a_value_keeps_its_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = "('a', '2024-01-31', '20240131'), ('b', '2024-02-01', NULL)"
    path = str(tmp_path / "changes")
    spark.sql(f"SELECT * FROM VALUES {rows} AS (id, moved, dt)").write.format("delta").partitionBy("dt").save(path)
    feed = Feed(path, partition="dt", partition_format="%Y%m%d", format="delta", effective_at="moved")
    dimension = Dimension("dim_user", "id", {}, Source("hr", feed=feed))
    names = {(delivery.name, delivery.partition) for delivery in discover(dimension, spark)}
    assert names == {("2024-01-31", "20240131"), (NO_VALUE, NO_VALUE)}


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["20190701", "20190702"], "%Y%m%d"),
        (["31.01.2024"], "%d.%m.%Y"),
        (["2024-01-31T10-00-00"], "%Y-%m-%dT%H-%M-%S"),
        (["20240131_235959"], "%Y%m%d_%H%M%S"),
        (["01-02-2024"], None),  # January or February
        (["01-02-2024", "31-01-2024"], "%d-%m-%Y"),
        (["2024-1-31"], None),
        ([], None),
    ],
)
def test_the_form_of_dates_is_suggested_if_it_is_the_only_one(texts: list[str], form: str | None) -> None:
    assert suggested_form(texts) == form
