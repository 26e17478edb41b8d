"""The assets of a dimension that reads a landing table (S38)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from scd_pipeline import queries
from scd_pipeline.components.assets import table_assets
from scd_pipeline.declaration import Declarations, DeclaredTable, parse_declarations
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.orchestration.code_locations import warehouse_resource
from scd_pipeline_tests.semantics.specification import rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = dg.AssetKey("raw_issues")
LOG, TABLE, AUDIT = (dg.AssetKey(f"dim_issue{suffix}") for suffix in ("_changes", "", "_audit"))


@pytest.fixture
def declared(tmp_path: Path) -> Declarations:
    """A landing table of files in a folder, and a dimension that reads it."""
    return parse_declarations(
        f"""
landing_table: raw_issues
disposition: merge
primary_key: id
columns: [state]
sources: {{github: {{feed: "{tmp_path}/issues_{{date}}.csv"}}}}
---
dimension: dim_issue
business_key: id
attributes: {{state: 2}}
sources: {{issues: {{landing_table: raw_issues}}}}
single_scd_type: true
""".lstrip()
    )


@rule("S38")
def test_each_asset_of_the_dimension_depends_on_the_landing_table(declared: Declarations) -> None:
    (dimension,) = declared.dimensions
    deps = {spec.key: {dep.asset_key for dep in spec.deps} for spec in table_assets(dimension).specs}
    assert deps == {LOG: {RAW}, TABLE: {LOG, RAW}, AUDIT: {TABLE, RAW}}


@pytest.mark.slow(40)
@rule("S38")
def test_the_dimension_is_loaded_from_what_the_landing_table_has_accepted(
    spark: SparkSession, warehouse: Path, tmp_path: Path, declared: Declarations
) -> None:
    """A run of the landing table that rejects a delivery fails, and loads the others."""
    with dg.DagsterInstance.ephemeral() as instance:

        def run(table: DeclaredTable) -> bool:
            instance.add_dynamic_partitions(f"{table.name}_deliveries", [EVERYTHING])
            return dg.materialize(
                [table_assets(table)],
                resources={"warehouse": warehouse_resource(spark, str(warehouse))},
                instance=instance,
                partition_key=EVERYTHING,
                raise_on_error=False,
            ).success

        raw, issue = declared.tables
        files = {"01-01": "id,state\n1,open\n", "02-01": "id,state\n1,closed\n", "03-01": "id\n1\n"}
        for day, content in files.items():
            (tmp_path / f"issues_2024-{day}.csv").write_text(content, encoding="utf-8")
        assert not run(raw)
        assert run(issue)
    rows = queries.history(Warehouse(spark, warehouse), "dim_issue").orderBy("version").collect()
    assert [(row["state"], str(row["effective_from"].date()), row["current_flag"]) for row in rows] == [
        ("open", "2024-01-01", False),
        ("closed", "2024-02-01", True),
    ]
