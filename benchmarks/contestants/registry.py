"""Which contestants run which work item: only where a comparison needs them."""

from __future__ import annotations

from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.floors import Comparison, EmptyAppend, KeyScan, PlainWrite
from benchmarks.contestants.joins import AsOfJoin, PlainJoin, StoredKeyJoin, UnionWindow
from benchmarks.contestants.mack import MackUpsert
from benchmarks.contestants.merges import DocumentedMerge, PrefilteredMerge, TwoPassMerge
from benchmarks.contestants.pipeline import Pipeline, PipelineDimension, PipelineReload
from benchmarks.contestants.pipeline_process import PipelineProcess
from benchmarks.contestants.processes import (
    DbtSnapshot,
    DeltaRsMerge,
    DltScd2,
    DuckDbAsOf,
    DuckDbSql,
    PolarsAsOf,
    SqlMeshScd2,
)

CONTESTANTS: dict[str, tuple[type[Contestant], ...]] = {
    "first": (PlainWrite, Pipeline, PipelineDimension),
    "a": (
        DocumentedMerge,
        PrefilteredMerge,
        TwoPassMerge,
        MackUpsert,
        Comparison,
        DuckDbSql,
        DbtSnapshot,
        DeltaRsMerge,
        DltScd2,
        SqlMeshScd2,
        Pipeline,
        PipelineDimension,
        PipelineProcess,
    ),
    "c": (DocumentedMerge, PrefilteredMerge, KeyScan, EmptyAppend, Pipeline, PipelineDimension),
    "d": (Pipeline, PipelineDimension),
    "e": (Pipeline,),
    "e1": (Pipeline,),
    "f": (PlainJoin, UnionWindow, DuckDbAsOf, PolarsAsOf, Pipeline),
    "f-versions": (PlainJoin, UnionWindow, DuckDbAsOf, PolarsAsOf, Pipeline),
    "f-skew": (PlainJoin, UnionWindow, DuckDbAsOf, PolarsAsOf, Pipeline),
    "f-second": (Pipeline,),
    "g": (Pipeline, PipelineReload),
    "h": (Comparison, Pipeline, PipelineDimension),
    "i": (Pipeline,),
    "i-after": (Pipeline,),
    "j": (AsOfJoin, StoredKeyJoin),
}


def contestants(work: str, names: tuple[str, ...] = ()) -> tuple[Contestant, ...]:
    """Return the contestants of a work item; only those with these names, if any are given."""
    return tuple(contestant() for contestant in CONTESTANTS[work] if not names or contestant.name in names)
