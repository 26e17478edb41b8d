"""S7: type 1, the latest value in every version."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, CUSTOMER
from scd_pipeline_tests.semantics.specification import (
    Case,
    case,
    declare,
    feed,
    requirement,
    rule,
    snapshots,
)

SUBSCRIBER = declare(
    """
    dimension: dim_untracked
    business_key: {id: int}
    sources:
      crm:
        existence: true
        attributes: [city, note, phone]
        snapshot: {}
        feed: {effective_at: time, deletes: "op = 'D'"}
      desk:
        attributes: [agent, score]
        feed: {effective_at: time, updates: partial, nulls: not_provided}
    attributes:
      city: 2
      note: {scd: 1, untracked: at_open}
      phone: {scd: 1, untracked: latest_in_version}
      agent: {scd: 1, untracked: latest_in_version}
      score: {scd: 1, type: int, untracked: at_open}
    """
)


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


@requirement("X10")
@rule("S7")
@case
def test_an_untracked_attribute_has_a_value_of_its_own_in_each_version() -> Case:
    """`note` has the value at the start of the version, `phone` the latest one before its end."""
    return Case(
        SUBSCRIBER,
        feed(
            """
            | delivery | id | time       | city | note | phone |
            | 1        | 1  | 2024-01-01 | Bonn | n1   | p1    |
            | 2        | 1  | 2024-02-01 | Bonn | n2   | p2    |
            | 3        | 1  | 2024-03-01 | Kiel | n3   | p3    |
            | 4        | 1  | 2024-04-01 | Kiel | n4   | NULL  |
            """
        ),
        becomes="""
        | city | note | phone | effective_from | effective_to | version | last_updated | load_run_id |
        | Bonn | n1   | p2    | 2024-01-01     | 2024-03-01   | 1       | 2024-02-01   | crm/feed/1  |
        | Kiel | n3   | NULL  | 2024-03-01     | OPEN         | 2       | 2024-04-01   | crm/feed/3  |
        """,
    )


@rule("S7")
@case
def test_a_new_value_of_an_untracked_attribute_opens_no_version() -> Case:
    return Case(
        SUBSCRIBER,
        snapshots(
            """
            | delivery | at         | id | city | note | phone |
            | 1        | 2024-01-01 | 1  | Bonn | NULL | p1    |
            | 2        | 2024-02-01 | 1  | Bonn | n2   | p1    |
            | 3        | 2024-03-01 | 1  | Bonn | NULL | p3    |
            | 4        | 2024-04-01 | 1  | Bonn | n4   | p3    |
            """
        ),
        becomes="""
        | city | note | phone | effective_from | version | last_updated |
        | Bonn | NULL | p3    | 2024-01-01     | 1       | 2024-03-01   |
        """,
    )


@rule("S7", "S19")
@case
def test_a_late_value_of_an_untracked_attribute_changes_the_version_of_its_time() -> Case:
    """The late value of January is not the latest one of its version; that of February is."""
    return Case(
        SUBSCRIBER,
        feed(
            """
            | delivery | id | time       | city | note | phone |
            | 1        | 1  | 2024-01-01 | Bonn | n1   | p1    |
            | 2        | 1  | 2024-01-20 | Bonn | n2   | p2    |
            | 3        | 1  | 2024-03-01 | Kiel | n3   | p3    |
            | 4        | 1  | 2024-01-10 | Bonn | n4   | p4    |
            | 5        | 1  | 2024-02-10 | Bonn | n5   | p5    |
            """
        ),
        becomes="""
        | city | note | phone | effective_from | effective_to | last_updated |
        | Bonn | n1   | p5    | 2024-01-01     | 2024-03-01   | 2024-02-10   |
        | Kiel | n3   | p3    | 2024-03-01     | OPEN         | 2024-03-01   |
        """,
    )


@rule("S7", "S18")
@case
def test_a_value_of_an_untracked_attribute_in_a_gap_is_in_the_next_version_only() -> Case:
    """The existence source deletes the entity, and another source changes its values while it does not exist."""
    return Case(
        SUBSCRIBER,
        feed(
            """
            | delivery | id | time       | op | city | note | phone |
            | 1        | 1  | 2024-01-01 |    | Bonn | n1   | p1    |
            | 2        | 1  | 2024-03-01 | D  |      |      |       |
            | 3        | 1  | 2024-05-01 |    | Bonn | n3   | p1    |
            """
        ),
        feed(
            """
            | delivery | id | time       | agent | score |
            | 4        | 1  | 2024-02-01 | a     | 1     |
            | 5        | 1  | 2024-04-01 | b     | 2     |
            | 6        | 1  | 2024-06-01 | c     | 3     |
            """,
            source="desk",
        ),
        becomes="""
        | city | note | phone | agent | score | effective_from | effective_to | last_updated |
        | Bonn | n1   | p1    | a     | NULL  | 2024-01-01     | 2024-03-01   | 2024-02-01   |
        | Bonn | n3   | p1    | c     | 2     | 2024-05-01     | OPEN         | 2024-06-01   |
        """,
    )
