"""S9: type 3, the latest value, the previous one and the time of the change."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S9")
@case
def test_every_version_has_the_latest_and_the_previous_value() -> Case:
    """A change opens no version; only the last two values are in the row."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | manager |
            | 1        | 1  | 2024-01-01 | Bonn | Ada     |
            | 2        | 1  | 2024-02-01 | Kiel | Ada     |
            | 3        | 1  | 2024-03-01 | Kiel | Bea     |
            | 4        | 1  | 2024-04-01 | Kiel | Cleo    |
            """
        ),
        becomes="""
        | city | manager | previous_manager | manager_changed_at | effective_from | effective_to |
        | Bonn | Cleo    | Bea              | 2024-04-01         | 2024-01-01     | 2024-02-01   |
        | Kiel | Cleo    | Bea              | 2024-04-01         | 2024-02-01     | OPEN         |
        """,
        on_page=True,
    )


@rule("S9")
@case
def test_without_a_change_the_previous_value_is_null() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | manager |
            | 1        | 1  | 2024-01-01 | Ada     |
            | 2        | 1  | 2024-02-01 | Ada     |
            """
        ),
        becomes="""
        | manager | previous_manager | manager_changed_at | last_updated |
        | Ada     | NULL             | 2024-01-01         | 2024-01-01   |
        """,
    )


@rule("S9")
@case
def test_null_is_a_value_like_any_other() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | manager |
            | 1        | 1  | 2024-01-01 | Ada     |
            | 2        | 1  | 2024-02-01 | NULL    |
            | 3        | 2  | 2024-01-01 | NULL    |
            | 4        | 2  | 2024-02-01 | Ada     |
            """
        ),
        becomes="""
        | id | manager | previous_manager | manager_changed_at |
        | 1  | NULL    | Ada              | 2024-02-01         |
        | 2  | Ada     | NULL             | 2024-02-01         |
        """,
    )


@rule("S9", "S14")
@case
def test_a_late_value_changes_the_previous_value() -> Case:
    """January and March have the same value; with the late value of February, March is a change."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | manager |
            | 1        | 2024-01-01 | 1  | Ada     |
            | 3        | 2024-03-01 | 1  | Ada     |
            | 2        | 2024-02-01 | 1  | Bea     |
            """
        ),
        becomes="""
        | manager | previous_manager | manager_changed_at | effective_from |
        | Ada     | Bea              | 2024-03-01         | 2024-01-01     |
        """,
    )


@rule("S9", "S18")
@case
def test_changed_at_is_the_time_of_the_first_provided_value_even_of_a_deleted_entity() -> Case:
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id     | city |
            | 1        | 2024-01-01 | 1      | Bonn |
            | 1        | 2024-01-01 | 2      | Bonn |
            | 2        | 2024-02-01 | no row |      |
            """
        ),
        feed(
            """
            | delivery | id | time       | agent |
            | 3        | 1  | 2024-03-01 | Ada   |
            """,
            source="desk",
        ),
        becomes="""
        | id | agent | previous_agent | agent_changed_at | effective_to |
        | 1  | Ada   | NULL           | 2024-03-01       | 2024-02-01   |
        | 2  | NULL  | NULL           | NULL             | 2024-02-01   |
        """,
    )


@rule("S9", "S20")
@case
def test_changed_at_is_the_time_of_the_first_provided_value_even_if_it_is_null() -> Case:
    """The first snapshot has no such column; the second changes nothing else."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city | manager |
            | 2        | 2024-02-01 | 1  | Bonn | NULL    |
            """
        ),
        becomes="""
        | city | manager | previous_manager | manager_changed_at | effective_from | last_updated |
        | Bonn | NULL    | NULL             | 2024-02-01         | 2024-01-01     | 2024-01-01   |
        """,
    )
