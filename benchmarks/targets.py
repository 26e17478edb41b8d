"""Targets: ratios of medians of one benchmark. Ratios can be compared between machines, seconds cannot."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.results import Result, Summary, summarize
from benchmarks.suites import MILLION


@dataclass(frozen=True, slots=True)
class Figure:
    """The seconds of a contestant at a work item.

    `part` selects some of the loads of a series. `quantity` is wall time or processor time.
    """

    work: str
    size: int
    changes: int = 0
    contestant: str = "scd_pipeline"
    part: Callable[[Sequence[float]], Sequence[float]] | None = None
    quantity: Literal["seconds", "cpu_seconds"] = "seconds"

    def summary(self, summaries: Iterable[Summary]) -> Summary | None:
        """Return the summary that has the seconds, None if they were not measured."""
        key = (self.work, self.size, self.changes, self.contestant)
        for summary in summaries:
            if (summary.work, summary.size, summary.changes, summary.contestant) == key and summary.runs:
                return summary
        return None

    def value(self, summaries: Iterable[Summary]) -> float | None:
        """Return the median, None if it was not measured."""
        summary = self.summary(summaries)
        if summary is None:
            return None
        if self.part:
            return statistics.median(self.part(summary.series))
        value: float = getattr(summary, self.quantity)
        return value


@dataclass(frozen=True, slots=True)
class Target:
    """The largest ratio of two figures that is acceptable."""

    description: str
    figure: Figure
    reference: Figure
    limit: float

    def machines(self, summaries: Sequence[Summary]) -> set[str]:
        """Return the machines on which the figures were measured."""
        compared = (self.figure.summary(summaries), self.reference.summary(summaries))
        return {summary.machine for summary in compared if summary is not None}

    def ratio(self, summaries: Sequence[Summary]) -> float | None:
        """Return the ratio, None if the figures were not measured, or not on the same machine."""
        value, reference = self.figure.value(summaries), self.reference.value(summaries)
        if value is None or not reference or len(self.machines(summaries)) > 1:
            return None
        return value / reference


def _first_ten(series: Sequence[float]) -> Sequence[float]:
    return series[:10]


def _last_ten(series: Sequence[float]) -> Sequence[float]:
    return series[-10:]


_A, _F, _FEED = Figure("a", MILLION), 10 * MILLION, Figure("c", MILLION, 25_000)
_SMALL_FEED = Figure("c", 20_000, 100)
_LARGE_FEED = replace(_FEED, size=10 * MILLION)
_BATCHES = Figure("i", 100_000, 300, part=_first_ten)
_QUERY = Figure("j", 3 * MILLION, contestant="stored_key_join")
_SECOND = Figure("f-second", 3 * MILLION, 300_000)


def _against(figure: Figure, contestant: str) -> tuple[Figure, Figure]:
    return figure, replace(figure, contestant=contestant)


TARGETS = (
    Target("(a) all / documented MERGE", *_against(_A, "documented_merge"), 0.65),
    Target(
        "(a) dimension / documented MERGE",
        *_against(replace(_A, contestant="scd_pipeline_dimension"), "documented_merge"),
        0.45,
    ),
    Target(
        "(a) `scd load` / dbt snapshot", replace(_A, contestant="scd_load"), replace(_A, contestant="dbt_snapshot"), 1.3
    ),
    Target("first load / plain write", *_against(Figure("first", MILLION), "plain_write"), 4.0),
    Target("(b) 10 M / (a) 1 M", replace(_A, size=10 * MILLION), _A, 11.0),
    Target("(c) all / pre-filtered MERGE", *_against(_FEED, "prefiltered_merge"), 0.8),
    Target("(c) 100 into 20,000 / documented MERGE", *_against(_SMALL_FEED, "documented_merge"), 1.8),
    Target(
        "(c) 100 into 20,000 / documented MERGE, CPU",
        *_against(replace(_SMALL_FEED, quantity="cpu_seconds"), "documented_merge"),
        1.8,
    ),
    Target("(c) into 10 M / into 1 M", _LARGE_FEED, _FEED, 1.6),
    Target("(c) into 30 M / into 10 M", replace(_FEED, size=30 * MILLION), _LARGE_FEED, 2.0),
    Target("(c) 1,000 / 25,000 into 10 M", replace(_LARGE_FEED, changes=1_000), _LARGE_FEED, 0.5),
    Target("(d) 1% late / in order", replace(_FEED, work="d"), _FEED, 1.5),
    Target("(e) 50 snapshots / one", Figure("e", 50_000), Figure("e1", 50_000), 4.0),
    Target("(f) 5 versions / plain join", *_against(Figure("f", _F), "plain_join"), 1.4),
    Target("(f) 200 versions / plain join", *_against(Figure("f-versions", _F), "plain_join"), 1.4),
    Target("(f) one large key / plain join", *_against(Figure("f-skew", _F), "plain_join"), 1.4),
    Target("(f) second load into 30 M / 3 M", replace(_SECOND, size=30 * MILLION), _SECOND, 1.3),
    Target("(g) re-key / reload", *_against(Figure("g", _F), "scd_pipeline_reload"), 0.25),
    Target("(h) unchanged / comparison", *_against(Figure("h", MILLION), "comparison"), 1.6),
    Target("(i) last ten / first ten loads", replace(_BATCHES, part=_last_ten), _BATCHES, 1.3),
    Target("(i) after 5,000 deliveries / first ten", Figure("i-after", 100_000, 5_000), _BATCHES, 1.3),
    Target("(j) stored key / as-of join", *_against(_QUERY, "as_of_join"), 1.0),
)


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest number of seconds of a command that is acceptable on a machine with two cores."""

    description: str
    figure: Figure
    seconds: float


LIMITS = (
    Limit("`scd load` of 100 rows, warm server", Figure("scd_load", 100, contestant="warm_server"), 4.0),
    Limit("Dagster: dimension and fact", Figure("run", 100, contestant="dagster"), 8.0),
    Limit("Dagster: the first run of `scd dev`", Figure("first_run", 100, contestant="dagster"), 20.0),
    *[
        Limit(f"`scd {name}`, {label}", Figure(f"scd_{name.replace('-', '_')}", 0, contestant=contestant), seconds)
        for name in ("sql", "history", "as-of")
        for contestant, label, seconds in (("warm_server", "warm server", 1.5), ("embedded", "embedded", 9.0))
    ],
    Limit("the demo again, embedded", Figure("demo_again", 0, contestant="embedded"), 15.0),
    Limit("the demo again, warm server", Figure("demo_again", 0, contestant="warm_server"), 15.0),
)


def seconds(results: Sequence[Result]) -> list[tuple[Limit, float | None]]:
    """Return each limit with the measured median, None if it was not measured."""
    summaries = summarize(results)
    return [(limit, limit.figure.value(summaries)) for limit in LIMITS]


def ratios(results: Sequence[Result]) -> list[tuple[Target, float | None]]:
    """Return each target with its ratio, None if it was not measured on one machine."""
    summaries = summarize(results)
    return [(target, target.ratio(summaries)) for target in TARGETS]
