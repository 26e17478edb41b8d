"""F64, F68: what a load reports of the attributes that open versions."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline.load.run import load
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import by_files, requirement, snapshots

VISITORS = """
dimension: dim_visitor
business_key: id
sources: {crm: {snapshot: {}}}
attributes: {tier: 2, last_seen: 2, email: 1}
"""
FIRST = """
| delivery | at         | id    | tier   | last_seen | email |
| 1        | 2024-01-01 | 1..20 | Bronze | Monday    | a     |
"""
SECOND = """
| delivery | at         | id     | tier   | last_seen | email |
| 2        | 2024-01-02 | 1..11  | Bronze | Tuesday   | b     |
| 2        | 2024-01-02 | 12..20 | Silver | Monday    | b     |
"""


@requirement("F64", "F68")
@pytest.mark.parametrize(
    ("option", "share"), [("", "55%"), pytest.param("rapid_change_limit: 0.6", "", marks=pytest.mark.slow)]
)
def test_a_load_reports_an_attribute_that_opens_versions_of_more_than_half_of_the_entities(
    own_tables: OwnTables, option: str, share: str
) -> None:
    """Of 20 entities 11 change the attribute `last_seen`, and 9 the attribute `tier`; the load is complete."""
    (visitor,) = map(by_files, parse(f"{VISITORS}{option}\n"))
    first, second = (
        load(own_tables.warehouse, visitor, own_tables.deliveries(visitor, snapshots(table)))
        for table in (FIRST, SECOND)
    )
    assert (first.warnings, second.row_counts) == ((), {"open": 20, "close": 20})
    reported = [(warning.code, warning.location, warning.details["share"]) for warning in second.warnings]
    assert reported == ([("RAPID_CHANGE", "dim_visitor.last_seen: crm/snapshot/2", share)] if share else [])
