"""The demo: a timed table at five times, and its log as the history of a dimension.

`make demo-doctors` runs it in the folder of the clone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from scd_pipeline import Pipeline, ScdError, read_declarations
from scd_pipeline.cli.render import table
from scd_pipeline.cli.rows import collect

Report = Callable[[str], None]

DECLARATION = Path(__file__).parent / "doctors.yaml"
_TIMES = ("raw", None, "2014-01-01", -1, "")
_COLUMNS = ("number", "last_name", "effective_from", "effective_to")


def main() -> int:
    """Run the demo and return its exit code."""
    try:
        with Pipeline("build/doctors") as pipeline:
            run(pipeline, print)
    except ScdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def run(pipeline: Pipeline, report: Report) -> None:
    """Print the rows at each time, and the history."""
    declared = read_declarations(DECLARATION)
    (doctors,), (dimension,) = declared.timed_tables, declared.dimensions
    for time in _TIMES:
        report("now" if time is None else f"at {time!r}")
        _print(pipeline.read(doctors, at=time).orderBy("number"), report)
    pipeline.load(dimension)
    report("history")
    _print(pipeline.history(dimension).select(*_COLUMNS).orderBy("effective_from", "number"), report)


def _print(rows: DataFrame, report: Report) -> None:
    report(table(collect(rows, 0)))


if __name__ == "__main__":
    sys.exit(main())
