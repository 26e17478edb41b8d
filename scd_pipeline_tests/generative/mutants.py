"""Run mutants of the engine, each of which the scenarios must kill: `python -m ...generative.mutants [name ...]`.

A mutant has one of the named faults. It is killed by the first difference from the oracle, or by an error that the
engine raises; the engine without the fault shows no difference in the same scenarios. A mutant gets at most 300
scenarios, and survives if they call none of its mutated functions. A few faults name a test instead: it must fail with
the fault, and pass without. Results are stored in `.long_runs/mutants.jsonl`. Faults that no longer apply to the engine
are listed before anything runs.

Exit codes: 0: every mutant was killed; 1: some survived, a fault does not apply or is not called, or the engine itself
differs; 3: the run is not complete.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from scd_pipeline_tests.generative import mutated_test
from scd_pipeline_tests.generative.comparison import Expected, differences, expected
from scd_pipeline_tests.generative.faults import FAULTS, Fault
from scd_pipeline_tests.generative.journal import FOLDER, UNFINISHED, Journal, code, fingerprint, spark_of_tests
from scd_pipeline_tests.generative.mutations import DoesNotApply
from scd_pipeline_tests.generative.scenario_warehouse import HALVES, WAYS, Site, Way
from scd_pipeline_tests.scenarios import COMPARED_SHAPES, DELETED_SHAPES, Scenario, Shape, random_scenario

GROUPS = (30, 90, 90, 90)
"""Scenarios that are tried at once: few at first, as most faults show soon; 300 in all."""
FIRST_SEED = 500_000
ENGINE_DIFFERS = "the engine without a fault differs"
NOT_CALLED = "the scenarios or the test call no mutated function"
TEST_DOES_NOT_RUN = "the test does not run"
NOT_KILLED = (ENGINE_DIFFERS, NOT_CALLED, TEST_DOES_NOT_RUN)


@dataclass(frozen=True)
class Slot:
    """Scenarios of a shape, loaded in a way.

    With `redeclared` some batches come under the first declaration. `history_columns`: see `ScenarioWarehouse`.
    """

    shape: Shape
    way: Way
    redeclared: bool
    history_columns: Literal["changing"] | None

    @staticmethod
    def parse(text: str) -> Slot:
        shape, way, *options = text.split()
        if unknown := set(options) - {"redeclared", "changing"}:
            raise ValueError(f"unknown options of a slot: {', '.join(sorted(unknown))}")
        shapes = {each.name: each for each in (*COMPARED_SHAPES, *DELETED_SHAPES)}
        ways = {**WAYS, HALVES.name: HALVES}
        columns: Literal["changing"] | None = "changing" if "changing" in options else None
        return Slot(shapes[shape], ways[way], "redeclared" in options, columns)

    def scenarios(self, group: int) -> list[Scenario]:
        """Return the scenarios of a group: those that follow the groups before it."""
        chosen = (seed for seed in itertools.count(FIRST_SEED) if bool(self._drawn(seed).first) == self.redeclared)
        before = sum(GROUPS[:group])
        seeds = itertools.islice(chosen, before, before + GROUPS[group])
        return [random_scenario(seed, shape=self.shape, number=number) for number, seed in enumerate(seeds, 1)]

    def _drawn(self, seed: int) -> Scenario:
        return random_scenario(seed, shape=self.shape)


@dataclass
class Hunt:
    """Search for scenarios in which a mutant differs from the oracle, with the results of the engine itself."""

    site: Site
    files: Path
    clean: dict[tuple[str, int], str] = field(default_factory=dict)
    expectations: dict[tuple[str, int], list[Expected]] = field(default_factory=dict)

    def differs(self, slot: str, group: int) -> str:
        """Describe what differs from the oracle, or the error raised; the empty text for no difference."""
        expectations = self.expectations.setdefault((slot, group), [])
        if not expectations:
            expectations += expected(Slot.parse(slot).scenarios(group))
        with self.site.open(
            [each.scenario for each in expectations],
            self.files / f"{slot} {group}".replace(" ", "_"),
            history_columns=Slot.parse(slot).history_columns,
        ) as opened:
            try:
                opened.load(Slot.parse(slot).way)
                different = differences(opened, expectations)
            except Exception as error:  # whatever a fault makes the engine raise
                self.site.spark.range(1).count()  # raises as well if the cause is a stopped server
                return f"{type(error).__name__}: {str(error)[:200]}"
        first = min(different, default=0)
        return f"{len(different)} scenarios differ, number {first} first:\n{different[first]}" if different else ""

    def differs_without_a_fault(self, slot: str, group: int) -> str:
        if (slot, group) not in self.clean:
            self.clean[slot, group] = self.differs(slot, group)
        return self.clean[slot, group]

    def killed(self, fault: Fault) -> tuple[int, str]:
        """Return how many scenarios ran, and what killed the mutant, or why nothing can; empty if it survived."""
        if fault.test:
            return 0, killed_by_test(fault)
        tried, is_called = 0, False
        for slot, group in _groups(fault):
            if difference := self.differs_without_a_fault(slot, group):
                return tried, f"{ENGINE_DIFFERS}: {slot}, group {group}: {difference}"
            with fault.patch.applied():
                difference = self.differs(slot, group)
            tried += GROUPS[group]
            is_called = is_called or fault.patch.is_called()
            if difference and is_called:
                return tried, f"{slot}: {difference}"
        return tried, "" if is_called else NOT_CALLED


def killed_by_test(fault: Fault) -> str:
    """Return how its test fails with the fault, or why it cannot show it; empty if it passes."""
    code, last_line = mutated_test.run(fault.test)
    if code != mutated_test.PASSED:
        return f"{ENGINE_DIFFERS}: {last_line}"
    code, last_line = mutated_test.run(fault.test, fault.name)
    texts = {mutated_test.PASSED: "", mutated_test.FAILED: last_line, mutated_test.NOT_CALLED: NOT_CALLED}
    return texts.get(code, f"{TEST_DOES_NOT_RUN}: {last_line}")


def _groups(fault: Fault) -> Iterator[tuple[str, int]]:
    """Yield the groups, of the slots in turn."""
    return zip(itertools.cycle(fault.slots), range(len(GROUPS)), strict=False)


def problems(faults: list[Fault]) -> list[str]:
    """Describe each fault that does not apply to the current engine."""
    texts = []
    for fault in faults:
        try:
            _ = fault.patch
            for slot in fault.slots:
                Slot.parse(slot)
            if fault.test and not _has_test(fault):
                texts.append(f"{fault.name}: there is no test {fault.test}")
        except DoesNotApply as error:
            texts.append(f"{fault.name}: {error}")
        except (KeyError, ValueError):
            texts.append(f"{fault.name}: unknown slot in {', '.join(fault.slots)}")
    return texts


def _has_test(fault: Fault) -> bool:
    name = fault.test.partition("::")[2].partition("[")[0]
    return fault.test_file.is_file() and f"def {name}(" in fault.test_file.read_text()


def main(arguments: list[str]) -> int:
    """Continue with the faults that have no result yet, for at most some minutes."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="only these faults")
    parser.add_argument("--list", action="store_true", help="list the faults and check that they apply; run nothing")
    parser.add_argument("--minutes", type=float, default=55, help="start no mutant after this many minutes [55]")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - {fault.name for fault in FAULTS}):
        parser.error(f"no fault is called {', '.join(unknown)}; expected names that --list prints")
    chosen = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    if options.list:
        for fault in chosen:
            print(f"{fault.name} ({fault.rule}): {', '.join(mutated.name for mutated in fault.mutated)}")
    if not_applicable := problems(chosen):
        print(f"{len(not_applicable)} of {len(chosen)} faults do not apply; adapt them in faults.py:", file=sys.stderr)
        print(*not_applicable, sep="\n", file=sys.stderr)
        return 1
    if options.list:
        print(f"{len(chosen)} faults apply")
        return 0
    return run(chosen, options.minutes)


def run(chosen: list[Fault], minutes: float) -> int:
    """Run the mutants that have no result yet; return the exit code."""
    journal = Journal(FOLDER / "mutants.jsonl", fingerprint(code()))
    until = time.monotonic() + minutes * 60
    with spark_of_tests() as spark, tempfile.TemporaryDirectory() as folder:
        hunt = Hunt(Site(spark, Path(folder) / "site"), Path(folder) / "files")
        for fault in chosen:
            if fault.journal_name in journal.done or time.monotonic() > until:
                continue
            tried, difference = hunt.killed(fault)
            killed = bool(difference) and not difference.startswith(NOT_KILLED)
            journal.add(fault.journal_name, scenarios=tried, difference=difference, killed=killed)
            first_line = difference.partition("\n")[0]
            shown_by = fault.test.rpartition("::")[2] or f"{tried} scenarios"
            print(f"{fault.name} ({fault.rule}): {shown_by}, {first_line or 'SURVIVED'}", flush=True)
    return report(chosen, journal)


def report(chosen: list[Fault], journal: Journal) -> int:
    """Print the verdict; return the exit code."""
    done = [fault for fault in chosen if fault.journal_name in journal.done]
    survived = [fault.name for fault in done if not journal.done[fault.journal_name]["killed"]]
    print(f"{len(done) - len(survived)} of {len(chosen)} mutants killed; survived: {', '.join(survived) or 'none'}")
    if survived:
        return 1
    return 0 if len(done) == len(chosen) else UNFINISHED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
