"""Any delivery becomes statements of one shape, with the rows that cannot be taken told apart (S1, S4, S20, S26, S30).

In: a frame as the source delivers it, with one more column `_scd` that says for each row which batch it is of:
a struct of `batch`, `at`, `delivery_rank`, `revision_rank`, `reason`, `actor`, `correlation_id`, `scope`.
Out: statements (differences.py); a row that cannot be taken has kind "bad", its reason and its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.columns import (
    ACTOR,
    ASSERTED_AT,
    BAD_REASON,
    BAD_ROW,
    BATCH,
    CHANNEL,
    CORRELATION_ID,
    DELIVERY_RANK,
    EFFECTIVE_AT,
    KIND,
    REASON,
    REVISION_RANK,
    SEQUENCE,
    SOURCE,
    attribute_types,
)
from scd_pipeline.declaration import Column as Mapped
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.deliveries.casts import Rules, cast
from scd_pipeline.expressions import col, has_map, key_text, quote_name, to_comparable

DELIVERY = "_scd"
LINE = "_scd_line"
PROBLEM = "_scd_problem"
HASH = "_scd_hash"
KEY_READABLE = "_key_readable"
ROW_ORDER = "_scd_row_order"
"""Where a row is in its file, as far as its channel's tie rule asks for it: a struct that sorts (S5)."""
ROW_ORDER_TYPE = "struct<block:bigint,row:bigint>"
OUTSIDE_OF_SCOPE = "outside of the delivery's scope"
_CAST_FAULTS = "_cast_faults"
_UNKNOWN_COLUMN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "FIELD_NOT_FOUND")
_DELETES = "_deletes"
# Columns that a load adds to a delivery; one that comes with such a name is never read.
_INTERNAL = (DELIVERY, LINE, PROBLEM, HASH)
_TIMELY = ("date", "timestamp", "timestamp_ntz")
_WITH_NULLS = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True)
class Expressions:
    """The SQL expressions of a declaration, analysed over the columns of a delivery.

    `types` has the type of each, by the attribute or key column that it gives; `lacking` has, for each that names a
    column which the delivery does not have, that column and where it is named.
    """

    types: Mapping[str, T.DataType] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)


def analyse_expressions(
    frame: DataFrame, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> Expressions:
    """Analyse the expressions of a source over a frame, without computing a row.

    Errors: Spark's AnalysisException for any fault of an expression but an unknown column.
    """
    names = (*dimension.key_names, *(a.name for a in dimension.attributes_of(source.name) if a.is_delivered))
    texts = {name: text for name in names if (text := source.column(name).expression)}
    if isinstance(channel, Feed) and channel.deletes:
        texts[_DELETES] = channel.deletes
    if not texts:
        return Expressions()
    try:
        return Expressions(_types_of(frame, texts))
    except AnalysisException:
        return _analysed_apart(frame, texts)


def _analysed_apart(frame: DataFrame, texts: Mapping[str, str]) -> Expressions:
    types: dict[str, T.DataType] = {}
    lacking: dict[str, str] = {}
    for name, text in texts.items():
        try:
            types |= _types_of(frame, {name: text})
        except AnalysisException as error:
            if error.getCondition() not in _UNKNOWN_COLUMN:
                raise
            parameters = error.getMessageParameters() or {}
            named = str(parameters.get("objectName") or parameters.get("fieldName")).replace("`", "")
            lacking[name] = f"{named} (in {f'the expression of {name}' if name != _DELETES else '`deletes`'})"
    return Expressions(types, lacking)


def _types_of(frame: DataFrame, texts: Mapping[str, str]) -> dict[str, T.DataType]:
    schema = frame.select(*[F.expr(text).alias(name) for name, text in texts.items()]).schema
    return dict(zip(texts, (of.dataType for of in schema.fields), strict=True))


@dataclass(frozen=True, slots=True)
class Reading:
    """How the columns of one delivery are read: what it has, what it lacks, what is not declared.

    `fields` are all that it has; asking a frame for them would have Spark analyse it once more. `columns` has for each
    key column and each provided attribute the column or expression that it is read from, and the type of that. With
    `lines` the delivery also has the columns `_scd_line`, with each line that is no row as it came, and
    `_scd_problem`, with why it is none.
    """

    fields: tuple[T.StructField, ...]
    stated: tuple[str, ...]
    missing: tuple[str, ...]
    undeclared: tuple[str, ...]
    lines: bool = False
    columns: Mapping[str, tuple[Mapped, T.DataType]] = field(default_factory=dict)

    @property
    def line(self) -> Column:
        """The line of a row that is none; NULL for a row."""
        return F.col(LINE) if self.lines else F.lit(None).cast("string")

    @property
    def problem(self) -> Column:
        """Why a line is no row; NULL for a row."""
        return F.col(PROBLEM) if self.lines else F.lit(None).cast("string")

    def type_of(self, name: str) -> T.DataType:
        """Return the type of a column that the delivery has; case does not matter."""
        return next(of.dataType for of in self.fields if of.name.lower() == name.lower())


def reading(
    fields: Sequence[T.StructField],
    source: Source,
    channel: Snapshot | Feed,
    dimension: Dimension,
    expressions: Expressions,
) -> Reading:
    """Decide which column of a delivery each attribute is read from, and which columns it lacks (S20).

    A retired or derived attribute is never read. What an attribute without its column becomes, it declares; in a feed
    with partial updates it is not provided. A key column, or a column that the channel names, may not be missing.
    """
    own = tuple(of for of in fields if of.name.lower() not in _INTERNAL)
    existing = {of.name.lower(): of.dataType for of in own}
    named = [channel.effective_at, channel.sequence, channel.reason, channel.actor, channel.correlation_id]
    lacking = [name for name in named if name is not None and name.lower() not in existing]
    lacking += [text for name, text in expressions.lacking.items() if name == _DELETES]
    columns: dict[str, tuple[Mapped, T.DataType]] = {}
    for name in reversed(dimension.key_names):
        if isinstance(column := _existing_column(name, source, existing, expressions), str):
            lacking.insert(0, column)
        else:
            columns[name] = column
    stated = []
    for attribute in (a for a in dimension.attributes_of(source.name) if a.is_delivered):
        column = _existing_column(attribute.name, source, existing, expressions)
        if isinstance(column, str):
            instead = (
                "not_provided" if isinstance(channel, Feed) and channel.updates == "partial" else attribute.missing
            )
            lacking += [column] if instead == "reject" else []
            if instead != "null":
                continue
            column = (Mapped(expression="NULL", default=source.column(attribute.name).default), T.NullType())
        columns[attribute.name] = column
        stated.append(attribute.name)
    undeclared = _undeclared([of.name for of in fields if of.name not in (LINE, PROBLEM)], source, channel, dimension)
    return Reading(own, tuple(stated), tuple(lacking), undeclared, any(of.name == LINE for of in fields), columns)


def _existing_column(
    name: str, source: Source, existing: Mapping[str, T.DataType], expressions: Expressions
) -> tuple[Mapped, T.DataType] | str:
    """The first column that the delivery has of those that an attribute or a key column is read from, with its type.

    Text that names what it lacks, if it has none of them.
    """
    column = source.column(name)
    if column.expression:
        lack = expressions.lacking.get(name)
        return lack or (column, expressions.types[name])
    first = next((of for of in column.from_ if of.lower() in existing), None)
    return " or ".join(column.from_) if first is None else (replace(column, from_=(first,)), existing[first.lower()])


def _undeclared(
    names: Sequence[str], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> tuple[str, ...]:
    """The columns of a delivery that the declaration neither names nor has in an expression."""
    read = [*dimension.key_names, *(a.name for a in dimension.attributes_of(source.name) if not a.derived)]
    used = {of.lower() for name in read for of in source.column(name).from_}
    named = (channel.effective_at, channel.sequence, channel.reason, channel.actor, channel.correlation_id)
    used |= {name.lower() for name in named if name}
    expressions = [column.expression or "" for column in source.columns.values()]
    expressions.append((channel.deletes or "") if isinstance(channel, Feed) else "")
    return tuple(name for name in names if name.lower() not in used and not _mentions(expressions, name))


def _mentions(expressions: Sequence[str], column: str) -> bool:
    """Whether one of the expressions may read the column."""
    word = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    return any(word.search(expression) for expression in expressions)


def content_hash(frame: DataFrame, read: Reading) -> DataFrame:
    """Add `_scd_hash`, 64 bits of each row as delivered; summed over a batch it does not depend on the rows' order."""
    parts: list[Column] = []
    for column in sorted(read.fields, key=lambda f: f.name):
        value = col(column.name)
        parts += [
            F.lit(column.name),
            value.isNull(),
            F.to_json(F.struct(value), _WITH_NULLS) if _is_nested(column.dataType) else value,
        ]
    row = F.xxhash64(*parts) if parts else F.lit(0).cast("bigint")
    return frame.withColumn(HASH, F.when(read.line.isNotNull(), F.xxhash64(read.line)).otherwise(row))


def _is_nested(data_type: T.DataType) -> bool:
    """Whether a hash would not tell where in it a NULL stands, or refuse it."""
    return isinstance(data_type, T.StructType | T.ArrayType | T.MapType | T.VariantType)


def conform(
    frame: DataFrame, read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> DataFrame:
    """The rows of some deliveries with the same columns, as statements.

    Beside them `_scd_hash`, `_key_readable` and `_scd_row_order`, which is NULL where the frame has none.

    A line that is no row, NULL in the business key, a value that does not cast, a missing or impossible time and a
    key outside of the batch's scope make a bad row; a default stands in for NULL before that.
    Errors: Spark's AnalysisException where an expression of the declaration names a column that is not there.
    """
    values = _values(read, source, channel, dimension)
    faults = F.concat_ws("; ", *values.faults).alias(_CAST_FAULTS)
    text = F.coalesce(read.line, _text_of(read)).alias(BAD_ROW)
    row_order = F.col(ROW_ORDER) if channel.ties == "last_row" else F.lit(None).cast(ROW_ORDER_TYPE)
    lines = (read.line.alias(LINE), read.problem.alias(PROBLEM), row_order.alias(ROW_ORDER))
    typed = frame.select(DELIVERY, HASH, *values.columns, faults, text, *lines)
    typed = typed.withColumn(KEY_READABLE, F.col(LINE).isNull() & _key_readable(dimension))
    cast_faults = F.when(F.col(_CAST_FAULTS) != "", F.col(_CAST_FAULTS))
    reason = F.concat_ws("; ", cast_faults, *_time_faults(channel, dimension), *_scope_faults(channel))
    typed = typed.withColumn(BAD_REASON, F.coalesce(F.col(PROBLEM), F.when(reason != "", reason)))
    return typed.select(*_statement_columns(read, source, channel, dimension), HASH, KEY_READABLE, ROW_ORDER)


@dataclass(frozen=True, slots=True)
class _Values:
    columns: list[Column]
    faults: list[Column]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A declared column: what it is read from, its types as delivered and as declared, and what a bad value does."""

    column: Mapped
    physical: T.DataType
    data_type: DataType
    personal: bool = False
    null_if_bad: bool = False


def _wanted(read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension) -> dict[str, _Wanted]:
    """The columns to cast, by name: key columns, provided attributes, and those of the channel."""
    wanted = {key.name: _Wanted(*read.columns[key.name], parse_type(key.type)) for key in dimension.business_key}
    for attribute in dimension.attributes_of(source.name):
        if attribute.name in read.stated:
            null_if_bad = attribute.on_bad_value == "null"
            column, physical = read.columns[attribute.name]
            wanted[attribute.name] = _Wanted(column, physical, attribute.data_type, attribute.personal, null_if_bad)
    if channel.effective_at:
        pattern, unit = channel.effective_at_format, channel.effective_at_unit
        time = Mapped(channel.effective_at, pattern, unit=unit, round=channel.effective_at_round)
        wanted[EFFECTIVE_AT] = _Wanted(time, read.type_of(channel.effective_at), parse_type("timestamp"))
    if channel.sequence:
        order = (Mapped(channel.sequence), read.type_of(channel.sequence))
        wanted[SEQUENCE] = _Wanted(*order, parse_type(channel.sequence_type))
    return wanted


def _values(read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension) -> _Values:
    """Every declared column, cast, and for each a text that says why it could not be (NULL if it could)."""
    unstated = isinstance(channel, Feed) and channel.nulls == "not_provided"  # then NULL is no missing value
    required = {attribute.name for attribute in dimension.attributes if attribute.required and not unstated}
    deletes = isinstance(channel, Feed) and channel.deletes
    deleted = F.coalesce(F.expr(deletes), F.lit(False)) if deletes else F.lit(False)
    columns, faults = [], []
    for name, wanted in _wanted(read, source, channel, dimension).items():
        delivered, column = _physical(wanted.column), wanted.column
        rules = Rules(source.timezone, column.format, column.unit, column.round)
        result = cast(delivered, wanted.physical, wanted.data_type, rules)
        value = F.when(~result.is_bad, result.value) if wanted.null_if_bad else result.value
        value = _defaulted(delivered, value, column, wanted.data_type)
        # A delete states no attribute, so what stands in its place says nothing.
        is_bad = result.is_bad & ~deleted if name in read.stated else result.is_bad
        if not wanted.null_if_bad:
            faults.append(_fault(name, delivered, is_bad, wanted))
        if name in required:
            faults.append(F.when(delivered.isNull() & value.isNull() & ~deleted, F.lit(f"{name} is missing")))
        columns.append(value.alias(name))
    extra = {REASON: channel.reason, ACTOR: channel.actor, CORRELATION_ID: channel.correlation_id}
    columns += [_or_delivery(name, physical, read).alias(name) for name, physical in extra.items()]
    return _Values([*columns, deleted.alias("_deleted")], faults)


def _physical(column: Mapped) -> Column:
    return F.expr(column.expression) if column.expression else col(column.from_[0])


def _or_delivery(name: str, physical: str | None, read: Reading) -> Column:
    """What the row says, else what its delivery says."""
    told = F.col(DELIVERY)[name.lstrip("_")]
    if not physical:
        return told
    text = cast(col(physical), read.type_of(physical), parse_type("string"), Rules()).value
    return F.coalesce(text, told)


def _defaulted(given: Column, value: Column, column: Mapped, data_type: DataType) -> Column:
    if column.default is None:
        return value
    return F.when(given.isNull(), F.lit(column.default).cast(data_type.ddl())).otherwise(value)


def _fault(name: str, delivered: Column, is_bad: Column, wanted: _Wanted) -> Column:
    """Why a value was not accepted; a personal one is not repeated (S31)."""
    label = {EFFECTIVE_AT: "effective_at", SEQUENCE: "sequence"}.get(name, name)
    text = F.make_valid_utf8(F.left(delivered.cast("string"), F.lit(60)))
    shown = F.lit("its value") if wanted.personal else F.concat(F.lit("'"), text, F.lit("'"))
    lacks_unit = isinstance(wanted.physical, T.NumericType) and not wanted.column.unit
    kind = wanted.data_type.ddl() + (" without a unit" if lacks_unit and wanted.data_type.ddl() in _TIMELY else "")
    return F.when(is_bad, F.concat(F.lit(f"{label}: "), shown, F.lit(f" is no {kind}")))


def _key_readable(dimension: Dimension) -> Column:
    readable = F.lit(True)
    for name in dimension.key_names:
        readable = readable & col(name).isNotNull()
    return readable


def _time_faults(channel: Snapshot | Feed, dimension: Dimension) -> list[Column]:
    """S4, S29: a row's time has to be there and within the dimension's time; and the key (S26)."""
    faults = [F.when(~F.col(KEY_READABLE), F.lit("the business key is NULL or cannot be read"))]
    time, name = F.col(DELIVERY)["at"], "the delivery's time"
    if channel.effective_at:
        time, name = F.col(EFFECTIVE_AT), "effective_at"
        faults.append(F.when(time.isNull(), F.lit("effective_at is missing")))
    first = dimension.begin.at if dimension.begin else "0001-01-01 00:00:00"
    faults.append(F.when(time < F.lit(first).cast("timestamp"), F.lit(f"{name} is before {first}")))
    end = dimension.open_end
    faults.append(F.when(time >= F.lit(end).cast("timestamp"), F.lit(f"{name} is not before {end}")))
    return faults


def _scope_faults(channel: Snapshot | Feed) -> list[Column]:
    if not isinstance(channel, Snapshot) or not channel.scope:
        return []
    scope = F.col(DELIVERY)["scope"]
    inside = F.array_contains(scope, key_text(channel.scope))
    return [F.when(F.col(KEY_READABLE) & scope.isNotNull() & ~inside, F.lit(OUTSIDE_OF_SCOPE))]


def _text_of(read: Reading) -> Column:
    """The row as it came, for the quarantine; NULLs are told."""
    return F.make_valid_utf8(F.to_json(F.struct(*[col(field.name) for field in read.fields]), _WITH_NULLS))


def _statement_columns(read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension) -> list[Column]:
    bad = F.col(BAD_REASON).isNotNull()
    at = F.col(DELIVERY)["at"]
    own_time = F.col(EFFECTIVE_AT) if channel.effective_at else at
    row_timed = channel.kind == "snapshot" and bool(channel.effective_at)
    kind = F.when(bad, "bad").when(F.col("_deleted"), "delete").otherwise("upsert")
    effective_at = F.when(bad, at).otherwise(own_time) if row_timed else F.coalesce(own_time, at)
    return [
        *[col(name) for name in dimension.key_names],
        F.lit(source.name).alias(SOURCE),
        F.lit(channel.kind).alias(CHANNEL),
        F.col(DELIVERY)["batch"].alias(BATCH),
        F.col(DELIVERY)["delivery_rank"].alias(DELIVERY_RANK),
        F.col(DELIVERY)["revision_rank"].alias(REVISION_RANK),
        effective_at.alias(EFFECTIVE_AT),
        _sequence(channel, bad).alias(SEQUENCE),
        (F.when(~bad, at) if row_timed else F.lit(None)).cast("timestamp").alias(ASSERTED_AT),
        kind.alias(KIND),
        F.col(REASON),
        F.col(ACTOR),
        F.col(CORRELATION_ID),
        F.col(BAD_REASON),
        F.when(bad, F.col(BAD_ROW)).alias(BAD_ROW),
        *_wrapped(read, channel, dimension, bad),
    ]


def _sequence(channel: Snapshot | Feed, bad: Column) -> Column:
    if not channel.sequence:
        return F.lit(None).cast("bigint")
    number = F.unix_micros(SEQUENCE) if channel.sequence_type == "timestamp" else F.col(SEQUENCE)
    return F.when(~bad, number)


def _wrapped(read: Reading, channel: Snapshot | Feed, dimension: Dimension, bad: Column) -> list[Column]:
    """Each attribute wrapped; not stated in bad rows, in deletes, and where the feed says that NULL means so (S30)."""
    silent_null = isinstance(channel, Feed) and channel.nulls == "not_provided"
    wrapped = []
    for name, data_type in attribute_types(dimension).items():
        if name not in read.stated:
            wrapped.append(F.lit(None).cast(f"struct<v:{data_type.ddl()}>").alias(name))
            continue
        says = ~bad & ~F.col("_deleted")
        if silent_null:
            says = says & col(name).isNotNull()
        wrapped.append(F.when(says, F.struct(col(name).alias("v"))).alias(name))
    return wrapped


def _group(dimension: Dimension) -> list[Column]:
    return [F.col(BATCH), *[col(name) for name in dimension.key_names], F.col(EFFECTIVE_AT), F.col(SEQUENCE)]


def batch_counts(
    rows: DataFrame, scopes: Mapping[str, Sequence[str]], in_file_order: Sequence[str], dimension: Dimension
) -> DataFrame:
    """One row per batch: what a load has to know of it before anything else.

    Out: `_batch`, `rows`, `bad_rows`, `unreadable` (bad rows without a key), `entities` (distinct key and time of
    good rows), `repeated` (how many of those came more than once), `hash`, `earliest`, `latest` (times of good rows),
    and `scope_<n>` for the n-th scope asked for: the distinct encoded values of rows whose key can be read; a bad row
    among them counts as present (S26), so its delivery speaks of its scope.
    The hash does not depend on the order of the rows; of the channels `in_file_order` (source/channel) it does among
    rows that only their place in the file orders, as that is then part of what they assert (S5, S34).
    """
    good = F.col(KIND) != "bad"
    groups = rows.groupBy(
        *_group(dimension), good.alias("_good"), F.col(KEY_READABLE), F.col(CHANNEL), F.col(SOURCE)
    ).agg(F.count(F.lit(1)).alias("_n"), _group_hash(in_file_order).alias("_h"), F.min(BAD_REASON).alias("_reason"))
    whole = F.when(F.col("_good"), F.lit(1)).otherwise(0)
    wanted = {
        f"scope_{number}": F.collect_set(
            F.when(F.col(KEY_READABLE) & (F.concat_ws("/", SOURCE, CHANNEL) == delivery_key), key_text(names))
        )
        for number, (delivery_key, names) in enumerate(scopes.items())
    }
    return groups.groupBy(BATCH).agg(
        F.sum("_n").alias("rows"),
        F.sum(F.when(~F.col("_good"), F.col("_n")).otherwise(0)).alias("bad_rows"),
        F.sum(F.when(~F.col(KEY_READABLE), F.col("_n")).otherwise(0)).alias("unreadable"),
        F.sum(whole).alias("entities"),
        F.sum(F.when(F.col("_good") & (F.col("_n") > 1), 1).otherwise(0)).alias("repeated"),
        F.sum("_h").cast("string").alias("hash"),
        F.min("_reason").alias("bad_reason"),
        F.min(F.when(F.col("_good"), F.col(EFFECTIVE_AT))).alias("earliest"),
        F.max(F.when(F.col("_good"), F.col(EFFECTIVE_AT))).alias("latest"),
        *[value.alias(name) for name, value in wanted.items()],
    )


def _group_hash(in_file_order: Sequence[str]) -> Column:
    """The hash of the rows of one position."""
    unordered = F.sum(F.col(HASH).cast("decimal(38,0)"))
    if not in_file_order:
        return unordered
    is_tie = F.concat_ws("/", SOURCE, CHANNEL).isin(list(in_file_order)) & (F.col(KIND) != "bad")
    hashes = F.array_sort(F.collect_list(F.when(is_tie, F.struct(ROW_ORDER, HASH))))
    in_order = F.xxhash64(F.transform(hashes, lambda row: row[HASH])).cast("decimal(38,0)")
    return F.when(F.size(hashes) > 1, in_order).otherwise(unordered)


def conflicts(rows: DataFrame, dimension: Dimension, most: int) -> DataFrame:
    """Keys for which one batch gives one attribute different values with nothing to order them (S5).

    Out: `_batch` and the business key as text, `key`, for groups of the same batch, key, time and sequence; of each
    batch the first so many.
    """
    good = rows.where(F.col(KIND) != "bad")
    differs = F.min(KIND) != F.max(KIND)
    for name, data_type in attribute_types(dimension).items():
        value = F.when(col(name).isNotNull(), F.struct(to_comparable(col(name)["v"], data_type).alias("v")))
        differs = differs | ~F.min(value).eqNullSafe(F.max(value))
    found = good.groupBy(*_group(dimension)).agg(differs.alias("_differs"))
    pairs = [F.concat(F.lit(f"{name}="), col(name).cast("string")) for name in dimension.key_names]
    keys = found.where("_differs").select(BATCH, F.concat_ws(", ", *pairs).alias("key")).distinct()
    number = F.row_number().over(Window.partitionBy(BATCH).orderBy("key"))
    return keys.withColumn("_number", number).where(F.col("_number") <= most).select(BATCH, "key")


def collapse(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Of rows of one batch with the same key, time and sequence one that states what any of them states (S5).

    Of several reasons, actors and correlation ids the least.
    """
    types = attribute_types(dimension)

    def merged(name: str) -> Column:
        if name in types and has_map(types[name]):
            return F.first(quote_name(name), ignorenulls=True)
        return (F.min if name in (REASON, ACTOR, CORRELATION_ID) else F.max)(quote_name(name))

    return _one_of_each_group(rows, dimension, merged)


def collapse_to_last(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Of rows of one batch with the same key, time and sequence one, as the last row of the file decides (S5).

    Where that is a delete, the others assert nothing; else each attribute has the value of the last row that provides
    it. Reason, actor and correlation id are those of the last row.
    """
    group = Window.partitionBy(*_group(dimension))
    is_of_last_kind = F.col(KIND) == F.max_by(KIND, ROW_ORDER).over(group)
    decisive = rows.withColumn("_decides", is_of_last_kind).where("_decides").drop("_decides")
    types = attribute_types(dimension)

    def merged(name: str) -> Column:
        provided = F.when(col(name).isNotNull(), F.col(ROW_ORDER)) if name in types else F.col(ROW_ORDER)
        return F.max_by(quote_name(name), provided)

    return _one_of_each_group(decisive, dimension, merged)


def without_deleted(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """The rows without those that have a delete at their position in their batch: the delete decides (S5)."""
    group = Window.partitionBy(*_group(dimension))
    is_beside_a_delete = (F.col(KIND) != "delete") & F.max(F.col(KIND) == "delete").over(group)
    return rows.withColumn("_is_out", is_beside_a_delete).where(~F.col("_is_out")).drop("_is_out")


def _one_of_each_group(rows: DataFrame, dimension: Dimension, merged: Callable[[str], Column]) -> DataFrame:
    names = [name for name in rows.columns if name not in set(_group_names(dimension))]
    single = rows.groupBy(*_group(dimension)).agg(*[merged(name).alias(name) for name in names])
    return single.select(*[col(name) for name in rows.columns])


def _group_names(dimension: Dimension) -> list[str]:
    return [BATCH, *dimension.key_names, EFFECTIVE_AT, SEQUENCE]
