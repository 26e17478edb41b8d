"""Deliveries as versions and as partitions of a table, and as files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source, load_dimension
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline.operations.status import status
from scd_pipeline_tests.text_tables import assert_same_rows


def declared(path: str, **options: object) -> Dimension:
    return Dimension("dim_customer", "id", {"city": 2}, Source("crm", Snapshot(path, **options)))  # type: ignore[arg-type]


def test_each_version_of_a_table_is_a_delivery(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "customers")
    for city in ("Rome", "Oslo"):
        spark.sql(f"SELECT 'a' AS id, '{city}' AS city").write.format("delta").mode("overwrite").save(path)
    dimension = declared(path, versions=True)
    deliveries = discover(dimension, spark)
    assert [(d.name, d.table_version) for d in deliveries] == [("0", 0), ("1", 1)]
    load_plan = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries)
    assert [batch.outcome for batch in load_plan.results] == ["accepted", "accepted"]
    rows = load_plan.changed_rows.orderBy("version").select("city", "current_flag").collect()
    assert [tuple(row) for row in rows] == [("Rome", False), ("Oslo", True)]


def test_a_missing_table_has_no_deliveries_and_a_folder_of_files_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    dimension = declared(str(tmp_path / "customers"), versions=True)
    assert discover(dimension, spark) == []
    spark.sql("SELECT 'a' AS id").write.parquet(str(tmp_path / "customers"))
    with pytest.raises(SourceDataError, match="NOT_A_TABLE"):
        discover(dimension, spark)


def test_a_loaded_delivery_is_not_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """Old table versions and files may no longer exist."""
    file = tmp_path / "c_2024-01-01.csv"
    file.write_text("id,city\na,Rome\n")
    dimension = declared("c_{date}.csv")
    deliveries = discover(dimension, spark, base=tmp_path)
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, dimension, deliveries)
    file.unlink()
    (batch,) = ingest_and_apply(opened, dimension, deliveries).batches
    assert (batch.outcome, batch.rows) == ("unchanged", 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_each_partition_of_a_table_is_a_delivery(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "customers")
    rows = "SELECT 'a' AS id, 'Rome' AS city, DATE'2024-01-01' AS day UNION ALL SELECT 'a', 'Oslo', DATE'2024-02-01'"
    spark.sql(rows).write.format(kind).partitionBy("day").save(path)
    deliveries = discover(declared(path, partition="day", format=kind), spark)
    assert [(d.name, str(d.at)) for d in deliveries] == [
        ("2024-01-01", "2024-01-01 00:00:00+00:00"),
        ("2024-02-01", "2024-02-01 00:00:00+00:00"),
    ]
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, declared(path, partition="day", format=kind), deliveries)
    cities = opened.table("dim_customer").read().orderBy("version").select("city", "effective_from").collect()
    assert [row["city"] for row in cities] == ["Rome", "Oslo"]


@pytest.mark.rule("S34")
def test_a_partition_of_files_that_grows_is_a_higher_revision(spark: SparkSession, tmp_path: Path) -> None:
    """The other partition is unchanged."""
    path = str(tmp_path / "customers")
    dimension, opened = declared(path, partition="day", format="parquet"), Warehouse(spark, tmp_path / "warehouse")

    def outcomes(*rows: str) -> list[str]:
        written = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS (id, city, day)").repartition(1)
        written.write.partitionBy("day").mode("append").parquet(path)
        return [batch.outcome for batch in ingest_and_apply(opened, dimension, discover(dimension, spark)).batches]

    assert outcomes("('a', 'Rome', '2024-01-01')", "('a', 'Oslo', '2024-02-01')") == ["accepted", "accepted"]
    assert outcomes("('b', 'Bonn', '2024-02-01')") == ["unchanged", "accepted"]
    assert opened.table("dim_customer").read().where("current_flag").count() == 2


@pytest.mark.rule("S4")
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_partition_without_a_date_is_rejected_and_does_not_block_the_others(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Rows without a partition value are such a partition too: they are not lost silently."""
    path = str(tmp_path / "customers")
    rows = "('a', 'Rome', '2024-01-01'), ('a', 'Oslo', 'unknown'), ('b', 'Bonn', NULL)"
    spark.sql(f"SELECT * FROM VALUES {rows} AS (id, city, day)").write.format(kind).partitionBy("day").save(path)
    dimension, opened = declared(path, partition="day", format=kind), Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark))
    outcomes = [{"delivery": b.delivery, "outcome": b.outcome, "code": b.code} for b in done.batches]
    assert_same_rows(
        """
        | delivery                   | outcome  | code    |
        | '2024-01-01'               | accepted | ''      |
        | __HIVE_DEFAULT_PARTITION__ | rejected | NO_TIME |
        | unknown                    | rejected | NO_TIME |
        """,
        outcomes,
    )
    assert done.rejected[0].details["reason"].startswith("its rows have no value in day")
    (crm,) = status(opened, [dimension], [], now=datetime(2024, 1, 2)).sources
    assert len(crm.rejected) == 2


@pytest.mark.slow
@pytest.mark.rule("S4")
def test_rows_without_a_partition_value_may_have_times_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "customers")
    rows = "('a', 'Rome', '2024-01-01', '2024-01-31'), ('a', 'Oslo', '2024-02-01', NULL)"
    spark.sql(f"SELECT * FROM VALUES {rows} AS (id, city, moved, day)").write.partitionBy("day").parquet(path)
    feed = Feed(path, partition="day", format="parquet", effective_at="moved")
    dimension = Dimension("dim_customer", "id", {"city": 2}, Source("crm", feed=feed))
    opened = Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark))
    assert [batch.outcome for batch in done.batches] == ["accepted", "accepted"]
    cities = opened.table("dim_customer").read().orderBy("version").select("city").collect()
    assert [row["city"] for row in cities] == ["Rome", "Oslo"]


@pytest.mark.slow
def test_files_behind_a_link_are_read_by_their_declared_paths(spark: SparkSession, tmp_path: Path) -> None:
    """Several at once: their rows are distinguished by the paths of their files."""
    (tmp_path / "real").mkdir()
    for month, city in ((1, "Rome"), (2, "Oslo")):
        (tmp_path / "real" / f"c_2024-0{month}-01.csv").write_text(f"id,city\na,{city}\n")
    (tmp_path / "linked").symlink_to(tmp_path / "real", target_is_directory=True)
    dimension = declared(str(tmp_path / "linked" / "c_{date}.csv"))
    opened = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(opened, dimension, discover(dimension, spark))
    rows = opened.table("dim_customer").read().orderBy("version").select("city").collect()
    assert [row["city"] for row in rows] == ["Rome", "Oslo"]


def test_files_are_selected_by_the_placeholder_in_their_path(tmp_path: Path) -> None:
    for name in ("c_2024-01-01.csv", "c_2024-02-01.csv", "c_other.csv", "_c_2024-03-01.csv"):
        (tmp_path / name).write_text("id,city\n")
    deliveries = discover(declared("c_{date}.csv"), None, base=tmp_path)
    assert [(d.name, d.channel, str(d.at)[:10]) for d in deliveries] == [
        ("2024-01-01", "snapshot", "2024-01-01"),
        ("2024-02-01", "snapshot", "2024-02-01"),
    ]


@pytest.mark.rule("S34")
@pytest.mark.parametrize("ahead", [-86_400, 86_400])
def test_a_file_that_replaces_another_is_a_higher_revision(tmp_path: Path, ahead: int) -> None:
    """Whatever its modification time, which a moved, copied or unpacked file keeps."""
    landing, replacement = tmp_path / "landing", tmp_path / "replacement.csv"
    landing.mkdir()
    dimension = declared("landing/c_{date}.csv")
    path = landing / "c_2024-01-01.csv"
    revisions = []
    for seconds in (0, ahead, 0):
        time.sleep(0.02)  # the clock of the file system is coarse
        replacement.write_text(f"id,city\na,{seconds}\n")
        os.utime(replacement, (time.time() + seconds,) * 2)
        replacement.rename(path)
        revisions += [delivery.revision for delivery in discover(dimension, None, base=tmp_path)]
    assert revisions == sorted(set(revisions))


@pytest.mark.rule("S34")
def test_a_folder_has_a_higher_revision_after_each_change_of_its_files(tmp_path: Path) -> None:
    """A file is rewritten, moved in, removed; the target of a link is created; at last nothing changes."""
    folder = tmp_path / "c_2024-01-01.csv"
    (folder / "deep").mkdir(parents=True)
    dimension, old = declared("c_{date}.csv"), tmp_path / "old.csv"
    for file in (folder / "deep" / "1.csv", old):
        file.write_text("id,city\na,Rome\n")
    os.utime(old, (0, 0))
    (folder / "2.csv").symlink_to(tmp_path / "linked.csv")
    changes: list[Callable[[], object]] = [
        lambda: (folder / "deep" / "1.csv").write_text("id,city\na,Oslo\n"),
        lambda: old.rename(folder / "deep" / "3.csv"),
        lambda: (folder / "deep" / "1.csv").unlink(),
        lambda: (tmp_path / "linked.csv").write_text("id,city\nb,Bonn\n"),
        lambda: None,
    ]
    revisions = []
    for change in changes:
        time.sleep(0.02)
        change()
        revisions += [delivery.revision for delivery in discover(dimension, None, base=tmp_path)]
    assert revisions[:-1] == sorted(set(revisions))
    assert revisions[-1] == revisions[-2]


ITEMS = """\
dimension: dim_item
business_key: id
sources:
  shop:
    timezone: Europe/Vienna
    feed:
      path: "items_{date}.%s"
      effective_at: changed
      effective_at_format: dd.MM.yyyy HH:mm
      sequence: counted
      sequence_type: timestamp
      %s
    columns:
      id: code
      label: {expression: upper(name)}
      size: {default: M}
attributes: {label: 2, size: 2}
"""
ROWS = [
    {"code": "7", "name": "shirt", "size": "", "changed": "05.01.2024 10:00", "counted": "2024-01-05 09:00:02"},
    {"code": "7", "name": "jacket", "size": "L", "changed": "05.01.2024 10:00", "counted": "2024-01-05 09:00:10"},
    {"code": "8", "name": "cap", "size": "", "changed": "06.01.2024 10:00", "counted": "2024-01-06 09:00:00"},
]


@pytest.mark.parametrize(("kind", "option"), [("csv", 'options: {sep: ";"}'), ("json", "deletes: name = 'gone'")])
def test_the_options_of_a_channel_and_of_its_columns_are_applied(
    spark: SparkSession, tmp_path: Path, kind: str, option: str
) -> None:
    """Of two changes at one time the one with the higher sequence is in force; an empty size gets the default."""
    (tmp_path / "dim_item.yaml").write_text(ITEMS % (kind, option), encoding="utf-8")
    lines = [";".join(ROWS[0]), *(";".join(row.values()) for row in ROWS)]
    if kind == "json":
        lines = [json.dumps({name: value or None for name, value in row.items()}) for row in ROWS]
    (tmp_path / f"items_2024-02-01.{kind}").write_text("\n".join(lines), encoding="utf-8")
    dimension = load_dimension(tmp_path / "dim_item.yaml")
    load_plan = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, discover(dimension, spark, base=tmp_path))
    rows = load_plan.changed_rows.select("id", "label", "size", "effective_from").toArrow().to_pylist()
    assert_same_rows(
        """
        | id  | label  | size | effective_from      |
        | '7' | JACKET | L    | 2024-01-05 09:00:00 |
        | '8' | CAP    | M    | 2024-01-06 09:00:00 |
        """,
        rows,
    )
