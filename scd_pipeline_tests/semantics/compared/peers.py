"""Load the histories with other tools, each of them in a Python environment of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contestants.processes import run_program
from scd_pipeline_tests.semantics.compared.histories import (
    HISTORIES,
    MERGES,
    History,
    Merge,
    Outcome,
    Tool,
)
from scd_pipeline_tests.semantics.specification import DeliveredBatch, expected
from scd_pipeline_tests.text_tables import OPEN, header, parse_cell, same_rows

FOLDER = Path(__file__).parents[3] / "build" / "benchmark" / "environments"
"""The folder of the environments, which the benchmark uses too."""


@dataclass(frozen=True)
class Run:
    """A history that a tool loads, and the expected outcome."""

    history: History | Merge
    tool: Tool
    outcome: Outcome


RUNS = tuple(
    Run(history, tool, outcome)
    for history in (*HISTORIES, *MERGES)
    for outcome in history.outcomes
    for tool in outcome.tools
)
ENVIRONMENTS = {run.tool.program: run.tool.environment for run in RUNS}
"""The environment of each program."""


def is_installed(program: str) -> bool:
    """Return whether the environment of a program is complete."""
    return (FOLDER / ENVIRONMENTS[program] / "requirements.txt").exists()


def differences(program: str, folder: Path) -> list[str]:
    """Run a program, and return how its results differ from the expected outcomes; none if they are as expected.

    Args:
        program: The name of the program, whose environment is installed.
        folder: An empty folder for the files of the tool.

    Raises:
        RuntimeError: The program failed.
    """
    runs = [run for run in RUNS if run.tool.program == program]
    tasks, results = folder / "tasks.json", folder / "results.json"
    tasks.write_text(json.dumps([_task(number, run) for number, run in enumerate(runs)]), encoding="utf-8")
    python = FOLDER / ENVIRONMENTS[program] / "bin" / "python"
    run_program([str(python), "-m", f"{__package__}.programs.{program}", str(tasks), str(results)], folder)
    measured = json.loads(results.read_text(encoding="utf-8"))
    return [text for run, result in zip(runs, measured, strict=True) if (text := difference(run, **result))]


def difference(run: Run, rows: Sequence[Mapping[str, str | None]], failed: Sequence[int]) -> str:
    """Return how the result of a run differs from the expected one; empty if it does not."""
    table = run.outcome.table or run.history.becomes
    lines = [same_rows(expected(table), list(map(_parsed, rows)), header(table))]
    lines += [f"failed deliveries: {list(failed)}"] if tuple(failed) != run.outcome.failed else []
    text = "\n".join(filter(None, lines))
    return f"{run.history.title}, {run.tool.name}:\n{text}" if text else ""


def _task(number: int, run: Run) -> dict[str, Any]:
    """Return what the program loads; see `programs/request.py`."""
    deliveries = [_delivery(batch) for batch in run.history.batches]
    return {"name": f"history_{number}", "options": run.tool.options, "deliveries": deliveries}


def _delivery(batch: DeliveredBatch) -> dict[str, Any]:
    columns = [name for name in batch.columns if not batch.rows or any(name in row for row in batch.rows)]
    return {"at": str(batch.at), "columns": columns, "rows": [dict(row) for row in batch.rows]}


def _parsed(row: Mapping[str, str | None]) -> dict[str, Any]:
    values = {name: None if text is None else parse_cell(text) for name, text in row.items()}
    return {**values, "effective_to": values.get("effective_to") or OPEN}
