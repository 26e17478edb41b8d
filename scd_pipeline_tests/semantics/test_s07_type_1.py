"""S7: type 1, the latest value in every version."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, requirement, rule, snapshots


@requirement("X10")
@rule("S7")
@case
def test_every_version_has_the_latest_value() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | email |
            | 1        | 1  | 2024-01-01 | Bonn | a     |
            | 2        | 1  | 2024-02-01 | Kiel | b     |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to |
        | Bonn | b     | 2024-01-01     | 2024-02-01   |
        | Kiel | b     | 2024-02-01     | OPEN         |
        """,
        on_page=True,
    )


@rule("S7")
@case
def test_a_new_value_opens_no_version() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | email |
            | 1        | 1  | 2024-01-01 | Bonn | a     |
            | 2        | 1  | 2024-02-01 | Bonn | b     |
            | 3        | 1  | 2024-03-01 | Bonn | NULL  |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to | last_updated |
        | Bonn | NULL  | 2024-01-01     | OPEN         | 2024-03-01   |
        """,
    )


@rule("S7")
@case
def test_changes_to_null_and_from_null_are_changes() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | email |
            | 1        | 2024-01-01 | 1  | NULL  |
            | 1        | 2024-01-01 | 2  | a     |
            | 2        | 2024-02-01 | 1  | a     |
            | 2        | 2024-02-01 | 2  | NULL  |
            """
        ),
        becomes="""
        | id | email | last_updated |
        | 1  | a     | 2024-02-01   |
        | 2  | NULL  | 2024-02-01   |
        """,
    )


@rule("S7")
@case
def test_a_late_value_does_not_overwrite_a_later_one() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | email |
            | 1        | 1  | 2024-01-01 | Bonn | a     |
            | 3        | 1  | 2024-03-01 | Bonn | c     |
            | 2        | 1  | 2024-02-01 | Bonn | b     |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to | last_updated | load_run_id |
        | Bonn | c     | 2024-01-01     | OPEN         | 2024-03-01   | crm/feed/1  |
        """,
    )


@rule("S7", "S18")
@case
def test_a_value_provided_for_a_deleted_entity_overwrites_its_versions() -> Case:
    """It is the latest value, so the versions that ended before have it too."""
    return Case(
        ACCOUNT,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 2        | 1  | 2024-02-01 | D  |      |
            """
        ),
        feed(
            """
            | delivery | id | time       | owner |
            | 3        | 1  | 2024-03-01 | o     |
            """,
            source="erp",
        ),
        becomes="""
        | city | owner | effective_from | effective_to | last_updated |
        | Bonn | o     | 2024-01-01     | 2024-02-01   | 2024-03-01   |
        """,
    )


@requirement("X17")
@rule("S7")
@case
def test_an_overwrite_keeps_the_source_and_delivery_that_opened_a_version() -> Case:
    """Reason, source and delivery are those of the change that opened the version; `last_updated` has the overwrite."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | email | city | reason |
            | 1        | 1  | 2024-01-01 | a     | Bonn | move   |
            | 2        | 1  | 2024-02-01 | b     | Bonn | typo   |
            """
        ),
        becomes="""
        | email | change_reason | change_source | load_run_id | last_updated |
        | b     | move          | crm           | crm/feed/1  | 2024-02-01   |
        """,
    )
