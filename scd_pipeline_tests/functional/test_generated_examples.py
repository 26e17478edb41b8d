"""The generated examples: whatever the faults of their deliveries, the answers are the correct ones."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.arrivals import FAULTS, Arrivals, Batch
from examples.casino import demo as casino_demo
from examples.casino.world import Casino
from examples.demonstration import Demonstration, Options
from examples.federal import demo as federal_demo
from examples.federal.world import WEEKS, Grants
from scd_pipeline_tests.semantics.specification import requirement

Files = dict[str, set[tuple[str, ...]]]

CASINO, GRANTS = Casino(players=60), Grants(recipients=60)
WORLDS = {"casino": (CASINO.batches, CASINO.days), "federal": (GRANTS.batches, WEEKS)}
SNAPSHOTS = ("machines", "countries")


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> tuple[Callable[[], Iterator[Batch]], int]:
    """The deliveries of an example, and the number of files of each source."""
    return WORLDS[request.param]


def rows_of(folder: Path) -> Files:
    """Return the rows of each source; of snapshots, those of each file."""
    rows: Files = {}
    for file in folder.rglob("*.csv"):
        source = file.parent.name
        name = f"{source}/{file.stem}" if source in SNAPSHOTS else source
        with file.open(encoding="utf-8") as lines:
            rows.setdefault(name, set()).update(tuple(row) for row in csv.reader(lines))
    return rows


def write(folder: Path, world: tuple[Callable[[], Iterator[Batch]], int], *faults: str) -> Arrivals:
    batches, files = world
    arrivals = Arrivals.create(folder, faults, files, seed=1)
    arrivals.write(batches())
    return arrivals


def test_without_faults_everything_arrives_at_first(
    world: tuple[Callable[[], Iterator[Batch]], int], tmp_path: Path
) -> None:
    arrivals = write(tmp_path, world)
    assert arrivals.receive_second_part() == 0
    assert rows_of(arrivals.landing)


@pytest.mark.parametrize("faults", [*[(fault,) for fault in FAULTS], tuple(FAULTS)], ids="-".join)
def test_both_parts_have_the_rows_of_deliveries_without_faults(
    world: tuple[Callable[[], Iterator[Batch]], int], faults: tuple[str, ...], tmp_path: Path
) -> None:
    expected = rows_of(write(tmp_path / "plain", world).landing)
    arrivals = write(tmp_path / "faulty", world, *faults)
    if faults != ("duplicates",):
        assert rows_of(arrivals.landing) != expected
    arrivals.receive_second_part()
    assert rows_of(arrivals.landing) == expected


def test_duplicates_are_in_two_files(tmp_path: Path) -> None:
    arrivals = write(tmp_path, WORLDS["casino"], "duplicates")
    lines = [line for file in arrivals.landing.glob("loyalty/*.csv") for line in file.read_text().splitlines()[1:]]
    assert len(lines) > len(set(lines))


def test_an_unknown_fault_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown faults: lost; expected: late, duplicates, "):
        Arrivals.create(tmp_path, ["lost"], 1, seed=1)


def test_the_threshold_in_force_decides_what_is_reported() -> None:
    """12,000 from 2027-01-01, 10,000 before."""
    before, after = (CASINO.reportable_cash(day) for day in (date(2026, 12, 31), date(2027, 1, 1)))
    assert {threshold for _, _, _, threshold in before} == {10_000}
    assert {threshold for _, _, _, threshold in after} == {12_000}
    assert {amount for _, _, amount, _ in before} == {10_000, 11_000, 12_000}
    assert {amount for _, _, amount, _ in after} == {12_000}
    assert (CASINO.threshold_at(datetime(2026, 12, 31, 23, 59, 59)), CASINO.threshold_at(datetime(2027, 1, 1))) == (
        10_000,
        12_000,
    )


def test_an_award_on_the_day_of_a_debarment_is_one_to_a_debarred_recipient() -> None:
    awards = {award for award, recipient, _, _ in GRANTS.awards_to_debarred() if recipient == "R0000001"}
    assert "G21-2024-03-01" in awards
    assert "G21-2024-02-29" not in awards


@requirement("F62")
@pytest.mark.slow
@pytest.mark.parametrize("demo", [casino_demo, federal_demo], ids=["casino", "federal"])
def test_the_answers_of_the_demo_are_correct(demo: object, remote: str, tmp_path: Path) -> None:
    lines: list[str] = []
    options = Options(rows=2_000, seed=1, faults=frozenset(FAULTS), folder=tmp_path, remote=remote)
    assert demo.run(options, lines.append) == 0, "\n".join(lines)  # type: ignore[attr-defined]
    assert sum("equal to the correct answer" in line for line in lines) >= 2


@pytest.mark.slow
def test_a_different_answer_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    lines: list[str] = []
    demo = Demonstration(Options(1, 1, frozenset(), tmp_path), lines.append)
    demo.answer("How many?", spark.sql("SELECT 'a' AS name, 1 AS count"), [("a", 2)])
    assert demo.different == ["How many?"]
    assert lines[-1] == "  DIFFERENT from the correct answer, which has 1 rows"
