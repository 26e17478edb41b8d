"""The generated examples: whatever the faults of their deliveries, the answers are the correct ones."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.arrivals import FAULTS, Arrivals, Batch
from examples.casino import demo as casino_demo
from examples.casino.generator import THRESHOLDS, Casino
from examples.demonstration import Demonstration, Options, Question
from examples.federal import demo as federal_demo
from examples.federal.generator import WEEKS, Grants
from scd_pipeline import Pipeline, read_declarations
from scd_pipeline_tests.semantics.specification import requirement

Files = dict[str, set[tuple[str, ...]]]
Rows = dict[str, list[tuple[str, ...]]]

CASINO, GRANTS = Casino(players=60), Grants(recipients=60)
EXAMPLES = {"casino": (CASINO.batches, CASINO.days), "federal": (GRANTS.batches, WEEKS)}
SNAPSHOTS = ("machines", "countries")


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> tuple[Callable[[], Iterator[Batch]], int]:
    """The deliveries of an example, and the number of files of each source."""
    return EXAMPLES[request.param]


def rows_of(folder: Path) -> Files:
    """Return the rows of each source; of snapshots, those of each file."""
    rows: Files = {}
    for file in folder.rglob("*.csv"):
        source = file.parent.name
        name = f"{source}/{file.stem}" if source in SNAPSHOTS else source
        with file.open(encoding="utf-8") as lines:
            rows.setdefault(name, set()).update(tuple(row) for row in csv.reader(lines))
    return rows


def write(folder: Path, example: tuple[Callable[[], Iterator[Batch]], int], *faults: str) -> Arrivals:
    batches, files = example
    arrivals = Arrivals.create(folder, faults, files, seed=1)
    arrivals.write(batches())
    return arrivals


def test_without_faults_everything_arrives_at_first(
    example: tuple[Callable[[], Iterator[Batch]], int], tmp_path: Path
) -> None:
    arrivals = write(tmp_path, example)
    assert arrivals.receive_second_part() == 0
    assert rows_of(arrivals.landing)


@pytest.mark.parametrize("faults", [*[(fault,) for fault in FAULTS], tuple(FAULTS)], ids="-".join)
def test_both_parts_have_the_rows_of_deliveries_without_faults(
    example: tuple[Callable[[], Iterator[Batch]], int], faults: tuple[str, ...], tmp_path: Path
) -> None:
    expected = rows_of(write(tmp_path / "plain", example).landing)
    arrivals = write(tmp_path / "faulty", example, *faults)
    if faults != ("duplicates",):
        assert rows_of(arrivals.landing) != expected
    arrivals.receive_second_part()
    assert rows_of(arrivals.landing) == expected


def test_duplicates_are_in_two_files(tmp_path: Path) -> None:
    arrivals = write(tmp_path, EXAMPLES["casino"], "duplicates")
    lines = [line for file in arrivals.landing.glob("loyalty/*.csv") for line in file.read_text().splitlines()[1:]]
    assert len(lines) > len(set(lines))


@dataclass(frozen=True)
class Delivered:
    """The rows of each file: without faults, and those of both parts with a fault."""

    plain: Rows
    first: Rows
    second: Rows
    files: int

    @property
    def editable(self) -> dict[str, int]:
        """The position of the column that a revision corrects, by source."""
        example_batches = next(each for each, files in EXAMPLES.values() if files == self.files)
        batches = {batch.folder: batch for batch in example_batches()}
        return {name: list(batch.header).index(batch.editable) for name, batch in batches.items() if batch.editable}


def read_files(folder: Path) -> Rows:
    """Return the rows of each file, with its header, by its path relative to the folder."""
    rows: Rows = {}
    for file in sorted(folder.rglob("*.csv")):
        with file.open(encoding="utf-8") as lines:
            rows[str(file.relative_to(folder))] = [tuple(row) for row in csv.reader(lines)]
    return rows


def numbers_by_file(rows: Rows) -> dict[str, int]:
    """Return the number of each file in its source."""
    sources: dict[str, list[str]] = {}
    for file in sorted(rows):
        sources.setdefault(file.partition("/")[0], []).append(file)
    return {file: number for files in sources.values() for number, file in enumerate(files)}


def assert_late(delivered: Delivered) -> None:
    """Rows are missing in the first part; a last file of their source has them, after all others."""
    added = delivered.second.keys()
    assert added and not added & delivered.plain.keys()
    assert delivered.first.keys() == delivered.plain.keys()
    for file in added:
        source = file.partition("/")[0]
        missing = {
            row
            for name, rows in delivered.plain.items()
            if name.startswith(f"{source}/")
            for row in rows
            if row not in delivered.first[name]
        }
        assert missing == set(delivered.second[file][1:])
        assert file == max(name for name in [*delivered.plain, file] if name.startswith(f"{source}/"))


def assert_doubled(delivered: Delivered) -> None:
    """Files repeat rows, their own and those of the file before, and have no others."""
    assert not delivered.second.keys() & delivered.plain.keys()
    within = [rows for rows in delivered.first.values() if len(rows) > len(set(rows))]
    before = [name for name, rows in delivered.first.items() if not set(rows) <= set(delivered.plain[name])]
    assert within and before
    assert all(set(delivered.plain[name]) <= set(rows) for name, rows in delivered.first.items())


def assert_missing(delivered: Delivered) -> None:
    """Files are missing in the first part, which has later ones; the second part has exactly these."""
    missing = delivered.plain.keys() - delivered.first.keys()
    assert missing and delivered.second == {file: delivered.plain[file] for file in missing}
    assert all(rows == delivered.plain[file] for file, rows in delivered.first.items())
    assert any(file < other for file in missing for other in delivered.first if file[:5] == other[:5])


def assert_reordered(delivered: Delivered) -> None:
    """Rows have another order, and the second part has a quarter of the files: those after the first quarter."""
    numbers = numbers_by_file(delivered.plain)
    quarter = range(delivered.files // 4, delivered.files // 2)
    assert delivered.second.keys() == {file for file, number in numbers.items() if number in quarter}
    both = {**delivered.first, **delivered.second}
    assert {file: sorted(rows) for file, rows in both.items()} == {
        file: sorted(rows) for file, rows in delivered.plain.items()
    }
    assert any(rows != delivered.plain[file] for file, rows in both.items())


def assert_revised(delivered: Delivered) -> None:
    """Files of the first part have other values in one column; the second part replaces them."""
    assert delivered.second and delivered.first.keys() == delivered.plain.keys()
    assert all(rows == delivered.plain[file] for file, rows in delivered.second.items())
    assert delivered.second.keys() >= {file for file, rows in delivered.first.items() if rows != delivered.plain[file]}
    changed = 0
    for file, rows in delivered.second.items():
        column = delivered.editable[file.partition("/")[0]]
        for before, after in zip(delivered.first[file], rows, strict=True):
            assert [*before[:column], *before[column + 1 :]] == [*after[:column], *after[column + 1 :]]
            changed += before != after
    assert changed


SWITCHES: dict[str, Callable[[Delivered], None]] = {
    "late": assert_late,
    "duplicates": assert_doubled,
    "missing": assert_missing,
    "reordered": assert_reordered,
    "revised": assert_revised,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_switch_changes_the_deliveries_as_described_and_no_answer(
    example: tuple[Callable[[], Iterator[Batch]], int], fault: str, tmp_path: Path
) -> None:
    """The answers are computed from the files of both parts, without the generator and without Spark."""
    plain = read_files(write(tmp_path / "plain", example).landing)
    arrivals = write(tmp_path / "faulty", example, fault)
    delivered = Delivered(plain, read_files(arrivals.landing), read_files(arrivals.second), example[1])
    SWITCHES[fault](delivered)
    arrivals.receive_second_part()
    delivery = rows_of(arrivals.landing)
    if example == EXAMPLES["casino"]:
        for day in (date(2026, 12, 31), date(2027, 1, 1)):
            assert reported_cash(delivery, day) == {answer[:2] for answer in CASINO.reportable_cash(day)}
    else:
        assert debarred_awards(delivery) == {answer[:2] for answer in GRANTS.awards_to_debarred()}


def reported_cash(delivery: Files, day: date) -> set[tuple[str, str]]:
    """Return event and type of the cash of a day that reaches the threshold of its type, from delivered rows."""
    thresholds = sorted(
        (at, kind, int(amount)) for kind, at, _, amount, _ in delivery["thresholds"] if amount.isdigit()
    )
    reported = set()
    for event, at, _, kind, _, amount in (row for row in delivery["cash"] if row[0] != "event_id"):
        in_force = [least for start, of_type, least in thresholds if of_type == kind and start <= at]
        if at.startswith(str(day)) and int(amount) >= in_force[-1]:
            reported.add((event, kind))
    return reported


def debarred_awards(delivery: Files) -> set[tuple[str, str]]:
    """Return the awards, with their recipients, on a day on which the recipient was debarred, from delivered rows."""
    changes = sorted((row[1], row[0], row[5]) for row in delivery["recipients"] if row[0] != "recipient_id")
    awards = set()
    for award, day, _, recipient, _ in (row for row in delivery["awards"] if row[0] != "award_id"):
        statuses = [status for at, entity, status in changes if entity == recipient and at <= day]
        if statuses[-1] == "debarred":
            awards.add((award, recipient))
    return awards


@pytest.mark.slow
def test_an_example_of_a_million_rows_is_written_file_by_file(tmp_path: Path) -> None:
    """Events are generated when their file is written, for any day by itself, so that sizes up to 10 M rows fit."""
    casino = Casino.of_size(1_000_000)
    batches = list(islice(casino.batches(), 9))
    arrivals = Arrivals.create(tmp_path, FAULTS, casino.days, seed=1)
    arrivals.write(batches[:-1])
    sizes = {file.parent.name: len(file.read_text(encoding="utf-8").splitlines()) for file in tmp_path.rglob("*.csv")}
    assert {"loyalty", "plays"} < sizes.keys()
    assert sizes["plays"] > 1_000_000 * 0.8 / casino.days
    assert all(not isinstance(batch.rows, list) for batch in batches if batch.folder in ("plays", "cash"))
    for size in (1_000, 10_000_000):
        last = next(Casino.of_size(size).plays(44)), next(Grants.of_size(size).awards(WEEKS - 1))
        assert last == (next(Casino.of_size(size).plays(44)), next(Grants.of_size(size).awards(WEEKS - 1)))


def test_an_unknown_fault_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown faults: lost; expected: late, duplicates, "):
        Arrivals.create(tmp_path, ["lost"], 1, seed=1)


def test_the_threshold_in_force_decides_what_is_reported() -> None:
    """12,000 from 2027-01-01, 10,000 before."""
    before, after = (CASINO.reportable_cash(day) for day in (date(2026, 12, 31), date(2027, 1, 1)))
    reported = [{(row[3], row[4]) for row in rows if row[1] == "CTR"} for rows in (before, after)]
    assert reported == [{(10_000, 10_000), (11_000, 10_000), (12_000, 10_000)}, {(12_000, 12_000)}]
    assert (CASINO.threshold_at(datetime(2026, 12, 31, 23, 59, 59)), CASINO.threshold_at(datetime(2027, 1, 1))) == (
        10_000,
        12_000,
    )


def test_thresholds_of_other_types_never_mix_in() -> None:
    """CTR, SAR and W-2G have cash on both sides of their own threshold, and of those of the other types."""
    assert set(THRESHOLDS) == {"CTR", "SAR", "W-2G"}
    number = CASINO.number(date(2026, 12, 31))
    amounts: dict[str, set[int]] = {}
    for cash in CASINO.cash(number):
        amounts.setdefault(cash.threshold_type, set()).add(cash.amount)
    reported: dict[str, set[int]] = {}
    for _, kind, _, amount, threshold in CASINO.reportable_cash(date(2026, 12, 31)):
        assert threshold == {"CTR": 10_000, "SAR": 5_000, "W-2G": 2_000}[kind]
        reported.setdefault(kind, set()).add(amount)
    assert reported["SAR"] == {5_000, 11_000}
    assert amounts["SAR"] - reported["SAR"] == {4_500}
    assert reported["W-2G"] == {2_000}
    assert amounts["W-2G"] - reported["W-2G"] == {1_100, 1_200, 1_900}
    assert reported["CTR"] == {10_000, 11_000, 12_000}
    assert max(amounts["CTR"] - reported["CTR"]) == 9_500
    assert any(5_000 <= amount < 9_500 for amount in amounts["CTR"])
    before = {kind: CASINO.threshold_at(datetime(2026, 12, 14, 23, 59, 59), kind) for kind in THRESHOLDS}
    assert before == {"CTR": 10_000, "SAR": 5_000, "W-2G": 1_200}


def test_programs_are_delivered_with_each_status() -> None:
    """pre-launch, active and sunset, and awards count with the status of their day."""
    statuses = [change.values[2] for number in range(10) for change in GRANTS.program(number) if change.values]
    assert set(statuses) == {"pre-launch", "active", "sunset"}
    assert {status for status, _, _ in GRANTS.awards_by_status()} == {"pre-launch", "active", "sunset"}
    assert sum(count for _, count, _ in GRANTS.awards_by_status()) == sum(
        len([*GRANTS.awards(w)]) for w in range(WEEKS)
    )


def test_the_tier_of_a_player_at_a_play_differs_from_the_tier_of_today() -> None:
    """For ten players by their names."""
    rows = sorted(CASINO.tiers_at_first_play(10))
    assert [row[0] for row in rows] == [f"P{number:07}" for number in range(10)]
    assert any(then != now for _, _, then, now in rows)


def test_an_award_on_the_day_of_a_debarment_is_one_to_a_debarred_recipient() -> None:
    awards = {award for award, recipient, _, _ in GRANTS.awards_to_debarred() if recipient == "R0000001"}
    assert "G21-2024-03-01" in awards
    assert "G21-2024-02-29" not in awards


@requirement("F62")
@pytest.mark.slow(50)
@pytest.mark.parametrize(
    "run",
    [casino_demo.run, functools.partial(casino_demo.run, first=()), federal_demo.run],
    ids=["casino", "casino with all tables in two parts", "federal"],
)
def test_the_answers_of_the_demo_are_correct(run: Callable[..., int], remote: str, tmp_path: Path) -> None:
    lines: list[str] = []
    options = Options(rows=2_000, seed=1, faults=frozenset(FAULTS), folder=tmp_path, remote=remote)
    assert run(options, lines.append) == 0, "\n".join(lines)
    assert sum("equal to the correct answer" in line for line in lines) >= 2


@pytest.mark.slow(15)
@requirement("F6", "X23")
def test_a_machine_has_the_same_history_in_one_table_and_in_two(remote: str, tmp_path: Path) -> None:
    """`history_table: false` instead of true changes the layout alone."""
    options = Options(rows=1, seed=1, faults=frozenset(), folder=tmp_path, remote=remote)
    batches = (batch for batch in CASINO.batches() if batch.folder == "machines")
    demonstration = Demonstration(options, lambda _: None)
    demonstration.prepare(casino_demo.DECLARATIONS, batches, CASINO.days)
    file = demonstration.declarations / "dim_machine.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count("history_table: true") == 1
    histories = {}
    for layout in ("true", "false"):
        file.write_text(text.replace("history_table: true", f"history_table: {layout}"), encoding="utf-8")
        (machine,) = (
            table for table in read_declarations(demonstration.declarations).dimensions if "machine" in table.name
        )
        with Pipeline(tmp_path / layout, remote=remote) as pipeline:
            pipeline.load(machine)
            columns = ("machine_key", "machine_id", "version", "location", "effective_from", "effective_to")
            histories[layout] = pipeline.history(machine).select(*columns).orderBy("machine_id", "version").collect()
        assert (tmp_path / layout / "dim_machine_history").exists() == (layout == "true")
    assert histories["true"] == histories["false"]
    assert max(row.version for row in histories["true"]) > 1


@pytest.mark.slow(15)
def test_a_different_answer_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    lines: list[str] = []
    demo = Demonstration(Options(1, 1, frozenset(), tmp_path), lines.append)
    with Pipeline(tmp_path, spark=spark) as pipeline:
        demo.answer(pipeline, (), [Question("How many?", "SELECT 'a' AS name, 1 AS count", [("a", 2)])])
    assert demo.different == ["How many?"]
    assert lines[-1] == "  DIFFERENT from the correct answer, which has 1 rows"
