"""What starts runs: the clock, what has arrived whole, and for a fact that a dimension has changed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from scd_pipeline.components.assets import delivery_partitions, plain
from scd_pipeline.components.metadata import ROW_COUNTS
from scd_pipeline.deliveries import changed
from scd_pipeline.landing import EVERYTHING, declaration_folder, files, mark, partition_key, size
from scd_pipeline.spec import Dimension, Fact, Feed, Snapshot

SETTLED_SECONDS = 5.0
"""A file that has not changed for so long is whole."""
_RUN_KEY = "dagster/run_key"
_TABLE = "table "


def load_schedule(dimension: Dimension, job: Any, cron: str, timezone: str) -> dg.ScheduleDefinition:
    """Loads all that lies there, at the times of a cron line."""

    @dg.schedule(
        name=f"{plain(dimension.name)}_schedule",
        job=job,
        cron_schedule=cron,
        execution_timezone=timezone,
        description=f"Loads what lies there for {dimension.name}.",
    )
    def loads(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        context.instance.add_dynamic_partitions(str(delivery_partitions(dimension.name).name), [EVERYTHING])
        return dg.RunRequest(partition_key=EVERYTHING)

    return loads


def partitions_sensor(name: str, tables: Sequence[str]) -> dg.SensorDefinition:
    """Add the partition of all deliveries to each table's partitions, which a new instance does not have.

    Without a partition Dagster's interface cannot materialize an asset. This sensor is on by default.
    """
    partitions = {str(delivery_partitions(table).name): delivery_partitions(table) for table in tables}

    @dg.sensor(
        name=name,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adds the partition {EVERYTHING!r}, which loads all deliveries, where an instance lacks it.",
    )
    def add_partitions(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        missing = [one for n, one in partitions.items() if not context.instance.has_dynamic_partition(n, EVERYTHING)]
        if not missing:
            return dg.SkipReason(f"all tables have the partition {EVERYTHING!r}")
        return dg.SensorResult(dynamic_partitions_requests=[one.build_add_request([EVERYTHING]) for one in missing])

    return add_partitions


def arrival_sensor(
    dimension: Dimension,
    job: Any,
    *,
    settled_seconds: float = SETTLED_SECONDS,
    clock: Callable[[], float] = time.time,
) -> dg.SensorDefinition:
    """Starts one run for all that is new at the paths of a dimension or a fact: files, or versions of Delta tables.

    A file counts once its size and its time of change are as they were at the tick before, and that was long enough
    ago; one that is replaced is new again. A commit of a Delta table is whole as soon as it is seen: a table that never
    rests would wait for ever. The partitions of new files are added. What an earlier run was to take, and
    did not as it failed, starts no run of its own, and goes with the next one.
    """

    @dg.sensor(
        name=f"{plain(dimension.name)}_arrivals",
        job=job,
        minimum_interval_seconds=30,
        description=f"Starts a run when something arrives for {dimension.name}.",
    )
    def arrivals(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        now = clock()
        before: dict[str, Any] = json.loads(context.cursor or "{}")
        of_files, of_tables = _files(dimension), _tables(dimension)
        seen = {**of_files, **{name: told for name, (told, _) in of_tables.items()}}
        atomic = {name for name, (_, is_atomic) in of_tables.items() if is_atomic}
        known = before.get("seen", {})
        since = {name: before["since"][name] if known.get(name) == seen[name] else now for name in seen}
        settled = {n for n in seen if known.get(n) == seen[n] and now - since[n] >= settled_seconds}
        whole = {n: seen[n] for n in seen if n in atomic or n in settled}
        # A table that was taken away may be made anew with the versions that it had.
        done = {n: told for n, told in before.get("done", {}).items() if n in seen or not n.startswith(_TABLE)}
        new = {name: whole[name] for name in whole if done.get(name) != whole[name]}
        asked: dict[str, str] = before.get("asked", {})
        cursor = {"seen": seen, "since": since, "done": {**done, **new}, "asked": asked}
        if not new:
            return dg.SensorResult(skip_reason=_waiting(seen, whole), cursor=json.dumps(cursor))
        left = _left_out(context.instance, asked)
        take = {n: whole[n] for n in sorted(whole) if (n in new or n in left) and n in of_files}
        told = hashlib.sha256(json.dumps(sorted(new.items())).encode()).hexdigest()[:16]
        run_key = f"{dimension.name}:{told}"
        request = dg.RunRequest(
            run_key,
            run_config=_taking(dimension.name, take),
            tags={"scd/arrived": _short(sorted(new))},
            partition_key=EVERYTHING,
        )
        partitions = delivery_partitions(dimension.name)
        return dg.SensorResult(
            run_requests=[request],
            dynamic_partitions_requests=[partitions.build_add_request([*take, EVERYTHING])],
            cursor=json.dumps({**cursor, "asked": {**left, **dict.fromkeys(take, run_key)}}),
        )

    return arrivals


def _left_out(instance: dg.DagsterInstance, asked: Mapping[str, str]) -> dict[str, str]:
    """Of what runs were to take, as names with the keys of their runs, what did not go in: a run failed, or waits."""
    left: dict[str, str] = {}
    for key in sorted(set(asked.values())):
        runs = instance.get_runs(dg.RunsFilter(tags={_RUN_KEY: key}))  # retries of a run bear its key
        if not any(run.is_success for run in runs):
            went_in = {name for run in runs for name in _marked(instance, run.run_id)}
            left |= {name: key for name, of in asked.items() if of == key and name not in went_in}
    return left


def _marked(instance: dg.DagsterInstance, run_id: str) -> Iterator[str | None]:
    """The partitions that a run marked."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
        yield entry.get_dagster_event().partition


def _taking(name: str, take: Mapping[str, str]) -> dict[str, Any]:
    """The configuration of a run that takes no other files: one that comes in the meantime may not be whole."""
    return {"ops": {f"load_{plain(name)}": {"config": {"take": dict(take)}}}}


def _waiting(seen: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    pending = sorted(set(seen) - set(whole))
    return f"not whole yet: {_short(pending)}" if pending else "nothing new has arrived"


def _short(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _files(dimension: Dimension) -> dict[str, str]:
    """The files that lie there, by partition key, each with what is different once it was replaced."""
    return {partition_key(delivery, dimension): mark(delivery) for delivery in files(dimension)}


def _tables(dimension: Dimension) -> dict[str, tuple[str, bool]]:
    """The tables that lie there, each with what is different once it has changed, and whether it has commits."""
    folder = declaration_folder(dimension)
    paths = [channel.path for source in dimension.sources for _, channel in source.channels if _is_table(channel)]
    there = {path: folder / path for path in paths if path and (folder / path).exists()}
    return {f"{_TABLE}{path}": (_change(table), _log(table).is_dir()) for path, table in there.items()}


def _is_table(channel: Snapshot | Feed) -> bool:
    return bool(channel.versions or channel.partition)


def _log(table: Path) -> Path:
    """Where a Delta table has its commits."""
    return table / "_delta_log"


def _change(table: Path) -> str:
    """What is different after each change of a table in a local folder: its last version, or its files' last change."""
    if (log := _log(table)).is_dir():
        return f"version {max((int(path.stem) for path in log.glob('*.json') if path.stem.isdecimal()), default=-1)}"
    return f"{changed(table)}, {size(table)} bytes"


def rekey_sensor(fact: Fact, job: Any) -> dg.SensorDefinition:
    """Starts a run of a fact when one of its dimensions was loaded, so that its keys follow (S24)."""
    keys = [dg.AssetKey(dimension.name) for dimension in fact.dimensions]

    @dg.sensor(
        name=f"{plain(fact.name)}_follows",
        job=job,
        minimum_interval_seconds=30,
        description=f"Starts a run of {fact.name} when {', '.join(d.name for d in fact.dimensions)} has changed.",
    )
    def follows(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before: dict[str, list[int]] = json.loads(context.cursor or "{}")
        now, changed = dict(before), False
        for name, key in ((key.to_user_string(), key) for key in keys):
            (event,) = context.instance.fetch_materializations(key, limit=1).records or (None,)
            told = _numbers(event.asset_materialization) if event else {}
            if event is None or "delta_version" not in told:
                continue
            # A table that was made anew may have the version that was seen before.
            now[name] = [told["delta_version"], event.storage_id]
            version, seen = before.get(name, (-1, -1))
            touched = event.storage_id != seen and any(told.get(rows) for rows in ROW_COUNTS)
            changed = changed or touched or told["delta_version"] != version
        if not changed:
            return dg.SensorResult(skip_reason="no dimension has changed", cursor=json.dumps(now))
        told_of = ",".join(f"{name}@{version}#{event}" for name, (version, event) in sorted(now.items()))
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(f"{fact.name}:{told_of}", run_config=_taking(fact.name, {}), partition_key=EVERYTHING)
            ],
            dynamic_partitions_requests=[delivery_partitions(fact.name).build_add_request([EVERYTHING])],
            cursor=json.dumps(now),
        )

    return follows


def _numbers(event: dg.AssetMaterialization | None) -> dict[str, int]:
    told = event.metadata if event else {}
    return {name: value.value for name, value in told.items() if isinstance(value.value, int)}
