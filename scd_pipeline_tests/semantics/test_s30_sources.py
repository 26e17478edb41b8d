"""S30: several sources, snapshots and feeds, and what NULL means."""

from scd_pipeline_tests.semantics.declarations import ACCOUNT, CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, declare, feed, long_case, rule, snapshots


@rule("S30")
@case
def test_each_attribute_has_one_source_and_one_source_decides_existence() -> Case:
    """crm never delivers account 3, so the values of erp and desk create no entity."""
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 2  | Kiel |
            """
        ),
        feed(
            """
            | delivery | id | time       | limit | owner |
            | 2        | 1  | 2024-02-01 | 10    | o     |
            | 2        | 3  | 2024-02-01 | 30    | o     |
            """,
            source="erp",
        ),
        snapshots(
            """
            | delivery | at         | id | note |
            | 3        | 2024-03-01 | 2  | vip  |
            | 3        | 2024-03-01 | 3  | vip  |
            """,
            source="desk",
        ),
        becomes="""
        | id | city | limit | owner | note | effective_from | effective_to | change_source |
        | 1  | Bonn | NULL  | o     | NULL | 2024-01-01     | 2024-02-01   | crm           |
        | 1  | Bonn | 10    | o     | NULL | 2024-02-01     | OPEN         | erp           |
        | 2  | Kiel | NULL  | NULL  | NULL | 2024-01-01     | 2024-03-01   | crm           |
        | 2  | Kiel | NULL  | NULL  | vip  | 2024-03-01     | OPEN         | desk          |
        """,
        on_page=True,
    )


@rule("S30")
@case
def test_absence_from_another_source_asserts_nothing() -> Case:
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
            | delivery | at         | id     | note |
            | 2        | 2024-02-01 | 1      | vip  |
            | 3        | 2024-03-01 | no row |      |
            """,
            source="desk",
        ),
        becomes="""
        | city | note | effective_from | effective_to |
        | Bonn | NULL | 2024-01-01     | 2024-02-01   |
        | Bonn | vip  | 2024-02-01     | OPEN         |
        """,
        log="""
        | batch             | id | kind    |
        | crm/snapshot/1/1  | 1  | upsert  |
        | desk/snapshot/2/1 | 1  | upsert  |
        | desk/snapshot/3/1 | 1  | no_op   |
        """,
    )


@rule("S30")
@case
def test_a_delete_by_a_source_that_does_not_decide_existence_changes_nothing() -> Case:
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
            | delivery | id | time       | op | limit |
            | 2        | 1  | 2024-02-01 |    | 10    |
            | 3        | 1  | 2024-03-01 | D  |       |
            """,
            source="erp",
        ),
        becomes="""
        | city | limit | effective_from | effective_to |
        | Bonn | NULL  | 2024-01-01     | 2024-02-01   |
        | Bonn | 10    | 2024-02-01     | OPEN         |
        """,
    )


@rule("S30")
@case
def test_null_is_a_value_unless_declared_as_not_provided() -> Case:
    """erp declares `nulls: not_provided`; for the feed of desk NULL is a value."""
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
            | 2        | 1  | 2024-01-01 | 10    | o     |
            | 3        | 1  | 2024-02-01 | NULL  | NULL  |
            """,
            source="erp",
        ),
        feed(
            """
            | delivery | id | time       | note |
            | 4        | 1  | 2024-01-01 | vip  |
            | 5        | 1  | 2024-03-01 | NULL |
            """,
            source="desk",
        ),
        becomes="""
        | limit | owner | note | effective_from | effective_to |
        | 10    | o     | vip  | 2024-01-01     | 2024-03-01   |
        | 10    | o     | NULL | 2024-03-01     | OPEN         |
        """,
        together=True,
    )


@rule("S20", "S30")
@case
def test_a_feed_can_provide_only_some_attributes() -> Case:
    """An attribute without a column is not provided, and keeps its value."""
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
            | 2        | 1  | 2024-02-01 | 10    | o     |
            """,
            source="erp",
        ),
        feed(
            """
            | delivery | id | time       | owner |
            | 3        | 1  | 2024-03-01 | p     |
            """,
            source="erp",
        ),
        becomes="""
        | limit | owner | effective_from | effective_to |
        | NULL  | p     | 2024-01-01     | 2024-02-01   |
        | 10    | p     | 2024-02-01     | OPEN         |
        """,
    )


@rule("S30")
@case
def test_a_source_can_deliver_snapshots_and_a_feed() -> Case:
    """Both describe one state: the snapshot of April retires the entity that the feed created in March."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery   | at         | id | city |
            | 2024-01-01 | 2024-01-01 | 1  | Bonn |
            """
        ),
        feed(
            """
            | delivery   | id | time       | city |
            | 2024-03-01 | 1  | 2024-02-01 | Kiel |
            | 2024-03-01 | 2  | 2024-03-01 | Ulm  |
            """
        ),
        snapshots(
            """
            | delivery   | at         | id | city |
            | 2024-04-01 | 2024-04-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | load_run_id             |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   | crm/snapshot/2024-01-01 |
        | 1  | Kiel | 2024-02-01     | OPEN         | crm/feed/2024-03-01     |
        | 2  | Ulm  | 2024-03-01     | 2024-04-01   | crm/feed/2024-03-01     |
        """,
    )


@rule("S14", "S30")
@case
def test_a_version_opened_by_several_sources_at_one_time_names_the_last_one() -> Case:
    """All changes at one time open one version, which names the last one by position that changed a value."""
    return Case(
        ACCOUNT,
        feed(
            """
            | delivery | id | time       | city |
            | 2        | 1  | 2024-01-01 | Bonn |
            """
        ),
        feed(
            """
            | delivery | id | time       | note |
            | 1        | 1  | 2024-01-01 | vip  |
            | 3        | 1  | 2024-01-01 | vip  |
            """,
            source="desk",
        ),
        becomes="""
        | city | note | effective_from | effective_to | change_source | load_run_id |
        | Bonn | vip  | 2024-01-01     | OPEN         | crm           | crm/feed/2  |
        """,
    )


@rule("S30", "S14")
@case
def test_a_field_that_a_row_lacks_is_not_provided_however_events_are_batched() -> Case:
    """The three events of account 1 are in one delivery, and those of account 2 in three."""
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 2  | Bonn |
            """
        ),
        feed(
            """
            | delivery | id | time       | note   | agent  |
            | 1        | 1  | 2024-02-01 | vip    | Ann    |
            | 1        | 1  | 2024-03-01 | absent | Bob    |
            | 1        | 1  | 2024-04-01 | NULL   | absent |
            | 2        | 2  | 2024-02-01 | vip    | Ann    |
            | 3        | 2  | 2024-03-01 | absent | Bob    |
            | 4        | 2  | 2024-04-01 | NULL   | absent |
            """,
            source="desk",
        ),
        becomes="""
        | id | note | agent | effective_from | effective_to |
        | 1  | NULL | Bob   | 2024-01-01     | 2024-02-01   |
        | 1  | vip  | Bob   | 2024-02-01     | 2024-04-01   |
        | 1  | NULL | Bob   | 2024-04-01     | OPEN         |
        | 2  | NULL | Bob   | 2024-01-01     | 2024-02-01   |
        | 2  | vip  | Bob   | 2024-02-01     | 2024-04-01   |
        | 2  | NULL | Bob   | 2024-04-01     | OPEN         |
        """,
        on_page=True,
    )


ITEM = declare(
    """
    dimension: dim_item
    business_key: {id: int}
    sources:
      shop:
        feed: {effective_at: time, deletes: "op = 'D'"}
        bad_row_limit: 0.5
    attributes:
      title: 2
      price: {scd: 2, type: int, missing: null}
    """,
    by_increments=False,
)


@rule("S30", "S20")
@case
def test_a_row_that_lacks_a_field_follows_missing_of_its_attribute() -> Case:
    """A title may not be missing. A delete needs no attribute, in a delivery of deletes alone too."""
    return Case(
        ITEM,
        feed(
            """
            | delivery | id | time       | op | title  | price  |
            | 1        | 1  | 2024-01-01 | U  | Pen    | 1      |
            | 1        | 2  | 2024-01-01 | U  | Ink    | 2      |
            | 1        | 1  | 2024-02-01 | U  | Pen    | absent |
            | 1        | 2  | 2024-02-01 | U  | absent | 3      |
            | 2        | 1  | 2024-03-01 | D  | absent | absent |
            """,
            source="shop",
        ),
        becomes="""
        | id | title | price | effective_from | effective_to |
        | 1  | Pen   | 1     | 2024-01-01     | 2024-02-01   |
        | 1  | Pen   | NULL  | 2024-02-01     | 2024-03-01   |
        | 2  | Ink   | 2     | 2024-01-01     | OPEN         |
        """,
        quarantine="""
        | batch         | key  | reason                                                                          |
        | shop/feed/1/1 | id=2 | title is missing; declare `missing` of the attribute, or `updates` of the feed |
        """,
    )


@rule("S30", "S19")
@case
def test_a_late_snapshot_sees_which_rows_of_a_later_one_lack_a_field() -> Case:
    """Snapshot 3 repeats the city of customer 2 alone, so that Kiel of the late snapshot 2 ends there for it alone."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city   | score |
            | 1        | 2024-01-01 | 1  | Bonn   | 1     |
            | 1        | 2024-01-01 | 2  | Bonn   | 1     |
            | 3        | 2024-03-01 | 1  | absent | 1     |
            | 3        | 2024-03-01 | 2  | Bonn   | 1     |
            | 2        | 2024-02-01 | 1  | Kiel   | 1     |
            | 2        | 2024-02-01 | 2  | Kiel   | 1     |
            """
        ),
        becomes="""
        | id | city | score | effective_from | effective_to |
        | 1  | Bonn | 1     | 2024-01-01     | 2024-02-01   |
        | 1  | Kiel | 1     | 2024-02-01     | OPEN         |
        | 2  | Bonn | 1     | 2024-01-01     | 2024-02-01   |
        | 2  | Kiel | 1     | 2024-02-01     | 2024-03-01   |
        | 2  | Bonn | 1     | 2024-03-01     | OPEN         |
        """,
    )


PLACEHOLDERS = declare(
    """
    dimension: dim_lead
    business_key: {id: int}
    sources:
      sf:
        feed: {effective_at: time, updates: partial, nulls: not_provided}
        snapshot: {}
        columns:
          phone: {not_provided_values: [unchanged, "?"], null_values: "#N/A"}
          score: {null_values: ["-1", ""], not_provided_values: "-2"}
    attributes:
      phone: 2
      score: {scd: 2, type: int}
    """
)


@rule("S30", "S26")
@long_case
def test_declared_placeholders_mean_not_provided_or_null() -> Case:
    """In the feed NULL is not provided, and `#N/A` clears a value. Placeholders need not be of the declared type."""
    return Case(
        PLACEHOLDERS,
        feed(
            """
            | delivery | id | time       | phone     | score |
            | 1        | 1  | 2024-01-01 | 555       | 5     |
            | 1        | 1  | 2024-02-01 | unchanged | 6     |
            | 1        | 1  | 2024-03-01 | '?'       | -2    |
            | 1        | 1  | 2024-04-01 | '#N/A'    | NULL  |
            | 1        | 1  | 2024-05-01 | NULL      | ''    |
            """,
            source="sf",
        ),
        becomes="""
        | phone | score | effective_from | effective_to |
        | '555' | 5     | 2024-01-01     | 2024-02-01   |
        | '555' | 6     | 2024-02-01     | 2024-04-01   |
        | NULL  | 6     | 2024-04-01     | 2024-05-01   |
        | NULL  | NULL  | 2024-05-01     | OPEN         |
        """,
    )


@rule("S30", "S19")
@long_case
def test_a_late_snapshot_sees_which_rows_of_a_later_one_have_a_placeholder() -> Case:
    return Case(
        PLACEHOLDERS,
        snapshots(
            """
            | delivery | at         | id | phone     | score |
            | 1        | 2024-01-01 | 1  | 555       | 1     |
            | 1        | 2024-01-01 | 2  | 555       | 1     |
            | 3        | 2024-03-01 | 1  | unchanged | 1     |
            | 3        | 2024-03-01 | 2  | 555       | 1     |
            | 2        | 2024-02-01 | 1  | 777       | 1     |
            | 2        | 2024-02-01 | 2  | 777       | 1     |
            """,
            source="sf",
        ),
        becomes="""
        | id | phone | effective_from | effective_to |
        | 1  | '555' | 2024-01-01     | 2024-02-01   |
        | 1  | '777' | 2024-02-01     | OPEN         |
        | 2  | '555' | 2024-01-01     | 2024-02-01   |
        | 2  | '777' | 2024-02-01     | 2024-03-01   |
        | 2  | '555' | 2024-03-01     | OPEN         |
        """,
    )
