"""S2: a query as of a time has the versions that are in force then."""

from __future__ import annotations

from datetime import datetime, timezone

from scd_pipeline import queries
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.specification import by_files, declare, feed, requirement, rule

DOCTOR = declare(
    """
    dimension: dim_doctor
    business_key: {number: int}
    sources: {archive: {feed: {effective_at: time, deletes: "op = 'D'"}}}
    attributes: {first_name: 2, last_name: 2}
    """
)
CHANGES = feed(
    """
    | delivery | number | time       | op | first_name  | last_name |
    | 1        | 1      | 2010-01-01 |    | William     | Hartnell  |
    | 1        | 2      | 2010-01-01 |    | Patrick     | Troughton |
    | 1        | 6      | 2010-01-01 |    | Colin       | Baker     |
    | 1        | 10     | 2010-01-01 |    | David       | Tennant   |
    | 2        | 2      | 2012-01-01 | D  |             |           |
    | 2        | 12     | 2012-01-01 |    | Patrick     | Troughton |
    | 3        | 6      | 2014-09-01 | D  |             |           |
    """,
    "archive",
)
"""Four rows, an update of a number, which is the key, and a delete."""


@requirement("X22")
@rule("S2")
def test_a_query_as_of_a_time_has_all_changes_up_to_it(own_tables: OwnTables) -> None:
    """The bound is inclusive: a change is applied at its own time. A new business key is a delete and an upsert."""
    dimension = by_files(DOCTOR.dimension)
    own_tables.load(DOCTOR.dimension, CHANGES)
    expected = {
        "2009-12-31": [],
        "2010-01-01": [1, 2, 6, 10],
        "2014-01-01": [1, 6, 10, 12],
        "2014-08-31 23:59:59.999999": [1, 6, 10, 12],
        "2014-09-01": [1, 10, 12],
        "2999-01-01": [1, 10, 12],
    }
    for time, numbers in expected.items():
        moment = datetime.fromisoformat(time).replace(tzinfo=timezone.utc)
        rows = records(queries.as_of(own_tables.warehouse, dimension, moment))
        assert sorted(row["number"] for row in rows) == numbers, time
        assert {row["first_name"] for row in rows if row["number"] in (2, 12)} <= {"Patrick"}
