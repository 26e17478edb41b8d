"""S38, S40: the arrays of a landing table as child tables, which follow its rows in each commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Pipeline
from scd_pipeline.declaration import parse_declarations
from scd_pipeline_tests.semantics.specification import requirement, rule

(RAW,) = parse_declarations(
    """
landing_table: raw_issues
disposition: merge
primary_key: {id: int}
hard_delete: deleted
columns: {comments: "array<struct<author:string,votes:int>>", deleted: boolean}
missing: null
child_tables: comments
sources: {github: {feed: {}}}
""".lstrip()
).landing_tables


@requirement("D19")
@rule("S38", "S40")
@pytest.mark.slow(14)
def test_a_child_table_has_the_elements_of_the_rows_that_remain(spark: SparkSession, warehouse: Path) -> None:
    """Row 1 gets other elements, row 2 is deleted, row 3 has none."""
    pipeline = Pipeline(warehouse, spark=spark)
    ann, bob = {"author": "ann", "votes": 1}, {"author": "bob", "votes": 2}
    first = [{"id": 1, "comments": [ann, bob]}, {"id": 2, "comments": [bob]}, {"id": 3, "comments": []}]
    pipeline.load(RAW, first, at="2024-01-01")
    assert _elements(pipeline) == [(1, 0, "ann", 1), (1, 1, "bob", 2), (2, 0, "bob", 2)]
    second = [{"id": 1, "comments": [bob], "deleted": None}, {"id": 2, "comments": None, "deleted": True}]
    pipeline.load(RAW, second, at="2024-01-02")
    assert _elements(pipeline) == [(1, 0, "bob", 2)]
    assert [each.check for each in pipeline.check(RAW) if not each.passed] == []


def _elements(pipeline: Pipeline) -> list[tuple[object, ...]]:
    """Return the elements with the primary key of their rows."""
    children = pipeline.warehouse.table("raw_issues__comments").read()
    rows = pipeline.current(RAW).select("id", "raw_issues_row").join(children, "raw_issues_row")
    columns = ["id", "comments_position", "author", "votes"]
    return [tuple(row) for row in rows.select(columns).orderBy("id", "comments_position").collect()]
