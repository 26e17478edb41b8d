"""Performance: how the files of the tables are arranged and maintained."""

from __future__ import annotations

from collections.abc import Mapping

from scd_pipeline.declaration.table_properties import FILE_RETENTION, MIN_HOURS, V_ORDER, hours_interval, interval_hours
from scd_pipeline.operations.checklist.items import (
    Item,
    Result,
    code_location_missing,
    failed,
    not_applicable,
    passed,
    table_missing,
)
from scd_pipeline.operations.checklist.state import DimensionState
from scd_pipeline.operations.dagster_names import load_op_name, maintenance_job_name, maintenance_op_name
from scd_pipeline.operations.z_order import LARGE_TABLE_ROWS, z_order_columns
from scd_pipeline.texts import join_names

_MAX_WEEKLY_GAP_HOURS = 7 * 24 + 1
"""A week and an hour, because clocks may change in it."""


def _clustering(state: DimensionState) -> Result:
    table, name = state.table(), state.dimension.name
    if table is None:
        return table_missing(state)
    columns = z_order_columns(state.dimension, state.rows)
    if not columns:
        location = state.field(f"z_order: {state.dimension.z_order}")
        return passed(f"{location}; table {name}: {state.rows:,} rows need no clustering")
    stored = table.clustered_by
    if set(map(str.casefold, columns)) <= set(map(str.casefold, stored)):
        return passed(f"table {name}: {state.rows:,} rows, clustered by {join_names(stored)}")
    problem, fix = f"not clustered by {join_names(columns)}", f"run the job {maintenance_job_name(name)}"
    if stored:
        problem = f"clustered by {join_names(stored)}, {problem}"
        fix = f"{fix}, or alter the table if its columns are those of CLUSTER BY"
    return failed(f"table {name}: {state.rows:,} rows, {problem}; {fix}")


def _optimize(state: DimensionState) -> Result:
    if state.code_location is None:
        return code_location_missing(state)
    op = maintenance_op_name(state.dimension.name)
    schedules = state.schedules_of_op(op)
    weekly = [schedule for schedule in schedules if schedule.gap_hours <= _MAX_WEEKLY_GAP_HOURS]
    if weekly:
        return passed(str(weekly[0]))
    others = f"only {join_names(map(str, schedules))}" if schedules else "no schedule"
    return failed(f"{state.code_location.name}: {others} for op {op}; schedule its job weekly (`maintenance_cron`)")


def _vacuum(state: DimensionState) -> Result:
    location, op = state.code_location, maintenance_op_name(state.dimension.name)
    if location is None:
        return code_location_missing(state)
    short = [name for name, table in state.tables.items() if interval_hours(_retention(table.properties)) < MIN_HOURS]
    if short:
        return failed(
            f"table property {FILE_RETENTION} of {join_names(short)} is less than {MIN_HOURS} hours; raise it"
        )
    schedules = state.schedules_of_op(op)
    if not schedules:
        return failed(f"{location.name}: no schedule for op {op}; schedule its job")
    load = load_op_name(state.dimension.name)
    pool, load_pool = location.pools.get(op), location.pools.get(load)
    if pool is None or pool != load_pool:
        return failed(
            f"op {op} is in {_pool_text(pool)} and op {load} in {_pool_text(load_pool)}; expected one pool for both; "
            "set `pool` on both ops"
        )
    retentions = {_retention(table.properties) for table in state.tables.values()} or {_retention({})}
    retained = f"{FILE_RETENTION}: {join_names(sorted(retentions))}"
    return passed(f"{join_names(map(str, schedules))}; pool {pool} of loads and maintenance; {retained}")


def _partitions(state: DimensionState) -> Result:
    table, name = state.table(), state.dimension.name
    if table is None:
        return table_missing(state)
    columns = table.partition_columns
    if not columns:
        return passed(f"table {name}: not partitioned")
    if state.rows < LARGE_TABLE_ROWS:
        return failed(
            f"table {name}: {state.rows:,} rows, partitioned by {join_names(columns)}, so its files are small; load "
            "the dimension into a new table"
        )
    return passed(f"table {name}: {state.rows:,} rows, partitioned by {join_names(columns)}")


def _v_order(state: DimensionState) -> Result:
    table, declared = state.table(), state.dimension.table_properties.get(V_ORDER)
    location = state.field(f"table_properties.{V_ORDER}")
    if declared is None:
        return not_applicable(f"{location} is not declared; only Microsoft Fabric has V-Order")
    if table is None:
        return table_missing(state)
    stored = table.properties.get(V_ORDER)
    if stored != declared:
        return failed(
            f"{location}: {declared}; the table property is {stored or 'missing'}; load a delivery, which sets it"
        )
    return passed(f"table property {V_ORDER}: {stored}; only Microsoft Fabric uses it")


def _pool_text(pool: str | None) -> str:
    return f"pool {pool}" if pool is not None else "no pool"


def _retention(properties: Mapping[str, str]) -> str:
    return properties.get(FILE_RETENTION, hours_interval(MIN_HOURS))


ITEMS = (
    Item("rows_are_clustered", "Queries on the business key can skip files of a large table", _clustering),
    Item("optimize_is_scheduled", "A weekly OPTIMIZE is scheduled", _optimize),
    Item("vacuum_is_scheduled", "VACUUM is scheduled in the pool of the loads, and retains files for a week", _vacuum),
    Item("partitions_fit", "The table is not split into small partitions", _partitions),
    Item("v_order_is_set", "V-Order is set where it is declared", _v_order),
)
