"""Named faults put into the engine, each of which the worlds must notice: `python -m ...generative.mutants [name ...]`.

A fault is killed by the first difference from the oracle, or by an error that the engine raises; the same worlds show
no difference without it. Each gets at most 300 worlds. What is done stands in `.long_runs/mutants.jsonl`. Exit code 0:
every fault killed; 1: some live, or the engine itself differs; 3: more to do.
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

from scd_pipeline_tests.generative.comparison import Expected, differences, expected
from scd_pipeline_tests.generative.faults import FAULTS, Fault
from scd_pipeline_tests.generative.ground import HALVES, WAYS, Site, Way
from scd_pipeline_tests.generative.journal import FOLDER, UNFINISHED, Journal, code, fingerprint, spark_of_tests
from scd_pipeline_tests.worlds import SHAPES, Shape, World, world

GROUPS = (30, 90, 90, 90)
"""How many worlds are tried at once: few at first, as most faults show soon; 300 in all."""
FIRST_SEED = 500_000
ENGINE_DIFFERS = "the engine without a fault differs"


@dataclass(frozen=True)
class Slot:
    """Worlds of a shape, loaded in a way; with `redeclared` some of their batches come under the first declaration."""

    shape: Shape
    way: Way
    redeclared: bool

    @staticmethod
    def of(text: str) -> Slot:
        shape, way, *more = text.split()
        ways = {**WAYS, HALVES.name: HALVES}
        return Slot(next(s for s in SHAPES if s.name == shape), ways[way], more == ["redeclared"])

    def worlds(self, group: int) -> list[World]:
        """The worlds of a group: those that follow the groups before it."""
        chosen = (seed for seed in itertools.count(FIRST_SEED) if bool(self._drawn(seed).first) == self.redeclared)
        before = sum(GROUPS[:group])
        seeds = itertools.islice(chosen, before, before + GROUPS[group])
        return [world(seed, shape=self.shape, number=number) for number, seed in enumerate(seeds, 1)]

    def _drawn(self, seed: int) -> World:
        return world(seed, shape=self.shape)


@dataclass
class Hunt:
    """Looks for worlds that tell a faulty engine from the oracle; remembers where the right one tells none."""

    site: Site
    files: Path
    clean: dict[tuple[str, int], str] = field(default_factory=dict)
    known: dict[tuple[str, int], list[Expected]] = field(default_factory=dict)

    def differs(self, slot: str, group: int) -> str:
        """What differs, or which error is raised; the empty text if all is as the oracle says."""
        wanted = self.known.setdefault((slot, group), [])
        if not wanted:
            wanted += expected(Slot.of(slot).worlds(group))
        with self.site.ground(
            [one.world for one in wanted], self.files / f"{slot} {group}".replace(" ", "_")
        ) as ground:
            try:
                ground.load(Slot.of(slot).way)
                found = differences(ground, wanted)
            except Exception as error:  # whatever a fault makes the engine raise
                self.site.spark.range(1).count()  # and not that the server is gone, which would raise here too
                return f"{type(error).__name__}: {str(error)[:200]}"
        return f"{len(found)} worlds differ, world {min(found)} first:\n{found[min(found)]}" if found else ""

    def differs_without_a_fault(self, slot: str, group: int) -> str:
        if (slot, group) not in self.clean:
            self.clean[slot, group] = self.differs(slot, group)
        return self.clean[slot, group]

    def killed(self, fault: Fault) -> tuple[int, str]:
        """How many worlds it took, and what told; the empty text if the fault lives."""
        tried = 0
        for slot, group in _groups(fault):
            if own := self.differs_without_a_fault(slot, group):
                return tried, f"{ENGINE_DIFFERS}: {slot}, group {group}: {own}"
            with fault.patch.applied():
                told = self.differs(slot, group)
            tried += GROUPS[group]
            if told:
                return tried, f"{slot}: {told}"
        return tried, ""


def _groups(fault: Fault) -> Iterator[tuple[str, int]]:
    """The groups, of the slots in turn."""
    return zip(itertools.cycle(fault.slots), range(len(GROUPS)), strict=False)


def main(arguments: list[str]) -> int:
    """Go on with the faults that are not done yet, for at most so many minutes."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="only these faults")
    parser.add_argument("--minutes", type=float, default=55, help="begin nothing new after so many")
    asked = parser.parse_args(arguments)
    chosen = [fault for fault in FAULTS if not asked.names or fault.name in asked.names]
    journal = Journal(FOLDER / "mutants.jsonl", fingerprint(code()))
    until = time.monotonic() + asked.minutes * 60
    with spark_of_tests() as spark, tempfile.TemporaryDirectory() as folder:
        hunt = Hunt(Site(spark, Path(folder) / "site"), Path(folder) / "files")
        for fault in chosen:
            if fault.known_as in journal.done or time.monotonic() > until:
                continue
            worlds, told = hunt.killed(fault)
            right = not told.startswith(ENGINE_DIFFERS)
            journal.add(fault.known_as, worlds=worlds, told=told, killed=bool(told) and right)
            first_line = told.partition("\n")[0]
            print(f"{fault.name} ({fault.rule}): {worlds} worlds, {first_line or 'LIVES'}", flush=True)
    return report(chosen, journal)


def report(chosen: list[Fault], journal: Journal) -> int:
    """Print the verdict; return the exit code."""
    done = [fault for fault in chosen if fault.known_as in journal.done]
    live = [fault.name for fault in done if not journal.done[fault.known_as]["killed"]]
    print(f"{len(done) - len(live)} of {len(chosen)} faults killed; alive: {', '.join(live) or 'none'}")
    if live:
        return 1
    return 0 if len(done) == len(chosen) else UNFINISHED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
