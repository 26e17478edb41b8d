"""S6: type 0, the first value is kept."""

from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S6")
@case
def test_a_later_value_is_refused() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | born       | city |
            | 1        | 2024-01-01 | 1  | 1990-01-01 | Bonn |
            | 2        | 2024-02-01 | 1  | 1991-02-02 | Kiel |
            | 3        | 2024-03-01 | 1  | NULL       | Kiel |
            """
        ),
        becomes="""
        | born       | city | effective_from | effective_to | last_updated |
        | 1990-01-01 | Bonn | 2024-01-01     | 2024-02-01   | 2024-01-01   |
        | 1990-01-01 | Kiel | 2024-02-01     | OPEN         | 2024-02-01   |
        """,
        on_page=True,
    )


@rule("S6")
@case
def test_null_is_not_a_first_value() -> Case:
    """The first value that is not NULL is also in the versions before it."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | born       | city |
            | 1        | 1  | 2024-01-01 | NULL       | Bonn |
            | 2        | 1  | 2024-02-01 | 1990-01-01 | Kiel |
            | 3        | 1  | 2024-03-01 | 1991-02-02 | Kiel |
            """
        ),
        becomes="""
        | born       | city | effective_from | last_updated |
        | 1990-01-01 | Bonn | 2024-01-01     | 2024-02-01   |
        | 1990-01-01 | Kiel | 2024-02-01     | 2024-02-01   |
        """,
    )


@rule("S6", "S14")
@case
def test_the_first_value_is_the_first_in_business_time() -> Case:
    """A late delivery with an earlier business time replaces the first value."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | born       |
            | 2        | 1  | 2024-02-01 | 1992-02-02 |
            | 1        | 1  | 2024-01-01 | 1991-01-01 |
            """
        ),
        becomes="""
        | born       | effective_from | last_updated |
        | 1991-01-01 | 2024-01-01     | 2024-01-01   |
        """,
    )


@rule("S5", "S6")
@case
def test_the_last_of_several_values_at_the_first_time_is_kept() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | seq | born       |
            | 1        | 1  | 2024-01-01 | 1   | 1991-01-01 |
            | 1        | 1  | 2024-01-01 | 2   | 1992-02-02 |
            """
        ),
        becomes="""
        | born       |
        | 1992-02-02 |
        """,
    )


@rule("S5", "S6")
@case
def test_a_later_null_of_the_first_time_leaves_the_attribute_without_a_value_then() -> Case:
    """The state after all changes of one time counts, so the first value that is kept is the next one."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | seq | born       | city |
            | 1        | 1  | 2024-01-01 | 1   | 1991-01-01 | Bonn |
            | 1        | 1  | 2024-01-01 | 2   | NULL       | Bonn |
            | 2        | 1  | 2024-02-01 | 1   | 1992-02-02 | Kiel |
            """
        ),
        becomes="""
        | born       | city | effective_from | last_updated |
        | 1992-02-02 | Bonn | 2024-01-01     | 2024-02-01   |
        | 1992-02-02 | Kiel | 2024-02-01     | 2024-02-01   |
        """,
    )


@rule("S6", "S18")
@case
def test_the_first_value_is_kept_across_a_delete() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | born       |
            | 1        | 1  | 2024-01-01 |    | 1990-01-01 |
            | 2        | 1  | 2024-02-01 | D  |            |
            | 3        | 1  | 2024-03-01 |    | 1991-02-02 |
            """
        ),
        becomes="""
        | born       | effective_from | effective_to |
        | 1990-01-01 | 2024-01-01     | 2024-02-01   |
        | 1990-01-01 | 2024-03-01     | OPEN         |
        """,
    )
