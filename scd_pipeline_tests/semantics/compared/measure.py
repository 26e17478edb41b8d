"""Compare the rows of other tools with those of the page: `python -m scd_pipeline_tests.semantics.compared.measure`.

It installs the tools in environments of their own, if they are not installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.contestants.processes import create_environment
from scd_pipeline_tests.semantics.compared.peers import ENVIRONMENTS, FOLDER, RUNS, differences


def main() -> int:
    """Print the differences and return the exit code."""
    problems = list[str]()
    for program, environment in ENVIRONMENTS.items():
        create_environment(FOLDER, environment)
        with tempfile.TemporaryDirectory() as folder:
            problems += differences(program, Path(folder))
    print("\n\n".join(problems) or f"{len(RUNS)} results of other tools: all as on the page")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
