"""A load before it is an act."""

from __future__ import annotations

from scd_pipeline.ingest import BatchResult
from scd_pipeline.plan.load_plan import LoadPlan, make_plan
from scd_pipeline.plan.log import changed_entities, counted_rows, open_log, took_of
from scd_pipeline.plan.rows import Extension

__all__ = [
    "BatchResult",
    "Extension",
    "LoadPlan",
    "changed_entities",
    "counted_rows",
    "make_plan",
    "open_log",
    "took_of",
]
