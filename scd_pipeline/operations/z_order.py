"""How maintenance arranges the rows of a dimension: a decision by the size of its table."""

from __future__ import annotations

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.delta.schema import has_statistics

LARGE_TABLE_ROWS = 1_000_000
"""The number of rows from which a table has several files, some of which a query on the key can skip.

With fewer rows, the files of a partition would be too small.
"""


def z_order_columns(dimension: Dimension, rows: int) -> tuple[str, ...]:
    """Return the columns by which maintenance arranges the rows, so that queries on them skip files (Z-order).

    Loads write rows as they come and arrange nothing, so that their cost follows the change.

    Args:
        dimension: The declaration; its option `z_order` decides, by default by the size.
        rows: The number of rows of its table.

    Returns:
        The columns of the business key by which Delta can skip files; none if the files are only combined.
    """
    is_large = rows >= LARGE_TABLE_ROWS
    if dimension.z_order == "never" or (dimension.z_order == "automatic" and not is_large):
        return ()
    return tuple(key.name for key in dimension.business_key if has_statistics(parse_type(key.type).ddl()))
