"""S19: a late snapshot takes effect at its own time."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, CONTRACT, CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S19")
@case
def test_a_late_snapshot_is_in_effect_up_to_the_next_snapshot() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Bonn |
            | 2        | 2024-02-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | load_run_id    |
        | Bonn | 2024-01-01     | 2024-02-01   | crm/snapshot/1 |
        | Kiel | 2024-02-01     | 2024-03-01   | crm/snapshot/2 |
        | Bonn | 2024-03-01     | OPEN         | crm/snapshot/3 |
        """,
        on_page=True,
    )


@rule("S19")
@case
def test_an_entity_that_a_late_snapshot_omits_returns_with_the_next_snapshot() -> Case:
    """An entity that only the late snapshot contains exists from its time up to the next one."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Bonn |
            | 2        | 2024-02-01 | 2  | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   | 1       |
        | 1  | Bonn | 2024-03-01     | OPEN         | 2       |
        | 2  | Kiel | 2024-02-01     | 2024-03-01   | 1       |
        """,
    )


@rule("S19")
@case
def test_a_late_snapshot_can_precede_all_others() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 2        | 2024-02-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 2  | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | load_run_id    |
        | 1  | Bonn | 2024-01-01     | OPEN         | crm/snapshot/1 |
        | 2  | Kiel | 2024-01-01     | 2024-02-01   | crm/snapshot/1 |
        """,
    )


@rule("S14", "S19")
@case
def test_a_late_change_that_a_later_snapshot_repeats_opens_the_version() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Kiel |
            | 2        | 2024-02-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id    |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       | crm/snapshot/1 |
        | Kiel | 2024-02-01     | OPEN         | 2       | crm/snapshot/2 |
        """,
    )


@rule("S19", "S30")
@case
def test_a_late_change_of_a_feed_is_in_effect_up_to_the_next_snapshot() -> Case:
    """The snapshot of March asserts Bonn, although the log stored nothing of it."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Bonn |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 2        | 1  | 2024-02-01 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | load_run_id    |
        | Bonn | 2024-01-01     | 2024-02-01   | crm/snapshot/1 |
        | Kiel | 2024-02-01     | 2024-03-01   | crm/feed/2     |
        | Bonn | 2024-03-01     | OPEN         | crm/snapshot/3 |
        """,
    )


@rule("S19", "S20")
@case
def test_the_next_snapshot_reasserts_only_attributes_for_which_it_has_a_column() -> Case:
    """March has no column score, so the late score stays in effect; the late city does not."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 1        | 2024-01-01 | 1  | Bonn | 1     |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 3        | 2024-03-01 | 1  | Bonn |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 2        | 2024-02-01 | 1  | Kiel | 2     |
            """
        ),
        becomes="""
        | city | score | effective_from | effective_to |
        | Bonn | 1     | 2024-01-01     | 2024-02-01   |
        | Kiel | 2     | 2024-02-01     | 2024-03-01   |
        | Bonn | 2     | 2024-03-01     | OPEN         |
        """,
    )


@rule("S14", "S19", "S21")
@case
def test_a_version_that_a_snapshot_restores_has_the_reason_of_that_snapshot() -> Case:
    """It changed nothing when it arrived, so the log has only the reason of the whole delivery."""
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
            | 3        | 2024-03-01 | 1  | Bonn |
            """,
            reason="audit",
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 2        | 2024-02-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | change_reason | load_run_id    |
        | Bonn | 2024-01-01     | 2024-02-01   | source_load   | crm/snapshot/1 |
        | Kiel | 2024-02-01     | 2024-03-01   | source_load   | crm/snapshot/2 |
        | Bonn | 2024-03-01     | OPEN         | audit         | crm/snapshot/3 |
        """,
    )


@rule("S19", "S26")
@case
def test_a_snapshot_asserts_nothing_about_an_entity_with_a_bad_row() -> Case:
    """The second snapshot asserts nothing about 1, so the late change before it is in effect up to the third."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 1        | 2024-01-01 | 1  | Bonn | 1     |
            | 1        | 2024-01-01 | 2  | Bonn | 1     |
            | 2        | 2024-02-01 | 1  | Bonn | x!    |
            | 2        | 2024-02-01 | 2  | Bonn | 1     |
            | 3        | 2024-03-01 | 1  | Bonn | 1     |
            | 3        | 2024-03-01 | 2  | Bonn | 1     |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 4        | 1  | 2024-01-20 | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-01-20   |
        | 1  | Kiel | 2024-01-20     | 2024-03-01   |
        | 1  | Bonn | 2024-03-01     | OPEN         |
        | 2  | Bonn | 2024-01-01     | OPEN         |
        """,
    )


@rule("S19", "S26")
@case
def test_an_entity_with_a_bad_row_is_retired_if_the_next_snapshot_omits_it() -> Case:
    """The first snapshot arrives last; the third omits entity 1, which had a bad row in the second."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 2        | 2024-02-01 | 1  | Bonn | x!    |
            | 2        | 2024-02-01 | 2  | Bonn | 1     |
            | 3        | 2024-03-01 | 2  | Bonn | 1     |
            | 1        | 2024-01-01 | 1  | Bonn | 1     |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-03-01   |
        | 2  | Bonn | 2024-02-01     | OPEN         |
        """,
    )


@rule("S5", "S26")
@case
def test_a_valid_row_is_in_effect_even_if_its_entity_also_has_a_bad_row() -> Case:
    """It repeats the stored values; the late change before it is in effect up to this row."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 1        | 2024-01-01 | 1  | Bonn | 1     |
            | 2        | 2024-02-01 | 1  | Bonn | 1     |
            | 2        | 2024-02-01 | 1  | Bonn | x!    |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 4        | 1  | 2024-01-20 | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-01-20   |
        | 1  | Kiel | 2024-01-20     | 2024-02-01   |
        | 1  | Bonn | 2024-02-01     | OPEN         |
        """,
    )


@rule("S19", "S20")
@case
def test_a_late_value_remains_up_to_the_next_snapshot_that_has_its_column() -> Case:
    """March has no column score, so April, which changed nothing when it arrived, ends the late score."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 1        | 2024-01-01 | 1  | Bonn | 1     |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 3        | 2024-03-01 | 1  | Bonn |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 4        | 2024-04-01 | 1  | Bonn | 1     |
            | 2        | 2024-02-01 | 1  | Bonn | 2     |
            """
        ),
        becomes="""
        | score | effective_from | effective_to | load_run_id    |
        | 1     | 2024-01-01     | 2024-02-01   | crm/snapshot/1 |
        | 2     | 2024-02-01     | 2024-04-01   | crm/snapshot/2 |
        | 1     | 2024-04-01     | OPEN         | crm/snapshot/4 |
        """,
    )


@rule("S19", "S30")
@case
def test_a_late_value_remains_while_snapshots_of_another_source_omit_the_entity() -> Case:
    """The source does not decide existence: its snapshot of March asserts nothing, that of April ends the late note."""
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            """
        ),
        snapshots(
            """
            | delivery | at         | id     | note | agent |
            | 1        | 2024-01-01 | 1      | vip  | a     |
            | 3        | 2024-03-01 | no row |      |       |
            | 4        | 2024-04-01 | 1      | vip  | a     |
            | 2        | 2024-02-01 | 1      | new  | a     |
            """,
            source="desk",
        ),
        becomes="""
        | note | effective_from | effective_to |
        | vip  | 2024-01-01     | 2024-02-01   |
        | new  | 2024-02-01     | 2024-04-01   |
        | vip  | 2024-04-01     | OPEN         |
        """,
    )


@rule("S4", "S19")
@case
def test_a_late_row_ends_at_the_absence_after_a_row_of_a_later_time() -> Case:
    """February has a row of March 10. March omits the entity, which existed at no time when that snapshot arrived."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time       | city | email |
            | 2        | 2024-02-01 | 1  | 2024-03-10 | Bonn | e     |
            | 2        | 2024-02-01 | 2  | 2024-01-31 | Ulm  | e     |
            | 3        | 2024-03-01 | 2  | 2024-01-31 | Ulm  | e     |
            | 1        | 2024-01-20 | 1  | 2024-01-10 | Kiel | e     |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Kiel | 2024-01-10     | 2024-03-01   |
        | 1  | Bonn | 2024-03-10     | OPEN         |
        | 2  | Ulm  | 2024-01-31     | OPEN         |
        """,
    )


@rule("S19", "S34")
@case
def test_a_snapshot_changes_the_value_that_a_withdrawn_feed_had_changed_before() -> Case:
    """The snapshot of March changed nothing when it arrived."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            """
        ),
        feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 1        | 1  | 2024-02-01 | Kiel |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 3        | 2024-03-01 | 1  | Kiel |
            """
        ),
        feed(
            """
            | delivery | revision | id        | time | city |
            | 1        | 2        | withdrawn |      |      |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | load_run_id    |
        | Bonn | 2024-01-01     | 2024-03-01   | crm/snapshot/1 |
        | Kiel | 2024-03-01     | OPEN         | crm/snapshot/3 |
        """,
    )
