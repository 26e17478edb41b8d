"""S38: the rows that deliveries leave, by disposition, strategy, keys, order and flag of deletes."""

from __future__ import annotations

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.landing.tables import assert_stored, landing_table, load_rows
from scd_pipeline_tests.semantics.specification import requirement, rule

DAYS = landing_table(
    """
    disposition: merge
    merge_key: {batch_day: string}
    columns: {value: string}
    """
)


@requirement("D3", "D6")
@rule("S38")
def test_a_merge_key_replaces_the_rows_of_its_values(opened: Warehouse) -> None:
    """Today's rows, loaded three times with other rows, are those of the last time."""
    load_rows(
        opened,
        DAYS,
        """
        | delivery   | batch_day | value |
        | 2024-01-01 | d1        | a     |
        | 2024-01-01 | d1        | b     |
        | 2024-01-02 | d2        | c     |
        | 2024-01-02 | d2        | c     |
        """,
    )
    assert_stored(
        opened,
        """
        | batch_day | value | scd_row_number |
        | d1        | a     | 1              |
        | d1        | b     | 1              |
        | d2        | c     | 1              |
        | d2        | c     | 2              |
        """,
    )
    load_rows(
        opened,
        DAYS,
        """
        | delivery   | batch_day | value |
        | 2024-01-03 | d1        | a2    |
        | 2024-01-04 | d2        | c     |
        | 2024-01-05 | d3        | x     |
        | 2024-01-06 | d3        | y     |
        | 2024-01-07 | d3        | z     |
        """,
    )
    assert_stored(
        opened,
        """
        | batch_day | value |
        | d1        | a2    |
        | d2        | c     |
        | d3        | z     |
        """,
    )
    assert all(result.passed for result in check_table(opened, DAYS))
