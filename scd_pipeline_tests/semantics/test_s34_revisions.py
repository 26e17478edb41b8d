"""S34: retries, revisions and withdrawals."""

from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S14", "S34")
@case
def test_the_same_content_under_the_same_revision_is_a_retry() -> Case:
    """The order of its rows has no effect."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            | 1        | 2  | 2024-01-01 | Kiel |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 2  | 2024-01-01 | Kiel |
            | 1        | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | id | city |
        | 1  | Bonn |
        | 2  | Kiel |
        """,
        results="""
        | arrives | batch        | outcome   | code |
        | 1       | crm/feed/1/1 | accepted  | ''   |
        | 2       | crm/feed/1/1 | unchanged | ''   |
        """,
    )


@rule("S34")
@case
def test_other_content_under_the_same_revision_is_rejected() -> Case:
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
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Kiel |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-02 | 1  | Bonn |
            """
        ),
        becomes="""
        | city | effective_from |
        | Bonn | 2024-01-01     |
        """,
        results="""
        | arrives | batch            | outcome  | code             |
        | 1       | crm/snapshot/1/1 | accepted | ''               |
        | 2       | crm/snapshot/1/1 | rejected | REVISION_CONTENT |
        | 3       | crm/snapshot/1/1 | rejected | REVISION_CONTENT |
        """,
    )


@rule("S34")
@case
def test_a_higher_revision_replaces_the_lower_one_completely() -> Case:
    """Changes of the lower revision alone are void: entity 2 did not exist, and the move to Kiel was in March."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 1        | 1  | 2024-01-01 | Bonn |
            | 2        | 1        | 1  | 2024-02-01 | Kiel |
            | 2        | 1        | 2  | 2024-02-01 | Kiel |
            | 2        | 2        | 1  | 2024-03-01 | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | load_run_id |
        | 1  | Bonn | 2024-01-01     | 2024-03-01   | crm/feed/1  |
        | 1  | Kiel | 2024-03-01     | OPEN         | crm/feed/2  |
        """,
        results="""
        | batch        | outcome  | code |
        | crm/feed/1/1 | accepted | ''   |
        | crm/feed/2/1 | accepted | ''   |
        | crm/feed/2/2 | accepted | ''   |
        """,
        on_page=True,
    )


@rule("S34")
@case
def test_revisions_are_compared_as_numbers_and_a_lower_one_is_superseded() -> Case:
    """10 is higher than 9."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 10       | 2024-01-01 | 1  | Bonn |
            | 1        | 9        | 2024-01-01 | 1  | Kiel |
            | 1        | 9        | 2024-01-01 | 2  | Kiel |
            """
        ),
        becomes="""
        | id | city |
        | 1  | Bonn |
        """,
        results="""
        | batch             | outcome    | code           |
        | crm/snapshot/1/10 | accepted   | ''             |
        | crm/snapshot/1/9  | superseded | LOWER_REVISION |
        """,
    )


@rule("S19", "S34")
@case
def test_an_unchanged_snapshot_becomes_a_change_after_the_one_before_it_is_revised() -> Case:
    """February repeated January. Once January is revised, February is a change, as it asserts Bonn."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 1        | 2024-01-01 | 2  | Ulm  |
            | 2        | 1        | 2024-02-01 | 1  | Bonn |
            | 2        | 1        | 2024-02-01 | 2  | Ulm  |
            | 1        | 2        | 2024-01-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | load_run_id    |
        | 1  | Kiel | 2024-01-01     | 2024-02-01   | crm/snapshot/1 |
        | 1  | Bonn | 2024-02-01     | OPEN         | crm/snapshot/2 |
        | 2  | Ulm  | 2024-02-01     | OPEN         | crm/snapshot/2 |
        """,
    )


@rule("S34")
@case
def test_a_revision_can_have_another_business_time() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Bonn |
            | 2        | 1        | 2024-03-01 | 1  | Kiel |
            | 2        | 2        | 2024-02-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-01-01     | 2024-02-01   |
        | Kiel | 2024-02-01     | OPEN         |
        """,
    )


@rule("S34")
@case
def test_a_withdrawn_delivery_has_no_effect() -> Case:
    """The entity that the snapshot retired exists, and its values are not in effect."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id        | city |
            | 1        | 1        | 2024-01-01 | 1         | Bonn |
            | 1        | 1        | 2024-01-01 | 2         | Ulm  |
            | 2        | 1        | 2024-02-01 | 1         | Kiel |
            | 2        | 2        |            | withdrawn |      |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 1  | Bonn | 2024-01-01     | OPEN         | 1       |
        | 2  | Ulm  | 2024-01-01     | OPEN         | 1       |
        """,
    )


@rule("S34")
@case
def test_a_higher_revision_restores_a_withdrawn_delivery() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | revision | id        | time       | city |
            | 1        | 1        | 1         | 2024-01-01 | Bonn |
            | 2        | 1        | 1         | 2024-02-01 | Kiel |
            | 2        | 2        | withdrawn |            |      |
            | 2        | 3        | 1         | 2024-02-01 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | load_run_id |
        | Bonn | 2024-01-01     | 2024-02-01   | crm/feed/1  |
        | Kiel | 2024-02-01     | OPEN         | crm/feed/2  |
        """,
    )


@rule("S34")
@case
def test_a_withdrawal_applies_to_a_lower_revision_that_arrives_later() -> Case:
    """The delivery arrives after its withdrawal, under a lower revision: it is superseded."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | revision | id        | time       | city |
            | 1        | 1        | 1         | 2024-01-01 | Bonn |
            | 2        | 2        | withdrawn |            |      |
            | 2        | 1        | 1         | 2024-02-01 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-01-01     | OPEN         |
        """,
        results="""
        | batch        | outcome    | code           |
        | crm/feed/1/1 | accepted   | ''             |
        | crm/feed/2/2 | accepted   | ''             |
        | crm/feed/2/1 | superseded | LOWER_REVISION |
        """,
    )


@rule("S13", "S34")
@case
def test_the_same_content_under_a_higher_revision_changes_no_row() -> Case:
    """The rows name the delivery without its revision."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2        | 2024-01-01 | 1  | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | load_run_id    |
        | Bonn | 2024-01-01     | crm/snapshot/1 |
        """,
        results="""
        | batch            | outcome   | code |
        | crm/snapshot/1/1 | accepted  | ''   |
        | crm/snapshot/1/2 | unchanged | ''   |
        """,
    )


@rule("S34")
@case
def test_a_higher_revision_with_equal_content_is_current() -> Case:
    """Revision 2 repeats 1, so 1 is superseded, and 3 replaces 2."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 1        | 1  | 2024-01-01 | Bonn |
            | 1        | 2        | 1  | 2024-01-01 | Bonn |
            | 1        | 1        | 1  | 2024-01-01 | Bonn |
            | 1        | 3        | 1  | 2024-01-01 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from |
        | Kiel | 2024-01-01     |
        """,
        results="""
        | arrives | batch        | outcome    | code |
        | 1       | crm/feed/1/1 | accepted   | ''   |
        | 2       | crm/feed/1/2 | unchanged  | ''   |
        | 3       | crm/feed/1/1 | superseded | ''   |
        | 4       | crm/feed/1/3 | accepted   | ''   |
        """,
    )


@rule("S14", "S34")
@case
def test_the_reason_of_a_row_or_of_its_delivery_is_recorded() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | reason | city |
            | 1        | 1  | 2024-01-01 |        | Bonn |
            """
        ),
        feed(
            """
            | delivery | id | time       | reason | city |
            | 2        | 1  | 2024-02-01 |        | Kiel |
            | 2        | 1  | 2024-03-01 | move   | Ulm  |
            """,
            reason="yearly review",
        ),
        becomes="""
        | city | change_reason | change_source |
        | Bonn | source_load   | crm           |
        | Kiel | yearly review | crm           |
        | Ulm  | move          | crm           |
        """,
    )
