"""Evaluate the checklist of a dimension."""

from __future__ import annotations

from dataclasses import dataclass

from scd_pipeline.operations.checklist.items import SECTIONS, Item
from scd_pipeline.operations.checklist.state import DimensionState, NotPassed, Outcome


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
    return tuple(
        ChecklistResult(state.dimension.name, section, item.name, *_result(item, state))
        for section, items in SECTIONS.items()
        for item in items
    )


def _result(item: Item, state: DimensionState) -> tuple[Outcome, str]:
    try:
        return "passed", item.evaluate(state)
    except NotPassed as reason:
        return reason.outcome, str(reason)
