"""Runs contestants in turn, verifies their rows and records each run."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import SparkSession

from benchmarks import tables
from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.machine import machine_id
from benchmarks.measure import Measurement, measure
from benchmarks.results import Key, Result, append_result, measured_keys, read_results
from benchmarks.session import collect_garbage
from benchmarks.work import Work, write_deliveries

Run: TypeAlias = tuple[Work, Contestant, int]
"""A work item, one of its contestants, and the number of the round."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A work item and the contestants that run it."""

    work: Work
    contestants: tuple[Contestant, ...]


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs entries in one session.

    Attributes:
        spark: The session.
        folder: The folder of deliveries, prepared tables and temporary copies.
        results: The file of the results.
        tag: The name of the tables that are prepared once; runs with the same tag share them.
        report: Receives one line for each step.
        deadline: The time of `time.monotonic` after which no run begins.
        machine: The id of this machine.
    """

    spark: SparkSession
    folder: Path
    results: Path
    tag: str = "shared"
    report: Callable[[str], None] = print
    deadline: float = float("inf")
    machine: str = field(default_factory=machine_id)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.spark.stop()
        shutil.rmtree(self.folder / "runs", ignore_errors=True)

    def warm_up(self, entries: Sequence[Entry], rounds: int) -> None:
        """Run all contestants without recording, so that the code of each is compiled."""
        for _ in range(rounds):
            for entry in entries:
                for contestant in entry.contestants:
                    result = self._run(entry.work, contestant, 0)
                    self.report(f"warm-up: {_line(result)}")

    def open_runs(self, entries: Sequence[Entry], rounds: int, planned_rounds: int = 0) -> list[Run]:
        """Return the runs that the results do not have yet, contestants in turn.

        Args:
            entries: The entries.
            rounds: The number of rounds.
            planned_rounds: The number of rounds after which the entries are complete, if it is greater. Results of
                another machine are used only if they are complete.
        """
        planned = _runs(entries, max(rounds, planned_rounds))
        done = measured_keys(read_results(self.results), map(_key, planned), self.machine)
        return [run for run in _runs(entries, rounds) if _key(run) not in done]

    def run(self, entries: Sequence[Entry], rounds: int, planned_rounds: int = 0) -> None:
        """Run all contestants of all entries once in each round; only `open_runs` are run.

        Raises:
            Exception: A failed run has ended the session; the same command goes on with the run after it.
        """
        for work, contestant, number in self.open_runs(entries, rounds, planned_rounds):
            if time.monotonic() > self.deadline:
                self.report(f"{work.id}: not run, because the time is up; run the same command again to go on")
                return
            result = self._run(work, contestant, number)
            append_result(self.results, result)
            self.report(_line(result))
            if result.outcome == "failed":
                # Without a session every later run would fail too, and count as measured.
                self.spark.range(1).count()

    def _run(self, work: Work, contestant: Contestant, number: int) -> Result:
        blank = Result(*_key((work, contestant, number)), "failed", machine=self.machine)
        run_folder = self.folder / "runs" / f"{work.id}-{contestant.name}-{time.time_ns()}"
        site = Site(self.spark, self.folder / "data", run_folder, self.folder / "environments")
        try:
            write_deliveries(self.spark, work, site.data)
            tables.copy_folder(self._prepared(work, contestant), run_folder)
            collect_garbage(self.spark)
            series: list[float] = []
            measurement = measure(
                lambda: series.extend(contestant.load(work, site) or ()),
                new_processes=contestant.is_process,
                servers=contestant.server_ids(site),
            )
            outcome, rows = self._verify(work, contestant, site)
        except Exception as error:
            return replace(blank, error=_first_line(error))
        finally:
            shutil.rmtree(run_folder, ignore_errors=True)
        return replace(_with_figures(blank, measurement), outcome=outcome, rows=rows, series=tuple(series))

    def _prepared(self, work: Work, contestant: Contestant) -> Path:
        """Return the folder of the state before the measured load; it is prepared once."""
        target = self.folder / "prepared" / self.tag / work.state / contestant.state_of
        if target.exists():
            return target
        unfinished = target.with_name(target.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        site = Site(self.spark, self.folder / "data", unfinished, self.folder / "environments")
        start = time.monotonic()
        contestant.prepare(work, site)
        unfinished.rename(target)
        self.report(f"{work.state}: prepared {contestant.state_of} ({time.monotonic() - start:.1f} s)")
        return target

    def _verify(self, work: Work, contestant: Contestant, site: Site) -> tuple[str, int]:
        frame = contestant.rows(work, site)
        if frame is None:
            return "none", 0
        rows = tables.checksum(frame)
        return ("equal" if rows == self._expected(work) else "different"), rows.count

    def _expected(self, work: Work) -> tables.Rows:
        file = self.folder / "expected" / f"{work.id}.json"
        if not file.exists():
            rows = tables.checksum(work.expected(self.spark))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(asdict(rows)))
        return tables.Rows(**json.loads(file.read_text()))


def _runs(entries: Sequence[Entry], rounds: int) -> list[Run]:
    return [
        (entry.work, contestant, number)
        for number in range(1, rounds + 1)
        for entry in entries
        for contestant in entry.contestants
    ]


def _key(run: Run) -> Key:
    work, contestant, number = run
    return work.name, work.size, work.changes, contestant.name, number


def _with_figures(result: Result, measurement: Measurement) -> Result:
    return replace(result, **asdict(measurement))


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:300]


def _line(result: Result) -> str:
    location = f"{result.work} {result.size:,}" + (f" +{result.changes:,}" if result.changes else "")
    figures = f"{result.seconds:7.2f} s  cpu {result.cpu_seconds:7.2f} s  {result.peak_memory / 2**20:6.0f} MiB"
    round_name = f"round {result.round}" if result.round else "warm-up"
    return f"{location:18} {result.contestant:24} {round_name}: {figures}  {result.outcome} {result.error}".rstrip()
