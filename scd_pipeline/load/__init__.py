"""Loads: plan what some deliveries change, then commit it to a dimension or a fact and its other tables."""

from __future__ import annotations

from scd_pipeline.load.load_plan import LoadPlan
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import LoadResult, load, plan, record

__all__ = ["LoadPlan", "LoadResult", "Retry", "load", "plan", "record"]
