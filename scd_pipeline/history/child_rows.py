"""The rows of a child table: the elements of an array of structs in each version (S40)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration.child_tables import ChildTable
from scd_pipeline.expressions import col

_PARENT, _ARRAY, _ELEMENT = "_parent", "_array", "_element"


def child_rows(versions: DataFrame, child: ChildTable) -> DataFrame:
    """Return a row for each element of the arrays in these versions; none for an array that is NULL or empty.

    Args:
        versions: Rows with the surrogate key and the attribute.
        child: The child table.

    Returns:
        The columns of the child table. The fields of an element that is NULL are NULL. The key of a row is the key of
        its parent row, the surrogate key if that is the version itself, with the position after a dot.
    """
    attribute, *fields = child.path
    root_key = col(child.root_key)
    rows = _elements(versions.select(root_key, root_key.alias(_PARENT), col(attribute).alias(_ARRAY)), child)
    for field in fields:
        array = F.col(_ELEMENT).getField(field)
        rows = _elements(rows.select(root_key, col(child.key).alias(_PARENT), array.alias(_ARRAY)), child)
    parent = [F.col(_PARENT).alias(child.parent_key)] if fields else []
    values = [F.col(_ELEMENT).getField(name).alias(name) for name, _ in child.fields]
    return rows.select(root_key, *parent, col(child.key), col(child.position), *values)


def _elements(rows: DataFrame, child: ChildTable) -> DataFrame:
    """Return the elements of `_array` with their keys and positions."""
    exploded = rows.select(col(child.root_key), F.col(_PARENT), F.posexplode(_ARRAY).alias(child.position, _ELEMENT))
    return exploded.withColumn(child.key, F.concat_ws(".", F.col(_PARENT), col(child.position)))
