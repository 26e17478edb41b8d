"""S26: bad rows are quarantined with their reason and their batch; the other rows are loaded."""

import pytest

from scd_pipeline_tests.semantics.declarations import CUSTOMER, STORE
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import Case, case, declare, feed, rule, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

CLIENT = declare(
    """
    dimension: dim_client
    business_key: {id: int}
    sources:
      crm:
        snapshot: {}
        feed: {effective_at: time, updates: partial, nulls: not_provided}
        bad_row_limit: 1
    attributes:
      city: {scd: 2, required: true}
      email: 1
    """
)


@rule("S26")
@case
def test_a_bad_row_is_quarantined_and_the_others_are_loaded() -> Case:
    """The quarantine has its batch, its key if it can be read, each reason, and the row as delivered."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id   | time       | city | score |
            | 1        | 1    | 2024-01-01 | Bonn | 1     |
            | 1        | 2    | 2024-01-01 | Bonn | 2     |
            | 1        | 3    | 2024-01-01 | Bonn | 3     |
            | 1        | 4    | 2024-01-01 | Bonn | 4     |
            | 1        | NULL | 2024-01-01 | Bonn | 5     |
            | 1        | 6    | NULL       | Bonn | 6     |
            | 1        | 7    | 2024-01-01 | Bonn | many  |
            | 1        | 8    | soon       | Bonn | 8     |
            """
        ),
        becomes="""
        | id | city | score |
        | 1  | Bonn | 1     |
        | 2  | Bonn | 2     |
        | 3  | Bonn | 3     |
        | 4  | Bonn | 4     |
        """,
        quarantine="""
        | batch        | key     | reason                                                                   |
        | crm/feed/1/1 | id=NULL | the business key is NULL or cannot be read                               |
        | crm/feed/1/1 | id=6    | effective_at is missing                                                  |
        | crm/feed/1/1 | id=7    | "score: cannot cast 'many' to int"                                       |
        | crm/feed/1/1 | id=8    | "effective_at: cannot cast 'soon' to timestamp; effective_at is missing" |
        """,
        results="""
        | batch        | outcome  | code | rows | bad_rows | new |
        | crm/feed/1/1 | accepted | ''   | 8    | 4        | 4   |
        """,
        on_page=True,
    )


@rule("S26")
@case
def test_a_key_that_does_not_cast_cannot_be_read() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id  | time       | city |
            | 1        | 1   | 2024-01-01 | Bonn |
            | 1        | one | 2024-01-01 | Kiel |
            """
        ),
        becomes="""
        | id | city |
        | 1  | Bonn |
        """,
        quarantine="""
        | batch        | key     | reason                                                                     |
        | crm/feed/1/1 | id=NULL | "id: cannot cast 'one' to int; the business key is NULL or cannot be read" |
        """,
    )


@rule("S26")
@case
def test_a_key_with_a_null_column_cannot_be_read() -> Case:
    return Case(
        STORE,
        feed(
            """
            | delivery | region | id   | time       | city |
            | 1        | n      | 1    | 2024-01-01 | Bonn |
            | 1        | n      | NULL | 2024-01-01 | Kiel |
            """,
            source="pos",
        ),
        becomes="""
        | region | id  | city |
        | n      | '1' | Bonn |
        """,
        quarantine="""
        | batch        | key                 | reason                                     |
        | pos/feed/1/1 | 'region=n, id=NULL' | the business key is NULL or cannot be read |
        """,
    )


@rule("S26")
@case
def test_a_bad_row_of_a_snapshot_counts_as_present_and_provides_no_values() -> Case:
    """Its entity keeps its values and is not deleted. The bad row is in the log with kind `bad`."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | score |
            | 1        | 2024-01-01 | 1  | Bonn | 1     |
            | 1        | 2024-01-01 | 2  | Bonn | 1     |
            | 2        | 2024-02-01 | 1  | Kiel | 2     |
            | 2        | 2024-02-01 | 2  | Kiel | x!    |
            """
        ),
        becomes="""
        | id | city | score | effective_from | effective_to |
        | 1  | Bonn | 1     | 2024-01-01     | 2024-02-01   |
        | 1  | Kiel | 2     | 2024-02-01     | OPEN         |
        | 2  | Bonn | 1     | 2024-01-01     | OPEN         |
        """,
        log="""
        | batch            | id | kind   | city | time       |
        | crm/snapshot/1/1 | 1  | upsert | Bonn | 2024-01-01 |
        | crm/snapshot/1/1 | 2  | upsert | Bonn | 2024-01-01 |
        | crm/snapshot/2/1 | 1  | upsert | Kiel | 2024-02-01 |
        | crm/snapshot/2/1 | 2  | bad    | NULL | 2024-02-01 |
        """,
        quarantine="""
        | batch            | key  | reason                           |
        | crm/snapshot/2/1 | id=2 | "score: cannot cast 'x!' to int" |
        """,
    )


@rule("S26")
@case
def test_a_bad_row_alone_creates_no_entity() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | score |
            | 1        | 2024-01-01 | 1  | 1     |
            | 1        | 2024-01-01 | 2  | x!    |
            """
        ),
        becomes="""
        | id | score |
        | 1  | 1     |
        """,
    )


@rule("S26")
@case
def test_a_batch_with_too_many_bad_rows_is_rejected() -> Case:
    """With `bad_row_limit: 0.5` half of the rows may be bad; nothing of a rejected batch is written."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | score |
            | 1        | 1  | 2024-01-01 | 1     |
            | 1        | 2  | 2024-01-01 | x!    |
            | 2        | 3  | 2024-01-01 | 1     |
            | 2        | 4  | 2024-01-01 | x!    |
            | 2        | 5  | 2024-01-01 | x!    |
            """
        ),
        becomes="""
        | id | score |
        | 1  | 1     |
        """,
        results="""
        | arrives | batch        | outcome  | code     |
        | 1       | crm/feed/1/1 | accepted | ''       |
        | 2       | crm/feed/2/1 | rejected | BAD_ROWS |
        """,
        quarantine="""
        | batch        | key  | reason                           |
        | crm/feed/1/1 | id=2 | "score: cannot cast 'x!' to int" |
        """,
    )


@rule("S26")
@case
def test_the_bad_row_limit_can_be_overridden() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | score | allow |
            | 1        | 1  | 2024-01-01 | 1     |       |
            | 1        | 2  | 2024-01-01 | x!    |       |
            | 1        | 3  | 2024-01-01 | x!    |       |
            """
        ),
        feed(
            """
            | delivery | id | time       | score | allow    |
            | 1        | 1  | 2024-01-01 | 1     | bad_rows |
            | 1        | 2  | 2024-01-01 | x!    | bad_rows |
            | 1        | 3  | 2024-01-01 | x!    | bad_rows |
            """
        ),
        becomes="""
        | id | score |
        | 1  | 1     |
        """,
        results="""
        | arrives | batch        | outcome  | code     | bad_rows |
        | 1       | crm/feed/1/1 | rejected | BAD_ROWS | 2        |
        | 2       | crm/feed/1/1 | accepted | ''       | 2        |
        """,
    )


@rule("S26", "S34")
@case
def test_fixed_rows_arrive_as_a_revision_at_the_position_of_their_delivery() -> Case:
    """They are late-arriving. A retry of the first file has no effect; its bad row is superseded."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | score |
            | 1        | 1        | 2024-01-01 | 1  | 1     |
            | 1        | 1        | 2024-01-01 | 2  | x!    |
            | 2        | 1        | 2024-02-01 | 1  | 1     |
            | 2        | 1        | 2024-02-01 | 2  | 3     |
            | 1        | 2        | 2024-01-01 | 1  | 1     |
            | 1        | 2        | 2024-01-01 | 2  | 2     |
            | 1        | 1        | 2024-01-01 | 1  | 1     |
            | 1        | 1        | 2024-01-01 | 2  | x!    |
            """
        ),
        becomes="""
        | id | score | effective_from | effective_to |
        | 1  | 1     | 2024-01-01     | OPEN         |
        | 2  | 2     | 2024-01-01     | 2024-02-01   |
        | 2  | 3     | 2024-02-01     | OPEN         |
        """,
        results="""
        | arrives | batch            | outcome    | code |
        | 1       | crm/snapshot/1/1 | accepted   | ''   |
        | 2       | crm/snapshot/2/1 | accepted   | ''   |
        | 3       | crm/snapshot/1/2 | accepted   | ''   |
        | 4       | crm/snapshot/1/1 | superseded | ''   |
        """,
        quarantine="""
        | batch            | state      | key  | reason                           |
        | crm/snapshot/1/1 | superseded | id=2 | "score: cannot cast 'x!' to int" |
        """,
    )


@rule("S26")
@case
def test_a_row_outside_the_scope_of_its_snapshot_is_a_bad_row() -> Case:
    return Case(
        STORE,
        snapshots(
            """
            | delivery | at         | scope | region | id | city |
            | 1        | 2024-01-01 | n     | n      | 1  | Bonn |
            | 1        | 2024-01-01 | n     | s      | 2  | Ulm  |
            """,
            source="pos",
        ),
        becomes="""
        | region | id  | city |
        | n      | '1' | Bonn |
        """,
        quarantine="""
        | batch            | key              | reason                          |
        | pos/snapshot/1/1 | 'region=s, id=2' | outside of the delivery's scope |
        """,
    )


@rule("S26", "S18")
@case
def test_bad_values_in_the_attributes_of_a_delete_are_ignored() -> Case:
    """Its key and its time are required."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | score | op |
            | 1        | 1  | 2024-01-01 | Bonn | 1     |    |
            | 2        | 1  | 2024-02-01 | -    | -     | D  |
            | 3        | 2  | 2024-01-01 | Kiel | 1     |    |
            | 3        | 2  | soon       | -    | -     | D  |
            """
        ),
        becomes="""
        | id | city | score | effective_from | effective_to |
        | 1  | Bonn | 1     | 2024-01-01     | 2024-02-01   |
        | 2  | Kiel | 1     | 2024-01-01     | OPEN         |
        """,
        quarantine="""
        | batch        | key  | reason                                                                   |
        | crm/feed/3/1 | id=2 | "effective_at: cannot cast 'soon' to timestamp; effective_at is missing" |
        """,
    )


@pytest.mark.slow
@rule("S26", "S30")
def test_a_required_attribute_may_be_not_provided(own_tables: OwnTables) -> None:
    """NULL is a missing value in the snapshot; in the feed it means "not provided"."""
    result = own_tables.load(
        CLIENT.dimension,
        snapshots(
            """
            | delivery | at         | id | city | email |
            | 1        | 2024-01-01 | 1  | Bonn | a     |
            | 1        | 2024-01-01 | 2  | NULL | b     |
            """
        ),
        feed(
            """
            | delivery | id | time       | city | email |
            | 2        | 1  | 2024-02-01 | NULL | c     |
            """
        ),
    )
    assert [(batch.delivery, batch.outcome, batch.bad_rows) for batch in result.results] == [
        ("1", "accepted", 1),
        ("2", "accepted", 0),
    ]
    rows = """
    | id | city | email | effective_from |
    | 1  | Bonn | c     | 2024-01-01     |
    """
    assert_same_rows(rows, own_tables.rows(CLIENT.dimension))
