"""Compare the history of a dimension with the expected values of its declaration."""

from __future__ import annotations

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, ExpectedValue
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import first_line, value_error_name
from scd_pipeline.queries import as_of


def unexpected_values(warehouse: Warehouse, dimension: Dimension) -> list[str]:
    """Return a text for each expected value that the history does not have, and for each that cannot be evaluated."""
    compared = {name: _difference(warehouse, dimension, value) for name, value in dimension.expected_values.items()}
    return [f"{name}: {difference}" for name, difference in compared.items() if difference]


def _difference(warehouse: Warehouse, dimension: Dimension, expected: ExpectedValue) -> str:
    """Return how the value of the history differs from the expected one; empty if it does not."""
    rows = as_of(warehouse, dimension, expected.time)
    try:
        value = F.expr(expected.expression)
        is_equal = value.eqNullSafe(F.lit(expected.value)).alias("is_equal")
        (row,) = rows.agg(is_equal, value.cast("string").alias("value")).collect()
    except PySparkException as error:
        reason = value_error_name(error) or (first_line(error) if isinstance(error, AnalysisException) else None)
        if reason is None:
            raise
        return f"cannot be evaluated ({reason})"
    if row["is_equal"]:
        return ""
    # An expression can contain a value without the name of its attribute (S31).
    is_personal = any(attribute.personal for attribute in dimension.attributes)
    actual = "another value" if is_personal else row["value"]
    return f"{actual} as of {expected.as_of}; expected {expected.value}"
