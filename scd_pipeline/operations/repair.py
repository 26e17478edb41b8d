"""Repair a dimension that another program changed: write what differs from the change log, in one commit (S14, S21).

The repaired rows are those that a rebuild of the table would have. The audit gets a REPAIRED row for each row that is
removed, replaced or added, with all old and new values, before the dimension is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import COMMIT, CURRENT_FLAG
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.column_names import TABLE_COLUMNS
from scd_pipeline.declaration.tables import ARCHIVE_SUFFIX, AUDIT_SUFFIX, HISTORY_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.audit_table import AUDIT_ID, repair_rows
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.child_tables import (
    ChangedVersions,
    StoredChild,
    child_differences,
    stored_children,
    write_child_tables,
)
from scd_pipeline.delta.commits import PipelineCommit, foreign_commits
from scd_pipeline.delta.data_files import missing_files_reported
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.history_table import AllVersions, closed_marks, newest_versions
from scd_pipeline.delta.schema import (
    FORMAT,
    as_stored,
    declared_columns,
    foreign_table_error,
    require_same_declaration,
    with_stored_attributes,
    with_widened_columns,
)
from scd_pipeline.delta.stored_declaration import StoredDeclaration, stored_declaration
from scd_pipeline.delta.table import TableVersion
from scd_pipeline.delta.upstream import damage, log_mark, raise_first, table_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.expressions import all_of, any_of, col
from scd_pipeline.frames import checkpoint, union_all
from scd_pipeline.history.actions import (
    ACTION,
    ACTIONS,
    OPEN,
    OVERWRITE,
    REMOVE,
    changed_columns,
    differing_pairs,
)
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.last_versions import with_last_flag, without_common_values
from scd_pipeline.history.role_keys import is_inferred
from scd_pipeline.history.schema import dimension_columns, stored_schema
from scd_pipeline.history.timeline import build_timeline
from scd_pipeline.history.transitions import CHANGED_COLUMNS
from scd_pipeline.load.audit import ensure_audit
from scd_pipeline.load.inferred_members import inferred_rows
from scd_pipeline.load.log import read_log, records_in_effect
from scd_pipeline.load.reserved_members import reserved_members
from scd_pipeline.load.retry import Retry, ignore_progress, with_retries
from scd_pipeline.load.run import record
from scd_pipeline.load.schema_steps import execute_steps, schema_steps
from scd_pipeline.operations.maintenance import repeat_of

_IN_TABLE, _IS_STALE, _STORED, _IS_ARCHIVED = "_table", "_is_stale", "_stored_", "_is_archived"


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair changes, or would change.

    Attributes:
        table: The dimension.
        row_counts: The number of rows by row action: "open" for missing ones, "overwrite" and "remove",
            and without a change log "close".
        differences: A row for each row that differs: `_action`, the business key, the surrogate key, and
            `changed_columns`, the names of the columns that a repair changes.
        commit: The commit of the repair; None for a dry run, for a table without a change log, and if neither rows nor
            commits of another program need a repair.
        table_version: The version of the table after the repair; None if nothing was written.
        child_tables: The child tables that the repair rebuilds, or would rebuild.
    """

    table: str
    row_counts: Mapping[str, int]
    differences: DataFrame
    commit: PipelineCommit | None = None
    table_version: int | None = None
    child_tables: tuple[str, ...] = ()

    @property
    def has_differences(self) -> bool:
        """Whether any row differs from the change log."""
        return any(self.row_counts.values())


@dataclass(frozen=True, slots=True)
class _RepairInput:
    """The tables of a dimension as they are, whatever program wrote their rows, and what they should contain.

    Attributes:
        dimension: The declaration, with every name that its attributes ever had.
        log: The change log.
        commits: The last pipeline commit of each table that stores versions.
        columns: The types of the columns of each of them by name.
        pairs: The rows that differ, as they are and as they should be (`differing_pairs`), with their table.
        is_foreign: Whether another program committed to one of the tables since the last repair.
    """

    dimension: Dimension
    log: ChangeLog
    commits: Mapping[str, PipelineCommit]
    columns: Mapping[str, Mapping[str, str]]
    pairs: DataFrame
    is_foreign: bool


def repair(
    warehouse: Warehouse,
    dimension: Dimension,
    *,
    now: datetime,
    actor: str,
    reason: str = "repair",
    run_id: str = "",
    dry_run: bool = False,
    retry: Retry | None = None,
) -> RepairResult:
    """Replace the rows of a dimension that differ from its change log, and record that in the audit.

    Afterwards, the table has applied the whole log, and loads accept the commits of the other program. The cost is that
    of a rebuild: the whole log and the whole table are read. Only rows that differ are written.

    Args:
        now: The current time, which the audit records.
        actor: The person or program that repairs.
        reason: The reason, for the audit.
        run_id: The run, for the commits.
        dry_run: Whether to write nothing.
        retry: How write conflicts are retried.

    Raises:
        SetupError: The dimension or its change log does not exist, or this package did not create it.
        DeclarationError: The tables were created by another declaration.
        DataFilesLost: A data file of one of the tables does not exist.
        ForeignCommitError: Another program changed the change log or the audit, which a repair does not correct.
        HighWaterMarkError: The change log was lost.
        RetriesExhausted: Every attempt met a write conflict.
    """

    def attempt() -> RepairResult:
        stored = _read(warehouse, dimension)
        result = plan_repair(stored.dimension, stored.pairs, _action())
        if dry_run or not (result.has_differences or stored.is_foreign):
            return result
        audit, version = warehouse.table(dimension.name + AUDIT_SUFFIX), stored.commits[dimension.name].newest
        if audit.exists():
            rows = repair_rows(stored.pairs, stored.dimension, actor=actor, reason=reason, at=now, version=version)
            append_repair_rows(warehouse, stored.dimension, rows, run_id)
        commit = _write(warehouse, stored, run_id)
        return replace(result, commit=commit, table_version=commit.table_version)

    with missing_files_reported(warehouse, dimension.table_names):
        result = with_retries(dimension.name, lambda number: attempt(), retry or Retry(), ignore_progress)
    if result.commit is not None:
        record(warehouse, dimension, run_id=run_id, retry=retry)
    return repair_child_tables(warehouse, dimension, result, run_id=run_id, dry_run=dry_run, retry=retry)


def repair_child_tables(
    warehouse: Warehouse,
    dimension: Dimension,
    repaired: RepairResult,
    *,
    run_id: str = "",
    dry_run: bool = False,
    retry: Retry | None = None,
) -> RepairResult:
    """Rebuild each child table that lacks elements of the versions, has other rows, or was changed by another program.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        repaired: The result of the repair of the versions.
        run_id: The run, for the commits.
        dry_run: Whether to write nothing.
        retry: How write conflicts are retried.

    Returns:
        The result with the child tables, and with the last commit of the dimension's table.
    """

    def attempt() -> RepairResult:
        newest = newest_versions(warehouse, dimension.name)
        if newest is None:
            return repaired
        stored = as_stored(dimension, stored_declaration(warehouse, dimension.name))
        damaged = _damaged_children(warehouse, stored, newest)
        names = tuple(child.table.name for child in damaged)
        if dry_run or not damaged:
            return replace(repaired, child_tables=names)
        last = newest.commit
        commit = replace(repeat_of(warehouse, dimension.name, last, run_id), repairs=True)
        unchanged = newest.rows.limit(0).withColumn(ACTION, F.lit(OPEN))
        versions = ChangedVersions(newest.rows, unchanged, frozenset())
        commit = write_child_tables(warehouse, stored, damaged, versions, commit, last)
        done = warehouse.writable(dimension.name).commit_empty(commit)
        return replace(repaired, commit=done, table_version=done.table_version, child_tables=names)

    return with_retries(dimension.name, lambda number: attempt(), retry or Retry(), ignore_progress)


def _damaged_children(warehouse: Warehouse, dimension: Dimension, newest: AllVersions) -> tuple[StoredChild, ...]:
    """Return the child tables to rebuild."""
    children = stored_children(warehouse, dimension, newest.commit)
    differences = child_differences(dimension, children, newest.rows)
    return tuple(
        replace(child, is_stale=True)
        for child in children
        if child.is_stale or child.commit.foreign is not None or not differences[child.table.name].isEmpty()
    )


def _read(warehouse: Warehouse, dimension: Dimension) -> _RepairInput:
    """Read the tables and compare them with the rows that the change log gives.

    Raises:
        SetupError: The dimension or its change log does not exist, or this package did not create it.
        DeclarationError: The tables were created by another declaration.
        ForeignCommitError: Another program changed the change log.
        HighWaterMarkError: The change log was lost.
    """
    properties = warehouse.table(dimension.name).properties()
    if properties and FORMAT not in properties:
        if FORMAT in (log_properties := warehouse.table(dimension.name + LOG_SUFFIX).properties()):
            raise foreign_table_error(warehouse.table(dimension.name), log_properties)
        raise SetupError("TABLE_WITHOUT_LOG", f"table {dimension.name}", table=dimension.name)
    if (declared := StoredDeclaration.from_properties(properties)) is not None:
        require_same_declaration(with_stored_attributes(dimension, declared), declared)
    table = warehouse.table(dimension.name).newest()
    names = _tables(dimension, set() if table is None else closed_marks(table.commit).keys())
    newest = {name: table if name == dimension.name else warehouse.table(name).newest() for name in names}
    log = read_log(warehouse, dimension)
    existing = {name: table for name, table in newest.items() if table is not None}
    if missing := sorted(names.keys() - existing.keys()):
        raise SetupError("TABLE_NOT_LOADED", dimension.name, table=missing[0], warehouse=warehouse.location)
    commits = {name: table.commit for name, table in existing.items()}
    raise_first(damage(log.commit, [replace(commit, foreign=None) for commit in commits.values()]))
    if not log.exists:
        raise SetupError("TABLE_NOT_LOADED", dimension.name, table=log.table.name, warehouse=warehouse.location)
    archive = existing.get(dimension.name + ARCHIVE_SUFFIX)
    expected = checkpoint(_with_archived_flag(_expected_rows(warehouse, log), archive, log.dimension))
    pairs = []
    for name, condition in names.items():
        widened = with_widened_columns(existing[name].rows, existing[name].columns(), log.dimension)
        rows = _stored_rows(widened, log.dimension)
        expected_rows = without_common_values(expected.where(condition).drop(_IS_ARCHIVED), log.dimension)
        if name == dimension.name:
            expected_rows = expected_rows.unionByName(_member_rows(warehouse, rows, expected, log.dimension))
        differing = differing_pairs(rows, expected_rows, log.dimension, is_stale=F.col(_IS_STALE))
        pairs.append(differing.withColumn(_IN_TABLE, F.lit(name)))
    tables = {name: warehouse.table(name).identifier for name in names}
    return _RepairInput(
        dimension=log.dimension,
        log=log,
        commits=commits,
        columns={name: table.columns() for name, table in existing.items()},
        pairs=checkpoint(union_all(pairs)),
        is_foreign=any(foreign_commits(warehouse.spark, name, table) for name, table in tables.items()),
    )


def _stored_rows(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows of a table with its declared columns, and `_is_stale`.

    A row is stale if a generated column, such as the row hash, has another value than a load would store for the row.
    """
    types = {name: ddl for name, ddl, _ in stored_schema(dimension)}
    generated = sorted(types.keys() & {dimension.column_layout.name(column) for column in TABLE_COLUMNS})
    stored = [
        (col(name) if name in rows.columns else F.lit(None).cast(types[name])).alias(_STORED + name)
        for name in generated
    ]
    declared = declared_columns(dimension, rows.columns).items()
    converted = to_stored_columns(
        rows.select(*[F.expr(value).alias(name) for name, value in declared], *stored), dimension
    )
    is_stale = any_of([~col(name).eqNullSafe(col(_STORED + name)) for name in generated])
    declared = declared_columns(dimension, converted.columns).items()
    return converted.select(*[F.expr(value).alias(name) for name, value in declared], is_stale.alias(_IS_STALE))


def _member_rows(warehouse: Warehouse, rows: DataFrame, expected: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows of reserved and inferred members as they should be, of those that the rows have (S23).

    The log does not have them.
    """
    key, names = dimension.surrogate_key, list(dimension.key_names)
    has_no_business_key = all_of([col(name).isNull() for name in names])
    stored = rows.where(has_no_business_key).select(col(key)).distinct()
    members = reserved_members(warehouse, dimension, RESERVED_KEYS).join(stored, key, "left_semi")
    if not dimension.has_windows:
        return members
    entities = rows.where(is_inferred(dimension) & ~has_no_business_key).select(*map(col, names)).distinct()
    entities = entities.join(expected.select(*map(col, names)), names, "left_anti")
    return members.unionByName(inferred_rows(warehouse, entities, dimension))


def _tables(dimension: Dimension, recorded: Collection[str]) -> dict[str, Column]:
    """Return the tables that store versions, in the order of their commits, and which versions each of them stores.

    An archive that the dimension's table does not record, as after a first archive run that was killed, stores none.

    Args:
        dimension: The declaration.
        recorded: The second table that the last commit of the dimension's table records, if any.
    """
    name, archive = dimension.name, dimension.name + ARCHIVE_SUFFIX
    if dimension.history_table:
        return {name + HISTORY_SUFFIX: ~F.col(CURRENT_FLAG), name: F.col(CURRENT_FLAG)}
    return {archive: F.col(_IS_ARCHIVED), name: ~F.col(_IS_ARCHIVED)} if archive in recorded else {name: F.lit(True)}


def _with_archived_flag(rows: DataFrame, archive: TableVersion | None, dimension: Dimension) -> DataFrame:
    """Return the expected rows with `_is_archived`: whether a closed version is in the archive, and stays there (S42).

    Only a dimension with windows can have an archive.
    """
    if archive is None:
        return rows.withColumn(_IS_ARCHIVED, F.lit(False))
    key = dimension.surrogate_key
    archived = archive.rows.select(col(key), F.lit(True).alias(_IS_ARCHIVED)).distinct()
    is_archived = F.coalesce(F.col(_IS_ARCHIVED), F.lit(False)) & ~F.col(CURRENT_FLAG)
    return rows.join(archived, key, "left").withColumn(_IS_ARCHIVED, is_archived)


def _expected_rows(warehouse: Warehouse, log: ChangeLog) -> DataFrame:
    """Return the rows that the whole change log gives, with what `with_last_flag` adds."""
    batches = log.batches()
    records = records_in_effect(log.rows(), batches).drop(COMMIT)
    kinds = SnapshotKinds.from_batches(batches, log.dimension)
    rows = build_timeline(records, log.dimension, kinds=kinds, key_hash=warehouse.key_hash)
    return with_last_flag(rows.select(*[col(name) for name in dimension_columns(log.dimension)]), log.dimension)


def _action() -> Column:
    return F.when(F.col("_old").isNull(), OPEN).when(F.col("_new").isNull(), REMOVE).otherwise(OVERWRITE)


def plan_repair(dimension: Dimension, pairs: DataFrame, action: Column) -> RepairResult:
    """Return what a repair would change.

    Args:
        pairs: The rows that differ, as they are and as they should be (`actions.differing_pairs`).
        action: The row action that a pair needs.
    """
    old, new = F.col("_old"), F.col("_new")
    differences = pairs.select(
        action.alias(ACTION),
        *[F.coalesce(new[name], old[name]).alias(name) for name in (*dimension.key_names, dimension.surrogate_key)],
        changed_columns(dimension).alias(CHANGED_COLUMNS),
    )
    counts = {row[ACTION]: int(row["count"]) for row in differences.groupBy(ACTION).count().collect()}
    return RepairResult(dimension.name, {name: counts[name] for name in ACTIONS if name in counts}, differences)


def append_repair_rows(warehouse: Warehouse, dimension: Dimension, rows: DataFrame, run_id: str) -> None:
    """Append REPAIRED rows to the audit, which may not exist, except those that an attempt before has appended."""
    last = warehouse.table(dimension.name + AUDIT_SUFFIX).last_commit_or_zero()
    audit = ensure_audit(warehouse, dimension, last)
    new = checkpoint(rows.join(audit.read().select(AUDIT_ID), AUDIT_ID, "left_anti"))
    if not new.isEmpty():
        ordered = new.select(*[col(name) for name in audit.columns()])
        audit.append(ordered, last.next(high_water_marks=last.high_water_marks, run_id=run_id))


def _write(warehouse: Warehouse, stored: _RepairInput, run_id: str) -> PipelineCommit:
    """Write what differs, one commit for each table, and return the last one."""
    log, key = stored.log.commit, stored.dimension.surrogate_key
    marks = log_mark(log, log.number)
    commit = stored.commits[stored.dimension.name]
    _restore_columns(warehouse, stored)
    for name in stored.commits:
        table, last = warehouse.writable(name), stored.commits[name]
        commit = last.next_repair(high_water_marks={**last.high_water_marks, **marks}, run_id=run_id)
        pairs = stored.pairs.where(F.col(_IN_TABLE) == name)
        if pairs.isEmpty():
            commit = table.commit_empty(commit)
        else:
            rows = to_stored_columns(_changed_rows(pairs, key), stored.dimension)
            commit = table.rewrite(rows, commit, key=key, removes=f"s.{ACTION} = '{REMOVE}'")
        marks = {**marks, **table_mark(commit)}
    return commit


def _restore_columns(warehouse: Warehouse, stored: _RepairInput) -> None:
    """Add the columns that the tables lack because another program dropped them, or that were declared since."""
    name, columns = stored.dimension.name, stored.columns
    closed_table = name + stored.dimension.closed_suffix
    steps = schema_steps(stored.dimension, stored.log, columns[name], columns.get(closed_table, {}))
    execute_steps(
        warehouse,
        stored.dimension,
        [step for step in steps if step.table != stored.log.table.name],
        warehouse.table(name).properties(),
    )


def _changed_rows(pairs: DataFrame, key: str) -> DataFrame:
    """Return the rows to remove and the rows to insert, one of each for a surrogate key, with their row action."""
    sides = (("_old", REMOVE), ("_new", OPEN))
    rows = [
        pairs.where(F.col(side).isNotNull()).select(f"{side}.*", F.lit(action).alias(ACTION)).dropDuplicates([key])
        for side, action in sides
    ]
    return union_all(rows)
