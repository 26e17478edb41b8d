"""The history of a table, whose name does not begin with `dim_`, in facts, views, checks and Dagster."""

from __future__ import annotations

import datetime as dt

import dagster as dg
import pytest

from scd_pipeline import queries
from scd_pipeline.components.assets import table_assets
from scd_pipeline.declaration import Fact, Feed, Role, Source, history_of
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.facts.players import frame, plays
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import assert_same_rows

PRODUCT = history_of("rc_product", "rc_product_key", {"price": 2})
SALE = Fact(
    "fct_sale",
    grain={"sale": "int"},
    event_time="sold_at",
    dimensions={"product": Role(PRODUCT)},
    measures={"pieces": "int"},
    source=Source("floor", feed=Feed()),
)
RUNS = {
    1: """
    | rc_product_key | price |
    | A              | 1     |
    | C              | 1     |
    """,
    2: """
    | rc_product_key | price |
    | A              | 2     |
    """,
    4: """
    | rc_product_key | price |
    | A              | 2     |
    | C              | 1     |
    """,
}
LATE = """
| rc_product_key | price |
| A              | 3     |
| C              | 1     |
"""
SALES = """
| sale | sold_at    | rc_product_key | pieces |
| 1    | 2024-01-15 | A              | 1      |
| 2    | 2024-02-15 | C              | 2      |
| 3    | 2024-04-15 | C              | 3      |
"""


def run(month: int, table: str) -> Delivery:
    """The rows of the table on the first of a month."""
    at = dt.datetime(2024, month, 1, tzinfo=dt.timezone.utc)
    return Delivery("rc_product", str(month), "snapshot", at=at, frame=frame(table))


@pytest.mark.slow(60)
@rule("S14", "S23", "S24")
def test_facts_views_and_checks_know_the_history_by_its_name(opened: Warehouse) -> None:
    """A late run changes states, and keys in the fact; the audit alone gives the same states."""
    load(opened, PRODUCT, [run(month, table) for month, table in RUNS.items()])
    load(opened, SALE, [plays("1", SALES)])
    load(opened, PRODUCT, [run(3, LATE)])
    load(opened, SALE)
    assert_same_rows(
        """
        | rc_product_key | price | version_started_at | version_ended_at | version_state |
        | A              | '1'   | 2024-01-01         | 2024-02-01       | changed       |
        | A              | '2'   | 2024-02-01         | 2024-03-01       | changed       |
        | A              | '3'   | 2024-03-01         | 2024-04-01       | changed       |
        | A              | '2'   | 2024-04-01         | NULL             | changed       |
        | C              | '1'   | 2024-01-01         | 2024-02-01       | deleted       |
        | C              | '1'   | 2024-03-01         | NULL             | new           |
        """,
        queries.history(opened, PRODUCT).toArrow().to_pylist(),
    )
    queries.register(opened, ["rc_product_hist_current", "rc_product_hist_keys", "fct_sale_joined"], [SALE])
    current = opened.spark.table("rc_product_hist_current").toArrow().to_pylist()
    assert_same_rows("| rc_product_key | price |\n| A | '2' |\n| C | '1' |", current)
    assert opened.spark.table("rc_product_hist_keys").columns[0] == "rc_product_hist_key"
    assert_same_rows(
        """
        | sale | product_price |
        | 1    | '1'           |
        | 2    | NULL          |
        | 3    | '1'           |
        """,
        opened.spark.table("fct_sale_joined").toArrow().to_pylist(),
    )
    results = [*check_table(opened, PRODUCT), *check_table(opened, SALE)]
    assert [str(result) for result in results if not result.passed] == []


def test_a_history_has_assets_with_its_name_and_described_columns() -> None:
    specs = {spec.key.to_user_string(): spec for spec in table_assets(PRODUCT).specs}
    assert specs.keys() == {"rc_product_hist_changes", "rc_product_hist", "rc_product_hist_audit"}
    columns = specs["rc_product_hist"].metadata["dagster/column_schema"].columns
    assert [column.name for column in columns if not column.description] == []
    assert isinstance(table_assets(SALE), dg.AssetsDefinition)
