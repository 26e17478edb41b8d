"""S10: type 6, the historical and the latest value in every version."""

from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, declare, feed, long_case, requirement, rule

LIMIT = declare(
    """
    dimension: dim_limit_by_tier
    business_key: id
    sources: {crm: {feed: {effective_at: time, deletes: "op = 'D'"}}}
    attributes:
      tier: {scd: 6, previous: last_different_value}
      city: 2
    """
)


@rule("S10")
@case
def test_each_version_has_its_own_value_the_latest_and_the_previous_value() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | tier   |
            | 1        | 1  | 2024-01-01 | Bronze |
            | 2        | 1  | 2024-02-01 | Silver |
            | 3        | 1  | 2024-03-01 | Gold   |
            """
        ),
        becomes="""
        | tier   | current_tier | previous_tier | effective_from | effective_to | last_updated |
        | Bronze | Gold         | NULL          | 2024-01-01     | 2024-02-01   | 2024-03-01   |
        | Silver | Gold         | Bronze        | 2024-02-01     | 2024-03-01   | 2024-03-01   |
        | Gold   | Gold         | Silver        | 2024-03-01     | OPEN         | 2024-03-01   |
        """,
        on_page=True,
    )


@requirement("X6")
@rule("S10")
@case
def test_the_previous_value_is_that_of_the_preceding_version() -> Case:
    """The city opens a version too, whose previous tier is then the same."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | tier   | city |
            | 1        | 1  | 2024-01-01 | Bronze | Bonn |
            | 2        | 1  | 2024-02-01 | Silver | Bonn |
            | 3        | 1  | 2024-03-01 | Silver | Kiel |
            """
        ),
        becomes="""
        | tier   | city | current_tier | previous_tier | effective_from | last_updated |
        | Bronze | Bonn | Silver       | NULL          | 2024-01-01     | 2024-02-01   |
        | Silver | Bonn | Silver       | Bronze        | 2024-02-01     | 2024-02-01   |
        | Silver | Kiel | Silver       | Silver        | 2024-03-01     | 2024-03-01   |
        """,
    )


@requirement("X6")
@rule("S10", "S18")
@long_case
def test_the_previous_value_can_be_the_last_different_one() -> Case:
    """The versions that the city opens have the same one; NULL is a value, and a gap changes nothing."""
    return Case(
        LIMIT,
        feed(
            """
            | delivery | id | time       | op | tier   | city |
            | 1        | 1  | 2024-01-01 |    | Bronze | Bonn |
            | 2        | 1  | 2024-02-01 |    | Silver | Bonn |
            | 3        | 1  | 2024-03-01 |    | Silver | Kiel |
            | 4        | 1  | 2024-04-01 | D  |        |      |
            | 5        | 1  | 2024-05-01 |    | Silver | Kiel |
            | 6        | 1  | 2024-06-01 |    | NULL   | Kiel |
            | 7        | 1  | 2024-07-01 |    | Silver | Kiel |
            | 8        | 1  | 2024-08-01 |    | Silver | Bonn |
            | 9        | 1  | 2024-09-01 |    | Bronze | Bonn |
            """,
        ),
        becomes="""
        | tier   | city | previous_tier | effective_from | effective_to |
        | Bronze | Bonn | NULL          | 2024-01-01     | 2024-02-01   |
        | Silver | Bonn | Bronze        | 2024-02-01     | 2024-03-01   |
        | Silver | Kiel | Bronze        | 2024-03-01     | 2024-04-01   |
        | Silver | Kiel | Bronze        | 2024-05-01     | 2024-06-01   |
        | NULL   | Kiel | Silver        | 2024-06-01     | 2024-07-01   |
        | Silver | Kiel | NULL          | 2024-07-01     | 2024-08-01   |
        | Silver | Bonn | NULL          | 2024-08-01     | 2024-09-01   |
        | Bronze | Bonn | Silver        | 2024-09-01     | OPEN         |
        """,
    )


@rule("S10", "S14")
@long_case
def test_a_late_version_changes_the_last_different_value_of_all_later_ones() -> Case:
    return Case(
        LIMIT,
        feed(
            """
            | delivery | id | time       | tier   | city |
            | 1        | 1  | 2024-01-01 | Bronze | Bonn |
            | 3        | 1  | 2024-03-01 | Silver | Bonn |
            | 4        | 1  | 2024-04-01 | Silver | Kiel |
            | 2        | 1  | 2024-02-01 | Gold   | Bonn |
            """
        ),
        becomes="""
        | tier   | city | previous_tier | effective_from |
        | Bronze | Bonn | NULL          | 2024-01-01     |
        | Gold   | Bonn | Bronze        | 2024-02-01     |
        | Silver | Bonn | Gold          | 2024-03-01     |
        | Silver | Kiel | Gold          | 2024-04-01     |
        """,
    )


@rule("S10", "S18")
@case
def test_the_previous_value_is_found_across_a_gap() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | tier   |
            | 1        | 1  | 2024-01-01 |    | Bronze |
            | 2        | 1  | 2024-02-01 | D  |        |
            | 3        | 1  | 2024-03-01 |    | Silver |
            """
        ),
        becomes="""
        | tier   | current_tier | previous_tier | effective_from | effective_to |
        | Bronze | Silver       | NULL          | 2024-01-01     | 2024-02-01   |
        | Silver | Silver       | Bronze        | 2024-03-01     | OPEN         |
        """,
    )


@rule("S10", "S14")
@case
def test_a_late_version_changes_the_previous_value_of_the_next() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | tier   |
            | 1        | 1  | 2024-01-01 | Bronze |
            | 3        | 1  | 2024-03-01 | Gold   |
            | 2        | 1  | 2024-02-01 | Silver |
            """
        ),
        becomes="""
        | tier   | current_tier | previous_tier | effective_from |
        | Bronze | Gold         | NULL          | 2024-01-01     |
        | Silver | Gold         | Bronze        | 2024-02-01     |
        | Gold   | Gold         | Silver        | 2024-03-01     |
        """,
    )


@rule("S7", "S9", "S10")
@case
def test_one_dimension_mixes_the_types() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | born       | email | city | manager | tier   |
            | 1        | 1  | 2024-01-01 | 1990-01-01 | a     | Bonn | Ada     | Bronze |
            | 2        | 1  | 2024-02-01 | 1991-02-02 | b     | Kiel | Bea     | Silver |
            """
        ),
        becomes="""
        | born       | email | city | manager | previous_manager | tier   | current_tier | effective_from |
        | 1990-01-01 | b     | Bonn | Bea     | Ada              | Bronze | Silver       | 2024-01-01     |
        | 1990-01-01 | b     | Kiel | Bea     | Ada              | Silver | Silver       | 2024-02-01     |
        """,
    )
