"""Loads: plan what some deliveries change, then commit it to a dimension or a fact and its other tables."""

from __future__ import annotations

from scd_pipeline.load.audit import load_and_record
from scd_pipeline.load.dimension import LoadResult, Retry, load, plan
from scd_pipeline.load.facts import load_fact, plan_fact
from scd_pipeline.load.load_plan import LoadPlan

__all__ = ["LoadPlan", "LoadResult", "Retry", "load", "load_and_record", "load_fact", "plan", "plan_fact"]
