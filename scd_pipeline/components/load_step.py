"""The step that materializes the assets of a table, partitioned by delivery unless these follow from stored tables.

One step loads what belongs together: the change log, the table, the audit. Which partitions a run was launched for, and
in which order the runs come, makes no difference to the tables (S14). A partition is materialized if its delivery was
loaded, and failed if it was rejected; then the run fails after all other deliveries were loaded.

No postponed annotations here: Dagster evaluates those of an asset's function.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
from pydantic import Field

from scd_pipeline.components.dagster_internals import omit_input_versions, partitions_observed_last
from scd_pipeline.components.delivery_selection import DeliverySelection, resolve_partitions, withdrawn_partitions
from scd_pipeline.components.failures import as_dagster_failure, load_failure
from scd_pipeline.components.load_checks import LoadChecks
from scd_pipeline.components.load_window import alert_after_deadline, run_deadline
from scd_pipeline.components.partition_events import (
    LoadReport,
    not_materialized,
    record_materializations,
    record_rejected,
)
from scd_pipeline.components.partitions import delivery_partitions, has_everything
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import DeclaredTable
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ScdError
from scd_pipeline.load.deadline import Deadline
from scd_pipeline.operations.dagster_names import ATTEMPTS_TAG, load_op_name, pool_name
from scd_pipeline.operations.summary import load_summary
from scd_pipeline.texts import first_names, pluralize

LoadTables = Callable[[Warehouse, DeliverySelection, str, Callable[[str], None], Deadline | None], LoadReport]
"""Loads the selected deliveries; the others are the run's id, a function that logs progress, and the deadline."""


class LoadConfig(dg.Config):
    """Run configuration of a load."""

    allow: list[str] = Field(
        default=[],
        description="Rules that this run overrides: 'bad_rows', 'retire_guard', 'control_totals'; 'withdrawn' loads "
        "withdrawn deliveries again.",
    )
    files: dict[str, str] | None = Field(
        default=None,
        description="For a run of the partition `everything`, the only files to load: partition key to time and size, "
        "as the arrival sensor saw them, and the states of tables. A file that has changed since is loaded by a later "
        "run.",
    )
    withdraw: bool = Field(
        default=False,
        description="Whether the run withdraws the deliveries of its partitions, as `scd withdraw`. A run with "
        "`allow: [withdrawn]` loads them again.",
    )
    by: str = Field(default="", description="Person who withdraws the deliveries; required with `withdraw`.")
    reason: str = Field(default="", description="Reason of the withdrawal; required with `withdraw`.")


def load_step(
    declared: DeclaredTable,
    specs: Sequence[dg.AssetSpec],
    load: LoadTables,
    *,
    checks: LoadChecks,
    attempts: int,
    clock: Callable[[], float] = time.time,
) -> dg.AssetsDefinition:
    """Return the one step that materializes the assets of a dimension or a fact.

    Any of the assets can be selected alone: the step loads and records all of them whichever are selected.

    Args:
        checks: The checks whose results the step records.
        attempts: How often `load` attempts a load, for the checklist.
        clock: Returns the current time, in seconds since 1970, for the deadline of a run.
    """
    name, names = declared.name, [spec.key.to_user_string() for spec in specs]

    @dg.multi_asset(
        name=load_op_name(name),
        specs=specs,
        can_subset=True,
        partitions_def=delivery_partitions(declared),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(name),
        op_tags={ATTEMPTS_TAG: str(attempts)},
        description=f"Loads deliveries into {', '.join(names)}, even if only some of these assets are selected.",
    )
    def load_tables(
        context: dg.AssetExecutionContext, config: LoadConfig, warehouse: WarehouseResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        deadline = run_deadline(context.run.tags, clock)
        yield from _load_and_record(context, declared, config, warehouse, load, checks, deadline)

    return load_tables


def load_run_config(table: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the run configuration of a load that reads only these files: one that arrives later may be incomplete.

    `files` maps partition keys to file versions.
    """
    return {"ops": {load_op_name(table): {"config": {"files": dict(files)}}}}


@dataclass(frozen=True)
class _PartitionedLoad:
    """A load with the batch of each partition."""

    report: LoadReport
    batches: Mapping[str, BatchResult]
    unresolved: Mapping[str, Sequence[str]]
    """Requested partitions that represent no delivery or several, with the partition keys of these."""
    file_versions: Mapping[str, str]
    """Time and size of each file that the load read, by partition."""


def _load_and_record(
    context: dg.AssetExecutionContext,
    declared: DeclaredTable,
    config: LoadConfig,
    warehouse: WarehouseResource,
    load: LoadTables,
    checks: LoadChecks,
    deadline: Deadline | None,
) -> Iterator[dg.MaterializeResult[Any]]:
    """Load the requested deliveries, and record the partitions of those that were stored or rejected."""
    is_partitioned = context.assets_def.partitions_def is not None
    has_partitions = is_partitioned and (context.has_partition_key or context.has_partition_key_range)
    requested = set(context.partition_keys) if has_partitions else set()
    loaded = _load(context, declared, requested, config, warehouse, load, checks, deadline)
    batches, report = loaded.batches, loaded.report
    stored = {key: batch for key, batch in batches.items() if batch.outcome not in ("rejected", "missing")}
    rejected = {key: batch for key, batch in sorted(batches.items()) if _fails(batch, is_requested=key in requested)}
    has_failed = bool(loaded.unresolved or rejected)
    observed = {*partitions_observed_last(context.instance, dg.AssetKey(declared.name + LOG_SUFFIX))}
    # Without partitions, only the events of a delivery that was rejected have its name, and one after it is stored.
    partitions = stored if is_partitioned else {key: stored[key] for key in stored.keys() & observed}
    logged: dict[str | None, BatchResult | None] = {key: partitions[key] for key in partitions.keys() & requested}
    if has_everything(requested):
        # The arrival sensor compares the files that it requests with what is recorded of them.
        logged |= {key: partitions[key] for key in config.files or () if key in partitions}
        logged |= not_materialized(context, declared, partitions)
    if has_failed and not logged:
        # The load may have changed the table by the declaration alone: facts follow the events of the table.
        logged = _event_without_delivery(partitions, has_changes=any(report.result.row_counts.values()))
    # Dagster records the partitions of a step that succeeds; this step records those of one that fails.
    yielded: dict[str | None, BatchResult | None] = {}
    if not has_partitions:
        yielded = {None: None}
        if is_partitioned:
            omit_input_versions(context)
    elif not has_failed:
        yielded = {key: stored.get(key) for key in requested}
    replanned = observed - requested if is_partitioned else set()
    for suffix in report.suffixes:
        yield from record_materializations(
            context,
            report,
            suffix,
            logged=logged,
            yielded=yielded,
            replanned=replanned,
            file_versions=loaded.file_versions,
        )
    record_rejected(context, report, rejected, planned=requested, file_versions=loaded.file_versions)
    checks.record_results(context, report.warehouse, report.result)
    if has_failed:
        checks.run_planned(context, report.warehouse)
        raise load_failure(declared.name, rejected, loaded.unresolved, others=len(stored))


def _event_without_delivery(
    stored: Mapping[str, BatchResult], *, has_changes: bool
) -> dict[str | None, BatchResult | None]:
    """Return the partition for the event of a load without a new delivery: the last stored one, or none."""
    if stored:
        return {max(stored): stored[max(stored)]}
    return {None: None} if has_changes else {}


def _fails(batch: BatchResult, *, is_requested: bool) -> bool:
    """Return whether a batch fails the run: a missing version of a table fails only a run that requested it."""
    return batch.outcome == "rejected" or (is_requested and batch.outcome == "missing")


def _load(
    context: dg.AssetExecutionContext,
    declared: DeclaredTable,
    requested: set[str],
    config: LoadConfig,
    warehouse: WarehouseResource,
    load: LoadTables,
    checks: LoadChecks,
    deadline: Deadline | None,
) -> _PartitionedLoad:
    """Load the deliveries of the requested partitions.

    A delivery that is in the change log and no longer available is unchanged.
    """
    start = time.monotonic()
    with as_dagster_failure():
        context.log.info(f"{declared.name}: opening the warehouse with {warehouse.spark_description}")
        opened = warehouse.open()
        context.log.info(f"{declared.name}: connected to Spark {opened.spark.version}")
        try:
            selection = _select(opened, declared, requested, config, context.run.run_id)
            _log_selection(context, declared.name, selection)
            # Computed before the files are read: one that is replaced meanwhile is not the one that was read.
            file_versions = selection.file_versions()
            loaded = load(opened, selection, context.run.run_id, context.log.info, deadline)
            report = replace(loaded, seconds=time.monotonic() - start)
        except ScdError:
            checks.run_planned(context, opened)
            raise
    context.log.info(load_summary(report.result))
    alert_after_deadline(context.op_execution_context, declared.name, deadline)
    for warning in report.result.warnings:
        context.log.warning(str(warning))
    batches = selection.by_partition(report.result.results)
    return _PartitionedLoad(report, batches, selection.unresolved, file_versions)


def _select(
    warehouse: Warehouse, declared: DeclaredTable, requested: set[str], config: LoadConfig, run_id: str
) -> DeliverySelection:
    if config.withdraw:
        return withdrawn_partitions(warehouse, declared, requested, by=config.by, reason=config.reason)
    dimension = as_dimension(declared)
    return resolve_partitions(warehouse, dimension, requested, allow=config.allow, files=config.files, run_id=run_id)


def _log_selection(context: dg.AssetExecutionContext, table: str, selection: DeliverySelection) -> None:
    count = f"{len(selection.deliveries)} of {selection.available} available deliveries"
    context.log.info(f"{table}: loading {count}")
    if selection.missing_files:
        names = first_names(selection.missing_files)
        context.log.warning(
            f"{table}: {pluralize(len(selection.missing_files), 'requested file')} not at the paths of the "
            f"sources: {names}; expected the run to see the folders that the sensor sees; the next run for arrivals "
            "loads them if they exist then"
        )
