"""Runs jobs of a Dagster webserver by GraphQL, as its interface does."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

_LOCATION = {"repositoryLocationName": "scd_pipeline.definitions", "repositoryName": "__repository__"}
_PARTITION = "everything"
_ADD = """mutation($repo: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: $repo, partitionsDefName: $name, partitionKey: $key) { __typename } }"""
_LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
_RUNNING = ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING", "MANAGED")
_POLL_SECONDS = 0.3
"""Each request takes tens of milliseconds of processor time, which the run lacks."""


@dataclass(frozen=True, slots=True)
class DagsterClient:
    """A webserver at a port of this machine."""

    port: int

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def wait(self, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
        """Wait until the webserver answers.

        Raises:
            RuntimeError: Its process has ended, or the time is up.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/server_info", timeout=5).close()
            except OSError:
                time.sleep(0.5)
            else:
                return
        raise RuntimeError(f"nothing answers at {self.url}")

    def add_partition(self, partitions: str, key: str) -> None:
        """Add a key to dynamic partitions."""
        self.execute(_ADD, repo=_LOCATION, name=partitions, key=key)

    def run_job(self, job: str, *, partitions: str) -> None:
        """Run a job for all deliveries, and wait until it ends.

        Args:
            job: The name of the job.
            partitions: The name of its partitions.

        Raises:
            RuntimeError: The run could not be launched, or failed.
        """
        self.add_partition(partitions, _PARTITION)
        params = {
            "selector": {**_LOCATION, "jobName": job},
            "runConfigData": "{}",
            "mode": "default",
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": _PARTITION}]},
        }
        launched = self.execute(_LAUNCH, params=params)
        if launched["__typename"] != "LaunchRunSuccess":
            raise RuntimeError(f"{job}: {launched}")
        run_id = launched["run"]["runId"]
        while (status := self.execute(_STATUS, id=run_id)["status"]) in _RUNNING:
            time.sleep(_POLL_SECONDS)
        if status != "SUCCESS":
            raise RuntimeError(f"{job}: run {run_id} ended as {status}")

    def execute(self, query: str, **variables: Any) -> Any:
        """Return the only value of a query or mutation.

        Raises:
            RuntimeError: The webserver reports errors.
        """
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            content = json.loads(response.read())
        if "errors" in content:
            raise RuntimeError(str(content["errors"])[:300])
        (value,) = content["data"].values()
        return value
