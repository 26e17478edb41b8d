"""S27: an empty or truncated snapshot retires no entities; the scope of a snapshot."""

from collections.abc import Callable

import pytest

from scd_pipeline.declaration import RetireGuard
from scd_pipeline.errors import BatchRejected
from scd_pipeline.load import change_records
from scd_pipeline_tests.semantics.declarations import ACCOUNT, CONTRACT, CUSTOMER, STORE, VENDOR
from scd_pipeline_tests.semantics.engine import OwnTables, SharedTables
from scd_pipeline_tests.semantics.specification import (
    Case,
    Declaration,
    case,
    declare,
    feed,
    long_case,
    requirement,
    rule,
    snapshots,
)


@rule("S27")
@case
def test_a_truncated_snapshot_is_rejected() -> Case:
    """At most a quarter of 24 may be omitted. Nothing of the snapshot is written, not even its changes."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id    | city |
            | 1        | 2024-01-01 | 1..24 | Bonn |
            | 2        | 2024-02-01 | 1..17 | Kiel |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..24 | Bonn | 2024-01-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        """,
        on_page=True,
    )


@rule("S27")
@pytest.mark.xdist_group(CUSTOMER.dimension.name)
def test_the_error_names_the_rejected_batch_and_how_to_override_the_guard(
    shared_tables: Callable[[Declaration], SharedTables],
) -> None:
    tables = shared_tables(CUSTOMER)
    rejected = tables.results[tables.number(test_a_truncated_snapshot_is_rejected.case)][1]
    assert rejected.details == {"omitted": 7, "existing": 24, "share": "29%", "limit": "25%"}
    load = next(load for load in tables.loads if rejected in load.results)
    with pytest.raises(BatchRejected):
        load.raise_if_rejected()


@rule("S27")
@case
def test_a_snapshot_that_omits_a_quarter_is_accepted() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id    | city |
            | 1        | 2024-01-01 | 1..24 | Bonn |
            | 2        | 2024-02-01 | 1..18 | Bonn |
            """
        ),
        becomes="""
        | id     | effective_from | effective_to |
        | 1..18  | 2024-01-01     | OPEN         |
        | 19..24 | 2024-01-01     | 2024-02-01   |
        """,
        results="""
        | batch            | outcome  | code | new | changed | deleted |
        | crm/snapshot/1/1 | accepted | ''   | 24  | 0       | 0      |
        | crm/snapshot/2/1 | accepted | ''   | 0   | 0       | 6      |
        """,
    )


@requirement("H34")
@rule("S27")
@long_case
def test_flagged_rows_count_as_omitted_for_the_guard() -> Case:
    """All 24 vendors are in the extract, but 7 of them are flagged as deleted."""
    return Case(
        VENDOR,
        snapshots(
            """
            | delivery | at         | id     | op | name |
            | 1        | 2024-01-01 | 1..24  |    | Acme |
            | 2        | 2024-02-01 | 1..17  |    | Beta |
            | 2        | 2024-02-01 | 18..24 | D  | Acme |
            | 3        | 2024-03-01 | 1..18  |    | Acme |
            | 3        | 2024-03-01 | 19..24 | D  | Acme |
            """
        ),
        becomes="""
        | id     | name | effective_from | effective_to |
        | 1..18  | Acme | 2024-01-01     | OPEN         |
        | 19..24 | Acme | 2024-01-01     | 2024-03-01   |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        | crm/snapshot/3/1 | accepted | ''           |
        """,
    )


@rule("S27")
@case
def test_an_empty_snapshot_is_rejected_and_the_next_one_is_loaded() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id     | city |
            | 1        | 2024-01-01 | 1..20  | Bonn |
            | 2        | 2024-02-01 | no row |      |
            | 3        | 2024-03-01 | 1..20  | Kiel |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..20 | Bonn | 2024-01-01     | 2024-03-01   |
        | 1..20 | Kiel | 2024-03-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        | crm/snapshot/3/1 | accepted | ''           |
        """,
    )


@rule("S27")
@case
def test_the_default_guard_applies_from_twenty_existing_entities_on() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id     | city |
            | 1        | 2024-01-01 | 1..19  | Bonn |
            | 2        | 2024-02-01 | no row |      |
            """
        ),
        becomes="""
        | id    | effective_to |
        | 1..19 | 2024-02-01   |
        """,
    )


TUTORIAL = declare(
    """
    dimension: dim_guarded
    business_key: {id: int}
    sources:
      crm:
        snapshot: {effective_at: time}
        feed: {effective_at: time}
        retire_guard: 0.1
    attributes: {city: 2}
    """
)


@rule("S27")
@long_case
def test_a_declared_share_applies_at_any_size() -> Case:
    """One of four customers is more than a tenth."""
    return Case(
        TUTORIAL,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-01 | 1..4   | 2024-01-01 | Bonn |
            | 2        | 2024-02-01 | 1..3   | 2024-01-01 | Bonn |
            | 3        | 2024-03-01 | no row |            |      |
            | 4        | 2024-04-01 | 1..4   | 2024-04-01 | Kiel |
            """
        ),
        becomes="""
        | id   | city | effective_from | effective_to |
        | 1..4 | Bonn | 2024-01-01     | 2024-04-01   |
        | 1..4 | Kiel | 2024-04-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        | crm/snapshot/3/1 | rejected | RETIRE_GUARD |
        | crm/snapshot/4/1 | accepted | ''           |
        """,
    )


@rule("S4", "S27")
@long_case
def test_the_retire_guard_counts_entities_asserted_to_exist_before_the_snapshot() -> Case:
    """The second snapshot arrives last and omits eight entities with older row times, none asserted before it."""
    return Case(
        TUTORIAL,
        snapshots(
            """
            | delivery | at         | id    | time       | city |
            | 1        | 2024-01-10 | 1..2  | 2024-01-01 | Bonn |
            | 3        | 2024-03-10 | 1..10 | 2024-01-01 | Bonn |
            | 2        | 2024-02-10 | 1..2  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..10 | Bonn | 2024-01-01     | OPEN         |
        """,
    )


@rule("S4", "S27")
@long_case
def test_a_new_entity_with_several_rows_does_not_count_as_existing_before() -> Case:
    """Two of ten are omitted: more than a tenth, however many rows the new entities have."""
    return Case(
        TUTORIAL,
        snapshots(
            """
            | delivery | at         | id    | time       | city |
            | 1        | 2024-01-10 | 1..10 | 2024-01-01 | Bonn |
            | 2        | 2024-02-10 | 3..20 | 2024-01-15 | Kiel |
            | 2        | 2024-02-10 | 3..20 | 2024-01-16 | Ulm  |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..10 | Bonn | 2024-01-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        """,
    )


@rule("S27")
@pytest.mark.parametrize(
    ("guard", "retired", "existing", "rejected"),
    [
        (RetireGuard(0.25, at_least=20), 5, 20, False),
        (RetireGuard(0.25, at_least=20), 6, 20, True),
        (RetireGuard(0.25, at_least=20), 19, 19, False),
        (RetireGuard(0.25), 1, 4, False),
        (RetireGuard(0.25), 2, 4, True),
        (RetireGuard(0.0), 1, 1, True),
        (RetireGuard(0.0), 0, 0, False),
        (RetireGuard(1.0), 4, 4, False),
    ],
)
def test_a_guard_rejects_by_share_and_from_a_number_of_entities_on(
    guard: RetireGuard, retired: int, existing: int, rejected: bool
) -> None:
    assert guard.rejects(retired, existing) is rejected


@rule("S27")
@case
def test_the_retire_guard_can_be_overridden() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id     | city | allow |
            | 1        | 2024-01-01 | 1..20  | Bonn |       |
            | 2        | 2024-02-01 | no row |      |       |
            """
        ),
        snapshots(
            """
            | delivery | at         | id     | city | allow        |
            | 2        | 2024-02-01 | no row |      | retire_guard |
            """
        ),
        becomes="""
        | id    | effective_to |
        | 1..20 | 2024-02-01   |
        """,
        results="""
        | arrives | batch            | outcome  | code         |
        | 1       | crm/snapshot/1/1 | accepted | ''           |
        | 2       | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        | 3       | crm/snapshot/2/1 | accepted | ''           |
        """,
    )


@rule("S27")
@case
def test_a_run_of_many_batches_skips_the_rejected_one() -> Case:
    """A rejected snapshot retires nothing and is not a basis for the next: March is compared with January."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id    | city |
            | 3        | 2024-03-01 | 1..20 | Ulm  |
            | 2        | 2024-02-01 | 1..3  | Kiel |
            | 1        | 2024-01-01 | 1..24 | Bonn |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..24 | Bonn | 2024-01-01     | 2024-03-01   |
        | 1..20 | Ulm  | 2024-03-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        | crm/snapshot/3/1 | accepted | ''           |
        """,
        together=True,
    )


@rule("S27", "S34")
@case
def test_a_withdrawn_snapshot_retires_no_entity() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id        | city |
            | 1        | 2024-01-01 | 1..24     | Bonn |
            | 2        | 2024-02-01 | withdrawn |      |
            """
        ),
        becomes="""
        | id    | effective_to |
        | 1..24 | OPEN         |
        """,
        results="""
        | batch            | outcome  | code |
        | crm/snapshot/1/1 | accepted | ''   |
        | crm/snapshot/2/1 | accepted | ''   |
        """,
    )


@rule("S27", "S30")
@case
def test_the_guard_does_not_apply_to_a_source_that_does_not_decide_existence() -> Case:
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id    | city |
            | 1        | 2024-01-01 | 1..24 | Bonn |
            """
        ),
        snapshots(
            """
            | delivery | at         | id     | note |
            | 2        | 2024-02-01 | 1..24  | vip  |
            | 3        | 2024-03-01 | no row |      |
            """,
            source="desk",
        ),
        becomes="""
        | id    | note | effective_from | effective_to |
        | 1..24 | NULL | 2024-01-01     | 2024-02-01   |
        | 1..24 | vip  | 2024-02-01     | OPEN         |
        """,
        results="""
        | batch             | outcome  | code |
        | crm/snapshot/1/1  | accepted | ''   |
        | desk/snapshot/2/1 | accepted | ''   |
        | desk/snapshot/3/1 | accepted | ''   |
        """,
    )


@rule("S26", "S27")
@case
def test_quarantined_rows_count_as_present() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id    | city | score | allow    |
            | 1        | 2024-01-01 | 1..24 | Bonn | 1     |          |
            | 2        | 2024-02-01 | 1..4  | Bonn | 1     | bad_rows |
            | 2        | 2024-02-01 | 5..24 | Bonn | x!    | bad_rows |
            """
        ),
        becomes="""
        | id    | score | effective_to |
        | 1..24 | 1     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code | bad_rows | deleted |
        | crm/snapshot/1/1 | accepted | ''   | 0        | 0      |
        | crm/snapshot/2/1 | accepted | ''   | 20       | 0      |
        """,
    )


@rule("S27")
@case
def test_a_snapshot_with_a_key_that_cannot_be_read_retires_no_entities() -> Case:
    """The row could be of any entity, so the snapshot asserts no absence."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id   | city |
            | 1        | 2024-01-01 | 1    | Bonn |
            | 1        | 2024-01-01 | 2    | Bonn |
            | 2        | 2024-02-01 | 1    | Kiel |
            | 2        | 2024-02-01 | NULL | Bonn |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   |
        | 1  | Kiel | 2024-02-01     | OPEN         |
        | 2  | Bonn | 2024-01-01     | OPEN         |
        """,
        log="""
        | batch            | id   | kind    | time       |
        | crm/snapshot/1/1 | 1    | upsert  | 2024-01-01 |
        | crm/snapshot/1/1 | 2    | upsert  | 2024-01-01 |
        | crm/snapshot/2/1 | 1    | upsert  | 2024-02-01 |
        | crm/snapshot/2/1 | 2    | no_op   | 2024-02-01 |
        | crm/snapshot/2/1 | NULL | bad     | 2024-02-01 |
        """,
    )


@rule("S27")
@case
def test_a_rejected_revision_leaves_the_previous_one_in_effect() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id    | city |
            | 1        | 1        | 2024-01-01 | 1..24 | Bonn |
            | 2        | 1        | 2024-02-01 | 1..22 | Kiel |
            | 2        | 2        | 2024-02-01 | 1..2  | Ulm  |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..24 | Bonn | 2024-01-01     | 2024-02-01   |
        | 1..22 | Kiel | 2024-02-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | accepted | ''           |
        | crm/snapshot/2/2 | rejected | RETIRE_GUARD |
        """,
    )


@rule("S27")
@case
def test_the_retire_guard_counts_entities_in_the_scope_of_the_snapshot() -> Case:
    """Region n has 20 stores, so the guard applies; region s has 4, so it does not."""
    return Case(
        STORE,
        snapshots(
            """
            | delivery | at         | scope  | region | id     | city |
            | 1        | 2024-01-01 | 'n, s' | n      | n1..20 | Bonn |
            | 1        | 2024-01-01 | 'n, s' | s      | s1..4  | Ulm  |
            | 2        | 2024-02-01 | n      | no row |        |      |
            | 3        | 2024-03-01 | s      | no row |        |      |
            """,
            source="pos",
        ),
        becomes="""
        | region | id     | effective_to |
        | n      | n1..20 | OPEN         |
        | s      | s1..4  | 2024-03-01   |
        """,
        results="""
        | batch            | outcome  | code         |
        | pos/snapshot/1/1 | accepted | ''           |
        | pos/snapshot/2/1 | rejected | RETIRE_GUARD |
        | pos/snapshot/3/1 | accepted | ''           |
        """,
    )


@requirement("X11")
@rule("S27", "S30")
@case
def test_a_snapshot_retires_in_its_scope_only() -> Case:
    """The scope is passed, or is the set of distinct values; then a snapshot without rows has no scope."""
    return Case(
        STORE,
        snapshots(
            """
            | delivery | at         | scope | region | id | city |
            | 1        | 2024-01-01 |       | n      | a  | Bonn |
            | 1        | 2024-01-01 |       | n      | b  | Bonn |
            | 1        | 2024-01-01 |       | s      | a  | Ulm  |
            | 2        | 2024-02-01 |       | n      | a  | Bonn |
            | 3        | 2024-03-01 |       | no row |    |      |
            | 4        | 2024-04-01 | s     | no row |    |      |
            """,
            source="pos",
        ),
        becomes="""
        | region | id | effective_from | effective_to |
        | n      | a  | 2024-01-01     | OPEN         |
        | n      | b  | 2024-01-01     | 2024-02-01   |
        | s      | a  | 2024-01-01     | 2024-04-01   |
        """,
        together=True,
    )


@rule("S26", "S27")
@case
def test_a_quarantined_row_contributes_to_the_scope_of_its_snapshot() -> Case:
    """Its region was delivered, and its other entities are omitted."""
    return Case(
        STORE,
        snapshots(
            """
            | delivery | at         | region | id | staff |
            | 1        | 2024-01-01 | n      | a  | 3     |
            | 1        | 2024-01-01 | n      | b  | 4     |
            | 1        | 2024-01-01 | s      | a  | 5     |
            | 2        | 2024-02-01 | n      | a  | x!    |
            | 2        | 2024-02-01 | s      | a  | 6     |
            """,
            source="pos",
        ),
        becomes="""
        | region | id | staff | effective_to |
        | n      | a  | 3     | OPEN         |
        | n      | b  | 4     | 2024-02-01   |
        | s      | a  | 6     | OPEN         |
        """,
        quarantine="""
        | batch            | key              | reason                |
        | pos/snapshot/2/1 | 'region=n, id=a' | staff: cannot cast 'x!' to int |
        """,
    )


@rule("S27", "S34")
@case
def test_a_rejected_revision_leaves_the_lower_one_of_the_same_run_current() -> Case:
    """Both in one load: the higher one is rejected, so the lower one is current."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id    | city |
            | 1        | 1        | 2024-01-01 | 1..24 | Bonn |
            | 2        | 1        | 2024-02-01 | 1..22 | Kiel |
            | 2        | 2        | 2024-02-01 | 1..2  | Ulm  |
            """
        ),
        becomes="""
        | id    | city | effective_from | effective_to |
        | 1..24 | Bonn | 2024-01-01     | 2024-02-01   |
        | 1..22 | Kiel | 2024-02-01     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | accepted | ''           |
        | crm/snapshot/2/2 | rejected | RETIRE_GUARD |
        """,
        together=True,
    )


@rule("S34")
@case
def test_the_lower_of_two_revisions_in_one_run_is_superseded() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2        | 2024-01-01 | 1  | Kiel |
            """
        ),
        becomes="""
        | id | city |
        | 1  | Kiel |
        """,
        results="""
        | batch            | outcome    | code |
        | crm/snapshot/1/1 | superseded | ''   |
        | crm/snapshot/1/2 | accepted   | ''   |
        """,
        together=True,
    )


@rule("S27")
@case
def test_new_entities_of_a_snapshot_with_row_times_do_not_offset_omitted_ones() -> Case:
    """30 entities exist and 10 of them are omitted; the guard counts only those that existed before."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-01 | 1..30  | 2024-01-01 | Bonn |
            | 2        | 2024-02-01 | 11..50 | 2024-01-20 | Kiel |
            """
        ),
        becomes="""
        | id    | city | effective_to |
        | 1..30 | Bonn | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        """,
    )


@rule("S4", "S27")
@case
def test_an_entity_with_a_row_dated_after_its_snapshot_is_not_omitted() -> Case:
    """30 entities exist and 10 of them are omitted; the other 20 have rows of that day."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time             | city |
            | 1        | 2024-01-01 | 1..30  | 2024-01-01       | Bonn |
            | 2        | 2024-02-01 | 11..30 | 2024-02-01 08:00 | Kiel |
            """
        ),
        becomes="""
        | id    | city | effective_to |
        | 1..30 | Bonn | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        """,
    )


@rule("S27")
@case
def test_several_rows_of_an_entity_count_once() -> Case:
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-01 | 1..30  | 2024-01-01 | Bonn |
            | 2        | 2024-02-01 | 11..30 | 2024-01-20 | Kiel |
            | 2        | 2024-02-01 | 11..30 | 2024-01-21 | Ulm  |
            """
        ),
        becomes="""
        | id    | city | effective_to |
        | 1..30 | Bonn | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | crm/snapshot/1/1 | accepted | ''           |
        | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
        """,
    )


@rule("S27")
@case
def test_new_entities_do_not_count_towards_the_threshold_of_the_guard() -> Case:
    """10 entities exist; the guard applies from 20 on, however many are new."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id    | time       | city |
            | 1        | 2024-01-01 | 1..10 | 2024-01-01 | Bonn |
            | 2        | 2024-02-01 | 9..22 | 2024-01-20 | Kiel |
            """
        ),
        becomes="""
        | id     | city | effective_to |
        | 1..8   | Bonn | 2024-02-01   |
        | 9..10  | Bonn | 2024-01-20   |
        | 9..22  | Kiel | OPEN         |
        """,
    )


@rule("S26", "S27")
@case
def test_bad_rows_of_an_entity_count_once_and_only_in_the_scope() -> Case:
    """In region n 20 entities exist and 6 are omitted; 10 bad rows of region s do not affect region n."""
    return Case(
        STORE,
        snapshots(
            """
            | delivery | at         | scope  | region | id     | staff | allow    |
            | 1        | 2024-01-01 | 'n, s' | n      | n1..20 | 1     |          |
            | 1        | 2024-01-01 | 'n, s' | s      | s1..10 | 1     |          |
            | 2        | 2024-02-01 | n      | n      | n7..14 | 2     | bad_rows |
            | 2        | 2024-02-01 | n      | n      | n15..20 | x!   | bad_rows |
            | 2        | 2024-02-01 | n      | n      | n15..20 | y!   | bad_rows |
            | 2        | 2024-02-01 | n      | s      | s1..10 | 2     | bad_rows |
            """,
            source="pos",
        ),
        becomes="""
        | region | id     | staff | effective_to |
        | n      | n1..20 | 1     | OPEN         |
        | s      | s1..10 | 1     | OPEN         |
        """,
        results="""
        | batch            | outcome  | code         |
        | pos/snapshot/1/1 | accepted | ''           |
        | pos/snapshot/2/1 | rejected | RETIRE_GUARD |
        """,
    )


@rule("S27")
@case
def test_the_retire_guard_does_not_apply_to_deletes_of_a_feed() -> Case:
    """The guard protects against absence; a feed's deletes are explicit."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id    | time       | op | city |
            | 1        | 1..24 | 2024-01-01 |    | Bonn |
            | 2        | 1..24 | 2024-02-01 | D  |      |
            """
        ),
        becomes="""
        | id    | effective_to |
        | 1..24 | 2024-02-01   |
        """,
    )


@pytest.mark.slow
@rule("S27")
def test_a_snapshot_with_an_unreadable_key_retires_entities_if_declared(own_tables: OwnTables) -> None:
    lenient = declare(
        """
        dimension: dim_customer
        business_key: {id: int}
        sources: {crm: {snapshot: {unreadable_keys: retire}, bad_row_limit: 0.5}}
        attributes: {city: 2}
        """
    ).dimension
    deliveries = snapshots(
        """
        | delivery | at         | id   | city |
        | 1        | 2024-01-01 | 1    | Bonn |
        | 1        | 2024-01-01 | 2    | Bonn |
        | 2        | 2024-02-01 | 1    | Bonn |
        | 2        | 2024-02-01 | NULL | Ulm  |
        """
    )
    own_tables.load(lenient, deliveries)
    assert {row["id"]: row["current_flag"] for row in own_tables.rows(lenient)} == {1: True, 2: False}


@pytest.mark.slow
@rule("S27")
def test_consecutive_snapshots_without_common_entities_are_all_rejected(
    own_tables: OwnTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining batches are recomputed once, not once for each of them."""
    comparisons: list[int] = []
    compare_once = change_records._compare_once
    monkeypatch.setattr(
        change_records,
        "_compare_once",
        lambda *arguments, **options: comparisons.append(1) or compare_once(*arguments, **options),
    )
    deliveries = snapshots(
        """
        | delivery | at         | scope | region | id     | city |
        | 1        | 2024-01-01 | n     | n      | n1..20 | Bonn |
        | 2        | 2024-01-01 | s     | s      | s1..20 | Ulm  |
        | 3        | 2024-02-01 | n     | no row |        |      |
        | 4        | 2024-03-01 | s     | no row |        |      |
        """,
        source="pos",
    )
    own_tables.load(STORE.dimension, deliveries)
    assert len(comparisons) == 2
