"""Compare many scenarios in every way of loading with the oracle: `python -m scd_pipeline_tests.generative.soak`.

It can be stopped and continued: `.long_runs/soak.jsonl` stores the results as long as the code is the same.
A scenario that differs is written to `.long_runs/differences/` with its batches. Exit code 0: all done and no
difference; 1: differences; 3: more to do.
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
from scd_pipeline_tests.generative.journal import FOLDER, UNFINISHED, Journal, code, fingerprint, spark_of_tests
from scd_pipeline_tests.generative.scenario_warehouse import WAYS, ScenarioWarehouse, Site
from scd_pipeline_tests.scenarios import (
    COMPARED_SHAPES,
    FEATURES,
    FEATURES_OF_FACTS,
    Scenario,
    Shape,
    feature_report,
    rows_as_records,
    scenarios_of,
)
from scd_pipeline_tests.text_tables import render

FIRST_SEED = 100_000


@dataclass(frozen=True)
class Part:
    """Scenarios of one shape that share their loads."""

    shape: Shape
    seeds: range

    @property
    def name(self) -> str:
        return f"{self.shape.name} {self.seeds.start}-{self.seeds.stop - 1}"

    def scenarios(self) -> list[Scenario]:
        return scenarios_of(self.shape, self.seeds)


def parts(scenarios: int, size: int) -> list[Part]:
    """At least so many scenarios, in parts of equal size, with the shapes in turn."""
    rounds = -(-scenarios // (size * len(COMPARED_SHAPES)))
    starts = range(FIRST_SEED, FIRST_SEED + rounds * len(COMPARED_SHAPES) * size, size)
    return [
        Part(COMPARED_SHAPES[i % len(COMPARED_SHAPES)], range(start, start + size)) for i, start in enumerate(starts)
    ]


def compared(site: Site, part: Part, files: Path) -> Iterator[tuple[str, Differences]]:
    """For each way of loading, the differences from the oracle and the surrogate keys that differ between the ways."""
    scenarios = part.scenarios()
    expectations = expected(scenarios)
    surrogates: dict[tuple[object, ...], int] | None = None
    for way in WAYS.values():
        with site.open(scenarios, files) as opened:
            opened.load(way)
            differing = differences(opened, expectations)
            own = keys(opened.rows(), opened.dimension)
            if surrogates is not None and own != surrogates:
                differing[EVERYWHERE] = "\n".join(
                    [differing.get(EVERYWHERE, ""), "S14: surrogate keys of another way differ"]
                )
            surrogates = own
            write_differences(part, way.name, differing, opened)
        yield way.name, differing


def write_differences(part: Part, way: str, differing: Differences, opened: ScenarioWarehouse) -> None:
    """Write a readable file for each scenario that differs."""
    for number, text in differing.items():
        texts = [f"{part.name}, way {way}, scenario {number}"]
        if number != EVERYWHERE:
            scenario = opened.scenarios[number - 1]
            texts[0] += f" (seed {part.seeds[number - 1]})"
            for each in filter(None, (scenario, scenario.upstream)):
                texts += [_batch(each, index) for index in range(len(each.batches))]
        target = FOLDER / "differences" / f"{part.name}-{way}-{number}.txt".replace(" ", "_")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n\n".join([*texts, "- the oracle's, + the engine's", text]) + "\n")


def _batch(scenario: Scenario, index: int) -> str:
    batch = scenario.batches[index]
    lines = [f"{batch.id} at {batch.at}, delivered at {[i for i, b in enumerate(scenario.delivered) if b is batch]}"]
    lines += [f"scope {batch.scope_columns}: {batch.scope_values}"] if batch.scope_columns else []
    lines += ["withdrawn"] if batch.withdrawn else []
    lines += [f"control totals {dict(batch.totals)}"] if batch.totals else []
    lines += [f"overrides {', '.join(sorted(batch.allow))}"] if batch.allow else []
    rows = rows_as_records(batch, scenario.shape.types)
    return "\n".join([*lines, render(rows) if rows else "no rows"])


def main(arguments: list[str]) -> int:
    """Continue with the parts that have no result yet, for at most some minutes."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--size", type=int, default=168, help="scenarios that share their loads")
    parser.add_argument("--minutes", type=float, default=55, help="start no part after this many minutes")
    options = parser.parse_args(arguments)
    journal = Journal(FOLDER / "soak.jsonl", fingerprint(code()))
    every = parts(options.scenarios, options.size)
    until = time.monotonic() + options.minutes * 60
    with spark_of_tests() as spark, tempfile.TemporaryDirectory() as folder:
        site = Site(spark, Path(folder))
        for part in every:
            if part.name in journal.done or time.monotonic() > until:
                continue
            began = time.monotonic()
            differ: dict[str, list[int]] = {}
            for way, differing in compared(site, part, Path(folder) / part.name):
                differ |= {way: sorted(differing)} if differing else {}
            seconds = round(time.monotonic() - began)
            journal.add(part.name, scenarios=len(part.seeds), seconds=seconds, differ=differ)
            print(f"{part.name}: {seconds} s, {f'differ: {differ}' if differ else 'no difference'}", flush=True)
    return report(every, journal)


def report(every: list[Part], journal: Journal) -> int:
    """Print the results so far, with the share of each feature; return the exit code."""
    done = [part for part in every if part.name in journal.done]
    scenarios = [scenario for part in done for scenario in part.scenarios()]
    for name, share in feature_report(scenarios, (*FEATURES, *FEATURES_OF_FACTS)).items():
        print(f"{share:6.1%}  {name}")
    differ = [name for name, result in journal.done.items() if result["differ"]]
    total = sum(len(part.seeds) for part in every)
    print(f"{len(scenarios)} of {total} scenarios in {', '.join(WAYS)}; differences in {differ or 'none'}")
    if differ:
        print(f"written to {FOLDER / 'differences'}")
        return 1
    if len(done) < len(every):
        print("more to do: run it again")
        return UNFINISHED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
