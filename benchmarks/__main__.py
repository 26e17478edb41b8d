"""The command line of the benchmark: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.catalog import WORK
from benchmarks.commands import are_measured, run_commands
from benchmarks.contestants.registry import CONTESTANTS
from benchmarks.digest import code_digest, layout_digest
from benchmarks.layouts import Bench
from benchmarks.machine import environment, machine_id
from benchmarks.measure import adopt_orphans
from benchmarks.report import (
    LAYOUT_JSON,
    Environments,
    best_layout_table,
    layout_table,
    seconds_table,
    stored_environments,
    stored_runs,
    table,
    write_layout_report,
    write_report,
)
from benchmarks.results import append_result, read_results
from benchmarks.runner import Runner
from benchmarks.session import start_session
from benchmarks.suites import FULL, Step, quick, warm_up

FOLDER = Path("build/benchmark")
REPORT = Path(__file__).parent / "results"
WARM_UP_SIZE = 50_000
QUICK_SIZE = 100_000
HOURS = 2.0
COMMAND_ROUNDS = 3
LAYOUT_SIZES = (1_000_000, 5_000_000, 20_000_000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = _parser().parse_args(arguments)
    adopt_orphans()
    options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cores", type=int, default=2, help="cores of Spark [2]")
    shared.add_argument("--memory", default="3g", help="heap of Spark [3g]")
    shared.add_argument("--folder", type=Path, default=FOLDER, help=f"folder of data and results [{FOLDER}]")

    run = commands.add_parser("run", parents=[shared], help="run work items, contestants in turn")
    run.set_defaults(command=_run)
    run.add_argument("work", nargs="+", choices=sorted(WORK), help="work items")
    run.add_argument("--size", type=_number, default=QUICK_SIZE, help="number of customers or facts [100000]")
    run.add_argument("--changes", type=_number, default=0, help="number of changes or batches [by the work item]")
    run.add_argument("--rounds", type=int, default=3, help="number of measured rounds [3]")
    run.add_argument("--warm-up", type=int, default=2, help="rounds before, of at most 50,000 customers [2]")
    run.add_argument("--only", action="append", default=[], metavar="NAME", help="contestant; repeatable [all]")
    run.add_argument("--results", type=Path, help="file of results to go on with [a new one in the folder]")
    run.add_argument("--fresh", action="store_true", help="discard the tables that earlier runs have prepared")

    short = commands.add_parser("quick", parents=[shared], help="run a few work items once; fail unless rows are equal")
    short.set_defaults(command=_quick)
    short.add_argument("--size", type=_number, default=QUICK_SIZE, help="number of customers [100000]")

    processes = commands.add_parser("commands", parents=[shared], help="run commands and Dagster's runs as processes")
    processes.set_defaults(command=_commands)
    processes.add_argument("--rounds", type=int, default=COMMAND_ROUNDS, help=f"number of rounds [{COMMAND_ROUNDS}]")

    layouts = commands.add_parser("layouts", parents=[shared], help="compare table layouts of a dimension")
    layouts.set_defaults(command=_layouts)
    layouts.add_argument("--size", type=_number, action="append", help="number of versions; repeatable [1, 5, 20 M]")
    layouts.add_argument("--rounds", type=int, default=2, help="number of measured rounds [2]")
    layouts.add_argument("--minutes", type=float, default=40, help="minutes after which no round of a size begins [40]")
    layouts.add_argument("--report", type=Path, help="folder of the report, such as benchmarks/results [none]")

    full = commands.add_parser("full", parents=[shared], help="run everything, or go on with a run that was ended")
    full.set_defaults(command=_full)
    full.add_argument("--hours", type=float, default=HOURS, help="hours after which no run begins [2]")
    full.add_argument("--report", type=Path, default=REPORT, help="folder of the report [benchmarks/results]")
    return parser


def _number(text: str) -> int:
    return int(text.replace("_", "").replace(",", ""))


def _run(options: argparse.Namespace) -> None:
    folder: Path = options.folder.absolute()
    results = (options.results or folder / "results" / f"run-{time.time_ns()}.jsonl").absolute()
    if unknown := set(options.only) - {each.name for group in CONTESTANTS.values() for each in group}:
        raise SystemExit(f"unknown contestants: {', '.join(sorted(unknown))}")
    if options.fresh:
        shutil.rmtree(folder / "prepared", ignore_errors=True)

    def step(size: int) -> Step:
        changes = min(options.changes, size)
        return Step(tuple((work, size, changes) for work in options.work), options.rounds, tuple(options.only))

    with _runner(options, results) as runner:
        runner.warm_up(step(min(WARM_UP_SIZE, options.size)).entries(), options.warm_up)
        runner.run(step(options.size).entries(), options.rounds)
    print(table(read_results(results)))
    print(f"results: {results}")


def _quick(options: argparse.Namespace) -> None:
    results = options.folder.absolute() / "results" / f"quick-{time.time_ns()}.jsonl"
    with _runner(options, results) as runner:
        for step in quick(options.size):
            runner.run(step.entries(), step.rounds)
    measured = read_results(results)
    print(table(measured))
    if not all(result.is_valid for result in measured):
        sys.exit(1)


def _commands(options: argparse.Namespace) -> None:
    folder: Path = options.folder.absolute()
    results = folder / "results" / f"commands-{time.time_ns()}.jsonl"
    _run_commands(options, results, options.rounds)
    print(seconds_table(read_results(results)))
    print(f"results: {results}")


def _run_commands(options: argparse.Namespace, results: Path, rounds: int = COMMAND_ROUNDS) -> None:
    run_commands(
        options.folder.absolute(),
        results,
        rounds=rounds,
        cores=options.cores,
        memory=options.memory,
        report=_report,
    )


def _layouts(options: argparse.Namespace) -> None:
    folder: Path = options.folder.absolute()
    tag, environments, deadline = layout_digest(), {}, time.monotonic() + options.minutes * 60
    results = folder / "results" / f"layouts-{tag}.jsonl"
    if options.report:
        environments = dict(stored_environments(options.report, tag, LAYOUT_JSON))
        for run in stored_runs(options.report, tag, LAYOUT_JSON) if not results.exists() else ():
            append_result(results, run)
    spark = start_session(folder, cores=options.cores, memory=options.memory)
    try:
        # The first round of all sizes comes first, as in the full benchmark.
        for number in range(1, options.rounds + 1):
            for size in options.size or LAYOUT_SIZES:
                bench = Bench(spark, folder, results, size, _report)
                if bench.is_measured(number, options.rounds):
                    continue
                if time.monotonic() > deadline:
                    _report(f"layouts {size:,}: not run, because the time is up; run the same command again to go on")
                    continue
                bench.run(number)
                if options.report:
                    environments[machine_id()] = _environment(options)
                    write_layout_report(read_results(results), environments, options.report, tag)
    finally:
        spark.stop()
    measured = read_results(results)
    print(best_layout_table(measured))
    print(layout_table(measured))
    print(f"results: {results}")


def _full(options: argparse.Namespace) -> None:
    tag = code_digest()
    results = options.folder.absolute() / "results" / f"full-{tag}.jsonl"
    described = results.with_suffix(".environments.json")
    deadline = time.monotonic() + options.hours * 3600
    if not results.exists():
        for run in stored_runs(options.report, tag):
            append_result(results, run)
    stored = json.loads(described.read_text()) if described.exists() else stored_environments(options.report, tag)
    environments = _store_environment(options, described, stored)
    if not are_measured(results, COMMAND_ROUNDS):
        _run_commands(options, results)
    with _runner(options, results, tag=tag, deadline=deadline) as runner:
        if any(runner.open_runs(step.entries(), step.rounds) for step in FULL):
            for step in warm_up(WARM_UP_SIZE):
                runner.warm_up(step.entries(), 2)
        # The first round of all steps comes first: if the time is up, most is measured once.
        for rounds in range(1, max(step.rounds for step in FULL) + 1):
            for step in FULL:
                runner.run(step.entries(), min(rounds, step.rounds), step.rounds)
    # The environments of contestants now exist.
    environments = _store_environment(options, described, environments)
    write_report(read_results(results), environments, options.report, tag)
    print((options.report / "report.md").read_text())


def _report(line: str) -> None:
    print(line, flush=True)


def _store_environment(options: argparse.Namespace, file: Path, environments: Environments) -> Environments:
    """Store the environments of all machines, with that of this one, and return them."""
    complete = {**environments, machine_id(): _environment(options)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(complete))
    return complete


def _environment(options: argparse.Namespace) -> dict[str, str]:
    return environment(options.folder.absolute() / "environments", cores=options.cores, memory=options.memory)


def _runner(
    options: argparse.Namespace, results: Path, *, tag: str = "shared", deadline: float = float("inf")
) -> Runner:
    folder = options.folder.absolute()
    spark = start_session(folder, cores=options.cores, memory=options.memory)
    return Runner(spark, folder, results, tag, _report, deadline)


if __name__ == "__main__":
    main()
