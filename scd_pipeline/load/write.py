"""Write the changed rows of a table in one commit: by their keys, or with all rows of a part of the table.

All strategies lead to the same rows, by the same compare-and-swap commit (`delta.commits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import with_altered_columns
from scd_pipeline.delta.table import Table, sql_literal
from scd_pipeline.expressions import col
from scd_pipeline.history.actions import ACTION, OPEN, REMOVE
from scd_pipeline.history.schema import dimension_schema
from scd_pipeline.load.write_plan import WritePlan

_EVERY_ROW = "true"
_MAX_SCOPES = 1000
"""The largest number of scopes that a statement has as literals."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes of a load in a table.

    Attributes:
        stored: The rows of the table before it; None if it does not exist.
        changed: The computed rows that change, with their row action and columns of the table.
        actions: The row actions that occur.
        dimension: The declaration of the rows.
    """

    stored: DataFrame | None
    changed: DataFrame
    actions: frozenset[str]
    dimension: Dimension

    @property
    def key(self) -> str:
        """The column of the surrogate key."""
        return self.dimension.surrogate_key

    @property
    def keys(self) -> DataFrame:
        """The surrogate keys of the rows that change."""
        return self.changed.select(col(self.key))

    @property
    def new_rows(self) -> DataFrame:
        """The rows that are added, and those that are overwritten, with their new values."""
        return self.changed.where(F.col(ACTION) != REMOVE).drop(ACTION)


class _TablePart(NamedTuple):
    """All rows of a table after a load for which `condition`, in SQL, is true; the load changes no others."""

    rows: DataFrame
    condition: str


def write_changes(
    table: Table, changes: RowChanges, write: WritePlan, commit: PipelineCommit, properties: Mapping[str, str]
) -> PipelineCommit:
    """Write the changes to their table as `commit`.

    Rows that are only added are appended: no stored row has one of their keys, so that nothing has to be looked up.
    Otherwise the write is one statement of Delta. By scopes, a query finds these before.

    Args:
        table: The table, for writing.
        changes: The changes, of one row at least.
        write: What is replaced together with the rows that change.
        commit: The commit.
        properties: The properties of the table.

    Raises:
        ConflictError: Another writer used the number of the commit.
        UnsupportedDelta: Rows are to be replaced by their keys, and the table has no deletion vectors.
    """
    if changes.actions == {OPEN}:
        return table.append(changes.new_rows, commit)
    part = _part_to_replace(table, changes, write)
    if part is not None:
        return table.replace_where(part.rows, commit, part.condition)
    if table.replaces and REMOVE not in changes.actions:
        return table.replace(changes.new_rows, commit, key=changes.key, properties=properties)
    return table.merge(changes.changed, commit, key=changes.key, removes=f"s.{ACTION} = '{REMOVE}'")


def _part_to_replace(table: Table, changes: RowChanges, write: WritePlan) -> _TablePart | None:
    """Return the part of the table that is replaced as a whole; None if rows are replaced by their keys."""
    if write.strategy == "increments" or changes.stored is None:
        return None
    stored = with_altered_columns(changes.stored, table.read())
    condition = _changed_scopes(stored, changes, write.scope) if write.strategy == "scope" else _EVERY_ROW
    if condition is None:
        return None
    unchanged = stored.where(F.expr(condition)).join(changes.keys, changes.key, "left_anti")
    return _TablePart(unchanged.unionByName(changes.new_rows, allowMissingColumns=True), condition)


def _changed_scopes(stored: DataFrame, changes: RowChanges, scope: tuple[str, ...]) -> str | None:
    """Return the SQL condition of the scopes with rows that change; None if they are more than a thousand.

    The query reads the stored rows that change too, because a row may move from one scope to another.
    """
    texts = [col(name).cast("string") for name in scope]
    old = stored.join(changes.keys, changes.key, "left_semi")
    values = old.select(*texts).union(changes.new_rows.select(*texts)).distinct()
    scopes = values.limit(_MAX_SCOPES + 1).collect()
    if len(scopes) > _MAX_SCOPES:
        return None
    types = {name: ddl for name, ddl, _ in dimension_schema(changes.dimension)}
    columns = [(quote_name(name), types[name]) for name in scope]
    return " OR ".join(sorted(_has_values(columns, row) for row in scopes))


def _has_values(columns: list[tuple[str, str]], values: tuple[str | None, ...]) -> str:
    """Return the SQL condition that columns, with their types, have these values, which are texts."""
    literals = ["NULL" if value is None else sql_literal(value) for value in values]
    pairs = zip(columns, literals, strict=True)
    return f"({' AND '.join(f'{name} <=> CAST({literal} AS {ddl})' for (name, ddl), literal in pairs)})"
