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
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.deliveries import Delivery
from scd_pipeline.delta.audit_table import AUDIT_SUFFIX
from scd_pipeline.errors import ScdError
from scd_pipeline.facts import add_reserved_member, load_fact
from scd_pipeline.landing import EVERYTHING, deliveries, mark, partition_key
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
        raise _failure(loaded.result, lacking)


def _told_of(loaded: Loaded, batch: BatchResult, dimension: Dimension) -> dict[str, dict[str, Any]]:
    """The metadata of each asset, with the numbers of one delivery in place of those of the whole load."""
    own = {dimension.name + suffix: told for suffix, told in loaded.of_delivery(batch).items()}
    return {asset: {**told, **own.get(asset, {})} for asset, told in loaded.told.items()}


def _load(
    context: dg.AssetExecutionContext,
    dimension: Dimension,
    named: Collection[str],
    config: LoadConfig,
    warehouse: WarehouseResource,
    run: Run,
) -> tuple[Loaded, dict[str, BatchResult], list[str]]:
    """What came of the load, what became of each partition's delivery, and which partitions have none any more.

    A delivery that is gone but was taken in before is unchanged.
    """
    try:
        context.log.info(f"{dimension.name}: asking for {warehouse.place}")
        opened = warehouse.open()
        context.log.info(f"Spark {opened.spark.version} is there")
        found = deliveries(dimension, opened.spark, allow=config.allow)
        keyed = [(partition_key(delivery, dimension), delivery) for delivery in found]
        asked = _asked(named)
        chosen = [(k, delivery) for k, delivery in keyed if _is_asked_for(k, delivery, asked, config.take)]
        gone = set(named) - {EVERYTHING} - {key for key, _ in keyed}
        known = {key: result for key, result in _taken_in(opened, dimension).items() if key in gone} if gone else {}
        context.log.info(f"{dimension.name}: {len(chosen)} of {len(keyed)} deliveries found")
        how = {"run_id": context.run.run_id, "progress": context.log.info, "examples": _EXAMPLES}
        loaded = run(opened, [delivery for _, delivery in chosen], how)
    except ScdError as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error
    context.log.info(summary(loaded.result))
    results = dict(zip((key for key, _ in chosen), loaded.result.batches, strict=True))
    return loaded, {**results, **known}, sorted(gone - set(known))


def _asked(named: Collection[str]) -> Collection[str] | None:
    """The partitions that a run is to load, of those that it was started for; None for all that lies there."""
    return None if EVERYTHING in named or not named else named


def _is_asked_for(key: str, delivery: Delivery, asked: Collection[str] | None, take: Mapping[str, str] | None) -> bool:
    """Versions and partitions of tables are whole whenever they are seen; files only as they were seen whole."""
    if asked is not None:
        return key in asked
    is_file = delivery.table_version is None and delivery.partition is None
    return take is None or not is_file or (key in take and take[key] == mark(delivery))


def _taken_in(opened: Warehouse, dimension: Dimension) -> dict[str, BatchResult]:
    """By partition what a load would say of the deliveries that it knows, if they came again."""
    return {
        partition_key(Delivery(b.source, b.delivery, channel=b.channel), dimension): BatchResult(
            b.id, b.source, b.delivery, "unchanged"
        )
        for b in open_log(opened, dimension).batches()
    }


def _failure(result: LoadResult, lacking: Sequence[str]) -> dg.Failure:
    told = {f"{batch.delivery} ({batch.rule})": f"{batch.error}; {batch.remedy}" for batch in result.stopped}
    told |= dict.fromkeys(lacking, "no such delivery lies there; expected one at the source's path; deliver it again")
    wrong = [f"stopped: {', '.join(batch.delivery for batch in result.stopped)}"] if result.stopped else []
    wrong += [f"not there: {', '.join(lacking)}"] if lacking else []
    return dg.Failure(f"{'; '.join(wrong)}; the others went in", metadata=told, allow_retries=False)


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
