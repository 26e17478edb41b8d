"""Queries of child tables, with the windows of the versions that have their rows (S40)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.child_tables import JOINED_WINDOW, child_name, is_child_name
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.delta.history_table import child_marks, table_versions, versions_query
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.queries.dimension import QueriedTable, existing_rows, queried_table


def child_table(warehouse: Warehouse, dimension: Dimension | str, path: str) -> DataFrame:
    """Return the rows of a child table, with the window of the version that each belongs to.

    Args:
        warehouse: The warehouse.
        dimension: The declaration or the name of the dimension.
        path: The attribute, or the path of an array in its elements, as in `child_tables`.

    Returns:
        The columns of the child table; and `effective_from`, `effective_to` and `current_flag` of the version, as far
        as the dimension has them, where `effective_to` is NULL for the open end.

    Raises:
        SetupError: The dimension or the child table does not exist.
        HighWaterMarkError: The child table was lost or replaced.
    """
    table = queried_table(warehouse, dimension)
    existing_rows(warehouse, table.name, table.name)
    commit, child = warehouse.table(table.name).last_commit(), child_name(table.name, path)
    recorded = child_marks(commit)
    if child not in recorded:
        names = ", ".join(sorted(recorded)) or "a child table (none is built yet)"
        raise SetupError("CHILD_TABLE_NOT_RECORDED", f"table {child}", dimension=table.name, names=names)
    versions = table_versions(warehouse, commit, [*table.closed_tables, child])
    return warehouse.spark.sql(child_query(warehouse, table, child, versions))


def child_query(
    warehouse: Warehouse, table: QueriedTable, child: str, versions: Mapping[str, int], condition: str = "true"
) -> str:
    """Return the SQL of the rows of a child table whose version `v` meets a condition (`child_table`).

    Args:
        warehouse: The warehouse.
        table: The dimension.
        child: The name of the child table.
        versions: The table versions that belong together, of the tables with versions and of the child table.
        condition: The condition.
    """
    stored = {name: version for name, version in versions.items() if not is_child_name(name, table.name)}
    source, key = versions_query(warehouse, table.name, stored), quote_name(table.surrogate_key)
    existing = warehouse.table(table.name).columns()
    window = [name for column in JOINED_WINDOW if (name := table.column_layout.name(column)) in existing]
    columns = [f"c.{quote_name(name)}" for name in warehouse.table(child).read(versions[child]).columns]
    return (
        f"SELECT {', '.join([*columns, *table.select_list(window)])} "
        f"FROM {warehouse.table(child).identifier} VERSION AS OF {versions[child]} AS c "
        f"JOIN {source} AS v ON v.{key} = c.{key} WHERE {condition}"
    )
