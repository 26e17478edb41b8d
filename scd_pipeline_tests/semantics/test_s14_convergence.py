"""S14: the dimension is a function of the declaration and the accepted batches."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Feed, Source
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import KeyCollision
from scd_pipeline.history.keys import KeyHash
from scd_pipeline.load.run import plan
from scd_pipeline_tests.semantics.declarations import ACCOUNT, CUSTOMER
from scd_pipeline_tests.semantics.engine import OwnTables, SharedTables, load_once, records
from scd_pipeline_tests.semantics.specification import (
    Case,
    Declaration,
    by_files,
    case,
    feed,
    requirement,
    rule,
    snapshots,
)
from scd_pipeline_tests.text_tables import same_rows

ONCE = """
| delivery | id | time       | city |
| 1        | 1  | 2024-01-01 | Bonn |
"""


@requirement("X18")
@rule("S14")
@case
def test_all_columns_are_derived_from_batches_and_none_from_the_clock() -> Case:
    """No column depends on the time of arrival or on the run."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | email | city |
            | 1        | 1  | 2024-01-01 | a     | Bonn |
            | 2        | 1  | 2024-02-01 | b     | Kiel |
            """
        ),
        becomes="""
        | city | change_source | load_run_id | last_updated |
        | Bonn | crm           | crm/feed/1  | 2024-02-01   |
        | Kiel | crm           | crm/feed/2  | 2024-02-01   |
        """,
        on_page=True,
    )


EVERY_TYPE = feed(
    """
    | delivery | id | time       | born       | email | city | score | manager | tier | reason |
    | 1        | 1  | 2024-01-01 | 1990-01-01 | a     | Bonn | 1     | m1      | Iron | start  |
    | 2        | 1  | 2024-02-01 | 1991-02-02 | b     | Kiel | 2     | m2      | Gold | move   |
    """
)


@requirement("X18")
@rule("S14")
@case
def test_columns_of_attributes_are_derived_from_batches() -> Case:
    return Case(
        CUSTOMER,
        EVERY_TYPE,
        becomes="""
        | born       | email | city | score | manager | previous_manager | manager_changed_at | tier | previous_tier |
        | 1990-01-01 | b     | Bonn | 1     | m2      | m1               | 2024-02-01         | Iron | NULL          |
        | 1990-01-01 | b     | Kiel | 2     | m2      | m1               | 2024-02-01         | Gold | Iron          |
        """,
    )


@requirement("X18")
@rule("S14")
@case
def test_generated_columns_are_derived_from_batches() -> Case:
    """The surrogate key is a hash of the business key and of `effective_from`."""
    return Case(
        CUSTOMER,
        EVERY_TYPE,
        becomes="""
        | effective_from | effective_to | current_flag | version | change_reason | load_run_id | last_updated |
        | 2024-01-01     | 2024-02-01   | false        | 1       | start         | crm/feed/1  | 2024-02-01   |
        | 2024-02-01     | OPEN         | true         | 2       | move          | crm/feed/2  | 2024-02-01   |
        """,
    )


@rule("S14")
@case
def test_a_version_names_the_last_change_record_at_its_start_that_changed_a_value() -> Case:
    """Delivery 4 only repeats the values of delivery 3."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 4        | 1  | 2024-02-01 | Ulm  |
            | 3        | 1  | 2024-02-01 | Ulm  |
            | 2        | 1  | 2024-02-01 | Kiel |
            | 1        | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | load_run_id |
        | Bonn | 2024-01-01     | crm/feed/1  |
        | Ulm  | 2024-02-01     | crm/feed/3  |
        """,
    )


@rule("S5", "S14", "S34")
@case
def test_a_higher_revision_does_not_change_the_order_of_the_channels() -> Case:
    """A feed and a snapshot have the same name and time: the snapshot is last, whichever revision arrives last."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Rome |
            | 2        | 5        | 2024-02-01 | 1  | Kiel |
            """
        ),
        feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 3        | 1  | 2024-01-01 | Oslo |
            | 2        | 7        | 1  | 2024-02-01 | Ulm  |
            """
        ),
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 5        | 2024-01-01 | 1  | Rome |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | load_run_id    |
        | Rome | 2024-01-01     | 2024-02-01   | crm/snapshot/1 |
        | Kiel | 2024-02-01     | OPEN         | crm/snapshot/2 |
        """,
        results="""
        | arrives | batch            | outcome   | code |
        | 1       | crm/snapshot/1/1 | accepted  | ''   |
        | 2       | crm/snapshot/2/5 | accepted  | ''   |
        | 3       | crm/feed/1/3     | accepted  | ''   |
        | 4       | crm/feed/2/7     | accepted  | ''   |
        | 5       | crm/snapshot/1/5 | unchanged | ''   |
        """,
    )


@rule("S14", "S34")
@case
def test_changes_of_several_sources_at_equal_time_are_ordered_by_name_not_by_revision() -> Case:
    """They have one position; the same content under a higher revision makes no change later."""
    return Case(
        ACCOUNT,
        feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 3        | 1  | 2024-01-01 | Bonn |
            """
        ),
        feed(
            """
            | delivery | revision | id | time       | note |
            | 1        | 1        | 1  | 2024-01-01 | n    |
            """,
            source="desk",
        ),
        feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 5        | 1  | 2024-01-01 | Bonn |
            """
        ),
        becomes="""
        | city | note | change_source | load_run_id |
        | Bonn | n    | desk          | desk/feed/1 |
        """,
    )


@rule("S14", "S34")
@case
def test_a_delivery_passed_twice_to_one_run_is_loaded_once() -> Case:
    return Case(
        CUSTOMER,
        feed(ONCE),
        feed(ONCE),
        becomes="""
        | city | effective_from |
        | Bonn | 2024-01-01     |
        """,
        results="""
        | arrives | batch        | outcome   | code | rows |
        | 1       | crm/feed/1/1 | accepted  | ''   | 1    |
        | 2       | crm/feed/1/1 | unchanged | ''   | 1    |
        """,
        together=True,
    )


@pytest.mark.slow(60)
@rule("S14", "S16", "S34")
@pytest.mark.xdist_group(CUSTOMER.dimension.name)
def test_all_test_cases_converge_in_any_order_in_one_run_and_repeated(
    shared_tables: Callable[[Declaration], SharedTables], spark: SparkSession, warehouse: Path
) -> None:
    """All cases of this declaration that do not depend on arrival: in one run, in another order, and repeated.

    The rows and surrogate keys are the same, and the repeated deliveries write nothing.
    """
    tables = shared_tables(CUSTOMER)
    numbers = [tables.number(case) for case in tables.cases if not case.depends_on_arrival]
    deliveries = [delivery for number in numbers for delivery in tables.deliveries(number)]
    random.Random(14).shuffle(deliveries)
    other = Warehouse(spark, warehouse)
    each = {delivery.batch(CUSTOMER.shared).id: delivery for delivery in deliveries}
    first = load_once(other, CUSTOMER.shared, each.values())
    repeated = load_once(other, CUSTOMER.shared, each.values())

    rows = [row for row in tables.dimension_rows if row["case"] in numbers]
    assert not same_rows(rows, records(other.table(CUSTOMER.shared.name).read()))
    assert {batch.outcome for batch in repeated.results} == {"unchanged", "superseded"}
    assert (repeated.table_version, repeated.log_version) == (first.table_version, first.log_version)


def _constant_hash(text: Column) -> Column:
    """A hash with collisions: the same value for all texts without a salt."""
    return F.when(F.substring(text, 1, 2) == "0:", F.lit(7)).otherwise(F.xxhash64(text))


@rule("S14")
@pytest.mark.parametrize(
    ("key_hash", "salt", "names"),
    [
        (_constant_hash, "", "id=1 and id=2"),
        (_constant_hash, "pepper", None),
        (lambda text: F.lit(-1).cast("bigint"), "", "id=1"),
    ],
    ids=["two versions with one hash", "a salt resolves the collision", "the key of the unknown member"],
)
def test_a_collision_of_surrogate_keys_stops_the_run_before_it_writes(
    own_tables: OwnTables, spark: SparkSession, key_hash: KeyHash, salt: str, names: str | None
) -> None:
    source = Source("crm", feed=Feed(effective_at="time"))
    dimension = Dimension("dim", {"id": "int"}, {"city": 2}, source, key_salt=salt)
    rows = "| 1 | 1 | 2024-01-01 | Bonn |\n| 1 | 2 | 2024-01-01 | Ulm |"
    deliveries = own_tables.deliveries(dimension, feed(f"| delivery | id | time | city |\n{rows}"))
    warehouse = Warehouse(spark, own_tables.warehouse.path, key_hash=key_hash)
    if names is None:
        assert plan(warehouse, by_files(dimension), deliveries).row_counts == {"open": 2}
    else:
        with pytest.raises(KeyCollision, match="KEY_COLLISION") as rejected:
            plan(warehouse, by_files(dimension), deliveries)
        assert all(name in str(rejected.value) for name in names.split(" and "))
