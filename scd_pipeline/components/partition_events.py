"""Events by which Dagster shows the partition of each delivery: materialized, or failed with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from scd_pipeline.components import load_metadata
from scd_pipeline.components.check_results import alert_of_failed_checks, as_evaluation, check_result
from scd_pipeline.components.dagster_internals import plan_materialization, planned_checks, report_check
from scd_pipeline.components.overdue import OverdueLimits
from scd_pipeline.components.partitions import delivery_partitions, partitions_name
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.invariants.check_descriptions import SOURCES_ARE_ON_TIME
from scd_pipeline.load.run import LoadResult
from scd_pipeline.operations.check import check_names, check_table

Batches = Mapping["str | None", "BatchResult | None"]
"""Batches by partition. The partition is None for an asset without partitions, the batch for all deliveries."""


@dataclass(frozen=True)
class LoadReport:
    """The result of a load with the metadata of its assets, by the suffix of each table."""

    declared: Dimension | Fact
    warehouse: Warehouse
    """The warehouse that the load wrote to."""
    result: LoadResult
    sizes: load_metadata.TableMetadata
    """Rows and Delta version of each table; every partition that the load stored has them."""
    counts: load_metadata.TableMetadata
    """Counts of the whole load."""
    details: load_metadata.TableMetadata
    """Tables and plots of the whole load; only one event of each asset has them."""

    @property
    def table(self) -> str:
        """The name of the dimension or fact."""
        return self.declared.name

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the tables."""
        return tuple(self.counts)

    def metadata(
        self, suffix: str, batch: BatchResult | None, *, file_version: str | None, has_details: bool
    ) -> dict[str, Any]:
        """Return an asset's metadata for one partition; the batch is None for the partition of all deliveries."""
        effect = self.delivery_metadata(batch).get(suffix, {}) if batch is not None else {}
        if suffix == LOG_SUFFIX and file_version is not None:
            effect = {**effect, load_metadata.FILE: file_version}
        details = self.details.get(suffix, {}) if has_details else {}
        return {**effect, **self.sizes[suffix], **load_metadata.with_load_prefix({**self.counts[suffix], **details})}

    def delivery_metadata(self, batch: BatchResult) -> load_metadata.TableMetadata:
        """Return the effect of one delivery."""
        entities = "facts" if isinstance(self.declared, Fact) else "entities"
        return load_metadata.delivery_counts(batch, self.result.audit, entities=entities)


def record_materializations(
    context: dg.AssetExecutionContext,
    report: LoadReport,
    suffix: str,
    *,
    logged: Batches,
    yielded: Batches,
    file_versions: Mapping[str, str],
) -> Iterator[dg.MaterializeResult[Any]]:
    """Record the materializations of one asset, by partition.

    Args:
        suffix: The suffix of the asset's table.
        logged: Partitions that are recorded by an event.
        yielded: Partitions that Dagster records for a step that succeeds, if the asset was selected.
        file_versions: Time and size of each file that the load read, by partition.
    """
    asset, batches = dg.AssetKey(report.table + suffix), {**logged, **yielded}
    # The latest event is the one that the asset's page shows.
    latest = next((key for key in (EVERYTHING, None) if key in yielded), max(batches, key=str, default=None))
    metadata = {
        key: report.metadata(suffix, batch, file_version=file_versions.get(str(key)), has_details=key == latest)
        for key, batch in batches.items()
    }
    is_selected = asset in context.selected_asset_keys
    for key in sorted(metadata, key=str):
        if not (is_selected and key in yielded):
            context.log_event(dg.AssetMaterialization(asset, partition=key, metadata=metadata[key]))
    if is_selected and yielded:
        for key in yielded:
            if key is not None:
                context.add_asset_metadata(metadata[key], asset, key)
        yield dg.MaterializeResult(asset_key=asset, metadata=metadata.get(None))


def not_materialized(
    context: dg.AssetExecutionContext, table: str, stored: Mapping[str, BatchResult]
) -> dict[str | None, BatchResult | None]:
    """Return the stored deliveries whose partitions Dagster does not show as materialized in their latest revision.

    Another program may have loaded a delivery, or a run may have been killed before it could record the partition.
    """
    context.instance.add_dynamic_partitions(partitions_name(table), sorted(stored))
    statuses = context.instance.get_status_by_partition(dg.AssetKey(table), list(stored), delivery_partitions(table))
    materialized = {key for key, status in (statuses or {}).items() if status and status.name == "MATERIALIZED"}
    return {key: batch for key, batch in stored.items() if batch.outcome == "accepted" or key not in materialized}


def record_rejected(
    context: dg.AssetExecutionContext,
    report: LoadReport,
    rejected: Mapping[str, BatchResult],
    *,
    planned: Collection[str],
    file_versions: Mapping[str, str],
) -> None:
    """Let Dagster show the partitions of rejected deliveries as failed, each with the reason.

    Args:
        context: The context of the step, which is going to fail.
        rejected: The rejected deliveries by partition.
        planned: The partitions for which the run was launched. A run of all deliveries has planned none of theirs.
        file_versions: Time and size of each file that the load read, by partition.
    """
    context.instance.add_dynamic_partitions(partitions_name(report.table), sorted(rejected))
    for key, batch in sorted(rejected.items()):
        reason = {"outcome": batch.outcome, "code": batch.code, "problem": batch.problem, "fix": batch.fix}
        if key in file_versions:
            reason[load_metadata.FILE] = file_versions[key]
        for suffix in report.suffixes:
            asset = dg.AssetKey(report.table + suffix)
            if key not in planned or asset not in context.selected_asset_keys:
                plan_materialization(context, asset, key)
            context.log_event(dg.AssetObservation(asset, partition=key, metadata=reason))


def run_planned_checks(
    context: dg.AssetExecutionContext, declared: Dimension | Fact, limits: OverdueLimits | None, warehouse: Warehouse
) -> None:
    """Run the checks that the run has planned: Dagster skips their own steps if this step fails.

    Dagster would show the skipped checks as failed, though the stored table may violate no invariant. The checklist,
    which does not check the stored table, is skipped, and so are checks of the project's own.

    Args:
        context: The context of the step, which is going to fail.
        limits: When its sources are overdue, if they are checked.
    """
    try:
        for result in _planned_results(context, declared, limits, warehouse):
            report_check(context, as_evaluation(result))
    except Exception as error:  # the step fails anyway, for a reason that must not be replaced
        context.log.warning(f"{declared.name}: the checks did not run: {error}")


def _planned_results(
    context: dg.AssetExecutionContext, declared: Dimension | Fact, limits: OverdueLimits | None, warehouse: Warehouse
) -> Iterator[dg.AssetCheckResult]:
    planned = planned_checks(context, dg.AssetKey(declared.name))
    names = [name for name in planned if name in check_names(declared)]
    if names:
        results = {result.check: result for result in check_table(warehouse, declared, names)}
        alert_of_failed_checks(context.op_execution_context, declared.name, results.values())
        yield from (check_result(declared.name, name, results.get(name)) for name in names)
    log = dg.AssetKey(declared.name + LOG_SUFFIX)
    if limits is not None and SOURCES_ARE_ON_TIME in planned_checks(context, log):
        yield limits.evaluate_and_alert(context.op_execution_context, warehouse)
