"""Versions in two tables: some closed ones are in a second table, the history table or the archive.

`<dimension>_history` has every closed version (S11). `<dimension>_archive` has those that `move_to_archive` has moved
there and that no load has changed since (S42). A dimension has at most one of the two.

Both tables of a dimension have the columns of one table with all versions. With `history_columns: changing`, a value
that all versions of an entity have in common is stored once: in its current version or, if the entity no longer exists,
in its last closed one (`history.last_versions`). Readers fill in the others.

Delta has no transaction over two tables, so a writer commits to the second table first; its commit of the dimension's
table then records the commit of the second table that belongs to it, as a high-water mark. Until then, readers ignore
the newer commit of the second table: no version is missing or read twice. One that is ahead of the mark belongs to a
writer that is running or was killed; the next writer rolls it back first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.child_tables import is_child_name
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.table_properties import merged_properties
from scd_pipeline.declaration.tables import CLOSED_SUFFIXES
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.schema import (
    FORMAT,
    declared_properties,
    has_properties,
    names_before,
    statistics_properties,
    with_altered_columns,
)
from scd_pipeline.delta.stored_declaration import StoredDeclaration, stored_declaration
from scd_pipeline.delta.table import Table, TableVersion
from scd_pipeline.delta.upstream import is_other_table, table_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError
from scd_pipeline.expressions import col
from scd_pipeline.history.actions import ACTION, CLOSE, OPEN, OVERWRITE, REMOVE
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.last_versions import IS_LAST, without_common_values
from scd_pipeline.history.row_differences import row_differences

REMOVED = f"s.{ACTION} = '{REMOVE}'"
"""The condition, in a MERGE, of the rows to delete."""


@dataclass(frozen=True, slots=True)
class AllVersions(TableVersion):
    """A dimension at its newest version; `rows` are all its versions, and `table_rows` those of its table alone.

    `history` is the last commit of its history table or archive; None if the dimension records no commit of one.
    """

    table_rows: DataFrame
    history: PipelineCommit | None = None


def history_properties(dimension: Dimension) -> dict[str, str]:
    """Return the properties of a history table or an archive: format, those of the dimension's table, and its own."""
    return {**declared_properties(dimension, _declared_properties(dimension)), FORMAT: "1"}


def history_statistics(dimension: Dimension) -> dict[str, str]:
    """Return the `statistics_properties` of a history table or an archive."""
    return statistics_properties(dimension, _declared_properties(dimension))


def _declared_properties(dimension: Dimension) -> dict[str, str]:
    return merged_properties(dimension.table_properties, dimension.history_table_properties)


def set_history_properties(warehouse: Warehouse, dimension: Dimension) -> None:
    """Set the declared properties of the history table or the archive, if it exists without them, and its statistics.

    Raises:
        ConflictError: Another writer changed the table first.
        UsageError: Delta does not know a declared property.
    """
    table = warehouse.writable(dimension.name + dimension.closed_suffix)
    expected = {**history_properties(dimension), **history_statistics(dimension)}
    properties = table.properties()
    if properties and not has_properties(properties, expected):
        table.set_properties(expected)


def newest_versions(
    warehouse: Warehouse, name: str, stored: StoredDeclaration | None = None, commit: PipelineCommit | None = None
) -> AllVersions | None:
    """Return a dimension at its newest version, with the versions of its history table or archive if it has one.

    For any other table this is `Table.newest`.

    Args:
        warehouse: The warehouse.
        name: The table.
        stored: The declaration that the dimension's table stores, if it was read already.
        commit: As for `Table.newest`.

    Returns:
        The last commit of the dimension's table, and all versions; None if the table does not exist.

    Raises:
        HighWaterMarkError: The second table was lost or replaced.
    """
    newest = warehouse.table(name).newest(commit)
    if newest is None:
        return None
    recorded = closed_marks(newest.commit)
    if not recorded:
        return AllVersions(newest.commit, newest.rows, newest.rows)
    (closed_table,) = recorded
    table = warehouse.table(closed_table)
    history = table.last_commit_or_zero()
    closed = table.read(recorded_version(warehouse, newest.commit, history))
    rows = newest.rows.union(with_altered_columns(closed, newest.rows))
    stored = stored or stored_declaration(warehouse, name)
    common = _common_values(stored, rows.columns)
    rows = rows.withColumns({column: F.expr(value) for column, value in common.items()}) if common else rows
    return AllVersions(newest.commit, rows, newest.rows, history)


def _common_values(stored: StoredDeclaration | None, columns: Sequence[str]) -> dict[str, str]:
    """Return the SQL expression, over all versions, of each column of which the history lacks values.

    Return an empty dict if another program has dropped columns that the expressions need; a load reports that.
    """
    if stored is None or stored.history_columns == "all":
        return {}
    start = stored.column_layout.required_name(EFFECTIVE_FROM)
    if not {start, *stored.key_names} <= set(columns):
        return {}
    keys = ", ".join(map(quote_name, stored.key_names))
    common = stored.common_columns(columns)
    return {each: f"max_by({quote_name(each)}, {quote_name(start)}) OVER (PARTITION BY {keys})" for each in common}


def closed_marks(commit: PipelineCommit) -> dict[str, HighWaterMark]:
    """Return the high-water mark of the second table that a commit of the dimension's table records, by its name.

    Return an empty dict if it records none.
    """
    names = [commit.table + suffix for suffix in CLOSED_SUFFIXES]
    return {name: mark for name in names if (mark := commit.applied(name)).commit > 0}


def history_error(commit: PipelineCommit, last: PipelineCommit) -> HighWaterMarkError | None:
    """Return the error if a history table, an archive or a child table lacks commits that its dimension has recorded.

    Args:
        commit: The last commit of the dimension.
        last: The last commit of the other table, number 0 if it does not exist.
    """
    mark = commit.applied(last.table)
    if last.number < mark.commit or is_other_table(mark.table_id, last.table_id):
        code = "CHILD_TABLE_LOST" if is_child_name(last.table, commit.table) else "HISTORY_LOST"
        return HighWaterMarkError(code, f"table {last.table}", dimension=commit.table)
    return None


def child_marks(commit: PipelineCommit) -> dict[str, HighWaterMark]:
    """Return the high-water mark of each child table that a commit of the dimension's table records, by its name."""
    return {name: mark for name, mark in commit.high_water_marks.items() if is_child_name(name, commit.table)}


def recorded_version(warehouse: Warehouse, commit: PipelineCommit, last: PipelineCommit) -> int:
    """Return the table version of another table that belongs to a commit, which may record none of its commits.

    The newest version is used as long as it has the same rows: VACUUM retains its files.

    Args:
        warehouse: The warehouse.
        commit: The commit of the dimension's table.
        last: The last commit of the other table.

    Raises:
        HighWaterMarkError: The other table was lost or replaced.
    """
    table = warehouse.table(last.table)
    mark = commit.applied(table.name)
    if (error := history_error(commit, last)) is not None:
        raise error
    if last.number == mark.commit:
        return last.newest
    return table.commits_since(mark.commit)[0].table_version - 1


def versions_query(warehouse: Warehouse, name: str, table_versions: Mapping[str, int]) -> str:
    """Return the SQL of all versions in a dimension's two tables, each at its table version (`table_versions`).

    One of them may lack columns that a load, perhaps one that was killed, has added to the other or renamed there.
    """
    types = warehouse.table(name).columns()
    names, queries = list(types), []
    for each, version in table_versions.items():
        table = warehouse.table(each)
        columns = ", ".join(_present_columns(types, table.read(version).columns))
        queries.append(f"SELECT {columns} FROM {table.identifier} VERSION AS OF {version}")
    rows = f"({' UNION ALL '.join(queries)})"
    common = _common_values(stored_declaration(warehouse, name), names)
    if not common:
        return rows
    values = [f"{common.get(each, quote_name(each))} AS {quote_name(each)}" for each in names]
    return f"(SELECT {', '.join(values)} FROM {rows})"


def _present_columns(types: Mapping[str, str], stored: Sequence[str]) -> list[str]:
    """Return the SQL of the present columns over an earlier version of a table, as `with_altered_columns`."""
    values = {
        name: f"CAST(NULL AS {types[name]})" if old is None else quote_name(old)
        for name, old in names_before(types, stored).items()
    }
    # Spark cannot optimize some queries in which a column has an alias that is its name.
    return [value if value == quote_name(name) else f"{value} AS {quote_name(name)}" for name, value in values.items()]


def table_versions(warehouse: Warehouse, commit: PipelineCommit, others: Sequence[str]) -> dict[str, int]:
    """Return the newest table versions of a dimension's table and of others that belong together, by table.

    Args:
        warehouse: The warehouse.
        commit: The last commit of the dimension's table.
        others: Its history table or archive, and its child tables; without a table version if one does not exist yet.

    Raises:
        HighWaterMarkError: One of the others was lost or replaced.
    """
    versions = {commit.table: commit.newest}
    for name in others:
        versions[name] = recorded_version(warehouse, commit, warehouse.table(name).last_commit_or_zero())
    return {name: version for name, version in versions.items() if version >= 0}


def write_versions(
    warehouse: Warehouse,
    table: Table,
    actions: DataFrame,
    action_names: set[str],
    dimension: Dimension,
    commit: PipelineCommit,
    last: PipelineCommit,
    last_of_history: PipelineCommit,
) -> PipelineCommit:
    """Write row actions to the history table, and then to the dimension's table as `commit`.

    Args:
        warehouse: The warehouse.
        table: The dimension's table, for writing.
        actions: The computed rows that change, with their row action.
        action_names: The row actions that occur.
        dimension: The declaration.
        commit: The commit of the dimension's table.
        last: The last commit of the dimension's table before it.
        last_of_history: The last commit of the history table when the row actions were planned.

    Raises:
        ConflictError: Another writer committed first to one of the tables.
    """
    before = _recorded_commit(warehouse, dimension, commit, last, last_of_history)
    closed = to_stored_columns(without_common_values(_actions_of_history(actions, dimension), dimension), dimension)
    commit = _write_first(warehouse, before, closed, commit, dimension, is_new=action_names <= {OPEN, CLOSE})
    current = to_stored_columns(_actions_of_current(actions, dimension).drop(IS_LAST), dimension)
    is_new = action_names == {OPEN}
    return write_rows(table, current, commit, dimension.surrogate_key, is_new=is_new) or table.commit_empty(commit)


def remove_from_archive(
    warehouse: Warehouse,
    actions: DataFrame,
    action_names: set[str],
    dimension: Dimension,
    commit: PipelineCommit,
    last: PipelineCommit,
    last_of_archive: PipelineCommit,
) -> PipelineCommit:
    """Remove the versions that change from the archive; the dimension's table gets them by `commit` (S42).

    Only a closed version can be in the archive: if versions are only opened and closed, it is neither read nor written.

    Args:
        warehouse: The warehouse.
        actions: The computed rows that change, with their row action.
        action_names: The row actions that occur.
        dimension: The declaration.
        commit: The commit of the dimension's table.
        last: The last commit of the dimension's table before it.
        last_of_archive: The last commit of the archive when the row actions were planned.

    Returns:
        `commit`, with the high-water mark of the archive.

    Raises:
        ConflictError: Another writer committed first to the archive.
    """
    before = _recorded_commit(warehouse, dimension, commit, last, last_of_archive)
    if not before.number or action_names <= {OPEN, CLOSE}:
        return with_mark(commit, before)
    key = dimension.surrogate_key
    changed = actions.where(~F.col(ACTION).isin(OPEN, CLOSE)).select(col(key))
    archived = warehouse.table(before.table).read(before.newest).join(changed, key, "left_semi")
    return _write_first(warehouse, before, archived.withColumn(ACTION, F.lit(REMOVE)), commit, dimension, is_new=False)


def move_to_archive(
    warehouse: Warehouse,
    rows: DataFrame,
    dimension: Dimension,
    commit: PipelineCommit,
    last: PipelineCommit,
    last_of_archive: PipelineCommit,
) -> PipelineCommit:
    """Append closed versions to the archive, and remove them from the dimension's table as `commit` (S42).

    Args:
        warehouse: The warehouse.
        rows: The versions, computed, with the columns of the dimension's table.
        dimension: The declaration.
        commit: The commit of the dimension's table.
        last: The last commit of the dimension's table before it.
        last_of_archive: The last commit of the archive, which is not newer than `last`.

    Raises:
        ConflictError: Another writer committed first to one of the tables.
    """
    before = _recorded_commit(warehouse, dimension, commit, last, last_of_archive)
    archived = rows.withColumn(ACTION, F.lit(OPEN))
    commit = _write_first(warehouse, before, archived, commit, dimension, is_new=True)
    removed = rows.withColumn(ACTION, F.lit(REMOVE))
    table = warehouse.writable(dimension.name)
    return table.merge(removed, commit, key=dimension.surrogate_key, removes=REMOVED)


def _recorded_commit(
    warehouse: Warehouse,
    dimension: Dimension,
    commit: PipelineCommit,
    last: PipelineCommit,
    last_of_closed: PipelineCommit,
) -> PipelineCommit:
    """Return the last commit of the second table, after a rollback if the dimension does not record it.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        commit: The commit of the dimension's table that is to be written.
        last: The last commit of the dimension's table before it.
        last_of_closed: The last commit of the second table when it was read.
    """
    name = dimension.name + dimension.closed_suffix
    if last_of_closed.number == last.applied(name).commit:
        return last_of_closed
    return roll_back(warehouse, last, name, dimension.surrogate_key, run_id=commit.run_id)


def _write_first(
    warehouse: Warehouse,
    before: PipelineCommit,
    rows: DataFrame,
    commit: PipelineCommit,
    dimension: Dimension,
    *,
    is_new: bool,
) -> PipelineCommit:
    """Write rows with their action to the second table, after its commit `before`; without rows nothing is written.

    Returns:
        `commit`, that of the dimension's table, with the high-water mark of the second table.
    """
    following = before.next(high_water_marks=commit.high_water_marks, batches=commit.batches, run_id=commit.run_id)
    done = write_rows(warehouse.writable(before.table), rows, following, dimension.surrogate_key, is_new=is_new)
    return with_mark(commit, done or before)


def with_mark(commit: PipelineCommit, other: PipelineCommit) -> PipelineCommit:
    """Return the commit of the dimension's table with the high-water mark of another table, if that has commits."""
    mark = table_mark(other) if other.number else {}
    return replace(commit, high_water_marks={**commit.high_water_marks, **mark})


def roll_back(warehouse: Warehouse, commit: PipelineCommit, name: str, key: str, *, run_id: str = "") -> PipelineCommit:
    """Undo the commits of another table that the dimension's table does not record; mostly no such commit exists.

    Args:
        warehouse: The warehouse.
        commit: The last commit of the dimension's table.
        name: The history table, the archive, or a child table.
        key: The column of its key.
        run_id: The id of the run.

    Returns:
        The last commit of that table, whose rows are now those that belong to `commit`.

    Raises:
        ConflictError: Another writer committed first.
        HighWaterMarkError: The second table was lost or replaced.
    """
    table = warehouse.writable(name)
    last, mark = table.last_commit(), commit.applied(name)
    if last.number == mark.commit:
        return last
    newest = table.read(last.newest)
    recorded = newest.limit(0)
    if mark.commit:
        recorded = with_altered_columns(table.read(recorded_version(warehouse, commit, last)), newest)
    marks = {other: mark for other, mark in commit.high_water_marks.items() if other != name}
    rolled_back = last.next(high_water_marks=marks, run_id=run_id)
    return table.merge(row_differences(recorded, newest, key), rolled_back, key=key, removes=REMOVED)


def write_rows(
    table: Table, rows: DataFrame, commit: PipelineCommit, key: str, *, is_new: bool
) -> PipelineCommit | None:
    """Write rows with their row action; `is_new` if the table has none of them. None if there are no rows."""
    if rows.isEmpty():
        return None
    if is_new:
        return table.append(rows.drop(ACTION), commit)
    return table.merge(rows, commit, key=key, removes=REMOVED)


def _actions_of_history(actions: DataFrame, dimension: Dimension) -> DataFrame:
    """Return what the history table needs: rows that are closed, and removals of rows that are current again."""
    action, is_current = F.col(ACTION), _is_current(dimension)
    return actions.where(~is_current | (action == OVERWRITE)).withColumn(
        ACTION, F.when(is_current, REMOVE).otherwise(action)
    )


def _actions_of_current(actions: DataFrame, dimension: Dimension) -> DataFrame:
    """Return what the table of the current versions needs: rows that are current, and removals of closed ones."""
    action, is_current = F.col(ACTION), _is_current(dimension)
    return actions.where(is_current | (action == CLOSE)).withColumn(
        ACTION, F.when(is_current, action).otherwise(REMOVE)
    )


def _is_current(dimension: Dimension) -> Column:
    """Return whether a row is in the table of the current versions, which has the reserved members too."""
    return F.col(CURRENT_FLAG) | col(dimension.surrogate_key).isin(list(RESERVED_KEYS))
