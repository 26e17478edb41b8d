"""Any delivery becomes statements of one shape, with the rows that cannot be taken told apart (S1, S4, S20, S26, S30).

In: a frame as the source delivers it, with one more column `_scd` that says for each row which batch it is of:
a struct of `batch`, `at`, `delivery_rank`, `revision_rank`, `reason`, `actor`, `correlation_id`, `scope`.
Out: statements (differences.py); a row that cannot be taken has kind "bad", its reason and its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    col,
    comparable,
    has_map,
    key_text,
    quoted,
)
from scd_pipeline.spec import Column as Mapped
from scd_pipeline.spec import Dimension, Feed, Snapshot, Source
from scd_pipeline.spec.patterns import ZONE_LETTERS
from scd_pipeline.spec.types import Array, DataType, Map, Struct, parse_type

DELIVERY = "_scd"
LINE = "_scd_line"
HASH = "_scd_hash"
KEY_READABLE = "_key_readable"
OUTSIDE_OF_SCOPE = "outside of the delivery's scope"
_CAST_FAULTS = "_cast_faults"
_NO_ROW = {"csv": "the line has fewer or more fields than the header", "json": "the line is no JSON object"}
STATEMENT_TYPES = {
    SOURCE: "string",
    CHANNEL: "string",
    BATCH: "string",
    DELIVERY_RANK: "string",
    REVISION_RANK: "string",
    EFFECTIVE_AT: "timestamp",
    SEQUENCE: "bigint",
    ASSERTED_AT: "timestamp",
    KIND: "string",
    REASON: "string",
    ACTOR: "string",
    CORRELATION_ID: "string",
    BAD_REASON: "string",
    BAD_ROW: "string",
}
# After a time of day: an offset, or a zone's name; the T between date and hour is none.
_ZONE_AT_END = r"(?i)\d\s*((?!t\d)[a-z][a-z0-9_/+-]*|[+-]\d{1,2}(:?\d{2}){0,2})\s*$"
_NO_JSON = "_scd_no_json"
_WITH_NULLS = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True)
class Reading:
    """How the columns of one delivery are taken: what is there, what is missing, what nobody declared.

    `fields` are all that it has; asking a frame for them would have Spark analyse it once more. With `lines` it has
    beside them the column `_scd_line`, where a line that is no row stands as it came.
    """

    fields: tuple[T.StructField, ...]
    stated: tuple[str, ...]
    missing: tuple[str, ...]
    undeclared: tuple[str, ...]
    lines: bool = False

    @property
    def line(self) -> Column:
        """The line of a row that is none; NULL for a row."""
        return F.col(LINE) if self.lines else F.lit(None).cast("string")


def reading(fields: Sequence[T.StructField], source: Source, channel: Snapshot | Feed, dimension: Dimension) -> Reading:
    """Which attributes a delivery with these columns states (S20).

    An optional or retired attribute may be missing, and any in a feed that states some; a key column, or a column
    that the channel names, may not.
    """
    own = [field for field in fields if field.name != LINE]
    names = [field.name for field in own]
    there = {name.lower() for name in names}
    some = isinstance(channel, Feed) and channel.states == "some"
    stated, missing = [], []
    for attribute in dimension.attributes_of(source.name):
        column = source.column(attribute.name)
        if attribute.retired:
            continue
        if column.expression or str(column.from_).lower() in there:
            stated.append(attribute.name)
        elif not (attribute.optional or some):
            missing.append(str(column.from_))
    wanted = [source.column(key).from_ for key in dimension.key_names if not source.column(key).expression]
    wanted += [channel.effective_at, channel.sequence, channel.reason, channel.actor, channel.correlation_id]
    missing = [str(w) for w in wanted if w is not None and w.lower() not in there] + missing
    used = {str(w).lower() for w in wanted if w}
    used |= {str(source.column(a.name).from_).lower() for a in dimension.attributes_of(source.name)}
    expressions = [column.expression or "" for column in source.columns.values()]
    expressions.append((channel.deletes or "") if isinstance(channel, Feed) else "")
    undeclared = [n for n in names if n.lower() not in used and n != DELIVERY and not _mentions(expressions, n)]
    return Reading(tuple(own), tuple(stated), tuple(missing), tuple(undeclared), len(own) < len(fields))


def _mentions(expressions: Sequence[str], column: str) -> bool:
    """Whether one of the expressions may read the column."""
    word = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    return any(word.search(expression) for expression in expressions)


def content_hash(frame: DataFrame, read: Reading) -> DataFrame:
    """Add `_scd_hash`, 64 bits of each row as delivered; summed over a batch it does not depend on the rows' order."""
    parts: list[Column] = []
    for field in sorted(read.fields, key=lambda f: f.name):
        value = col(field.name)
        parts += [
            F.lit(field.name),
            value.isNull(),
            F.to_json(F.struct(value), _WITH_NULLS) if _is_nested(field.dataType) else value,
        ]
    row = F.xxhash64(*parts) if parts else F.lit(0).cast("bigint")
    return frame.withColumn(HASH, F.when(read.line.isNotNull(), F.xxhash64(read.line)).otherwise(row))


def _is_nested(data_type: T.DataType) -> bool:
    """Whether a hash would not tell where in it a NULL stands, or refuse it."""
    return isinstance(data_type, T.StructType | T.ArrayType | T.MapType | T.VariantType)


def conform(
    frame: DataFrame, read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> DataFrame:
    """The rows of some deliveries with the same columns, as statements, with `_scd_hash` and `_key_readable`.

    A line that is no row, NULL in the business key, a value that does not cast, a missing or impossible time and a
    key outside of the batch's scope make a bad row; a default stands in for NULL before that.
    Errors: Spark's AnalysisException where an expression of the declaration names a column that is not there.
    """
    values = _values(frame, read, source, channel, dimension)
    faults = F.concat_ws("; ", *values.faults).alias(_CAST_FAULTS)
    text = F.coalesce(read.line, _text_of(read)).alias(BAD_ROW)
    typed = frame.select(DELIVERY, HASH, *values.columns, faults, text, read.line.alias(LINE))
    typed = typed.withColumn(KEY_READABLE, F.col(LINE).isNull() & _key_readable(dimension))
    cast_faults = F.when(F.col(_CAST_FAULTS) != "", F.col(_CAST_FAULTS))
    reason = F.concat_ws("; ", cast_faults, *_time_faults(channel, dimension), *_scope_faults(channel))
    no_row = F.when(F.col(LINE).isNotNull(), F.lit(_NO_ROW.get(str(channel.format))))
    typed = typed.withColumn(BAD_REASON, F.coalesce(no_row, F.when(reason != "", reason)))
    return typed.select(*_statement_columns(read, source, channel, dimension), HASH, KEY_READABLE)


@dataclass(frozen=True, slots=True)
class _Values:
    columns: list[Column]
    faults: list[Column]


def _values(frame: DataFrame, read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension) -> _Values:
    """Every declared column, cast, and for each a text that says why it could not be (NULL if it could)."""
    wanted: dict[str, tuple[Mapped, DataType, bool]] = {}
    for key in dimension.business_key:
        wanted[key.name] = (source.column(key.name), parse_type(key.type), False)
    for attribute in dimension.attributes_of(source.name):
        if attribute.name in read.stated:
            wanted[attribute.name] = (source.column(attribute.name), attribute.data_type, attribute.personal)
    if channel.effective_at:
        time = Mapped(from_=channel.effective_at, format=channel.effective_at_format)
        wanted[EFFECTIVE_AT] = (time, parse_type("timestamp"), False)
    if channel.sequence:
        wanted[SEQUENCE] = (Mapped(from_=channel.sequence), parse_type(channel.sequence_type), False)
    unstated = isinstance(channel, Feed) and channel.nulls == "not_stated"  # then NULL is no missing value
    required = {attribute.name for attribute in dimension.attributes if attribute.required and not unstated}
    deletes = isinstance(channel, Feed) and channel.deletes
    deleted = F.coalesce(F.expr(deletes), F.lit(False)) if deletes else F.lit(False)
    physical = {name: _physical(column) for name, (column, _, _) in wanted.items()}
    types = _physical_types(frame, read, {name: column for name, (column, _, _) in wanted.items()})
    columns, faults = [], []
    for name, (column, data_type, personal) in wanted.items():
        given = physical[name]
        cast = _cast(given, types[name], data_type, column.format, source.timezone)
        taken = _defaulted(given, cast.value, column, data_type)
        # A delete states no attribute, so what stands in its place says nothing.
        lost = cast.lost & ~deleted if name in read.stated else cast.lost
        faults.append(_fault(name, given, lost, data_type, personal))
        if name in required:
            faults.append(F.when(given.isNull() & taken.isNull() & ~deleted, F.lit(f"{name} is missing")))
        columns.append(taken.alias(name))
    extra = {REASON: channel.reason, ACTOR: channel.actor, CORRELATION_ID: channel.correlation_id}
    columns += [_or_delivery(name, physical_name).alias(name) for name, physical_name in extra.items()]
    return _Values([*columns, deleted.alias("_deleted")], faults)


def _physical_types(frame: DataFrame, read: Reading, columns: Mapping[str, Mapped]) -> dict[str, T.DataType]:
    """The type of each column as it is delivered; only those of expressions have to be asked for."""
    there = {field.name.lower(): field.dataType for field in read.fields}
    asked = {name: _physical(column) for name, column in columns.items() if column.expression}
    found = {n: there[str(column.from_).lower()] for n, column in columns.items() if not column.expression}
    if asked:
        schema = frame.select(*[value.alias(name) for name, value in asked.items()]).schema
        found |= {name: schema[name].dataType for name in asked}
    return found


def _physical(column: Mapped) -> Column:
    return F.expr(column.expression) if column.expression else col(str(column.from_))


def _or_delivery(name: str, physical: str | None) -> Column:
    """What the row says, else what its delivery says."""
    told = F.col(DELIVERY)[name.lstrip("_")]
    return F.coalesce(col(physical).cast("string"), told) if physical else told


def _defaulted(given: Column, value: Column, column: Mapped, data_type: DataType) -> Column:
    if column.default is None:
        return value
    return F.when(given.isNull(), F.lit(column.default).cast(data_type.ddl())).otherwise(value)


def _fault(name: str, given: Column, lost: Column, data_type: DataType, personal: bool) -> Column:
    """Why a value was not taken; a personal one is not repeated (S31)."""
    label = {EFFECTIVE_AT: "effective_at", SEQUENCE: "sequence"}.get(name, name)
    shown = (
        F.lit("its value") if personal else F.concat(F.lit("'"), F.left(given.cast("string"), F.lit(60)), F.lit("'"))
    )
    return F.when(lost, F.concat(F.lit(f"{label}: "), shown, F.lit(f" is no {data_type.ddl()}")))


@dataclass(frozen=True, slots=True)
class _Cast:
    """A value as its declared type, and whether anything that was delivered is lost in it, be it deep inside."""

    value: Column
    lost: Column


def _cast(given: Column, physical: T.DataType, target: DataType, pattern: str | None, zone: str) -> _Cast:
    """The value as the declared type, leaf by leaf; a leaf that does not cast is NULL, and lost.

    Times without a zone are read in `zone`, wherever they stand (S1).
    """
    ddl = target.ddl()
    if physical.simpleString() == ddl:
        return _Cast(given, F.lit(False))
    if isinstance(physical, T.StringType) and isinstance(target, Struct | Array | Map):
        return _of_json(given, target, zone)
    if isinstance(physical, T.StructType) and isinstance(target, Struct):
        return _struct(given, physical, target, zone)
    if isinstance(physical, T.ArrayType) and isinstance(target, Array):
        return _array(given, physical, target, zone)
    if isinstance(physical, T.MapType) and isinstance(target, Map):
        return _map(given, physical, target, zone)
    if isinstance(physical, T.StructType) and isinstance(target, Map):
        return _map_of_fields(given, physical, target, zone)
    value = _leaf(given, physical, ddl, pattern, zone)
    return _Cast(value, given.isNotNull() & value.isNull())


def _leaf(given: Column, physical: T.DataType, ddl: str, pattern: str | None, zone: str) -> Column:
    if ddl == "timestamp":
        return _timestamp(given, physical, pattern, zone)
    if ddl in ("date", "timestamp_ntz") and pattern and isinstance(physical, T.StringType):
        return F.try_to_timestamp(given, F.lit(pattern)).cast(ddl)
    if ddl == "string" and isinstance(physical, T.StructType | T.ArrayType | T.MapType):
        return F.to_json(given)  # a cast would leave out the names of fields, and different values become equal
    return given.try_cast(ddl)


def _struct(given: Column, physical: T.StructType, target: Struct, zone: str) -> _Cast:
    """By the names of its fields: Spark casts a struct by their places.

    A field that was not delivered is NULL; names are compared without regard to case, as those of columns are.
    """
    there = {field.name.lower(): field for field in physical.fields}
    parts, lost = [], F.lit(False)
    for name, of in target.fields:
        part = _Cast(F.lit(None).cast(of.ddl()), F.lit(False))
        if field := there.get(name.lower()):
            part = _cast(given[field.name], field.dataType, of, None, zone)
        parts.append(part.value.alias(name))
        lost = lost | part.lost
    return _Cast(F.when(given.isNotNull(), F.struct(*parts)), lost)


def _array(given: Column, physical: T.ArrayType, target: Array, zone: str) -> _Cast:
    def element(of: Column) -> _Cast:
        return _cast(of, physical.elementType, target.element, None, zone)

    lost = F.exists(given, lambda of: element(of).lost)
    return _Cast(F.transform(given, lambda of: element(of).value), F.coalesce(lost, F.lit(False)))


def _map(given: Column, physical: T.MapType, target: Map, zone: str) -> _Cast:
    keys = _array(F.map_keys(given), T.ArrayType(physical.keyType), Array(target.key), zone)
    values = _array(F.map_values(given), T.ArrayType(physical.valueType), Array(target.value), zone)
    return _entries(keys, values)


def _map_of_fields(given: Column, physical: T.StructType, target: Map, zone: str) -> _Cast:
    """The fields of a struct as entries: Spark finds structs in JSON files, whatever their objects stand for.

    A field that is NULL is no entry: one that an object lacks comes as NULL too.
    """
    parts, lost = [], F.lit(False)
    for field in physical.fields:
        part = _cast(given[field.name], field.dataType, target.value, None, zone)
        entry = F.struct(F.lit(field.name).alias("key"), part.value.alias("value"))
        parts.append(F.when(given[field.name].isNotNull(), entry))
        lost = lost | part.lost
    there = F.when(given.isNotNull(), F.array_compact(F.array(*parts)))
    keys = _array(F.transform(there, lambda e: e["key"]), T.ArrayType(T.StringType()), Array(target.key), zone)
    return _entries(keys, _Cast(F.transform(there, lambda e: e["value"]), lost))


def _entries(keys: _Cast, values: _Cast) -> _Cast:
    """A map. Lost is also what has two keys that become one: Spark would fail, or keep one of them."""
    lost = keys.lost | (F.size(F.array_distinct(keys.value)) < F.size(keys.value))
    return _Cast(F.when(~lost, F.map_from_arrays(keys.value, values.value)), lost | values.lost)


def _of_json(given: Column, target: DataType, zone: str) -> _Cast:
    """The value that a JSON text is, its leaves read as those of JSON files are.

    Lost is a text that is none of that type, of which Spark would keep a part.
    """
    delivered = _in_json(target)
    parsed = F.from_json(
        F.concat(F.lit('{"v":'), given, F.lit("}")),
        T.StructType([T.StructField("v", delivered), T.StructField(_NO_JSON, T.StringType())]),
        {"columnNameOfCorruptRecord": _NO_JSON},
    )
    whole = F.when(parsed[_NO_JSON].isNull(), parsed["v"])
    cast = _cast(whole, delivered, target, None, zone)
    return _Cast(cast.value, (given.isNotNull() & whole.isNull()) | cast.lost)


def _in_json(target: DataType) -> T.DataType:
    """How a value of this type is asked of Spark's JSON reader: all text, but what is written there in Base64.

    Asked for a time it would not know the source's zone, and take a time of day for one of today.
    """
    match target:
        case Struct(fields=fields):
            return T.StructType([T.StructField(name, _in_json(of)) for name, of in fields])
        case Array(element=element):
            return T.ArrayType(_in_json(element))
        case Map(value=value):
            return T.MapType(T.StringType(), _in_json(value))
        case _:
            return T.BinaryType() if target.ddl() == "binary" else T.StringType()


def _timestamp(given: Column, physical: T.DataType, pattern: str | None, zone: str) -> Column:
    if isinstance(physical, T.TimestampType):
        return given
    if not isinstance(physical, T.StringType):
        value = given.try_cast("timestamp")
        # A number is an instant: it counts from 1970 in UTC, wherever it was counted.
        is_instant = zone == "UTC" or isinstance(physical, T.NumericType)
        return value if is_instant else F.to_utc_timestamp(value, zone)
    if pattern:
        value = F.try_to_timestamp(given, F.lit(pattern))
        zoned = F.lit(bool(ZONE_LETTERS & set(pattern)))
    else:
        # Spark takes a time of day without a date for one of today.
        dated = given.try_cast("timestamp_ntz")
        value = F.when(dated.isNotNull(), given.try_cast("timestamp"))
        zoned = F.trim(given).rlike(_ZONE_AT_END) & (F.length(F.trim(given)) > 10)
    return value if zone == "UTC" else F.when(zoned, value).otherwise(F.to_utc_timestamp(value, zone))


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
    return F.to_json(F.struct(*[col(field.name) for field in read.fields]), _WITH_NULLS)


def _statement_columns(read: Reading, source: Source, channel: Snapshot | Feed, dimension: Dimension) -> list[Column]:
    bad = F.col(BAD_REASON).isNotNull()
    at = F.col(DELIVERY)["at"]
    own_time = F.col(EFFECTIVE_AT) if channel.effective_at else at
    row_timed = channel.kind == "snapshot" and bool(channel.effective_at)
    kind = F.when(bad, "bad").when(F.col("_deleted"), "gone").otherwise("values")
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
    silent_null = isinstance(channel, Feed) and channel.nulls == "not_stated"
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


def batch_counts(rows: DataFrame, scopes: Mapping[str, Sequence[str]], dimension: Dimension) -> DataFrame:
    """One row per batch: what a load has to know of it before anything else.

    Out: `_batch`, `rows`, `bad_rows`, `unreadable` (bad rows without a key), `entities` (distinct key and time of
    good rows), `repeated` (how many of those came more than once), `hash`, `earliest`, `latest` (times of good rows),
    and `scope_<n>` for the n-th scope asked for: the distinct encoded values of rows whose key can be read; a bad row
    among them counts as present (S26), so its delivery speaks of its scope.
    """
    good = F.col(KIND) != "bad"
    groups = rows.groupBy(
        *_group(dimension), good.alias("_good"), F.col(KEY_READABLE), F.col(CHANNEL), F.col(SOURCE)
    ).agg(F.count(F.lit(1)).alias("_n"), F.sum(F.col(HASH).cast("decimal(38,0)")).alias("_h"))
    whole = F.when(F.col("_good"), F.lit(1)).otherwise(0)
    wanted = {
        f"scope_{number}": F.collect_set(
            F.when(F.col(KEY_READABLE) & (F.concat_ws("/", SOURCE, CHANNEL) == lineage), key_text(names))
        )
        for number, (lineage, names) in enumerate(scopes.items())
    }
    return groups.groupBy(BATCH).agg(
        F.sum("_n").alias("rows"),
        F.sum(F.when(~F.col("_good"), F.col("_n")).otherwise(0)).alias("bad_rows"),
        F.sum(F.when(~F.col(KEY_READABLE), F.col("_n")).otherwise(0)).alias("unreadable"),
        F.sum(whole).alias("entities"),
        F.sum(F.when(F.col("_good") & (F.col("_n") > 1), 1).otherwise(0)).alias("repeated"),
        F.sum("_h").cast("string").alias("hash"),
        F.min(F.when(F.col("_good"), F.col(EFFECTIVE_AT))).alias("earliest"),
        F.max(F.when(F.col("_good"), F.col(EFFECTIVE_AT))).alias("latest"),
        *[value.alias(name) for name, value in wanted.items()],
    )


def conflicts(rows: DataFrame, dimension: Dimension, most: int) -> DataFrame:
    """Keys for which one batch gives one attribute different values with nothing to order them (S5).

    Out: `_batch` and the business key as text, `key`, for groups of the same batch, key, time and sequence; of each
    batch the first so many.
    """
    good = rows.where(F.col(KIND) != "bad")
    differs = F.min(KIND) != F.max(KIND)
    for name, data_type in attribute_types(dimension).items():
        value = F.when(col(name).isNotNull(), F.struct(comparable(col(name)["v"], data_type).alias("v")))
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
    names = [name for name in rows.columns if name not in set(_group_names(dimension))]
    merged = [
        (
            F.first(quoted(name), ignorenulls=True)
            if name in types and has_map(types[name])
            else (F.min if name in (REASON, ACTOR, CORRELATION_ID) else F.max)(quoted(name))
        ).alias(name)
        for name in names
    ]
    return rows.groupBy(*_group(dimension)).agg(*merged).select(*[col(name) for name in rows.columns])


def _group_names(dimension: Dimension) -> list[str]:
    return [BATCH, *dimension.key_names, EFFECTIVE_AT, SEQUENCE]
