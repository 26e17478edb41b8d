"""F8 to F58: facts and awards as of their time, table versions that readers may see, audits, and hashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
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
    WALK_HEADER,
    walk,
)
from scd_pipeline_tests.semantics.specification import Declaration, by_files, feed, requirement, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

DIMENSION = by_files(PLAYER.dimension)
PLAY = Fact("fct_slot_play", {"event_id": "int"}, "event_ts", {"player": Role(DIMENSION)}, Source("floor", feed=Feed()))
LETTERS = Dimension(
    "dim_letters",
    "id",
    {"a": Attribute(2), "b": Attribute(2), "n": Attribute(6, "int"), "m": Attribute(1), "p": Attribute(3)},
    Source("s", feed=Feed()),
)


def plays(*days: str, start: int = 1) -> pa.Table:
    """Plays of P1, with numbers from `start` on."""
    return pa.table(
        {
            "event_id": [str(number) for number in range(start, start + len(days))],
            "player_id": ["P1"] * len(days),
            "event_ts": list(days),
        }
    )


@dataclass(frozen=True)
class Played:
    """A warehouse with the walk and a play, and the fact's rows and version from before the rest of the walk."""

    warehouse: Warehouse
    plays: list[dict[str, Any]]
    version: int


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The first change of the walk, then a play, and then the rest of the walk."""
    tables = OwnTables(Warehouse(spark, tmp_path_factory.mktemp("played")), tmp_path_factory.mktemp("deliveries"))
    tables.load(DIMENSION, walk(*WALK[:1]))
    load(tables.warehouse, PLAY, [Delivery("floor", "2024-03-06", "feed", frame=plays("2024-03-05"))])
    fact = tables.warehouse.table(PLAY.name)
    before = Played(tables.warehouse, records(fact.read()), fact.newest_version())
    tables.load(DIMENSION, walk(*WALK[1:]))
    return before


@pytest.mark.slow(8, together="f_history")
@requirement("F16", "F56", "F57")
def test_a_play_shows_the_tier_of_its_day_and_the_corrected_email_address(played: Played) -> None:
    """The first play is loaded before the correction, and is not loaded or written again."""
    warehouse = played.warehouse
    (first,) = records(queries.with_dimensions(warehouse, PLAY))
    assert (first["player_tier"], first["player_email"]) == ("Bronze", "b")
    assert records(warehouse.table(PLAY.name).read()) == played.plays
    assert warehouse.table(PLAY.name).newest_version() == played.version
    load(warehouse, PLAY, [Delivery("floor", "2024-12-31", "feed", frame=plays("2024-10-01", "2024-12-01", start=2))])
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


@pytest.mark.slow(8, together="f_history")
@requirement("F17", "F23", "F26")
def test_no_version_of_the_table_has_two_current_versions_or_none(played: Played) -> None:
    """A reader sees one of the table's versions: since its first load, P1 has one current version in each.

    In each of them, a version is current exactly if its end is the open end, and no end is NULL. The version that a
    change closes retains its key, its reason and its delivery.
    """
    table = played.warehouse.table("dim_player")
    versions = [table.read(version).where("version > 0") for version in range(table.last_commit().newest + 1)]
    rows = [records(version) for version in versions]
    tiers = [[row["tier"] for row in each if row["current_flag"]] for each in rows]
    assert [tier for tier, _ in groupby(tiers)] == [[], ["Bronze"], ["Silver"]]
    open_end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    assert all(row["current_flag"] is (row["effective_to"] == open_end) for each in rows for row in each)
    origins = [
        tuple(row[name] for name in ("player_key", "change_reason", "change_source", "load_run_id"))
        for each in rows
        for row in each
        if row["tier"] == "Bronze"
    ]
    assert len(origins) >= 2
    assert len(set(origins)) == 1


def assert_same_in_any_order(tables: OwnTables, dimension: Dimension, header: str, lines: Sequence[str]) -> None:
    """Check that two loads, of the later half and then of the rest, each delivered twice, have the rows of one load."""
    in_order = replace(dimension, name=f"{dimension.name}_in_order")
    source, half = dimension.sources[0].name, len(lines) // 2
    tables.load(in_order, feed("\n".join([header, *lines]), source))
    for part in (lines[half:], lines[:half]):
        duplicates = [line.replace("| ", "| 1", 1) for line in part]
        tables.load(dimension, feed("\n".join([header, *reversed(part), *duplicates]), source))
    rows, expected = (
        sorted(tables.rows(each), key=lambda row: str(row.get("version"))) for each in (dimension, in_order)
    )
    assert rows == expected


@pytest.mark.slow(10)
@requirement("F17", "F19", "F20")
def test_a_walk_in_another_order_and_twice_has_the_same_versions_and_keys(own_tables: OwnTables) -> None:
    assert_same_in_any_order(own_tables, DIMENSION, WALK_HEADER, WALK)


@pytest.mark.slow
@requirement("F34", "F40")
@pytest.mark.parametrize(
    ("declaration", "columns", "values"),
    [
        (ACCOUNT, "account_id | time | account_manager", "m{n}"),
        (
            PROGRAM,
            "program_id | time | eligibility_threshold | funding_cap_usd | current_program_name",
            "{n}00 | {n}000 | n{n}",
        ),
    ],
    ids=["type 3", "type 6"],
)
def test_values_in_another_order_and_twice_have_the_same_rows_and_keys(
    own_tables: OwnTables, declaration: Declaration, columns: str, values: str
) -> None:
    lines = [f"| {n} | 1 | 2024-0{n}-01 | {values.format(n=n)} |" for n in range(1, 5)]
    assert_same_in_any_order(own_tables, by_files(declaration.dimension), f"| delivery | {columns} |", lines)


@pytest.mark.slow
@requirement("F13")
def test_a_corrected_region_leaves_the_surrogate_key_unchanged(own_tables: OwnTables) -> None:
    dimension, warehouse = by_files(COUNTRY.dimension), own_tables.warehouse
    header = "| delivery | at | country_code | country_name | region |"
    keys = []
    for line in ("| 1 | 2024-01-01 | DE | Germany | Europe |", "| 2 | 2024-02-01 | DE | Germany | EU |"):
        load(warehouse, dimension, own_tables.deliveries(dimension, snapshots(f"{header}\n{line}", "iso")))
        keys += [row[dimension.surrogate_key] for row in records(queries.current(warehouse, dimension))]
    key = keys[0]
    assert keys == [key, key]
    first, second = sorted(records(queries.audit(warehouse, dimension)), key=lambda change: change["change_ts"])
    names = (f"{dimension.surrogate_key}_old", f"{dimension.surrogate_key}_new")
    assert [first[name] for name in ("change_type", *names)] == ["INSERT", None, key]
    assert [second[name] for name in ("change_type", *names)] == ["OVERWRITE", key, key]
    assert (dict(second["old_values"]), dict(second["new_values"])) == ({"region": "Europe"}, {"region": "EU"})


@pytest.mark.slow
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
    own_tables.load(dimension, changes)
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


@pytest.mark.slow(6)
@requirement("F41")
def test_a_name_and_a_threshold_change_in_one_commit_that_rewrites_no_other_program(own_tables: OwnTables) -> None:
    dimension, warehouse = by_files(PROGRAM.dimension), own_tables.warehouse
    header = "| delivery | program_id | time | eligibility_threshold | funding_cap_usd | current_program_name |"
    first = f"{header}\n| 1 | PR1 | 2024-01-01 | 100 | 5000 | n1 |\n| 1 | PR2 | 2024-01-01 | 100 | 5000 | n1 |"
    own_tables.load(dimension, feed(first, "registry"))
    table = warehouse.table(dimension.name)

    def files_of_other() -> list[Row]:
        return table.read().where("program_id = 'PR2'").select("_metadata.file_path").collect()

    before, files = table.last_commit(), files_of_other()
    second = f"{header}\n| 2 | PR1 | 2024-02-01 | 150 | 5000 | n2 |"
    result = own_tables.load(dimension, feed(second, "registry"))
    assert table.last_commit().newest == before.newest + 1
    assert result.row_counts == {"open": 1, "close": 1}
    assert files_of_other() == files
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
