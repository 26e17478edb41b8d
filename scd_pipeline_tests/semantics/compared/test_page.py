"""docs/coming-from/compared.md equals the page generated from the histories, and has no difference without a rule."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.semantics.compared.histories import CHECK, History, Merge
from scd_pipeline_tests.semantics.compared.page import ALL, PAGE, render_page
from scd_pipeline_tests.semantics.compared.peers import RUNS, difference
from scd_pipeline_tests.semantics.rules import RULES
from scd_pipeline_tests.semantics.specification import expected
from scd_pipeline_tests.text_tables import header, same_rows


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), f"{PAGE.name} is stale; run `make docs`"


@pytest.mark.parametrize("history", ALL, ids=lambda history: history.title)
def test_rows_of_another_tool_differ_by_a_rule_or_are_equal(history: History | Merge) -> None:
    rows = history.becomes
    for outcome in history.outcomes:
        if outcome.table:
            assert outcome.rule in RULES and outcome.note
            assert header(outcome.table) == header(rows)
            assert same_rows(expected(rows), expected(outcome.table))
        else:
            assert not outcome.rule


def test_a_result_that_is_not_on_the_page_is_reported() -> None:
    run = next(run for run in RUNS if run.history.title == "A new column" and run.tool is CHECK)
    row = {"city": "Bonn", "email": None, "effective_from": "2024-01-01 00:00:00", "effective_to": None}
    assert difference(run, [{"id": "1", **row}, {"id": "2", **row, "city": "Kiel"}], []) == ""
    assert difference(run, [{"id": "1", **row}], []).splitlines() == [
        "A new column, dbt `check`:",
        "  | id | city | email | effective_from | effective_to |",
        "  | 1  | Bonn | NULL  | 2024-01-01     | OPEN         |",
        "- | 2  | Kiel | NULL  | 2024-01-01     | OPEN         |",
    ]
    assert "failed deliveries: [2]" in difference(run, [], [2])
