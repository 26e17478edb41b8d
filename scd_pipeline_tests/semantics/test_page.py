"""docs/semantics.md equals the page generated from the rules and the tests."""

from __future__ import annotations

import re

import pytest

from scd_pipeline_tests.semantics.page import PAGE, collect_tests, render_page
from scd_pipeline_tests.semantics.rules import RULES, SECTIONS

TESTED_RULES = {number for test in collect_tests() for number in test.numbers}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), "docs/semantics.md is stale; run `make docs`"


def test_every_rule_is_in_one_section() -> None:
    numbers_in_sections = [number for numbers in SECTIONS.values() for number in numbers]
    numbers = [f"S{i}" for i in range(1, 43)]
    assert sorted(numbers_in_sections, key=lambda number: int(number[1:])) == numbers
    assert set(numbers_in_sections) == set(RULES)


@pytest.mark.parametrize("number", [number for number, rule in RULES.items() if rule.built])
def test_every_rule_that_is_built_has_tests(number: str) -> None:
    assert number in TESTED_RULES


def test_no_test_has_a_rule_that_is_not_built() -> None:
    assert {number for number, rule in RULES.items() if rule.built} >= TESTED_RULES


def test_every_link_points_to_a_file() -> None:
    for target in set(re.findall(r"\]\(([^)#]+)\)", render_page())):
        assert (PAGE.parent / target).exists(), target


def test_titles_are_unique() -> None:
    names = [test.name for test in collect_tests()]
    assert len(set(names)) == len(names)
