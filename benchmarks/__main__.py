"""The command line of the benchmark: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contestants.registry import CONTESTANTS, contestants
from benchmarks.report import table
from benchmarks.results import read_results
from benchmarks.runner import Entry, Runner
from benchmarks.session import start_session
from benchmarks.work import WORK

WARM_UP_SIZE = 50_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = _parser().parse_args(arguments)
    options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run work items, contestants in turn")
    run.set_defaults(command=_run)
    run.add_argument("work", nargs="+", choices=sorted(WORK), help="work items")
    run.add_argument("--size", type=_number, default=100_000, help="number of customers [100000]")
    run.add_argument("--changes", type=_number, help="number of changes of a feed [a fortieth of the size]")
    run.add_argument("--rounds", type=int, default=3, help="number of measured rounds [3]")
    run.add_argument("--warm-up", type=int, default=2, help="rounds before, at most 50,000 customers [2]")
    run.add_argument("--only", action="append", default=[], metavar="NAME", help="contestant; repeatable [all]")
    run.add_argument("--cores", type=int, default=2, help="cores of Spark [2]")
    run.add_argument("--memory", default="3g", help="heap of Spark [3g]")
    run.add_argument("--folder", type=Path, default=Path("build/benchmark"), help="folder of data [build/benchmark]")
    run.add_argument("--results", type=Path, help="file of results to go on with [a new one in the folder]")
    run.add_argument("--fresh", action="store_true", help="discard the tables that earlier runs have prepared")
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
    spark = start_session(folder, cores=options.cores, memory=options.memory)
    runner = Runner(spark, folder, results, lambda line: print(line, flush=True))
    small = min(WARM_UP_SIZE, options.size)
    runner.warm_up(_entries(options, small, None), options.warm_up)
    runner.run(_entries(options, options.size, options.changes), options.rounds)
    spark.stop()
    shutil.rmtree(folder / "runs", ignore_errors=True)
    print(table(read_results(results)))
    print(f"results: {results}")


def _entries(options: argparse.Namespace, size: int, changes: int | None) -> list[Entry]:
    names = tuple(options.only)
    number = size // 40 if changes is None else changes
    return [Entry(WORK[work](size, number), contestants(work, names)) for work in options.work]


if __name__ == "__main__":
    main()
