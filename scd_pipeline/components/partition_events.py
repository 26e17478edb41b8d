"""Events by which Dagster shows the partition of each delivery: materialized, or failed with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from scd_pipeline.components import load_metadata
from scd_pipeline.components.dagster_internals import plan_materialization, recorded_partitions
from scd_pipeline.components.failures import fix_in_dagster
from scd_pipeline.components.partitions import add_partitions, delivery_partitions
from scd_pipeline.declaration import DeclaredTable, Fact
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import LoadResult

Batches = Mapping["str | None", "BatchResult | None"]
"""Batches by partition. The partition is None for an asset without partitions, the batch for all deliveries."""


@dataclass(frozen=True)
class LoadReport:
    """The result of a load with the metadata of its assets, by the suffix of each table."""

    declared: DeclaredTable
    warehouse: Warehouse
    """The warehouse that the load wrote to."""
    result: LoadResult
    sizes: load_metadata.TableMetadata
    """Rows and Delta version of each table; every partition that the load stored has them."""
    counts: load_metadata.TableMetadata
    """Counts of the whole load."""
    details: load_metadata.TableMetadata
    """Tables and plots of the whole load; only one event of each asset has them."""
    seconds: float = 0.0
    """The duration of the step so far, with the start of Spark and the metadata."""

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
        load = {**self.counts[suffix], "seconds": round(self.seconds, 1), **details}
        return {**effect, **self.sizes[suffix], **load_metadata.with_load_prefix(load)}

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
    replanned: Collection[str],
    file_versions: Mapping[str, str],
) -> Iterator[dg.MaterializeResult[Any]]:
    """Record the materializations of one asset, by partition.

    Args:
        suffix: The suffix of the asset's table.
        logged: Partitions that are recorded by an event.
        yielded: Partitions that Dagster records for a step that succeeds, if the asset was selected.
        replanned: Partitions that an earlier run was planned for and rejected. Their pages show the failure of the
            last run that was planned for them.
        file_versions: Time and size of each file that the load read, by partition.
    """
    asset, batches = dg.AssetKey(report.table + suffix), {**logged, **yielded}
    by_dagster = _in_recorded_order(context, asset, yielded) if asset in context.selected_asset_keys else []
    in_order = [*sorted(batches.keys() - by_dagster, key=str), *by_dagster]
    # The latest event is the one that the asset's page shows.
    metadata = {
        key: report.metadata(
            suffix, batches[key], file_version=file_versions.get(str(key)), has_details=key == in_order[-1]
        )
        for key in in_order
    }
    for key in in_order:
        if key not in by_dagster:
            if key in replanned:
                plan_materialization(context, asset, str(key))
            context.log_event(dg.AssetMaterialization(asset, partition=key, metadata=metadata[key]))
        elif key is not None:
            context.add_asset_metadata(metadata[key], asset, key)
    if by_dagster:
        yield dg.MaterializeResult(asset_key=asset, metadata=metadata.get(None))


def _in_recorded_order(context: dg.AssetExecutionContext, asset: dg.AssetKey, yielded: Batches) -> list[str | None]:
    """Return partitions in the order in which Dagster records them, which need not be that of the run."""
    return [*recorded_partitions(context, asset)] if len(yielded) > 1 else [*yielded]


def not_materialized(
    context: dg.AssetExecutionContext, table: DeclaredTable, stored: Mapping[str, BatchResult]
) -> dict[str | None, BatchResult | None]:
    """Return the stored deliveries whose partitions Dagster does not show as materialized in their latest revision.

    Another program may have loaded a delivery, or a run may have been killed before it could record the partition. Of a
    table without partitions these are all of them.
    """
    partitions = delivery_partitions(table)
    if partitions is None:
        return dict(stored.items())
    add_partitions(context.instance, table, stored)
    statuses = context.instance.get_status_by_partition(dg.AssetKey(table.name), list(stored), partitions)
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

    The observation of a delivery without a partition has its name all the same.

    Args:
        context: The context of the step, which is going to fail.
        rejected: The rejected deliveries by partition.
        planned: The partitions for which the run was launched. A run of all deliveries has planned none of theirs.
        file_versions: Time and size of each file that the load read, by partition.
    """
    add_partitions(context.instance, report.declared, rejected)
    has_partitions = delivery_partitions(report.declared) is not None
    for key, batch in sorted(rejected.items()):
        fix = fix_in_dagster(batch, report.table)
        reason = {"outcome": batch.outcome, "code": batch.code, "problem": batch.problem, "fix": fix}
        if key in file_versions:
            reason[load_metadata.FILE] = file_versions[key]
        for suffix in report.suffixes:
            asset = dg.AssetKey(report.table + suffix)
            if has_partitions and (key not in planned or asset not in context.selected_asset_keys):
                plan_materialization(context, asset, key)
            context.log_event(dg.AssetObservation(asset, partition=key, metadata=reason))
