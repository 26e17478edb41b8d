"""The assets of a dimension and of a fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from scd_pipeline.components import definition_metadata, load_metadata, plots
from scd_pipeline.components.delivery_selection import DeliverySelection
from scd_pipeline.components.load_step import load_step
from scd_pipeline.components.overdue import OverdueLimits
from scd_pipeline.components.partition_events import LoadReport
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import load as load_table
from scd_pipeline.queries import create_views

_EXAMPLES = 8
"""Number of changed rows that the metadata of a materialization contains."""


def dimension_assets(
    dimension: Dimension,
    *,
    facts: Sequence[Fact] = (),
    freshness: dg.FreshnessPolicy | None = None,
    limits: OverdueLimits | None = None,
    retry: Retry | None = None,
) -> dg.AssetsDefinition:
    """Return the change log, table and audit of a dimension, materialized by one step with the resource `warehouse`.

    Args:
        dimension: The declaration.
        facts: The facts that reference the dimension. If there are any, its own step writes its reserved member, within
            the pool of its tables (S23). In a catalog it replaces their views.
        freshness: The freshness policy of change log and table.
        limits: When its sources are overdue, if there is a check of this (`overdue_check`).
        retry: How a load is retried after write conflicts; by default five attempts.
    """
    specs = [
        _log_spec(dimension, freshness),
        dg.AssetSpec(
            dimension.name,
            deps=[dimension.name + LOG_SUFFIX],
            description=definition_metadata.table_description(dimension),
            metadata=definition_metadata.dimension_table(dimension),
            freshness_policy=freshness,
            **_shared_attributes(dimension),
        ),
        dg.AssetSpec(
            dimension.name + AUDIT_SUFFIX,
            deps=[dimension.name],
            description=definition_metadata.audit_description(dimension),
            metadata=definition_metadata.audit_table(dimension),
            **_shared_attributes(dimension),
        ),
    ]

    return _assets(dimension, dimension, specs, facts, limits, retry)


def fact_assets(
    fact: Fact,
    *,
    freshness: dg.FreshnessPolicy | None = None,
    limits: OverdueLimits | None = None,
    retry: Retry | None = None,
) -> dg.AssetsDefinition:
    """Return the change log and table of a fact; a run of any partition re-keys the whole fact.

    Args:
        fact: The declaration.
        freshness: The freshness policy of both assets.
        limits: When its source is overdue, if there is a check of this (`overdue_check`).
        retry: How a load is retried after write conflicts; by default five attempts.
    """
    row_dimension = fact.as_dimension()
    # The deliveries of a fact are not those of its dimensions: each of its partitions may need any of theirs.
    mapping = dg.AllPartitionMapping()
    dimensions = [dg.AssetDep(dimension.name, partition_mapping=mapping) for dimension in fact.dimensions]
    specs = [
        _log_spec(row_dimension, freshness),
        dg.AssetSpec(
            fact.name,
            deps=[dg.AssetDep(fact.name + LOG_SUFFIX), *dimensions],
            description=definition_metadata.fact_description(fact),
            metadata=definition_metadata.fact_table(fact),
            freshness_policy=freshness,
            **_shared_attributes(row_dimension),
        ),
    ]

    return _assets(fact, row_dimension, specs, [fact], limits, retry)


def _assets(
    declared: Dimension | Fact,
    row_dimension: Dimension,
    specs: Sequence[dg.AssetSpec],
    facts: Sequence[Fact],
    limits: OverdueLimits | None,
    retry: Retry | None,
) -> dg.AssetsDefinition:
    """Return the assets of a dimension, or of a fact whose rows have the shape of `row_dimension`."""
    retry = retry or Retry()
    is_fact = isinstance(declared, Fact)

    def load(warehouse: Warehouse, selection: DeliverySelection, run_id: str, log: Callable[[str], None]) -> LoadReport:
        if row_dimension.has_windows:
            plots.import_library()
        result = load_table(
            warehouse,
            declared,
            list(selection.deliveries.values()),
            run_id=run_id,
            retry=retry,
            progress=log,
            examples=_EXAMPLES,
            warnings=selection.warnings,
            has_facts=bool(facts) and not is_fact,
        )
        audit = result.audit
        create_views(warehouse, [declared.name], facts, on_failure=log)
        versions = {LOG_SUFFIX: result.log_version, "": result.table_version}
        counts = {
            LOG_SUFFIX: load_metadata.log_counts(result, entities="facts" if is_fact else "entities"),
            "": load_metadata.table_counts(result, audit),
        }
        if audit is not None:
            versions[AUDIT_SUFFIX] = audit.table_version
            counts[AUDIT_SUFFIX] = load_metadata.audit_counts(audit, result.seconds)
        details = {**load_metadata.warnings(result), **load_metadata.examples(result, row_dimension, audit)}
        return LoadReport(
            declared,
            warehouse,
            result,
            sizes=_sizes(warehouse, declared.name, versions),
            counts=counts,
            details={
                LOG_SUFFIX: load_metadata.last_deliveries(result),
                "": {**details, **load_metadata.entity_history(warehouse, row_dimension, result)},
            },
        )

    return load_step(declared, row_dimension, specs, load, limits=limits, attempts=retry.attempts)


def _sizes(warehouse: Warehouse, table: str, versions: Mapping[str, int]) -> load_metadata.TableMetadata:
    """Return rows and Delta version of the tables of a dimension or a fact, by suffix."""
    sizes = load_metadata.sizes(warehouse, {table + suffix: version for suffix, version in versions.items()})
    return {suffix: dict(sizes[table + suffix]) for suffix in versions}


def _log_spec(dimension: Dimension, freshness: dg.FreshnessPolicy | None) -> dg.AssetSpec:
    return dg.AssetSpec(
        dimension.name + LOG_SUFFIX,
        description=definition_metadata.log_description(dimension),
        metadata=definition_metadata.log_table(dimension),
        freshness_policy=freshness,
        **_shared_attributes(dimension),
    )


def _shared_attributes(dimension: Dimension) -> dict[str, Any]:
    """Return the attributes that all assets of a declaration share."""
    return {
        "group_name": dimension.group or "dimensions",
        "kinds": {"spark", "deltalake"},
        "owners": definition_metadata.owners(dimension),
    }
