"""S20: columns that are missing, new, renamed, retired, or that nobody declared."""

import pytest

from scd_pipeline.errors import DeclarationError
from scd_pipeline.load import plan
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.ground import OwnTables
from scd_pipeline_tests.semantics.specification import (
    Case,
    by_files,
    case,
    declared,
    feed,
    oracle_batch,
    rule,
    snapshots,
)
from scd_pipeline_tests.text_tables import assert_same_rows

LAST_YEAR = declared(
    """
    dimension: dim_shop
    business_key: {id: int}
    sources:
      pos: {snapshot: {}}
    attributes:
      town: 2
      score: {scd: 2, type: int}
      email: 1
    """
)
THIS_YEAR = declared(
    """
    dimension: dim_shop
    business_key: {id: int}
    sources:
      pos: {snapshot: {}}
    attributes:
      city: {scd: 2, former_names: town}                   # renamed
      score: {scd: 2, type: int, retired: true}            # no longer stated
      email: {scd: 1, optional: true}                      # may be missing
      tier: 2                                              # new
    """
)
LAST = snapshots(
    """
    | delivery | at         | id | town | score | email | colour |
    | 1        | 2024-01-01 | 1  | Bonn | 1     | a     | red    |
    | 1        | 2024-01-01 | 2  | Ulm  | 2     | b     | blue   |
    """,
    source="pos",
)
LACKING = snapshots(
    """
    | delivery | at         | id | town | score |
    | 2        | 2024-02-01 | 1  | Kiel | 1     |
    """,
    source="pos",
)
THIS = snapshots(
    """
    | delivery | at         | id | city | score | tier |
    | 3        | 2024-03-01 | 1  | Bonn | 7     | Gold |
    | 3        | 2024-03-01 | 2  | Kiel | 7     | NULL |
    """,
    source="pos",
)


@rule("S20")
def test_what_becomes_of_columns_when_the_declaration_changes(own_tables: OwnTables) -> None:
    last, this = LAST_YEAR.dimension, THIS_YEAR.dimension
    told = own_tables.load(last, LAST, LACKING)
    assert_same_rows(
        """
        | batch_id         | outcome  | rule           | undeclared | error                                    |
        | pos/snapshot/1/1 | accepted | ''             | colour     | ''                                       |
        | pos/snapshot/2/1 | stopped  | missing column | ''         | "it lacks email; it has id, score, town" |
        """,
        [
            {
                "batch_id": batch.batch_id,
                "outcome": batch.outcome,
                "rule": batch.rule,
                "undeclared": ", ".join(batch.undeclared),
                "error": batch.error,
            }
            for batch in told.batches
        ],
    )
    assert "colour" not in own_tables.rows(last)[0]

    own_tables.load(this, THIS).raise_if_stopped()
    becomes = """
        | id | city | score | email | tier | effective_from | effective_to | load_run_id    |
        | 1  | Bonn | 1     | a     | NULL | 2024-01-01     | 2024-03-01   | pos/snapshot/1 |
        | 1  | Bonn | 1     | a     | Gold | 2024-03-01     | OPEN         | pos/snapshot/3 |
        | 2  | Ulm  | 2     | b     | NULL | 2024-01-01     | 2024-03-01   | pos/snapshot/1 |
        | 2  | Kiel | 2     | b     | NULL | 2024-03-01     | OPEN         | pos/snapshot/3 |
    """
    assert_same_rows(becomes, own_tables.rows(this))
    assert "town" not in own_tables.rows(this)[0]
    before, after = ([oracle_batch(b, d) for b in t.batches(d)] for t, d in ((LAST, last), (THIS, this)))
    assert_same_rows(becomes, o.oracle(THIS_YEAR.dim, [*before, *after]))

    with pytest.raises(DeclarationError, match=r"the table has attribute email, which the declaration does not name"):
        plan(own_tables.warehouse, by_files(WITHOUT_EMAIL.dimension), [])


@rule("S19", "S20")
def test_a_snapshot_from_before_a_renaming_still_states_its_column(own_tables: OwnTables) -> None:
    """A late delivery lies before it: what it stated under the former name goes on from there."""
    last, this = LAST_YEAR.dimension, THIS_YEAR.dimension
    early = snapshots(
        """
        | delivery | at         | id | town | score | email |
        | 1        | 2024-01-01 | 1  | Bonn | 1     | a     |
        | 3        | 2024-03-01 | 1  | Bonn | 1     | a     |
        """,
        source="pos",
    )
    late = snapshots(
        """
        | delivery | at         | id | city | score | email | tier |
        | 2        | 2024-02-01 | 1  | Kiel | 1     | a     | Gold |
        """,
        source="pos",
    )
    own_tables.load(last, early).raise_if_stopped()
    own_tables.load(this, late).raise_if_stopped()
    becomes = """
        | id | city | effective_from | effective_to | load_run_id    |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   | pos/snapshot/1 |
        | 1  | Kiel | 2024-02-01     | 2024-03-01   | pos/snapshot/2 |
        | 1  | Bonn | 2024-03-01     | OPEN         | pos/snapshot/3 |
    """
    assert_same_rows(becomes, own_tables.rows(this))
    before, after = ([oracle_batch(b, d) for b in t.batches(d)] for t, d in ((early, last), (late, this)))
    assert_same_rows(becomes, o.oracle(THIS_YEAR.dim, [*before, *after]))


WITHOUT_EMAIL = declared(
    """
    dimension: dim_shop
    business_key: {id: int}
    sources:
      pos: {snapshot: {}}
    attributes:
      city: {scd: 2, former_names: town}
      score: {scd: 2, type: int, retired: true}
      tier: 2
    """
)


@rule("S20")
@case
def test_an_optional_column_that_is_missing_is_not_stated() -> Case:
    """That is not NULL: what was stated holds."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | email |
            | 1        | 2024-01-01 | 1  | Bonn | a     |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 2        | 2024-02-01 | 1  | Kiel |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | email |
            | 3        | 2024-03-01 | 1  | NULL  |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to |
        | Bonn | NULL  | 2024-01-01     | 2024-02-01   |
        | Kiel | NULL  | 2024-02-01     | OPEN         |
        """,
        on_page=True,
    )


@rule("S20")
@case
def test_columns_that_nobody_declared_are_reported_and_not_taken() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | shoe size | colour |
            | 1        | 1  | 2024-01-01 | Bonn | 44        | red    |
            """
        ),
        becomes="""
        | id | city |
        | 1  | Bonn |
        """,
        results="""
        | batch        | outcome  | rule | undeclared          |
        | crm/feed/1/1 | accepted | ''   | 'colour, shoe size' |
        """,
    )


@rule("S20")
@case
def test_a_column_of_the_key_or_of_the_channel_is_never_optional() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | city |
            | 1        | 1  | Bonn |
            """
        ),
        becomes="| id | city |",
        results="""
        | arrives | batch        | outcome | rule           | error                                                   |
        | 1       | crm/feed/1/1 | stopped | missing column | "it lacks time; it has case, city, id, op, reason, seq" |
        """,
    )


@rule("S20")
def test_a_column_that_an_expression_names_is_missed_too(own_tables: OwnTables) -> None:
    """The delivery is stopped, and not the run."""
    dimension = declared(
        """
        dimension: dim_signal
        business_key: id
        sources: {crm: {feed: {effective_at: time, deletes: "removed = 'yes'"}}}
        attributes: {city: 2}
        """
    ).dimension
    told = feed("| delivery | id | time | city |\n| 1 | 1 | 2024-01-01 | Bonn |")
    (batch,) = own_tables.load(dimension, told).batches
    assert (batch.outcome, batch.rule) == ("stopped", "missing column")
    assert batch.error.startswith("an expression of the declaration names what it has not: ")
    assert "`removed`" in batch.error
