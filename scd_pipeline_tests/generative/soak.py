"""Many worlds in every way of loading against the oracle: `python -m scd_pipeline_tests.generative.soak`.

Can be stopped and taken up again: what is done stands in `.long_runs/soak.jsonl` for as long as the code is the same.
A world that differs is written to `.long_runs/differences/` with its batches. Exit code 0: all done and no difference;
1: differences; 3: more to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scd_pipeline_tests.generative.comparison import EVERYWHERE, Differences, differences, expected, keys
from scd_pipeline_tests.generative.ground import WAYS, Ground, Site
from scd_pipeline_tests.generative.journal import FOLDER, UNFINISHED, Journal, code, fingerprint, spark_of_tests
from scd_pipeline_tests.text_tables import render
from scd_pipeline_tests.worlds import SHAPES, Shape, World, feature_report, rows_as_records, worlds_of

FIRST_SEED = 100_000


@dataclass(frozen=True)
class Part:
    """Worlds of one shape that share their loads."""

    shape: Shape
    seeds: range

    @property
    def name(self) -> str:
        return f"{self.shape.name} {self.seeds.start}-{self.seeds.stop - 1}"

    def worlds(self) -> list[World]:
        return worlds_of(self.shape, self.seeds)


def parts(worlds: int, size: int) -> list[Part]:
    """So many worlds or a few more: parts of equal size, the shapes in turn."""
    rounds = -(-worlds // (size * len(SHAPES)))
    starts = range(FIRST_SEED, FIRST_SEED + rounds * len(SHAPES) * size, size)
    return [Part(SHAPES[i % len(SHAPES)], range(start, start + size)) for i, start in enumerate(starts)]


def compared(site: Site, part: Part, files: Path) -> Iterator[tuple[str, Differences]]:
    """For each way of loading what differs from the oracle, and surrogate keys that differ between the ways."""
    worlds = part.worlds()
    wanted = expected(worlds)
    surrogates: dict[tuple[object, ...], int] | None = None
    for way in WAYS.values():
        with site.ground(worlds, files) as ground:
            ground.load(way)
            found = differences(ground, wanted)
            own = keys(ground.rows(), ground.dimension)
            if surrogates is not None and own != surrogates:
                found[EVERYWHERE] = "\n".join([found.get(EVERYWHERE, ""), "S14: surrogate keys of another way differ"])
            surrogates = own
            write_down(part, way.name, found, ground)
        yield way.name, found


def write_down(part: Part, way: str, found: Differences, ground: Ground) -> None:
    """Keep what differs, for people."""
    for number, text in found.items():
        told = [f"{part.name}, way {way}, world {number}"]
        if number != EVERYWHERE:
            world = ground.worlds[number - 1]
            told[0] += f" (seed {part.seeds[number - 1]})"
            told += [_batch(world, index) for index in range(len(world.batches))]
        target = FOLDER / "differences" / f"{part.name}-{way}-{number}.txt".replace(" ", "_")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n\n".join([*told, "- the oracle's, + found", text]) + "\n")


def _batch(world: World, index: int) -> str:
    batch = world.batches[index]
    told = [f"{batch.id} at {batch.at}, delivered at {[i for i, b in enumerate(world.delivered) if b is batch]}"]
    told += [f"scope {batch.scope_columns}: {batch.scope_values}"] if batch.scope_columns else []
    told += ["withdrawn"] if batch.withdrawn else []
    rows = rows_as_records(batch, world.shape.types)
    return "\n".join([*told, render(rows) if rows else "no rows"])


def main(arguments: list[str]) -> int:
    """Go on with what is not done yet, for at most so many minutes."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--size", type=int, default=168, help="worlds that share their loads")
    parser.add_argument("--minutes", type=float, default=55, help="begin nothing new after so many")
    asked = parser.parse_args(arguments)
    journal = Journal(FOLDER / "soak.jsonl", fingerprint(code()))
    every = parts(asked.worlds, asked.size)
    until = time.monotonic() + asked.minutes * 60
    with spark_of_tests() as spark, tempfile.TemporaryDirectory() as folder:
        site = Site(spark, Path(folder))
        for part in every:
            if part.name in journal.done or time.monotonic() > until:
                continue
            began = time.monotonic()
            found: dict[str, list[int]] = {}
            for way, differing in compared(site, part, Path(folder) / part.name):
                found |= {way: sorted(differing)} if differing else {}
            seconds = round(time.monotonic() - began)
            journal.add(part.name, worlds=len(part.seeds), seconds=seconds, differ=found)
            print(f"{part.name}: {seconds} s, {f'differ: {found}' if found else 'no difference'}", flush=True)
    return report(every, journal)


def report(every: list[Part], journal: Journal) -> int:
    """Print what is done, with the share of each feature; return the exit code."""
    done = [part for part in every if part.name in journal.done]
    worlds = [world for part in done for world in part.worlds()]
    for name, share in feature_report(worlds).items():
        print(f"{share:6.1%}  {name}")
    differ = [name for name, told in journal.done.items() if told["differ"]]
    total = sum(len(part.seeds) for part in every)
    print(f"{len(worlds)} of {total} worlds in {', '.join(WAYS)}; differences in {differ or 'none'}")
    if differ:
        print(f"written to {FOLDER / 'differences'}")
        return 1
    if len(done) < len(every):
        print("more to do: run it again")
        return UNFINISHED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
