"""Evaluate the checklist of a dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scd_pipeline.operations.checklist import build, design, operation, performance, quality
from scd_pipeline.operations.checklist.lines import Line, Outcome
from scd_pipeline.operations.checklist.state import DimensionState

SECTIONS: Mapping[str, tuple[Line, ...]] = {
    "design": design.LINES,
    "build": build.LINES,
    "performance": performance.LINES,
    "quality": quality.LINES,
    "operation": operation.LINES,
}
"""The lines of the checklist by section."""


@dataclass(frozen=True, slots=True)
class ChecklistResult:
    """The result of one line of the checklist.

    Attributes:
        table: The dimension.
        section: The section: design, build, performance, quality or operation.
        line: The name of the line.
        outcome: passed, failed or not applicable.
        evidence: What shows it: a field of the declaration, table property, check, schedule, sensor, variable or file.
            The evidence of a line that fails includes the fix.
    """

    table: str
    section: str
    line: str
    outcome: Outcome
    evidence: str

    @property
    def failed(self) -> bool:
        """Whether the line fails."""
        return self.outcome == "failed"

    def __str__(self) -> str:
        return f"{self.table}: {self.line}: {self.outcome}: {self.evidence}"


def evaluate(state: DimensionState) -> tuple[ChecklistResult, ...]:
    """Return the result of each line of the checklist, in the order of the sections."""
    evaluated = [(section, line, line.evaluate(state)) for section, lines in SECTIONS.items() for line in lines]
    return tuple(
        ChecklistResult(state.dimension.name, section, line.name, result.outcome, result.evidence)
        for section, line, result in evaluated
    )
