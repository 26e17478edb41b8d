"""The names of checks: one table for library, command line and Dagster."""

from __future__ import annotations

import re
from pathlib import Path

from scd_pipeline.declaration import Attribute, Dimension, ExpectedValue, Fact, Role, Source
from scd_pipeline.invariants.check_descriptions import (
    CHECK_DESCRIPTIONS,
    CHECKLIST_IS_COMPLETE,
    DELIVERIES_ACCEPTED,
    SOURCES_ARE_ON_TIME,
    STORED_ROWS_EQUAL_READ,
)
from scd_pipeline.operations.check import check_names

DOCS = Path(__file__).parents[2] / "docs"
CUSTOMER = Dimension(
    "dim_customer",
    "id",
    {"city": 2, "calls": Attribute(2, "array<struct<number:string>>")},
    Source("crm", snapshot="customers_{date}.csv"),
    child_tables="calls",
    expected_values={"customers": ExpectedValue("2024-01-31", "count(*)", 3)},
)
ROLE = Role(CUSTOMER, unknown_limit=0.1)
SALE = Fact("fct_sale", {"sale_id": "int"}, "sold_at", {"customer": ROLE}, Source("shop", feed="sales_{date}.csv"))


def test_every_check_is_named_by_a_property_of_the_table() -> None:
    others = {DELIVERIES_ACCEPTED, SOURCES_ARE_ON_TIME, CHECKLIST_IS_COMPLETE, STORED_ROWS_EQUAL_READ}
    assert {*check_names(CUSTOMER), *check_names(SALE), *others} == set(CHECK_DESCRIPTIONS)


def test_a_description_is_a_sentence_that_links_to_its_rules() -> None:
    """It is true where the check passes: it does not describe a violation."""
    anchors = set(re.findall(r'<a id="(s\d+)"></a>', (DOCS / "semantics.md").read_text(encoding="utf-8")))
    for name, check in CHECK_DESCRIPTIONS.items():
        assert re.fullmatch(r"[A-Z][^()]+[a-z]( \(S\d+(, S\d+)*\))?\.", check.text), name
        assert {rule.lower() for rule in check.rules} <= anchors, name


def test_the_page_lists_every_check_as_the_table_has_it() -> None:
    page = (DOCS / "reference" / "dagster.md").read_text(encoding="utf-8")
    for name, check in CHECK_DESCRIPTIONS.items():
        links = ", ".join(f"[{rule}](../semantics.md#{rule.lower()})" for rule in check.rules)
        assert f"| `{name}` | {check.sentence} | {links} |" in page
