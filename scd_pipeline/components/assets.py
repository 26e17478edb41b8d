"""Declared dimensions and facts as Dagster assets, partitioned by delivery.

One step loads what belongs together: the change log, the table, the audit. Which partitions a run is asked for, and in
which order the runs come, makes no difference to the tables (S14); a run without partitions takes in all that lies
there. Each partition that went in is marked; one that was stopped is not, and the run fails after the others went in.

No postponed annotations here: Dagster reads those of an asset's function as they stand.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from scd_pipeline.components import metadata
from scd_pipeline.components.resources import WarehouseResource, told_as_failure
from scd_pipeline.deliveries import Delivery
from scd_pipeline.delta.audit_table import AUDIT_SUFFIX
from scd_pipeline.facts import add_reserved_member, load_fact
from scd_pipeline.landing import EVERYTHING, deliveries, keys_meant, mark, partition_key
from scd_pipeline.load import BatchResult, LoadResult
from scd_pipeline.plan import open_log
from scd_pipeline.reading import LOG_SUFFIX, create_views
from scd_pipeline.record import AuditResult, load_and_record
from scd_pipeline.spec import Dimension, Fact
from scd_pipeline.texts import summary
from scd_pipeline.warehouse import Warehouse

_EXAMPLES = 8


class LoadConfig(dg.Config):
    """What a run of the interface may say."""

    allow: list[str] = Field(
        default=[],
        description="Rules that the deliveries of this run are let through: 'bad rows', 'retire guard'.",
    )
    take: dict[str, str] | None = Field(
        default=None,
        description="Of files a run of everything takes only these partitions, as a sensor saw them whole: each with "
        "the time of its last change and its size. One that has changed since waits for the next run.",
    )


def pool(table: str) -> str:
    """The pool in which everything that writes a table waits for its turn."""
    return f"delta/{table}"


def delivery_partitions(name: str) -> dg.DynamicPartitionsDefinition:
    """The deliveries of a dimension or a fact; sensors and runs add them as they come."""
    return dg.DynamicPartitionsDefinition(name=f"{name}_deliveries")


def plain(name: str) -> str:
    """A name of letters, digits and underscores, which is all that Dagster takes for a step."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


@dataclass(frozen=True)
class Loaded:
    """What came of a load, with the metadata of each asset."""

    result: LoadResult
    told: dict[str, dict[str, Any]]
    of_delivery: Callable[[BatchResult], dict[str, dict[str, Any]]] = metadata.of_delivery
    """What is told of one delivery alone, by the asset's suffix."""


def dimension_assets(
    dimension: Dimension, *, has_facts: bool = False, freshness: dg.FreshnessPolicy | None = None
) -> dg.AssetsDefinition:
    """Change log, table and audit of a dimension, materialized by one step; needs the resource `warehouse`.

    Where facts refer to the dimension it gets its reserved member here, within its own pool (S23).
    """
    specs = [
        _log_spec(dimension, freshness),
        _table_spec(dimension, freshness),
        dg.AssetSpec(
            dimension.name + AUDIT_SUFFIX,
            deps=[dimension.name],
            description=metadata.audit_description(dimension),
            metadata=metadata.audit_table(dimension),
            **common(dimension),
        ),
    ]

    def run(opened: Warehouse, found: Sequence[Delivery], how: dict[str, Any]) -> Loaded:
        result, audit = load_and_record(opened, dimension, found, **how)
        if has_facts and (added := add_reserved_member(opened, dimension, run_id=how["run_id"])):
            result = replace(result, table_version=added.table_version)
        create_views(opened, [dimension.name], failed=how["progress"])
        own = partial(metadata.of_delivery, audit=audit)
        return Loaded(result, _dimension_metadata(opened, dimension, result, audit), own)

    return _step(dimension, specs, f"brings table and audit of {dimension.name} up to it", run)


def fact_assets(fact: Fact, *, freshness: dg.FreshnessPolicy | None = None) -> dg.AssetsDefinition:
    """Change log and table of a fact; whichever partition is asked for, all of it is brought up to its dimensions."""
    shape = fact.as_dimension()
    # The days of a fact are not those of its dimensions: each of its partitions may need any of theirs.
    whole = dg.AllPartitionMapping()
    dimensions = [dg.AssetDep(dimension.name, partition_mapping=whole) for dimension in fact.dimensions]
    specs = [
        _log_spec(shape, freshness),
        dg.AssetSpec(
            fact.name,
            deps=[dg.AssetDep(fact.name + LOG_SUFFIX), *dimensions],
            description=metadata.fact_description(fact),
            metadata=metadata.fact_table(fact),
            freshness_policy=freshness,
            **common(shape),
        ),
    ]

    def run(opened: Warehouse, found: Sequence[Delivery], how: dict[str, Any]) -> Loaded:
        result = load_fact(opened, fact, found, **how)
        create_views(opened, [fact.name], [fact], failed=how["progress"])
        told = {fact.name + LOG_SUFFIX: metadata.of_log(result), fact.name: metadata.of_table(result, shape)}
        return Loaded(result, told)

    return _step(shape, specs, f"brings {fact.name} up to its dimensions", run)


Run = Callable[[Warehouse, Sequence[Delivery], dict[str, Any]], Loaded]
"""Loads some deliveries; the last are arguments that every load takes."""


def _step(shape: Dimension, specs: Sequence[dg.AssetSpec], and_then: str, run: Run) -> dg.AssetsDefinition:
    """The one step that materializes the assets of a dimension or a fact."""

    @dg.multi_asset(
        name=f"load_{plain(shape.name)}",
        specs=specs,
        partitions_def=delivery_partitions(shape.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool(shape.name),
        description=f"Takes in what was delivered for {shape.name}, and {and_then}.",
    )
    def load_tables(
        context: dg.AssetExecutionContext, config: LoadConfig, warehouse: WarehouseResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        yield from _materialized(context, shape, config, warehouse, run)

    return load_tables


def _dimension_metadata(
    opened: Warehouse, dimension: Dimension, result: LoadResult, audit: AuditResult
) -> dict[str, dict[str, Any]]:
    recorded = metadata.of_audit(audit, result.seconds)
    table = {**metadata.of_table(result, dimension, audit), **metadata.member(opened, dimension, result)}
    return {
        dimension.name + LOG_SUFFIX: metadata.of_log(result),
        dimension.name: table,
        dimension.name + AUDIT_SUFFIX: recorded,
    }


def _materialized(
    context: dg.AssetExecutionContext,
    dimension: Dimension,
    config: LoadConfig,
    warehouse: WarehouseResource,
    run: Run,
) -> Iterator[dg.MaterializeResult[Any]]:
    """Load what the run was asked for, and mark the partitions that went in, each with the numbers of its delivery."""
    by_partition = context.has_partition_key or context.has_partition_key_range
    named = set(context.partition_keys) if by_partition else set()
    asked = _asked(named)
    loaded, batches, lacking = _load(context, dimension, named, config, warehouse, run)
    stored = {key: batch for key, batch in batches.items() if batch.outcome != "stopped"}
    failed = bool(lacking) or len(stored) < len(batches)
    if asked is None:
        partitions = str(delivery_partitions(dimension.name).name)
        context.instance.add_dynamic_partitions(partitions, sorted(batches))
    # Those that Dagster itself marks at the end of the step, with the numbers of the whole load unless told others.
    by_dagster = set() if failed else named & stored.keys()
    shown = context.instance.get_materialized_partitions(dg.AssetKey(dimension.name)) if asked is None else set()
    marked = {key: batch for key, batch in stored.items() if batch.outcome == "accepted" or key not in shown}
    for key in sorted(marked.keys() - by_dagster):
        for asset, told in _told_of(loaded, marked[key], dimension).items():
            context.log_event(dg.AssetMaterialization(asset, partition=key, metadata=told))
    if not (by_partition and failed):
        for key in by_dagster:
            for suffix, own in loaded.of_delivery(stored[key]).items():
                context.add_asset_metadata(own, dimension.name + suffix, key)
        for asset, told in loaded.told.items():
            yield dg.MaterializeResult(asset_key=asset, metadata=told)
    if failed:
        raise _failure(batches, lacking)


def _told_of(loaded: Loaded, batch: BatchResult, dimension: Dimension) -> dict[str, dict[str, Any]]:
    """The metadata of each asset, with the numbers of one delivery in place of those of the whole load."""
    own = {dimension.name + suffix: told for suffix, told in loaded.of_delivery(batch).items()}
    return {asset: {**told, **own.get(asset, {})} for asset, told in loaded.told.items()}


def _load(
    context: dg.AssetExecutionContext,
    dimension: Dimension,
    named: set[str],
    config: LoadConfig,
    warehouse: WarehouseResource,
    run: Run,
) -> tuple[Loaded, dict[str, BatchResult], dict[str, list[str]]]:
    """What came of the load, what became of each partition's delivery, and which partitions mean not one any more.

    A delivery that is gone but was taken in before is unchanged. A partition may have the name that its delivery had
    before another channel came; of those that mean several deliveries now it is told which.
    """
    with told_as_failure():
        context.log.info(f"{dimension.name}: asking for {warehouse.place}")
        opened = warehouse.open()
        context.log.info(f"Spark {opened.spark.version} is there")
        found = deliveries(dimension, opened.spark, allow=config.allow)
        keyed = {partition_key(delivery, dimension): delivery for delivery in found}
        keys, lacking, known = _meant(opened, dimension, keyed, named - {EVERYTHING})
        asked = None if _asked(named) is None else set(keys.values())
        chosen = {key: of for key, of in keyed.items() if _is_asked_for(key, of, asked, config.take)}
        context.log.info(f"{dimension.name}: {len(chosen)} of {len(keyed)} deliveries found")
        how = {"run_id": context.run.run_id, "progress": context.log.info, "examples": _EXAMPLES}
        loaded = run(opened, list(chosen.values()), how)
    context.log.info(summary(loaded.result))
    results = dict(zip(chosen, loaded.result.batches, strict=True))
    told = {**known, **results}
    of_named = {name: told[key] for name, key in keys.items() if key in told}
    return loaded, of_named if asked is not None else {**results, **of_named}, lacking


def _meant(
    opened: Warehouse, dimension: Dimension, found: Mapping[str, Delivery], partitions: set[str]
) -> tuple[dict[str, str], dict[str, list[str]], dict[str, BatchResult]]:
    """What partitions mean: the key of one delivery; or none or several; and what is known of deliveries beside.

    The log is asked only where a partition is not the key of a delivery that was found.
    """
    known = _taken_in(opened, dimension) if partitions - found.keys() else {}
    there = [*({key: delivery for key, (delivery, _) in known.items()} | dict(found)).values()]
    meant = {name: keys_meant(name, there, dimension) for name in sorted(partitions)}
    one = {name: keys[0] for name, keys in meant.items() if len(keys) == 1}
    others = {name: keys for name, keys in meant.items() if name not in one}
    return one, others, {key: result for key, (_, result) in known.items()}


def _asked(named: Collection[str]) -> Collection[str] | None:
    """The partitions that a run is to load, of those that it was started for; None for all that lies there."""
    return None if EVERYTHING in named or not named else named


def _is_asked_for(key: str, delivery: Delivery, asked: Collection[str] | None, take: Mapping[str, str] | None) -> bool:
    """Versions and partitions of tables are whole whenever they are seen; files only as they were seen whole."""
    if asked is not None:
        return key in asked
    is_file = delivery.table_version is None and delivery.partition is None
    return take is None or not is_file or (key in take and take[key] == mark(delivery))


def _taken_in(opened: Warehouse, dimension: Dimension) -> dict[str, tuple[Delivery, BatchResult]]:
    """By partition key the deliveries that a load knows, and what it would say of them, if they came again."""
    known = [
        (Delivery(b.source, b.delivery, channel=b.channel), BatchResult(b.id, b.source, b.delivery, "unchanged"))
        for b in open_log(opened, dimension).batches()
    ]
    return {partition_key(delivery, dimension): (delivery, result) for delivery, result in known}


def _failure(batches: Mapping[str, BatchResult], lacking: Mapping[str, Sequence[str]]) -> dg.Failure:
    """What was stopped, by partition, and which partitions mean no delivery that is there, or several."""
    stopped = {key: batch for key, batch in sorted(batches.items()) if batch.outcome == "stopped"}
    told = {f"{key} ({batch.rule})": f"{batch.error}; {batch.remedy}" for key, batch in stopped.items()}
    told |= {key: _wrong_with(keys) for key, keys in lacking.items()}
    wrong = [f"stopped: {', '.join(stopped)}"] if stopped else []
    wrong += [f"not there: {', '.join(lacking)}"] if lacking else []
    wrong += ["the others went in"] if len(batches) > len(stopped) else []
    return dg.Failure("; ".join(wrong), metadata=told, allow_retries=False)


def _wrong_with(keys: Sequence[str]) -> str:
    if keys:
        return f"this name means several deliveries by now; expected one; run {' or '.join(keys)} in its place"
    return "no such delivery lies there; expected one at the source's path; deliver it again"


def _log_spec(dimension: Dimension, freshness: dg.FreshnessPolicy | None) -> dg.AssetSpec:
    return dg.AssetSpec(
        dimension.name + LOG_SUFFIX,
        description=metadata.log_description(dimension),
        metadata=metadata.log_table(dimension),
        freshness_policy=freshness,
        **common(dimension),
    )


def _table_spec(dimension: Dimension, freshness: dg.FreshnessPolicy | None) -> dg.AssetSpec:
    return dg.AssetSpec(
        dimension.name,
        deps=[dimension.name + LOG_SUFFIX],
        description=metadata.table_description(dimension),
        metadata=metadata.dimension_table(dimension),
        freshness_policy=freshness,
        **common(dimension),
    )


def common(dimension: Dimension) -> dict[str, Any]:
    """What all assets of a declaration share."""
    return {
        "group_name": dimension.group or "dimensions",
        "kinds": {"spark", "delta"},
        "owners": metadata.owners(dimension),
    }
