"""H32, H34: what a base table that is read whole means for its history."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import plan
from scd_pipeline_tests.semantics.engine import records
from scd_pipeline_tests.semantics.specification import Case, case, declare, requirement, rule, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows


@requirement("H34")
def test_a_flagged_row_of_a_base_closes_its_version(spark: SparkSession, tmp_path: Path) -> None:
    """NULL is no flag, and a flagged row of an unknown key opens no version. The plan has the rows of all versions."""
    base = tmp_path / "vendors"
    for rows in (
        "(1, 'Acme', false), (2, 'Beta', false), (3, 'Core', NULL)",
        "(1, 'Acme', false), (2, 'Beta', true), (3, 'Core', NULL), (4, 'Dune', true)",
        "(1, 'Acme', NULL), (2, 'Beta', false), (3, 'Cora', false), (4, 'Dune', true)",
    ):
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS (id, name, is_deleted)")
        frame.write.format("delta").mode("overwrite").save(str(base))
    source = Source("erp", Snapshot(str(base), versions=True, deletes="is_deleted"), retire_guard=0.5)
    dimension = Dimension("vendors_hist", {"id": "int"}, {"name": 2}, source)
    deliveries = discover(dimension, spark)
    load_plan = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries)
    times = {each.at: f"at_{each.name}" for each in deliveries}
    rows = records(load_plan.changed_rows)
    assert_same_rows(
        """
        | id | name | version | effective_from | effective_to | current_flag |
        | 1  | Acme | 1       | at_0           | OPEN         | true         |
        | 2  | Beta | 1       | at_0           | at_1         | false        |
        | 2  | Beta | 2       | at_2           | OPEN         | true         |
        | 3  | Core | 1       | at_0           | at_2         | false        |
        | 3  | Cora | 2       | at_2           | OPEN         | true         |
        """,
        [{**row, **{name: times.get(row[name], row[name]) for name in LIMITS}} for row in rows],
    )


LIMITS = ("effective_from", "effective_to")


BY_CHANGE, BY_LOAD = (
    declare(
        f"""
        dimension: dim_town_by_{dating}
        business_key: {{id: int}}
        sources: {{erp: {{snapshot: {channel}}}}}
        attributes: {{city: 2}}
        """,
        by_increments=False,
    )
    for dating, channel in (("change", "{effective_at: changed_on}"), ("load", "{}"))
)
TOWNS = snapshots(
    """
    | delivery | at         | id     | changed_on | city |
    | 1        | 2024-02-01 | 1      | 2024-01-10 | Bonn |
    | 2        | 2024-03-01 | 1      | 2024-02-20 | Kiel |
    | 3        | 2024-04-01 | no row |            |      |
    """,
    "erp",
)


@requirement("H32")
@rule("S4")
@case
def test_a_version_begins_at_the_time_of_the_declared_column() -> Case:
    return Case(
        BY_CHANGE,
        TOWNS,
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-01-10     | 2024-02-20   |
        | Kiel | 2024-02-20     | 2024-04-01   |
        """,
    )


@requirement("H32")
@rule("S4")
@case
def test_without_a_declared_column_a_version_begins_at_the_time_of_its_delivery() -> Case:
    return Case(
        BY_LOAD,
        TOWNS,
        becomes="""
        | city | effective_from | effective_to |
        | Bonn | 2024-02-01     | 2024-03-01   |
        | Kiel | 2024-03-01     | 2024-04-01   |
        """,
    )
