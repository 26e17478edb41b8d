"""Requests of sensors for runs, and further requests after a run has failed."""

from __future__ import annotations

from typing import NamedTuple

import dagster as dg

from scd_pipeline.components.dagster_internals import recorded_partitions_of_run
from scd_pipeline.operations.dagster_names import RUN_KEY_TAG

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 300, 3600


class Request(NamedTuple):
    """A request of a sensor, and how many runs were requested for it."""

    first_key: str
    attempt: int = 1

    @property
    def run_key(self) -> str:
        """The key of its last run: Dagster starts no second one for a key."""
        return self.first_key if self.attempt == 1 else f"{self.first_key}:{self.attempt}"

    def next_attempt(self) -> Request:
        """Return the request for a further run."""
        return self._replace(attempt=self.attempt + 1)


def has_failed(instance: dg.DagsterInstance, request: Request, now: float) -> bool:
    """Return whether the last run of a request has failed, some minutes ago: more of them after each attempt.

    A run that failed because of a rejected delivery has loaded everything else, and another one would fail as well.
    """
    records = instance.get_run_records(dg.RunsFilter(tags={RUN_KEY_TAG: request.run_key}), limit=1)
    if not records or records[0].dagster_run.status is not dg.DagsterRunStatus.FAILURE:
        return False
    if any(recorded_partitions_of_run(instance, records[0].dagster_run.run_id)):
        return False
    wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** (request.attempt - 1))
    return bool(now - (records[0].end_time or 0.0) >= wait)
