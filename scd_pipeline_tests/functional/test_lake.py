"""The example of a lake: its answers are those of plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.lake import demo
from scd_pipeline import Pipeline
from scd_pipeline_tests.object_store import serve
from scd_pipeline_tests.semantics.specification import rule


@pytest.mark.slow(90)
@rule("S38", "S14")
def test_the_answers_of_the_lake_are_those_of_plain_python(spark: SparkSession, warehouse: Path) -> None:
    """After a late page, a repeated page, a hard delete and a withdrawal."""
    lines: list[str] = []
    with serve() as store:
        store.reset(demo.BUCKET)
        assert demo.run(Pipeline(warehouse, spark=spark), store, lines.append), "\n".join(lines)
    assert [line for line in lines if line.startswith("  dim_issue:")] == [
        "  dim_issue: 2024-01-31T08:00:00 accepted, 2024-02-29T08:00:00 accepted",
        "  dim_issue: 2024-01-31T08:00:00 unchanged, 2024-02-01T08:00:00 accepted, 2024-02-10T08:00:00 accepted, "
        "2024-02-29T08:00:00 accepted, 2024-03-15T08:00:00 accepted",
        "  dim_issue: 2024-01-31T08:00:00 unchanged, 2024-02-01T08:00:00 unchanged, 2024-02-10T08:00:00 unchanged, "
        "2024-02-29T08:00:00 unchanged, 2024-03-15T08:00:00 accepted",
    ]
