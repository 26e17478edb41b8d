"""Generate docs/requirements.md: `python -m scd_pipeline_tests.semantics.requirements.page`."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

import scd_pipeline_tests
from scd_pipeline_tests.semantics.listed_tests import ListedTest, tests_with_mark
from scd_pipeline_tests.semantics.requirements.rows import INTRODUCTION, NO_TABLE, ROWS, SECTIONS

PAGE = Path(__file__).parents[3] / "docs" / "requirements.md"


def collect_tests() -> list[ListedTest]:
    """The tests that claim a requirement, in order of their files."""
    package = scd_pipeline_tests
    modules = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    files = sorted(name for name in modules if name.rpartition(".")[2].startswith("test_"))
    return [test for file in files if "requirement" in _source(file) for test in tests_with_mark(file, "requirement")]


def _source(module: str) -> str:
    return (Path(__file__).parents[3] / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


def render_page() -> str:
    """The text of the page."""
    tests = collect_tests()
    parts = [INTRODUCTION.strip()]
    for section, numbers in SECTIONS.items():
        parts += [f"## {section}", _table(numbers, tests)]
    return "\n\n".join(parts) + "\n"


def _table(numbers: tuple[str, ...], tests: list[ListedTest]) -> str:
    lines = ["| row | requirement | tests |", "| --- | --- | --- |"]
    for number in numbers:
        links = "<br>".join(f"[{test.title}]({test.file})" for test in tests if number in test.numbers)
        text = " ".join([ROWS[number], *([f"*{NO_TABLE[number]}*"] if number in NO_TABLE else [])])
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
