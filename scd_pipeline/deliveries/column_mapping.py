"""Map the columns of a delivery to key columns and attributes (S20)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Attribute, Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration import Column as DeclaredColumn
from scd_pipeline.declaration.debezium import ENVELOPE, UNAVAILABLE_VALUES
from scd_pipeline.declaration.names import column_name, quote_path, readable_names
from scd_pipeline.deliveries.expressions import DELETES, ROWS, AnalyzedExpressions, channel_columns, names_in_path
from scd_pipeline.deliveries.named_columns import named_columns
from scd_pipeline.deliveries.row_columns import LINE, PROBLEM, RESERVED
from scd_pipeline.deliveries.row_fields import RowFields, inner_type
from scd_pipeline.expressions import any_of, col, with_columns

_PATH = re.compile(r"`?(?P<column>\w+)`?(?P<steps>(?:\.`?\w+`?|\['[^'\\]+'\])+)")

_TypedColumn = tuple[DeclaredColumn, T.DataType]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The mapping of a delivery's columns.

    Attributes:
        fields: All columns of the delivery. (The schema of a frame costs another analysis by Spark.)
        provided: The attributes that the delivery provides.
        missing: The columns that it lacks, as text, by the required key column, attribute or column of the channel.
        undeclared: Its columns that the declaration does not name.
        has_lines: Whether it has the columns `_scd_line` and `_scd_problem`, for records that do not parse.
        columns: The column or expression, and its type, of each key column, each provided attribute and each column of
            the channel.
        guarded: By the name of an expression, the columns with its value and with whether it fails for the row; empty
            unless an expression is known to fail for a row.
        row_fields: The fields that its rows may lack.
        required: The columns that the expression of a key column, an attribute or a column of the channel names; a row
            that lacks one of them lacks the attribute.
        paths: The column and the names inside of it, of those expressions that are nothing but such a path.
        lacking: The provided attributes whose fields all of its rows lack.
        sparse: The provided attributes that a row may leave out.
        replaceable: The columns that an attribute's expression names and that may have a placeholder of the format.
    """

    fields: tuple[T.StructField, ...]
    provided: tuple[str, ...]
    missing: Mapping[str, str]
    undeclared: tuple[str, ...]
    has_lines: bool = False
    columns: Mapping[str, _TypedColumn] = field(default_factory=dict)
    guarded: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    row_fields: RowFields = field(default_factory=RowFields)
    required: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lacking: frozenset[str] = frozenset()
    sparse: tuple[str, ...] = ()
    replaceable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def condition(self, name: str, text: str) -> Column:
        """Return a condition of the channel by its name and its text; NULL if it fails for the row."""
        return F.col(self.guarded[name][0]) if name in self.guarded else F.expr(text)

    def fails(self, name: str) -> Column:
        """Return whether the expression of this name fails for the row."""
        return F.col(self.guarded[name][1]) if name in self.guarded else F.lit(False)

    def is_replaced(self, name: str) -> Column | None:
        """Return whether a column that an expression names has a placeholder of the format; None if none may have."""
        types = {field.name.lower(): field.dataType for field in self.fields}
        texts = [self.row_fields.text(column, types[column.lower()]) for column in self.replaceable.get(name, ())]
        is_placeholder = [F.coalesce(text.isin(list(UNAVAILABLE_VALUES)), F.lit(False)) for text in texts]
        return any_of(is_placeholder) if texts else None

    def has_path(self, name: str) -> Column | None:
        """Return whether a row has the value of an expression that is a path; None if each row has it."""
        path = self.paths.get(name)
        types = {field.name.lower(): field.dataType for field in self.fields}
        data_type = types.get(path[0].lower()) if path else None
        return self.row_fields.has_path(path, data_type) if path and data_type is not None else None

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
    """The delivered columns by their names in lower case, and the expressions over them.

    `delivered_names` are the names that a column cannot have, by their readable names in lower case.
    """

    source: Source
    types: Mapping[str, T.DataType]
    delivered_names: Mapping[str, str]
    expressions: AnalyzedExpressions
    row_fields: RowFields

    def column(self, name: str, declared: DeclaredColumn) -> _TypedColumn | None:
        """Return the first existing one of the columns that `name` is read from, or its expression.

        If rows have fields of their own, all existing columns are returned: the first that a row has is read.
        """
        if declared.expression:
            unresolved = name in self.expressions.unresolved
            return None if unresolved else (declared, self.expressions.types[name])
        declared = replace(declared, from_=tuple(map(self.delivered_name, declared.from_)))
        candidates = (self._existing(candidate, declared) for candidate in declared.from_)
        matches = [match for match in candidates if match is not None]
        if not matches:
            return None
        texts = ".".join(self.path_into_text(declared))
        names = [name for name in declared.from_ if name == texts or self._existing(name, declared) is not None]
        is_by_row = len(names) > 1 and self.row_fields.lacks(names[0].partition(".")[0])
        return (replace(declared, from_=tuple(names)), matches[0][1]) if is_by_row else matches[0]

    def delivered_name(self, name: str) -> str:
        """Return the name of the delivered column that is found by a name; the same name without such a column."""
        return self.delivered_names.get(name.lower(), name)

    def named_by(self, expression: str, fields: Sequence[T.StructField]) -> tuple[str, ...]:
        """Return the columns of the delivery that an expression names."""
        names = {self.delivered_name(name).lower() for name in named_columns(expression)}
        return tuple(field.name for field in fields if field.name.lower() in names)

    def _existing(self, name: str, declared: DeclaredColumn) -> _TypedColumn | None:
        """Return the column of this name; without one, the value inside of a column at this path, as an expression."""
        if name.lower() in self.types:
            return replace(declared, from_=(name,)), self.types[name.lower()]
        value = value_at_path(name, self.types)
        return value and (replace(declared, from_=(), expression=value[0]), value[1])

    def path_into_text(self, declared: DeclaredColumn) -> tuple[str, ...]:
        """Return the first path into a column without objects, if rows have fields of their own; else an empty one.

        A field of objects is text, or has no type, in a delivery whose objects are all NULL.
        """
        paths = (tuple(name.split(".")) for name in declared.from_ if "." in name)
        texts = {name for name, each in self.types.items() if isinstance(each, T.StringType | T.NullType)}
        return next((path for path in paths if self.row_fields.lacks(path[0]) and path[0].lower() in texts), ())

    def missing_column(self, name: str, declared: DeclaredColumn) -> str:
        """Return what the delivery would need for `column` to return one, for an error."""
        return self.expressions.unresolved.get(name) or " or ".join(declared.from_)


def map_columns(
    fields: Sequence[T.StructField],
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
    expressions: AnalyzedExpressions,
    unread: Sequence[str] = (),
) -> ColumnMapping:
    """Map the columns of a delivery to key columns and attributes (S20).

    A retired or derived attribute is never read. If the column of an attribute is missing, `missing` of its
    declaration decides; in a feed with partial updates the attribute is not provided. A key column, or a column that
    the channel names, is required.

    Args:
        fields: The columns of the delivery.
        source: The source.
        channel: The channel.
        dimension: The declaration.
        expressions: Its expressions, analyzed over the columns.
        unread: The names of undeclared columns of the delivery that are not in `fields`, as they cannot be read.
    """
    own = tuple(field for field in fields if field.name.lower() not in RESERVED)
    types = {field.name.lower(): field.dataType for field in own}
    delivered_names = {each.lower(): name for name, each in readable_names([field.name for field in own]).items()}
    delivered = _Delivered(source, types, delivered_names, expressions, RowFields.from_columns(fields))
    columns: dict[str, _TypedColumn] = {}
    missing: dict[str, str] = {}
    required = {**{name: source.column(name) for name in dimension.delivered_key_names}, **channel_columns(channel)}
    for name, declared in required.items():
        if (column := delivered.column(name, declared)) is None:
            missing[name] = delivered.missing_column(name, declared)
        else:
            columns[name] = column
    missing |= {name: text for name, text in expressions.unresolved.items() if name in (DELETES, ROWS)}
    attributes = [a for a in dimension.source_attributes(source.name) if a.is_delivered]
    lacking, paths = set(), {}
    for attribute in attributes:
        declared = _attribute_column(attribute, source, channel, dimension)
        column = delivered.column(attribute.name, declared)
        rule = missing_rule(attribute, channel)
        if column is None and rule == "reject" and not _decides_by_row(delivered, channel, dimension):
            missing[attribute.name] = delivered.missing_column(attribute.name, declared)
        elif column is None and rule != "not_provided":
            column = _null_column(declared)
            lacking.add(attribute.name)
        elif column is None and (path := delivered.path_into_text(declared)):
            column, paths[attribute.name] = (_null_column(declared), path)
        if column is not None:
            columns[attribute.name] = column
    provided = [attribute for attribute in attributes if attribute.name in columns]
    paths |= {name: path for name, (column, _) in columns.items() if (path := _path(column.expression or ""))}
    sparse = [a.name for a in provided if _is_sparse(a, columns[a.name][0], channel, delivered, paths)]
    names = [*(field.name for field in own), *unread]
    superseded = {
        name.lower()
        for attribute in provided
        for name in former_columns(attribute, source, channel, dimension)
        if delivered.delivered_name(name) not in columns[attribute.name][0].from_
    }
    needed = {
        name: paths[name][:1] if name in paths else delivered.named_by(column.expression or "", own)
        for name, (column, _) in columns.items()
    }
    return ColumnMapping(
        own,
        tuple(attribute.name for attribute in provided),
        missing,
        _reported_columns(names, source, channel, dimension, superseded),
        any(field.name == LINE for field in fields),
        columns,
        row_fields=delivered.row_fields,
        paths=paths,
        required=needed,
        lacking=frozenset(lacking),
        sparse=tuple(sparse),
        replaceable=_replaceable([attribute.name for attribute in provided], needed, channel),
    )


def _null_column(declared: DeclaredColumn) -> _TypedColumn:
    """Return the column NULL for an attribute that no row has a value of."""
    return DeclaredColumn(expression="NULL", default=declared.default), T.NullType()


def former_columns(
    attribute: Attribute, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> tuple[str, ...]:
    """Return the former names of an attribute that deliveries from before its renaming may have (S20).

    A name that the declaration reads as something else is not one of them, nor is any if an expression is declared.
    """
    if source.column(attribute.name).expression:
        return ()
    targets = (*dimension.delivered_key_names, *(each.name for each in dimension.source_attributes(source.name)))
    columns = (*channel.column_names, *(name for target in targets for name in source.column(target).from_))
    used = {name.casefold() for name in columns}
    return tuple(name for name in attribute.former_names if name.casefold() not in used)


def _attribute_column(
    attribute: Attribute, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> DeclaredColumn:
    """Return how an attribute is read: from its declared columns, or else from its former names (S20).

    The channel's format may have a placeholder for values that did not change.
    """
    declared = source.column(attribute.name)
    declared = replace(declared, from_=(*declared.from_, *former_columns(attribute, source, channel, dimension)))
    if channel.format != "debezium":
        return declared
    return replace(declared, not_provided_values=(*declared.not_provided_values, *UNAVAILABLE_VALUES))


def _replaceable(
    attributes: Sequence[str], required: Mapping[str, tuple[str, ...]], channel: Snapshot | Feed
) -> dict[str, tuple[str, ...]]:
    """Return the columns, of those that expressions name, that may have a placeholder of the channel's format."""
    if channel.format != "debezium":
        return {}
    return {name: tuple(column for column in required[name] if column != ENVELOPE) for name in attributes}


def missing_rule(attribute: Attribute, channel: Snapshot | Feed) -> str:
    """Return what happens if a delivery, or a row of one, lacks the column of an attribute (S20, S30)."""
    is_partial = isinstance(channel, Feed) and channel.updates == "partial"
    return "not_provided" if is_partial else attribute.missing


def _decides_by_row(delivered: _Delivered, channel: Snapshot | Feed, dimension: Dimension) -> bool:
    """Return whether the delivery may consist of deletes alone, whose rows need no attributes."""
    return bool(delivered.row_fields.fields) and dimension.deletes_by_key(channel)


def _is_sparse(
    attribute: Attribute,
    column: DeclaredColumn,
    channel: Snapshot | Feed,
    delivered: _Delivered,
    paths: Mapping[str, tuple[str, ...]],
) -> bool:
    """Return whether a row may leave out an attribute of which other rows of its delivery provide a value."""
    may_lack = bool(delivered.row_fields.fields) or attribute.name in paths
    return (may_lack and missing_rule(attribute, channel) == "not_provided") or bool(column.not_provided_values)


def value_at_path(path: str, types: Mapping[str, T.DataType]) -> tuple[str, T.DataType] | None:
    """Return the expression of the value at a path such as `address.city`, and its type; None without such a value.

    Args:
        path: A column, and the names inside of it.
        types: The types of the columns, by their names in lower case.
    """
    first, *names = path.split(".")
    data_type = types.get(first.lower())
    for name in names:
        data_type = data_type and inner_type(data_type, name)
    return None if data_type is None else (quote_path((first, *names)), data_type)


def undeclared_columns(
    names: Sequence[str], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> tuple[str, ...]:
    """Return the columns that the declaration neither names nor uses in an expression.

    Of a mirrored dimension these are the technical columns, as all others are attributes (S36).
    """
    unread = _unread_columns(names, source, channel, dimension)
    if dimension.mirror is None:
        return unread
    return tuple(name for name in unread if is_named(name, dimension.technical_columns))


def _reported_columns(
    names: Sequence[str],
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
    superseded: Collection[str],
) -> tuple[str, ...]:
    """Return the columns that are reported as undeclared: all that are not read and not declared to be technical.

    A column of a mirrored source is one of them if all of its values are NULL, so that it has no type, or if it is
    technical because of the profile.
    """
    technical = {name.casefold() for name in dimension.mirror.technical} if dimension.mirror else set()
    unread = _unread_columns(names, source, channel, dimension, superseded)
    return tuple(name for name in unread if not is_named(name, technical))


def _unread_columns(
    names: Sequence[str],
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
    superseded: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the columns that no key column, attribute or option of the channel is read from.

    Args:
        names: The columns.
        source, channel, dimension: The declaration, with the attributes of a mirrored dimension.
        superseded: The former names of attributes, in lower case, that a delivery has beside the column that is read.
    """
    attributes = [a for a in dimension.source_attributes(source.name) if not a.derived]
    targets = [*dimension.delivered_key_names, *(a.name for a in attributes)]
    former = {name.lower() for a in attributes for name in former_columns(a, source, channel, dimension)}
    unused, readable = unused_columns(names, source, channel, targets), readable_names(names)
    return tuple(name for name in unused if readable.get(name, name).lower() not in former.difference(superseded))


def unused_columns(
    names: Sequence[str], source: Source, channel: Snapshot | Feed, targets: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns that are not read for key columns, attributes and options of the channel.

    Args:
        names: The columns of a delivery.
        source: The source.
        channel: The channel.
        targets: The key columns and the attributes.
    """
    used = {candidate.lower() for name in targets for candidate in source.column(name).from_}
    used |= {name.lower() for name in (*channel.column_names, channel.partition) if name}
    used |= names_in_expressions(source, channel)
    readable = readable_names(names)
    return tuple(name for name in names if used.isdisjoint((name.lower(), readable.get(name, name).lower())))


def with_readable_columns(
    frame: DataFrame, fields: Sequence[T.StructField], source: Source, channel: Snapshot | Feed
) -> DataFrame:
    """Return the rows of a delivery with the columns that expressions of the declaration name by readable names."""
    readable = readable_names([field.name for field in fields])
    named = names_in_expressions(source, channel) if readable else ()
    return with_columns(frame, {each: col(name) for name, each in readable.items() if each.lower() in named})


def is_named(name: str, folded: Collection[str]) -> bool:
    """Return whether a delivered column, or its readable name, is among case-folded names."""
    return name.casefold() in folded or column_name(name).casefold() in folded


def names_in_expressions(source: Source, channel: Snapshot | Feed) -> frozenset[str]:
    """Return the columns, in lower case, that expressions of the declaration name, or paths into columns."""
    columns = [source.column(name) for name in source.columns]
    paths = [path for column in columns for path in column.from_] + list(channel.column_names)
    expressions = [*(column.expression or "" for column in columns), *channel.expressions]
    inside = {path.partition(".")[0].lower() for path in paths if "." in path}
    return frozenset(inside.union(*map(named_columns, expressions)))


def _path(expression: str) -> tuple[str, ...]:
    """Return the column and the names inside of it if an expression is such a path, as `a.b` or `a['b']`; else none."""
    match = _PATH.fullmatch(expression.strip())
    return names_in_path(match) if match else ()
