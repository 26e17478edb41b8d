"""The example of a history table whose base changes its columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.elevata import demo
from scd_pipeline import Pipeline


@pytest.mark.slow(90)
def test_the_demo_prints_what_each_load_changes_and_the_history(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    demo.run(Pipeline(warehouse, spark=spark), tmp_path / "products", lines.append)
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"
    *printed, history = [re.sub(time, "<time>", line) for line in lines]
    assert printed == [
        "the first version",
        "the base gains colour",
        "  attribute colour: added as string",
        "the base loses stock",
        "  attribute stock: retired at <time>",
        "the base renames name to title",
        "stock returns with a wider type",
        "  attribute stock: widened from int to bigint",
        "  attribute stock: provided again",
        "history",
    ]
    assert [line.split() for line in history.splitlines()[2:]] == [
        ["1", "Chair", "NULL", "10", "changed"],
        ["1", "Chair", "red", "10", "changed"],
        ["1", "Chair", "blue", "10", "changed"],
        ["2", "Table", "NULL", "20", "changed"],
        ["2", "Table", "NULL", "5000000000", "changed"],
    ]
