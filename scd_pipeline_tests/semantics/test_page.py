"""docs/semantics.md equals the page generated from the rules and the tests."""

from __future__ import annotations

import re

import pytest

from scd_pipeline_tests.semantics.page import PAGE, collected, page
from scd_pipeline_tests.semantics.rules import RULES, SECTIONS

SHOWN = {number for test in collected() for number in test.rules}


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "docs/semantics.md is stale; run `make docs`"


def test_every_rule_has_its_place() -> None:
    placed = [number for numbers in SECTIONS.values() for number in numbers]
    assert sorted(placed, key=lambda number: int(number[1:])) == [f"S{i}" for i in range(1, 36)]
    assert set(placed) == set(RULES)


@pytest.mark.parametrize("number", [number for number, rule in RULES.items() if rule.built])
def test_every_rule_that_is_built_has_tests(number: str) -> None:
    assert number in SHOWN


def test_no_test_shows_a_rule_that_is_not_built() -> None:
    assert {number for number, rule in RULES.items() if rule.built} >= SHOWN


def test_every_link_leads_to_a_file() -> None:
    for target in set(re.findall(r"\]\(([^)#]+)\)", page())):
        assert (PAGE.parent / target).exists(), target


def test_titles_tell_tests_apart() -> None:
    names = [test.name for test in collected()]
    assert len(set(names)) == len(names)
