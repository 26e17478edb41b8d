"""Read JSON files; a line that is not one object or an array of objects becomes a bad row with its text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.casts import with_quoted_numbers
from scd_pipeline.deliveries.paths import escape_glob, file_column, row_order_column
from scd_pipeline.deliveries.row_columns import FILE, LINE, PROBLEM, ROW_ORDER
from scd_pipeline.deliveries.text_files import (
    NOT_UTF8,
    TEXT,
    TextOptions,
    declared_options,
    is_blank,
    read_by_spark,
    read_lines,
    with_problems,
)
from scd_pipeline.expressions import quote_name

_NO_OBJECT = "the line is not a JSON object or an array of objects, or has text after it"
_INDENTED = 'the lines are parts of one indented document; declare `options: {multiLine: "true"}` in the channel'
_OBJECTS, _OBJECT, _POSITION = "_objects", "_object", "_position"
_LINE_NUMBER_BITS, _POSITION_BITS = 33, 20


def infer_json_fields(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> list[T.StructField]:
    """Return the columns that Spark infers from the objects of JSON files, all simple values as text."""
    rows = _spark_reader(spark, channel).load([escape_glob(path) for path in paths])
    return [field for field in rows.schema.fields if field.name != LINE]


def has_only_nulls(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> bool:
    """Return whether each text of JSON files without columns is `null`, as the file of a few tombstones is."""
    options = TextOptions(declared_options(channel))
    return not options.is_wide and _texts(spark, options, paths).where(~F.trim(TEXT).isin("", "null")).isEmpty()


def find_empty_objects(
    spark: SparkSession, channel: Snapshot | Feed, path: str, names: Collection[str]
) -> list[T.StructField]:
    """Return the columns of JSON files that have empty objects, and that Spark has not inferred, as text.

    Args:
        spark: The session.
        channel: The channel, with its options.
        path: The path of the files.
        names: The columns to look for; case does not matter.
    """
    options = TextOptions(declared_options(channel))
    if options.is_wide or not names:
        return []
    objects = _objects_of_type(F.col(TEXT), T.MapType(T.StringType(), T.StringType()), options.parser_options())
    texts = _texts(spark, options, [path]).select(F.explode(objects).alias(_OBJECT))
    entry = F.explode(F.map_entries(_OBJECT)).alias("entry")
    is_requested = F.lower("entry.key").isin([name.lower() for name in names])
    empty = texts.select(entry).where(is_requested & (F.col("entry.value") == "{}")).select("entry.key").distinct()
    return [T.StructField(row["key"], T.StringType()) for row in empty.collect()]


def read_json(
    spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], fields: Sequence[T.StructField]
) -> DataFrame:
    """Return the objects of JSON files, in the columns of `with_problems`.

    With the option `multiLine` each file is one text, otherwise each line. A text is one object, or an array of
    objects; any other text is a bad row. Spark's own reader would drop text after the first object. If the channel
    has the condition `rows`, the text `null` is a row without values, to which the condition applies: message queues
    mark deletes by such tombstones.

    Args:
        spark: The session.
        channel: The channel, with its options.
        paths: The paths of the files.
        fields: The columns, as `infer_json_fields` returns them.
    """
    options = TextOptions(declared_options(channel))
    names = [field.name for field in fields]
    if options.is_wide:
        return read_by_spark(_spark_reader(spark, channel), paths, fields, _NO_OBJECT)
    lines = _texts(spark, options, paths).select(TEXT, file_column(), row_order_column().alias(ROW_ORDER))
    is_valid = F.is_valid_utf8(TEXT)
    row = T.StructType(list(fields))
    objects = _objects(F.when(is_valid, F.col(TEXT)), row, options)
    if channel.rows:
        no_fields = F.array(F.lit(None).cast(row))
        objects = F.when(F.trim(TEXT) == "null", no_fields).otherwise(objects)
    problem = F.when(~is_valid, F.lit(NOT_UTF8.format("line"))).when(F.col(_OBJECTS).isNull(), F.lit(_NO_OBJECT))
    no_object = F.array(F.lit(None).cast(row))
    order = F.struct(F.col(ROW_ORDER)["block"].alias("block"), _order_in_block().alias("row"))
    rows = (
        lines.where(~is_blank(F.col(TEXT)))
        .withColumn(_OBJECTS, objects)
        .select(
            *(FILE, ROW_ORDER, TEXT, problem.alias(PROBLEM)),
            F.posexplode(F.coalesce(_OBJECTS, no_object)).alias(_POSITION, _OBJECT),
        )
        .withColumn(ROW_ORDER, order)
    )
    values = [F.col(_OBJECT)[name].alias(name) for name in names]
    line = F.lit(None).cast("string").alias(LINE)
    return with_problems(rows.select(FILE, ROW_ORDER, TEXT, PROBLEM, line, *values), names, _NO_OBJECT)


def indentation_hint(spark: SparkSession, channel: Snapshot | Feed, path: str) -> str:
    """Return the reason if the lines of JSON files are parts of an indented document; otherwise empty."""
    options = TextOptions(declared_options(channel))
    if options.is_on("multiline") or options.is_wide:
        return ""
    brackets = F.trim(F.col(TEXT), F.lit(" \t\r")).isin("[", "{")
    is_indented = not read_lines(spark, options, [path]).where(brackets).isEmpty()
    return _INDENTED if is_indented else ""


def _texts(spark: SparkSession, options: TextOptions, paths: Sequence[str]) -> DataFrame:
    if not options.is_on("multiline"):
        return read_lines(spark, options, paths)
    without_bom = F.col(TEXT) if options.is_latin else F.regexp_replace(TEXT, "^\ufeff", "")
    return read_lines(spark, options, paths, wholetext="true").withColumn(TEXT, without_bom)


def _order_in_block() -> Column:
    """Return the order of objects in a block: by the line's number in its task, then by the position in its array."""
    line = F.col(ROW_ORDER)["row"].bitwiseAND(F.lit(2**_LINE_NUMBER_BITS - 1))
    return F.shiftleft(line, _POSITION_BITS) + F.col(_POSITION)


def _objects(text: Column, row: T.StructType, options: TextOptions) -> Column:
    """Return the objects of a text; NULL if it is invalid.

    The text is parsed inside an array: there Spark does not ignore text after an object. It is also parsed inside an
    object: there Spark does not ignore text after a bracket that closes the array early. No text closes both.
    """
    parser = {"primitivesAsString": "true", **options.parser_options()}
    if options.is_on("primitivesasstring", "true"):
        text = with_quoted_numbers(text)
    objects = _objects_of_type(text, row, parser)
    in_object = F.from_json(F.concat(F.lit('{"v":'), text, F.lit("}")), f"v string, {quote_name(LINE)} string", parser)
    is_closed_early = F.contains(text, F.lit("]")) & in_object[LINE].isNotNull()
    return F.when(~is_closed_early & ~F.exists(objects, lambda each: each.isNull()), objects)


def _objects_of_type(text: Column, type_of_each: T.DataType, parser: Mapping[str, str]) -> Column:
    """Return the objects of a text as an array of a type; NULL if it is neither an object nor an array of objects."""
    in_array = F.concat(F.lit("["), text, F.lit("]"))
    single = F.from_json(in_array, T.ArrayType(type_of_each), dict(parser))
    many = F.from_json(in_array, T.ArrayType(T.ArrayType(type_of_each)), dict(parser))
    return F.when(F.ltrim(text).startswith("["), F.when(F.size(many) == 1, many[0])).otherwise(
        F.when(F.size(single) == 1, single)
    )


def _spark_reader(spark: SparkSession, channel: Snapshot | Feed) -> DataFrameReader:
    reader = spark.read.format("json").options(primitivesAsString="true")
    if "encoding" in declared_options(channel):
        reader = reader.option("lineSep", "\n")  # Spark requires it with an encoding
    return reader.options(**channel.reader_options).options(columnNameOfCorruptRecord=LINE)
