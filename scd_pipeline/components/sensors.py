"""Sensors that add the partitions of available deliveries, and that load tables after those that they read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import dagster as dg

from scd_pipeline.components.load_metadata import ACCEPTED_COUNT, ROW_ACTION_COUNTS
from scd_pipeline.components.load_step import load_run_config
from scd_pipeline.components.partitions import add_requests, partition_of_everything, partitions_name
from scd_pipeline.components.run_requests import Request, has_failed
from scd_pipeline.declaration import DeclaredTable, Dimension, Fact, LandingTable, TimedTable
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.discovery import declaration_folder, list_files
from scd_pipeline.deliveries.partitions import EVERYTHING, partition_key
from scd_pipeline.operations.dagster_names import refresh_sensor_name, rekey_sensor_name


def partitions_sensor(name: str, tables: Sequence[DeclaredTable]) -> dg.SensorDefinition:
    """Return the sensor that adds the partitions of all deliveries and of each available file to each table.

    Dagster's UI can materialize and backfill only partitions that exist, and a new instance has none. This sensor is on
    by default.
    """

    @dg.sensor(
        name=name,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Adds the partitions `{EVERYTHING}`, which loads all deliveries, and those of files at the paths of the "
            "sources to each table that lacks them, so that they can be selected. Starts no run."
        ),
    )
    def add_partitions(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        missing = [(table, _missing_partitions(context.instance, as_dimension(table))) for table in tables]
        requests = [request for table, keys in missing for request in add_requests(table, keys)]
        if not requests:
            return dg.SkipReason("all tables have the partitions of their files")
        return dg.SensorResult(dynamic_partitions_requests=requests)

    return add_partitions


def _missing_partitions(instance: dg.DagsterInstance, dimension: Dimension) -> list[str]:
    """Return the partition keys of all deliveries and of the available files that Dagster does not have yet."""
    existing = set(instance.get_dynamic_partitions(partitions_name(dimension.name)))
    files = list_files(dimension, base=declaration_folder(dimension)).files
    available = sorted({partition_key(file.identity, dimension) for file in files})
    return [key for key in (EVERYTHING, *available) if key not in existing]


def rekey_sensor(fact: Fact, job: Any, *, clock: Callable[[], float] = time.time) -> dg.SensorDefinition:
    """Return the sensor that starts a run of a fact after one of its dimensions has changed, to re-key it (S24)."""
    names = [dimension.name for dimension in fact.dimensions]
    description = (
        f"Starts a run of {fact.name} after a load has changed {' or '.join(names)}, so that its rows store the "
        "surrogate keys of the versions in force."
    )
    return _upstream_sensor(rekey_sensor_name(fact.name), fact, names, job, description, clock)


def refresh_sensor(dimension: Dimension, job: Any, *, clock: Callable[[], float] = time.time) -> dg.SensorDefinition:
    """Return the sensor that starts a run of a dimension after a load of a stored table that its sources read.

    The rows of a landing table may remain although its history changes, so that its change log is watched.
    """
    tables = dimension.stored_tables
    description = f"Starts a run of {dimension.name} after a load has changed {' or '.join(t.name for t in tables)}."
    names = [_watched_name(table) for table in tables]
    return _upstream_sensor(refresh_sensor_name(dimension.name), dimension, names, job, description, clock)


def _watched_name(table: LandingTable | TimedTable) -> str:
    return table.name + LOG_SUFFIX if isinstance(table, LandingTable) else table.name


def _upstream_sensor(
    name: str, table: DeclaredTable, upstream: Sequence[str], job: Any, description: str, clock: Callable[[], float]
) -> dg.SensorDefinition:
    """Return the sensor that starts a run of a table after a load has changed one of other assets.

    A run that fails is requested again: after five minutes, then after twice as long each time, up to an hour.
    """

    @dg.sensor(name=name, job=job, minimum_interval_seconds=30, description=description)
    def load_after_upstream(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor = _Cursor.parse(context.cursor)
        latest = {asset: _latest_materialization(context.instance, dg.AssetKey(asset)) for asset in upstream}
        seen = {**cursor.seen, **{asset: last for asset, last in latest.items() if last is not None}}
        now = clock()
        if any(last.is_change_after(cursor.seen.get(asset)) for asset, last in seen.items()):
            versions = ",".join(f"{each}@{last.delta_version}#{last.storage_id}" for each, last in sorted(seen.items()))
            request = Request(f"{table.name}:{versions}:{int(now)}")
        elif cursor.request is not None and has_failed(context.instance, cursor.request, now):
            request = cursor.request.next_attempt()
        else:
            cursor = _Cursor(seen, cursor.request)
            return dg.SensorResult(skip_reason=f"no change of {' or '.join(upstream)}", cursor=cursor.text())
        partition, config = partition_of_everything(table), load_run_config(table.name, {})
        return dg.SensorResult(
            run_requests=[dg.RunRequest(request.run_key, run_config=config, partition_key=partition)],
            dynamic_partitions_requests=add_requests(table, [EVERYTHING]),
            cursor=_Cursor(seen, request).text(),
        )

    return load_after_upstream


def _latest_materialization(instance: dg.DagsterInstance, key: dg.AssetKey) -> _Materialization | None:
    """Return the latest materialization of an asset; None if it has none, or one without the version of a table."""
    (event,) = instance.fetch_materializations(key, limit=1).records or (None,)
    counts = _int_metadata(event.asset_materialization) if event else {}
    if event is None or "delta_version" not in counts:
        return None
    has_changes = any(counts.get(name) for name in (*ROW_ACTION_COUNTS, ACCEPTED_COUNT))
    return _Materialization(counts["delta_version"], event.storage_id, has_changes)


class _Materialization(NamedTuple):
    """A materialization of an asset."""

    delta_version: int
    storage_id: int
    """The number of the event."""
    has_changes: bool = False
    """Whether it has changed rows of a table, or added deliveries to a change log."""

    def is_change_after(self, before: _Materialization | None) -> bool:
        """Return whether the table has changed since another materialization.

        A table that was recreated may have the Delta version that it had before.
        """
        if before is None:
            return True
        is_new = self.storage_id != before.storage_id
        return (is_new and self.has_changes) or self.delta_version != before.delta_version


@dataclass(frozen=True)
class _Cursor:
    """The cursor of the sensor."""

    seen: dict[str, _Materialization] = field(default_factory=dict)
    """The latest materialization of each upstream asset that the sensor has seen."""
    request: Request | None = None
    """The last request."""

    @staticmethod
    def parse(text: str | None) -> _Cursor:
        """Return the stored cursor; an empty one if none is stored, or one of another release."""
        stored = json.loads(text or "{}")
        if stored.keys() != {"seen", "request"}:
            return _Cursor()
        seen = {name: _Materialization(*fields) for name, fields in stored["seen"].items()}
        return _Cursor(seen, Request(*stored["request"]) if stored["request"] else None)

    def text(self) -> str:
        """Return the cursor as Dagster stores it."""
        return json.dumps({"seen": self.seen, "request": self.request})


def _int_metadata(event: dg.AssetMaterialization | None) -> dict[str, int]:
    """Return the integers of an event's metadata."""
    metadata = event.metadata if event else {}
    return {name: value.value for name, value in metadata.items() if isinstance(value.value, int)}
