"""docs/requirements.md equals the page generated from the rows and the tests."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.semantics.listed_tests import ListedTest
from scd_pipeline_tests.semantics.requirements.page import PAGE, collect_tests, render_page
from scd_pipeline_tests.semantics.requirements.rows import NO_TABLE, ROWS, SECTIONS, SLOW


@pytest.fixture(scope="module")
def tests() -> list[ListedTest]:
    """The tests that claim rows."""
    return collect_tests()


def test_the_page_of_requirements_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), "docs/requirements.md is stale; run `make docs`"


def test_every_row_is_in_one_section() -> None:
    numbers = [number for section in SECTIONS.values() for number in section]
    assert numbers == list(ROWS)
    assert numbers == [
        *(f"F{number}" for number in range(1, 77)),
        *(f"X{number}" for number in range(1, 24)),
        *SECTIONS["Timed tables"],
        *SECTIONS["Histories of base tables"],
        *SECTIONS["Landing tables and dlt's strategies"],
        *SECTIONS["Fact loads"],
    ]


@pytest.mark.parametrize("number", ROWS)
def test_each_row_has_a_test_that_is_not_slow_or_a_reason_why_not(tests: list[ListedTest], number: str) -> None:
    own = [test for test in tests if number in test.numbers]
    assert own != []
    assert number in SLOW.split() or not all(test.is_slow for test in own)


def test_each_row_has_such_a_test_on_tables_or_a_reason_why_not(tests: list[ListedTest]) -> None:
    """A test without a session compares declarations or functions, and shows nothing about stored rows."""
    on_tables = {number for test in tests for number in test.numbers if not test.is_slow and test.has_session}
    assert set(ROWS) - on_tables == set(NO_TABLE)


def test_fixtures_of_fixtures_are_known(tests: list[ListedTest]) -> None:
    sessions = {test.name: test.has_session for test in tests}
    assert sessions["test_two_current_versions_are_reported_and_their_repair_is_audited"], "played, _played, spark"
    assert sessions["test_a_version_ends_exactly_where_the_next_one_starts"], "a case"
    assert not sessions["test_a_declaration_with_one_type_for_all_attributes_is_reported"]


def test_a_test_claims_at_most_three_rows_that_exist(tests: list[ListedTest]) -> None:
    for test in tests:
        assert len(test.numbers) <= 3, test.name
        assert set(test.numbers) <= set(ROWS), test.name
