"""NaN in frames of pandas, which has no other NULL in a column of floats."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.expressions import col, with_columns

_WITH_NAN = ("float", "double")


def with_nan_as_declared(frame: DataFrame, delivered: Any, mapping: ColumnMapping, dimension: Dimension) -> DataFrame:
    """Return the rows of a pandas frame with NaN only where an attribute of floats is read, and NULL elsewhere.

    A column of whole numbers in which some are missing is one of floats with NaN there. In an attribute of floats NaN
    is a value, as in the frames of Spark and Arrow (S8). Rows of another frame are returned unchanged.

    Args:
        frame: The rows.
        delivered: The frame as it was delivered.
        mapping: The columns that are read.
        dimension: The declaration.
    """
    if not hasattr(delivered, "iloc"):
        return frame
    floats = [each.name for each in dimension.attributes if each.type in _WITH_NAN and each.name in mapping.columns]
    with_nan = {name.casefold() for each in floats for name in mapping.columns[each][0].from_}
    others = [
        field.name
        for field in mapping.fields
        if isinstance(field.dataType, T.FloatType | T.DoubleType) and field.name.casefold() not in with_nan
    ]
    return with_columns(frame, {name: F.when(~F.isnan(col(name)), col(name)) for name in others})
