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
from scd_pipeline.deliveries.expressions import DELETES, ROWS, AnalyzedExpressions, channel_columns
from scd_pipeline.deliveries.row_columns import LINE, PROBLEM, RESERVED
from scd_pipeline.expressions import quote_name

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
        columns: The column or expression, and its type, of each key column, each provided attribute and each column of
            the channel.
        guarded: By the name of an expression, the columns with its value and with whether it fails for the row; empty
            unless an expression is known to fail for a row.
    """

    fields: tuple[T.StructField, ...]
    provided: tuple[str, ...]
    missing: tuple[str, ...]
    undeclared: tuple[str, ...]
    has_lines: bool = False
    columns: Mapping[str, _TypedColumn] = field(default_factory=dict)
    guarded: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def condition(self, name: str, text: str) -> Column:
        """Return a condition of the channel by its name and its text; NULL if it fails for the row."""
        return F.col(self.guarded[name][0]) if name in self.guarded else F.expr(text)

    def fails(self, name: str) -> Column:
        """Return whether the expression of this name fails for the row."""
        return F.col(self.guarded[name][1]) if name in self.guarded else F.lit(False)

    @property
    def line(self) -> Column:
        """The text of a record that does not parse; NULL for a parsed row."""
        return F.col(LINE) if self.has_lines else F.lit(None).cast("string")

    @property
    def problem(self) -> Column:
        """The reason why a record does not parse; NULL for a parsed row."""
        return F.col(PROBLEM) if self.has_lines else F.lit(None).cast("string")


@dataclass(frozen=True, slots=True)
class _Delivered:
    """The delivered columns by their names in lower case, and the expressions over them."""

    source: Source
    types: Mapping[str, T.DataType]
    expressions: AnalyzedExpressions

    def column(self, name: str, declared: DeclaredColumn) -> _TypedColumn | None:
        """Return the first existing one of the columns that `name` is read from, or its expression."""
        if declared.expression:
            unresolved = name in self.expressions.unresolved
            return None if unresolved else (declared, self.expressions.types[name])
        matches = (self._existing(candidate, declared) for candidate in declared.from_)
        return next((match for match in matches if match is not None), None)

    def _existing(self, name: str, declared: DeclaredColumn) -> _TypedColumn | None:
        """Return the column of this name; without one, the field inside of a struct at this path, as an expression."""
        if name.lower() in self.types:
            return replace(declared, from_=(name,)), self.types[name.lower()]
        first, *fields = name.split(".")
        data_type = self.types.get(first.lower())
        for field_name in fields:
            inner = data_type.fields if isinstance(data_type, T.StructType) else []
            data_type = next((f.dataType for f in inner if f.name.lower() == field_name.lower()), None)
        if data_type is None:
            return None
        path = ".".join(quote_name(part) for part in (first, *fields))
        return replace(declared, from_=(), expression=path), data_type

    def missing_column(self, name: str, declared: DeclaredColumn) -> str:
        """Return what the delivery would need for `column` to return one, for an error."""
        return self.expressions.unresolved.get(name) or " or ".join(declared.from_)


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
    required = {**{name: source.column(name) for name in dimension.key_names}, **channel_columns(channel)}
    for name, declared in required.items():
        if (column := delivered.column(name, declared)) is None:
            missing.append(delivered.missing_column(name, declared))
        else:
            columns[name] = column
    missing += [text for name, text in expressions.unresolved.items() if name in (DELETES, ROWS)]
    provided = []
    for attribute in (a for a in dimension.source_attributes(source.name) if a.is_delivered):
        declared = source.column(attribute.name)
        column = delivered.column(attribute.name, declared)
        fallback = _missing_rule(attribute, channel)
        if column is None and fallback == "reject":
            missing.append(delivered.missing_column(attribute.name, declared))
        if column is None and fallback == "null":
            column = (DeclaredColumn(expression="NULL", default=declared.default), T.NullType())
        if column is not None:
            columns[attribute.name] = column
            provided.append(attribute.name)
    names = [field.name for field in fields]
    undeclared = undeclared_columns([name for name in names if name not in (LINE, PROBLEM)], source, channel, dimension)
    return ColumnMapping(own, tuple(provided), tuple(missing), undeclared, LINE in names, columns)


def _missing_rule(attribute: Attribute, channel: Snapshot | Feed) -> str:
    is_partial = isinstance(channel, Feed) and channel.updates == "partial"
    return "not_provided" if is_partial else attribute.missing


def undeclared_columns(
    names: Sequence[str], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> tuple[str, ...]:
    """Return the columns that the declaration neither names nor uses in an expression."""
    targets = [*dimension.key_names, *(a.name for a in dimension.source_attributes(source.name) if not a.derived)]
    used = {candidate.lower() for name in targets for candidate in source.column(name).from_}
    used |= {name.lower() for name in (*channel.column_names, channel.partition) if name}
    used |= {name.partition(".")[0] for name in used}
    expressions = [*(column.expression or "" for column in source.columns.values()), *channel.expressions]
    return tuple(name for name in names if name.lower() not in used and not _mentions(expressions, name))


def _mentions(expressions: Sequence[str], column: str) -> bool:
    """Return whether one of the expressions may read the column."""
    pattern = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    return any(pattern.search(expression) for expression in expressions)
