"""Results of the benchmark are compared only if one machine has measured them, with the same code."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import suites
from benchmarks.digest import code_digest
from benchmarks.machine import machine_id
from benchmarks.measure import measure
from benchmarks.report import (
    LAYOUT_JSON,
    ratio_table,
    stored_environments,
    stored_runs,
    write_layout_report,
    write_report,
)
from benchmarks.results import Result, append_result, measured_keys, results_of_one_machine, summarize
from benchmarks.runner import Runner
from benchmarks.suites import MILLION, Step
from benchmarks.targets import TARGETS, Target

RUN = Result("a", MILLION, 0, "scd_pipeline", 1, "equal", seconds=8.0, machine="first")
REFERENCE = replace(RUN, contestant="documented_merge", seconds=10.0)


def on_another_machine(result: Result, round_: int = 1) -> Result:
    return replace(result, machine="second", round=round_)


def target(description: str) -> Target:
    return next(target for target in TARGETS if target.description == description)


def test_ratios_are_between_results_of_one_machine() -> None:
    described = target("(b) 10 M / (a) 1 M")
    large = replace(RUN, size=10 * MILLION, seconds=40.0)
    assert described.ratio(summarize([RUN, large])) == 5.0
    assert described.ratio(summarize([RUN, on_another_machine(large)])) is None
    assert "| on two machines |" in ratio_table([RUN, on_another_machine(large)])


def test_a_ratio_is_of_wall_time_or_of_processor_time() -> None:
    load = replace(RUN, work="c", size=20_000, changes=100, seconds=3.0, cpu_seconds=4.0)
    merge = replace(load, contestant="documented_merge", seconds=1.5, cpu_seconds=1.0)
    described = "(c) 100 into 20,000 / documented MERGE"
    assert target(described).ratio(summarize([load, merge])) == 2.0
    assert target(f"{described}, CPU").ratio(summarize([load, merge])) == 4.0


def test_results_of_a_work_item_are_those_of_the_machine_with_most() -> None:
    second = [on_another_machine(each, number) for each in (RUN, REFERENCE) for number in (1, 2)]
    assert results_of_one_machine([RUN, REFERENCE, *second]) == second
    assert results_of_one_machine([*second, RUN, REFERENCE]) == second
    assert results_of_one_machine([RUN, on_another_machine(RUN)]) == [on_another_machine(RUN)]
    (summary,) = summarize([RUN, replace(on_another_machine(RUN), seconds=2.0)])
    assert (summary.machine, summary.runs, summary.seconds) == ("second", 1, 2.0)


def test_a_machine_measures_what_another_one_has_not_completed() -> None:
    planned = {RUN.key, replace(RUN, round=2).key}
    partial, complete = [RUN], [RUN, replace(RUN, round=2)]
    assert measured_keys(partial, planned, "first") == {RUN.key}
    assert measured_keys(partial, planned, "second") == set()
    assert measured_keys(complete, planned, "second") == planned
    assert measured_keys([*partial, on_another_machine(RUN, 2)], planned, "first") == {RUN.key}


def test_a_step_continued_on_another_machine_starts_at_its_first_round(tmp_path: Path) -> None:
    step = Step((("c", 1000, 25),), 2, ("scd_pipeline",))
    results = tmp_path / "results.jsonl"
    append_result(results, replace(RUN, work="c", size=1000, changes=25))

    def open_rounds(machine: str, rounds: int) -> list[int]:
        runner = Runner(None, tmp_path, results, machine=machine)  # type: ignore[arg-type]
        return [number for _, _, number in runner.open_runs(step.entries(), rounds, step.rounds)]

    assert open_rounds("first", 1) == []
    assert open_rounds("first", 2) == [2]
    assert open_rounds("second", 1) == [1]
    assert open_rounds("second", 2) == [1, 2]
    append_result(results, replace(RUN, work="c", size=1000, changes=25, round=2))
    assert open_rounds("second", 2) == []


def test_a_report_names_each_machine(tmp_path: Path) -> None:
    second = on_another_machine(replace(RUN, work="h"))
    environments = {"first": {"machine": "a small one"}, "second": {"machine": "a large one"}}
    write_report([RUN, second], environments, tmp_path, "code")
    assert stored_runs(tmp_path, "code") == [replace(each, series=[]) for each in (RUN, second)]  # type: ignore[arg-type]
    assert stored_environments(tmp_path, "code") == environments
    assert stored_runs(tmp_path, "other code") == []
    report = (tmp_path / "report.md").read_text()
    assert "- measured here: a 1,000,000\n- machine: a small one\n\nAnother machine:" in report
    assert "- measured here: h 1,000,000\n- machine: a large one\n" in report


def test_a_machine_has_the_same_id_at_each_call() -> None:
    assert machine_id() == machine_id()


@pytest.mark.parametrize(
    ("file", "is_measured"),
    [
        ("contestants/joins.py", True),
        ("programs/duckdb_sql.py", True),
        ("environments/duckdb.txt", True),
        ("data.py", True),
        ("sales.py", True),
        ("contestants/registry.py", False),
        ("report.py", False),
        ("suites.py", False),
        ("results/report.md", False),
    ],
)
def test_the_digest_has_the_code_that_is_measured(tmp_path: Path, file: str, is_measured: bool) -> None:
    package, benchmark = tmp_path / "package", tmp_path / "benchmark"
    path = benchmark / file
    path.parent.mkdir(parents=True)
    path.write_text("before")
    before = code_digest(package, benchmark)
    path.write_text("after")
    assert (code_digest(package, benchmark) != before) == is_measured


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_figures_include_servers_that_are_named() -> None:
    program = "import time; content = bytearray(40_000_000); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        without = measure(lambda: time.sleep(0.1), new_processes=True)
        included = measure(lambda: time.sleep(0.1), new_processes=True, servers=[server.pid])
        server.kill()
    assert without.peak_memory == 0
    assert included.peak_memory > 40_000_000


def test_each_comparison_is_measured_by_the_full_benchmark() -> None:
    measured = {
        (*work, contestant.name)
        for step in suites.FULL
        for work, entry in zip(step.work, step.entries(), strict=True)
        for contestant in entry.contestants
    }
    for each in TARGETS:
        for figure in (each.figure, each.reference):
            assert (figure.work, figure.size, figure.changes, figure.contestant) in measured, each.description


def test_the_report_of_layouts_names_the_best_one_for_each_question(tmp_path: Path) -> None:
    figures = {
        ("entity", "nothing"): 2.0,
        ("entity", "z_order"): 0.5,
        ("find", "nothing"): 3.0,
        ("find", "z_order"): 4.0,
        ("replace", "nothing"): 3.0,
        ("replace", "z_order"): 4.0,
        ("as_of", "nothing"): 5.0,
    }
    results = [
        Result(f"layout_{operation}", 1000, 0, layout, 1, "none", seconds=seconds, machine="first")
        for (operation, layout), seconds in figures.items()
    ]
    write_layout_report(results, {"first": {"machine": "a small one"}}, tmp_path, "code")
    report = (tmp_path / "layouts.md").read_text()
    assert "| 1,000 | read one key        | z_order     | 0.50    | 4.00           |" in report
    assert "| 1,000 | load of few changes | nothing     | 6.00    | 1.00           |" in report
    assert "| 1,000 | as-of scan          | nothing     | 5.00    | 1.00           |" in report
    assert [result.key for result in stored_runs(tmp_path, "code", LAYOUT_JSON)] == [each.key for each in results]
