"""Collect the state of a dimension for its checklist from the warehouse."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.change_types import LOGICAL_DELETE
from scd_pipeline.declaration.tables import AUDIT_SUFFIX
from scd_pipeline.delta.audit_table import RECORDED_AT
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.transitions import CHANGE_TYPE
from scd_pipeline.invariants.check_descriptions import NO_FOREIGN_COMMITS
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.checklist.pages import documentation_pages
from scd_pipeline.operations.checklist.state import CodeLocation, DimensionState, StoredTable


def collect_state(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    code_location: CodeLocation | str = "",
    facts: Sequence[str] = (),
    alert_transports: Sequence[str] = (),
    docs_url: str = "",
) -> DimensionState:
    """Return what is stored of a dimension, together with what its caller collected.

    Args:
        code_location: The Dagster definitions, or why they cannot be loaded.
        facts: The names of the facts that store surrogate keys of the dimension.
        alert_transports: The transports by which alerts are sent.
        docs_url: The URL or the folder of the documentation of this package.
    """
    stored = {name: _stored_table(warehouse.table(name)) for name in dimension.table_names}
    tables = {name: table for name, table in stored.items() if table is not None}
    results = check_table(warehouse, dimension, [NO_FOREIGN_COMMITS])
    return DimensionState(
        dimension,
        tables=tables,
        rows=warehouse.table(dimension.name).read().count() if dimension.name in tables else 0,
        foreign_commits=results[0] if results else None,
        last_delete=_last_delete(warehouse, dimension) if dimension.name + AUDIT_SUFFIX in tables else None,
        code_location=code_location,
        facts=tuple(facts),
        alert_transports=tuple(alert_transports),
        pages=documentation_pages(docs_url),
    )


def _last_delete(warehouse: Warehouse, dimension: Dimension) -> date | None:
    """Return the day on which the audit last recorded a delete; None if it has none, or lacks the columns for it."""
    audit = warehouse.table(dimension.name + AUDIT_SUFFIX).read()
    if not {CHANGE_TYPE, RECORDED_AT} <= set(audit.columns):
        return None
    deletes = audit.where(F.col(CHANGE_TYPE) == dimension.audit_label(LOGICAL_DELETE))
    ((day,),) = deletes.select(F.max(F.to_date(RECORDED_AT))).collect()
    return day if isinstance(day, date) else None


def _stored_table(table: Table) -> StoredTable | None:
    """Return a table; None if it does not exist."""
    columns = table.columns()
    if not columns:
        return None
    details = table.details()
    clustering = tuple(details["clusteringColumns"] or ()) or table.last_z_order()
    return StoredTable(columns, table.properties(), tuple(details["partitionColumns"]), clustering)
