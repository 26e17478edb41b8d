"""Where everything stands, as an asset: the same as `scd status`.

No postponed annotations here: Dagster reads those of an asset's function as they stand.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from scd_pipeline.components.resources import WarehouseResource, told_as_failure
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.operations.status import SourceStatus, Status, TableStatus, status


def status_asset(
    dimensions: Sequence[Dimension], facts: Sequence[Fact], *, name: str = "scd_status"
) -> dg.AssetsDefinition:
    """The asset that tells per source its last delivery and what waits, per table how far it is behind."""
    names = [*(dimension.name for dimension in dimensions), *(fact.name for fact in facts)]

    @dg.asset(
        name=name,
        deps=names,
        group_name="status",
        kinds={"spark"},
        description="Last deliveries, lateness, what waits or was stopped, quarantine, and the lag of every table.",
    )
    def scd_status(warehouse: WarehouseResource) -> dg.MaterializeResult[Any]:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with told_as_failure():
            found = status(warehouse.open(), dimensions, facts, now=now)
        return dg.MaterializeResult(metadata=_metadata(found))

    return scd_status


def _metadata(found: Status) -> dict[str, Any]:
    return {
        "waiting": sum(len(source.waiting) for source in found.sources),
        "rejected": sum(len(source.rejected) for source in found.sources),
        "quarantined": sum(source.quarantined for source in found.sources),
        "behind": sum(table.lag + table.audit_lag + len(table.dimensions_behind) for table in found.tables),
        "damaged": sum(bool(table.damage) for table in found.tables),
        "sources": dg.MetadataValue.table([_source(source) for source in found.sources]),
        "tables": dg.MetadataValue.table([_table(table) for table in found.tables]),
    }


def _source(source: SourceStatus) -> dg.TableRecord:
    waiting = ", ".join(source.waiting[:5]) + (" ..." if len(source.waiting) > 5 else "")
    return dg.TableRecord(
        {
            "table": source.table,
            "source": source.source,
            "last_delivery": source.last_delivery,
            "days_ago": source.age.days if source.age else -1,
            "waiting": waiting,
            "rejected": "; ".join(source.rejected[:5]),
            "quarantined": source.quarantined,
        }
    )


def _table(table: TableStatus) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "table": table.table,
            "commits": table.commits,
            "log_commits_behind": table.lag,
            "audit_behind": table.audit_lag,
            "dimensions_behind": ", ".join(table.dimensions_behind),
            "damage": "; ".join(table.damage),
        }
    )
