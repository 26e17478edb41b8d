"""S33: a table with only types 0, 1 and 3 has one row for each entity, and no windows."""

from scd_pipeline_tests.semantics.declarations import COUNTRY, PARTNER
from scd_pipeline_tests.semantics.specification import Case, case, feed, long_case, requirement, rule, snapshots


@rule("S33")
@case
def test_one_row_for_each_entity() -> Case:
    """It names the delivery with which the entity first existed; `last_updated` has the last change of its values."""
    return Case(
        COUNTRY,
        snapshots(
            """
            | delivery | at         | id | founded | name | capital |
            | 1        | 2024-01-01 | 1  | 1949    | BRD  | Bonn    |
            | 1        | 2024-01-01 | 2  | 1814    | NO   | Oslo    |
            | 2        | 2024-02-01 | 1  | 1990    | D    | Berlin  |
            | 2        | 2024-02-01 | 2  | 1814    | NO   | Oslo    |
            """,
            source="iso",
        ),
        becomes="""
        | id | founded | name | capital | previous_capital | load_run_id    | last_updated | deleted_at |
        | 1  | 1949    | D    | Berlin  | Bonn             | iso/snapshot/1 | 2024-02-01   | NULL       |
        | 2  | 1814    | NO   | Oslo    | NULL             | iso/snapshot/1 | 2024-01-01   | NULL       |
        """,
        on_page=True,
    )


@rule("S18", "S33")
@case
def test_the_row_of_a_deleted_entity_is_kept_optionally_with_deleted_at() -> Case:
    """The second entity returns: its row does not show the gap."""
    return Case(
        COUNTRY,
        snapshots(
            """
            | delivery | at         | id     | name |
            | 1        | 2024-01-01 | 1      | DDR  |
            | 1        | 2024-01-01 | 2      | NO   |
            | 2        | 2024-02-01 | no row |      |
            | 3        | 2024-03-01 | 2      | NO   |
            """,
            source="iso",
        ),
        becomes="""
        | id | name | deleted_at | load_run_id    | last_updated |
        | 1  | DDR  | 2024-02-01 | iso/snapshot/1 | 2024-01-01   |
        | 2  | NO   | NULL       | iso/snapshot/1 | 2024-01-01   |
        """,
    )


@rule("S33")
@case
def test_deleted_at_is_the_time_of_the_last_delete() -> Case:
    return Case(
        COUNTRY,
        feed(
            """
            | delivery | at         | id | op | name |
            | 1        | 2024-01-01 | 1  |    | x    |
            | 2        | 2024-02-01 | 1  | D  |      |
            | 3        | 2024-03-01 | 1  |    | y    |
            | 4        | 2024-04-01 | 1  | D  |      |
            | 5        | 2024-05-01 | 1  | D  |      |
            """,
            source="iso",
        ),
        becomes="""
        | name | deleted_at | load_run_id | last_updated |
        | y    | 2024-04-01 | iso/feed/1  | 2024-03-01   |
        """,
        together=True,
    )


@requirement("X12")
@rule("S33")
@case
def test_the_stored_row_of_a_deleted_entity_is_removed() -> Case:
    return Case(
        PARTNER,
        snapshots(
            """
            | delivery | at         | id | name |
            | 1        | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | 2  | b    |
            | 2        | 2024-02-01 | 2  | b    |
            """,
            source="sap",
        ),
        becomes="""
        | id | name | load_run_id    | last_updated |
        | 2  | b    | sap/snapshot/1 | 2024-01-01   |
        """,
    )


@requirement("X12")
@rule("S33")
@long_case
def test_the_row_of_a_deleted_entity_is_removed_if_declared() -> Case:
    """The row of an entity that returns is written again, and names the delivery with which it first existed."""
    return Case(
        PARTNER,
        snapshots(
            """
            | delivery | at         | id | name |
            | 1        | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | 2  | b    |
            | 1        | 2024-01-01 | 3  | c    |
            | 2        | 2024-02-01 | 2  | b    |
            | 3        | 2024-03-01 | 1  | d    |
            | 3        | 2024-03-01 | 2  | b    |
            """,
            source="sap",
        ),
        becomes="""
        | id | name | load_run_id    | last_updated |
        | 1  | d    | sap/snapshot/1 | 2024-03-01   |
        | 2  | b    | sap/snapshot/1 | 2024-01-01   |
        """,
    )


@rule("S19", "S33")
@long_case
def test_a_late_absence_does_not_remove_an_entity_that_exists_later() -> Case:
    return Case(
        PARTNER,
        snapshots(
            """
            | delivery | at         | id     | name |
            | 1        | 2024-01-01 | 1      | a    |
            | 3        | 2024-03-01 | 1      | a    |
            | 2        | 2024-02-01 | no row |      |
            """,
            source="sap",
        ),
        becomes="""
        | id | name | load_run_id    |
        | 1  | a    | sap/snapshot/1 |
        """,
    )
