"""Generate docs/requirements.md: `python -m scd_pipeline_tests.semantics.requirements.page`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import scd_pipeline_tests
from scd_pipeline_tests.semantics.requirements.rows import INTRODUCTION, NOT_BUILT, ROWS, SECTIONS

PAGE = Path(__file__).parents[3] / "docs" / "requirements.md"


@dataclass(frozen=True)
class RequirementTest:
    """A test of requirements, as it is listed on the page."""

    file: str
    name: str
    rows: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name of the test in words."""
        words = self.name.removeprefix("test_").replace("_", " ")
        return words[0].upper() + words[1:]


def collect_tests() -> list[RequirementTest]:
    """The tests that claim a requirement, in order of their files."""
    package = scd_pipeline_tests
    modules = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    files = sorted(name for name in modules if name.rpartition(".")[2].startswith("test_"))
    return [test for file in files if "requirement" in _source(file) for test in _tests_of(file)]


def _source(module: str) -> str:
    return (Path(__file__).parents[3] / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


def _tests_of(name: str) -> Iterator[RequirementTest]:
    module = importlib.import_module(name)
    for test, function in vars(module).items():
        is_own = isinstance(function, FunctionType) and test.startswith("test_")
        marks = getattr(function, "pytestmark", []) if is_own else []
        rows = tuple(number for mark in marks if mark.name == "requirement" for number in mark.args)
        if rows:
            yield RequirementTest(f"../{name.replace('.', '/')}.py", test, rows)


def render_page() -> str:
    """The text of the page."""
    tests = collect_tests()
    parts = [INTRODUCTION.strip(), _summary()]
    for section, numbers in SECTIONS.items():
        parts += [f"## {section}", _table(numbers, tests)]
    return "\n\n".join(parts) + "\n"


def _summary() -> str:
    missing = [number for number, row in ROWS.items() if row.missing == NOT_BUILT]
    partial = [number for number, row in ROWS.items() if row.missing and row.missing != NOT_BUILT]
    return f"**Not built yet:** {', '.join(missing)}. **Built in part:** {', '.join(partial)}."


def _table(numbers: tuple[str, ...], tests: list[RequirementTest]) -> str:
    lines = ["| row | requirement | tests |", "| --- | --- | --- |"]
    for number in numbers:
        row = ROWS[number]
        text = f"{row.text} *{row.missing}*" if row.missing else row.text
        links = "<br>".join(f"[{test.title}]({test.file})" for test in tests if number in test.rows)
        lines.append(f"| {number} | {_cell(text)} | {links} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(render_page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
