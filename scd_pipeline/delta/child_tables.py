"""Child tables: the elements of an attribute that is an array of structs, as rows of a table of their own (S40).

A row belongs to a version by its surrogate key, whichever table has the version: to close a version, or to move it to
the history table or the archive, changes no child table. A child table has no columns of windows; readers join them.

The commits are those of a second table of versions (`delta.history_table`): a writer commits to the child tables first,
and its commit of the dimension's table records them as high-water marks. Readers read the recorded version of each
child table. The dimension's table has all that its child tables contain, so one that is missing, new or has other
columns is rebuilt from the versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.child_tables import ChildTable, child_tables
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.history_table import history_error, recorded_version, roll_back, with_mark, write_rows
from scd_pipeline.delta.schema import FORMAT, skipping_columns, to_declared_columns
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.expressions import col
from scd_pipeline.frames import column_types
from scd_pipeline.history.actions import ACTION, CLOSE, OPEN, REMOVE
from scd_pipeline.history.child_rows import child_rows
from scd_pipeline.history.row_differences import row_differences

CHILD_OF, CHILD_KEY = "scd_pipeline.child_of", "scd_pipeline.child_key"
"""The properties of a child table with the name of its dimension, and with the column of its key."""


@dataclass(frozen=True, slots=True)
class StoredChild:
    """A declared child table as it is stored.

    Attributes:
        table: The child table.
        commit: Its last commit, number 0 if it does not exist.
        is_stale: Whether it has to be rebuilt from the versions: the last commit of the dimension's table records none
            of its commits, it was lost or replaced, or its columns differ from the declared ones.
        rows: Its rows that belong to the last commit of the dimension's table; None if it is stale.
    """

    table: ChildTable
    commit: PipelineCommit
    is_stale: bool = True
    rows: DataFrame | None = None


def child_properties(child: ChildTable) -> dict[str, str]:
    """Return the properties of a child table; Delta stores no minimum and maximum of a personal attribute (S31)."""
    keys = [(child.root_key, "bigint"), (child.key, "string")]
    hidden = skipping_columns(keys) if child.personal else {}
    return {FORMAT: "1", CHILD_OF: child.root, CHILD_KEY: child.key, **hidden}


def stored_children(warehouse: Warehouse, dimension: Dimension, commit: PipelineCommit) -> tuple[StoredChild, ...]:
    """Return the child tables of a dimension as they are stored.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        commit: The last commit of the dimension's table.

    Raises:
        SetupError: A table that is not a child table of the dimension has the name of one.
    """
    return tuple(_stored_child(warehouse, child, commit) for child in child_tables(dimension))


def _stored_child(warehouse: Warehouse, child: ChildTable, commit: PipelineCommit) -> StoredChild:
    table = warehouse.table(child.name)
    properties = table.properties()
    if properties and properties.get(CHILD_OF) != child.root:
        raise SetupError("CHILD_NAME_IN_USE", f"table {child.name}", dimension=child.root)
    last = table.last_commit_or_zero()
    if not commit.applied(child.name).commit or history_error(commit, last) is not None:
        return StoredChild(child, last)
    recorded = table.read(recorded_version(warehouse, commit, last))
    if not (_has_columns(table.read(), child) and _has_columns(recorded, child)):
        return StoredChild(child, last)
    return StoredChild(child, last, is_stale=False, rows=recorded.select(*[col(name) for name, _, _ in child.columns]))


def _has_columns(rows: DataFrame, child: ChildTable) -> bool:
    return column_types(rows.schema) == {name: ddl for name, ddl, _ in child.columns}


@dataclass(frozen=True, slots=True)
class ChangedVersions:
    """The versions that a load changes.

    Attributes:
        stored: The rows of all stored versions; None if the dimension's table does not exist.
        changed: The computed rows that change, with their row action.
        actions: The row actions that occur.
        closes_with_elements: Whether a closed version has other elements than before; otherwise it keeps them.
    """

    stored: DataFrame | None
    changed: DataFrame
    actions: frozenset[str]
    closes_with_elements: bool = False

    def all_versions(self, dimension: Dimension) -> DataFrame:
        """Return the rows of all versions after the load, with the declared columns."""
        present = to_declared_columns(self.changed.where(F.col(ACTION) != REMOVE), dimension)
        if self.stored is None:
            return present
        key = dimension.surrogate_key
        unchanged = self.stored.join(self.changed.select(col(key)), key, "left_anti")
        return to_declared_columns(unchanged, dimension).unionByName(present)


def write_child_tables(
    warehouse: Warehouse,
    dimension: Dimension,
    children: tuple[StoredChild, ...],
    versions: ChangedVersions,
    commit: PipelineCommit,
    last: PipelineCommit,
) -> PipelineCommit:
    """Write the elements of the versions that change to the child tables; a stale one is rebuilt.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        children: The child tables.
        versions: The versions.
        commit: The commit of the dimension's table that is to be written.
        last: The last commit of the dimension's table before it.

    Returns:
        `commit`, with the high-water marks of the child tables.

    Raises:
        ConflictError: Another writer committed first to one of the child tables.
    """
    done = [
        _rebuild(warehouse, child, child_rows(versions.all_versions(dimension), child.table), commit)
        if child.is_stale
        else _write_changes(warehouse, child, versions, commit, last)
        for child in children
    ]
    return reduce(with_mark, done, commit)


def child_differences(
    dimension: Dimension, children: Sequence[StoredChild], versions: DataFrame
) -> dict[str, DataFrame]:
    """Return the row actions by which each child table gets the elements of all versions, by its name.

    A stale child table, which the next load rebuilds, is omitted.

    Args:
        dimension: The declaration.
        children: The child tables.
        versions: The rows of all versions, as they are stored.
    """
    rows = to_declared_columns(versions, dimension)
    return {
        child.table.name: row_differences(child_rows(rows, child.table), child.rows, child.table.key)
        for child in children
        if child.rows is not None
    }


def _rebuild(warehouse: Warehouse, child: StoredChild, rows: DataFrame, commit: PipelineCommit) -> PipelineCommit:
    """Replace all rows and columns of a child table, which may not exist."""
    table, following = warehouse.writable(child.table.name), _following(child.commit, commit)
    properties = child_properties(child.table)
    description = f"The elements of {'.'.join(child.table.path)} in the versions of {child.table.root}"
    if table.create(child.table.columns, properties, description):
        return table.append(rows, following)
    return table.overwrite(rows, following, properties)


def _write_changes(
    warehouse: Warehouse, child: StoredChild, versions: ChangedVersions, commit: PipelineCommit, last: PipelineCommit
) -> PipelineCommit:
    """Write the elements of the versions that change; versions that are only closed keep their elements.

    Returns:
        The last commit of the child table that belongs to `commit`.
    """
    table, key = child.table, child.table.root_key
    before = child.commit
    if before.number != last.applied(table.name).commit:
        before = roll_back(warehouse, last, table.name, table.key, run_id=commit.run_id)
    changed = versions.changed if versions.closes_with_elements else versions.changed.where(F.col(ACTION) != CLOSE)
    rows = child_rows(changed.where(F.col(ACTION) != REMOVE), table)
    is_new = versions.actions <= {OPEN, CLOSE} and not versions.closes_with_elements
    if is_new:
        rows = rows.withColumn(ACTION, F.lit(OPEN))
    else:
        touched = changed.select(col(key))
        stored = warehouse.table(table.name).read(before.newest).join(touched, key, "left_semi")
        rows = row_differences(rows, stored.select(*[col(name) for name in rows.columns]), table.key)
    following = _following(before, commit)
    return write_rows(warehouse.writable(table.name), rows, following, table.key, is_new=is_new) or before


def _following(before: PipelineCommit, commit: PipelineCommit) -> PipelineCommit:
    """Return the commit of a child table that belongs to a commit of the dimension's table, which may be a repair."""
    if commit.repairs:
        return before.next_repair(high_water_marks=commit.high_water_marks, run_id=commit.run_id)
    return before.next(high_water_marks=commit.high_water_marks, batches=commit.batches, run_id=commit.run_id)


def roll_back_child(warehouse: Warehouse, commit: PipelineCommit, name: str, run_id: str) -> PipelineCommit:
    """Undo the commits of a child table that the dimension's table does not record, as `roll_back` does.

    A commit that rebuilt the table may have changed its columns.
    """
    table = warehouse.writable(name)
    last = table.last_commit()
    recorded = table.read(recorded_version(warehouse, commit, last))
    properties = table.properties()
    if last.number != commit.applied(name).commit and recorded.schema != table.read().schema:
        return table.overwrite(recorded, _following(last, commit), _own_properties(properties))
    return roll_back(warehouse, commit, name, properties[CHILD_KEY], run_id=run_id)


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    names = (FORMAT, CHILD_OF, CHILD_KEY, *skipping_columns(()))
    return {name: properties[name] for name in names if name in properties}
