"""S37: the row itself as the entity, or a version of a row that its source identifies."""

from __future__ import annotations

from scd_pipeline_tests.semantics.declarations import READING, SENSOR
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S37", "S18")
@case
def test_each_distinct_row_is_an_entity_from_its_first_delivery_until_one_omits_it() -> Case:
    """The row (1, a) returns after a gap; its hash is the one that it had before."""
    return Case(
        READING,
        snapshots(
            """
            | delivery | at         | day        | id | name |
            | 1        | 2024-01-01 | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | 2024-01-01 | 2  | b    |
            | 2        | 2024-01-02 | 2024-01-01 | 1  | aa   |
            | 2        | 2024-01-02 | 2024-01-01 | 2  | b    |
            | 3        | 2024-01-03 | 2024-01-01 | 1  | a    |
            """,
            source="erp",
        ),
        becomes="""
        | id | name | effective_from | effective_to | version |
        | 1  | a    | 2024-01-01     | 2024-01-02   | 1       |
        | 1  | a    | 2024-01-03     | OPEN         | 2       |
        | 1  | aa   | 2024-01-02     | 2024-01-03   | 1       |
        | 2  | b    | 2024-01-01     | 2024-01-03   | 1       |
        """,
        on_page=True,
    )


@rule("S37", "S5", "S8")
@case
def test_identical_rows_are_one_row_and_null_is_a_value_of_a_row() -> Case:
    """The day of all rows is the scope. The row with the empty text is another one than that with NULL."""
    return Case(
        READING,
        snapshots(
            """
            | delivery | at         | day        | id | name |
            | 1        | 2024-01-01 | 2024-01-01 | 1  | NULL |
            | 1        | 2024-01-01 | 2024-01-01 | 1  | NULL |
            | 1        | 2024-01-01 | 2024-01-01 | NULL | NULL |
            | 2        | 2024-01-02 | 2024-01-01 | 1  | ''   |
            | 2        | 2024-01-02 | 2024-01-01 | NULL | NULL |
            """,
            source="erp",
        ),
        becomes="""
        | id   | name | effective_from | effective_to |
        | 1    | NULL | 2024-01-01     | 2024-01-02   |
        | 1    | ''   | 2024-01-02     | OPEN         |
        | NULL | NULL | 2024-01-01     | OPEN         |
        """,
    )


@rule("S37", "S27")
@case
def test_a_snapshot_closes_only_rows_of_its_scope() -> Case:
    """Delivery 4 covers the first day and has no rows, so that all rows of that day are closed."""
    return Case(
        READING,
        snapshots(
            """
            | delivery | at         | scope      | day        | id     | name |
            | 1        | 2024-01-02 |            | 2024-01-01 | 1      | a    |
            | 1        | 2024-01-02 |            | 2024-01-01 | 2      | b    |
            | 2        | 2024-01-03 |            | 2024-01-02 | 3      | c    |
            | 3        | 2024-01-04 |            | 2024-01-01 | 1      | a    |
            | 3        | 2024-01-04 |            | 2024-01-01 | 2      | bb   |
            | 4        | 2024-01-05 | 2024-01-01 |            | no row |      |
            """,
            source="erp",
        ),
        becomes="""
        | day        | id | name | effective_from | effective_to |
        | 2024-01-01 | 1  | a    | 2024-01-02     | 2024-01-05   |
        | 2024-01-01 | 2  | b    | 2024-01-02     | 2024-01-04   |
        | 2024-01-01 | 2  | bb   | 2024-01-04     | 2024-01-05   |
        | 2024-01-02 | 3  | c    | 2024-01-03     | OPEN         |
        """,
    )


@rule("S37", "S27")
@case
def test_the_retire_guard_counts_omitted_rows_less_new_ones() -> Case:
    """A quarter of 24 rows may be omitted without others in their place.

    Delivery 2 changes 14 rows, delivery 3 lacks 7, and delivery 4 lacks the same 7 and adds one.
    """
    return Case(
        READING,
        snapshots(
            """
            | delivery | at         | day        | id     | name |
            | 1        | 2024-01-01 | 2024-01-01 | 1..24  | a    |
            | 2        | 2024-01-02 | 2024-01-01 | 1..10  | a    |
            | 2        | 2024-01-02 | 2024-01-01 | 11..24 | b    |
            | 3        | 2024-01-03 | 2024-01-01 | 1..10  | a    |
            | 3        | 2024-01-03 | 2024-01-01 | 11..17 | b    |
            | 4        | 2024-01-04 | 2024-01-01 | 1..10  | a    |
            | 4        | 2024-01-04 | 2024-01-01 | 11..17 | b    |
            | 4        | 2024-01-04 | 2024-01-01 | 25     | c    |
            """,
            source="erp",
        ),
        becomes="""
        | id     | name | effective_from | effective_to |
        | 1..10  | a    | 2024-01-01     | OPEN         |
        | 11..24 | a    | 2024-01-01     | 2024-01-02   |
        | 11..17 | b    | 2024-01-02     | OPEN         |
        | 18..24 | b    | 2024-01-02     | 2024-01-04   |
        | 25     | c    | 2024-01-04     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | erp/snapshot/1/1 | accepted | ''           |
        | erp/snapshot/2/1 | accepted | ''           |
        | erp/snapshot/3/1 | rejected | RETIRE_GUARD |
        | erp/snapshot/4/1 | accepted | ''           |
        """,
    )


@rule("S37", "S14", "S19", "S34")
@case
def test_late_repeated_and_withdrawn_snapshots_leave_the_same_rows() -> Case:
    """Delivery 2 comes last, and delivery 3 is withdrawn: then the row (2, b) is not closed."""
    return Case(
        READING,
        snapshots(
            """
            | delivery | revision | at         | scope | day        | id        | name |
            | 1        | 1        | 2024-01-01 |       | 2024-01-01 | 1         | a    |
            | 1        | 1        | 2024-01-01 |       | 2024-01-01 | 2         | b    |
            | 3        | 1        | 2024-01-03 |       | 2024-01-01 | 1         | aa   |
            | 1        | 1        | 2024-01-01 |       | 2024-01-01 | 1         | a    |
            | 1        | 1        | 2024-01-01 |       | 2024-01-01 | 2         | b    |
            | 3        | 2        |            |       |            | withdrawn |      |
            | 2        | 1        | 2024-01-02 |       | 2024-01-01 | 1         | aaa  |
            | 2        | 1        | 2024-01-02 |       | 2024-01-01 | 2         | b    |
            """,
            source="erp",
        ),
        becomes="""
        | id | name | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | 2024-01-02   |
        | 1  | aaa  | 2024-01-02     | OPEN         |
        | 2  | b    | 2024-01-01     | OPEN         |
        """,
    )


@rule("S37", "S26", "S27")
@case
def test_a_row_with_a_bad_value_has_no_key_so_that_its_snapshot_closes_no_row() -> Case:
    """Which row has the bad value cannot be known: it may be one that the table has."""
    return Case(
        READING,
        snapshots(
            """
            | delivery | at         | day        | id | name |
            | 1        | 2024-01-01 | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | 2024-01-01 | 2  | b    |
            | 2        | 2024-01-02 | 2024-01-01 | x  | a    |
            | 2        | 2024-01-02 | 2024-01-01 | 3  | c    |
            """,
            source="erp",
        ),
        becomes="""
        | id | name | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | OPEN         |
        | 2  | b    | 2024-01-01     | OPEN         |
        | 3  | c    | 2024-01-02     | OPEN         |
        """,
        quarantine="""
        | batch            | key           | reason |
        | erp/snapshot/2/1 | row_hash=NULL | id: cannot cast 'x' to int; the business key is NULL or cannot be read |
        """,
    )


@rule("S37")
@case
def test_a_feed_opens_rows_and_deletes_those_with_the_same_values() -> Case:
    """A delete of a row that the table does not have changes nothing."""
    return Case(
        READING,
        feed(
            """
            | delivery | time       | op | day        | id | name |
            | 1        | 2024-01-01 | U  | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | U  | 2024-01-01 | 1  | b    |
            | 2        | 2024-01-02 | D  | 2024-01-01 | 1  | a    |
            | 2        | 2024-01-02 | D  | 2024-01-01 | 1  | c    |
            """,
            source="erp",
        ),
        becomes="""
        | id | name | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | 2024-01-02   |
        | 1  | b    | 2024-01-01     | OPEN         |
        """,
    )


@rule("S37", "S26")
@case
def test_other_columns_than_the_row_version_open_no_window() -> Case:
    """Sensor 1 keeps the unit of its first delivery and gets the latest place. A row without its version is bad."""
    return Case(
        SENSOR,
        snapshots(
            """
            | delivery | at         | row_hash | id | place | unit |
            | 1        | 2024-01-01 | x1       | 1  | roof  | C    |
            | 1        | 2024-01-01 | y1       | 2  | door  | C    |
            | 2        | 2024-01-02 | x1       | 1  | wall  | F    |
            | 2        | 2024-01-02 | y2       | 2  | door  | C    |
            | 3        | 2024-01-03 | NULL     | 3  | gate  | C    |
            | 3        | 2024-01-03 | y1       | 2  | door  | C    |
            | 4        | 2024-01-04 | y1       | 2  | door  | C    |
            """,
            source="erp",
        ),
        becomes="""
        | row_hash | id | place | unit | effective_from | effective_to |
        | x1       | 1  | wall  | C    | 2024-01-01     | 2024-01-04   |
        | y1       | 2  | door  | C    | 2024-01-01     | 2024-01-02   |
        | y1       | 2  | door  | C    | 2024-01-03     | OPEN         |
        | y2       | 2  | door  | C    | 2024-01-02     | 2024-01-04   |
        """,
        quarantine="""
        | batch            | key           | reason |
        | erp/snapshot/3/1 | row_hash=NULL | the business key is NULL or cannot be read |
        """,
    )
