"""The range of the business keys that a load concerns, by which Delta and Parquet skip the other stored rows.

Neither skips rows by a join, only by a comparison with constants: Delta skips files by their statistics, and Parquet
skips pages. The keys of new entities often rise, as keys of orders and of their customers do, and maintenance arranges
the rows of a large table by key. A load with few keys then reads only a small part of the stored rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import Decimal, parse_type
from scd_pipeline.expressions import all_of, col

_MAX_LISTED = 10
"""The largest number of keys that are compared one by one: Spark gives Parquet only the range of longer lists."""
_COMPARABLE = frozenset({"string", "tinyint", "smallint", "int", "bigint", "date"})
_LOWEST, _HIGHEST, _VALUES, _UNLISTED = "lowest", "highest", "values", "unlisted"


def key_range(entities: DataFrame, row_limit: int, dimension: Dimension) -> Column:
    """Return a condition on the business key that holds for each of the entities (`is_in_range`).

    The cost is one aggregation of the entities.

    Args:
        entities: Rows with the business key, computed already; keys may be repeated or NULL.
        row_limit: An upper bound of their number.
        dimension: The declaration.
    """
    figures = range_figures(F.lit(True), F.lit(row_limit <= _MAX_LISTED), dimension)
    (values,) = entities.agg(*[figure.alias(name) for name, figure in figures.items()]).collect()
    return is_in_range(values.asDict(), dimension)


def range_figures(is_counted: Column, is_listed: Column, dimension: Dimension) -> dict[str, Column]:
    """Return the aggregates over rows with the business key that `is_in_range` needs, by name.

    Args:
        is_counted: Whether the key of a row is in the range.
        is_listed: Whether the key is listed by itself; false for all but some of many rows.
        dimension: The declaration.
    """
    figures = {_UNLISTED: F.count_if(is_counted & ~is_listed)}
    for number, name in enumerate(_comparable_parts(dimension)):
        key = F.when(is_counted, col(name))
        figures[f"{_VALUES}_{number}"] = F.collect_set(F.when(is_listed, _text(key)))
        figures[f"{_LOWEST}_{number}"] = _text(F.min(key))
        figures[f"{_HIGHEST}_{number}"] = _text(F.max(key))
    return figures


def is_in_range(values: Mapping[str, Any], dimension: Dimension) -> Column:
    """Return a condition on the business key that holds for each counted row, and for as few others as possible.

    Args:
        values: The values of `range_figures`.
        dimension: The declaration.

    Returns:
        TRUE if no part of the key has a type by whose statistics rows are skipped without a doubt: text, a whole
        number, a decimal or a date. FALSE if there are no rows, so that nothing is read. NULL or FALSE for a row whose
        key is NULL.
    """
    parts = enumerate(_comparable_parts(dimension).items())
    return all_of([_is_part_in_range(values, number, name, ddl) for number, (name, ddl) in parts])


def _comparable_parts(dimension: Dimension) -> dict[str, str]:
    """Return the types of the parts of the key that are compared, by name."""
    types = {key.name: parse_type(key.type) for key in dimension.business_key}
    return {name: t.ddl() for name, t in types.items() if isinstance(t, Decimal) or t.ddl() in _COMPARABLE}


def _is_part_in_range(values: Mapping[str, Any], number: int, name: str, ddl: str) -> Column:
    lowest, highest = values[f"{_LOWEST}_{number}"], values[f"{_HIGHEST}_{number}"]
    if lowest is None:  # no key, or only NULL, which equals none
        return F.lit(False)
    listed = sorted(values[f"{_VALUES}_{number}"] or ())
    if not values[_UNLISTED] and len(listed) <= _MAX_LISTED:
        return col(name).isin(*[_literal(value, ddl) for value in listed])
    return (col(name) >= _literal(lowest, ddl)) & (col(name) <= _literal(highest, ddl))


def _text(value: Column) -> Column:
    """Return the value as a text that any process can decode; texts of a column need not be valid UTF-8."""
    return F.hex(value.cast("string").cast("binary"))


def _literal(text: str, ddl: str) -> Column:
    """Return the value of `_text`; Spark computes it before it plans which files to read."""
    return F.unhex(F.lit(text)).cast("string").cast(ddl)
