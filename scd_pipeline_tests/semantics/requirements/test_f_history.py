"""F8 to F58: facts and awards as of their time, table versions that readers may see, audits, and hashes."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.history.row_hash import row_hash
from scd_pipeline.load.run import load
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.requirements.test_f_types import (
    ACCOUNT,
    COUNTRY,
    PLAYER,
    PROGRAM,
    RECIPIENT,
    WALK,
    walk,
)
from scd_pipeline_tests.semantics.specification import by_files, feed, requirement, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

DIMENSION = by_files(PLAYER.dimension)
PLAY = Fact("fct_slot_play", {"event_id": "int"}, "event_ts", {"player": Role(DIMENSION)}, Source("floor", feed=Feed()))
LETTERS = Dimension(
    "dim_letters",
    "id",
    {"a": Attribute(2), "b": Attribute(2), "n": Attribute(6, "int"), "m": Attribute(1), "p": Attribute(3)},
    Source("s", feed=Feed()),
)


@requirement("F16", "F56", "F58")
def test_a_play_shows_the_tier_of_its_day_and_the_corrected_email_address(own_tables: OwnTables) -> None:
    warehouse = own_tables.warehouse
    load(warehouse, DIMENSION, own_tables.deliveries(DIMENSION, walk(*WALK)))
    days = ["2024-03-05", "2024-10-01", "2024-12-01"]
    plays = pa.table({"event_id": ["1", "2", "3"], "player_id": ["P1"] * 3, "event_ts": days})
    load(warehouse, PLAY, [Delivery("floor", "2024-12-31", "feed", frame=plays)])
    joined = records(queries.with_dimensions(warehouse, PLAY))
    assert_same_rows(
        """
        | event_id | player_tier | player_email |
        | 1        | Bronze      | b            |
        | 2        | NULL        | NULL         |
        | 3        | Silver      | b            |
        """,
        joined,
    )
    assert [row["player_key"] == -1 for row in sorted(joined, key=lambda row: row["event_id"])] == [False, True, False]


@requirement("F23", "F26", "F65")
def test_no_version_of_the_table_has_two_current_versions_or_none(own_tables: OwnTables) -> None:
    """A reader sees one of the table's versions: since its first load, P1 has one current version in each.

    In each of them, a version is current exactly if its end is the open end, and no end is NULL.
    """
    for lines in (WALK[:1], WALK[1:3], WALK[3:]):
        own_tables.load(DIMENSION, walk(*lines))
    table = own_tables.warehouse.table("dim_player")
    versions = [table.read(version).where("version > 0") for version in range(table.last_commit().newest + 1)]
    rows = [records(version) for version in versions]
    tiers = [[row["tier"] for row in each if row["current_flag"]] for each in rows]
    assert tiers == [[], ["Bronze"], ["Silver"], ["Silver"]]
    open_end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    assert all(row["current_flag"] is (row["effective_to"] == open_end) for each in rows for row in each)


@requirement("F13")
def test_a_corrected_region_leaves_the_surrogate_key_unchanged(own_tables: OwnTables) -> None:
    dimension, warehouse = by_files(COUNTRY.dimension), own_tables.warehouse
    deliveries = snapshots(
        """
        | delivery | at         | country_code | country_name | region |
        | 1        | 2024-01-01 | DE           | Germany      | Europe |
        | 2        | 2024-02-01 | DE           | Germany      | EU     |
        """,
        "iso",
    )
    load(warehouse, dimension, own_tables.deliveries(dimension, deliveries))
    (row,) = records(queries.current(warehouse, dimension))
    key = row[dimension.surrogate_key]
    first, second = sorted(records(queries.audit(warehouse, dimension)), key=lambda change: change["change_ts"])
    names = (f"{dimension.surrogate_key}_old", f"{dimension.surrogate_key}_new")
    assert [first[name] for name in ("change_type", *names)] == ["INSERT", None, key]
    assert [second[name] for name in ("change_type", *names)] == ["OVERWRITE", key, key]
    assert (dict(second["old_values"]), dict(second["new_values"])) == ({"region": "Europe"}, {"region": "EU"})


@requirement("F8")
def test_an_award_has_the_status_of_its_recipient_on_its_day(own_tables: OwnTables) -> None:
    """The recipient was active on 2024-02-29 and debarred from 2024-03-01 on."""
    dimension, warehouse = by_files(RECIPIENT.dimension), own_tables.warehouse
    changes = feed(
        """
        | delivery | recipient_id | time       | legal_name | status   | risk_tier |
        | 1        | R1           | 2023-10-02 | Harbor     | active   | low       |
        | 2        | R1           | 2024-03-01 | Harbor     | debarred | low       |
        """,
        "registry",
    )
    load(warehouse, dimension, own_tables.deliveries(dimension, changes))
    for month, day, status in ((2, 29, "active"), (3, 1, "debarred")):
        (row,) = records(queries.as_of(warehouse, dimension, datetime(2024, month, day, tzinfo=timezone.utc)))
        assert row["status"] == status
    rows = [("A1", "R1", "2024-02-29 23:59:59"), ("A2", "R1", "2024-03-01 00:00:00")]
    awards = warehouse.spark.createDataFrame(rows, "award_id string, recipient_id string, at string")
    awards = awards.withColumn("at", awards["at"].cast("timestamp"))
    assert_same_rows(
        """
        | award_id | grant_recipient_status |
        | A1       | active                 |
        | A2       | debarred               |
        """,
        records(queries.join_as_of(warehouse, awards, dimension, time="at")),
    )


@requirement("F35")
def test_the_first_manager_is_in_the_audit_only(own_tables: OwnTables) -> None:
    dimension = by_files(ACCOUNT.dimension)
    header = "| delivery | account_id | time | account_manager |"
    lines = [f"| {day} | A1 | 2024-01-0{day} | m{day} |" for day in (1, 2, 3)]
    load(own_tables.warehouse, dimension, own_tables.deliveries(dimension, feed("\n".join([header, *lines]), "hosts")))
    (row,) = records(queries.history(own_tables.warehouse, dimension))
    assert (row["account_manager"], row["previous_account_manager"]) == ("m3", "m2")
    audit = records(queries.audit(own_tables.warehouse, dimension))
    managers = [dict(change["new_values"])["account_manager"] for change in sorted(audit, key=lambda r: r["change_ts"])]
    assert managers == ["m1", "m2", "m3"]


@requirement("F41")
def test_a_name_and_a_threshold_change_in_one_commit_that_rewrites_no_other_program(own_tables: OwnTables) -> None:
    dimension, warehouse = by_files(PROGRAM.dimension), own_tables.warehouse
    header = "| delivery | program_id | time | eligibility_threshold | funding_cap_usd | current_program_name |"
    first = f"{header}\n| 1 | PR1 | 2024-01-01 | 100 | 5000 | n1 |\n| 1 | PR2 | 2024-01-01 | 100 | 5000 | n1 |"
    load(warehouse, dimension, own_tables.deliveries(dimension, feed(first, "registry")))
    table = warehouse.table(dimension.name)
    before, files = table.last_commit(), set(table.read().inputFiles())
    second = f"{header}\n| 2 | PR1 | 2024-02-01 | 150 | 5000 | n2 |"
    result = load(warehouse, dimension, own_tables.deliveries(dimension, feed(second, "registry")))
    assert table.last_commit().newest == before.newest + 1
    assert result.row_counts == {"open": 1, "close": 1}
    assert files <= set(table.read().inputFiles())
    assert_same_rows(
        """
        | program_id | eligibility_threshold | current_program_name |
        | PR1        | 100                   | n2                   |
        | PR1        | 150                   | n2                   |
        | PR2        | 100                   | n1                   |
        """,
        records(queries.history(warehouse, dimension)),
    )


def hashes(spark: SparkSession, *rows: tuple[Any, ...]) -> list[str]:
    """The hashes of versions with these values of a, b and n, and of m and p, which open no version."""
    frame = spark.createDataFrame(list(rows), "a string, b string, n int, m string, p string")
    return [row["h"] for row in frame.select(row_hash(LETTERS).alias("h")).collect()]


@requirement("F22")
def test_different_values_have_different_hashes(spark: SparkSession) -> None:
    values = [("a|b", "c", 0), ("a", "b|c", 0), (None, "c", 0), ("", "c", 0), ("a", "b|c", None), (None, None, None)]
    texts = hashes(spark, *((*each, "m", "p") for each in values))
    assert len(set(texts)) == 6
    assert all(len(text) == 64 for text in texts)


@requirement("F22")
def test_an_attribute_that_opens_no_version_changes_no_hash(spark: SparkSession) -> None:
    """And a version without any value has the same hash each time, which is not NULL."""
    before, after, empty, still_empty = hashes(
        spark, ("a", "b", 0, "m", "p"), ("a", "b", 0, None, "q"), (None,) * 5, (None, None, None, "m", None)
    )
    assert before == after != empty == still_empty
    assert len(empty) == 64
