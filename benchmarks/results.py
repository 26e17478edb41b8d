"""Results: one line of JSON for each measured run, so that an interrupted benchmark goes on where it ended."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeAlias

Key: TypeAlias = tuple[str, int, int, str, int]
"""Work item, size, changes, contestant and round of a run."""


@dataclass(frozen=True, slots=True)
class Result:
    """One measured run of a contestant.

    Attributes:
        work: The name of the work item.
        size: Its number of customers.
        changes: Its number of changes, 0 for snapshots.
        contestant: The name of the contestant.
        round: The number of the round, from 1.
        outcome: `equal`, `different` (other rows than expected), `failed`, or `none` for a floor without rows.
        error: The first line of the error of a failed run.
        rows: The number of rows after the load.
        seconds, cpu_seconds, other_cpu_seconds, peak_memory, written: As in `measure.Measurement`.
        series: The seconds of each of several loads that one run consists of.
        machine: The id of the machine that it ran on.
    """

    work: str
    size: int
    changes: int
    contestant: str
    round: int
    outcome: str
    error: str = ""
    rows: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    other_cpu_seconds: float = 0.0
    peak_memory: int = 0
    written: int = 0
    series: tuple[float, ...] = ()
    machine: str = ""

    @property
    def key(self) -> Key:
        """What identifies the run in a benchmark."""
        return self.work, self.size, self.changes, self.contestant, self.round

    @property
    def is_valid(self) -> bool:
        """Whether the figures may be compared."""
        return self.outcome in ("equal", "none")


def read_results(file: Path) -> list[Result]:
    """Return the results in a file; an empty list if it does not exist. A line that was cut off is ignored."""
    if not file.exists():
        return []
    names = {field.name for field in fields(Result)}
    results = []
    for line in file.read_text().splitlines():
        try:
            values = json.loads(line)
        except json.JSONDecodeError:
            continue
        results.append(Result(**{name: value for name, value in values.items() if name in names}))
    return results


def append_result(file: Path, result: Result) -> None:
    """Append one line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as output:
        output.write(json.dumps(asdict(result)) + "\n")


@dataclass(frozen=True, slots=True)
class Summary:
    """The medians of the valid runs of one contestant at one work item; `spread` is the range of the seconds."""

    machine: str
    work: str
    size: int
    changes: int
    contestant: str
    runs: int
    outcome: str
    error: str
    seconds: float
    spread: tuple[float, float]
    cpu_seconds: float
    other_cpu_seconds: float
    peak_memory: float
    written: float
    series: tuple[float, ...]


def measured_keys(results: Iterable[Result], planned: Iterable[Key], machine: str) -> set[Key]:
    """Return which of the planned runs are not repeated on a machine.

    They are all if one machine has run all of them. Otherwise the runs of other machines do not count, because runs
    that are compared must be of one machine.
    """
    expected = set(planned)
    by_machine: dict[str, set[Key]] = {}
    for result in results:
        by_machine.setdefault(result.machine, set()).add(result.key)
    if any(expected <= keys for keys in by_machine.values()):
        return expected
    return expected & by_machine.get(machine, set())


def results_of_one_machine(results: Sequence[Result]) -> list[Result]:
    """Return the results of one machine for each work item and size: of the one that has most, or else the last one."""
    by_item: dict[tuple[str, int, int], dict[str, int]] = {}
    for result in results:
        counts = by_item.setdefault(result.key[:3], {})
        counts[result.machine] = counts.pop(result.machine, 0) + 1
    selected = {item: max(reversed(counts), key=counts.__getitem__) for item, counts in by_item.items()}
    return [result for result in results if result.machine == selected[result.key[:3]]]


def summarize(results: Sequence[Result]) -> list[Summary]:
    """Return one summary for each contestant, work item and size, in the order of the results.

    The results of a work item are those of one machine, see `results_of_one_machine`.
    """
    groups: dict[tuple[str, int, int, str], list[Result]] = {}
    for result in results_of_one_machine(results):
        groups.setdefault(result.key[:4], []).append(result)
    return [_summary(group) for group in groups.values()]


def _summary(results: Sequence[Result]) -> Summary:
    valid = [result for result in results if result.is_valid]
    first_invalid = next((result for result in results if not result.is_valid), None)
    representative = first_invalid or results[0]
    seconds = [result.seconds for result in valid] or [0.0]
    return Summary(
        results[0].machine,
        *results[0].key[:4],
        runs=len(valid),
        outcome=representative.outcome,
        error=representative.error,
        seconds=statistics.median(seconds),
        spread=(min(seconds), max(seconds)),
        cpu_seconds=_median(result.cpu_seconds for result in valid),
        other_cpu_seconds=_median(result.other_cpu_seconds for result in valid),
        peak_memory=_median(result.peak_memory for result in valid),
        written=_median(result.written for result in valid),
        series=tuple(statistics.median(values) for values in zip(*(r.series for r in valid), strict=False)),
    )


def _median(values: Iterable[float]) -> float:
    listed = list(values)
    return statistics.median(listed) if listed else 0.0
