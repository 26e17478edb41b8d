"""The run launcher of `scd dev`: a run is a fork of a process that has imported Dagster, Spark and this package.

Dagster's default launcher starts a new Python for each run. Its imports take longer than a load of a few rows. The
process that is forked starts with the first run, and ends with Dagster. It has not imported the code location: each run
reads the declarations and imports the modules of the project as they are then.

Dagster's daemon and webserver import this module, so it does not import Spark itself.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from multiprocessing.process import BaseProcess
from typing import Any

import dagster as dg
from dagster._cli.api import execute_run_command
from dagster._core.instance.ref import InstanceRef
from dagster._core.launcher import LaunchRunContext
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import serialize_value
from dagster._utils import get_run_crash_explanation

_IMPORTED_BY_RUNS = [
    "dagster._cli.api",
    "dagster._core.storage.sqlite_storage",
    "dagster._daemon.controller",
    "scd_pipeline.components",
    "scd_pipeline.spark.background",
    "scd_pipeline.spark.loopback",
    "pyspark.sql.connect.catalog",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.window",
    "matplotlib.backends.backend_svg",
    "matplotlib.dates",
    "matplotlib.figure",
]
"""The modules that take most of the time; Python skips one that does not exist."""
_WATCH_SECONDS = 1.0
"""How long a run that is to be canceled may continue before it is interrupted."""


class ForkedRunLauncher(dg.DefaultRunLauncher):
    """Starts runs as forks of a process that has imported what they need.

    On another system than Linux, whose libraries may not work in a fork, and for a code location with another Python,
    it is Dagster's default launcher.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Start the process of a run, and a thread that watches it."""
        origin = context.job_code_origin
        if sys.platform != "linux" or origin is None or origin.executable_path != sys.executable:
            super().launch_run(context)
            return
        run_id, instance_ref = context.dagster_run.run_id, self._instance.get_ref()
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(_IMPORTED_BY_RUNS)
        arguments = serialize_value(ExecuteRunArgs(origin, run_id, instance_ref))
        process = forks.Process(target=_execute_run, args=[arguments])
        process.start()
        threading.Thread(target=_watch, args=[process, run_id, instance_ref], daemon=True).start()

    def terminate(self, run_id: str) -> bool:
        """Request the end of a run from the process that watches it. Return whether the run has not ended."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        if GRPC_INFO_TAG in run.tags:  # the code server has started it
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        self._instance.report_run_canceling(run)
        return True


def _execute_run(arguments: str) -> None:
    """Execute a run in this process, as `dagster api execute_run` does."""
    execute_run_command.main([arguments], prog_name="dagster", standalone_mode=False)


def _watch(process: BaseProcess, run_id: str, instance_ref: InstanceRef) -> None:
    """Interrupt a run that is to be canceled, and record that it has failed if its process ended before."""
    is_interrupted = False
    with dg.DagsterInstance.from_ref(instance_ref) as instance:
        while process.exitcode is None:
            process.join(_WATCH_SECONDS)
            if not is_interrupted and _status(instance, run_id) is dg.DagsterRunStatus.CANCELING:
                process.terminate()
                is_interrupted = True
        run: Any = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            message = get_run_crash_explanation(f"Run execution process for {run_id}", process.exitcode)
            instance.report_engine_event(message, run, cls=ForkedRunLauncher)
            instance.report_run_failed(run)


def _status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus | None:
    run = instance.get_run_by_id(run_id)
    return run.status if run is not None else None
