"""Evaluate the checklist of a dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scd_pipeline.operations.checklist import build, design, operation, performance, quality
from scd_pipeline.operations.checklist.items import Item, Outcome
from scd_pipeline.operations.checklist.state import DimensionState

SECTIONS: Mapping[str, tuple[Item, ...]] = {
    "design": design.ITEMS,
    "build": build.ITEMS,
    "performance": performance.ITEMS,
    "quality": quality.ITEMS,
    "operation": operation.ITEMS,
}
"""The items of the checklist by section."""


@dataclass(frozen=True, slots=True)
class ChecklistResult:
    """The result of one item of the checklist.

    Attributes:
        table: The dimension.
        section: The section: design, build, performance, quality or operation.
        item: The name of the item.
        outcome: passed, failed or not applicable.
        evidence: What shows it: a field of the declaration, table property, check, schedule, sensor, variable or file.
            The evidence of an item that fails includes the fix.
    """

    table: str
    section: str
    item: str
    outcome: Outcome
    evidence: str

    @property
    def failed(self) -> bool:
        """Whether the item fails."""
        return self.outcome == "failed"

    def __str__(self) -> str:
        return f"{self.table}: {self.item}: {self.outcome}: {self.evidence}"


def evaluate(state: DimensionState) -> tuple[ChecklistResult, ...]:
    """Return the result of each item of the checklist, in the order of the sections."""
    evaluated = [(section, item, item.evaluate(state)) for section, items in SECTIONS.items() for item in items]
    return tuple(
        ChecklistResult(state.dimension.name, section, item.name, result.outcome, result.evidence)
        for section, item, result in evaluated
    )
