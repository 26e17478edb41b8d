"""S4: the business time of a change, and snapshots with row times."""

from __future__ import annotations

import datetime as dt

import pytest

from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.errors import SourceDataError
from scd_pipeline.instants import to_instant
from scd_pipeline_tests.semantics.declarations import ACCOUNT, CONTRACT, COUNTRY, CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, case, feed, long_case, requirement, rule, snapshots


@requirement("X7")
@rule("S4")
@case
def test_a_row_with_a_time_is_in_effect_from_that_time() -> Case:
    """The time of the delivery then has no effect on the rows of a feed."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-06-01 | 1  | 2024-01-01 | Bonn |
            | 1        | 2024-06-01 | 1  | 2024-03-01 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-01-01     | 2024-03-01   |
        | Kiel | 2024-03-01     | OPEN         |
        """,
    )


@requirement("X7")
@rule("S4")
@case
def test_a_row_without_a_time_is_in_effect_from_the_delivery_time() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at               | id | city |
            | 1        | 2024-01-01 06:30 | 1  | Bonn |
            | 2        | 2024-02-01 06:30 | 1  | Kiel |
            """
        ),
        becomes="""
        | city | effective_from   | effective_to     |
        | Bonn | 2024-01-01 06:30 | 2024-02-01 06:30 |
        | Kiel | 2024-02-01 06:30 | OPEN             |
        """,
    )


@rule("S4")
@long_case
def test_a_feed_without_row_times_uses_the_delivery_time() -> Case:
    return Case(
        COUNTRY,
        feed(
            """
            | delivery | at         | id | op | capital |
            | 1        | 1949-01-01 | 1  |    | Bonn    |
            | 2        | 1990-10-03 | 1  |    | Berlin  |
            | 2        | 1990-10-03 | 2  |    | Aarhus  |
            | 3        | 1990-10-04 | 2  | D  |         |
            """,
            source="iso",
        ),
        becomes="""
        | id | capital | previous_capital | capital_changed_at | deleted_at |
        | 1  | Berlin  | Bonn             | 1990-10-03         | NULL       |
        | 2  | Aarhus  | NULL             | 1990-10-03         | 1990-10-04 |
        """,
    )


@requirement("X7")
@rule("S4")
@pytest.mark.parametrize(
    ("declaration", "source", "channel"),
    [(CUSTOMER, "crm", "snapshot"), (CONTRACT, "crm", "snapshot"), (COUNTRY, "iso", "feed")],
)
def test_a_delivery_without_a_time_is_rejected(declaration, source: str, channel: str) -> None:
    with pytest.raises(SourceDataError) as error:
        Delivery(source, "1", channel=channel).batch(declaration.dimension)
    assert (error.value.code, error.value.details) == ("NO_TIME", {"reason": "it has no time"})


@rule("S4")
@pytest.mark.parametrize(
    ("name", "at", "time"),
    [
        ("2024-02-01", None, "2024-02-01"),
        ("2024-02-01", "2024-03-01", "2024-03-01"),
        ("7", "2024-03-01", "2024-03-01"),
        ("february", None, None),
        ("20240201", None, None),
    ],
)
def test_the_time_of_a_passed_delivery_is_by_default_its_name(name: str, at: str | None, time: str | None) -> None:
    assert Delivery("crm", name, channel="snapshot", at=at).time(CUSTOMER.dimension) == to_instant(time)


@rule("S4")
def test_a_feed_with_row_times_needs_no_delivery_time() -> None:
    batch = Delivery("crm", "1", channel="feed").batch(CUSTOMER.dimension)
    assert batch.at is None


@rule("S1", "S4")
def test_a_delivery_time_without_a_zone_is_utc() -> None:
    oslo = dt.timezone(dt.timedelta(hours=1))
    naive = Delivery("crm", "1", channel="snapshot", at=dt.datetime(2024, 1, 1, 12))
    aware = Delivery("crm", "1", channel="snapshot", at=dt.datetime(2024, 1, 1, 13, tzinfo=oslo))
    assert naive.batch(CUSTOMER.dimension).at == aware.batch(CUSTOMER.dimension).at


@rule("S4")
@long_case
def test_a_snapshot_with_row_times_asserts_values_at_row_times_and_presence_at_its_own_time() -> Case:
    """The values are true from the row times; presence and absence are asserted at the snapshot's time."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-03-01 | 1  | 2024-01-01 | Bonn |
            | 1        | 2024-03-01 | 2  | 2024-02-01 | Ulm  |
            | 2        | 2024-04-01 | 1  | 2024-03-15 | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01     | 2024-03-15   |
        | 1  | Kiel | 2024-03-15     | OPEN         |
        | 2  | Ulm  | 2024-02-01     | 2024-04-01   |
        """,
        on_page=True,
    )


@rule("S4", "S18")
@long_case
def test_a_deleted_entity_that_is_present_returns_at_the_time_of_the_snapshot() -> Case:
    """It has the values of its row, although the row time is before the absence."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-10 | 1      | 2024-01-01 | Bonn |
            | 2        | 2024-02-10 | no row |            |      |
            | 3        | 2024-03-10 | 1      | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id    |
        | Bonn | 2024-01-01     | 2024-02-10   | 1       | crm/snapshot/1 |
        | Bonn | 2024-03-10     | OPEN         | 2       | crm/snapshot/3 |
        """,
    )


@rule("S4")
@case
def test_a_row_committed_late_becomes_one_version_from_its_row_time() -> Case:
    """Entity 7 is in no snapshot before the second one, whose row is dated before the first."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-02-01 | 1  | 2024-01-01 | Bonn |
            | 2        | 2024-03-01 | 1  | 2024-01-01 | Bonn |
            | 2        | 2024-03-01 | 7  | 2024-01-15 | Kiel |
            | 3        | 2024-04-01 | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 1  | Bonn | 2024-01-01     | OPEN         | 1       |
        | 7  | Kiel | 2024-01-15     | 2024-04-01   | 1       |
        """,
        results="""
        | batch            | outcome  | code | new | changed | deleted |
        | crm/snapshot/1/1 | accepted | ''   | 1   | 0       | 0      |
        | crm/snapshot/2/1 | accepted | ''   | 1   | 0       | 0      |
        | crm/snapshot/3/1 | accepted | ''   | 0   | 0       | 1      |
        """,
        log="""
        | batch            | id | kind   | time       |
        | crm/snapshot/1/1 | 1  | upsert | 2024-01-01 |
        | crm/snapshot/2/1 | 1  | upsert | 2024-01-01 |
        | crm/snapshot/2/1 | 7  | upsert | 2024-01-15 |
        | crm/snapshot/3/1 | 1  | upsert | 2024-01-01 |
        | crm/snapshot/3/1 | 7  | delete | 2024-04-01 |
        """,
    )


@rule("S4", "S14")
@case
def test_a_row_committed_late_becomes_one_version_in_any_order_of_arrival() -> Case:
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 2        | 2024-03-01 | 7      | 2024-01-15 | Kiel |
            | 1        | 2024-02-01 | no row |            |      |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version |
        | Kiel | 2024-01-15     | OPEN         | 1       |
        """,
    )


@rule("S4", "S19")
@case
def test_a_late_assertion_of_existence_makes_a_later_absence_a_delete() -> Case:
    """A snapshot asserts entity 7, a feed's change record entity 8. Before, nothing was stored of the absence."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 2        | 2024-02-01 | no row |            |      |
            | 3        | 2024-03-01 | 7      | 2024-01-15 | Kiel |
            | 3        | 2024-03-01 | 8      | 2024-01-15 | Ulm  |
            | 1        | 2024-01-20 | 7      | 2024-01-15 | Kiel |
            """
        ),
        feed(
            """
            | delivery | id | time       | city |
            | 4        | 8  | 2024-01-25 | Jena |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version | load_run_id    |
        | 7  | Kiel | 2024-01-15     | 2024-02-01   | 1       | crm/snapshot/1 |
        | 7  | Kiel | 2024-03-01     | OPEN         | 2       | crm/snapshot/3 |
        | 8  | Ulm  | 2024-01-15     | 2024-01-25   | 1       | crm/snapshot/3 |
        | 8  | Jena | 2024-01-25     | 2024-02-01   | 2       | crm/feed/4     |
        | 8  | Ulm  | 2024-03-01     | OPEN         | 3       | crm/snapshot/3 |
        """,
        log="""
        | batch            | id | kind   | time       |
        | crm/snapshot/1/1 | 7  | upsert | 2024-01-15 |
        | crm/snapshot/2/1 | 7  | delete | 2024-02-01 |
        | crm/snapshot/2/1 | 8  | delete | 2024-02-01 |
        | crm/snapshot/3/1 | 7  | upsert | 2024-01-15 |
        | crm/snapshot/3/1 | 8  | upsert | 2024-01-15 |
        | crm/feed/4/1     | 8  | upsert | 2024-01-25 |
        """,
    )


@rule("S4", "S34")
@case
def test_an_absence_deletes_nothing_after_the_assertion_of_existence_is_withdrawn() -> Case:
    """A higher revision restores the assertion for entity 8."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | revision | at         | id        | time       | city |
            | 1        | 1        | 2024-01-20 | 7         | 2024-01-15 | Kiel |
            | 1        | 1        | 2024-01-20 | 8         | 2024-01-15 | Ulm  |
            | 2        | 1        | 2024-02-01 | no row    |            |      |
            | 3        | 1        | 2024-03-01 | 7         | 2024-01-15 | Kiel |
            | 3        | 1        | 2024-03-01 | 8         | 2024-01-15 | Ulm  |
            | 1        | 2        | 2024-01-20 | withdrawn |            |      |
            | 1        | 3        | 2024-01-20 | 8         | 2024-01-15 | Ulm  |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 7  | Kiel | 2024-01-15     | OPEN         | 1       |
        | 8  | Ulm  | 2024-01-15     | 2024-02-01   | 1       |
        | 8  | Ulm  | 2024-03-01     | OPEN         | 2       |
        """,
    )


@rule("S4", "S18")
@case
def test_an_assertion_of_existence_stays_in_effect_until_the_source_asserts_otherwise() -> Case:
    """Entity 7 was deleted in February. The snapshot of March omits it too, and leaves no further gap."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-10 | 7      | 2024-01-01 | Bonn |
            | 2        | 2024-02-01 | no row |            |      |
            | 3        | 2024-03-01 | no row |            |      |
            | 4        | 2024-04-01 | 7      | 2024-02-15 | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       |
        | Kiel | 2024-02-15     | OPEN         | 2       |
        """,
    )


@rule("S4", "S26")
@case
def test_a_quarantined_row_does_not_assert_existence() -> Case:
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-20 | 7      | x!         | Kiel |
            | 1        | 2024-01-20 | 8      | 2024-01-01 | Ulm  |
            | 2        | 2024-02-01 | 8      | 2024-01-01 | Ulm  |
            | 3        | 2024-03-01 | 7      | 2024-01-15 | Kiel |
            | 3        | 2024-03-01 | 8      | 2024-01-01 | Ulm  |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to |
        | 7  | Kiel | 2024-01-15     | OPEN         |
        | 8  | Ulm  | 2024-01-01     | OPEN         |
        """,
    )


@rule("S4")
@case
def test_an_entity_returns_with_the_values_of_its_row_with_the_highest_position() -> Case:
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | seq | city |
            | 1        | 2024-01-10 | 1      | 2024-01-01 |     | Bonn |
            | 2        | 2024-03-10 | no row |            |     |      |
            | 3        | 2024-04-10 | 1      | 2024-02-01 | 2   | Ulm  |
            | 3        | 2024-04-10 | 1      | 2024-02-01 | 1   | Jena |
            | 3        | 2024-04-10 | 1      | 2024-01-20 | 9   | Kiel |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version |
        | Bonn | 2024-01-01     | 2024-01-20   | 1       |
        | Kiel | 2024-01-20     | 2024-02-01   | 2       |
        | Ulm  | 2024-02-01     | 2024-03-10   | 3       |
        | Ulm  | 2024-04-10     | OPEN         | 4       |
        """,
    )


@rule("S4")
@case
def test_presence_of_an_existing_entity_changes_nothing() -> Case:
    """The row's older values are not asserted again at the snapshot's time."""
    return Case(
        CONTRACT,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-02-01 | Kiel |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 2        | 2024-03-01 | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-01-01     | 2024-02-01   |
        | Kiel | 2024-02-01     | OPEN         |
        """,
    )


@rule("S4", "S19")
@case
def test_after_a_late_delete_the_entity_returns_with_the_next_snapshot_with_row_times() -> Case:
    """The delete arrives after the snapshot, which still asserts that the entity is present."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-03-01 | 1  | 2024-01-01 | Bonn |
            """
        ),
        feed(
            """
            | delivery | id | time       | op | city |
            | 2        | 1  | 2024-02-01 | D  |      |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version | load_run_id    |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       | crm/snapshot/1 |
        | Bonn | 2024-03-01     | OPEN         | 2       | crm/snapshot/1 |
        """,
    )


@rule("S4")
@case
def test_a_row_dated_after_its_snapshot_asserts_nothing_before_its_own_time() -> Case:
    """The extract of a day, named by its date, has the changes of that day: entity 1 is new, entity 2 exists."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time             | city |
            | 1        | 2024-01-01 | 2  | 2023-06-01       | Ulm  |
            | 2        | 2024-02-01 | 1  | 2024-02-01 08:00 | Bonn |
            | 2        | 2024-02-01 | 2  | 2024-02-01 09:00 | Jena |
            | 3        | 2024-03-01 | 1  | 2024-03-01 07:00 | Kiel |
            """
        ),
        becomes="""
        | id | city | effective_from   | effective_to     |
        | 1  | Bonn | 2024-02-01 08:00 | 2024-03-01 07:00 |
        | 1  | Kiel | 2024-03-01 07:00 | OPEN             |
        | 2  | Ulm  | 2023-06-01       | 2024-02-01 09:00 |
        | 2  | Jena | 2024-02-01 09:00 | 2024-03-01       |
        """,
        on_page=True,
    )


@rule("S4", "S18")
@case
def test_a_deleted_entity_returns_at_the_time_of_a_row_dated_after_its_snapshot() -> Case:
    """Entity 2 has an earlier row in the snapshot too, with which it returns at the snapshot's time."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time             | city |
            | 1        | 2024-01-10 | 1      | 2024-01-01       | Bonn |
            | 1        | 2024-01-10 | 2      | 2024-01-01       | Ulm  |
            | 2        | 2024-02-01 | no row |                  |      |
            | 3        | 2024-03-01 | 1      | 2024-03-01 08:00 | Kiel |
            | 3        | 2024-03-01 | 2      | 2024-01-01       | Ulm  |
            | 3        | 2024-03-01 | 2      | 2024-03-01 08:00 | Jena |
            """
        ),
        becomes="""
        | id | city | effective_from   | effective_to     | version |
        | 1  | Bonn | 2024-01-01       | 2024-02-01       | 1       |
        | 1  | Kiel | 2024-03-01 08:00 | OPEN             | 2       |
        | 2  | Ulm  | 2024-01-01       | 2024-02-01       | 1       |
        | 2  | Ulm  | 2024-03-01       | 2024-03-01 08:00 | 2       |
        | 2  | Jena | 2024-03-01 08:00 | OPEN             | 3       |
        """,
    )


@rule("S4", "S19")
@case
def test_a_late_snapshot_with_rows_dated_after_it_asserts_nothing_before_their_times() -> Case:
    """Delivery 2 arrives last. The feed's delete was between the snapshot's time and that of its row."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-01-10 | 1  | 2024-01-01 | Bonn |
            | 3        | 2024-03-01 | 1  | 2024-02-20 | Kiel |
            | 3        | 2024-03-01 | 7  | 2024-02-20 | Ulm  |
            """
        ),
        feed(
            """
            | delivery | id | time       | op | city |
            | 4        | 1  | 2024-02-10 | D  |      |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 2        | 2024-02-01 | 1  | 2024-02-15 | Jena |
            | 2        | 2024-02-01 | 7  | 2024-02-10 | Gera |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 1  | Bonn | 2024-01-01     | 2024-02-10   | 1       |
        | 1  | Jena | 2024-02-15     | 2024-02-20   | 2       |
        | 1  | Kiel | 2024-02-20     | OPEN         | 3       |
        | 7  | Gera | 2024-02-10     | 2024-02-20   | 1       |
        | 7  | Ulm  | 2024-02-20     | OPEN         | 2       |
        """,
    )


@rule("S4", "S18")
@case
def test_a_row_dated_after_its_snapshot_asserts_existence_from_its_own_time() -> Case:
    """The absence of 2 February is before the row's time and deletes nothing of entity 7; that of 10 February does.

    Entity 8 existed before. Both absences delete it, as it returns in between at the time of its row.
    """
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-10 | 8      | 2024-01-01 | Ulm  |
            | 2        | 2024-02-01 | 7      | 2024-02-05 | Kiel |
            | 2        | 2024-02-01 | 8      | 2024-02-05 | Gera |
            | 3        | 2024-02-02 | no row |            |      |
            | 4        | 2024-02-10 | no row |            |      |
            """
        ),
        becomes="""
        | id | city | effective_from | effective_to | version |
        | 7  | Kiel | 2024-02-05     | 2024-02-10   | 1       |
        | 8  | Ulm  | 2024-01-01     | 2024-02-02   | 1       |
        | 8  | Gera | 2024-02-05     | 2024-02-10   | 2       |
        """,
        log="""
        | batch            | id | kind   | time       |
        | crm/snapshot/1/1 | 8  | upsert | 2024-01-01 |
        | crm/snapshot/2/1 | 7  | upsert | 2024-02-05 |
        | crm/snapshot/2/1 | 8  | upsert | 2024-02-05 |
        | crm/snapshot/3/1 | 8  | delete | 2024-02-02 |
        | crm/snapshot/4/1 | 7  | delete | 2024-02-10 |
        | crm/snapshot/4/1 | 8  | delete | 2024-02-10 |
        """,
    )


@rule("S4", "S26")
@case
def test_a_row_without_its_declared_time_is_a_bad_row() -> Case:
    """The delivery's time does not replace it."""
    return Case(
        CONTRACT,
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-01-02 | 1  | 2024-01-01 | Bonn |
            | 1        | 2024-01-02 | 2  | NULL       | Bonn |
            """
        ),
        becomes="""
        | id | city | effective_from |
        | 1  | Bonn | 2024-01-01     |
        """,
        quarantine="""
        | batch            | key  | reason                  |
        | crm/snapshot/1/1 | id=2 | effective_at is missing |
        """,
    )


@rule("S4", "S30")
@long_case
def test_each_source_uses_its_own_business_time() -> Case:
    return Case(
        ACCOUNT,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-02-01 | 1  | Bonn |
            """
        ),
        feed(
            """
            | delivery | at         | id | time       | limit |
            | 2        | 2024-06-01 | 1  | 2024-01-01 | 10    |
            | 2        | 2024-06-01 | 1  | 2024-03-01 | 20    |
            """,
            source="erp",
        ),
        becomes="""
        | city | limit | effective_from | effective_to | change_source |
        | Bonn | 10    | 2024-02-01     | 2024-03-01   | crm           |
        | Bonn | 20    | 2024-03-01     | OPEN         | erp           |
        """,
    )


@rule("S4", "S30")
@case
def test_presence_has_no_effect_in_a_source_that_does_not_decide_existence() -> Case:
    """The absence of April deleted nothing, so the row of May does not make the entity return with its older limit."""
    return Case(
        CONTRACT,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            """
        ),
        snapshots(
            """
            | delivery | at         | id     | time       | limit |
            | 2        | 2024-02-01 | 1      | 2024-01-01 | 10    |
            | 4        | 2024-04-01 | no row |            |       |
            | 5        | 2024-05-01 | 1      | 2024-01-01 | 10    |
            """,
            source="erp",
        ),
        feed(
            """
            | delivery | id | time       | limit |
            | 3        | 1  | 2024-03-01 | 20    |
            """,
            source="erp",
        ),
        becomes="""
        | city | limit | effective_from | effective_to |
        | Bonn | 10    | 2024-01-01     | 2024-03-01   |
        | Bonn | 20    | 2024-03-01     | OPEN         |
        """,
        together=True,
    )
