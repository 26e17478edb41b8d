"""A landing table as a source in YAML and in Python (S28, S38)."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Dimension, LandingTable, Source, describe, parse_declarations
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.unit.test_yaml_faults import declaration_errors

RAW = "landing_table: raw\ndisposition: append\ncolumns: [id, name]\nsources: {api: {feed: 'raw_{date}.csv'}}\n---\n"
ISSUE = "dimension: dim_issue\nbusiness_key: id\nattributes: {name: 1}\nsources: {issues: {landing_table: raw}}\n"
FACT = (
    "---\nfact: fct_line\ngrain: id\nevent_time: delivery\ndimensions: {issue: dim_issue}\n"
    "sources: {raw: {landing_table: raw}}\n"
)


@rule("S38")
@pytest.mark.parametrize("text", [RAW + ISSUE, ISSUE + "---\n" + RAW.removesuffix("---\n")])
def test_a_dimension_names_a_landing_table_before_or_after_it(text: str) -> None:
    declared = parse_declarations(text)
    table = LandingTable("raw", "append", ["id", "name"], Source("api", feed="raw_{date}.csv"))
    expected = Dimension("dim_issue", "id", {"name": 1}, Source("issues", landing_table=table))
    assert declared.dimensions == (expected,)
    assert [each.name for each in declared.tables] == ["raw", "dim_issue"], "the order of their loads"
    assert parse_declarations(RAW + describe(expected)).dimensions == (expected,)


FAULTS = {
    RAW + ISSUE.replace("raw}", "rew}"): [("sources.issues.landing_table", "UNKNOWN_NAME")],
    RAW + ISSUE.replace("raw}", "raw, feed: {}}"): [("sources.issues.landing_table", "CONFLICTING_OPTIONS")],
    RAW.replace("append", "apend") + ISSUE: [("disposition", "NOT_ALLOWED")],
    RAW + ISSUE + FACT: [("sources.raw.landing_table", "NOT_APPLICABLE")],
}


@rule("S28", "S38")
@pytest.mark.parametrize("text", FAULTS)
def test_an_invalid_landing_table_of_a_source_is_reported_once(text: str) -> None:
    errors = declaration_errors(lambda: parse_declarations(text))
    assert [(error.field, error.code) for error in errors] == FAULTS[text]


def test_a_source_is_a_landing_table_and_not_its_name() -> None:
    errors = declaration_errors(
        lambda: Dimension("dim_issue", "id", {"name": 1}, Source("issues", landing_table="raw"))  # type: ignore[arg-type]
    )
    assert [(error.field, error.code) for error in errors] == [("sources.issues.landing_table", "INVALID_KIND")]


@rule("S38", "S28")
@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("id", '{id: {expression: "upper(code)"}}'),
        ("id", "{id: payload.id}"),
        ("id", "{id: [code, old_code]}"),
        ("whole_row", "{}"),
    ],
)
def test_the_business_key_is_read_from_a_column_of_a_landing_table_that_removes_rows(key: str, columns: str) -> None:
    text = """
landing_table: raw
disposition: {disposition}
columns: [code, old_code, payload, name]
sources: {{api: {{{channel}: {{}}}}}}
---
dimension: dim_x
business_key: {key}
attributes: {{name: 2}}
sources: {{raw: {{landing_table: raw, columns: {columns}}}}}
single_scd_type: true
""".lstrip()
    appended = text.format(disposition="append", channel="feed", key=key, columns=columns)
    assert len(parse_declarations(appended).dimensions) == 1
    with pytest.raises(DeclarationError, match="by which a row that it no longer has is found"):
        parse_declarations(text.format(disposition="replace", channel="snapshot", key=key, columns=columns))
