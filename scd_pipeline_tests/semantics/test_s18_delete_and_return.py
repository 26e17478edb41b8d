"""S18: a delete closes a version and removes no row; provided values stay in effect."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, ARTICLE, CUSTOMER, MEMBER, VENDOR
from scd_pipeline_tests.semantics.specification import Case, case, feed, long_case, requirement, rule, snapshots


@requirement("X12", "X13")
@rule("S18")
@case
def test_a_delete_closes_a_version_and_a_return_opens_the_next_number() -> Case:
    """After a gap, the same value opens a version."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 2        | 1  | 2024-02-01 |    | Kiel |
            | 3        | 1  | 2024-03-01 | D  |      |
            | 4        | 1  | 2024-04-01 |    | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | current_flag |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       | false        |
        | Kiel | 2024-02-01     | 2024-03-01   | 2       | false        |
        | Kiel | 2024-04-01     | OPEN         | 3       | true         |
        """,
        on_page=True,
    )


@rule("S18")
@case
def test_an_entity_that_a_snapshot_omits_is_deleted_at_the_time_of_the_snapshot() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 2  | Ulm  |
            | 2        | 2024-02-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 2  | Ulm  |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 1  | Bonn | 2024-01-01     | OPEN         | 1       |
        | 2  | Ulm  | 2024-01-01     | 2024-02-01   | 1       |
        | 2  | Ulm  | 2024-03-01     | OPEN         | 2       |
        """,
        log="""
        | batch            | id | kind   | time       |
        | crm/snapshot/1/1 | 1  | upsert | 2024-01-01 |
        | crm/snapshot/1/1 | 2  | upsert | 2024-01-01 |
        | crm/snapshot/2/1 | 2  | delete | 2024-02-01 |
        | crm/snapshot/3/1 | 2  | upsert | 2024-03-01 |
        """,
    )


@rule("S18")
@case
def test_an_entity_that_a_feed_omits_is_unchanged() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-01-01 | 1  | 2024-01-01 | Bonn |
            | 1        | 2024-01-01 | 2  | 2024-01-01 | Ulm  |
            | 2        | 2024-02-01 | 1  | 2024-02-01 | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   |
        | 1  | Kiel | 2024-02-01     | OPEN         |
        | 2  | Ulm  | 2024-01-01     | OPEN         |
        """,
    )


@rule("S7", "S8", "S18")
@case
def test_one_history_with_a_change_an_overwrite_a_delete_and_a_return() -> Case:
    """The versions before July have its email too; the return changes neither."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id     | city | score | email |
            | 1        | 2024-01-01 | 1      | Bonn | 10    | a     |
            | 2        | 2024-06-01 | 1      | Kiel | 10    | a     |
            | 3        | 2024-07-01 | 1      | Kiel | 10    | b     |
            | 4        | 2024-09-01 | no row |      |       |       |
            | 5        | 2024-11-01 | 1      | Kiel | 10    | b     |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to | current_flag | version | last_updated |
        | Bonn | b     | 2024-01-01     | 2024-06-01   | false        | 1       | 2024-07-01   |
        | Kiel | b     | 2024-06-01     | 2024-09-01   | false        | 2       | 2024-07-01   |
        | Kiel | b     | 2024-11-01     | OPEN         | true         | 3       | 2024-11-01   |
        """,
        together=True,
    )


@rule("S18")
@case
def test_a_delete_provides_no_values_even_if_its_row_has_some() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city | email |
            | 1        | 1  | 2024-01-01 |    | Bonn | a     |
            | 2        | 1  | 2024-02-01 | D  | Kiel | b     |
            """
        ),
        becomes="""
        | city | email | effective_to |
        | Bonn | a     | 2024-02-01   |
        """,
    )


@rule("S18")
@case
def test_values_from_before_a_delete_are_in_effect_after_the_return() -> Case:
    """The return provides only a city; the score is that of before."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city | score |
            | 1        | 1  | 2024-01-01 |    | Bonn | 7     |
            | 2        | 1  | 2024-02-01 | D  |      |       |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 3        | 1  | 2024-03-01 | Kiel |
            """
        ),
        becomes="""
        | city | score | effective_from | effective_to |
        | Bonn | 7     | 2024-01-01     | 2024-02-01   |
        | Kiel | 7     | 2024-03-01     | OPEN         |
        """,
    )


@rule("S18", "S30")
@case
def test_values_provided_before_an_entity_exists_are_in_effect_once_it_exists() -> Case:
    """A value that is provided while the entity is deleted is in effect after its return. Neither opens a version."""
    return Case(
        ACCOUNT,
        feed(
            """
            | delivery | id | time       | limit |
            | 1        | 1  | 2024-01-01 | 10    |
            """,
            source="erp",
        ),
        snapshots(
            """
            | delivery | at         | id     | city |
            | 2        | 2024-02-01 | 1      | Bonn |
            | 3        | 2024-03-01 | no row |      |
            """
        ),
        feed(
            """
            | delivery | id | time       | limit |
            | 4        | 1  | 2024-04-01 | 20    |
            """,
            source="erp",
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 5        | 2024-05-01 | 1  | Bonn |
            """
        ),
        becomes="""
        | city | limit | effective_from | effective_to | version |
        | Bonn | 10    | 2024-02-01     | 2024-03-01   | 1       |
        | Bonn | 20    | 2024-05-01     | OPEN         | 2       |
        """,
        together=True,
    )


@rule("S14", "S18")
@case
def test_a_late_delete_leaves_a_gap_up_to_the_next_change_record() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 3        | 1  | 2024-03-01 |    | Bonn |
            | 2        | 1  | 2024-02-01 | D  |      |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       | crm/feed/1  |
        | Bonn | 2024-03-01     | OPEN         | 2       | crm/feed/3  |
        """,
    )


@rule("S18")
@long_case
def test_a_delete_can_open_a_version_of_its_own() -> Case:
    """It has the values before, and ends when the entity returns."""
    return Case(
        MEMBER,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 2        | 1  | 2024-02-01 |    | Kiel |
            | 3        | 1  | 2024-03-01 | D  |      |
            | 4        | 1  | 2024-04-01 |    | Kiel |
            | 5        | 1  | 2024-05-01 | D  |      |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | current_flag | is_deleted | change_reason     |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       | false        | false      | source_load       |
        | Kiel | 2024-02-01     | 2024-03-01   | 2       | false        | false      | source_load       |
        | Kiel | 2024-03-01     | 2024-04-01   | 3       | false        | true       | deleted_in_source |
        | Kiel | 2024-04-01     | 2024-05-01   | 4       | false        | false      | source_load       |
        | Kiel | 2024-05-01     | OPEN         | 5       | true         | true       | deleted_in_source |
        """,
        on_page=True,
    )


@rule("S18")
@long_case
def test_the_state_of_a_version_shows_what_happened_to_it_last() -> Case:
    """An article that returns is new again."""
    return Case(
        ARTICLE,
        snapshots(
            """
            | delivery | at         | id | price |
            | 1        | 2024-01-01 | a  | 1     |
            | 1        | 2024-01-01 | b  | 1     |
            | 1        | 2024-01-01 | c  | 1     |
            | 2        | 2024-02-01 | a  | 2     |
            | 2        | 2024-02-01 | b  | 1     |
            | 2        | 2024-02-01 | d  | 1     |
            | 3        | 2024-03-01 | a  | 2     |
            | 3        | 2024-03-01 | b  | 1     |
            | 3        | 2024-03-01 | c  | 1     |
            | 3        | 2024-03-01 | d  | 1     |
            """,
            "erp",
        ),
        becomes="""
        | id | price | effective_from | effective_to | version_state |
        | a  | 1     | 2024-01-01     | 2024-02-01   | changed       |
        | a  | 2     | 2024-02-01     | OPEN         | changed       |
        | b  | 1     | 2024-01-01     | OPEN         | new           |
        | c  | 1     | 2024-01-01     | 2024-02-01   | deleted       |
        | c  | 1     | 2024-03-01     | OPEN         | new           |
        | d  | 1     | 2024-02-01     | OPEN         | new           |
        """,
        on_page=True,
    )


@rule("S14", "S18")
@long_case
def test_a_late_change_record_that_fills_a_gap_changes_the_states_of_its_neighbours() -> Case:
    """The windows of both other versions stay as they are."""
    return Case(
        ARTICLE,
        snapshots(
            """
            | delivery | at         | id     | price |
            | 1        | 2024-01-01 | a      | 1     |
            | 2        | 2024-02-01 | no row |       |
            | 3        | 2024-03-01 | a      | 1     |
            """,
            "erp",
        ),
        feed(
            """
            | delivery | id | time       | price |
            | 9        | a  | 2024-02-01 | 2     |
            """,
            "erp",
        ),
        becomes="""
        | price | effective_from | effective_to | version_state | load_run_id    |
        | 1     | 2024-01-01     | 2024-02-01   | changed       | erp/snapshot/1 |
        | 2     | 2024-02-01     | 2024-03-01   | changed       | erp/feed/9     |
        | 1     | 2024-03-01     | OPEN         | changed       | erp/snapshot/3 |
        """,
    )


@requirement("H34")
@rule("S18", "S26")
@long_case
def test_a_row_of_a_snapshot_that_is_flagged_as_deleted_counts_as_absent() -> Case:
    """Vendor 3 is removed from the extract itself. What a flagged row contains does not matter."""
    return Case(
        VENDOR,
        snapshots(
            """
            | delivery | at         | id | op | name | score |
            | 1        | 2024-01-01 | 1  |    | Acme | 1     |
            | 1        | 2024-01-01 | 2  |    | Beta | 1     |
            | 1        | 2024-01-01 | 3  |    | Core | 1     |
            | 2        | 2024-01-02 | 1  |    | Acme | 1     |
            | 2        | 2024-01-02 | 2  | D  | Beta | many  |
            | 2        | 2024-01-02 | 4  | D  | Dune | 1     |
            | 2        | 2024-01-02 | 3  | D  | Cora | 1     |
            | 2        | 2024-01-02 | 3  |    | Core | 1     |
            | 3        | 2024-01-03 | 1  |    | Acme | 1     |
            | 3        | 2024-01-03 | 2  | D  | Beta | 1     |
            | 4        | 2024-01-04 | 1  |    | Acme | 1     |
            | 4        | 2024-01-04 | 2  |    | Beta | 1     |
            """
        ),
        becomes="""
        | id | name | effective_from | effective_to |
        | 1  | Acme | 2024-01-01     | OPEN         |
        | 2  | Beta | 2024-01-01     | 2024-01-02   |
        | 2  | Beta | 2024-01-04     | OPEN         |
        | 3  | Core | 2024-01-01     | 2024-01-03   |
        """,
        results="""
        | batch            | outcome  | code | rows | bad_rows | deleted |
        | crm/snapshot/1/1 | accepted | ''   | 3    | 0        | 0       |
        | crm/snapshot/2/1 | accepted | ''   | 5    | 0        | 1       |
        | crm/snapshot/3/1 | accepted | ''   | 2    | 0        | 1       |
        | crm/snapshot/4/1 | accepted | ''   | 2    | 0        | 0       |
        """,
        on_page=True,
    )
