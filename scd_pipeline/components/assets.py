"""Declared dimensions and facts as Dagster assets, partitioned by delivery.

One step loads what belongs together: the change log, the table, the audit. Which partitions a run is asked for, and in
which order the runs come, makes no difference to the tables (S14); a run without partitions loads all deliveries. A
partition is materialized if its delivery was loaded, and failed if it was rejected; then the run fails after all other
deliveries were loaded.

No postponed annotations here: Dagster reads those of an asset's function as they stand.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.storage.partition_status_cache import AssetPartitionStatus
from pydantic import Field

from scd_pipeline.components import metadata
from scd_pipeline.components.resources import WarehouseResource, told_as_failure
from scd_pipeline.components.results import as_evaluation
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import data_version, select_deliveries
from scd_pipeline.deliveries.partitions import EVERYTHING, matching_partition_keys, partition_key
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ScdError
from scd_pipeline.load.audit import load_and_record
from scd_pipeline.load.dimension import BatchResult, LoadResult
from scd_pipeline.load.facts import add_reserved_member, load_fact
from scd_pipeline.load.log import open_log
from scd_pipeline.operations.check import Finding, check_dimension, check_fact
from scd_pipeline.operations.texts import summary
from scd_pipeline.reading import create_views

_EXAMPLES = 8
_REASONS = 5


class LoadConfig(dg.Config):
    """What a run of the interface may say."""

    allow: list[str] = Field(
        default=[],
        description="Rules that this run overrides: 'bad_rows', 'retire_guard'.",
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
    """The result of a load with the metadata of its assets, by the suffix of each table."""

    result: LoadResult
    sizes: metadata.Figures
    """Rows and version of each table: true for every partition that the load stored."""
    figures: metadata.Figures
    """The figures of the whole load."""
    shown: metadata.Figures
    """Tables and plots of the whole load, which one event of each asset carries."""
    of_delivery: Callable[[BatchResult], metadata.Figures]
    """The effect of one delivery alone."""
    check: Callable[[Collection[str]], Sequence[Finding]]
    """Run checks of some names on the table as it is now."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The marks of the files that were read, by partition."""

    def of_partition(
        self, suffix: str, key: str | None, batch: BatchResult | None, *, is_shown: bool
    ) -> dict[str, Any]:
        """Return an asset's metadata for the partition of a delivery; None is the partition of all deliveries."""
        effect = self.of_delivery(batch).get(suffix, {}) if batch is not None else {}
        if suffix == LOG_SUFFIX and key is not None and key in self.files:
            effect = {**effect, metadata.FILE: self.files[key]}
        shown = self.shown.get(suffix, {}) if is_shown else {}
        return {**effect, **self.sizes[suffix], **metadata.of_load({**self.figures[suffix], **shown})}


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
            result = replace(result, table_version=added.newest)
        create_views(opened, [dimension.name], failed=how["progress"])
        versions = {LOG_SUFFIX: result.log_version, "": result.table_version, AUDIT_SUFFIX: audit.table_version}
        return Loaded(
            result,
            sizes=_sizes(opened, dimension.name, versions),
            figures={
                LOG_SUFFIX: metadata.of_log(result),
                "": metadata.of_table(result, audit),
                AUDIT_SUFFIX: metadata.of_audit(audit, result.seconds),
            },
            shown={
                LOG_SUFFIX: metadata.last_deliveries(result),
                "": {**metadata.examples(result, dimension, audit), **metadata.member(opened, dimension, result)},
            },
            of_delivery=partial(metadata.of_delivery, audit=audit),
            check=lambda names: check_dimension(opened, dimension, names),
        )

    return _step(dimension, specs, run)


def _sizes(opened: Warehouse, name: str, versions: Mapping[str, int]) -> metadata.Figures:
    sizes = metadata.sizes(opened, {name + suffix: version for suffix, version in versions.items()})
    return {suffix: dict(sizes[name + suffix]) for suffix in versions}


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
        versions = {LOG_SUFFIX: result.log_version, "": result.table_version}
        return Loaded(
            result,
            sizes=_sizes(opened, fact.name, versions),
            figures={LOG_SUFFIX: metadata.of_log(result, entities="facts"), "": metadata.of_table(result)},
            shown={LOG_SUFFIX: metadata.last_deliveries(result), "": metadata.examples(result, shape)},
            of_delivery=partial(metadata.of_delivery, entities="facts"),
            check=lambda names: check_fact(opened, fact, names),
        )

    return _step(shape, specs, run)


Run = Callable[[Warehouse, Sequence[Delivery], dict[str, Any]], Loaded]
"""Loads some deliveries; the last are arguments that every load takes."""


def _step(shape: Dimension, specs: Sequence[dg.AssetSpec], run: Run) -> dg.AssetsDefinition:
    """Return the one step that materializes the assets of a dimension or a fact.

    Any of them can be requested alone: the step loads and records all of them whichever are requested.
    """
    names = [spec.key.to_user_string() for spec in specs]

    @dg.multi_asset(
        name=f"load_{plain(shape.name)}",
        specs=specs,
        can_subset=True,
        partitions_def=delivery_partitions(shape.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool(shape.name),
        description=f"Loads deliveries into {', '.join(names)}, whichever of them are selected.",
    )
    def load_tables(
        context: dg.AssetExecutionContext, config: LoadConfig, warehouse: WarehouseResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        yield from _materialized(context, shape, config, warehouse, run)

    return load_tables


def _materialized(
    context: dg.AssetExecutionContext,
    dimension: Dimension,
    config: LoadConfig,
    warehouse: WarehouseResource,
    run: Run,
) -> Iterator[dg.MaterializeResult[Any]]:
    """Load the requested deliveries, and record the partitions of those that were stored or rejected."""
    by_partition = context.has_partition_key or context.has_partition_key_range
    named = set(context.partition_keys) if by_partition else set()
    loaded, batches, missing = _load(context, dimension, named, config, warehouse, run)
    stored = {key: batch for key, batch in batches.items() if batch.outcome not in ("rejected", "missing")}
    # A version of a table that is missing fails only the run that was asked for it.
    rejecting = {key: ("rejected", "missing") if key in named else ("rejected",) for key in batches}
    rejected = {key: batch for key, batch in sorted(batches.items()) if batch.outcome in rejecting[key]}
    failed = bool(missing or rejected)
    logged: dict[str | None, BatchResult | None] = {key: stored[key] for key in stored.keys() & named}
    if _asked(named) is None:
        logged |= _new_to_dagster(context, dimension, stored)
    # Dagster materializes the partitions of a run that succeeds; this step those of a run that fails.
    yielded: dict[str | None, BatchResult | None] = {} if failed else {key: stored.get(key) for key in named}
    yielded |= {} if by_partition else {None: None}
    for suffix in loaded.figures:
        yield from _events(context, dimension, suffix, loaded, logged, yielded)
    _record_rejected(context, dimension, loaded.figures, rejected, planned=named)
    if failed:
        _run_planned_checks(context, dimension, loaded)
        raise _failure(rejected, missing, others=len(batches) - len(rejected))


def _events(
    context: dg.AssetExecutionContext,
    dimension: Dimension,
    suffix: str,
    loaded: Loaded,
    logged: Mapping[str | None, BatchResult | None],
    yielded: Mapping[str | None, BatchResult | None],
) -> Iterator[dg.MaterializeResult[Any]]:
    """Record the materializations of one asset, by partition; those that are yielded only if it was selected."""
    asset, batches = dg.AssetKey(dimension.name + suffix), {**logged, **yielded}
    # The latest event is the one that the asset's page shows.
    latest = next((key for key in (EVERYTHING, None) if key in yielded), max(batches, key=str, default=None))
    of_partition = {
        key: loaded.of_partition(suffix, key, batch, is_shown=key == latest) for key, batch in batches.items()
    }
    is_selected = asset in context.selected_asset_keys
    for key in sorted(of_partition, key=str):
        if not (is_selected and key in yielded):
            context.log_event(dg.AssetMaterialization(asset, partition=key, metadata=of_partition[key]))
    if is_selected and yielded:
        for key in yielded:
            if key is not None:
                context.add_asset_metadata(of_partition[key], asset, key)
        yield dg.MaterializeResult(asset_key=asset, metadata=of_partition.get(None))


def _new_to_dagster(
    context: dg.AssetExecutionContext, dimension: Dimension, stored: Mapping[str, BatchResult]
) -> dict[str | None, BatchResult | None]:
    """Return the deliveries whose partitions Dagster does not show as materialized as they are now.

    Another program may have loaded one, or a run that was killed before it could record the partition.
    """
    partitions = delivery_partitions(dimension.name)
    context.instance.add_dynamic_partitions(str(partitions.name), sorted(stored))
    asset = dg.AssetKey(dimension.name)
    shown = context.instance.get_status_by_partition(asset, list(stored), partitions) or {}
    materialized = {key for key, status in shown.items() if status is AssetPartitionStatus.MATERIALIZED}
    return {key: batch for key, batch in stored.items() if batch.outcome == "accepted" or key not in materialized}


def _record_rejected(
    context: dg.AssetExecutionContext,
    dimension: Dimension,
    suffixes: Collection[str],
    rejected: Mapping[str, BatchResult],
    *,
    planned: Collection[str],
) -> None:
    """Show the partitions of rejected deliveries as failed, each with the reason.

    Dagster shows a partition as failed if a run that failed had planned to materialize it; a run of all deliveries has
    planned none of their partitions.
    """
    context.instance.add_dynamic_partitions(str(delivery_partitions(dimension.name).name), sorted(rejected))
    step = context.get_step_execution_context().step.key
    for key, batch in sorted(rejected.items()):
        reason = {"outcome": "rejected", "rule": batch.rule, "problem": batch.error, "fix": batch.remedy}
        for suffix in suffixes:
            asset = dg.AssetKey(dimension.name + suffix)
            if key not in planned or asset not in context.selected_asset_keys:
                data = AssetMaterializationPlannedData(asset, partition=key)
                event = dg.DagsterEvent.build_asset_materialization_planned_event(context.run.job_name, step, data)
                context.instance.report_dagster_event(event, context.run.run_id)
            context.log_event(dg.AssetObservation(asset, partition=key, metadata=reason))


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
        context.log.info(f"{dimension.name}: opening the warehouse with {warehouse.place}")
        opened = warehouse.open()
        context.log.info(f"{dimension.name}: connected to Spark {opened.spark.version}")
        found = select_deliveries(dimension, opened.spark, allow=config.allow)
        keyed = {partition_key(delivery, dimension): delivery for delivery in found}
        keys, lacking, known = _meant(opened, dimension, keyed, named - {EVERYTHING})
        asked = None if _asked(named) is None else set(keys.values())
        chosen = {key: of for key, of in keyed.items() if _is_asked_for(key, of, asked, config.take)}
        context.log.info(f"{dimension.name}: loading {len(chosen)} of {len(keyed)} available deliveries")
        # Before they are read: a file that is replaced meanwhile must not pass for one that was loaded.
        files = {key: data_version(of) for key, of in chosen.items() if _is_file(of)}
        how = {"run_id": context.run.run_id, "progress": context.log.info, "examples": _EXAMPLES}
        loaded = run(opened, list(chosen.values()), how)
    context.log.info(summary(loaded.result))
    results = dict(zip(chosen, loaded.result.batches, strict=True))
    told = {**known, **results}
    of_named = {name: told[key] for name, key in keys.items() if key in told}
    return replace(loaded, files=files), of_named if asked is not None else {**results, **of_named}, lacking


def _meant(
    opened: Warehouse, dimension: Dimension, found: Mapping[str, Delivery], partitions: set[str]
) -> tuple[dict[str, str], dict[str, list[str]], dict[str, BatchResult]]:
    """What partitions mean: the key of one delivery; or none or several; and what is known of deliveries beside.

    The log is asked only where a partition is not the key of a delivery that was found.
    """
    known = _taken_in(opened, dimension) if partitions - found.keys() else {}
    there = [*({key: delivery for key, (delivery, _) in known.items()} | dict(found)).values()]
    meant = {name: matching_partition_keys(name, there, dimension) for name in sorted(partitions)}
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
    return take is None or not _is_file(delivery) or (key in take and take[key] == data_version(delivery))


def _is_file(delivery: Delivery) -> bool:
    return delivery.table_version is None and delivery.partition is None


def _taken_in(opened: Warehouse, dimension: Dimension) -> dict[str, tuple[Delivery, BatchResult]]:
    """By partition key the deliveries that a load knows, and what it would say of them, if they came again."""
    known = [
        (Delivery(b.source, b.delivery, channel=b.channel), BatchResult(b.id, b.source, b.delivery, "unchanged"))
        for b in open_log(opened, dimension).batches()
    ]
    return {partition_key(delivery, dimension): (delivery, result) for delivery, result in known}


def _run_planned_checks(context: dg.AssetExecutionContext, dimension: Dimension, loaded: Loaded) -> None:
    """Run the table's checks that the run has planned: their own step is skipped once this one fails.

    Dagster would show them as failed, though the table that the run leaves may violate nothing.
    """
    asset, run_id = dg.AssetKey(dimension.name), context.run.run_id
    logged = context.instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED)
    planned = [entry.get_dagster_event().asset_check_planned_data for entry in logged]
    names = [data.check_name for data in planned if data.asset_key == asset]
    if not names:
        return
    try:
        findings = {finding.rule: finding for finding in loaded.check(names)}
    except ScdError as error:
        context.log.warning(f"{dimension.name}: its checks did not run: {error}")
        return
    for name in names:
        evaluation = as_evaluation(dimension.name, name, findings.get(name))
        event = dg.DagsterEvent.asset_check_evaluation(context.get_step_execution_context(), evaluation)
        context.instance.report_dagster_event(event, run_id)


def _failure(rejected: Mapping[str, BatchResult], missing: Mapping[str, Sequence[str]], *, others: int) -> dg.Failure:
    """Return the failure of a run, whose text begins with the reason: partition, rule, problem and fix."""
    reasons = {key: f"rejected by rule {of.rule!r}: {of.error}; {of.remedy}" for key, of in rejected.items()}
    reasons |= {key: _why_missing(keys) for key, keys in missing.items()}
    lines = [f"{key}: {reason}" for key, reason in list(reasons.items())[:_REASONS]]
    lines += [f"and {len(reasons) - _REASONS} more deliveries, see below"] if len(reasons) > _REASONS else []
    lines += [f"all other deliveries ({others}) were loaded"] if others else ["nothing was loaded"]
    return dg.Failure("\n".join(lines), metadata=reasons, allow_retries=False)


def _why_missing(keys: Sequence[str]) -> str:
    if keys:
        return f"this name means several deliveries; expected one; materialize {' or '.join(keys)} instead"
    return "missing; expected a delivery of this name at the source's path; deliver it again"


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
        "kinds": {"spark", "deltalake"},
        "owners": metadata.owners(dimension),
    }
