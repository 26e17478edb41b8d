"""The assets of a dimension and of a fact."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg

from scd_pipeline.components import definition_metadata, load_metadata, plots
from scd_pipeline.components.delivery_selection import DeliverySelection
from scd_pipeline.components.load_checks import LoadChecks
from scd_pipeline.components.load_step import load_step
from scd_pipeline.components.overdue import OverdueLimits
from scd_pipeline.components.partition_events import LoadReport
from scd_pipeline.declaration import DeclaredTable, Dimension, Fact, LandingTable, Source
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.deadline import Deadline
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import load as load_table
from scd_pipeline.load.session_settings import running_queries
from scd_pipeline.queries import create_views

_EXAMPLES = 8
"""Number of changed rows that the metadata of a materialization contains."""


def table_assets(
    table: DeclaredTable,
    *,
    facts: Sequence[Fact] = (),
    freshness: dg.FreshnessPolicy | None = None,
    limits: OverdueLimits | None = None,
    retry: Retry | None = None,
    docs_url: str = "",
    clock: Callable[[], float] = time.time,
) -> dg.AssetsDefinition:
    """Return the change log, table and audit of a dimension, or the change log and table of a fact.

    One step materializes them with the resource `warehouse`. A run of any partition of a fact re-keys the whole fact.

    Args:
        facts: The facts that reference the dimension. If there are any, its own step writes its reserved member, within
            the pool of its tables (S23). In a catalog it replaces their views.
        freshness: The freshness policy of change log and table.
        limits: When its sources are overdue, if there is a check of this (`overdue_check`).
        retry: How a load is retried after write conflicts; by default five attempts.
        docs_url: Address of the folder `docs` of this package, to which the results of checks link.
        clock: Returns the current time, in seconds since 1970, for the deadline of a run.
    """
    row_dimension, retry = as_dimension(table), retry or Retry()
    is_fact = isinstance(table, Fact)

    def load(
        warehouse: Warehouse,
        selection: DeliverySelection,
        run_id: str,
        log: Callable[[str], None],
        deadline: Deadline | None,
    ) -> LoadReport:
        if row_dimension.has_windows:
            plots.import_library()
        result = load_table(
            warehouse,
            table,
            list(selection.deliveries.values()),
            run_id=run_id,
            retry=retry,
            progress=log,
            examples=_EXAMPLES,
            warnings=selection.warnings,
            has_facts=bool(facts) and not is_fact,
            deadline=deadline,
        )
        audit, loaded = result.audit, result.dimension or row_dimension
        create_views(warehouse, [table.name], [table] if isinstance(table, Fact) else facts, on_failure=log)
        versions = {LOG_SUFFIX: result.log_version, "": result.table_version}
        counts = {
            LOG_SUFFIX: load_metadata.log_counts(result, entities="facts" if is_fact else "entities"),
            "": load_metadata.table_counts(result, audit),
        }
        if audit is not None:
            versions[AUDIT_SUFFIX] = audit.table_version
            counts[AUDIT_SUFFIX] = load_metadata.audit_counts(audit)
        with running_queries(warehouse.spark, result.record_limit), ThreadPoolExecutor() as pool:
            sizes = pool.submit(load_metadata.sizes, warehouse, table.name, versions)  # while the plots are drawn
            details = {
                **load_metadata.warnings(result),
                **load_metadata.attributes(result),
                **load_metadata.examples(result, loaded, audit),
                **load_metadata.entity_history(warehouse, loaded, result),
            }
        table_sizes = sizes.result()
        return LoadReport(
            table,
            warehouse,
            result,
            sizes={**table_sizes, "": {**table_sizes[""], **load_metadata.columns(result)}},
            counts=counts,
            details={LOG_SUFFIX: load_metadata.last_deliveries(result), "": details},
        )

    checks = LoadChecks(table, limits, docs_url)
    specs = _specs(table, row_dimension, freshness)
    return load_step(table, specs, load, checks=checks, attempts=retry.attempts, clock=clock)


_GROUPS: dict[type, str] = {Dimension: "dimensions", Fact: "facts", LandingTable: "landing_tables"}
"""The groups of the assets of tables whose declarations have none."""


def _specs(table: DeclaredTable, row_dimension: Dimension, freshness: dg.FreshnessPolicy | None) -> list[dg.AssetSpec]:
    shared: dict[str, Any] = {
        "group_name": table.group or _GROUPS[type(table)],
        "kinds": {"spark", "deltalake"},
        "owners": definition_metadata.owners(row_dimension),
    }
    name, log = table.name, table.name + LOG_SUFFIX
    upstream = _upstream(row_dimension)
    deps = [dg.AssetDep(log), *upstream]
    if isinstance(table, Fact):
        # A fact has other deliveries than its dimensions: each of its partitions may need any of theirs.
        mapping = dg.AllPartitionMapping()
        deps += [dg.AssetDep(dimension.name, partition_mapping=mapping) for dimension in table.dimensions]
        description, metadata = definition_metadata.fact_description(table), definition_metadata.fact_table(table)
    else:
        description = definition_metadata.table_description(row_dimension)
        metadata = definition_metadata.dimension_table(row_dimension)
    specs = [
        dg.AssetSpec(
            log,
            deps=upstream,
            description=definition_metadata.log_description(row_dimension),
            metadata=definition_metadata.log_table(row_dimension),
            freshness_policy=freshness,
            **shared,
        ),
        dg.AssetSpec(name, deps=deps, description=description, metadata=metadata, freshness_policy=freshness, **shared),
    ]
    if row_dimension.has_audit:
        audit: dict[str, Any] = {
            "description": definition_metadata.audit_description(row_dimension),
            "metadata": definition_metadata.audit_table(row_dimension),
        }
        specs.append(dg.AssetSpec(name + AUDIT_SUFFIX, deps=[dg.AssetDep(name), *upstream], **audit, **shared))
    return specs


def _upstream(dimension: Dimension) -> list[dg.AssetDep]:
    """Return the assets that write what the sources read: in a run with them, the load is the step after theirs.

    Each asset of the step depends on them, as any of its assets may be selected alone. Their partitions are not those
    of deliveries: each delivery may need any of them. A landing table is one of them, and so is a timed table, although
    its history is computed from its base and its log: a run of its asset may append a statement to the log.
    """
    keys = dict.fromkeys(key for source in dimension.sources for key in _upstream_keys(source))
    return [dg.AssetDep(key, partition_mapping=dg.AllPartitionMapping()) for key in keys]


def _upstream_keys(source: Source) -> list[dg.AssetKey]:
    keys = [dg.AssetKey.from_user_string(key) for key in source.upstream]
    return [*keys, *(dg.AssetKey(table.name) for table in source.stored_tables.values())]
