"""S37 with S36: whole rows whose columns are those of the source, which it gains, loses and renames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from scd_pipeline.declaration import Mirror
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.specification import declare, rule
from scd_pipeline_tests.text_tables import assert_same_rows

READING = declare(
    """
    dimension: dim_reading
    business_key: whole_row
    profile: dlt
    sources: {plant: {snapshot: {}}}
    attributes: mirror
    """
).dimension


def extract(day: str, *rows: dict[str, Any]) -> Delivery:
    return Delivery("plant", f"2024-01-{day}", frame=pa.Table.from_pylist(list(rows)))


@rule("S37", "S36")
def test_a_column_that_is_lost_changes_its_rows_and_one_that_is_renamed_does_not(own_tables: OwnTables) -> None:
    """The third delivery has no unit: both rows are others, and the unit is retired. Then the column is back."""
    renamed = replace(READING, mirror=Mirror(former_names={"place": "site"}))
    deliveries = [
        extract("01", {"id": 1, "site": "roof", "unit": "C"}, {"id": 2, "site": "door", "unit": None}),
        extract("02", {"id": 1, "place": "roof", "unit": "C"}, {"id": 2, "place": "door", "unit": None}),
        extract("03", {"id": 1, "place": "roof"}, {"id": 2, "place": "door"}),
        extract("04", {"id": 1, "place": "roof", "unit": "C"}, {"id": 2, "place": "door", "unit": None}),
    ]
    becomes = """
    | id | place | unit | effective_from | effective_to | version |
    | 1  | roof  | C    | 2024-01-01     | 2024-01-03   | 1       |
    | 1  | roof  | NULL | 2024-01-03     | 2024-01-04   | 1       |
    | 1  | roof  | C    | 2024-01-04     | OPEN         | 2       |
    | 2  | door  | NULL | 2024-01-01     | OPEN         | 1       |
    """
    assert_same_rows(becomes, records(plan(own_tables.warehouse, renamed, deliveries).changed_rows))


@rule("S37", "S36")
def test_a_column_with_the_name_of_the_hash_rejects_its_delivery(own_tables: OwnTables) -> None:
    """Declared as technical, it is not read."""
    delivery = extract("01", {"id": 1, "_dlt_id": "x"})
    (result,) = plan(own_tables.warehouse, READING, [delivery]).results
    assert (result.code, result.details) == ("COLUMN_NOT_MIRRORED", {"columns": "_dlt_id"})
    technical = replace(READING, mirror=Mirror(technical="_dlt_id"))
    (result,) = plan(own_tables.warehouse, technical, [delivery]).results
    assert (result.outcome, result.undeclared) == ("accepted", ())


@rule("S37", "S15", "S21")
@pytest.mark.slow(9)
def test_the_checks_pass_after_loads_of_whole_rows_and_a_repeated_load_changes_nothing(own_tables: OwnTables) -> None:
    warehouse = own_tables.warehouse
    load(warehouse, READING, [extract("01", {"id": 1, "site": "roof"}, {"id": None, "site": "door"})])
    second = extract("02", {"id": 1, "site": "wall"}, {"id": None, "site": "door"})
    load(warehouse, READING, [second])
    results = check_table(warehouse, READING)
    assert not [result for result in results if not result.passed]
    assert plan(warehouse, READING, [second]).changed_rows.isEmpty()
