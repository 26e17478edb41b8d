"""The demo on real data, compared with counts and rows that plain Python computes from the same files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow.parquet
import pytest

from examples.congress import demo
from scd_pipeline import queries
from scd_pipeline.declaration import Declarations, Dimension
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import EXAMPLE
from scd_pipeline.operations.check import check_names, check_table
from scd_pipeline_tests.functional.conftest import SEATS
from scd_pipeline_tests.orchestration.code_locations import definitions

Snapshots = dict[str, list[dict[str, Any]]]
Congress = tuple[Warehouse, list[str]]

# On these two days some rows had no key, so no entity was retired. The next snapshot retires the former members.
WITHOUT_KEYS = {"2013-01-02": 0, "2021-01-01": 0}
NEXT_SNAPSHOTS = {"2013-04-06": 91, "2021-04-06": 71}
PHYSICAL = {"chamber": "type"}

pytestmark = pytest.mark.slow(6, together="congress")


@pytest.fixture(scope="module")
def batches(congress: Congress) -> dict[str, Any]:
    """Delivery to its batch."""
    warehouse, _ = congress
    return {row["delivery"]: row for row in queries.batches(warehouse, "dim_legislator").collect()}


@pytest.fixture(scope="module")
def versions(congress: Congress, legislator: Dimension) -> list[Any]:
    """Every version of every member."""
    return queries.history(congress[0], legislator).collect()


def test_every_snapshot_is_accepted(batches: dict[str, Any], snapshots: Snapshots) -> None:
    assert batches.keys() == snapshots.keys()
    assert {batch["state"] for batch in batches.values()} == {"current"}
    assert {date: batch["rows"] for date, batch in batches.items()} == {d: len(rows) for d, rows in snapshots.items()}


def test_inserts_and_deletes_equal_independent_counts(
    batches: dict[str, Any], expected: dict[str, dict[str, str]]
) -> None:
    special = {**WITHOUT_KEYS, **NEXT_SNAPSHOTS}
    plain = sorted(expected.keys() - special.keys())
    assert len(plain) == 51
    expected_counts = {date: (int(expected[date]["inserts"]), int(expected[date]["deletes"])) for date in plain}
    assert {date: (batches[date]["new"], batches[date]["deleted"]) for date in plain} == expected_counts
    assert {date: batches[date]["deleted"] for date in special} == special


def test_updates_equal_counts_of_plain_python(
    batches: dict[str, Any], snapshots: Snapshots, legislator: Dimension
) -> None:
    assert {date: batch["changed"] for date, batch in batches.items()} == _changes(snapshots, legislator)


def _changes(snapshots: Snapshots, dimension: Dimension) -> dict[str, int]:
    """Return, by date, the number of existing members with a different declared value."""
    existing: dict[str, tuple[Any, ...]] = {}
    counts = {}
    for date, rows in snapshots.items():
        now = {row["bioguide"]: _values(row, dimension) for row in rows if row["bioguide"]}
        counts[date] = sum(key in existing and existing[key] != values for key, values in now.items())
        existing = {**existing, **now} if date in WITHOUT_KEYS else now
    return counts


def _values(row: dict[str, Any], dimension: Dimension) -> tuple[Any, ...]:
    return tuple(row[PHYSICAL.get(name, name)] for name in dimension.attribute_names)


def test_each_seat_has_the_key_of_the_version_in_force_that_day(congress: Congress, versions: list[Any]) -> None:
    """An as-of join in plain Python gives the same keys. Members not in office that day are unknown (S23)."""
    warehouse, _ = congress
    versions_by_member: dict[str, list[Any]] = {}
    for version in versions:
        versions_by_member.setdefault(version["bioguide"], []).append(version)
    names = ("bioguide", "seat_on", "legislator_key")
    rows = warehouse.table("fct_committee_seat").read().select(*names).toArrow().to_pylist()
    assert len(rows) == sum(_seats(day) for day in SEATS)
    for row in rows:
        day = row["seat_on"].replace(tzinfo=None)
        keys = [
            v["legislator_key"]
            for v in versions_by_member.get(row["bioguide"], [])
            if v["effective_from"] <= day < (v["effective_to"] or datetime.max)
        ]
        assert keys in ([], [row["legislator_key"]]), row
        assert keys or row["legislator_key"] == -1, row


def _seats(day: str) -> int:
    """Return the number of seats in a list; a member listed twice for one committee has one."""
    rows = pyarrow.parquet.read_table(EXAMPLE / "seats" / f"fact_{day}.parquet").to_pylist()
    return len({(row["committee"], row["bioguide"]) for row in rows})


def test_all_checks_pass(congress: Congress, declared: Declarations) -> None:
    warehouse, _ = congress
    results = [*check_table(warehouse, declared.dimensions[0]), *check_table(warehouse, declared.facts[0])]
    names = [*check_names(declared.dimensions[0]), *check_names(declared.facts[0])]
    assert sorted(result.check for result in results) == sorted(names)
    assert [str(result) for result in results if not result.passed] == []


def test_rows_without_a_key_are_in_the_quarantine(congress: Congress) -> None:
    rows = queries.quarantine(congress[0], "dim_legislator").collect()
    days = [row["at"].date().isoformat() for row in rows]
    assert {day: days.count(day) for day in days} == {"2013-01-02": 78, "2021-01-01": 60}
    assert {(row["state"], row["key"]) for row in rows} == {("current", "bioguide=NULL")}
    assert all('"bioguide":null' in row["row"] for row in rows)


@pytest.mark.parametrize("name", ["party", "chamber", "state", "district", "class", "caucus", "state_rank"])
def test_as_of_any_day_each_member_has_the_values_of_that_day(
    versions: list[Any], snapshots: Snapshots, name: str
) -> None:
    for date, rows in snapshots.items():
        day = datetime.fromisoformat(date)
        in_force = {
            v["bioguide"]: v[name] for v in versions if v["effective_from"] <= day < (v["effective_to"] or datetime.max)
        }
        snapshot = {row["bioguide"]: row[PHYSICAL.get(name, name)] for row in rows if row["bioguide"]}
        assert {key: in_force[key] for key in snapshot} == snapshot, date
        assert date in WITHOUT_KEYS or in_force.keys() == snapshot.keys(), date


def test_only_the_latest_value_of_a_type_1_attribute_is_stored(versions: list[Any], snapshots: Snapshots) -> None:
    latest = {row["bioguide"]: row["phone"] for rows in snapshots.values() for row in rows if row["bioguide"]}
    assert {v["bioguide"]: v["phone"] for v in versions} == latest
    assert len({(v["bioguide"], v["phone"]) for v in versions}) == len(latest)


def test_current_rows_are_those_of_the_last_snapshot(congress: Congress, snapshots: Snapshots) -> None:
    current = {row["bioguide"] for row in queries.current(congress[0], "dim_legislator").collect()}
    assert current == {row["bioguide"] for row in snapshots["2026-04-14"]}


def test_the_demo_prints_counts_a_history_and_the_quarantine(congress: Congress) -> None:
    _, output = congress
    text = "\n".join(output)
    assert "55 snapshots from 2012-09-27 to 2026-04-14" in text
    assert "deliveries: 55 accepted" in text
    assert "versions of 1133 members, 537 current" in text
    assert "Kyrsten Sinema (bioguide S001191)" in text
    history = text.partition("The history of one member")[2].partition("Committee seats of the same member")[0]
    rows = [line.split() for line in history.splitlines() if "00:00:00" in line]
    assert [("Democrat" in words, "sen" in words) for words in rows] == [(True, False), (True, True), (True, True)]
    assert "Independent" in rows[2]
    assert "  2013-01-02  the business key is NULL or cannot be read    78" in text


def test_a_second_run_of_the_demo_changes_nothing(congress: Congress, declared: Declarations) -> None:
    warehouse, _ = congress
    names = ("dim_legislator", "dim_legislator_changes")
    before = [warehouse.table(name).last_commit().table_version for name in names]
    output: list[str] = []
    location = definitions(warehouse.spark, warehouse.path, declared)
    demo.run_job(location, demo.jobs(declared)[0], warehouse.path, output.append)
    assert any("deliveries: 55 unchanged; rows: none changed" in line for line in output)
    assert [_version(warehouse, name) for name in names] == before


def _version(warehouse: Warehouse, name: str) -> int:
    table = warehouse.table(name)
    return int(warehouse.spark.sql(f"DESCRIBE HISTORY {table.identifier} LIMIT 1").collect()[0]["version"])
