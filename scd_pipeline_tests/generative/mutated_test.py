"""Run one test, with a fault in the engine or without: `python -m ...generative.mutated_test TEST [FAULT]`.

The exit code is pytest's, or 10 if the test calls none of the mutated functions.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from scd_pipeline_tests.generative.faults import FAULTS
from scd_pipeline_tests.generative.journal import ROOT

PASSED, FAILED, NOT_CALLED = int(pytest.ExitCode.OK), int(pytest.ExitCode.TESTS_FAILED), 10
MODULE = "scd_pipeline_tests.generative.mutated_test"


def run(test: str, *fault: str) -> tuple[int, str]:
    """Run a test in a process of its own; return the exit code and the last line of the output."""
    command = [sys.executable, "-m", MODULE, test, *fault]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout.strip().rpartition("\n")[2]


def main(test: str, *names: str) -> int:
    """Run a test with the named fault, if any; return the exit code."""
    options = ["-q", "-p", "no:cacheprovider", test]
    faults = [fault for fault in FAULTS if fault.name in names]
    if not faults:
        return int(pytest.main(options))
    with faults[0].patch.applied():
        code = int(pytest.main(options))
    return code if faults[0].patch.is_called() else NOT_CALLED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
