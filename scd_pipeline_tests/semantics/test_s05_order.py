"""S5: the order of changes, in a batch and between batches."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, CUSTOMER
from scd_pipeline_tests.semantics.specification import (
    Case,
    case,
    declare,
    feed,
    long_case,
    requirement,
    rule,
    snapshots,
)


@requirement("X14")
@rule("S5")
@case
def test_all_changes_of_a_batch_become_versions() -> Case:
    """In order of position: time, then sequence with NULL first. The order of the file has no effect."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | seq | op | city  |
            | 1        | 1  | 2024-03-01 |     |    | Ulm   |
            | 1        | 1  | 2024-01-01 |     |    | Bonn  |
            | 1        | 1  | 2024-02-01 | 10  |    | Kiel  |
            | 1        | 1  | 2024-02-01 | 9   |    | Jena  |
            | 1        | 1  | 2024-03-01 | 0   |    | Trier |
            | 1        | 1  | 2024-04-01 |     | D  |       |
            """
        ),
        becomes="""
        | city  | effective_from | effective_to | version |
        | Bonn  | 2024-01-01     | 2024-02-01   | 1       |
        | Kiel  | 2024-02-01     | 2024-03-01   | 2       |
        | Trier | 2024-03-01     | 2024-04-01   | 3       |
        """,
        on_page=True,
    )


@requirement("X15")
@rule("S5")
@case
def test_at_equal_time_the_last_change_wins_for_each_attribute_that_it_provides() -> Case:
    """The second delivery provides no email, so that of the first one is used."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | email |
            | 1        | 1  | 2024-01-01 | Bonn | a     |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 2        | 1  | 2024-01-01 | Kiel |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to | load_run_id |
        | Kiel | a     | 2024-01-01     | OPEN         | crm/feed/2  |
        """,
    )


@rule("S5")
@case
def test_the_sequence_orders_changes_before_the_delivery_name() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | seq | city |
            | 1        | 1  | 2024-01-01 | 5   | five |
            | 2        | 1  | 2024-01-01 | 4   | four |
            | 3        | 2  | 2024-01-01 | -1  | less |
            | 4        | 2  | 2024-01-01 |     | none |
            """
        ),
        becomes="""
        | id | city |
        | 1  | five |
        | 2  | less |
        """,
    )


@rule("S5")
@case
def test_delivery_names_are_ordered_as_dates_numbers_or_text() -> Case:
    """Dates are before numbers, and numbers before text; 10 is after 9, and the tenth day after the ninth."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery   | id | time       | city   |
            | 10         | 1  | 2024-01-01 | ten    |
            | 9          | 1  | 2024-01-01 | nine   |
            | 2024-01-10 | 4  | 2024-01-01 | tenth  |
            | 2024-01-09 | 2  | 2024-01-01 | date   |
            | 2024-01-09 | 4  | 2024-01-01 | ninth  |
            | 8          | 2  | 2024-01-01 | number |
            | b          | 3  | 2024-01-01 | text   |
            """
        ),
        feed(
            """
            | delivery | id | time       | city   |
            | 7        | 3  | 2024-01-01 | number |
            """
        ),
        becomes="""
        | id | city   |
        | 1  | ten    |
        | 2  | number |
        | 3  | text   |
        | 4  | tenth  |
        """,
        together=True,
    )


@requirement("X15")
@rule("S5")
@case
def test_a_batch_with_unordered_changes_is_rejected_as_a_whole() -> Case:
    """The error names the keys. The row of the other entity is not loaded either; the other batches are."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | op |
            | 1        | 1  | 2024-01-01 | Bonn |    |
            | 2        | 1  | 2024-02-01 | Kiel |    |
            | 2        | 1  | 2024-02-01 | Ulm  |    |
            | 2        | 2  | 2024-02-01 | Jena |    |
            | 3        | 3  | 2024-02-01 | Jena |    |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | OPEN         |
        | 3  | Jena | 2024-02-01     | OPEN         |
        """,
        results="""
        | batch        | outcome  | code              | keys |
        | crm/feed/1/1 | accepted | ''                | ''   |
        | crm/feed/2/1 | rejected | UNORDERED_CHANGES | id=1 |
        | crm/feed/3/1 | accepted | ''                | ''   |
        """,
    )


@rule("S5", "S34")
@case
def test_a_rejected_revision_leaves_the_lower_one_current() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2        | 2024-01-01 | 1  | Kiel |
            | 1        | 2        | 2024-01-01 | 1  | Ulm  |
            """
        ),
        becomes="""
        | id | city | load_run_id    |
        | 1  | Bonn | crm/snapshot/1 |
        """,
        results="""
        | batch            | outcome  | code              |
        | crm/snapshot/1/1 | accepted | ''                |
        | crm/snapshot/1/2 | rejected | UNORDERED_CHANGES |
        """,
    )


@rule("S5")
@case
def test_a_value_conflicts_with_null_and_a_delete_conflicts_with_an_upsert() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | op |
            | 1        | 1  | 2024-01-01 | Bonn |    |
            | 1        | 1  | 2024-01-01 | NULL |    |
            | 2        | 2  | 2024-01-01 | Bonn |    |
            | 2        | 2  | 2024-01-01 | Bonn | D  |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 3        | 2024-01-01 | 3  | Bonn |
            | 3        | 2024-01-01 | 3  | Kiel |
            """
        ),
        becomes="| id | city |",
        results="""
        | batch            | outcome  | code              |
        | crm/feed/1/1     | rejected | UNORDERED_CHANGES |
        | crm/feed/2/1     | rejected | UNORDERED_CHANGES |
        | crm/snapshot/3/1 | rejected | UNORDERED_CHANGES |
        """,
    )


@rule("S5", "S13")
@case
def test_equal_rows_become_one_change_record() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | op |
            | 1        | 1  | 2024-01-01 | Bonn |    |
            | 1        | 1  | 2024-01-01 | Bonn |    |
            | 2        | 1  | 2024-02-01 |      | D  |
            | 2        | 1  | 2024-02-01 |      | D  |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 3        | 2024-03-01 | 1  | Bonn |
            | 3        | 2024-03-01 | 1  | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       |
        | Bonn | 2024-03-01     | OPEN         | 2       |
        """,
        results="""
        | batch            | outcome  | code | rows | new |
        | crm/feed/1/1     | accepted | ''   | 2    | 1   |
        | crm/feed/2/1     | accepted | ''   | 2    | 0   |
        | crm/snapshot/3/1 | accepted | ''   | 2    | 1   |
        """,
    )


@rule("S5", "S30")
@case
def test_rows_that_provide_different_attributes_become_one_change_record() -> Case:
    """If NULL means "not provided", the rows of one position do not provide different values of an attribute."""
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            """
        ),
        feed(
            """
            | delivery | id | time       | limit | owner |
            | 2        | 1  | 2024-02-01 | 10    | NULL  |
            | 2        | 1  | 2024-02-01 | NULL  | o     |
            | 2        | 1  | 2024-02-01 | NULL  | NULL  |
            """,
            source="erp",
        ),
        becomes="""
        | city | limit | owner | effective_from | effective_to |
        | Bonn | NULL  | o     | 2024-01-01     | 2024-02-01   |
        | Bonn | 10    | o     | 2024-02-01     | OPEN         |
        """,
    )


@rule("S5", "S13")
@case
def test_a_delete_and_an_upsert_at_the_same_time_leave_no_gap() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | seq | op | city |
            | 1        | 1  | 2024-01-01 |     |    | Bonn |
            | 2        | 1  | 2024-02-01 | 1   | D  |      |
            | 2        | 1  | 2024-02-01 | 2   |    | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id |
        | Bonn | 2024-01-01     | OPEN         | 1       | crm/feed/1  |
        """,
    )


BY_DELETES = declare(
    """
    dimension: dim_ordered_by_deletes
    business_key: {id: int}
    sources:
      crm:
        feed: {effective_at: time, sequence: seq, reason: reason, deletes: "op = 'D'", ties: delete_wins}
    attributes: {city: 2}
    """
)

BY_ROWS = declare(
    """
    dimension: dim_ordered_by_rows
    business_key: {id: int}
    sources:
      crm:
        snapshot: {ties: last_row}
        feed:
          effective_at: time
          sequence: seq
          reason: reason
          deletes: "op = 'D'"
          updates: partial
          nulls: not_provided
          ties: last_row
    attributes: {city: 2, email: 1}
    """
)

BY_FIRST_ROW = declare(BY_ROWS.text.replace("last_row", "first_row").replace("by_rows", "by_first_row"))


@requirement("X15")
@rule("S5")
@long_case
def test_with_ties_delete_wins_a_delete_has_precedence() -> Case:
    """The order of the file has no effect. The other rows of its position have no effect."""
    return Case(
        BY_DELETES,
        feed(
            """
            | delivery | id | time       | seq | op | city | reason |
            | 1        | 1  | 2024-01-01 |     |    | Bonn |        |
            | 1        | 2  | 2024-01-01 |     |    | Bonn |        |
            | 2        | 1  | 2024-02-01 |     |    | Kiel |        |
            | 2        | 1  | 2024-02-01 |     | D  |      |        |
            | 2        | 1  | 2024-02-01 |     |    | Ulm  |        |
            | 2        | 2  | 2024-02-01 | 1   | D  |      |        |
            | 2        | 2  | 2024-02-01 | 2   |    | Jena |        |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   |
        | 2  | Bonn | 2024-01-01     | 2024-02-01   |
        | 2  | Jena | 2024-02-01     | OPEN         |
        """,
    )


@rule("S5")
@long_case
def test_with_ties_delete_wins_different_values_are_still_rejected() -> Case:
    return Case(
        BY_DELETES,
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | Bonn |
            | 1        | 1  | 2024-01-01 |    | Kiel |
            | 1        | 2  | 2024-01-01 |    | Ulm  |
            | 1        | 2  | 2024-01-01 | D  |      |
            """
        ),
        becomes="| id | city |",
        results="""
        | batch        | outcome  | code              |
        | crm/feed/1/1 | rejected | UNORDERED_CHANGES |
        """,
    )


@requirement("X15")
@rule("S5")
@case
def test_with_ties_last_row_the_last_row_has_precedence() -> Case:
    """The last row of entity 1 provides no email, so that of the row before is used. Its reason is the record's."""
    return Case(
        BY_ROWS,
        feed(
            """
            | delivery | id | time       | op | city | email | reason |
            | 1        | 1  | 2024-01-01 |    | Bonn | a     | x      |
            | 1        | 2  | 2024-01-01 | D  |      |       |        |
            | 1        | 1  | 2024-01-01 | D  |      |       |        |
            | 1        | 1  | 2024-01-01 |    | Kiel | b     | y      |
            | 1        | 2  | 2024-01-01 |    | Ulm  | c     |        |
            | 1        | 1  | 2024-01-01 |    | Jena | NULL  | z      |
            | 1        | 3  | 2024-01-01 |    | Ulm  | c     |        |
            | 1        | 3  | 2024-01-01 | D  |      |       |        |
            """
        ),
        becomes="""
        | id | city | email | effective_from | effective_to | change_reason |
        | 1  | Jena | b     | 2024-01-01     | OPEN         | z             |
        | 2  | Ulm  | c     | 2024-01-01     | OPEN         | source_load   |
        """,
        results="""
        | batch        | outcome  | code | rows | new |
        | crm/feed/1/1 | accepted | ''   | 8    | 2   |
        """,
    )


@rule("S5")
@case
def test_with_ties_last_row_the_last_row_of_a_snapshot_has_precedence() -> Case:
    return Case(
        BY_ROWS,
        snapshots(
            """
            | delivery | at         | id | city | email |
            | 1        | 2024-01-01 | 1  | Bonn | a     |
            | 1        | 2024-01-01 | 2  | Ulm  | c     |
            | 1        | 2024-01-01 | 1  | Kiel | NULL  |
            """
        ),
        becomes="""
        | id | city | email | version |
        | 1  | Kiel | NULL  | 1       |
        | 2  | Ulm  | c     | 1       |
        """,
    )


@rule("S5")
@requirement("X15")
@long_case
def test_with_ties_first_row_the_first_row_has_precedence() -> Case:
    """The first row of entity 1 provides no email, so that of the row after it is used. Its reason is the record's."""
    return Case(
        BY_FIRST_ROW,
        feed(
            """
            | delivery | id | time       | op | city | email | reason |
            | 1        | 1  | 2024-01-01 |    | Jena | NULL  | z      |
            | 1        | 2  | 2024-01-01 |    | Ulm  | c     |        |
            | 1        | 1  | 2024-01-01 |    | Kiel | b     | y      |
            | 1        | 1  | 2024-01-01 | D  |      |       |        |
            | 1        | 2  | 2024-01-01 | D  |      |       |        |
            | 1        | 1  | 2024-01-01 |    | Bonn | a     | x      |
            | 1        | 3  | 2024-01-01 | D  |      |       |        |
            | 1        | 3  | 2024-01-01 |    | Ulm  | c     |        |
            """
        ),
        becomes="""
        | id | city | email | effective_from | effective_to | change_reason |
        | 1  | Jena | b     | 2024-01-01     | OPEN         | z             |
        | 2  | Ulm  | c     | 2024-01-01     | OPEN         | source_load   |
        """,
        results="""
        | batch        | outcome  | code | rows | new |
        | crm/feed/1/1 | accepted | ''   | 8    | 2   |
        """,
    )


@rule("S5")
@long_case
def test_with_ties_first_row_the_first_row_of_a_snapshot_has_precedence() -> Case:
    return Case(
        BY_FIRST_ROW,
        snapshots(
            """
            | delivery | at         | id | city | email |
            | 1        | 2024-01-01 | 1  | Kiel | NULL  |
            | 1        | 2024-01-01 | 2  | Ulm  | c     |
            | 1        | 2024-01-01 | 1  | Bonn | a     |
            """
        ),
        becomes="""
        | id | city | email | version |
        | 1  | Kiel | NULL  | 1       |
        | 2  | Ulm  | c     | 1       |
        """,
    )


@rule("S5", "S34")
@long_case
def test_with_ties_last_row_the_row_order_is_part_of_the_content_of_a_batch() -> Case:
    """A batch with another last row has other content; an equal row order among tied rows is a retry."""
    return Case(
        BY_ROWS,
        feed(
            """
            | delivery | revision | id | time       | city | email |
            | 1        | 1        | 1  | 2024-01-01 | Bonn | a     |
            | 1        | 1        | 1  | 2024-01-01 | Kiel | b     |
            | 1        | 1        | 2  | 2024-01-01 | Ulm  | c     |
            """
        ),
        feed(
            """
            | delivery | revision | id | time       | city | email |
            | 1        | 2        | 2  | 2024-01-01 | Ulm  | c     |
            | 1        | 2        | 1  | 2024-01-01 | Bonn | a     |
            | 1        | 2        | 1  | 2024-01-01 | Kiel | b     |
            """
        ),
        feed(
            """
            | delivery | revision | id | time       | city | email |
            | 1        | 2        | 1  | 2024-01-01 | Kiel | b     |
            | 1        | 2        | 1  | 2024-01-01 | Bonn | a     |
            | 1        | 2        | 2  | 2024-01-01 | Ulm  | c     |
            """
        ),
        becomes="""
        | id | city | email |
        | 1  | Kiel | b     |
        | 2  | Ulm  | c     |
        """,
        results="""
        | arrives | batch        | outcome   | code             |
        | 1       | crm/feed/1/1 | accepted  | ''               |
        | 2       | crm/feed/1/2 | unchanged | ''               |
        | 3       | crm/feed/1/2 | rejected  | REVISION_CONTENT |
        """,
    )
