"""Which contestants run which work item: only where a comparison needs them."""

from __future__ import annotations

from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.floors import Comparison, EmptyAppend, KeyScan, PlainWrite
from benchmarks.contestants.merges import DocumentedMerge, PrefilteredMerge, TwoPassMerge
from benchmarks.contestants.pipeline import Pipeline, PipelineDimension

CONTESTANTS: dict[str, tuple[type[Contestant], ...]] = {
    "first": (PlainWrite, Pipeline, PipelineDimension),
    "a": (DocumentedMerge, PrefilteredMerge, TwoPassMerge, Comparison, Pipeline, PipelineDimension),
    "c": (DocumentedMerge, PrefilteredMerge, KeyScan, EmptyAppend, Pipeline, PipelineDimension),
    "d": (Pipeline, PipelineDimension),
    "h": (Comparison, Pipeline, PipelineDimension),
}


def contestants(work: str, names: tuple[str, ...] = ()) -> tuple[Contestant, ...]:
    """Return the contestants of a work item; only those with these names, if any are given."""
    return tuple(contestant() for contestant in CONTESTANTS[work] if not names or contestant.name in names)
