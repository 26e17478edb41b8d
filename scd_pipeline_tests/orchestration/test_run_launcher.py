"""The run launcher of `scd dev`: runs in forks of a process that has imported their modules.

No postponed annotations here: Dagster evaluates those of an op's function.
"""

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher import LaunchRunContext

LAUNCHER = {"module": "scd_pipeline.run_launcher", "class": "ForkedRunLauncher"}
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="runs are forked on Linux only"),
]


@dg.op
def load(context: dg.OpExecutionContext) -> None:
    context.log.info(f"imported before: {sorted({'dagster', 'pyspark', 'matplotlib'} & sys.modules.keys())}")


@dg.op
def crash() -> None:
    os._exit(3)


@dg.op
def wait() -> None:
    time.sleep(60)


@dg.job(executor_def=dg.in_process_executor)
def loads() -> None:
    load()


@dg.job(executor_def=dg.in_process_executor)
def crashes() -> None:
    crash()


@dg.job(executor_def=dg.in_process_executor)
def waits() -> None:
    wait()


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(overrides={"run_launcher": LAUNCHER}) as instance:
        yield instance


def created(instance: dg.DagsterInstance, job: dg.JobDefinition) -> dg.DagsterRun:
    """Return a new run of a job of this module."""
    origin = dg.reconstructable(job).get_python_origin()
    return instance.create_run_for_job(job, job_code_origin=origin)


def launched(instance: dg.DagsterInstance, job: dg.JobDefinition) -> str:
    """Launch a run, and return its id."""
    run = created(instance, job)
    instance.launch_run(run.run_id, workspace=None)
    return run.run_id


def wait_until(instance: dg.DagsterInstance, run_id: str, *statuses: dg.DagsterRunStatus) -> dg.DagsterRunStatus:
    """Wait until a run has one of these statuses, or for a minute, and return its status."""
    deadline = time.monotonic() + 60
    while (status := instance.get_run_by_id(run_id).status) not in statuses and time.monotonic() < deadline:  # type: ignore[union-attr]
        time.sleep(0.1)
    return status


def messages(instance: dg.DagsterInstance, run_id: str) -> str:
    return "\n".join(f"{entry.user_message} {entry.message}" for entry in instance.all_logs(run_id))


def test_a_run_is_executed_by_a_process_that_has_imported_its_modules(instance: dg.DagsterInstance) -> None:
    run_id = launched(instance, loads)
    ended = wait_until(instance, run_id, dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE)
    assert ended is dg.DagsterRunStatus.SUCCESS, messages(instance, run_id)
    assert "imported before: ['dagster', 'matplotlib', 'pyspark']" in messages(instance, run_id)
    assert "Started process for run" in messages(instance, run_id)
    assert not instance.run_launcher.terminate(run_id)


def test_a_run_fails_if_its_process_ends(instance: dg.DagsterInstance) -> None:
    run_id = launched(instance, crashes)
    assert wait_until(instance, run_id, dg.DagsterRunStatus.FAILURE) is dg.DagsterRunStatus.FAILURE
    assert "unexpectedly exited with code 3" in messages(instance, run_id)


def test_a_run_is_canceled(instance: dg.DagsterInstance) -> None:
    """By another process, such as the webserver, which has a launcher of its own."""
    run_id = launched(instance, waits)
    wait_until(instance, run_id, dg.DagsterRunStatus.STARTED)
    with dg.DagsterInstance.from_ref(instance.get_ref()) as other:
        assert other.run_launcher.terminate(run_id)
    assert wait_until(instance, run_id, dg.DagsterRunStatus.CANCELED) is dg.DagsterRunStatus.CANCELED


def test_a_run_of_another_python_is_started_by_its_code_server(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_default: list[Any] = []
    monkeypatch.setattr(dg.DefaultRunLauncher, "launch_run", lambda self, context: by_default.append(context))
    context = LaunchRunContext(created(instance, loads), None)
    monkeypatch.setattr(sys, "executable", "/another/python")
    instance.run_launcher.launch_run(context)
    assert by_default == [context]
