"""Read JSON files; a line that is not one object or an array of objects becomes a bad row with its text."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.deliveries import json_text
from scd_pipeline.deliveries.paths import escape_glob, file_column, row_order_column
from scd_pipeline.deliveries.row_columns import FIELDS, FILE, LINE, PROBLEM, ROW_ORDER
from scd_pipeline.deliveries.text_files import (
    TEXT,
    TextOptions,
    declared_options,
    is_blank,
    read_by_spark,
    read_lines,
    with_problems,
)

_ONE_DOCUMENT = 'each file is one document of several lines; declare `options: {multiLine: "true"}` in the channel'
_TAGGED, _OBJECTS, _OBJECT, _POSITION = "_tagged", "_objects", "_object", "_position"
_DOCUMENTS = "_documents"
_SINGLE, _MANY = "_single", "_many"
_NAME, _VALUE, _REPEATED = "_name", "_value", "_repeated"
_LINE_NUMBER_BITS, _POSITION_BITS = 33, 20


@dataclass(frozen=True, slots=True)
class JsonField:
    """A field of the objects of JSON files.

    Attributes:
        name: Its name.
        is_nested: Whether a value of it is an object or an array, or a string that looks like one.
        is_repeated: Whether an object has it twice.
    """

    name: str
    is_nested: bool
    is_repeated: bool


def json_fields(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> list[JsonField]:
    """Return all fields of the objects of JSON files, ordered by name; names that differ in case are different ones."""
    options = TextOptions(declared_options(channel))
    if options.is_wide:
        types = {field.name: field.dataType for field in _inferred_columns(spark, channel, paths)}
        return [JsonField(name, not isinstance(each, T.StringType), False) for name, each in types.items()]
    text = F.when(options.is_valid(F.col(TEXT)), json_text.tag_halves(F.col(TEXT)))
    texts = _with_records(_texts(spark, options, paths).select(text.alias(_TAGGED)), channel, options)
    parsed = _with_parsed(texts, T.MapType(T.StringType(), T.StringType()), options.parser_options())
    each = parsed.select(F.explode(_objects()).alias(_OBJECT))
    each = each.withColumn(_REPEATED, _repeated_names(F.col(_OBJECT)))  # before the values: once for each object
    values = each.select(F.explode(_OBJECT).alias(_NAME, _VALUE), _REPEATED)
    row = values.agg(F.collect_set(_field_entry())).first()
    fields: dict[str, JsonField] = {}
    for name, is_nested, is_repeated in sorted(row[0] if row else ()):
        before = fields.get(name, JsonField(name, False, False))
        fields[name] = JsonField(name, before.is_nested or is_nested, before.is_repeated or is_repeated)
    return list(fields.values())


def as_text(fields: Sequence[JsonField]) -> list[T.StructField]:
    """Return fields as columns of text."""
    return [T.StructField(field.name, T.StringType()) for field in fields]


def _repeated_names(map_of_object: Column) -> Column:
    """Return the names that an object has twice; NULL for most objects, for which no names are compared."""
    names = F.map_keys(map_of_object)
    distinct = F.array_distinct(names)
    twice = F.filter(distinct, lambda name: F.size(F.filter(names, lambda other: other == name)) > 1)
    return F.when(F.size(distinct) < F.size(names), twice)


def _field_entry() -> Column:
    """Return the name of a field, and whether this value shows that it is nested or repeated."""
    value, has_twice = F.col(_VALUE), F.array_contains(_REPEATED, F.col(_NAME))
    is_nested = F.coalesce(value.startswith("{") | value.startswith("["), F.lit(False))
    return F.struct(
        F.col(_NAME), is_nested.alias("is_nested"), F.coalesce(has_twice, F.lit(False)).alias("is_repeated")
    )


def nested_columns(
    spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], names: Collection[str]
) -> dict[str, T.DataType]:
    """Return the types that Spark infers for fields with objects and arrays, whose simple values are text.

    Empty if it cannot infer types, because objects have names that are equal except for case.
    """
    try:
        inferred = _inferred_columns(spark, channel, paths)
    except AnalysisException as error:
        if error.getCondition() != "COLUMN_ALREADY_EXISTS":
            raise
        return {}
    return {field.name: field.dataType for field in inferred if field.name in names}


def _inferred_columns(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> list[T.StructField]:
    rows = _spark_reader(spark, channel).load([escape_glob(path) for path in paths])
    schema = TextOptions(declared_options(channel)).decode_name(json.dumps(rows.schema.jsonValue(), ensure_ascii=False))
    columns: T.DataType = T.StructType.fromJson(json.loads(schema))
    for name in channel.record_path.split(".") if channel.record_path else ():
        types = {field.name: field.dataType for field in getattr(columns, "fields", ())}
        columns = types.get(name, T.NullType())
        columns = columns.elementType if isinstance(columns, T.ArrayType) else columns
    return [field for field in getattr(columns, "fields", ()) if field.name != LINE]


def has_only_nulls(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> bool:
    """Return whether each text of JSON files without columns is `null`, as the file of a few tombstones is."""
    options = TextOptions(declared_options(channel))
    return not options.is_wide and _texts(spark, options, paths).where(~F.trim(TEXT).isin("", "null")).isEmpty()


def read_json(
    spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], fields: Sequence[T.StructField]
) -> DataFrame:
    """Return the objects of JSON files, in the columns of `with_problems`, and their tokens in `_scd_fields`.

    With the option `multiLine` each file is one text, otherwise each line. A text is one object, or an array of
    objects; any other text is a bad row. Spark's own reader would drop text after the first object. If the channel
    has the condition `rows`, the text `null` is a row without values, to which the condition applies: message queues
    mark deletes by such tombstones.

    Args:
        spark: The session.
        channel: The channel, with its options.
        paths: The paths of the files.
        fields: The columns: text, or the type by which a nested value is parsed.
    """
    options = TextOptions(declared_options(channel))
    if options.is_wide:
        return read_by_spark(_spark_reader(spark, channel), paths, fields, _no_object_problem(channel))
    names = [field.name for field in fields]
    lines = _texts(spark, options, paths).select(TEXT, file_column(), row_order_column().alias(ROW_ORDER))
    is_valid = options.is_valid(F.col(TEXT))
    row = T.StructType([T.StructField(name, T.StringType()) for name in names or [LINE]])
    tagged = json_text.tag_values(F.when(is_valid, F.col(TEXT)))
    objects = _valid_objects(options)
    if channel.rows:
        no_fields = F.array(F.lit(None).cast(row))
        objects = F.when(F.trim(TEXT) == "null", no_fields).otherwise(objects)
    no_object_problem = _no_object_problem(channel)
    problem = F.when(~is_valid, F.lit(options.invalid_bytes("line")))
    problem = problem.when(F.col(_OBJECTS).isNull(), F.lit(no_object_problem))
    no_object = F.array(F.lit(None).cast(row))
    order = F.struct(F.col(ROW_ORDER)["block"].alias("block"), _order_in_block().alias("row"))
    texts = lines.where(~is_blank(F.col(TEXT))).withColumn(_TAGGED, tagged)
    parsed = _with_parsed(_with_records(texts, channel, options), row, options.parser_options())
    rows = (
        parsed.withColumn(_OBJECTS, _objects())
        .withColumn(_OBJECTS, objects)
        .select(
            *(FILE, ROW_ORDER, TEXT, problem.alias(PROBLEM)),
            F.posexplode(F.coalesce(_OBJECTS, no_object)).alias(_POSITION, _OBJECT),
        )
        .withColumn(ROW_ORDER, order)
    )
    values = [_value(F.col(_OBJECT)[field.name], field.dataType).alias(field.name) for field in fields]
    line = F.lit(None).cast("string").alias(LINE)
    read = rows.select(FILE, ROW_ORDER, TEXT, PROBLEM, line, F.col(_OBJECT).alias(FIELDS), *values)
    return with_problems(read, [FIELDS, *names], no_object_problem)


def _with_records(texts: DataFrame, channel: Snapshot | Feed, options: TextOptions) -> DataFrame:
    """Replace each tagged document by its records, if the channel has a `record_path`; NULL if it has none there.

    As in `_valid_objects`, the document is parsed inside an array, in which Spark does not ignore text after it.
    """
    if not channel.record_path:
        return texts
    names, documents = channel.record_path.split("."), F.col(_DOCUMENTS)
    document: T.DataType = T.StringType()
    for name in reversed(names):
        document = T.StructType([T.StructField(name, document)])
    in_array = F.concat(F.lit("["), F.col(_TAGGED), F.lit("]"))
    parsed = texts.withColumn(_DOCUMENTS, F.from_json(in_array, T.ArrayType(document), options.parser_options()))
    records = documents[0]
    for name in names:
        records = records[name]
    is_empty = json_text.is_null(records) & records.isNotNull()
    return parsed.withColumn(_TAGGED, F.when(F.size(documents) == 1, F.when(is_empty, F.lit("[]")).otherwise(records)))


def _no_object_problem(channel: Snapshot | Feed) -> str:
    """Return the reason why a text without the objects of rows is a bad row."""
    if not channel.record_path:
        return "the line is not a JSON object or an array of objects, or has text after it"
    return f"the line is not a JSON object with an object or an array of objects at {channel.record_path}"


def _value(token: Column, data_type: T.DataType) -> Column:
    """Return a value as expressions see it: text, or the nested value with all its leaves as text."""
    if isinstance(data_type, T.StructType | T.ArrayType):  # not as DDL, in which a name may need quotes
        return F.from_json(json_text.without_marks(token), data_type)
    return json_text.to_text(token)


def document_hint(spark: SparkSession, channel: Snapshot | Feed, path: str) -> str:
    """Return the reason if lines of JSON files are parts of a document, such as an indented one; otherwise empty.

    A bracket alone on a line shows it, even if the document is incomplete; otherwise the files are parsed as documents.
    """
    options = TextOptions(declared_options(channel))
    if options.is_on("multiline") or options.is_wide or _has_only_objects(spark, options, path):
        return ""
    brackets = F.trim(F.col(TEXT), F.lit(" \t\r")).isin("[", "{")
    has_bracket_line = not read_lines(spark, options, [path]).where(brackets).isEmpty()
    documents = replace(options, options={**options.options, "multiline": "true"})
    return _ONE_DOCUMENT if has_bracket_line or _has_only_objects(spark, documents, path) else ""


def _has_only_objects(spark: SparkSession, options: TextOptions, path: str) -> bool:
    """Return whether each text of JSON files is one object or an array of objects, except for blank ones."""
    texts = _texts(spark, options, [path]).where(~is_blank(F.col(TEXT)))
    tagged = texts.select(json_text.tag_values(F.when(F.is_valid_utf8(TEXT), F.col(TEXT))).alias(_TAGGED))
    row = T.StructType([T.StructField(LINE, T.StringType())])
    parsed = _with_parsed(tagged, row, options.parser_options()).withColumn(_OBJECTS, _objects())
    return parsed.where(_valid_objects(options).isNull()).isEmpty()


def _texts(spark: SparkSession, options: TextOptions, paths: Sequence[str]) -> DataFrame:
    if not options.is_on("multiline"):
        return read_lines(spark, options, paths)
    without_bom = F.col(TEXT) if options.has_single_bytes else F.regexp_replace(TEXT, "^\ufeff", "")
    return read_lines(spark, options, paths, wholetext="true").withColumn(TEXT, without_bom)


def _order_in_block() -> Column:
    """Return the order of objects in a block: by the line's number in its task, then by the position in its array."""
    line = F.col(ROW_ORDER)["row"].bitwiseAND(F.lit(2**_LINE_NUMBER_BITS - 1))
    return F.shiftleft(line, _POSITION_BITS) + F.col(_POSITION)


def _with_parsed(texts: DataFrame, type_of_each: T.DataType, parser: Mapping[str, str]) -> DataFrame:
    """Parse each tagged text as an array of a type, or as an array of such arrays if it begins with a bracket.

    Tagged texts, parsed ones and objects are columns: Spark would compute an expression once for each use in another.
    """
    in_array = F.concat(F.lit("["), F.col(_TAGGED), F.lit("]"))
    is_array = F.ltrim(F.col(_TAGGED), F.lit(" \t\r\n")).startswith("[")
    single = F.from_json(in_array, T.ArrayType(type_of_each), dict(parser))
    many = F.from_json(in_array, T.ArrayType(T.ArrayType(type_of_each)), dict(parser))
    return texts.withColumns({_SINGLE: F.when(~is_array, single), _MANY: F.when(is_array, many)})


def _objects() -> Column:
    """Return the objects of a parsed text as an array; NULL if it is neither an object nor an array of objects."""
    single, many = F.col(_SINGLE), F.col(_MANY)
    return F.when(F.size(single) == 1, single).when(F.size(many) == 1, many[0])


def _valid_objects(options: TextOptions) -> Column:
    """Return the tokens of the objects of a tagged text; NULL if it is invalid.

    The text is parsed inside an array: there Spark does not ignore text after an object. It is also parsed inside an
    object: there Spark does not ignore text after a bracket that closes the array early. No text closes both.
    """
    text, objects = F.col(_TAGGED), F.col(_OBJECTS)
    schema = f"v string, {quote_name(LINE)} string"
    in_object = F.from_json(F.concat(F.lit('{"v":'), text, F.lit("}")), schema, options.parser_options())
    is_closed_early = F.contains(text, F.lit("]")) & in_object[LINE].isNotNull()
    return F.when(~is_closed_early & ~F.exists(objects, lambda each: each.isNull()), objects)


def _spark_reader(spark: SparkSession, channel: Snapshot | Feed) -> DataFrameReader:
    reader = spark.read.format("json").options(primitivesAsString="true")
    options = TextOptions(declared_options(channel)).spark_options
    if "encoding" in options:
        reader = reader.option("lineSep", "\n")  # Spark requires it with an encoding
    return reader.options(**options).options(columnNameOfCorruptRecord=LINE)
