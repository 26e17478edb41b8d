"""The sensor that starts a run when complete deliveries have arrived at the paths of a dimension or a fact."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import dagster as dg

from scd_pipeline.components.dagster_internals import recorded_partitions_of_run
from scd_pipeline.components.load_metadata import FILE
from scd_pipeline.components.load_step import load_run_config
from scd_pipeline.components.partitions import add_requests
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.discovery import (
    declaration_folder,
    file_fingerprints,
    file_version,
    list_files,
)
from scd_pipeline.deliveries.partitions import EVERYTHING, partition_key
from scd_pipeline.deliveries.table_states import table_states
from scd_pipeline.operations.dagster_names import RUN_KEY_TAG, dagster_name, load_op_name
from scd_pipeline.texts import first_names

QUIET_SECONDS = 5.0
"""A file is complete if it has not changed for this time."""
_FILES_OF_A_TICK = 2_000
"""The approximate number of files whose events one tick reads. Dagster needs some milliseconds for each, and ends a
tick after one minute."""


def arrival_sensor(
    dimension: Dimension,
    job: Any,
    *,
    quiet_seconds: float = QUIET_SECONDS,
    clock: Callable[[], float] = time.time,
) -> dg.SensorDefinition:
    """Return the sensor that starts one run for all new deliveries: files, or versions of Delta tables.

    A file is complete once its size and times are unchanged since the tick before and for `quiet_seconds`; a replaced
    file is new. A commit of a Delta table is complete at once: otherwise a table that always changes would wait
    forever. The partitions of new files are added. Deliveries that an earlier run did not load because it failed start
    no run of their own, and are part of the next one.
    """

    @dg.sensor(
        name=f"{dagster_name(dimension.name)}_arrivals",
        job=job,
        minimum_interval_seconds=30,
        description=(
            f"Starts one run of the partition `{EVERYTHING}` when new or replaced deliveries of {dimension.name} have "
            f"arrived. A file has arrived when it has not changed for {quiet_seconds:g} seconds and since the last "
            "tick."
        ),
    )
    def load_arrivals(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        cursor = _Cursor.parse(context.cursor)
        now = clock()
        tick = _Tick(dimension, context.instance, cursor, now, quiet_seconds)
        if tick.new and tick.last_run_is_deleted():
            # What it was to load is unknown, so this tick and the next ones look for it among all files.
            tick = _Tick(dimension, context.instance, replace(cursor, done={}, run_key=""), now, quiet_seconds)
        if not tick.new:
            return dg.SensorResult(skip_reason=tick.skip_reason(), cursor=tick.next_cursor.text())
        if tick.has_more and tick.last_run_is_unfinished():
            # The next run also gets what the last one has not loaded: all that it was to load, as long as it runs.
            reason = f"more than {_FILES_OF_A_TICK:,} new files; waiting for the run of the first ones"
            return dg.SensorResult(skip_reason=reason, cursor=cursor.text())
        files_to_load = tick.files_to_load()
        selected = {**tick.complete_tables(), **files_to_load}
        digest = hashlib.sha256(json.dumps(sorted(tick.new.items())).encode()).hexdigest()[:16]
        # Dagster starts no second run for a key, but the same deliveries may be requested again: after a failed run
        # whose cursor was reset, or from a table that was created again with versions that it had.
        run_key = f"{dimension.name}:{digest}:{int(now * 1000)}"
        request = dg.RunRequest(
            run_key,
            run_config=load_run_config(dimension.name, dict(sorted(selected.items()))),
            tags={"scd/arrived": first_names(sorted(tick.new))},
            partition_key=EVERYTHING,
        )
        return dg.SensorResult(
            run_requests=[request],
            dynamic_partitions_requests=add_requests(dimension, [*sorted(files_to_load), EVERYTHING]),
            cursor=replace(tick.next_cursor, run_key=run_key).text(),
        )

    return load_arrivals


class _Tick:
    """One evaluation of the sensor: what is new, and what of it is complete."""

    def __init__(
        self, dimension: Dimension, instance: dg.DagsterInstance, cursor: _Cursor, now: float, quiet_seconds: float
    ) -> None:
        self._dimension, self._instance, self._cursor = dimension, instance, cursor
        tables = table_states(dimension)
        self._listing = list_files(dimension, base=declaration_folder(dimension))
        buckets = _buckets(file_fingerprints(dimension, self._listing))
        changed = [bucket for bucket, files in buckets.items() if cursor.done.get(bucket) != files.digest]
        # Those of the waiting files are read first, as the cursor would lose what it has seen of them.
        waiting = {_bucket(name) for name in cursor.waiting}
        changed.sort(key=lambda bucket: bucket not in waiting)
        chosen = _first_buckets(changed, buckets, _FILES_OF_A_TICK)
        postponed = set(changed) - chosen
        digests = {bucket: files.digest for bucket, files in buckets.items() if bucket not in postponed}
        self.has_more = bool(postponed)
        """Whether later ticks examine further files."""
        self._new_files = self._not_recorded(chosen)
        new_tables = {name: state.text for name, state in tables.items() if cursor.tables.get(name) != state.text}
        versions = {**self._new_files, **new_tables}
        self._seen = {
            name: _Seen(version, now).merged_with(cursor.waiting.get(name)) for name, version in versions.items()
        }
        self._tables = tables
        atomic = {name for name, state in tables.items() if state.is_delta}
        self._complete = {
            name
            for name, seen in self._seen.items()
            if name in atomic or (seen.is_unchanged and now - seen.since >= quiet_seconds)
        }
        self.new = {name: versions[name] for name in sorted(self._complete) if not self._seen[name].is_requested}
        """The complete deliveries for which no run was requested yet: by name, their file version or table state."""
        self.next_cursor = cursor.advanced(digests, tables, self._seen, self._complete)
        """The cursor once all complete deliveries are requested."""

    def files_to_load(self) -> dict[str, str]:
        """Return the versions of the new files, and of those that the last requested run did not load."""
        new_files = {name: version for name, version in self.new.items() if name in self._new_files}
        return {**self._not_loaded_by_last_run(), **new_files}

    def complete_tables(self) -> dict[str, str]:
        """Return the states of the tables that a run may read: not of those that are still being written."""
        incomplete = self._seen.keys() - self._complete
        return {name: state.text for name, state in self._tables.items() if name not in incomplete}

    def skip_reason(self) -> str:
        """Return why the tick requests no run."""
        incomplete = sorted(set(self._seen) - set(self._complete))
        if incomplete:
            return f"waiting for files that are still being written: {first_names(incomplete)}"
        return "; ".join(["no new deliveries", *(str(near.warning()) for near in self._listing.near_matches)])

    @cached_property
    def _available(self) -> dict[str, str]:
        """The versions of all available files, by partition key; computed at most once in a tick."""
        return {
            partition_key(delivery, self._dimension): file_version(delivery) for delivery in self._listing.deliveries()
        }

    def _not_recorded(self, buckets: Collection[str]) -> dict[str, str]:
        """Return the files of some buckets whose version Dagster does not show as loaded, with their versions."""
        if not buckets:
            return {}
        log = dg.AssetKey(self._dimension.name + LOG_SUFFIX)
        loaded = self._instance.get_materialized_partitions(log)

        def is_recorded(name: str, version: str) -> bool:
            records = dg.AssetRecordsFilter(asset_key=log, asset_partitions=[name])
            fetch = [self._instance.fetch_materializations] if name in loaded else []
            # A rejected delivery is recorded by an observation.
            return any(
                _recorded_file_version(event) == version
                for fetch_events in (*fetch, self._instance.fetch_observations)
                for event in fetch_events(records, limit=1).records
            )

        return {
            name: version
            for name, version in self._available.items()
            if _bucket(name) in buckets and not is_recorded(name, version)
        }

    @cached_property
    def _last_runs(self) -> Sequence[dg.DagsterRun]:
        """The last requested run and its retries, which have its key, the newest first; none if it was deleted."""
        if not self._cursor.run_key:
            return []
        return self._instance.get_runs(dg.RunsFilter(tags={RUN_KEY_TAG: self._cursor.run_key}))

    def last_run_is_deleted(self) -> bool:
        """Return whether a run was requested that Dagster does not have any more."""
        return bool(self._cursor.run_key and not self._last_runs)

    def last_run_is_unfinished(self) -> bool:
        """Return whether the last requested run, or a retry of it, is queued or in progress."""
        return any(not run.is_finished for run in self._last_runs)

    def _not_loaded_by_last_run(self) -> dict[str, str]:
        """Return the files, with their versions, that the last requested run neither loaded nor rejected.

        It failed, it is still queued, or it did not find them. A rejected delivery is rejected again until it, the
        declaration or the table changes.
        """
        runs = self._last_runs
        if not runs:
            return {}
        config: Any = runs[-1].run_config
        requested: dict[str, str] = config["ops"][load_op_name(self._dimension.name)]["config"]["files"]
        recorded = {name for run in runs for name in recorded_partitions_of_run(self._instance, run.run_id)}
        return {
            name: version for name, version in requested.items() if name not in recorded and name in self._available
        }


@dataclass(frozen=True)
class _Seen:
    """The state of a new delivery, and the version of its file or table."""

    version: str
    since: float
    """Time of the tick that saw this version first."""
    is_requested: bool = False
    """Whether a run was requested for it."""
    is_unchanged: bool = False
    """Whether the tick before saw the same version."""

    def merged_with(self, before: _Seen | None) -> _Seen:
        """Return the state of the tick before if the version is still the same."""
        return replace(before, is_unchanged=True) if before is not None and before.version == self.version else self


@dataclass(frozen=True)
class _Cursor:
    """The cursor of the sensor.

    It stays small however many files there are: files are hashed into buckets, and of files for which a run was
    requested it contains one digest per bucket.
    """

    done: dict[str, str] = field(default_factory=dict)
    """Digests of the buckets whose files were all requested."""
    tables: dict[str, str] = field(default_factory=dict)
    """The last requested state of each table."""
    waiting: dict[str, _Seen] = field(default_factory=dict)
    """New deliveries that are incomplete, or share a bucket with such a file."""
    run_key: str = ""
    """The key of the last requested run; that run was also to load what earlier runs had not."""

    @staticmethod
    def parse(text: str | None) -> _Cursor:
        """Return the stored cursor; an empty one if none is stored, or one of another release.

        An empty cursor only requests deliveries once more, which has no effect on the tables.
        """
        stored = json.loads(text or "{}")
        if stored.keys() != {"done", "tables", "waiting", "run_key"}:
            return _Cursor()
        waiting = {name: _Seen(*seen) for name, seen in stored["waiting"].items()}
        return _Cursor(stored["done"], stored["tables"], waiting, stored["run_key"])

    def text(self) -> str:
        """Return the cursor as Dagster stores it."""
        waiting = {name: [seen.version, seen.since, seen.is_requested] for name, seen in self.waiting.items()}
        return json.dumps({"done": self.done, "tables": self.tables, "waiting": waiting, "run_key": self.run_key})

    def advanced(
        self,
        digests: Mapping[str, str],
        tables: Collection[str],
        seen: Mapping[str, _Seen],
        complete: Collection[str],
    ) -> _Cursor:
        """Return the cursor once all complete deliveries are requested.

        A bucket is done when none of its files is incomplete.
        """
        open_buckets = {_bucket(name) for name in seen if name not in complete and name not in tables}
        done = {bucket: digest for bucket, digest in digests.items() if bucket not in open_buckets}
        done |= {bucket: self.done[bucket] for bucket in open_buckets if bucket in self.done}
        # A table that was dropped may be created again with the versions that it had.
        existing_tables = {name: state for name, state in self.tables.items() if name in tables}
        requested_tables = {name: seen[name].version for name in complete if name in tables}
        waiting = {
            name: replace(state, is_requested=name in complete)
            for name, state in seen.items()
            if name not in complete or (name not in tables and _bucket(name) in open_buckets)
        }
        return _Cursor(done, {**existing_tables, **requested_tables}, waiting, self.run_key)


def _recorded_file_version(event: dg.EventLogRecord) -> object:
    """Return the version of the file that a run has loaded or rejected, as its event records it."""
    recorded = event.asset_materialization or event.asset_observation
    value = recorded.metadata.get(FILE) if recorded else None
    return value.value if value else None


def _bucket(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:2]


class _Bucket(NamedTuple):
    """The files of a bucket: a digest of their names and fingerprints, and their number."""

    digest: str
    size: int


def _buckets(fingerprints: Mapping[str, str]) -> dict[str, _Bucket]:
    """Return the buckets of files."""
    lines: dict[str, list[str]] = {}
    for name in sorted(fingerprints):
        lines.setdefault(_bucket(name), []).append(f"{name}\n{fingerprints[name]}")
    return {
        bucket: _Bucket(hashlib.sha256("\n".join(files).encode()).hexdigest()[:12], len(files))
        for bucket, files in lines.items()
    }


def _first_buckets(names: Sequence[str], buckets: Mapping[str, _Bucket], limit: int) -> set[str]:
    """Return the first of some buckets, until they have a number of files."""
    chosen: set[str] = set()
    files = 0
    for name in names:
        if files >= limit:
            break
        chosen.add(name)
        files += buckets[name].size
    return chosen
