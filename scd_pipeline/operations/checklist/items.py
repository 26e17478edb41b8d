"""An item of the checklist, and its result with the evidence for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scd_pipeline.operations.checklist.state import DimensionState

Outcome = Literal["passed", "failed", "not applicable"]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of an item, and its evidence: a field, table property, check, schedule, sensor, variable or file."""

    outcome: Outcome
    evidence: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the checklist: its name, a sentence that is true if it passes, and its evaluation."""

    name: str
    sentence: str
    evaluate: Callable[[DimensionState], Result]


def passed(evidence: str) -> Result:
    """Return the result of an item that passes."""
    return Result("passed", evidence)


def failed(evidence: str) -> Result:
    """Return the result of an item that fails; the evidence includes the fix."""
    return Result("failed", evidence)


def not_applicable(reason: str) -> Result:
    """Return the result of an item that does not concern the dimension."""
    return Result("not applicable", reason)


def table_missing(state: DimensionState, suffix: str = "") -> Result:
    """Return the result of an item whose table does not exist."""
    return failed(f"table {state.dimension.name}{suffix} does not exist; load the dimension")


def code_location_missing(state: DimensionState) -> Result:
    """Return the result of an item that needs the Dagster definitions, if they could not be loaded."""
    return failed(f"no Dagster definitions: {state.code_location_problem}; name their module with --code-location")
