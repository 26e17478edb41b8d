"""Conform delivered rows to change records, and identify bad rows (S1, S4, S20, S26, S30).

The input has the columns that the source delivers, and the columns of `row_columns`. The output has the columns of
change records (differences.py); a bad row has kind "bad", its reason and its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.columns import (
    ACTOR,
    ASSERTED_AT,
    BAD,
    BAD_REASON,
    BAD_ROW,
    BATCH,
    CHANNEL,
    CORRELATION_ID,
    DELETE,
    DELIVERY_RANK,
    EFFECTIVE_AT,
    KIND,
    REASON,
    REVISION_RANK,
    SEQUENCE,
    SOURCE,
    UPSERT,
    attribute_types,
)
from scd_pipeline.declaration import Column as DeclaredColumn
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration.source import SEQUENCE_BITS
from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.deliveries import json_text
from scd_pipeline.deliveries.cast_options import CastOptions
from scd_pipeline.deliveries.casts import MICROSECONDS_IN_JSON, Cast, cast, cast_json
from scd_pipeline.deliveries.column_mapping import ColumnMapping, missing_rule, value_at_path
from scd_pipeline.deliveries.expressions import DELETES, ROWS, column_label, control_column, sequence_part
from scd_pipeline.deliveries.landing_rows import is_outranked, with_row_identity
from scd_pipeline.deliveries.row_columns import (
    ABSENT,
    DELIVERY,
    FILTERED,
    HASH,
    KEY_READABLE,
    LINE,
    NULLED,
    OUTSIDE_SCOPE,
    PROBLEM,
    ROW_ORDER,
    ROW_ORDER_TYPE,
    TOTALS,
    TOTALS_TYPE,
)
from scd_pipeline.deliveries.row_fields import RowFields, value_text
from scd_pipeline.deliveries.time_casts import TIME_TYPES
from scd_pipeline.expressions import any_of, col, key_text, sum_of, with_columns
from scd_pipeline.history.batch import Batch, rank
from scd_pipeline.history.row_hash import whole_row_hash

_IF_A_DIMENSION_LACKS = "declare `missing` of the attribute, or `updates` of the feed"
_IF_A_FACT_LACKS = "name a further column in `from` of the column, or exclude such rows by `rows` of the feed"
_FLOATING = "; a floating-point number has no unique text: declare a numeric type, or `round`"
_CAST_PROBLEMS = "_cast_problems"
_DELETED = "_deleted"
_IS_FILTERED = "_is_filtered"
_DELIVERED = "_delivered"
_NOT_PROVIDED, _CLEARED = "_not_provided", "_cleared"
_SAME_BITS = (T.DateType, T.TimestampType, T.TimestampNTZType, T.BooleanType)
# The name of a binary log's file, which ends in its number of six or more digits.
_LOG_FILE = r"^[A-Za-z][\w.-]*\.(\d{6,18})$"
_WITH_NULLS = {"ignoreNullFields": "false"}
_WITH_MICROSECONDS = {**_WITH_NULLS, **MICROSECONDS_IN_JSON}


def with_content_hash(frame: DataFrame, mapping: ColumnMapping) -> DataFrame:
    """Add `_scd_hash`, 64 bits of each row as delivered; their sum over a batch does not depend on the row order."""
    parts: list[Column] = []
    for field in sorted(mapping.fields, key=lambda field: field.name):
        value = col(field.name)
        parts += [F.lit(_hashed_name(field)), value.isNull(), *_hashed_values(field, mapping.row_fields)]
    row = F.xxhash64(*parts) if parts else F.lit(0).cast("bigint")
    return frame.withColumn(HASH, F.when(mapping.line.isNotNull(), F.xxhash64(mapping.line)).otherwise(row))


def _hashed_values(field: T.StructField, row_fields: RowFields) -> list[Column]:
    token, value = row_fields.token(field.name), col(field.name)
    if token is not None:
        return [token.isNull(), token]
    if _is_nested(field.dataType):
        value = F.to_json(F.struct(value), _WITH_MICROSECONDS)
    if not row_fields.lacks(field.name):
        return [value]
    # Nothing is added for a row that has the field: a NULL leaves a hash as it is. So a list of dicts has the hash of a
    # frame with the same rows.
    return [value, F.when(~row_fields.has(field.name), F.lit(True))]


def _hashed_name(field: T.StructField) -> str:
    """Return the name of a column, with its type if other types have the same bits for other values.

    Spark hashes 150 and 1.50 alike, as decimals without their scale, and times with and without a zone.
    """
    if isinstance(field.dataType, T.DecimalType):
        return f"{field.name}:decimal({field.dataType.scale})"
    return f"{field.name}:{field.dataType.typeName()}" if isinstance(field.dataType, _SAME_BITS) else field.name


def _is_nested(data_type: T.DataType) -> bool:
    """Return whether Spark's hash ignores NULLs inside values of this type, or does not accept the type."""
    return isinstance(data_type, T.StructType | T.ArrayType | T.MapType | T.VariantType)


def conform(
    frame: DataFrame, mapping: ColumnMapping, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> DataFrame:
    """Conform the rows of some deliveries with the same columns to change records.

    A bad row is one with: text that does not parse, NULL in the business key, a value that cannot be cast, a missing
    time or one outside of the dimension's time, or a key outside of its batch's scope. A default replaces NULL first.
    The kind of a row that the condition `rows` excludes is "filtered", and that of a row of a snapshot for which
    `deletes` is true "absent", or "delete" if the scope is an attribute; text that does not parse is a bad row in any
    case. A row that another one of its key precedes by `dedup_sort` is "filtered" too.

    Returns:
        The columns of change records, `_scd_hash`, `_key_readable`, `_scd_nulled`, `_scd_totals`, and `_scd_row_order`,
        which is NULL unless the first or the last row of a file decides ties; the deciding row has the greatest.

    Raises:
        AnalysisException: An expression of the declaration names a column that the frame lacks.
    """
    values = _values(mapping, source, channel, dimension)
    cast_problems = F.concat_ws("; ", *values.problems).alias(_CAST_PROBLEMS)
    record = (
        mapping.line.alias(LINE),
        mapping.problem.alias(PROBLEM),
        _row_order(channel, has_order=_has_row_order(frame, channel, dimension)).alias(ROW_ORDER),
    )
    nulled = values.nulled.alias(NULLED)
    # The text of a row is computed where the row is known to be bad: it costs more than the rest. The columns go there
    # as one struct, because Spark derives constraints for each combination of columns with several names.
    delivered = F.struct(*[col(field.name) for field in mapping.fields]).alias(_DELIVERED)
    typed = frame.select(DELIVERY, HASH, *values.columns, nulled, cast_problems, *record, delivered)
    typed = with_columns(typed, _row_hash(mapping, dimension))
    typed = typed.withColumn(KEY_READABLE, F.col(LINE).isNull() & _is_key_readable(dimension))
    first_problems = F.when(F.col(_CAST_PROBLEMS) != "", F.col(_CAST_PROBLEMS))
    later_problems = (
        *_sequence_problems(channel),
        *_time_problems(channel, dimension),
        *_scope_problems(channel, dimension),
    )
    reason = F.concat_ws("; ", first_problems, *later_problems)
    bad_reason = F.coalesce(F.col(PROBLEM), F.when((reason != "") & ~F.col(_IS_FILTERED), reason))
    typed = typed.withColumn(BAD_REASON, bad_reason)
    is_counted = F.col(BAD_REASON).isNull() & ~F.col(_IS_FILTERED)
    typed, is_filtered = is_outranked(typed, dimension, is_counted)
    typed = typed.withColumn(_IS_FILTERED, F.col(_IS_FILTERED) | is_filtered)
    typed = with_row_identity(typed, dimension, is_counted & ~F.col(_DELETED))
    text = F.coalesce(F.col(LINE), _row_text())
    records = _change_record_columns(mapping, source, channel, dimension, text)
    return typed.select(*records, HASH, KEY_READABLE, NULLED, ROW_ORDER, TOTALS)


def batch_texts(batch: Batch, row_tag: str) -> dict[str, Column]:
    """Return the columns of change records that have the same text in all rows of a batch.

    Rows that are computed without them are smaller, and queries replace comparisons with them by their result.
    """
    texts = {
        SOURCE: batch.source,
        CHANNEL: batch.channel,
        BATCH: row_tag,
        DELIVERY_RANK: rank(batch.delivery),
        REVISION_RANK: rank(batch.revision),
    }
    return {name: F.lit(text) for name, text in texts.items()}


def _has_row_order(frame: DataFrame, channel: Snapshot | Feed, dimension: Dimension) -> bool:
    """Return whether the rows have their order: for the tie rule, or because `dedup_sort` keeps the first row (S38).

    Only the latter asks Spark for the columns of the frame.
    """
    return channel.has_row_order or (dimension.is_deduplicated and ROW_ORDER in frame.columns)


def _row_order(channel: Snapshot | Feed, *, has_order: bool) -> Column:
    """Return the order by which the last one of tied rows decides; NULL if their order does not matter (S5)."""
    if not has_order:
        return F.lit(None).cast(ROW_ORDER_TYPE)
    if channel.ties == "last_row":
        return F.col(ROW_ORDER)
    return F.struct(*[(-F.col(ROW_ORDER)[name]).alias(name) for name in ("block", "row")])


# -- Values


@dataclass(frozen=True, slots=True)
class _Values:
    """The cast columns, and for each the reason why a value is bad (NULL if it is not).

    `nulled` is the number of values of a row that are NULL because they do not cast.
    """

    columns: list[Column]
    problems: list[Column]
    nulled: Column


@dataclass(frozen=True, slots=True)
class _CastColumn:
    """A column to cast: its mapping, its delivered and its declared type, and how a bad value is treated.

    `types` are the types of all columns, by their names in lower case. `is_sequence` is true for a part of a sequence.
    `fields` are the fields that a row may lack, `required` the columns that an expression needs, `has_path` is whether
    a row has the value at a path, and `missing` is what happens if a row lacks the column. `is_replaced` is whether a
    column that an expression names has a placeholder: then it is not evaluated.
    """

    declared: DeclaredColumn
    physical: T.DataType
    data_type: DataType
    fields: RowFields
    types: Mapping[str, T.DataType]
    is_personal: bool = False
    is_null_if_bad: bool = False
    is_sequence: bool = False
    required: tuple[str, ...] = ()
    missing: str = "null"
    is_lacking: bool = False
    has_path: Column | None = None
    is_replaced: Column | None = None

    @property
    def delivered(self) -> Column:
        """The delivered value as an expression has it: of JSON, or of one of several columns, a text."""
        if self.declared.expression:
            value = F.expr(self.declared.expression)
            return value if self.is_replaced is None else F.when(~self.is_replaced, value)
        names = self.declared.from_
        return self._first(lambda each: each._text) if len(names) > 1 else col(names[0])

    def _first(self, value: Callable[[_CastColumn], Column]) -> Column:
        """Return the value of the first of the columns that a row has; NULL if it has none of them."""
        first = F.lit(None)
        for candidate in reversed(self._candidates):
            first = F.when(candidate.is_present, value(candidate)).otherwise(first)
        return first

    @property
    def _candidates(self) -> list[_CastColumn]:
        """Each of several columns and paths alone; they may have different types."""
        candidates = []
        for name in self.declared.from_:
            if name.lower() in self.types:
                declared, data_type = replace(self.declared, from_=(name,)), self.types[name.lower()]
                candidates.append(replace(self, declared=declared, physical=data_type))
                continue
            path = tuple(name.split("."))
            # A field whose objects are all NULL is of text.
            expression, data_type = value_at_path(name, self.types) or ("NULL", T.NullType())
            declared = replace(self.declared, from_=(), expression=expression)
            has_path = self.fields.has_path(path, self.types[path[0].lower()])
            each = replace(self, declared=declared, physical=data_type, required=path[:1], has_path=has_path)
            candidates.append(each)
        return candidates

    @property
    def token(self) -> Column | None:
        """The delivered value as a JSON token; None if it is none."""
        tokens = self.fields.tokens(self.declared.from_)
        return F.coalesce(*tokens) if tokens and len(tokens) == len(self.declared.from_) else None

    @property
    def _token_text(self) -> Column:
        """The text of the token, or the delivered value without one.

        A column of text has the texts of its tokens, so that Spark does not compute a text once for each use.
        """
        types = [self.types.get(name.lower(), self.physical) for name in self.declared.from_]
        is_text = all(isinstance(each, T.StringType) for each in types)
        return self.delivered if is_text or self.token is None else json_text.to_text(self.token)

    @property
    def _text(self) -> Column:
        """The text of the delivered value; that of a nested one is JSON."""
        if self.token is not None:
            return self._token_text
        is_text = len(self.declared.from_) > 1
        return self.delivered if is_text else value_text(self.delivered, self.physical)

    @property
    def is_present(self) -> Column:
        """Whether the row has the column, or all columns of the expression."""
        if self.is_lacking:
            return F.lit(False)
        if self.declared.expression:
            has_columns = self.fields.has_all(self.required)
            return has_columns if self.has_path is None else has_columns & self.has_path
        if len(self.declared.from_) > 1:
            return any_of([candidate.is_present for candidate in self._candidates])
        return any_of([self.fields.has(name) for name in self.declared.from_])

    @property
    def may_be_absent(self) -> bool:
        """Whether a row may lack the column."""
        names = self.required if self.declared.expression else self.declared.from_
        lacks_column = any(self.fields.lacks(name.partition(".")[0]) or self.fields.lacks(name) for name in names)
        return self.is_lacking or lacks_column or self.has_path is not None

    @property
    def is_rejected_if_absent(self) -> bool:
        """Whether a row may lack the column and is bad then."""
        return self.may_be_absent and self.missing == "reject"

    def cast(self, zone: str) -> Cast:
        """Return the value as the declared type; `zone` is that of times without one."""
        declared = self.declared
        options = CastOptions(
            zone,
            declared.format,
            declared.unit,
            declared.round,
            decimal=declared.decimal,
            grouping=declared.grouping,
            true_values=declared.true_values,
            false_values=declared.false_values,
        )
        if self.token is not None:
            return cast_json(self._comparable(self.token), self._comparable(self._token_text), self.data_type, options)
        if len(self.declared.from_) > 1:
            is_bad = self._first(lambda each: each.cast(zone).is_bad)
            return Cast(self._first(lambda each: each.cast(zone).value), F.coalesce(is_bad, F.lit(False)))
        result = cast(self._comparable(self.delivered), self.physical, self.data_type, options)
        tokens = self.fields.tokens(self.required)
        unreadable = [F.coalesce(~json_text.is_readable(token), F.lit(False)) for token in tokens]
        return Cast(result.value, result.is_bad | any_of(unreadable)) if unreadable else result

    def _comparable(self, value: Column) -> Column:
        """Return the value to cast: NULL for a placeholder, and the number of a log file's name, which sorts alike."""
        placeholders = (*self.declared.not_provided_values, *self.declared.null_values)
        if placeholders:
            value = F.when(~self.is_one_of(placeholders), value)
        if not self.is_sequence or not isinstance(self.physical, T.StringType):
            return value
        number = F.regexp_extract(value, _LOG_FILE, 1)
        return F.when(number != "", number).otherwise(value)

    def with_default(self, value: Column) -> Column:
        """Return the value; the declared default if the delivered one is NULL."""
        if self.declared.default is None:
            return value
        default = F.lit(self.declared.default).cast(self.data_type.ddl())
        return F.when(self.is_null, default).otherwise(value)

    @property
    def is_null(self) -> Column:
        """Whether the delivered value is NULL, or means NULL."""
        return self.delivered.isNull() | self.is_cleared

    @property
    def is_cleared(self) -> Column:
        """Whether the delivered value is a placeholder of NULL."""
        return self.is_one_of(self.declared.null_values)

    def is_one_of(self, placeholders: Sequence[str]) -> Column:
        """Return whether the text of the delivered value is one of the placeholders."""
        if not placeholders:
            return F.lit(False)
        return F.coalesce(self._text.isin(list(placeholders)), F.lit(False))


def _columns_to_cast(
    mapping: ColumnMapping, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> dict[str, _CastColumn]:
    """Return the columns to cast by name: key columns, provided attributes, and columns of the channel."""
    fields, types = mapping.row_fields, {field.name.lower(): field.dataType for field in mapping.fields}
    columns = {}
    for key in dimension.delivered_key:
        required = mapping.required.get(key.name, ())
        columns[key.name] = _CastColumn(
            *mapping.columns[key.name], parse_type(key.type), fields, types, required=required
        )
    for attribute in dimension.source_attributes(source.name):
        if attribute.name in mapping.provided:
            declared, physical = mapping.columns[attribute.name]
            columns[attribute.name] = _CastColumn(
                declared,
                physical,
                attribute.data_type,
                fields,
                types,
                is_personal=attribute.personal,
                is_null_if_bad=attribute.on_bad_value == "null",
                required=mapping.required.get(attribute.name, ()),
                missing=missing_rule(attribute, channel),
                is_lacking=attribute.name in mapping.lacking,
                has_path=mapping.has_path(attribute.name),
                is_replaced=mapping.is_replaced(attribute.name),
            )
    parts = [sequence_part(index) for index in range(len(channel.sequence_columns))]
    channel_columns = dict.fromkeys(parts, parse_type(channel.sequence_type))
    if channel.time_column is not None:
        channel_columns[EFFECTIVE_AT] = parse_type("timestamp")
    for name, data_type in channel_columns.items():
        is_sequence, needed = name != EFFECTIVE_AT, mapping.required.get(name, ())
        columns[name] = _CastColumn(
            *mapping.columns[name], data_type, fields, types, is_sequence=is_sequence, required=needed
        )
    return columns


def _values(mapping: ColumnMapping, source: Source, channel: Snapshot | Feed, dimension: Dimension) -> _Values:
    to_cast = _columns_to_cast(mapping, source, channel, dimension)
    is_deleted = _is_deleted(mapping, source, channel, dimension, to_cast)
    required = {attribute.name for attribute in dimension.attributes if attribute.required}
    columns, problems, nulled, left_out, cleared = [], [], [F.lit(0)], [], []
    null_is_missing = not _is_null_not_provided(channel)
    advice = _IF_A_FACT_LACKS if dimension.is_of_fact else _IF_A_DIMENSION_LACKS
    for name, column in to_cast.items():
        result = column.cast(source.timezone)
        value = F.when(~result.is_bad, result.value) if column.is_null_if_bad else result.value
        result = _with_failures(name, Cast(column.with_default(value), result.is_bad), mapping)
        # A delete provides no attribute, so it does not matter what its attributes contain, unless they identify it.
        is_ignored = name in mapping.provided and not dimension.is_whole_row
        is_bad = result.is_bad & ~is_deleted if is_ignored else result.is_bad
        if column.is_null_if_bad:
            nulled.append(F.when(is_bad, 1).otherwise(0))
        else:
            problems.append(_cast_problem(name, is_bad, column, mapping))
        is_left_out = _is_left_out(column)
        if column.is_rejected_if_absent:
            is_absent = ~column.is_present & ~is_deleted & ~is_left_out
            problems.append(F.when(is_absent, F.lit(f"{name} is missing; {advice}")))
        if name in required:
            is_null = column.is_null if null_is_missing else column.is_cleared
            is_missing = is_null & result.value.isNull() & ~is_deleted & ~is_left_out
            has_column = column.is_present if column.is_rejected_if_absent else F.lit(True)
            problems.append(F.when(is_missing & has_column, F.lit(f"{name} is missing")))
        columns.append(result.value.alias(name))
        left_out.append(is_left_out.alias(name))
        cleared.append(column.is_cleared.alias(name))
    columns += [_text_of_row_or_delivery(name, mapping).alias(name) for name in (REASON, ACTOR, CORRELATION_ID)]
    conditions = [name for name in (ROWS, DELETES) if name in mapping.guarded]
    problems += [F.when(mapping.fails(name), _failure(name)) for name in conditions]
    columns += [is_deleted.alias(_DELETED), _is_filtered(mapping, channel).alias(_IS_FILTERED)]
    columns.append(_control_totals(mapping, channel).alias(TOTALS))
    columns += [F.struct(*left_out).alias(_NOT_PROVIDED), F.struct(*cleared).alias(_CLEARED)]
    return _Values(columns, problems, sum_of(nulled))


def _is_left_out(column: _CastColumn) -> Column:
    """Return whether a row does not provide an attribute: it lacks its column, or has a placeholder (S30)."""
    is_placeholder = column.is_one_of(column.declared.not_provided_values)
    if column.is_replaced is not None:
        is_placeholder |= column.is_replaced
    if column.may_be_absent and column.missing == "not_provided":
        return ~column.is_present | is_placeholder
    return is_placeholder


def _with_failures(name: str, result: Cast, mapping: ColumnMapping) -> Cast:
    """Return the result of a cast; it is bad too where the expression of the value fails."""
    if name not in mapping.guarded:
        return result
    fails = mapping.fails(name)
    return Cast(F.when(~fails, result.value), result.is_bad | fails)


def _failure(name: str) -> Column:
    return F.lit(f"{column_label(name)}: the expression fails for the row")


def _is_deleted(
    mapping: ColumnMapping,
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
    to_cast: Mapping[str, _CastColumn],
) -> Column:
    """Return whether a row deletes: by the condition of its channel, or by the flag of a landing table as declared.

    A flag that cannot be read does not delete: the row is bad.
    """
    flag = dimension.landing.hard_delete if dimension.landing else None
    if flag is not None:
        column = to_cast[flag]
        result = _with_failures(flag, column.cast(source.timezone), mapping)
        value = column.with_default(result.value)
        is_true = value if column.data_type.ddl() == "boolean" else value.isNotNull()
        return F.coalesce(is_true & ~result.is_bad, F.lit(False))
    text = channel.conditions.get("deletes")
    return F.coalesce(mapping.condition(DELETES, text), F.lit(False)) if text else F.lit(False)


def _is_filtered(mapping: ColumnMapping, channel: Snapshot | Feed) -> Column:
    """Return whether the condition `rows` excludes a row; it cannot exclude text that does not parse."""
    text = channel.conditions.get("rows")
    if not text:
        return F.lit(False)
    is_excluded = ~F.coalesce(mapping.condition(ROWS, text), F.lit(False))
    is_evaluated = mapping.problem.isNull() & ~mapping.fails(ROWS)
    return is_evaluated & is_excluded


def _is_null_not_provided(channel: Snapshot | Feed) -> bool:
    return isinstance(channel, Feed) and channel.nulls == "not_provided"


def _text_of_row_or_delivery(name: str, mapping: ColumnMapping) -> Column:
    """Return the text in the row's column; the delivery's text if that is NULL or there is no column."""
    delivery_text = F.col(DELIVERY)[name.lstrip("_")]
    if name not in mapping.columns:
        return delivery_text
    column = _CastColumn(*mapping.columns[name], parse_type("string"), mapping.row_fields, {})
    text = cast(column.delivered, column.physical, column.data_type, CastOptions()).value
    return F.coalesce(text, delivery_text)


def _control_totals(mapping: ColumnMapping, channel: Snapshot | Feed) -> Column:
    """Return the control totals that a row has, as texts in declared order."""
    columns = [mapping.columns[control_column(name)] for name in channel.control_columns]
    delivered = [_CastColumn(*column, parse_type("string"), mapping.row_fields, {}).delivered for column in columns]
    texts = F.array(*[value.cast("string") for value in delivered]) if delivered else F.lit(None)
    return texts.cast(TOTALS_TYPE)


def _cast_problem(name: str, is_bad: Column, column: _CastColumn, mapping: ColumnMapping) -> Column:
    """Return why a value was not accepted, without a personal value (S31)."""
    text = F.make_valid_utf8(F.left(column.delivered.cast("string"), F.lit(60)))
    value = F.lit("its value") if column.is_personal else F.concat(F.lit("'"), text, F.lit("'"))
    lacks_unit = isinstance(column.physical, T.NumericType) and not column.declared.unit
    expected = column.data_type.ddl()
    expected += " without a unit" if lacks_unit and expected in TIME_TYPES else ""
    expected += column.declared.text_form
    advice = F.when(_is_floating(column), F.lit(_FLOATING)).otherwise("") if expected == "string" else F.lit("")
    problem = F.concat(F.lit(f"{column_label(name)}: cannot cast "), value, F.lit(f" to {expected}"), advice)
    if name in mapping.guarded:
        problem = F.when(mapping.fails(name), _failure(name)).otherwise(problem)
    return F.when(is_bad, problem)


def _is_floating(column: _CastColumn) -> Column:
    """Return whether a value is a floating-point number; in JSON, whether it is a number."""
    if column.token is not None:
        return json_text.is_number(column.token)
    return F.lit(isinstance(column.physical, T.FloatType | T.DoubleType))


# -- Problems of keys, times and scopes


def _row_hash(mapping: ColumnMapping, dimension: Dimension) -> dict[str, Column]:
    """Return the hash of a row, by the name of its key column; NULL if the row has a bad value (S37)."""
    names = [column.name for column in dimension.business_key if column.derived == "row_hash"]
    return {name: F.when(F.col(_CAST_PROBLEMS) == "", whole_row_hash(dimension, mapping.provided)) for name in names}


def _is_key_readable(dimension: Dimension) -> Column:
    readable = F.lit(True)
    # A bad row has a key in a landing table, whose rows have no other key; it has none where rows are entities.
    for name in dimension.delivered_key_names if dimension.landing else dimension.key_names:
        readable = readable & col(name).isNotNull()
    return readable


def _time_problems(channel: Snapshot | Feed, dimension: Dimension) -> list[Column]:
    """Return the problems of the key (S26), and of a time that is missing or outside of the dimension's (S4, S29)."""
    problems = [F.when(~F.col(KEY_READABLE), F.lit("the business key is NULL or cannot be read"))]
    time, name = F.col(DELIVERY)["at"], "the delivery's time"
    if channel.effective_at:
        time, name = F.col(EFFECTIVE_AT), "effective_at"
        problems.append(F.when(time.isNull(), F.lit("effective_at is missing")))
    first = dimension.earliest_time
    problems.append(F.when(time < F.lit(first).cast("timestamp"), F.lit(f"{name} is before {first}")))
    end = dimension.computed_open_end
    problems.append(F.when(time >= F.lit(end).cast("timestamp"), F.lit(f"{name} is not before {end}")))
    return problems


def _sequence_problems(channel: Snapshot | Feed) -> list[Column]:
    """Return the problems of the parts of a sequence that do not fit their share of the stored number."""
    bits = SEQUENCE_BITS[max(len(channel.sequence_columns), 1)]
    if len(bits) == 1:
        return []
    problems = []
    for index, width in enumerate(bits):
        highest = 2**width - 2
        text = f"sequence: column {index + 1} is not between 0 and {highest}"
        problems.append(F.when(~F.col(sequence_part(index)).between(0, highest), F.lit(text)))
    return problems


def _scope_problems(channel: Snapshot | Feed, dimension: Dimension) -> list[Column]:
    """Return the problem of a row outside of the scope that its delivery names, or without a value for its scope."""
    if not isinstance(channel, Snapshot) or not channel.scope:
        return []
    scope = F.col(DELIVERY)["scope"]
    is_outside = scope.isNotNull() & ~F.array_contains(scope, key_text(channel.scope))
    attributes = [name for name in channel.scope if name not in dimension.key_names]
    if attributes:
        is_outside = any_of([is_outside, *[col(name).isNull() for name in attributes]])
    if dimension.deletes_by_key(channel):  # in any scope; such a row provides no attribute
        is_outside = is_outside & ~F.col(_DELETED)
    return [F.when(F.col(KEY_READABLE) & is_outside, F.lit(OUTSIDE_SCOPE))]


# -- Change records


def _row_text() -> Column:
    """Return the row as delivered, with its NULLs, for the quarantine."""
    return F.make_valid_utf8(F.to_json(F.col(_DELIVERED), _WITH_MICROSECONDS))


def _change_record_columns(
    mapping: ColumnMapping, source: Source, channel: Snapshot | Feed, dimension: Dimension, text: Column
) -> list[Column]:
    """Return the columns of a change record; `text` is the row as delivered, of which only a bad row keeps the text."""
    is_bad = F.col(BAD_REASON).isNotNull()
    delivery_time = F.col(DELIVERY)["at"]
    row_time = F.col(EFFECTIVE_AT) if channel.effective_at else delivery_time
    has_row_times = channel.name == "snapshot" and bool(channel.effective_at)
    deleted = DELETE if dimension.deletes_by_key(channel) else ABSENT
    kind = F.when(is_bad, BAD).when(F.col(_IS_FILTERED), FILTERED).when(F.col(_DELETED), deleted).otherwise(UPSERT)
    if has_row_times:
        effective_at = F.when(is_bad, delivery_time).otherwise(row_time)
    else:
        effective_at = F.coalesce(row_time, delivery_time)
    asserted_at = F.lit(None)
    if has_row_times:
        asserted_at = F.when(~is_bad, delivery_time)
    elif isinstance(channel, Snapshot) and deleted == DELETE:  # the time distinguishes the delete from an absence
        asserted_at = F.when(kind == DELETE, delivery_time)
    return [
        *[col(name) for name in dimension.key_names],
        F.lit(source.name).alias(SOURCE),
        F.lit(channel.name).alias(CHANNEL),
        F.col(DELIVERY)["batch"].alias(BATCH),
        F.col(DELIVERY)["delivery_rank"].alias(DELIVERY_RANK),
        F.col(DELIVERY)["revision_rank"].alias(REVISION_RANK),
        effective_at.alias(EFFECTIVE_AT),
        _sequence(channel, is_bad).alias(SEQUENCE),
        asserted_at.cast("timestamp").alias(ASSERTED_AT),
        kind.alias(KIND),
        F.col(REASON),
        F.col(ACTOR),
        F.col(CORRELATION_ID),
        F.col(BAD_REASON),
        F.when(is_bad, text).alias(BAD_ROW),
        *_wrapped(mapping, channel, dimension, is_bad),
    ]


def _sequence(channel: Snapshot | Feed, is_bad: Column) -> Column:
    """Return the sequence as one number, in which NULL is before every value.

    Of several parts, each has a fixed number of bits, so that the numbers sort as the parts do, in any batch.
    """
    parts = [F.col(sequence_part(index)) for index in range(len(channel.sequence_columns))]
    if not parts:
        return F.lit(None).cast("bigint")
    if len(parts) == 1:
        number = F.unix_micros(parts[0]) if channel.sequence_type == "timestamp" else parts[0]
        return F.when(~is_bad, number)
    number = F.lit(0).cast("bigint")
    for part, width in zip(parts, SEQUENCE_BITS[len(parts)], strict=True):
        number = F.shiftleft(number, width) + F.coalesce(part + 1, F.lit(0))
    return F.when(~is_bad & F.coalesce(*parts).isNotNull(), number)


def _wrapped(mapping: ColumnMapping, channel: Snapshot | Feed, dimension: Dimension, is_bad: Column) -> list[Column]:
    """Return the attributes, each in a struct that is NULL if it is not provided (S30).

    Bad rows and deletes provide no attribute, nor does NULL in a feed that declares `nulls: not_provided`.
    """
    wrapped = []
    for name, data_type in attribute_types(dimension).items():
        if name not in mapping.provided:
            wrapped.append(F.lit(None).cast(f"struct<v:{data_type.ddl()}>").alias(name))
            continue
        is_provided = ~is_bad & ~F.col(_DELETED) & ~F.col(_NOT_PROVIDED)[name]
        if _is_null_not_provided(channel):
            is_provided = is_provided & (col(name).isNotNull() | F.col(_CLEARED)[name])
        wrapped.append(F.when(is_provided, F.struct(col(name).alias("v"))).alias(name))
    return wrapped
