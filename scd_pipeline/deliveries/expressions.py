"""Analyze the SQL expressions of a declaration over the columns of a delivery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.columns import ACTOR, CORRELATION_ID, EFFECTIVE_AT, REASON, SEQUENCE
from scd_pipeline.declaration import Column as DeclaredColumn
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source

DELETES, ROWS = "_deletes", "_rows"
"""The names of a channel's conditions `deletes` and `rows` among the expressions of columns."""
_UNKNOWN_COLUMN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "FIELD_NOT_FOUND")


@dataclass(frozen=True, slots=True)
class AnalyzedExpressions:
    """The result of the analysis of expressions.

    Attributes:
        types: The type of each expression, by the attribute, key column or column of the channel that it computes.
        unresolved: For each expression that names a column which the delivery lacks, that column and the expression.
    """

    types: Mapping[str, T.DataType] = field(default_factory=dict)
    unresolved: Mapping[str, str] = field(default_factory=dict)


def channel_columns(channel: Snapshot | Feed) -> dict[str, DeclaredColumn]:
    """Return the columns that a channel reads in addition to attributes and key columns, by names of their own."""
    columns = {sequence_part(index): column for index, column in enumerate(channel.sequence_columns)}
    if channel.time_column is not None:
        columns[EFFECTIVE_AT] = channel.time_column
    texts = {REASON: channel.reason, ACTOR: channel.actor, CORRELATION_ID: channel.correlation_id}
    return {**columns, **{name: DeclaredColumn(text) for name, text in texts.items() if text}}


def sequence_part(index: int) -> str:
    """Return the name of a part of the sequence among a channel's columns."""
    return f"{SEQUENCE}_{index}"


def column_label(name: str) -> str:
    """Return the option or the column whose value an expression computes, for messages."""
    option = "sequence" if name.startswith(f"{SEQUENCE}_") else name.removeprefix("_")
    return option if name in (DELETES, ROWS, EFFECTIVE_AT) or name.startswith(f"{SEQUENCE}_") else name


def analyze_expressions(
    frame: DataFrame, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> AnalyzedExpressions:
    """Analyze the expressions of a source over a frame, without computing a row.

    Raises:
        AnalysisException: An expression is invalid for another reason than an unknown column.
    """
    names = (*dimension.key_names, *(a.name for a in dimension.source_attributes(source.name) if a.is_delivered))
    columns = {**{name: source.column(name) for name in names}, **channel_columns(channel)}
    expressions = {name: column.expression for name, column in columns.items() if column.expression}
    expressions |= {name: text for name, text in ((DELETES, channel.deletes), (ROWS, channel.rows)) if text}
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
            label = column_label(name)
            expression = f"the expression of {label}" if label == name else f"`{label}`"
            unresolved[name] = f"{column} (in {expression})"
    return AnalyzedExpressions(types, unresolved)


def _types(frame: DataFrame, expressions: Mapping[str, str]) -> dict[str, T.DataType]:
    schema = frame.select(*[F.expr(text).alias(name) for name, text in expressions.items()]).schema
    return {name: field.dataType for name, field in zip(expressions, schema.fields, strict=True)}
