"""Convert generated columns between their stored form and the form in which rows are computed.

Rows are computed with the default names, a sentinel as the open end, and a flag of the current version, whatever a
declaration defines for the table. Rows are converted where they are read and where they are written.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_TO
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.column_names import ROW_HASH, ColumnLayout
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.expressions import col
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.row_hash import row_hash
from scd_pipeline.history.schema import COMPUTED_COLUMNS, open_end, stored_name


def computed_columns(layout: ColumnLayout, existing: Collection[str], qualifier: str = "") -> dict[str, str]:
    """Return the SQL expression of each generated column over the columns of a table.

    Args:
        layout: How the table stores these columns.
        existing: The columns of the table, or those that `with_computed_columns` returned.
        qualifier: The alias of the table in the query with a dot, if it has one.

    Returns:
        The expressions of the columns that the table has, and of `current_flag` if it has windows.
    """
    candidates = {name: (layout.name(name), name) for name in COMPUTED_COLUMNS}
    physical = {name: next((c for c in names if c in existing), None) for name, names in candidates.items()}
    columns = {name: qualifier + quote_name(column) for name, column in physical.items() if column}
    if EFFECTIVE_TO in columns:
        end_of_time = f"TIMESTAMP '{layout.computed_open_end}Z'"
        if layout.has_null_end:
            columns[EFFECTIVE_TO] = f"COALESCE({columns[EFFECTIVE_TO]}, {end_of_time})"
        columns.setdefault(CURRENT_FLAG, f"{columns[EFFECTIVE_TO]} = {end_of_time}")
    return columns


def with_computed_columns(rows: DataFrame, layout: ColumnLayout) -> DataFrame:
    """Return rows of a table with the generated columns as rows are computed, and with all other columns."""
    if layout.is_default:
        return rows
    computed = computed_columns(layout, rows.columns)
    replaced = {*computed, *(layout.name(name) for name in COMPUTED_COLUMNS)}
    others = [col(name) for name in rows.columns if name not in replaced]
    return rows.select(*others, *[F.expr(expression).alias(name) for name, expression in computed.items()])


def to_stored_columns(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return computed rows, which may have further columns, with the generated columns as the table has them."""
    layout = dimension.column_layout
    if layout.is_default:
        return rows
    columns = []
    for name in rows.columns:
        is_end = name == EFFECTIVE_TO and layout.has_null_end
        value = F.when(col(name) != open_end(dimension), col(name)) if is_end else col(name)
        stored = stored_name(name, layout)
        columns += [value.alias(stored)] if stored is not None else []
    hash_name = layout.name(ROW_HASH)
    if hash_name is not None:
        is_version = ~col(dimension.surrogate_key).isin(list(RESERVED_KEYS))
        columns.append(F.when(is_version, row_hash(dimension)).alias(hash_name))
    return rows.select(*columns)
