"""Repair a table of validity windows that this package did not create: no change log decides which rows it should have.

An entity of such a table can have several current versions, or windows that overlap. The version with the latest
start keeps its end, and each other one ends at the start of the next one at the latest. Of several versions with one
start, the last updated one remains.

Example: two writers have left two current versions.

    city   effective_from  effective_to  current_flag     effective_to  current_flag
    Bonn   1 Jan           open end      true             1 Feb         false
    Kiel   1 Feb           open end      true             open end      true
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO, LAST_UPDATED, VERSION
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.audit_table import repair_rows
from scd_pipeline.delta.schema import FORMAT, declared_columns
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.upstream import damage, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.expressions import all_of, any_of, col
from scd_pipeline.frames import checkpoint
from scd_pipeline.history.actions import ACTION, CLOSE, OPEN, OVERWRITE, REMOVE
from scd_pipeline.history.schema import open_end
from scd_pipeline.operations.repair import RepairResult, append_repair_rows, plan_repair

_NEXT_START, _NUMBER, _COUNT = "_next_start", "_number", "_count"
_IS_CHANGED, _IS_REMOVED, _OLD, _NEW = "_is_changed", "_is_removed", "_old", "_new"


def repair_without_log(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    now: datetime,
    actor: str,
    reason: str = "repair",
    run_id: str = "",
    dry_run: bool = False,
) -> RepairResult:
    """Remove overlaps: end a version that would overlap the next one where that one starts, in one commit.

    The audit `<dimension>_audit`, which is created if it does not exist, gets a REPAIRED row with the old and the new
    values of each row that is changed or removed. Only the end, the flag and the number of a version change, also if
    the table has columns that are not declared. No other program may write the table meanwhile.

    Args:
        dimension: The declaration, with the names of the table's columns.
        now, actor, reason, run_id, dry_run: As for `repair.repair`; only the audit has a pipeline commit.

    Raises:
        ConflictError: Another program wrote the table during the repair. If this is detected only after the audit was
            written, the audit has the rows of this attempt too.
        SetupError: The table does not exist or has no validity windows, or its flag or open end is not as declared.
        HighWaterMarkError: This package created the table, and its change log was lost.
        UsageError: The table has a change log.
    """
    table = warehouse.table(dimension.name)
    _require_foreign_table(warehouse, table)
    version = table.newest_version()
    stored = table.read(version)
    _require_windows(stored, dimension, now)
    entities = checkpoint(_entities_to_repair(stored, dimension))
    pairs = _changed_pairs(entities, dimension)
    result = plan_repair(dimension, pairs, _action(dimension))
    if dry_run or not result.has_differences:
        return result
    table.require_unchanged(version)
    audit = repair_rows(pairs, dimension, actor=actor, reason=reason, at=now, version=version)
    append_repair_rows(warehouse, dimension, audit, run_id)
    removes = f"s.{ACTION} = '{REMOVE}'"
    metadata = json.dumps({"repair": dimension.name, "id": uuid.uuid4().hex, "actor": actor, "reason": reason})
    rows = _rows_to_write(entities, dimension)
    done = table.rewrite_foreign(rows, version, keys=dimension.key_names, removes=removes, metadata=metadata)
    return replace(result, table_version=done)


def _require_foreign_table(warehouse: Warehouse, table: Table) -> None:
    log = warehouse.table(table.name + LOG_SUFFIX)
    if log.exists():
        raise UsageError("LOG_EXISTS", f"table {table.name}", log=log.name)
    if table.exists() and FORMAT not in table.properties():
        return
    raise_first(damage(log.last_commit_or_zero(), [replace(table.last_commit_or_zero(), foreign=None)]))
    missing = log.name if table.exists() else table.name
    raise SetupError("TABLE_NOT_LOADED", table.name, table=missing, warehouse=warehouse.location)


def _require_windows(rows: DataFrame, dimension: Dimension, now: datetime) -> None:
    layout = dimension.column_layout
    window = [layout.required_name(column) for column in (EFFECTIVE_FROM, EFFECTIVE_TO)]
    required = [*dimension.key_names, dimension.surrogate_key, *window]
    missing, location = [name for name in required if name not in rows.columns], f"table {dimension.name}"
    if missing or not dimension.has_windows:
        raise SetupError("WINDOW_COLUMNS_MISSING", location, columns=", ".join(missing or window))
    for flag in _existing(rows, dimension, CURRENT_FLAG):
        _require_flag(rows, dimension, flag, now, location)


def _require_flag(rows: DataFrame, dimension: Dimension, flag: str, now: datetime, location: str) -> None:
    """Check that the flag of current versions is one that the end of a version can decide.

    A current version that ends after `now`, but not at the declared open end, has another open end; so has a table with
    current versions of which no version has the declared one.
    """
    data_type = rows.schema[flag].dataType.simpleString()
    if data_type != "boolean":
        raise SetupError("FLAG_NOT_BOOLEAN", location, column=flag, type=data_type)
    end = col(dimension.column_layout.required_name(EFFECTIVE_TO))
    is_open = end.isNull() | (end == open_end(dimension))
    other = F.max(F.when(col(flag) & ~is_open, end))
    figures = {"open": F.count_if(is_open), "other": other.cast("string"), "later": other > F.lit(now)}
    (row,) = rows.agg(*[value.alias(name) for name, value in figures.items()]).collect()
    if row["later"] or (row["other"] and not row["open"]):
        expected = dimension.computed_open_end
        raise SetupError("OPEN_END_DIFFERS", location, column=flag, open_end=expected, end=row["other"])


def _entities_to_repair(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return all versions of each entity of which one has to change, with the values that they should have.

    Rows without a business key, as those of reserved members, are omitted.

    Returns:
        The rows, `_old` (the declared columns of the row as it is), `_is_changed`, and `_is_removed`, which implies it.
    """
    keys = [col(name) for name in dimension.key_names]
    versions = rows.where(all_of([key.isNotNull() for key in keys])).withColumn(_OLD, _declared(rows, dimension))
    start = col(dimension.column_layout.required_name(EFFECTIVE_FROM))
    updated = [col(name).desc() for name in _existing(rows, dimension, LAST_UPDATED)]
    same_start = Window.partitionBy(*keys, start).orderBy(*updated, col(dimension.surrogate_key).desc())
    versions = versions.withColumn(_IS_REMOVED, F.row_number().over(same_start) > 1)
    in_time = Window.partitionBy(*keys, _IS_REMOVED).orderBy(start)
    versions = versions.withColumns({_NEXT_START: F.lead(start).over(in_time), _NUMBER: F.row_number().over(in_time)})
    values = _values(rows, dimension)
    is_changed = any_of([F.col(_IS_REMOVED), *[~col(name).eqNullSafe(value) for name, value in values.items()]])
    changed = versions.withColumns({**values, _IS_CHANGED: is_changed}).drop(_NEXT_START, _NUMBER)
    count = F.count_if(F.col(_IS_CHANGED)).over(Window.partitionBy(*keys))
    return changed.withColumn(_COUNT, count).where(F.col(_COUNT) > 0).drop(_COUNT)


def _values(rows: DataFrame, dimension: Dimension) -> dict[str, Column]:
    """Return what end, flag and number of a version should be, by the columns that the table has for them."""
    end, end_of_time = col(dimension.column_layout.required_name(EFFECTIVE_TO)), open_end(dimension)
    new_end = F.least(F.coalesce(end, end_of_time), F.coalesce(F.col(_NEXT_START), end_of_time))
    stored_end = F.nullif(new_end, end_of_time) if dimension.column_layout.has_null_end else new_end
    computed = {
        EFFECTIVE_TO: stored_end,
        CURRENT_FLAG: new_end == end_of_time,
        VERSION: F.col(_NUMBER).cast("int"),
    }
    return {name: value for column, value in computed.items() for name in _existing(rows, dimension, column)}


def _existing(rows: DataFrame, dimension: Dimension, column: str) -> list[str]:
    """Return the name of a generated column in the table; none if the table does not have it."""
    name = dimension.column_layout.name(column)
    return [name] if name is not None and name in rows.columns else []


def _declared(rows: DataFrame, dimension: Dimension) -> Column:
    """Return the declared columns of a row of the table, as a struct."""
    values = declared_columns(dimension, rows.columns).items()
    return F.struct(*[F.expr(value).alias(name) for name, value in values])


def _changed_pairs(entities: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows that change, as they are and as they should be (`actions.differing_pairs`)."""
    new = F.when(~F.col(_IS_REMOVED), _declared(entities, dimension))
    return entities.where(F.col(_IS_CHANGED)).select(_OLD, new.alias(_NEW))


def _action(dimension: Dimension) -> Column:
    """Return the row action of a pair; the end of a version that the program left open is a "close"."""
    old, new, end_of_time = F.col(_OLD), F.col(_NEW), open_end(dimension)
    is_closed = (F.coalesce(old[EFFECTIVE_TO], end_of_time) >= end_of_time) & (new[EFFECTIVE_TO] < end_of_time)
    return F.when(new.isNull(), REMOVE).when(is_closed, CLOSE).otherwise(OVERWRITE)


def _rows_to_write(entities: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows of entities, and for each entity a row that removes those that it has, with their row action."""
    rows = entities.where(~F.col(_IS_REMOVED)).drop(_OLD, _IS_CHANGED, _IS_REMOVED)
    removed = rows.select(*[col(name) for name in dimension.key_names]).distinct()
    inserted = rows.withColumn(ACTION, F.lit(OPEN))
    return inserted.unionByName(removed.withColumn(ACTION, F.lit(REMOVE)), allowMissingColumns=True)
