"""The range of the business keys that a load concerns, by which Delta and Parquet skip the other stored rows.

Neither skips rows by a join, only by a comparison with constants: Delta skips files by their statistics, and Parquet
skips pages. The keys of new entities often rise, as those of orders and of their customers do, and maintenance arranges
the rows of a large table by key. A load with few keys then reads only a small part of the stored rows.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import Decimal, parse_type
from scd_pipeline.expressions import all_of, col

_MAX_LISTED = 10
"""The largest number of keys that are compared one by one: Spark gives Parquet only the range of longer lists."""
_COMPARABLE = frozenset({"string", "tinyint", "smallint", "int", "bigint", "date"})
_LOWEST, _HIGHEST, _VALUES = "lowest", "highest", "values"


def key_range(entities: DataFrame, row_limit: int, dimension: Dimension) -> Column:
    """Return a condition on the business key that holds for each of the entities, and for as few others as possible.

    The cost is one aggregation of the entities.

    Args:
        entities: Rows with the business key, computed already; keys may be repeated or NULL.
        row_limit: An upper bound of their number.
        dimension: The declaration.

    Returns:
        TRUE if no part of the key has a type by whose statistics rows are skipped without a doubt: text, a whole
        number, a decimal or a date. FALSE if there are no entities, so that nothing is read. NULL or FALSE for a row
        whose key is NULL.
    """
    types = {key.name: parse_type(key.type) for key in dimension.business_key}
    ddl = {name: t.ddl() for name, t in types.items() if isinstance(t, Decimal) or t.ddl() in _COMPARABLE}
    if not ddl:
        return F.lit(True)
    figures = []
    for number, name in enumerate(ddl):
        if row_limit <= _MAX_LISTED:
            figures.append(F.collect_set(_text(col(name))).alias(f"{_VALUES}_{number}"))
        else:
            figures.append(_text(F.min(col(name))).alias(f"{_LOWEST}_{number}"))
            figures.append(_text(F.max(col(name))).alias(f"{_HIGHEST}_{number}"))
    (bounds,) = entities.agg(*figures).collect()
    condition = _is_listed if row_limit <= _MAX_LISTED else _is_between
    return all_of([condition(bounds, number, name, ddl[name]) for number, name in enumerate(ddl)])


def _is_listed(bounds: Row, number: int, name: str, ddl: str) -> Column:
    values = [_literal(value, ddl) for value in sorted(bounds[f"{_VALUES}_{number}"])]
    return col(name).isin(*values) if values else F.lit(False)  # no key, or only NULL, which equals none


def _is_between(bounds: Row, number: int, name: str, ddl: str) -> Column:
    lowest, highest = bounds[f"{_LOWEST}_{number}"], bounds[f"{_HIGHEST}_{number}"]
    if lowest is None:  # as above
        return F.lit(False)
    return (col(name) >= _literal(lowest, ddl)) & (col(name) <= _literal(highest, ddl))


def _text(value: Column) -> Column:
    """Return the value as a text that any process can decode; texts of a column need not be valid UTF-8."""
    return F.hex(value.cast("string").cast("binary"))


def _literal(text: str, ddl: str) -> Column:
    """Return the value of `_text`; Spark computes it before it plans which files to read."""
    return F.unhex(F.lit(text)).cast("string").cast(ddl)
