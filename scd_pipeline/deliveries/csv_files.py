"""Read CSV files; a record that is not a whole row of the header's columns becomes a bad row with its text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, DataFrameReader, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.folders import folder_columns, with_folder_values
from scd_pipeline.deliveries.paths import (
    escape_glob,
    file_column,
    normalize_path,
    normalize_uri,
    normalized_file,
    owning_path,
    row_order_column,
)
from scd_pipeline.deliveries.row_columns import FILE, LINE, PROBLEM, ROW_ORDER
from scd_pipeline.deliveries.text_files import (
    LATIN,
    NOT_UTF8,
    TEXT,
    TextOptions,
    declared_options,
    read_by_spark,
    read_lines,
    with_problems,
)
from scd_pipeline.expressions import col, quote_name

MAX_COLUMNS = 20_480
"""The number of columns that Spark's CSV reader accepts unless `maxColumns` is declared."""
_INVALID_QUOTES = "a quoted field {} is not closed, or a quote in it is not doubled"
_FIELD_COUNT = "the line has fewer or more fields than the header"
_ESCAPED = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\\\": "\\", '\\"': '"', "\\'": "'", "\\u0000": "\0"}
# Characters that no text in ISO-8859-1 contains.
_NO_SEPARATOR, _NO_QUOTE = "\ue000", "\ue001"
_BYTE_ORDER_MARK = "\ufeff"
_BLOCK, _NUMBER = "_block", "_number"
# Kinds of lines that Spark's own reader may change or drop, by the sort of care that they need.
_PARTIAL, _IRREGULAR = "partial", "irregular"
# With another option Spark's reader and its parser of one record may differ.
_PLAIN_OPTIONS = {"sep", "delimiter", "header"}


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """The layout of a CSV file, or of several CSV files that are one delivery.

    Attributes:
        header: The first record as text.
        is_multi_line: Whether a quoted field spans lines, so that the file cannot be split among tasks.
        is_plain: Whether Spark's own reader, which is faster, returns the same rows: no line has a quote, bytes that
            are not UTF-8, a byte order mark, or more fields than the parser accepts.
        problem: The file, the line and the reason if the delivery cannot be read; otherwise empty.
    """

    header: str = ""
    is_multi_line: bool = False
    is_plain: bool = False
    problem: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """A key that files have in common if one frame can read them."""
        return (self.header, str(self.is_multi_line), str(self.is_plain))


@dataclass(frozen=True, slots=True)
class CsvDialect(TextOptions):
    """The dialect of a channel's CSV files: Spark's options; quotes are doubled by default (RFC 4180)."""

    @property
    def separator(self) -> str:
        declared = self.options.get("sep", self.options.get("delimiter", ","))
        return _ESCAPED.get(declared, declared)

    @property
    def quote(self) -> str:
        """The quote character; empty if quotes have no meaning."""
        lenient = {"unescapedquotehandling", "chartoescapequoteescaping"} & self.options.keys()
        return "" if lenient else self.options.get("quote", '"').strip("\0")

    @property
    def escape(self) -> str:
        declared = self.options.get("escape", self.quote)
        return _ESCAPED.get(declared, declared).strip("\0")

    @property
    def max_columns(self) -> int:
        return int(self.options.get("maxcolumns", MAX_COLUMNS))

    def field_names(self, header: str) -> list[str]:
        """Return the fields of a header."""
        if len(self.separator) == len(self.quote) == 1:
            reader = csv.reader(io.StringIO(header, newline=""), delimiter=self.separator, quotechar=self.quote)
            with suppress(csv.Error):  # a field of more than 131,072 characters, which is no name
                return next(reader, [])
        return header.split(self.separator)

    def _quoted_field(self) -> str:
        """Return the pattern of a quoted field. It never backtracks: a long field must not exhaust the stack."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if not self.escape:
            return f"{quote}[^{quote}]*+{quote}"
        if self.escape == self.quote:
            return f"{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}"
        return f"{quote}[^{quote}{escape}]*+(?:{escape}.[^{quote}{escape}]*+)*+{quote}"

    def is_whole(self, text: Column) -> Column:
        """Return whether a text is a whole record: quoted fields are closed, and quotes in them doubled or escaped."""
        if not self.quote:
            return F.lit(True)
        quote, separator = re.escape(self.quote), re.escape(self.separator)
        before = r"[ \t]*+" if self.is_on("ignoreleadingwhitespace") else ""
        after = r"[ \t]*+" if self.is_on("ignoretrailingwhitespace") else ""
        field = rf"(?:{before}{self._quoted_field()}{after}|(?!{before}{quote})(?:(?!{separator})[^\r\n])*+)"
        record = rf"(?s)\A{field}(?:{separator}{field})*+\z"
        return (F.instr(text, self.quote) == 0) | text.rlike(record)

    def is_plain(self, text: Column) -> Column:
        """Return whether Spark's own reader parses a line as it is."""
        if not self.quote or not self.options.keys() <= _PLAIN_OPTIONS | set(self.file_options()):
            return F.lit(False)
        has_few_fields = F.octet_length(text) < self.max_columns
        has_mark = text.startswith(_BYTE_ORDER_MARK)  # the parser of one record would drop it
        return (F.instr(text, self.quote) == 0) & has_few_fields & ~has_mark & F.is_valid_utf8(text)

    def count_quotes(self, text: Column) -> Column:
        """Return the number of quotes in a line, without those that another character escapes."""
        if not self.quote:
            return F.lit(0)
        if self.escape and self.escape != self.quote:
            text = F.regexp_replace(text, F.lit(f"(?s){re.escape(self.escape)}."), F.lit(""))
        return F.length(text) - F.length(F.replace(text, F.lit(self.quote), F.lit("")))

    def may_span_lines(self, has_partial_line: bool) -> bool:
        """Return whether the records of a file have to be composed of lines, as declared or judged by its lines."""
        return self.is_on("multiline") or (has_partial_line and "multiline" not in self.options)

    def fits_parser(self, text: Column) -> Column:
        """Return whether a record has no more fields than Spark's parser accepts."""
        size = len(self.separator)
        return F.length(text) - F.length(F.replace(text, F.lit(self.separator), F.lit(""))) < self.max_columns * size

    def is_comment(self, text: Column) -> Column:
        comment = self.options.get("comment", "")
        return text.startswith(comment) if comment.strip("\0") else F.lit(False)

    def is_record(self, text: Column) -> Column:
        """Return whether a line is neither blank nor a comment."""
        return (F.trim(text) != "") & ~self.is_comment(text)


# -- Scan


def scan_csv(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str]) -> dict[str, CsvLayout]:
    """Return the layout of each path, by one job, and by one more if quoted fields span lines.

    Args:
        paths: The paths of CSV files or folders, or one glob pattern.

    Returns:
        An empty layout for files without lines, and for an encoding of wide characters, which Spark's reader parses.

    Raises:
        AnalysisException: A path does not exist. Other errors of Spark mean that a file cannot be read.
    """
    dialect = CsvDialect(declared_options(channel))
    if dialect.is_wide:
        return dict.fromkeys(paths, CsvLayout())
    layouts = _scan_files(spark, dialect, paths)
    owners = _owners(layouts, paths)
    return {
        path: _delivery_layout(dialect, {file: layouts[file] for file in sorted(layouts) if owners[file] == path})
        for path in paths
    }


def repeated_columns(channel: Snapshot | Feed, layout: CsvLayout) -> list[str]:
    """Return the names that a header has more than once, in any case: Spark reads them under other names."""
    dialect = CsvDialect(declared_options(channel))
    names = dialect.field_names(layout.header) if dialect.is_on("header", "true") else []
    folded = [name.casefold() for name in names]
    return [name for name, key in zip(names, folded, strict=True) if name and folded.count(key) > 1]


def _owners(files: Iterable[str], paths: Sequence[str]) -> dict[str, str | None]:
    """Return the path that each file was read from; with one path, which may be a pattern, that one."""
    if len(paths) == 1:
        return dict.fromkeys(files, paths[0])
    by_path = {normalize_path(path): path for path in paths}
    return {file: owning_path(file, by_path) for file in files}


def _scan_files(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> dict[str, CsvLayout]:
    """Return the layout of each file."""
    text = F.col(TEXT)
    first = F.min_by(TEXT, F.when(F.col(_BLOCK) == 0, F.col(_NUMBER)))
    # A set makes Spark aggregate by hash: text in `min_by` alone would make it sort all lines.
    kinds = F.collect_set(F.when(~dialect.is_whole(text), _PARTIAL).when(~dialect.is_plain(text), _IRREGULAR))
    lines = _numbered_lines(spark, dialect, paths).where(dialect.is_record(text))
    rows = lines.groupBy(FILE).agg(*_header_columns(first), kinds.alias("kinds")).collect()
    layouts = {normalize_uri(row[FILE]): replace(_file_layout(dialect, row), is_plain=not row["kinds"]) for row in rows}
    if files := [normalize_uri(row[FILE]) for row in rows if dialect.may_span_lines(_PARTIAL in row["kinds"])]:
        layouts |= _scan_records(spark, dialect, files)
    return layouts


def _scan_records(spark: SparkSession, dialect: CsvDialect, files: Sequence[str]) -> dict[str, CsvLayout]:
    """Return the layouts of files with lines that are not whole records: fields span lines, or quotes are invalid."""
    records = _records(spark, dialect, [unquote(file) for file in files])
    # Behind an invalid quote it is uncertain where its record ends, and what each later row contains.
    is_uncertain = ~dialect.is_whole(F.col(TEXT)) & ((F.col("_lines") > 1) | F.col("_is_open"))
    rows = records.groupBy(FILE).agg(
        *_header_columns(F.min_by(TEXT, _NUMBER)),
        F.max(F.col("_lines") > 1).alias("has_spanning_field"),
        F.min(F.when(is_uncertain, F.col(_NUMBER))).alias("line"),
    )
    return {normalize_uri(row[FILE]): _record_layout(dialect, row) for row in rows.collect()}


def _record_layout(dialect: CsvDialect, row: Row) -> CsvLayout:
    layout = _file_layout(dialect, row)
    problem = f"line {row['line']}: {_INVALID_QUOTES.format('that begins here')}" if row["line"] else ""
    is_multi_line = dialect.is_on("multiline") or row["has_spanning_field"]
    return replace(layout, is_multi_line=is_multi_line, problem=layout.problem or problem)


def _header_columns(first: Column) -> tuple[Column, Column]:
    return F.make_valid_utf8(first).alias("header"), F.is_valid_utf8(first).alias("is_valid")


def _file_layout(dialect: CsvDialect, row: Row) -> CsvLayout:
    """Return the layout of one file, with a problem if its header is invalid."""
    header = row["header"] or ""
    columns = header.count(dialect.separator) + 1
    if not row["is_valid"]:
        return CsvLayout(header, problem=f"line 1: {NOT_UTF8.format('header')}")
    if columns > dialect.max_columns:
        limit = f"expected at most {dialect.max_columns:,}; declare `maxColumns` in the channel's options"
        return CsvLayout(header, problem=f"line 1: its header has {columns:,} columns; {limit}")
    return CsvLayout(header)


def _delivery_layout(dialect: CsvDialect, files: Mapping[str, CsvLayout]) -> CsvLayout:
    """Return the layout of a delivery: one file, or several files with one header."""
    if not files:
        return CsvLayout()
    (first, layout), *others = files.items()
    problems = [f"{_display(file)}, {layout.problem}" for file, layout in files.items() if layout.problem]
    if dialect.is_on("header", "true"):
        problems += [
            f"{_display(file)}, line 1: its header is not that of {_display(first)}; expected the same columns in the "
            "same order in all files of a delivery"
            for file, other in others
            if other.header != layout.header
        ]
    return CsvLayout(
        layout.header,
        is_multi_line=any(other.is_multi_line for other in files.values()),
        is_plain=all(other.is_plain for other in files.values()),
        problem="".join(problems[:1]),
    )


def _display(file: str) -> str:
    return normalize_path(unquote(file))


# -- Lines and records


def _numbered_lines(
    spark: SparkSession, dialect: CsvDialect, paths: Sequence[str], separator: str | None = None
) -> DataFrame:
    """Return the lines of files, blank ones too, with their file and their order in it: `_block`, then `_number`.

    The file is spelled as in `_metadata`: to normalize it for each line takes longer than to read the lines.
    """
    file = F.col("_metadata.file_path").alias(FILE)
    position = (F.col("_metadata.file_block_start").alias(_BLOCK), F.monotonically_increasing_id().alias(_NUMBER))
    return read_lines(spark, dialect, paths, separator).select(TEXT, file, *position)


def _records(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the records of files whose quoted fields may span lines, without comments.

    A line begins a record if the quotes before it in its file are paired.

    Returns:
        The text, the file, `_number` of the first line, `_lines`, and `_is_open` if the quotes are not paired.
    """
    in_order = Window.partitionBy(FILE).orderBy(_BLOCK, _NUMBER)
    lines = _numbered_lines(spark, dialect, paths, separator="\n")
    quotes = F.when(dialect.is_comment(F.col(TEXT)), F.lit(0)).otherwise(dialect.count_quotes(F.col(TEXT)))
    before = F.coalesce(F.sum("_quotes").over(in_order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0))
    begins = F.when(F.col("_before") % 2 == 0, F.lit(1)).otherwise(F.lit(0))
    numbered = (
        lines.withColumn("_quotes", quotes)
        .withColumns({"_before": before, "_line": F.row_number().over(in_order)})
        .withColumn("_record", F.sum(begins).over(in_order))
    )
    parts = F.array_sort(F.collect_list(F.struct("_line", TEXT)))
    text = F.array_join(F.transform(parts, lambda part: part[TEXT]), dialect.options.get("linesep", "\n"))
    records = numbered.groupBy(FILE, "_record").agg(
        F.regexp_replace(text, r"\r\z", "").alias(TEXT),
        F.min("_line").alias(_NUMBER),
        F.count(F.lit(1)).alias("_lines"),
        (F.sum("_quotes") % 2 == 1).alias("_is_open"),
    )
    return records.where(dialect.is_record(F.col(TEXT)))


# -- Rows


def read_csv(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], layout: CsvLayout) -> DataFrame:
    """Return the rows of CSV files of one layout, all columns text, in the columns of `with_problems`.

    Spark's own reader reads plain files. In others each record is checked as text before it is parsed.
    """
    dialect = CsvDialect(declared_options(channel))
    reader = _spark_reader(spark, dialect, layout)
    first = reader.load(escape_glob(paths[0]))
    names = [name for name in first.columns if name != LINE]
    if not names or dialect.is_wide or layout.is_plain:
        fields = [T.StructField(name, T.StringType()) for name in names]
        return read_by_spark(reader, paths, fields, _FIELD_COUNT)
    in_folders = folder_columns(first, paths[:1])
    in_files = [name for name in names if name not in in_folders]
    rows = with_folder_values(_parsed(_record_texts(spark, dialect, paths, layout), dialect, in_files), in_folders)
    return rows.where(col(LINE).isNull()) if dialect.mode == "DROPMALFORMED" else rows


def _spark_reader(spark: SparkSession, dialect: CsvDialect, layout: CsvLayout) -> DataFrameReader:
    reader = spark.read.format("csv").options(header="true", escape='"', inferSchema="false", mode="PERMISSIVE")
    multi_line = str(layout.is_multi_line or dialect.is_wide).lower()
    return reader.options(multiLine=multi_line).options(**dialect.options).options(columnNameOfCorruptRecord=LINE)


def _parsed(texts: DataFrame, dialect: CsvDialect, names: Sequence[str]) -> DataFrame:
    """Parse each text as one record; one that is invalid is not parsed."""
    text = F.col(TEXT)
    problem = (
        F.when(~F.is_valid_utf8(text), F.lit(NOT_UTF8.format("line")))
        .when(~dialect.is_whole(text), F.lit(_INVALID_QUOTES.format("of the line")))
        .when(~dialect.fits_parser(text), F.lit(_FIELD_COUNT))
    )
    schema = ", ".join(f"{quote_name(name)} string" for name in (*names, LINE))
    parsed = F.from_csv(F.when(problem.isNull(), text), schema, {"escape": '"', **dialect.parser_options()})
    rows = texts.select(FILE, ROW_ORDER, TEXT, problem.alias(PROBLEM), F.inline(F.array(parsed)))
    return with_problems(rows, names, _FIELD_COUNT)


def _record_texts(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str], layout: CsvLayout) -> DataFrame:
    """Return the records of files as text, without headers, blank lines and comments."""
    return _spanning_texts(spark, dialect, paths) if layout.is_multi_line else _line_texts(spark, dialect, paths)


def _line_texts(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the lines of files; large files are split among tasks.

    Spark's CSV reader skips headers. It reads each line as one column, and ISO-8859-1 preserves every byte.
    """
    names = ("header", "comment", "linesep")
    declared = {name: dialect.options[name] for name in names if name in dialect.options}
    reader = spark.read.format("csv").options(**dialect.file_options()).options(**{"header": "true", **declared})
    reader = reader.options(sep=_NO_SEPARATOR, quote=_NO_QUOTE, escape=_NO_QUOTE, encoding=LATIN)
    reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=LINE).schema(f"{TEXT} string, {LINE} string")
    text = F.coalesce(LINE, TEXT)
    if not dialect.is_latin:
        text = F.encode(text, LATIN).cast("string")
    lines = reader.load([escape_glob(path) for path in paths])
    return lines.select(text.alias(TEXT), file_column(), row_order_column().alias(ROW_ORDER))


def _spanning_texts(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the records of files whose quoted fields may span lines."""
    records = _records(spark, dialect, paths)
    if dialect.is_on("header", "true"):
        first = F.min(_NUMBER).over(Window.partitionBy(FILE))
        records = records.withColumn("_first", first).where(F.col(_NUMBER) > F.col("_first"))
    order = F.struct(F.lit(0).cast("bigint").alias("block"), F.col(_NUMBER).cast("bigint").alias("row"))
    return records.select(TEXT, normalized_file(F.col(FILE)), order.alias(ROW_ORDER))
