"""The time and the id of the delivery in expressions."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from scd_pipeline.declaration import parse
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.semantics.engine import load_once, records
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows

OFFERS = """
dimension: dim_offer
business_key: {id: int}
sources:
  erp:
    timezone: Europe/Oslo
    retire_guard: 1
    snapshot:
      path: FOLDER/offers_{date}.csv
      rows: "until IS NULL OR until > to_date({{ load_timestamp }})"
    columns:
      opened_at: {expression: "{{ load_timestamp }}"}
      first_run: {expression: "{{ load_run_id }}"}
      last_run: {expression: "concat(id, ' ', {{ load_run_id }})"}
attributes:
  city: 2
  opened_at: {scd: 1, type: timestamp, untracked: at_open}
  first_run: 0
  last_run: 1
"""


@requirement("H16")
@rule("S13", "S14")
def test_expressions_have_the_time_and_the_id_of_the_delivery(spark: SparkSession, tmp_path: Path) -> None:
    """The last file arrives first. The second one opens no version; offer 2 ends with it."""
    (dimension,), opened = parse(OFFERS.replace("FOLDER", str(tmp_path))), Warehouse(spark, tmp_path / "warehouse")
    for days in ({3: "Kiel"}, {1: "Bonn", 2: "Bonn"}):
        for day, city in days.items():
            (tmp_path / f"offers_2024-01-0{day}.csv").write_text(f"id,city,until\n1,{city},\n2,Rome,2024-01-02\n")
        load_once(opened, dimension, discover(dimension, spark)).raise_if_rejected()
    assert_same_rows(
        """
        | id | city | opened_at  | first_run               | last_run                  | effective_from | effective_to |
        | 1  | Bonn | 2024-01-01 | erp/snapshot/2024-01-01 | 1 erp/snapshot/2024-01-03 | 2024-01-01     | 2024-01-03   |
        | 1  | Kiel | 2024-01-03 | erp/snapshot/2024-01-01 | 1 erp/snapshot/2024-01-03 | 2024-01-03     | OPEN         |
        | 2  | Rome | 2024-01-01 | erp/snapshot/2024-01-01 | 2 erp/snapshot/2024-01-01 | 2024-01-01     | 2024-01-02   |
        """,
        records(opened.table("dim_offer").read()),
    )
