"""The status of all sources and tables as an asset: the same as `scd status`.

No postponed annotations here: Dagster evaluates those of an asset's function.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from pydantic import Field

from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import DeclaredTable
from scd_pipeline.operations.status import SourceStatus, Status, TableStatus, status
from scd_pipeline.texts import first_names


class StatusConfig(dg.Config):
    """Run configuration of the status asset."""

    plan_pending: bool = Field(
        default=False,
        description="Whether a load of the pending deliveries is planned, to find those that it would reject. It takes "
        "about as long as the load.",
    )


def status_asset(declared: Sequence[DeclaredTable], *, name: str = "scd_status") -> dg.AssetsDefinition:
    """Return the asset whose metadata reports last and pending deliveries per source, and the lag per table."""

    @dg.asset(
        name=name,
        deps=[table.name for table in declared],
        group_name="status",
        kinds={"spark"},
        description=(
            "Status of all sources and tables, in the metadata of the latest materialization: last and pending "
            "deliveries, bad rows in quarantine, the lag of each table, and damaged tables; with `plan_pending` in the "
            "run configuration also the deliveries that a load would reject. The same as `scd status`; nothing is "
            "written to the warehouse."
        ),
    )
    def report_status(config: StatusConfig, warehouse: WarehouseResource) -> dg.MaterializeResult[Any]:
        now = datetime.fromtimestamp(time.time(), timezone.utc)
        with as_dagster_failure():
            report = status(warehouse.open(), declared, now=now, plan_pending=config.plan_pending)
        return dg.MaterializeResult(metadata=_metadata(report))

    return report_status


def _metadata(report: Status) -> dict[str, Any]:
    return {
        "pending_deliveries": sum(len(source.pending) for source in report.sources),
        **({} if report.rejected_count is None else {"rejected_deliveries": report.rejected_count}),
        "rows_quarantined": sum(source.quarantined for source in report.sources),
        "pending_commits": sum(table.lag + table.audit_lag for table in report.tables),
        "stale_facts": sum(bool(table.dimensions_ahead) for table in report.tables),
        "damaged_tables": sum(bool(table.damage) for table in report.tables),
        "sources": dg.MetadataValue.table([_source_record(source) for source in report.sources]),
        "tables": dg.MetadataValue.table([_table_record(table) for table in report.tables]),
    }


def _source_record(source: SourceStatus) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "table": source.table,
            "source": source.source,
            "last_delivery": source.last_delivery,
            "days_since": source.age.days if source.age is not None else None,
            "pending": first_names(source.pending),
            "rejected": None if source.rejected is None else first_names(source.rejected, separator="; "),
            "rows_quarantined": source.quarantined,
            "warnings": "; ".join(map(str, source.warnings)),
        }
    )


def _table_record(table: TableStatus) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "table": table.table,
            "commits": table.commits,
            "pending_log_commits": table.lag,
            "pending_audit_commits": table.audit_lag,
            "dimensions_ahead": ", ".join(table.dimensions_ahead),
            "damage": "; ".join(table.damage),
        }
    )
