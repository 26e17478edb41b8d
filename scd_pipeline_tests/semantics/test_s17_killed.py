"""S17: the next run continues a run that was killed."""

import pytest

from scd_pipeline.load.run import commit_log, ingest_and_apply, plan
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.engine import OwnTables, load_once
from scd_pipeline_tests.semantics.specification import by_files, feed, rule
from scd_pipeline_tests.text_tables import assert_same_rows

FIRST, SECOND, THIRD = (
    feed(f"| delivery | id | time | city |\n{line}")
    for line in ("| 1 | 1 | 2024-01-01 | Bonn |", "| 2 | 1 | 2024-02-01 | Kiel |", "| 3 | 1 | 2024-01-15 | Ulm |")
)


@rule("S14", "S17")
@pytest.mark.slow
def test_the_next_run_applies_what_a_killed_run_left_in_the_change_log(own_tables: OwnTables) -> None:
    """Killed three times: once with empty tables, and twice with a log that is ahead of the dimension.

    The next run has the same deliveries and more, or none.
    """
    warehouse, dimension = own_tables.warehouse, by_files(CUSTOMER.dimension)
    first, second, third = (own_tables.deliveries(dimension, table) for table in (FIRST, SECOND, THIRD))

    load_plan = plan(warehouse, dimension, first)
    load_plan.prepare(warehouse)  # killed here, and here again
    commit_log(warehouse, load_plan)
    result = load_once(warehouse, dimension, [*first, *second])
    assert [batch.outcome for batch in result.results] == ["unchanged", "accepted"]
    assert_same_rows(
        """
        | city | effective_from | effective_to | version | load_run_id |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       | crm/feed/1  |
        | Kiel | 2024-02-01     | OPEN         | 2       | crm/feed/2  |
        """,
        own_tables.rows(dimension),
    )

    commit_log(warehouse, plan(warehouse, dimension, third))  # killed here
    ingest_and_apply(warehouse, dimension)
    assert_same_rows(
        """
        | city | effective_from | effective_to | version | load_run_id |
        | Bonn | 2024-01-01     | 2024-01-15   | 1       | crm/feed/1  |
        | Ulm  | 2024-01-15     | 2024-02-01   | 2       | crm/feed/3  |
        | Kiel | 2024-02-01     | OPEN         | 3       | crm/feed/2  |
        """,
        own_tables.rows(dimension),
    )
