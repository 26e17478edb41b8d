"""S29: the start of a history, the declared `begin` and the open end."""

from scd_pipeline_tests.semantics.declarations import CUSTOMER, PRODUCT, SUBSCRIBER, VISITOR
from scd_pipeline_tests.semantics.specification import Case, case, feed, long_case, rule, snapshots


@rule("S29")
@case
def test_without_begin_the_first_version_starts_at_the_first_change() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from |
        | Bonn | 2024-01-01     |
        """,
    )


@rule("S29")
@long_case
def test_with_begin_a_first_version_within_the_limit_starts_at_the_declared_time() -> Case:
    """The limit is 2024-01-01 here. `last_updated` has the time of the change."""
    return Case(
        PRODUCT,
        feed(
            """
            | delivery | id | time                       | price |
            | 1        | 1  | 2023-06-01                 | 1.00  |
            | 1        | 2  | 2024-01-01                 | 2.00  |
            | 1        | 3  | 2024-01-01 00:00:00.000001 | 3.00  |
            | 2        | 1  | 2024-02-01                 | 1.50  |
            """,
            source="erp",
        ),
        becomes="""
        | id | price | effective_from             | effective_to | last_updated               |
        | 1  | 1.00  | 2000-01-01                 | 2024-02-01   | 2023-06-01                 |
        | 1  | 1.50  | 2024-02-01                 | 2999-12-31   | 2024-02-01                 |
        | 2  | 2.00  | 2000-01-01                 | 2999-12-31   | 2024-01-01                 |
        | 3  | 3.00  | 2024-01-01 00:00:00.000001 | 2999-12-31   | 2024-01-01 00:00:00.000001 |
        """,
        on_page=True,
    )


@rule("S29")
@case
def test_begin_moves_the_start_of_the_first_version_only() -> Case:
    """The version after a gap does not move; an entity that was deleted before the limit starts earlier too."""
    return Case(
        PRODUCT,
        feed(
            """
            | delivery | id | time       | op | price |
            | 1        | 1  | 2023-01-01 |    | 1.00  |
            | 2        | 1  | 2023-02-01 | D  |       |
            | 3        | 1  | 2023-03-01 |    | 1.00  |
            """,
            source="erp",
        ),
        becomes="""
        | price | effective_from | effective_to | version |
        | 1.00  | 2000-01-01     | 2023-02-01   | 1       |
        | 1.00  | 2023-03-01     | 2999-12-31   | 2       |
        """,
    )


@rule("S29", "S14")
@case
def test_a_late_first_change_within_the_limit_starts_at_the_declared_time() -> Case:
    """The entity existed from June on; the late change of January moves its start."""
    return Case(
        PRODUCT,
        snapshots(
            """
            | delivery | at         | id | price |
            | 2        | 2024-06-01 | 1  | 2.00  |
            | 1        | 2024-01-01 | 1  | 1.00  |
            """,
            source="erp",
        ),
        becomes="""
        | price | effective_from | effective_to | version |
        | 1.00  | 2000-01-01     | 2024-06-01   | 1       |
        | 2.00  | 2024-06-01     | 2999-12-31   | 2       |
        """,
    )


@rule("S26", "S29")
@case
def test_a_change_before_the_declared_start_or_at_the_open_end_is_a_bad_row() -> Case:
    return Case(
        PRODUCT,
        feed(
            """
            | delivery | id | time                       | price |
            | 1        | 1  | 1999-12-31 23:59:59.999999 | 1.00  |
            | 1        | 2  | 2000-01-01                 | 2.00  |
            | 1        | 3  | 2999-12-30 23:59:59.999999 | 3.00  |
            | 1        | 4  | 2999-12-31                 | 4.00  |
            """,
            source="erp",
        ),
        becomes="""
        | id | price | effective_from             | effective_to |
        | 2  | 2.00  | 2000-01-01                 | 2999-12-31   |
        | 3  | 3.00  | 2999-12-30 23:59:59.999999 | 2999-12-31   |
        """,
        quarantine="""
        | batch        | key  | reason                                         |
        | erp/feed/1/1 | id=1 | effective_at is before 2000-01-01 00:00:00     |
        | erp/feed/1/1 | id=4 | effective_at is not before 2999-12-31 00:00:00 |
        """,
    )


@rule("S26", "S29")
@case
def test_without_a_declared_start_only_the_open_end_limits_times() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time                | city |
            | 1        | 1  | 0001-01-01          | Bonn |
            | 1        | 2  | 9999-12-31 23:59:58 | Bonn |
            | 1        | 3  | OPEN                | Bonn |
            """
        ),
        becomes="""
        | id | effective_from      | effective_to |
        | 1  | 0001-01-01          | OPEN         |
        | 2  | 9999-12-31 23:59:58 | OPEN         |
        """,
    )


@rule("S26", "S29")
@case
def test_rows_of_a_delivery_before_the_declared_start_are_bad_rows() -> Case:
    """The row times are those of the delivery."""
    return Case(
        PRODUCT,
        snapshots(
            """
            | delivery | at         | id | price |
            | 1        | 1999-06-01 | 1  | 1.00  |
            | 2        | 1999-12-01 | 1  | 2.00  |
            | 3        | 2001-01-01 | 1  | 3.00  |
            """,
            source="erp",
        ),
        becomes="""
        | id | price | effective_from | effective_to |
        | 1  | 3.00  | 2000-01-01     | 2999-12-31   |
        """,
        quarantine="""
        | batch            | key  | reason                                            |
        | erp/snapshot/1/1 | id=1 | the delivery's time is before 2000-01-01 00:00:00 |
        | erp/snapshot/2/1 | id=1 | the delivery's time is before 2000-01-01 00:00:00 |
        """,
    )


@rule("S29")
@long_case
def test_the_first_version_starts_at_the_value_of_the_declared_attribute() -> Case:
    """Entity 1 was changed before the first extract. A value that is NULL or after the first change has no effect."""
    return Case(
        SUBSCRIBER,
        snapshots(
            """
            | delivery | at         | id | time       | plan | created    |
            | 1        | 2024-06-01 | 1  | 2024-03-05 | b    | 2024-01-01 |
            | 1        | 2024-06-01 | 2  | 2024-02-01 | x    | 2024-02-01 |
            | 1        | 2024-06-01 | 3  | 2024-02-01 | x    | 2024-02-02 |
            | 1        | 2024-06-01 | 4  | 2024-02-01 | x    | NULL       |
            | 2        | 2024-07-01 | 1  | 2024-06-20 | c    | 2024-01-01 |
            | 2        | 2024-07-01 | 2  | 2024-02-01 | x    | 2024-02-01 |
            | 2        | 2024-07-01 | 3  | 2024-02-01 | x    | 2024-02-02 |
            | 2        | 2024-07-01 | 4  | 2024-02-01 | x    | NULL       |
            """
        ),
        becomes="""
        | id | plan | created    | effective_from | effective_to | last_updated |
        | 1  | b    | 2024-01-01 | 2024-01-01     | 2024-06-20   | 2024-03-05   |
        | 1  | c    | 2024-01-01 | 2024-06-20     | OPEN         | 2024-06-20   |
        | 2  | x    | 2024-02-01 | 2024-02-01     | OPEN         | 2024-02-01   |
        | 3  | x    | 2024-02-02 | 2024-02-01     | OPEN         | 2024-02-01   |
        | 4  | x    | NULL       | 2024-02-01     | OPEN         | 2024-02-01   |
        """,
        on_page=True,
    )


@rule("S29", "S18")
@long_case
def test_a_value_after_the_first_change_moves_no_start() -> Case:
    """Only the value that is known at the first change counts, and only the first version of an entity moves.

    Entity 1 returns, entity 2 gets its value later. That of entity 3 is known before it exists.
    """
    return Case(
        SUBSCRIBER,
        feed(
            """
            | delivery | id | time       | op | plan | created    |
            | 1        | 1  | 2024-03-01 |    | a    | 2024-01-01 |
            | 1        | 2  | 2024-03-01 |    | a    | NULL       |
            | 2        | 1  | 2024-04-01 | D  |      |            |
            | 2        | 2  | 2024-04-01 |    | b    | 2024-01-01 |
            | 3        | 1  | 2024-05-01 |    | c    | 2023-01-01 |
            """
        ),
        feed(
            """
            | delivery | id | time       | signed_up  |
            | 1        | 3  | 2024-02-01 | 2024-01-15 |
            """,
            source="web",
        ),
        feed(
            """
            | delivery | id | time       | op | plan | created |
            | 4        | 3  | 2024-03-01 |    | a    | NULL    |
            """
        ),
        becomes="""
        | id | plan | created    | signed_up  | effective_from | effective_to | version |
        | 1  | a    | 2024-01-01 | NULL       | 2024-01-01     | 2024-04-01   | 1       |
        | 1  | c    | 2024-01-01 | NULL       | 2024-05-01     | OPEN         | 2       |
        | 2  | a    | 2024-01-01 | NULL       | 2024-03-01     | 2024-04-01   | 1       |
        | 2  | b    | 2024-01-01 | NULL       | 2024-04-01     | OPEN         | 2       |
        | 3  | a    | NULL       | 2024-01-15 | 2024-03-01     | OPEN         | 1       |
        """,
    )


@rule("S29", "S6", "S14")
@long_case
def test_a_late_first_change_brings_its_own_value_of_the_declared_attribute() -> Case:
    """Delivery 1 arrives last: entity 1 starts at the value in it, entity 2 at its own time."""
    return Case(
        SUBSCRIBER,
        feed(
            """
            | delivery | id | time       | op | plan | created    |
            | 2        | 1  | 2024-06-01 |    | b    | 2024-03-01 |
            | 2        | 2  | 2024-06-01 |    | b    | 2024-03-01 |
            | 1        | 1  | 2024-05-01 |    | a    | 2024-02-01 |
            | 1        | 2  | 2024-02-01 |    | a    | NULL       |
            """
        ),
        becomes="""
        | id | plan | created    | effective_from | effective_to |
        | 1  | a    | 2024-02-01 | 2024-02-01     | 2024-06-01   |
        | 1  | b    | 2024-02-01 | 2024-06-01     | OPEN         |
        | 2  | a    | 2024-03-01 | 2024-02-01     | 2024-06-01   |
        | 2  | b    | 2024-03-01 | 2024-06-01     | OPEN         |
        """,
    )


@rule("S29", "S6")
@long_case
def test_the_value_of_another_source_is_the_first_one_known_at_the_first_change() -> Case:
    """It is a date; both values were provided before entity 1 existed, and type 0 keeps the first."""
    return Case(
        VISITOR,
        feed(
            """
            | delivery | id | time       | signed_up  |
            | 1        | 1  | 2024-02-01 | 2024-01-15 |
            | 2        | 1  | 2024-02-10 | 2024-01-20 |
            """,
            source="web",
        ),
        snapshots(
            """
            | delivery | at         | id | plan |
            | 1        | 2024-03-01 | 1  | a    |
            """
        ),
        becomes="""
        | id | plan | signed_up  | effective_from | effective_to |
        | 1  | a    | 2024-01-15 | 2024-01-15     | OPEN         |
        """,
    )
