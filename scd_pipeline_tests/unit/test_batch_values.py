"""Placeholders in expressions: what they become, and what is none."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration.batch_values import invalid_placeholders, placeholder_names, with_batch_values

RUN = "regexp_replace(_scd.batch, '/[^/]*$', '')"


@pytest.mark.parametrize(
    ("expression", "sql", "names"),
    [
        ("{{ load_timestamp }}", "_scd.at", {"load_timestamp"}),
        ("concat({{load_run_id}}, '-', id)", f"concat({RUN}, '-', id)", {"load_run_id"}),
        (r"regexp_replace(a, '^\\d{3}''{{2}', r'\')", r"regexp_replace(a, '^\\d{3}''{{2}', r'\')", set()),
        ("""get_json_object('{"a": {"b": 1}}', "$.a")""", """get_json_object('{"a": {"b": 1}}', "$.a")""", set()),
        ("`{city}`", "`{city}`", set()),
    ],
)
def test_a_placeholder_is_replaced_outside_of_quotes(expression: str, sql: str, names: set[str]) -> None:
    """Braces in texts, such as regular expressions and JSON, and in names of columns have no meaning."""
    assert (with_batch_values(expression), placeholder_names(expression)) == (sql, names)
    assert invalid_placeholders(expression) == []


@pytest.mark.parametrize(
    ("expression", "invalid"),
    [
        ("{load_run_id}", ["{load_run_id}"]),
        ("{{ run_id }} || {{ load_run_id }}", ["{{ run_id }}"]),
        ("{{ load run_id }}", ["{{ load run_id }}"]),
        ("{{ load_timestamp", ["{{ load_timestamp"]),
        ("load_timestamp }}", ["}}"]),
        ("{{ load_run_id }", ["{{ load_run_id }"]),
        ("'{{ load_run_id }}'", ["'{{ load_run_id }}'"]),
    ],
)
def test_braces_without_a_placeholder_are_invalid(expression: str, invalid: list[str]) -> None:
    assert invalid_placeholders(expression) == invalid
