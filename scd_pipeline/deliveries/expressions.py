"""Analyze the SQL expressions of a declaration over the columns of a delivery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source

DELETES = "_deletes"
"""The name of a feed's expression `deletes` among those of columns."""
_UNKNOWN_COLUMN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "FIELD_NOT_FOUND")


@dataclass(frozen=True, slots=True)
class AnalyzedExpressions:
    """The result of the analysis of expressions.

    Attributes:
        types: The type of each expression, by the attribute or key column that it computes.
        unresolved: For each expression that names a column which the delivery lacks, that column and the expression.
    """

    types: Mapping[str, T.DataType] = field(default_factory=dict)
    unresolved: Mapping[str, str] = field(default_factory=dict)


def analyze_expressions(
    frame: DataFrame, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> AnalyzedExpressions:
    """Analyze the expressions of a source over a frame, without computing a row.

    Raises:
        AnalysisException: An expression is invalid for another reason than an unknown column.
    """
    names = (*dimension.key_names, *(a.name for a in dimension.source_attributes(source.name) if a.is_delivered))
    expressions = {name: text for name in names if (text := source.column(name).expression)}
    if isinstance(channel, Feed) and channel.deletes:
        expressions[DELETES] = channel.deletes
    if not expressions:
        return AnalyzedExpressions()
    try:
        return AnalyzedExpressions(_types(frame, expressions))
    except AnalysisException:
        return _analyze_separately(frame, expressions)


def _analyze_separately(frame: DataFrame, expressions: Mapping[str, str]) -> AnalyzedExpressions:
    types: dict[str, T.DataType] = {}
    unresolved: dict[str, str] = {}
    for name, text in expressions.items():
        try:
            types |= _types(frame, {name: text})
        except AnalysisException as error:
            if error.getCondition() not in _UNKNOWN_COLUMN:
                raise
            parameters = error.getMessageParameters() or {}
            column = str(parameters.get("objectName") or parameters.get("fieldName")).replace("`", "")
            expression = "`deletes`" if name == DELETES else f"the expression of {name}"
            unresolved[name] = f"{column} (in {expression})"
    return AnalyzedExpressions(types, unresolved)


def _types(frame: DataFrame, expressions: Mapping[str, str]) -> dict[str, T.DataType]:
    schema = frame.select(*[F.expr(text).alias(name) for name, text in expressions.items()]).schema
    return {name: field.dataType for name, field in zip(expressions, schema.fields, strict=True)}
