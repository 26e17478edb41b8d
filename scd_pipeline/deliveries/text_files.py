"""CSV and JSON files as rows of text. A line or a record that is no whole row becomes a bad row, with its text.

Spark's own readers drop or change text without an error: what follows the first object of a JSON line, quotes that are
not doubled, bytes that are not in the encoding. Therefore each record is checked as raw text before Spark parses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, DataFrameReader, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.casts import with_quoted_numbers
from scd_pipeline.deliveries.conform import LINE, PROBLEM, ROW_ORDER
from scd_pipeline.expressions import col, quote_name

FILE = "_scd_file"
"""The column with the file of a row, as Spark names it."""
MAX_COLUMNS = 20_480
"""The columns that Spark's CSV reader accepts unless `maxColumns` says otherwise."""
_TEXT = "_scd_text"
_FILE_OPTIONS = ("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "ignorecorruptfiles")
# What the reader of whole files does, and not the parser of one record.
_READER_OPTIONS = (
    *_FILE_OPTIONS,
    *("header", "multiline", "encoding", "charset", "mode", "linesep", "inferschema", "enforceschema", "comment"),
    *("samplingratio", "columnnameofcorruptrecord", "ignoremissingfiles"),
)
_WIDE = re.compile(r"utf-?(16|32).*", re.IGNORECASE)
_LATIN = "ISO-8859-1"
_NOT_UTF8 = "the {} has bytes that are not UTF-8; declare the file's `encoding` in the channel's options"
_QUOTES = "a quoted field {} is not closed, or a quote in it is not doubled"
_FIELDS = "the line has fewer or more fields than the header"
_NO_OBJECT = "the line is no JSON object, or has text after it"
_ESCAPED = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\\\": "\\", '\\"': '"', "\\'": "'", "\\u0000": "\0"}
_NEVER_A_SEPARATOR = "\x01scd\x02"


@dataclass(frozen=True, slots=True)
class Layout:
    """What has to be known of a CSV file, or a folder of them, before its rows are read.

    `header` is its first record as text. With `is_multi_line` a quoted field spans lines, so that the file cannot be
    split among tasks. `problem` says why it cannot be read at all; it names file and line.
    """

    header: str = ""
    is_multi_line: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How the text files of a channel are written: Spark's options, with doubled quotes as the default (RFC 4180)."""

    options: Mapping[str, str]

    @classmethod
    def of(cls, channel: Snapshot | Feed) -> _Dialect:
        return cls({name.lower(): str(value) for name, value in channel.reader_options.items()})

    def is_on(self, name: str, default: str = "false") -> bool:
        return self.options.get(name, default).lower() == "true"

    @property
    def encoding(self) -> str:
        return self.options.get("encoding", self.options.get("charset", "UTF-8"))

    @property
    def is_wide(self) -> bool:
        """Whether a character has several bytes, which may look like the end of a line."""
        return bool(_WIDE.fullmatch(self.encoding))

    @property
    def is_latin(self) -> bool:
        return self.encoding.upper() == _LATIN

    @property
    def separator(self) -> str:
        given = self.options.get("sep", self.options.get("delimiter", ","))
        return _ESCAPED.get(given, given)

    @property
    def quote(self) -> str:
        """The quote character; empty where quotes have no meaning."""
        lenient = {"unescapedquotehandling", "chartoescapequoteescaping"} & self.options.keys()
        return "" if lenient else self.options.get("quote", '"').strip("\0")

    @property
    def escape(self) -> str:
        return self.options.get("escape", self.quote)

    @property
    def max_columns(self) -> int:
        return int(self.options.get("maxcolumns", MAX_COLUMNS))

    def file_options(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name in _FILE_OPTIONS}

    def parser_options(self) -> dict[str, str]:
        """Return the options of the parser of one record."""
        declared = {name: value for name, value in self.options.items() if name not in _READER_OPTIONS}
        strict = {"mode": "FAILFAST"} if self.options.get("mode", "").upper() == "FAILFAST" else {}
        return {**declared, **strict, "columnNameOfCorruptRecord": LINE}

    def _field(self) -> str:
        """Return the pattern of a quoted field, which never backtracks: a long field must not exhaust the stack."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if self.escape == self.quote:
            return f"{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}"
        return f"{quote}[^{quote}{escape}]*+(?:{escape}.[^{quote}{escape}]*+)*+{quote}"

    def is_whole(self, text: Column) -> Column:
        """Return whether a text is a whole record: quoted fields are closed, and quotes in them doubled or escaped."""
        if not self.quote:
            return F.lit(True)
        quote, separator = re.escape(self.quote), re.escape(self.separator)
        blank = r"[ \t]*+" if self.is_on("ignoreleadingwhitespace") else ""
        after = r"[ \t]*+" if self.is_on("ignoretrailingwhitespace") else ""
        field = rf"(?:{blank}{self._field()}{after}|(?!{blank}{quote})(?:(?!{separator})[^\r\n])*+)"
        record = rf"(?s)\A{field}(?:{separator}{field})*+\z"
        return (F.instr(text, self.quote) == 0) | text.rlike(record)

    def quotes(self, text: Column) -> Column:
        """Return the number of quotes in a line, without those that are escaped by another character."""
        if not self.quote:
            return F.lit(0)
        if self.escape and self.escape != self.quote:
            text = F.regexp_replace(text, F.lit(f"(?s){re.escape(self.escape)}."), F.lit(""))
        return F.length(text) - F.length(F.replace(text, F.lit(self.quote), F.lit("")))

    def may_span_lines(self, is_torn: bool) -> bool:
        """Return whether records of a file have to be put together from lines, as declared or by its lines."""
        return self.is_on("multiline") or (is_torn and "multiline" not in self.options)

    def has_few_fields(self, text: Column) -> Column:
        """Return whether a record has no more fields than Spark's parser has room for."""
        size = len(self.separator)
        return F.length(text) - F.length(F.replace(text, F.lit(self.separator), F.lit(""))) < self.max_columns * size

    def is_comment(self, text: Column) -> Column:
        comment = self.options.get("comment", "")
        return text.startswith(comment) if comment.strip("\0") else F.lit(False)


def plain_path(path: str) -> str:
    """Return a path or URL in one spelling: local ones absolute without a scheme, no slash doubled or at the end."""
    # Links stay as they are: Spark names a file by the path that it was given.
    full = path if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) else os.path.abspath(path)  # noqa: PTH100 (see above)
    return str(PurePosixPath(re.sub(r"^file:/+", "/", full)))


def file_column() -> Column:
    """Return the file of a row as Spark names it, in the spelling of `file_name`, still percent-encoded."""
    uri = F.regexp_replace(F.col("_metadata.file_path"), "^([A-Za-z0-9+.-]+):///", "$1:/")
    return F.regexp_replace(uri, "^file:/", "/").alias(FILE)


def row_order() -> Column:
    """Return where in its file a row is: rows are in order in each block of the file, which one task reads."""
    return F.struct(F.col("_metadata.file_block_start").alias("block"), F.monotonically_increasing_id().alias("row"))


def file_name(uri: str) -> str:
    """Return the same for a URI that Spark returns to the client, with more slashes."""
    return re.sub("^file:/", "/", re.sub("^([A-Za-z0-9+.-]+):///", r"\1:/", uri))


def path_of(uri: str, paths: Mapping[str, str]) -> str | None:
    """Return the path that a file belongs to, its own or that of a folder around it; `paths` are by plain spelling."""
    file = PurePosixPath(plain_path(unquote(uri)))
    return next((paths[str(part)] for part in (file, *file.parents) if str(part) in paths), None)


def literal(path: str) -> str:
    """Return a path as Spark reads it: in one that exists no character makes a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path) if os.path.lexists(path) else path


# -- CSV


def layouts(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> dict[str, Layout]:
    """Return the layout of each CSV file or folder, by one job, and one more where quoted fields span lines.

    Returns:
        An empty layout for files without lines, and for an encoding of wide characters, which Spark reads by itself.

    Raises:
        Spark's errors for a path that is missing or cannot be read.
    """
    dialect = _Dialect.of(channel)
    if dialect.is_wide:
        return dict.fromkeys(paths, Layout())
    first = F.min_by(_TEXT, F.when(F.col("_block") == 0, F.col("_number")))
    lines = _lines(spark, dialect, paths).where(_is_filled(dialect))
    scanned = (
        lines.groupBy(FILE).agg(*_header(first), F.max(~dialect.is_whole(F.col(_TEXT))).alias("is_torn")).collect()
    )
    parts = {row[FILE]: _part(dialect, row) for row in scanned}
    if torn := [row[FILE] for row in scanned if dialect.may_span_lines(row["is_torn"])]:
        parts |= _torn(spark, dialect, torn)
    named = {plain_path(path): path for path in paths}
    return {
        path: _of_parts(dialect, {file: at for file, at in sorted(parts.items()) if path_of(file, named) == path})
        for path in paths
    }


def _header(first: Column) -> tuple[Column, Column]:
    return F.make_valid_utf8(first).alias("header"), F.is_valid_utf8(first).alias("is_valid")


def _is_filled(dialect: _Dialect) -> Column:
    return (F.trim(F.col(_TEXT)) != "") & ~dialect.is_comment(F.col(_TEXT))


def _part(dialect: _Dialect, row: Row, *, is_multi_line: bool = False, problem: str = "") -> Layout:
    """Return the layout of one file, and check its header."""
    header = row["header"] or ""
    columns = header.count(dialect.separator) + 1
    if not row["is_valid"]:
        problem = f"line 1: {_NOT_UTF8.format('header')}"
    elif columns > dialect.max_columns:
        limit = f"expected at most {dialect.max_columns:,}; declare `maxColumns` in the channel's options"
        problem = f"line 1: its header has {columns:,} columns; {limit}"
    return Layout(header, is_multi_line, problem)


def _torn(spark: SparkSession, dialect: _Dialect, files: Sequence[str]) -> dict[str, Layout]:
    """Return the layouts of files with lines that are no whole records: fields span lines, or quotes are invalid."""
    records = _records(spark, dialect, [plain_path(unquote(file)) for file in files])
    # Once a quote is wrong it is uncertain where its record ends, and what each row after it holds.
    uncertain = ~dialect.is_whole(F.col(_TEXT)) & ((F.col("_lines") > 1) | F.col("_is_open"))
    rows = records.groupBy(FILE).agg(
        *_header(F.min_by(_TEXT, "_number")),
        F.max(F.col("_lines") > 1).alias("spans"),
        F.min(F.when(uncertain, F.col("_number"))).alias("line"),
    )
    always = dialect.is_on("multiline")
    return {
        row[FILE]: _part(
            dialect,
            row,
            is_multi_line=always or row["spans"],
            problem=f"line {row['line']}: {_QUOTES.format('that begins here')}" if row["line"] else "",
        )
        for row in rows.collect()
    }


def _of_parts(dialect: _Dialect, parts: Mapping[str, Layout]) -> Layout:
    """Return the layout of a delivery: one file, or a folder of files with one header."""
    if not parts:
        return Layout()
    (first, layout), *others = parts.items()
    problems = [f"{plain_path(unquote(file))}, {at.problem}" for file, at in parts.items() if at.problem]
    if dialect.is_on("header", "true"):
        problems += [
            f"{plain_path(unquote(file))}, line 1: its header is not that of {plain_path(unquote(first))}; expected "
            "the same columns in the same order in all files of a folder"
            for file, at in others
            if at.header != layout.header
        ]
    return replace(layout, is_multi_line=any(at.is_multi_line for at in parts.values()), problem="".join(problems[:1]))


def _lines(spark: SparkSession, dialect: _Dialect, paths: Sequence[str], separator: str | None = None) -> DataFrame:
    """Return the lines of files, blank ones too, with their file and their order in it: `_block`, then `_number`."""
    reader = spark.read.format("text").options(**dialect.file_options())
    if end := dialect.options.get("linesep", separator):
        reader = reader.option("lineSep", end)
    text = F.col("value")
    if dialect.is_latin:
        text = F.decode(text.cast("binary"), _LATIN)
    position = (F.col("_metadata.file_block_start").alias("_block"), F.monotonically_increasing_id().alias("_number"))
    return reader.load([literal(path) for path in paths]).select(text.alias(_TEXT), file_column(), *position)


def _records(spark: SparkSession, dialect: _Dialect, paths: Sequence[str]) -> DataFrame:
    """Return the records of files whose quoted fields may span lines, without comments.

    A line begins a record if the quotes before it in its file are paired. Columns: text, file, `_number` of the first
    line, `_lines`, and `_is_open` for a record whose quotes are not paired.
    """
    in_order = Window.partitionBy(FILE).orderBy("_block", "_number")
    lines = _lines(spark, dialect, paths, separator="\n")
    quotes = F.when(dialect.is_comment(F.col(_TEXT)), F.lit(0)).otherwise(dialect.quotes(F.col(_TEXT)))
    before = F.coalesce(F.sum("_quotes").over(in_order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0))
    begins = F.when(F.col("_before") % 2 == 0, F.lit(1)).otherwise(F.lit(0))
    numbered = (
        lines.withColumn("_quotes", quotes)
        .withColumns({"_before": before, "_line": F.row_number().over(in_order)})
        .withColumn("_record", F.sum(begins).over(in_order))
    )
    parts = F.array_sort(F.collect_list(F.struct("_line", _TEXT)))
    text = F.array_join(F.transform(parts, lambda part: part[_TEXT]), dialect.options.get("linesep", "\n"))
    records = numbered.groupBy(FILE, "_record").agg(
        F.regexp_replace(text, r"\r\z", "").alias(_TEXT),
        F.min("_line").alias("_number"),
        F.count(F.lit(1)).alias("_lines"),
        (F.sum("_quotes") % 2 == 1).alias("_is_open"),
    )
    return records.where(_is_filled(dialect))


def read_csv(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], layout: Layout) -> DataFrame:
    """Return the rows of files of one layout, all columns text, with `_scd_line`, `_scd_problem` and `_scd_file`.

    A record that is no whole row of the header's columns is a row of NULLs; its text is in `_scd_line`, and why in
    `_scd_problem`, both NULL elsewhere. Options that the channel declares are heeded.
    """
    dialect = _Dialect.of(channel)
    reader = spark.read.format("csv").options(header="true", escape='"', inferSchema="false", mode="PERMISSIVE")
    spans = str(layout.is_multi_line or dialect.is_wide).lower()
    reader = reader.options(multiLine=spans).options(**dialect.options).options(columnNameOfCorruptRecord=LINE)
    places = [literal(path) for path in paths]
    names = [field.name for field in reader.load(places[0]).schema.fields if field.name != LINE]
    if not names or dialect.is_wide:
        return _of_spark(reader, places, [T.StructField(name, T.StringType()) for name in names], _FIELDS)
    text = _record_texts(spark, dialect, paths) if layout.is_multi_line else _line_texts(spark, dialect, places)
    problem = _csv_problem(dialect)
    schema = ", ".join(f"{quote_name(name)} string" for name in (*names, LINE))
    parsed = F.from_csv(F.when(problem.isNull(), F.col(_TEXT)), schema, {"escape": '"', **dialect.parser_options()})
    rows = text.select(FILE, ROW_ORDER, _TEXT, problem.alias(PROBLEM), F.inline(F.array(parsed)))
    rows = _with_problems(rows, names, _FIELDS)
    return rows.where(col(LINE).isNull()) if dialect.options.get("mode", "").upper() == "DROPMALFORMED" else rows


def _csv_problem(dialect: _Dialect) -> Column:
    """Return why a text is not parsed; NULL if it is."""
    text = F.col(_TEXT)
    return (
        F.when(~F.is_valid_utf8(text), F.lit(_NOT_UTF8.format("line")))
        .when(~dialect.is_whole(text), F.lit(_QUOTES.format("of the line")))
        .when(~dialect.has_few_fields(text), F.lit(_FIELDS))
    )


def _with_problems(rows: DataFrame, names: Sequence[str], problem: str) -> DataFrame:
    """Return the rows, NULL and with their text where invalid; `problem` is that of texts that do not parse."""
    unparsed = F.col(PROBLEM).isNotNull()
    line = F.when(unparsed, F.make_valid_utf8(_TEXT)).otherwise(col(LINE))
    rows = rows.withColumns(
        {LINE: line, PROBLEM: F.when(unparsed | col(LINE).isNotNull(), F.coalesce(PROBLEM, F.lit(problem)))}
    )
    whole = col(LINE).isNull()
    return rows.select(*[F.when(whole, col(name)).alias(name) for name in names], LINE, PROBLEM, FILE, ROW_ORDER)


def _of_spark(reader: DataFrameReader, places: list[str], fields: Sequence[T.StructField], problem: str) -> DataFrame:
    """Return the rows of Spark's own reader."""
    rows = reader.schema(T.StructType([*fields, T.StructField(LINE, T.StringType())])).load(places)
    rows = rows.select("*", F.lit(None).cast("string").alias(PROBLEM), file_column(), row_order().alias(ROW_ORDER))
    return _with_problems(rows.withColumn(_TEXT, F.col(LINE)), [field.name for field in fields], problem)


def _line_texts(spark: SparkSession, dialect: _Dialect, places: list[str]) -> DataFrame:
    """Return the lines of files without headers, blank lines and comments; large files are split among tasks.

    Spark's CSV reader leaves out headers; it takes each line for one column, and ISO-8859-1 keeps every byte.
    """
    kept = {name: dialect.options[name] for name in ("header", "comment", "linesep") if name in dialect.options}
    reader = spark.read.format("csv").options(**dialect.file_options()).options(**{"header": "true", **kept})
    reader = reader.options(sep=_NEVER_A_SEPARATOR, quote="", escape="", encoding=_LATIN)
    lines = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=LINE).schema(f"{_TEXT} string, {LINE} string")
    text = F.coalesce(LINE, _TEXT)
    if not dialect.is_latin:
        text = F.encode(text, _LATIN).cast("string")
    return lines.load(places).select(text.alias(_TEXT), file_column(), row_order().alias(ROW_ORDER))


def _record_texts(spark: SparkSession, dialect: _Dialect, paths: Sequence[str]) -> DataFrame:
    records = _records(spark, dialect, paths)
    if dialect.is_on("header", "true"):
        first = F.min("_number").over(Window.partitionBy(FILE))
        records = records.withColumn("_first", first).where(F.col("_number") > F.col("_first"))
    order = F.struct(F.lit(0).cast("bigint").alias("block"), F.col("_number").cast("bigint").alias("row"))
    return records.select(_TEXT, FILE, order.alias(ROW_ORDER))


# -- JSON


def read_json(
    spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], fields: Sequence[T.StructField]
) -> DataFrame:
    """Return the objects of the lines, or with `multiLine` of the files, with the columns that `read_csv` adds.

    `fields` are those of `json_fields`. A line is one object, or an array of objects; anything else makes a bad row,
    also text after the object, which Spark's reader drops.
    """
    dialect = _Dialect.of(channel)
    names, places = [field.name for field in fields], [literal(path) for path in paths]
    if dialect.is_wide:
        return _of_spark(_json_reader(spark, channel), places, fields, _NO_OBJECT)
    reader = spark.read.format("text").options(**dialect.file_options())
    if end := dialect.options.get("linesep"):
        reader = reader.option("lineSep", end)
    text = F.col("value")
    if dialect.is_on("multiline"):
        reader = reader.option("wholetext", "true")
        text = F.regexp_replace(text, "^\ufeff", "")
    if dialect.is_latin:
        text = F.decode(F.col("value").cast("binary"), _LATIN)
    lines = reader.load(places).select(text.alias(_TEXT), file_column(), row_order().alias(ROW_ORDER))
    valid = F.is_valid_utf8(_TEXT)
    row = T.StructType(list(fields))
    objects = _objects(F.when(valid, F.col(_TEXT)), row, dialect)
    problem = F.when(~valid, F.lit(_NOT_UTF8.format("line"))).when(F.col("_objects").isNull(), F.lit(_NO_OBJECT))
    no_object = F.array(F.lit(None).cast(row))
    rows = (
        lines.where(F.trim(_TEXT) != "")
        .withColumn("_objects", objects)
        .select(
            *(FILE, ROW_ORDER, _TEXT, problem.alias(PROBLEM)),
            F.posexplode(F.coalesce("_objects", no_object)).alias("_position", "_object"),
        )
        .withColumn(ROW_ORDER, F.struct(F.col(ROW_ORDER)["block"].alias("block"), _order_in_line().alias("row")))
    )
    values = [F.col("_object")[name].alias(name) for name in names]
    line = F.lit(None).cast("string").alias(LINE)
    return _with_problems(rows.select(FILE, ROW_ORDER, _TEXT, PROBLEM, line, *values), names, _NO_OBJECT)


def _order_in_line() -> Column:
    """Return the order of objects in a block: by line, whose number in a task has 33 bits, then in the line's array."""
    return F.shiftleft(F.col(ROW_ORDER)["row"].bitwiseAND(F.lit(2**33 - 1)), 20) + F.col("_position")


def _objects(text: Column, row: T.StructType, dialect: _Dialect) -> Column:
    """Return the objects of a text; NULL if it is invalid.

    In an array what follows an object is no longer ignored, and in an object what follows a bracket that closes the
    array: no text closes both.
    """
    options = {"primitivesAsString": "true", **dialect.parser_options()}
    if dialect.is_on("primitivesasstring", "true"):
        text = with_quoted_numbers(text)
    listed = F.concat(F.lit("["), text, F.lit("]"))
    one = F.from_json(listed, T.ArrayType(row), options)
    many = F.from_json(listed, T.ArrayType(T.ArrayType(row)), options)
    objects = F.when(F.ltrim(text).startswith("["), F.when(F.size(many) == 1, many[0])).otherwise(
        F.when(F.size(one) == 1, one)
    )
    in_object = F.from_json(F.concat(F.lit('{"v":'), text, F.lit("}")), f"v string, {quote_name(LINE)} string", options)
    is_closed_early = F.contains(text, F.lit("]")) & in_object[LINE].isNotNull()
    return F.when(~is_closed_early & ~F.exists(objects, lambda each: each.isNull()), objects)


def json_fields(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> list[T.StructField]:
    """Return the columns that Spark infers from the objects of JSON files, all simple values as text."""
    rows = _json_reader(spark, channel).load([literal(path) for path in paths])
    return [field for field in rows.schema.fields if field.name != LINE]


def _json_reader(spark: SparkSession, channel: Snapshot | Feed) -> DataFrameReader:
    reader = spark.read.format("json").options(primitivesAsString="true")
    if "encoding" in _Dialect.of(channel).options:
        reader = reader.option("lineSep", "\n")  # Spark asks for it with an encoding
    return reader.options(**channel.reader_options).options(columnNameOfCorruptRecord=LINE)
