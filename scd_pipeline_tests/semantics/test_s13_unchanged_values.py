"""S13: an unchanged value changes nothing in the dimension."""

from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S13")
@case
def test_an_unchanged_value_opens_no_version_and_changes_no_row() -> Case:
    """The row still names the delivery that opened it, and its time."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | born       | email | city | manager | tier   |
            | 1        | 2024-01-01 | 1  | 1990-01-01 | a     | Bonn | Ada     | Bronze |
            | 2        | 2024-02-01 | 1  | 1990-01-01 | a     | Bonn | Ada     | Bronze |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id    | last_updated |
        | Bonn | 2024-01-01     | OPEN         | 1       | crm/snapshot/1 | 2024-01-01   |
        """,
        results="""
        | batch            | outcome  | code | rows | new | changed | deleted |
        | crm/snapshot/1/1 | accepted | ''   | 1    | 1   | 0       | 0      |
        | crm/snapshot/2/1 | accepted | ''   | 1    | 0   | 0       | 0      |
        """,
        log="""
        | batch            | id | kind   | city |
        | crm/snapshot/1/1 | 1  | upsert | Bonn |
        """,
        on_page=True,
    )


@rule("S13")
@case
def test_the_change_log_stores_unchanged_records_of_a_feed() -> Case:
    """Unchanged values of a snapshot can be derived, those of a feed cannot: they are stored, and change no row."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            | 2        | 1  | 2024-02-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | load_run_id |
        | Bonn | 2024-01-01     | OPEN         | crm/feed/1  |
        """,
        log="""
        | batch        | id | kind   | city | time       |
        | crm/feed/1/1 | 1  | upsert | Bonn | 2024-01-01 |
        | crm/feed/2/1 | 1  | upsert | Bonn | 2024-02-01 |
        """,
    )


@rule("S13", "S14")
@case
def test_an_equal_value_that_is_true_earlier_moves_the_start_of_the_version() -> Case:
    """The same value arrives later with an earlier time: one version, which starts at the earlier time."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 2        | 1  | 2024-02-01 | Bonn |
            | 1        | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id |
        | Bonn | 2024-01-01     | OPEN         | 1       | crm/feed/1  |
        """,
    )


@rule("S13", "S18")
@case
def test_a_delete_of_an_unknown_entity_changes_nothing() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 | D  |      |
            | 2        | 1  | 2024-02-01 |    | Bonn |
            | 3        | 1  | 2024-03-01 | D  |      |
            | 4        | 1  | 2024-04-01 | D  |      |
            """
        ),
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-02-01     | 2024-03-01   |
        """,
    )
