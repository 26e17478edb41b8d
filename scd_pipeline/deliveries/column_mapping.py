"""Map the columns of a delivery to key columns and attributes (S20)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Attribute, Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration import Column as DeclaredColumn
from scd_pipeline.deliveries.expressions import DELETES, AnalyzedExpressions
from scd_pipeline.deliveries.row_columns import LINE, PROBLEM, RESERVED

_TypedColumn = tuple[DeclaredColumn, T.DataType]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The mapping of a delivery's columns.

    Attributes:
        fields: All columns of the delivery. (The schema of a frame costs another analysis by Spark.)
        provided: The attributes that the delivery provides.
        missing: The required columns that it lacks.
        undeclared: Its columns that the declaration does not name.
        has_lines: Whether it has the columns `_scd_line` and `_scd_problem`, for records that do not parse.
        columns: The column or expression, and its type, of each key column and each provided attribute.
    """

    fields: tuple[T.StructField, ...]
    provided: tuple[str, ...]
    missing: tuple[str, ...]
    undeclared: tuple[str, ...]
    has_lines: bool = False
    columns: Mapping[str, _TypedColumn] = field(default_factory=dict)

    @property
    def line(self) -> Column:
        """The text of a record that does not parse; NULL for a parsed row."""
        return F.col(LINE) if self.has_lines else F.lit(None).cast("string")

    @property
    def problem(self) -> Column:
        """The reason why a record does not parse; NULL for a parsed row."""
        return F.col(PROBLEM) if self.has_lines else F.lit(None).cast("string")

    def column_type(self, name: str) -> T.DataType:
        """Return the type of a delivered column; case does not matter."""
        return next(field.dataType for field in self.fields if field.name.lower() == name.lower())


@dataclass(frozen=True, slots=True)
class _Delivered:
    """The delivered columns by their names in lower case, and the expressions over them."""

    source: Source
    types: Mapping[str, T.DataType]
    expressions: AnalyzedExpressions

    def column(self, name: str) -> _TypedColumn | None:
        """Return the first existing column of those that an attribute is read from, or its expression."""
        column = self.source.column(name)
        if column.expression:
            unresolved = name in self.expressions.unresolved
            return None if unresolved else (column, self.expressions.types[name])
        first = next((candidate for candidate in column.from_ if candidate.lower() in self.types), None)
        return None if first is None else (replace(column, from_=(first,)), self.types[first.lower()])

    def missing_column(self, name: str) -> str:
        """Return what the delivery would need for `column` to return one, for an error."""
        return self.expressions.unresolved.get(name) or " or ".join(self.source.column(name).from_)


def map_columns(
    fields: Sequence[T.StructField],
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
    expressions: AnalyzedExpressions,
) -> ColumnMapping:
    """Map the columns of a delivery to key columns and attributes (S20).

    A retired or derived attribute is never read. If the column of an attribute is missing, `missing` of its
    declaration decides; in a feed with partial updates the attribute is not provided. A key column, or a column that
    the channel names, is required.
    """
    own = tuple(field for field in fields if field.name.lower() not in RESERVED)
    delivered = _Delivered(source, {field.name.lower(): field.dataType for field in own}, expressions)
    columns: dict[str, _TypedColumn] = {}
    missing = []
    for name in dimension.key_names:
        if (column := delivered.column(name)) is None:
            missing.append(delivered.missing_column(name))
        else:
            columns[name] = column
    missing += [name for name in _channel_columns(channel) if name.lower() not in delivered.types]
    missing += [text for name, text in expressions.unresolved.items() if name == DELETES]
    provided = []
    for attribute in (a for a in dimension.source_attributes(source.name) if a.is_delivered):
        column = delivered.column(attribute.name)
        fallback = _missing_rule(attribute, channel)
        if column is None and fallback == "reject":
            missing.append(delivered.missing_column(attribute.name))
        if column is None and fallback == "null":
            column = (DeclaredColumn(expression="NULL", default=source.column(attribute.name).default), T.NullType())
        if column is not None:
            columns[attribute.name] = column
            provided.append(attribute.name)
    names = [field.name for field in fields]
    undeclared = undeclared_columns([name for name in names if name not in (LINE, PROBLEM)], source, channel, dimension)
    return ColumnMapping(own, tuple(provided), tuple(missing), undeclared, LINE in names, columns)


def _missing_rule(attribute: Attribute, channel: Snapshot | Feed) -> str:
    is_partial = isinstance(channel, Feed) and channel.updates == "partial"
    return "not_provided" if is_partial else attribute.missing


def _channel_columns(channel: Snapshot | Feed) -> list[str]:
    names = (channel.effective_at, channel.sequence, channel.reason, channel.actor, channel.correlation_id)
    return [name for name in names if name is not None]


def undeclared_columns(
    names: Sequence[str], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> tuple[str, ...]:
    """Return the columns that the declaration neither names nor uses in an expression."""
    targets = [*dimension.key_names, *(a.name for a in dimension.source_attributes(source.name) if not a.derived)]
    used = {candidate.lower() for name in targets for candidate in source.column(name).from_}
    used |= {name.lower() for name in (*_channel_columns(channel), channel.partition) if name}
    expressions = [column.expression or "" for column in source.columns.values()]
    expressions.append((channel.deletes or "") if isinstance(channel, Feed) else "")
    return tuple(name for name in names if name.lower() not in used and not _mentions(expressions, name))


def _mentions(expressions: Sequence[str], column: str) -> bool:
    """Return whether one of the expressions may read the column."""
    pattern = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    return any(pattern.search(expression) for expression in expressions)
