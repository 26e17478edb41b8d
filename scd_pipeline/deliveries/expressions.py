"""Analyze the SQL expressions of a declaration over the columns of a delivery."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.columns import ACTOR, CORRELATION_ID, EFFECTIVE_AT, REASON, SEQUENCE
from scd_pipeline.declaration import Column as DeclaredColumn
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.named_columns import named_columns
from scd_pipeline.expressions import col
from scd_pipeline.texts import join_names

DELETES, ROWS = "_deletes", "_rows"
"""The names of a channel's conditions `deletes` and `rows` among the expressions of columns."""
_NO_OBJECT = "INVALID_EXTRACT_BASE_FIELD_TYPE"
_PATH_IN_EXPRESSION = re.compile(
    r"(?<![\w.'`])`?(?P<column>\w+)`?(?P<steps>(?:\.`?[^\W\d]\w*`?(?!\s*\()|\['[^'\\]+'\])+)"
)
_STEP_OF_PATH = re.compile(r"\.`?(\w+)`?|\['([^'\\]+)'\]")
_UNKNOWN_COLUMN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "FIELD_NOT_FOUND")


@dataclass(frozen=True, slots=True)
class AnalyzedExpressions:
    """The result of the analysis of expressions.

    Attributes:
        types: The type of each expression, by the attribute, key column or column of the channel that it computes.
        unresolved: For each expression that names columns which the delivery lacks, these columns and the expression.
    """

    types: Mapping[str, T.DataType] = field(default_factory=dict)
    unresolved: Mapping[str, str] = field(default_factory=dict)


def channel_columns(channel: Snapshot | Feed) -> dict[str, DeclaredColumn]:
    """Return the columns that a channel reads in addition to attributes and key columns, by names of their own."""
    columns = {sequence_part(index): column for index, column in enumerate(channel.sequence_columns)}
    if channel.time_column is not None:
        columns[EFFECTIVE_AT] = channel.time_column
    texts = {REASON: channel.reason, ACTOR: channel.actor, CORRELATION_ID: channel.correlation_id}
    texts |= {control_column(name): column for name, column in channel.control_columns.items()}
    return {**columns, **{name: DeclaredColumn(text) for name, text in texts.items() if text}}


def channel_conditions(channel: Snapshot | Feed) -> dict[str, str]:
    """Return the SQL of the conditions that a channel declares, by names of their own."""
    return {f"_{option}": text for option, text in channel.conditions.items()}


def sequence_part(index: int) -> str:
    """Return the name of a part of the sequence among a channel's columns."""
    return f"{SEQUENCE}_{index}"


def control_column(name: str) -> str:
    """Return the name of a control total among a channel's columns."""
    return f"control_totals.{name}"


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
    expressions = {**_declared_expressions(source, channel, dimension), **channel_conditions(channel)}
    if not expressions:
        return AnalyzedExpressions()
    try:
        return AnalyzedExpressions(_types(frame, expressions))
    except AnalysisException:
        return _analyze_separately(frame, expressions)


def objects_of_nulls(
    frame: DataFrame,
    names: Collection[str],
    error: AnalysisException,
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
) -> dict[str, T.StructType]:
    """Return the types of columns that are NULL in all rows, if expressions read values inside of them.

    A field of JSON that is null in all rows has the type text. The types are those that the expressions need.

    Args:
        frame: The rows.
        names: The columns of text that may be such fields.
        error: The error of the analysis of the expressions; no type is returned for another one.
        source, channel, dimension: The declaration.
    """
    if error.getCondition() != _NO_OBJECT or not names:
        return {}
    texts = {**_declared_expressions(source, channel, dimension), **channel_conditions(channel)}.values()
    paths = [names_in_path(match) for text in texts for match in _PATH_IN_EXPRESSION.finditer(text)]
    inner = {name: [path[1:] for path in paths if path[0].lower() == name.lower()] for name in names}
    candidates = [name for name, each in inner.items() if each]
    if not candidates:
        return {}
    counts = frame.agg(*[F.count(col(name)).alias(name) for name in candidates]).first()
    return {name: _object_type(inner[name]) for name in candidates if counts is not None and not counts[name]}


def names_in_path(match: re.Match[str]) -> tuple[str, ...]:
    """Return the column of a path and the names inside of it: the groups `column` and `steps` of a match."""
    return (match["column"], *(name or key for name, key in _STEP_OF_PATH.findall(match["steps"])))


def _object_type(paths: Iterable[Sequence[str]]) -> T.StructType:
    """Return the type of an object that has the values at some paths as texts."""
    inner: dict[str, list[Sequence[str]]] = {}
    for first, *rest in paths:
        inner.setdefault(first.lower(), []).extend([rest] if rest else [])
    types = {name: _object_type(each) if each else T.StringType() for name, each in inner.items()}
    return T.StructType([T.StructField(name, each) for name, each in types.items()])


def _declared_expressions(source: Source, channel: Snapshot | Feed, dimension: Dimension) -> dict[str, str]:
    names = (
        *dimension.delivered_key_names,
        *(a.name for a in dimension.source_attributes(source.name) if a.is_delivered),
    )
    columns = {**{name: source.column(name) for name in names}, **channel_columns(channel)}
    return {name: column.expression for name, column in columns.items() if column.expression}


def times_in_utc(
    frame: DataFrame, source: Source, channel: Snapshot | Feed, dimension: Dimension, analyzed: AnalyzedExpressions
) -> list[str]:
    """Return the columns of type timestamp whose expressions compute times in UTC, and not in the source's zone (S1).

    Spark reads a text as a time in the zone of the session, which is UTC. Only an expression that returns times of the
    delivery as they are, such as the first of two columns, is right in another zone. It returns a time without a zone
    if the times of the delivery have none, which is how it is recognized.
    """
    if source.timezone == "UTC":
        return []
    texts = {
        name: text
        for name, text in _declared_expressions(source, channel, dimension).items()
        if isinstance(analyzed.types.get(name), T.TimestampType) and _is_timestamp(name, channel, dimension)
    }
    if not texts:
        return []
    local = frame.select(*[F.lit(None).cast(_local(f.dataType)).alias(f.name) for f in frame.schema.fields])
    types = _types(local, texts)
    return [column_label(name) for name in texts if isinstance(types[name], T.TimestampType)]


def _is_timestamp(name: str, channel: Snapshot | Feed, dimension: Dimension) -> bool:
    """Return whether the declared type of a key column, an attribute or a column of the channel is a timestamp."""
    types = {**{key.name: key.type for key in dimension.business_key}, **{a.name: a.type for a in dimension.attributes}}
    sequences = dict.fromkeys(map(sequence_part, range(len(channel.sequence_columns))), str(channel.sequence_type))
    return {**types, **sequences, EFFECTIVE_AT: "timestamp"}.get(name) == "timestamp"


def _local(data_type: T.DataType) -> T.DataType:
    """Return the type with times that have no zone in place of instants."""
    match data_type:
        case T.TimestampType():
            return T.TimestampNTZType()
        case T.StructType(fields=fields):
            return T.StructType([T.StructField(field.name, _local(field.dataType)) for field in fields])
        case T.ArrayType(elementType=element):
            return T.ArrayType(_local(element))
        case T.MapType(keyType=key, valueType=value):
            return T.MapType(_local(key), _local(value))
        case _:
            return data_type


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
            others = named_columns(text) - {each.lower() for each in (*frame.columns, column, column.partition(".")[0])}
            label = column_label(name)
            expression = f"the expression of {label}" if label == name else f"`{label}`"
            unresolved[name] = f"{join_names([column, *sorted(others)])} (in {expression})"
    return AnalyzedExpressions(types, unresolved)


def _types(frame: DataFrame, expressions: Mapping[str, str]) -> dict[str, T.DataType]:
    schema = frame.select(*[F.expr(text).alias(name) for name, text in expressions.items()]).schema
    return {name: field.dataType for name, field in zip(expressions, schema.fields, strict=True)}


def guard(expression: str) -> Column:
    """Return whether an expression fails for a row, as a cast of a malformed text does.

    `try_to_binary` is NULL if its argument fails, and Spark has no other function of which that is true for every
    argument. Generated code evaluates parts that an expression has twice beforehand, unless they are conditional; so it
    is in a condition that is always true.
    """
    attempt = F.expr(f"try_to_binary(to_json(struct({expression} AS v)), 'utf-8')")
    return F.when(F.spark_partition_id() >= 0, attempt).isNull()
