"""The demo: the history of a base table whose columns change over five loads.

`make demo-elevata` runs it in the folder of the clone.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from scd_pipeline import Dimension, Pipeline, ScdError, Snapshot, read_dimension
from scd_pipeline.cli.render import table
from scd_pipeline.cli.rows import collect

Report = Callable[[str], None]

DECLARATION = Path(__file__).parent / "products_hist.yaml"
_FOLDER = Path("build/elevata")
BASE_VERSIONS = {
    "the first version": """
        SELECT * FROM VALUES (1, 'Chair', 10, 'h1'), (2, 'Table', 20, 'h2')
        AS (product_id, name, stock, row_digest)
    """,
    "the base gains colour": """
        SELECT * FROM VALUES (1, 'Chair', 10, 'red', 'h3'), (2, 'Table', 20, NULL, 'h2')
        AS (product_id, name, stock, colour, row_digest)
    """,
    "the base loses stock": """
        SELECT * FROM VALUES (1, 'Chair', 'red', 'h4'), (2, 'Table', NULL, 'h5')
        AS (product_id, name, colour, row_digest)
    """,
    "the base renames name to title": """
        SELECT * FROM VALUES (1, 'Chair', 'blue', 'h6'), (2, 'Table', NULL, 'h7')
        AS (product_id, title, colour, row_digest)
    """,
    "stock returns with a wider type": """
        SELECT * FROM VALUES (1, 'Chair', 'blue', 10L, 'h8'), (2, 'Table', NULL, 5000000000L, 'h9')
        AS (product_id, title, colour, stock, row_digest)
    """,
}
_HISTORY = "SELECT product_id, title, colour, stock, version_state FROM products_hist ORDER BY product_id, version"


def main() -> int:
    """Run the demo and return its exit code."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    try:
        with Pipeline(_FOLDER / "warehouse") as pipeline:
            run(pipeline, _FOLDER / "products", print)
    except ScdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def run(pipeline: Pipeline, base: Path, report: Report) -> None:
    """Write and load each version of the base, and print the history."""
    dimension = _with_base(read_dimension(DECLARATION), base)
    for title, query in BASE_VERSIONS.items():
        rows = pipeline.spark.sql(query)
        rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(base.absolute()))
        result = pipeline.load(dimension)
        report(title)
        for change in result.attribute_changes:
            report(f"  {change}")
    report("history")
    _print(pipeline.sql(_HISTORY), report)
    for name, time in pipeline.status(dimension).tables[0].retired.items():
        report(f"retired: {name} at {time}")


def _with_base(dimension: Dimension, base: Path) -> Dimension:
    """Return the dimension with the base at a path."""
    (source,) = dimension.sources
    snapshot = Snapshot(str(base.absolute()), format="delta", versions=True)
    return replace(dimension, sources=(replace(source, snapshot=snapshot),))


def _print(rows: DataFrame, report: Report) -> None:
    report(table(collect(rows, 0)))


if __name__ == "__main__":
    sys.exit(main())
