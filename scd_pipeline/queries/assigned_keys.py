"""SQL of the surrogate keys that were ever assigned, from the dimension and its audit (S14, S24)."""

from __future__ import annotations

from collections.abc import Collection

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration.tables import AUDIT_SUFFIX
from scd_pipeline.delta.audit_table import assigned_keys_query
from scd_pipeline.delta.history_table import table_versions, versions_query
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import quote_name
from scd_pipeline.queries.dimension import QueriedTable


def versions_source(warehouse: Warehouse, table: QueriedTable) -> str:
    """Return the SQL of the table of a dimension, or of its two tables as one."""
    if not table.history_table:
        return warehouse.table(table.name).identifier
    return versions_query(warehouse, table.name, table_versions(warehouse, table.name))


def keys_query(warehouse: Warehouse, table: QueriedTable, source: str, columns: Collection[str]) -> str:
    """Return the SQL of every surrogate key that was ever assigned, with its business key and `effective_from`.

    Args:
        warehouse: The warehouse.
        table: The dimension.
        source: Its `versions_source`.
        columns: The columns of its table.
    """
    start, _ = table.window(columns)
    names = ", ".join(f"v.{quote_name(name)}" for name in (table.surrogate_key, *table.key_names))
    existing = f"SELECT {names}, {start} AS {EFFECTIVE_FROM} FROM {source} AS v WHERE {table.is_version()}"
    removed = removed_keys_query(warehouse, table, source)
    return existing if removed is None else f"{existing} UNION ALL {removed}"


def removed_keys_query(warehouse: Warehouse, table: QueriedTable, source: str) -> str | None:
    """Return the SQL of the surrogate keys of versions that the dimension does not have any more.

    The columns are those of `keys_query`. None without an audit.
    """
    stored = stored_declaration(warehouse, table.name)
    assigned = stored and assigned_keys_query(warehouse.table(table.name + AUDIT_SUFFIX), stored)
    if not assigned:
        return None
    key = quote_name(table.surrogate_key)
    return f"SELECT DISTINCT a.* FROM ({assigned}) AS a LEFT ANTI JOIN {source} AS v ON v.{key} = a.{key}"
