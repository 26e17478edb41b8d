"""Sensors that add the partition `everything` to new instances, and that load facts after their dimensions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import dagster as dg

from scd_pipeline.components.load_metadata import ROW_ACTION_COUNTS
from scd_pipeline.components.load_step import load_run_config
from scd_pipeline.components.names import dagster_name
from scd_pipeline.components.partitions import delivery_partitions, partitions_name
from scd_pipeline.declaration import Fact
from scd_pipeline.deliveries.partitions import EVERYTHING


def partitions_sensor(name: str, tables: Sequence[str]) -> dg.SensorDefinition:
    """Return the sensor that adds the partition of all deliveries to each table, which a new instance lacks.

    Dagster's UI cannot materialize an asset that has no partitions yet. This sensor is on by default.
    """

    @dg.sensor(
        name=name,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Adds the partition `{EVERYTHING}`, which loads all deliveries, to each dimension and fact that lacks it. "
            "Starts no run."
        ),
    )
    def add_partitions(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        missing = [
            table for table in tables if not context.instance.has_dynamic_partition(partitions_name(table), EVERYTHING)
        ]
        if not missing:
            return dg.SkipReason(f"all dimensions and facts have the partition {EVERYTHING!r}")
        requests = [delivery_partitions(table).build_add_request([EVERYTHING]) for table in missing]
        return dg.SensorResult(dynamic_partitions_requests=requests)

    return add_partitions


def rekey_sensor(fact: Fact, job: Any) -> dg.SensorDefinition:
    """Return the sensor that starts a run of a fact after one of its dimensions has changed, to re-key it (S24)."""
    keys = [dg.AssetKey(dimension.name) for dimension in fact.dimensions]

    @dg.sensor(
        name=f"{dagster_name(fact.name)}_follows",
        job=job,
        minimum_interval_seconds=30,
        description=(
            f"Starts a run of {fact.name} after a load has changed {' or '.join(d.name for d in fact.dimensions)}, "
            "so that its rows store the surrogate keys of the versions in force."
        ),
    )
    def rekey_fact(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before = _parse_cursor(context.cursor)
        now, has_changed = dict(before), False
        for name, key in ((key.to_user_string(), key) for key in keys):
            (event,) = context.instance.fetch_materializations(key, limit=1).records or (None,)
            counts = _int_metadata(event.asset_materialization) if event else {}
            if event is None or "delta_version" not in counts:
                continue
            # A table that was recreated may have the Delta version that the sensor saw before.
            last = before.get(name, _Materialization())
            now[name] = _Materialization(counts["delta_version"], event.storage_id)
            is_new = now[name].storage_id != last.storage_id
            has_row_changes = is_new and any(counts.get(rows) for rows in ROW_ACTION_COUNTS)
            has_changed = has_changed or has_row_changes or now[name].delta_version != last.delta_version
        if not has_changed:
            return dg.SensorResult(skip_reason="no dimension has changed", cursor=json.dumps(now))
        versions = ",".join(f"{name}@{seen.delta_version}#{seen.storage_id}" for name, seen in sorted(now.items()))
        request = dg.RunRequest(
            f"{fact.name}:{versions}", run_config=load_run_config(fact.name, {}), partition_key=EVERYTHING
        )
        return dg.SensorResult(
            run_requests=[request],
            dynamic_partitions_requests=[delivery_partitions(fact.name).build_add_request([EVERYTHING])],
            cursor=json.dumps(now),
        )

    return rekey_fact


class _Materialization(NamedTuple):
    """The latest materialization of a dimension that the sensor has seen, as its cursor stores it."""

    delta_version: int = -1
    storage_id: int = -1
    """The number of the event."""


def _parse_cursor(text: str | None) -> dict[str, _Materialization]:
    """Return the materializations in the cursor of the sensor, by dimension; none if no cursor is stored."""
    return {name: _Materialization(*fields) for name, fields in json.loads(text or "{}").items()}


def _int_metadata(event: dg.AssetMaterialization | None) -> dict[str, int]:
    """Return the integers of an event's metadata."""
    metadata = event.metadata if event else {}
    return {name: value.value for name, value in metadata.items() if isinstance(value.value, int)}
