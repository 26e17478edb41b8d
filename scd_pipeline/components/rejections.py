"""Rejected deliveries, and the result of the asset check that there are none.

A rejected delivery is not in the change log. What is known of it are the events of its partition, which the run that
rejected it has recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from scd_pipeline.components.dagster_internals import partitions_observed_last
from scd_pipeline.components.delivery_selection import others
from scd_pipeline.declaration import DeclaredTable, Dimension
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.accept import pending_deliveries
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import select_deliveries
from scd_pipeline.deliveries.partitions import matching_partition_keys
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.invariants.check_descriptions import DELIVERIES_ACCEPTED
from scd_pipeline.load.log import read_log
from scd_pipeline.texts import first_names

_MAX_REJECTIONS = 20
"""The number of rejected deliveries that a result lists."""
REASON_NAMES = ("code", "problem", "fix")
"""Metadata keys of the reason of a rejection."""


def deliveries_result(
    instance: dg.DagsterInstance, warehouse: Warehouse, declared: DeclaredTable
) -> dg.AssetCheckResult:
    """Return the result of the check that no available delivery is rejected.

    A delivery is rejected until a load accepts it, or it is no longer at the path of its source. The warehouse is read
    only if a run has recorded a rejection.
    """
    rejections = _recorded_rejections(instance, declared.name)
    if rejections:
        dimension = as_dimension(declared)
        waiting = waiting_deliveries(warehouse, dimension)
        rejections = [each for each in rejections if matching_partition_keys(str(each["delivery"]), waiting, dimension)]
    records = [dg.TableRecord(each) for each in rejections[:_MAX_REJECTIONS]]
    reasons = ["{delivery}: rejected [{code}]: {problem}; {fix}".format_map(each) for each in rejections]
    return dg.AssetCheckResult(
        asset_key=declared.name,
        check_name=DELIVERIES_ACCEPTED,
        passed=not rejections,
        description=first_names(reasons, separator="\n") or None,
        metadata={
            "rejected_deliveries": len(rejections),
            **({"rejections": dg.MetadataValue.table(records)} if records else {}),
        },
    )


def waiting_deliveries(warehouse: Warehouse, dimension: Dimension) -> Sequence[Delivery]:
    """Return the available deliveries that are not loaded."""
    stored = read_log(warehouse, dimension).batches()
    available = select_deliveries(dimension, warehouse.spark, others=others(warehouse))
    return pending_deliveries(dimension, available, stored)


def _recorded_rejections(instance: dg.DagsterInstance, table: str) -> list[dict[str, str]]:
    """Return partition and reason of the rejections that no load of the same partition has followed."""
    log, rejections = dg.AssetKey(table + LOG_SUFFIX), []
    for partition in partitions_observed_last(instance, log):
        records = dg.AssetRecordsFilter(asset_key=log, asset_partitions=[partition])
        for record in instance.fetch_observations(records, limit=1).records:
            observation = record.asset_observation
            metadata = observation.metadata if observation is not None else {}
            if "outcome" in metadata and metadata["outcome"].value == "rejected":
                reason = {name: str(metadata[name].value) for name in REASON_NAMES}
                rejections.append({"delivery": partition, **reason})
    return rejections
