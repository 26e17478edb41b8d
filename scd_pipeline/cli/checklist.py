"""The command `scd checklist`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from scd_pipeline.cli.console import progress, report
from scd_pipeline.cli.context import CODE_LOCATION, Settings, complete_tables, is_path, with_output, with_settings
from scd_pipeline.cli.render import Output, print_table, table_width
from scd_pipeline.cli.rows import Rows, of_kind
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.errors import UsageError
from scd_pipeline.exit_codes import ExitCode

if TYPE_CHECKING:
    from scd_pipeline.operations.checklist.evaluate import ChecklistResult
    from scd_pipeline.operations.checklist.state import CodeLocation

_COLUMNS = of_kind("text", "table", "section", "item", "result", "evidence")
_DESCRIBE = "scd_pipeline.components.code_location"
"""The module that prints the definitions of a code location, in a process of its own."""


@click.command()
@click.argument("table", required=False, metavar="[DIMENSION]", shell_complete=complete_tables)
@click.option(
    "--code-location",
    "module",
    metavar="MODULE",
    help="Python module of the Dagster definitions  [default: the first one in ./workspace.yaml, else "
    f"{CODE_LOCATION}].",
)
@with_settings
@with_output
def checklist(settings: Settings, *, table: str | None, module: str | None, output: Output) -> ExitCode:
    """Check that design, build, performance, quality and operation are complete.

    Each item of the checklist is passed, failed or not applicable, and has its evidence, such as a field of the
    declaration, a table property or a schedule. Without DIMENSION, all declared dimensions are checked. The command
    fails if an item fails.
    """
    dimensions, facts = _declared(settings, table)
    with progress("loading the Dagster definitions"):
        location = describe_code_location(settings, table, module or workspace_module(Path.cwd()) or CODE_LOCATION)
    results = _evaluate(settings, dimensions, facts, location)
    if output.is_table:
        for dimension in dimensions:
            _print(dimension.name, [result for result in results if result.table == dimension.name], output)
    else:
        output.write(_rows(results))
        for dimension in dimensions:
            report(_summary(dimension.name, [result for result in results if result.table == dimension.name]))
    return ExitCode.FAILED if any(result.failed for result in results) else ExitCode.DONE


def _declared(settings: Settings, requested: str | None) -> tuple[list[Dimension], list[Fact]]:
    """Return the requested dimensions, and all facts that are declared with them.

    Raises:
        UsageError: The argument names no dimension.
    """
    tables = settings.declared_tables(requested)
    dimensions = [table for table in tables if isinstance(table, Dimension)]
    if requested is not None and not dimensions:
        raise UsageError("ONE_DIMENSION_EXPECTED", requested, tables=", ".join(table.name for table in tables))
    return dimensions, settings.declared_facts(requested)


def describe_code_location(settings: Settings, requested: str | None, module: str) -> CodeLocation | str:
    """Return what a module of Dagster definitions defines, or why it cannot be loaded.

    Args:
        settings: The settings, of which the definitions get the declarations.
        requested: The argument of the command, which may be a file or folder of declarations.
    """
    from scd_pipeline.operations.checklist.state import CodeLocation

    declarations = Path(str(requested)).absolute() if is_path(requested) else settings.declarations
    environ = {**settings.environment.variables, **({"SCD_DECLARATIONS": str(declarations)} if declarations else {})}
    command = [sys.executable, "-W", "ignore", "-m", _DESCRIBE, module]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return f"{module}: {lines[-1] if lines else f'exit code {done.returncode}'}"
    return CodeLocation.from_json(done.stdout.strip().splitlines()[-1])


def workspace_module(folder: Path) -> str:
    """Return the first Python module in the workspace.yaml of a folder; empty if it names none."""
    file = folder / "workspace.yaml"
    workspace = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    for entry in (workspace or {}).get("load_from", ()):
        target = entry.get("python_module", "")
        if target:
            return str(target if isinstance(target, str) else target["module_name"])
    return ""


def _evaluate(
    settings: Settings,
    dimensions: Sequence[Dimension],
    facts: Sequence[Fact],
    location: CodeLocation | str,
) -> list[ChecklistResult]:
    from scd_pipeline.operations.checklist.collect import collect_state
    from scd_pipeline.operations.checklist.evaluate import evaluate

    results: list[ChecklistResult] = []
    with settings.open() as warehouse:
        for step, dimension in enumerate(dimensions, start=1):
            with progress(f"checking {dimension.name}", step, len(dimensions)):
                state = collect_state(
                    warehouse,
                    dimension,
                    code_location=location,
                    facts=[fact.name for fact in facts if fact.references(dimension)],
                    alert_transports=settings.environment.alert_transports,
                    docs_url=settings.environment.docs_url,
                )
                results += evaluate(state)
    return results


def _rows(results: Sequence[ChecklistResult]) -> Rows:
    records = [(each.table, each.section, each.item, each.outcome, each.evidence) for each in results]
    return Rows.from_records(_COLUMNS, records)


def _print(name: str, results: Sequence[ChecklistResult], output: Output) -> None:
    """Print the table of a dimension, without the evidence if the terminal is too narrow, and the items that fail."""
    print(name)
    rows = _rows(results).select(["section", "item", "result", "evidence"])
    is_narrow = output.terminal_width is not None and table_width(rows) > output.terminal_width
    print_table(rows.select(["section", "item", "result"]) if is_narrow else rows, sys.stdout, output.terminal_width)
    for result in results:
        if result.failed:
            print(result)
    print(_summary(name, results))


def _summary(name: str, results: Sequence[ChecklistResult]) -> str:
    counts = {outcome: sum(each.outcome == outcome for each in results) for outcome in ("passed", "failed")}
    others = len(results) - sum(counts.values())
    return (
        f"{name}: {len(results)} items: {counts['passed']} passed, {counts['failed']} failed, {others} not applicable"
    )
