"""Generate docs/semantics.md: `python -m scd_pipeline_tests.semantics.page`."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from pathlib import Path

import scd_pipeline_tests.facts as facts
import scd_pipeline_tests.landing as landing
import scd_pipeline_tests.semantics as semantics
import scd_pipeline_tests.storage as storage
from scd_pipeline_tests.semantics.listed_tests import ListedTest, tests_with_mark
from scd_pipeline_tests.semantics.rules import INTRODUCTION, RULES, SECTIONS, Rule
from scd_pipeline_tests.semantics.specification import Case, DeliveryTable

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"


def collect_tests() -> list[ListedTest]:
    """The tests that have a rule, in order of their files."""
    tests = []
    for package in (semantics, facts, landing, storage):
        names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
        files = [name for name in names if name.startswith("test_")]
        tests += [test for file in files for test in tests_with_mark(f"{package.__name__}.{file}", "rule")]
    return tests


def render_page() -> str:
    """The text of the page."""
    tests = collect_tests()
    parts = [INTRODUCTION.strip(), _not_built()]
    for section, numbers in SECTIONS.items():
        parts += [f"## {section}", *(_rule(number, tests) for number in numbers)]
    return "\n\n".join(parts) + "\n"


def _not_built() -> str:
    names = [f"{number} ({rule.title})" for number, rule in _in_order() if not rule.built]
    parts = [f"- {number}: {rule.missing}" for number, rule in _in_order() if rule.missing]
    return "\n".join(
        ["**Not built yet:** " + "; ".join(names) + ". Parts of these rules are not built either:", "", *parts]
    )


def _in_order() -> list[tuple[str, Rule]]:
    return [(number, RULES[number]) for numbers in SECTIONS.values() for number in numbers]


def _rule(number: str, tests: list[ListedTest]) -> str:
    rule, own_tests = RULES[number], [test for test in tests if number in test.numbers]
    parts = [f'<a id="{number.lower()}"></a>', f"### {number}. {rule.title}"]
    parts += [] if rule.built else ["*Not built yet.*"]
    parts.append(inspect.cleandoc(rule.text))
    parts += ["Details:\n\n" + "\n".join(f"- {text}" for text in rule.decided)] if rule.decided else []
    parts += [f"*{rule.missing}*"] if rule.missing else []
    parts += [_example(test.title, test.case) for test in own_tests if _is_example(number, test) and test.case]
    parts += [_tests(own_tests)] if own_tests else []
    return "\n\n".join(parts)


def _is_example(number: str, test: ListedTest) -> bool:
    return test.case is not None and test.case.on_page and test.numbers[0] == number


def _example(title: str, case: Case) -> str:
    tables = [*(f"-- {_caption(table)}\n{table.table}" for table in case.tables), f"-- becomes\n{case.becomes}"]
    tables += [f"-- quarantine\n{case.quarantine}"] if case.quarantine else []
    return f"Example: {title[0].lower()}{title[1:]}\n\n```text\n" + "\n\n".join(tables) + "\n```"


def _caption(table: DeliveryTable) -> str:
    return f"{table.source} delivers by {'snapshots' if table.channel == 'snapshot' else 'a feed'}"


def _tests(tests: list[ListedTest]) -> str:
    lines = [f"- [{test.title}]({test.file})" for test in tests]
    return "\n".join(["Tests:", "", *lines])


def main() -> None:
    """Write the page."""
    PAGE.write_text(render_page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
