"""Demos of the generated examples: write deliveries, load them in two parts, and compare answers."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame

from examples.arrivals import FAULTS, Arrivals, Batch, known_faults
from scd_pipeline import Declarations, Dimension, Fact, LandingTable, LoadResult, Pipeline, ScdError, read_declarations
from scd_pipeline.cli.render import table
from scd_pipeline.cli.rows import collect
from scd_pipeline.declaration import DeclaredTable
from scd_pipeline.frames import checkpoint
from scd_pipeline.load.session_settings import INTERPRETED

Report = Callable[[str], None]
_AT_ONCE = 2
"""How many loads or queries run at a time: each leaves processor cores idle while it is planned."""
_ROWS = range(1_000, 10_000_001)
"""About how many rows a demo can deliver."""
_FEW_ROWS = 200_000
"""Up to this number of rows, the questions are answered without generated code."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a demo.

    Attributes:
        rows: About how many rows are delivered.
        seed: Decides everything that happens.
        faults: The faults of the deliveries.
        folder: The folder of deliveries, declarations and tables; an earlier one is replaced.
        remote: The address of a Spark Connect server; empty for an embedded Spark.
    """

    rows: int
    seed: int
    faults: frozenset[str]
    folder: Path
    remote: str = ""

    @classmethod
    def parse(cls, description: str, folder: Path, arguments: Sequence[str] | None = None) -> Options:
        """Return the options of a command line."""
        parser = argparse.ArgumentParser(description=description)
        expected = f"{_ROWS[0]:,} to {_ROWS[-1]:,}"
        rows_help = f"about how many rows are delivered, {expected} [20000]"
        parser.add_argument("--rows", type=int, default=20_000, help=rows_help)
        parser.add_argument("--seed", type=int, default=1, help="decides everything that happens [1]")
        parser.add_argument("--folder", type=Path, default=folder, help=f"folder of the example [{folder}]")
        parser.add_argument("--remote", default="", help="Spark Connect server, sc://host:port [embedded Spark]")
        names = ", ".join(FAULTS)
        parser.add_argument("--faults", default="all", help=f"all, none, or some of {names}, with commas [all]")
        parsed = parser.parse_args(arguments)
        if parsed.rows not in _ROWS:
            parser.error(f"argument --rows: {parsed.rows:,}; expected {expected}")
        named = {"all": list(FAULTS), "none": []}.get(parsed.faults, parsed.faults.split(","))
        try:
            faults = known_faults(named)
        except ValueError as error:
            parser.error(f"{error}; or all, or none")
        return cls(parsed.rows, parsed.seed, faults, parsed.folder, parsed.remote)


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the loaded tables.

    Attributes:
        text: The question.
        query: The query in Spark SQL that answers it, in the order in which the rows are shown.
        correct: The correct answer: the same rows in any order, with values of the same types.
        limit: How many rows are shown.
    """

    text: str
    query: str
    correct: Collection[tuple[object, ...]]
    limit: int = 12


@dataclass(slots=True)
class Demonstration:
    """A warehouse that is filled by the deliveries of a generated example.

    Attributes:
        options: The options of the demo.
        report: Receives each line.
        different: The questions whose answers differed from the correct ones.
    """

    options: Options
    report: Report
    different: list[str] = field(default_factory=list)
    _start: float = field(default_factory=time.monotonic)

    @property
    def declarations(self) -> Path:
        """The folder of the declarations."""
        return self.options.folder / "declarations"

    @property
    def warehouse(self) -> Path:
        """The folder of the tables."""
        return self.options.folder / "warehouse"

    def prepare(self, declarations: Path, batches: Iterable[Batch], files: int) -> tuple[Arrivals, Declarations]:
        """Copy the declarations and write the deliveries.

        Args:
            declarations: The folder of the declarations.
            batches: The deliveries.
            files: The number of the files of each source.
        """
        for folder in (self.declarations, self.warehouse):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(declarations, self.declarations)
        arrivals = Arrivals.create(self.options.folder, self.options.faults, files, self.options.seed)
        arrivals.write(batches)
        self.step(f"wrote deliveries into {arrivals.landing}")
        for fault in FAULTS:
            if fault in self.options.faults:
                self.report(f"         {fault}: {FAULTS[fault]}")
        return arrivals, read_declarations(self.declarations)

    def load_in_two_parts(
        self, pipeline: Pipeline, declared: Declarations, arrivals: Arrivals, *, first: Collection[str] = ()
    ) -> None:
        """Load the deliveries of the first part, and then those of the second.

        Args:
            pipeline: The pipeline.
            declared: The dimensions and facts.
            arrivals: The deliveries.
            first: The tables to load before the second part arrives; by default all. The others are loaded after it.
        """
        self.step("loading the deliveries that have arrived")
        self._load(pipeline, [table for table in declared.tables if not first or table.name in first])
        self.step(f"{arrivals.receive_second_part()} more files arrive; loading them")
        self._load(pipeline, declared.tables)

    def _load(self, pipeline: Pipeline, tables: Sequence[DeclaredTable]) -> None:
        """Load all new deliveries of some tables, two at a time, dimensions before other tables."""
        for kind in (Dimension, Fact, LandingTable):
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
                selected = [table for table in tables if isinstance(table, kind)]
                for table, result in zip(selected, threads.map(pipeline.load, selected), strict=True):
                    self.step(f"{table.name:26} {_summary(result)}")

    def step(self, message: str) -> None:
        """Report a message with the seconds so far."""
        self.report(f"{time.monotonic() - self._start:5.0f} s  {message}")

    def answer(self, pipeline: Pipeline, facts: Sequence[Fact], questions: Sequence[Question]) -> None:
        """Report the answers to questions in their order, and whether they equal the correct ones.

        Args:
            pipeline: The pipeline.
            facts: The facts whose views the queries may read.
            questions: The questions.
        """
        if self.options.rows <= _FEW_ROWS:
            for name, value in INTERPRETED.items():
                pipeline.spark.conf.set(name, value)
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            # An answer is read twice: as values to compare, and as texts to show.
            answers = threads.map(lambda question: checkpoint(pipeline.sql(question.query, facts=facts)), questions)
            for question, rows in zip(questions, answers, strict=True):
                self._report_answer(question, rows)

    def _report_answer(self, question: Question, rows: DataFrame) -> None:
        answered = [tuple(row) for row in rows.collect()]
        is_equal = sorted(map(repr, answered)) == sorted(map(repr, question.correct))
        self.report("")
        self.report(question.text)
        self.report(table(collect(rows.limit(question.limit)), "  "))
        if len(answered) > question.limit:
            self.report(f"  ... and {len(answered) - question.limit} more rows")
        if is_equal:
            self.report(f"  {len(answered)} rows; equal to the correct answer, which is computed without Spark")
        else:
            self.report(f"  DIFFERENT from the correct answer, which has {len(question.correct)} rows")
            self.different.append(question.text)

    def suggest(self, *commands: str, program: str = ".venv/bin/scd") -> None:
        """Report commands to type next, and those that are of use for every warehouse."""
        self.report("")
        self.report("What to type next")
        self.report(f"  export SCD_WAREHOUSE={self.warehouse} SCD_DECLARATIONS={self.declarations}")
        for command in (*commands, "check", "checklist", "status", "dev"):
            self.report(f"  {program} {command}")


def run_demo(
    description: str, folder: Path, run: Callable[[Options, Report], int], arguments: Sequence[str] | None = None
) -> int:
    """Run a demo with the options of the command line, and return its exit code.

    Args:
        description: What the demo does, in one line.
        folder: The default folder of the example.
        run: Runs the demo; returns 1 if an answer is not the correct one.
        arguments: The arguments of the command line; by default those of this process.
    """
    options = Options.parse(description, folder, arguments)
    try:
        return run(options, lambda line: print(line, flush=True))
    except ScdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _summary(result: LoadResult) -> str:
    loaded = sum(batch.outcome == "accepted" for batch in result.results)
    actions = ", ".join(f"{count:,} {action}" for action, count in result.row_counts.items()) or "no changes"
    return f"{loaded:3} deliveries; rows: {actions}"
