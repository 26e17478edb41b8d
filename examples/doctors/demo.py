"""The demo: a timed table at five times, and the history of the rows that its log changes.

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
_HISTORY = """
SELECT number, last_name, _scd_from, _scd_to FROM doctors_states
WHERE _scd_from IS NOT NULL OR _scd_to IS NOT NULL ORDER BY last_name, _scd_from
"""


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
    (doctors,) = read_declarations(DECLARATION).timed_tables
    for time in _TIMES:
        report("now" if time is None else f"at {time!r}")
        _print(pipeline.read(doctors, at=time).orderBy("number"), report)
    report("history of the rows that change")
    _print(pipeline.sql(_HISTORY, timed_tables=[doctors]), report)


def _print(rows: DataFrame, report: Report) -> None:
    report(table(collect(rows, 0)))


if __name__ == "__main__":
    sys.exit(main())
