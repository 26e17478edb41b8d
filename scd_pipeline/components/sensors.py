"""What starts runs: the clock, what has arrived whole, and for a fact that a dimension has changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg

from scd_pipeline.components.assets import delivery_partitions, plain
from scd_pipeline.components.metadata import FILE, ROW_COUNTS
from scd_pipeline.declaration import Dimension, Fact, Feed, Snapshot
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.discovery import data_version, declaration_folder, discover_files, file_signatures
from scd_pipeline.deliveries.files import last_changed, total_size
from scd_pipeline.deliveries.partitions import EVERYTHING, partition_key

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
    """Start one run for all new deliveries at the paths of a dimension or a fact: files, or versions of Delta tables.

    A file is complete once its size and times are unchanged since the tick before and for `settled_seconds`; a replaced
    file is new. A commit of a Delta table is complete at once: otherwise a table that always changes would wait
    forever. The partitions of new files are added. Deliveries that an earlier run did not load because it failed start
    no run of their own, and are part of the next one.
    """

    @dg.sensor(
        name=f"{plain(dimension.name)}_arrivals",
        job=job,
        minimum_interval_seconds=30,
        description=f"Starts a run when deliveries of {dimension.name} arrive.",
    )
    def arrivals(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        now, cursor, tables = clock(), _Cursor.read(context.cursor), _tables(dimension)
        digests = _digests(file_signatures(dimension))
        changed = {bucket for bucket, digest in digests.items() if cursor.done.get(bucket) != digest}
        files = _not_recorded(context.instance, dimension, changed)
        found = {**files, **{n: told for n, (told, _) in tables.items() if cursor.tables.get(n) != told}}
        seen = {n: _Seen(told, now).since(cursor.waiting.get(n)) for n, told in found.items()}
        atomic = {name for name, (_, is_atomic) in tables.items() if is_atomic}
        whole = {n for n, at in seen.items() if n in atomic or (at.again and now - at.at >= settled_seconds)}
        new = {n: found[n] for n in sorted(whole) if not seen[n].requested}
        following = cursor.following(digests, tables, seen, whole)
        if not new:
            return dg.SensorResult(skip_reason=_waiting(seen, whole), cursor=following.text())
        take = {**_left_out(context.instance, dimension, cursor.asked), **{n: m for n, m in new.items() if n in files}}
        told = hashlib.sha256(json.dumps(sorted(new.items())).encode()).hexdigest()[:16]
        run_key = f"{dimension.name}:{told}"
        request = dg.RunRequest(
            run_key,
            run_config=_taking(dimension.name, dict(sorted(take.items()))),
            tags={"scd/arrived": _short(sorted(new))},
            partition_key=EVERYTHING,
        )
        partitions = delivery_partitions(dimension.name)
        return dg.SensorResult(
            run_requests=[request],
            dynamic_partitions_requests=[partitions.build_add_request([*sorted(take), EVERYTHING])],
            cursor=replace(following, asked=run_key).text(),
        )

    return arrivals


@dataclass(frozen=True)
class _Seen:
    """A delivery that is new: what distinguishes its content, since when it is so, and whether a run was requested."""

    mark: str
    at: float
    requested: bool = False
    again: bool = False
    """Whether the tick before saw it as it is."""

    def since(self, before: _Seen | None) -> _Seen:
        return replace(before, again=True) if before is not None and before.mark == self.mark else self


@dataclass(frozen=True)
class _Cursor:
    """What a tick leaves to the next one: of files that have been requested only a digest of each of some buckets."""

    done: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, _Seen] = field(default_factory=dict)
    asked: str = ""
    """The key of the last run that was requested; it was to load whatever earlier ones had left out."""

    @staticmethod
    def read(text: str | None) -> _Cursor:
        stored = json.loads(text or "{}")
        if stored.keys() != {"done", "tables", "waiting", "asked"}:
            return _Cursor()  # none yet, or of an earlier release: what is loaded already loads without effect
        waiting = {name: _Seen(*seen) for name, seen in stored["waiting"].items()}
        return _Cursor(stored["done"], stored["tables"], waiting, stored["asked"])

    def text(self) -> str:
        waiting = {name: [seen.mark, seen.at, seen.requested] for name, seen in self.waiting.items()}
        return json.dumps({"done": self.done, "tables": self.tables, "waiting": waiting, "asked": self.asked})

    def following(
        self, digests: Mapping[str, str], tables: Collection[str], seen: Mapping[str, _Seen], whole: Collection[str]
    ) -> _Cursor:
        """Return the cursor once all that is whole was requested: a bucket is done when none of its files waits."""
        open_buckets = {_bucket(name) for name in seen if name not in whole and name not in tables}
        done = {b: digest for b, digest in digests.items() if b not in open_buckets}
        done |= {b: self.done[b] for b in open_buckets if b in self.done}
        # A table that was dropped may be created again with the versions that it had.
        kept = {n: told for n, told in self.tables.items() if n in tables}
        waiting = {
            n: replace(at, requested=n in whole)
            for n, at in seen.items()
            if n not in whole or (n not in tables and _bucket(n) in open_buckets)
        }
        return _Cursor(done, {**kept, **{n: seen[n].mark for n in whole if n in tables}}, waiting, self.asked)


def _bucket(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:2]


def _digests(signatures: Mapping[str, str]) -> dict[str, str]:
    """Return a digest of the files of each bucket: small however many files there are."""
    buckets: dict[str, list[str]] = {}
    for name in sorted(signatures):
        buckets.setdefault(_bucket(name), []).append(f"{name}\n{signatures[name]}")
    return {bucket: hashlib.sha256("\n".join(of).encode()).hexdigest()[:12] for bucket, of in buckets.items()}


def _not_recorded(instance: dg.DagsterInstance, dimension: Dimension, buckets: Collection[str]) -> dict[str, str]:
    """Return the files of some buckets that Dagster does not show as loaded as they are now, with their marks."""
    if not buckets:
        return {}
    log = dg.AssetKey(dimension.name + LOG_SUFFIX)
    loaded = instance.get_materialized_partitions(log)

    def recorded(name: str) -> object:
        only = dg.AssetRecordsFilter(asset_key=log, asset_partitions=[name])
        (event,) = instance.fetch_materializations(only, limit=1).records
        told = event.asset_materialization.metadata.get(FILE) if event.asset_materialization else None
        return told.value if told else None

    files = {name: told for name, told in _files(dimension).items() if _bucket(name) in buckets}
    return {name: told for name, told in files.items() if name not in loaded or recorded(name) != told}


def _left_out(instance: dg.DagsterInstance, dimension: Dimension, run_key: str) -> dict[str, str]:
    """Return the files, with their marks, that the last requested run did not load: it failed, or still waits."""
    if not run_key:
        return {}
    runs = instance.get_runs(dg.RunsFilter(tags={_RUN_KEY: run_key}))  # retries of a run have its key
    files = _files(dimension)
    if not runs:  # nobody knows what it was to load
        return _not_recorded(instance, dimension, {_bucket(name) for name in files})
    if any(run.is_success for run in runs):
        return {}
    config: Any = runs[-1].run_config
    take: dict[str, str] = config["ops"][f"load_{plain(dimension.name)}"]["config"]["take"]
    loaded = {name for run in runs for name in _marked(instance, run.run_id)}
    return {name: told for name, told in take.items() if name not in loaded and name in files}


def _marked(instance: dg.DagsterInstance, run_id: str) -> Iterator[str | None]:
    """The partitions that a run marked."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
        yield entry.get_dagster_event().partition


def _taking(name: str, take: Mapping[str, str]) -> dict[str, Any]:
    """The configuration of a run that takes no other files: one that comes in the meantime may not be whole."""
    return {"ops": {f"load_{plain(name)}": {"config": {"take": dict(take)}}}}


def _waiting(seen: Collection[str], whole: Collection[str]) -> str:
    pending = sorted(set(seen) - set(whole))
    return f"waiting for files that are being written: {_short(pending)}" if pending else "nothing new has arrived"


def _short(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _files(dimension: Dimension) -> dict[str, str]:
    """The files that lie there, by partition key, each with what is different once it was replaced."""
    return {partition_key(delivery, dimension): data_version(delivery) for delivery in discover_files(dimension)}


def _tables(dimension: Dimension) -> dict[str, tuple[str, bool]]:
    """The tables that lie there, each with what is different once it has changed, and whether it has commits."""
    folder = declaration_folder(dimension)
    paths = [channel.path for source in dimension.sources for _, channel in source.channels if _is_table(channel)]
    there = {path: folder / path for path in paths if path and (folder / path).exists()}
    found = {}
    for path, table in there.items():
        with contextlib.suppress(FileNotFoundError):  # the table has vanished since it was listed
            found[f"{_TABLE}{path}"] = (_change(table), _log(table).is_dir())
    return found


def _is_table(channel: Snapshot | Feed) -> bool:
    return bool(channel.versions or channel.partition)


def _log(table: Path) -> Path:
    """Where a Delta table has its commits."""
    return table / "_delta_log"


def _change(table: Path) -> str:
    """What is different after each change of a table in a local folder: its last version, or its files' last change."""
    if (log := _log(table)).is_dir():
        return f"version {max((int(path.stem) for path in log.glob('*.json') if path.stem.isdecimal()), default=-1)}"
    return f"{last_changed(table)}, {total_size(table)} bytes"


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
