"""S27: snapshots whose scope is an attribute, so that an entity can move from one scope to another."""

import pytest

from scd_pipeline_tests.oracle import accepted
from scd_pipeline_tests.semantics.declarations import SHOPPER
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule, snapshots


@rule("S27")
@case
def test_a_snapshot_deletes_only_the_entities_that_belong_to_its_scope_then() -> Case:
    """Shopper 2 moves from S1 to S2, whose file comes first. Shopper 4 is omitted by the file of its store."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | id | store | name |
            | 1-s1     | 2024-01-01 | 1  | S1    | Ann  |
            | 1-s1     | 2024-01-01 | 2  | S1    | Bob  |
            | 1-s1     | 2024-01-01 | 4  | S1    | Dan  |
            | 1-s2     | 2024-01-01 | 3  | S2    | Cid  |
            | 2-s2     | 2024-01-02 | 3  | S2    | Cid  |
            | 2-s2     | 2024-01-02 | 2  | S2    | Bob  |
            | 3-s1     | 2024-01-03 | 1  | S1    | Ann  |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | OPEN         |
        | 2  | S1    | 2024-01-01     | 2024-01-02   |
        | 2  | S2    | 2024-01-02     | OPEN         |
        | 3  | S2    | 2024-01-01     | OPEN         |
        | 4  | S1    | 2024-01-01     | 2024-01-03   |
        """,
        log="""
        | batch               | id | kind   | time       |
        | pos/snapshot/1-s1/1 | 1  | upsert | 2024-01-01 |
        | pos/snapshot/1-s1/1 | 2  | upsert | 2024-01-01 |
        | pos/snapshot/1-s1/1 | 4  | upsert | 2024-01-01 |
        | pos/snapshot/1-s2/1 | 3  | upsert | 2024-01-01 |
        | pos/snapshot/2-s2/1 | 2  | upsert | 2024-01-02 |
        | pos/snapshot/3-s1/1 | 4  | delete | 2024-01-03 |
        """,
    )


@rule("S27", "S18")
@case
def test_an_entity_that_its_old_scope_omits_first_is_deleted_and_returns() -> Case:
    """Shopper 1 moves at one time, without a gap; shopper 2 is in the file of S2 a day later."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | scope | id     | store |
            | 1        | 2024-01-01 | S1    | 1      | S1    |
            | 1        | 2024-01-01 | S1    | 2      | S1    |
            | 2-a      | 2024-01-02 | S1    | no row |       |
            | 2-b      | 2024-01-02 | S2    | 1      | S2    |
            | 3        | 2024-01-03 | S2    | 1      | S2    |
            | 3        | 2024-01-03 | S2    | 2      | S2    |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | 2024-01-02   |
        | 1  | S2    | 2024-01-02     | OPEN         |
        | 2  | S1    | 2024-01-01     | 2024-01-02   |
        | 2  | S2    | 2024-01-03     | OPEN         |
        """,
    )


@rule("S27")
@case
def test_a_snapshot_of_an_old_scope_does_not_prevent_a_later_delete() -> Case:
    """The file of S1 omits shopper 1, who is in S2 by then; the file of S2 does so a day later."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | scope | id     | store |
            | 1        | 2024-01-01 | S1    | 1      | S1    |
            | 1        | 2024-01-01 | S1    | 2      | S1    |
            | 2        | 2024-01-02 | S2    | 1      | S2    |
            | 3        | 2024-01-03 | S1    | 2      | S1    |
            | 4        | 2024-01-04 | S2    | no row |       |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | 2024-01-02   |
        | 1  | S2    | 2024-01-02     | 2024-01-04   |
        | 2  | S1    | 2024-01-01     | OPEN         |
        """,
    )


@rule("S19", "S27")
@case
def test_a_late_snapshot_moves_an_entity_out_of_the_scope_that_omits_it() -> Case:
    """The stored absence of shopper 1 has no effect any more; that of shopper 2 stays in effect."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | scope | id     | store |
            | 1        | 2024-01-01 | S1    | 1      | S1    |
            | 1        | 2024-01-01 | S1    | 2      | S1    |
            | 3        | 2024-01-03 | S1    | no row |       |
            | 2        | 2024-01-02 | S2    | 1      | S2    |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | 2024-01-02   |
        | 1  | S2    | 2024-01-02     | OPEN         |
        | 2  | S1    | 2024-01-01     | 2024-01-03   |
        """,
    )


@rule("S19", "S27")
@case
def test_a_late_change_moves_an_entity_into_the_scope_that_omits_it() -> Case:
    """Nothing was stored of shopper 2 for the snapshot of S1, to which it did not belong."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | scope    | id     | store |
            | 1        | 2024-01-01 | 'S1, S2' | 1      | S1    |
            | 1        | 2024-01-01 | 'S1, S2' | 2      | S2    |
            | 3        | 2024-01-03 | S1       | 1      | S1    |
            """,
            source="pos",
        ),
        feed(
            """
            | delivery | id | time       | op | store |
            | 2        | 2  | 2024-01-02 |    | S1    |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | OPEN         |
        | 2  | S2    | 2024-01-01     | 2024-01-02   |
        | 2  | S1    | 2024-01-02     | 2024-01-03   |
        """,
    )


@rule("S19", "S27")
@case
def test_an_entity_that_returns_without_a_scope_belongs_to_that_of_its_last_value() -> Case:
    """By the late file shopper 1 is deleted and returns in S2, so that the file of 6 January deletes it again.

    The file of 3 January is complete, and still what is before it has an effect after it.
    """
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | id | store | name |
            | 1        | 2024-01-01 | 1  | S1    | Ann  |
            | 1        | 2024-01-01 | 2  | S1    | Bob  |
            | 3        | 2024-01-03 | 3  | S2    | Cid  |
            | 4        | 2024-01-04 | 2  | S1    | Bob  |
            """,
            source="pos",
        ),
        feed(
            """
            | delivery | id | time       | op | name |
            | 5        | 1  | 2024-01-05 |    | Anna |
            """,
            source="pos",
        ),
        snapshots(
            """
            | delivery | at         | id | store | name |
            | 6        | 2024-01-06 | 3  | S2    | Cid  |
            | 2        | 2024-01-02 | 1  | S2    | Ann  |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | 2024-01-02   |
        | 1  | S2    | 2024-01-02     | 2024-01-03   |
        | 1  | S2    | 2024-01-05     | 2024-01-06   |
        | 2  | S1    | 2024-01-01     | OPEN         |
        | 3  | S2    | 2024-01-03     | OPEN         |
        """,
    )


@rule("S27", "S34")
@case
def test_the_withdrawal_of_a_move_leaves_the_entity_in_its_old_scope() -> Case:
    """The snapshot of S1 omits shopper 1, of which nothing was stored while it belonged to S2."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | revision | at         | scope | id        | store |
            | 1        | 1        | 2024-01-01 | S1    | 1         | S1    |
            | 2        | 1        | 2024-01-02 | S2    | 1         | S2    |
            | 3        | 1        | 2024-01-03 | S1    | no row    |       |
            | 2        | 2        | 2024-01-02 | S2    | withdrawn |       |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | 2024-01-03   |
        """,
    )


@rule("S27")
@case
def test_the_guard_counts_the_entities_that_belong_to_the_scope() -> Case:
    """20 shoppers of S1 exist and 6 are omitted: 30 %. The 79 of S2, and those that come from there, do not count."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | scope | id     | store |
            | 1        | 2024-01-01 | S1    | 1..20  | S1    |
            | 1b       | 2024-01-01 | S2    | 21..99 | S2    |
            | 2        | 2024-01-02 | S1    | 7..40  | S1    |
            """,
            source="pos",
        ),
        becomes="""
        | id     | store | effective_to |
        | 1..20  | S1    | OPEN         |
        | 21..99 | S2    | OPEN         |
        """,
        results="""
        | batch             | outcome  | code         |
        | pos/snapshot/1/1  | accepted | ''           |
        | pos/snapshot/1b/1 | accepted | ''           |
        | pos/snapshot/2/1  | rejected | RETIRE_GUARD |
        """,
    )


@rule("S26", "S27")
@case
def test_a_row_without_a_value_of_its_scope_is_a_bad_row() -> Case:
    """It counts as present. An entity without a value belongs to no scope, and no snapshot deletes it."""
    return Case(
        SHOPPER,
        snapshots(
            """
            | delivery | at         | scope | id | store |
            | 1        | 2024-01-01 | S1    | 1  | S1    |
            | 1        | 2024-01-01 | S1    | 2  | S1    |
            | 1        | 2024-01-01 | S1    | 3  | S1    |
            """,
            source="pos",
        ),
        feed(
            """
            | delivery | id | time       | op | store |
            | 2        | 3  | 2024-01-02 |    | NULL  |
            """,
            source="pos",
        ),
        snapshots(
            """
            | delivery | at         | scope | id | store |
            | 3        | 2024-01-03 | S1    | 1  | S1    |
            | 3        | 2024-01-03 | S1    | 2  | NULL  |
            """,
            source="pos",
        ),
        becomes="""
        | id | store | effective_from | effective_to |
        | 1  | S1    | 2024-01-01     | OPEN         |
        | 2  | S1    | 2024-01-01     | OPEN         |
        | 3  | S1    | 2024-01-01     | 2024-01-02   |
        | 3  | NULL  | 2024-01-02     | OPEN         |
        """,
        quarantine="""
        | batch            | key  | reason                          |
        | pos/snapshot/3/1 | id=2 | outside of the delivery's scope |
        """,
    )


@pytest.mark.slow
@rule("S27")
def test_a_snapshot_that_the_guard_rejects_moves_no_entities_out_of_another_scope(own_tables: OwnTables) -> None:
    """Without the six shoppers that the rejected snapshot moves from S2, that of S2 would omit 7 of 24, not of 30.

    So the guard cannot decide about both by one comparison, although their scopes have no value in common.
    """
    deliveries = snapshots(
        """
        | delivery | at         | scope | id     | store |
        | 1-s1     | 2024-01-01 | S1    | 1..20  | S1    |
        | 1-s2     | 2024-01-01 | S2    | 21..50 | S2    |
        | 2-s1     | 2024-01-02 | S1    | 1..10  | S1    |
        | 2-s1     | 2024-01-02 | S1    | 21..26 | S1    |
        | 2-s2     | 2024-01-02 | S2    | 21..43 | S2    |
        """,
        source="pos",
    )
    _, rejections = accepted(SHOPPER.dim, Case(SHOPPER, deliveries, becomes="").oracle_batches)
    result = own_tables.load(SHOPPER.dimension, deliveries)
    rejected = {each.batch_id for each in result.results if each.outcome == "rejected"}
    assert rejected == rejections.keys() == {"pos/snapshot/2-s1/1"}
