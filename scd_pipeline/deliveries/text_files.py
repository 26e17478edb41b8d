"""Options and lines of text files, for the readers of CSV and of JSON.

Spark's own readers drop or change text without an error: text after the first object of a JSON line, quotes that are
not doubled, bytes that are not in the encoding. Therefore each record is checked as text before Spark parses it, and
one that fails the check becomes a bad row with its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.paths import escape_glob, file_column, row_order_column
from scd_pipeline.deliveries.row_columns import FILE, LINE, PROBLEM, ROW_ORDER
from scd_pipeline.expressions import col

TEXT = "_scd_text"
"""The text of a record, before it is parsed."""
LATIN = "ISO-8859-1"
_WINDOWS = "WINDOWS-1252"
_UNDEFINED = "\x81\x8d\x8f\x90\x9d"
"""The characters of ISO-8859-1 whose bytes have no meaning in windows-1252."""
_CONTROLS = "".join(chr(code) for code in range(0x80, 0xA0) if chr(code) not in _UNDEFINED)
_CHARACTERS = _CONTROLS.encode("latin-1").decode("cp1252")
"""The characters of windows-1252 with the bytes of `_CONTROLS` in ISO-8859-1; the other bytes are the same in both."""
_NOT_UTF8 = "the {} has bytes that are not UTF-8; declare the file's `encoding` in the channel's options"
_NOT_WINDOWS = "the {} has bytes that are not windows-1252; declare the `encoding` that the file has"
_FILE_OPTIONS = ("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "ignorecorruptfiles")
# Options of the reader of whole files that the parser of one record does not have.
_READER_OPTIONS = (
    *_FILE_OPTIONS,
    *("header", "multiline", "encoding", "charset", "mode", "linesep", "inferschema", "enforceschema", "comment"),
    *("samplingratio", "columnnameofcorruptrecord", "ignoremissingfiles"),
)
_WIDE = re.compile(r"utf-?(16|32).*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextOptions:
    """The declared options of a channel's text files, with names in lower case."""

    options: Mapping[str, str]

    def is_on(self, name: str, default: str = "false") -> bool:
        return self.options.get(name, default).lower() == "true"

    @property
    def encoding(self) -> str:
        return self.options.get("encoding", self.options.get("charset", "UTF-8"))

    @property
    def is_wide(self) -> bool:
        """Whether a character has several bytes, one of which may look like the end of a line."""
        return bool(_WIDE.fullmatch(self.encoding))

    @property
    def has_single_bytes(self) -> bool:
        """Whether each character has one byte."""
        return self.encoding.upper() in (LATIN, _WINDOWS)

    @property
    def is_windows(self) -> bool:
        return self.encoding.upper() == _WINDOWS

    @property
    def spark_options(self) -> dict[str, str]:
        """The options for Spark's own readers, which do not know windows-1252."""
        names = self.options.keys() & {"encoding", "charset"} if self.is_windows else ()
        return {**self.options, **dict.fromkeys(names, LATIN)}

    @property
    def mode(self) -> str:
        return self.options.get("mode", "").upper()

    def decode(self, text: Column) -> Column:
        """Return the text whose bytes are the characters of a text in ISO-8859-1; it is not UTF-8 if they are not."""
        if self.is_windows:
            return F.translate(text, _CONTROLS, _CHARACTERS)
        return text if self.has_single_bytes else F.encode(text, LATIN).cast("string")

    def decode_name(self, name: str) -> str:
        """Return a name that Spark has read with `spark_options`."""
        return name.translate(str.maketrans(_CONTROLS, _CHARACTERS)) if self.is_windows else name

    def is_valid(self, text: Column) -> Column:
        """Return whether all bytes of a decoded text are in the encoding."""
        return ~text.rlike(f"[{_UNDEFINED}]") if self.is_windows else F.is_valid_utf8(text)

    def invalid_bytes(self, part: str) -> str:
        """Return the problem of a part of a file that is not valid."""
        return (_NOT_WINDOWS if self.is_windows else _NOT_UTF8).format(part)

    def file_options(self) -> dict[str, str]:
        """Return the options that select files."""
        return {name: value for name, value in self.options.items() if name in _FILE_OPTIONS}

    def parser_options(self) -> dict[str, str]:
        """Return the options of the parser of one record."""
        declared = {name: value for name, value in self.options.items() if name not in _READER_OPTIONS}
        strict = {"mode": "FAILFAST"} if self.mode == "FAILFAST" else {}
        return {**declared, **strict, "columnNameOfCorruptRecord": LINE}


def declared_options(channel: Snapshot | Feed) -> dict[str, str]:
    """Return the declared options of a channel, with names in lower case."""
    return {name.lower(): str(value) for name, value in channel.reader_options.items()}


def is_blank(text: Column) -> Column:
    """Return whether a text has only blanks, tabs and line breaks; the first byte of most texts decides."""
    return (text < F.lit("!")) & (F.ltrim(text, F.lit(" \t\r\n")) == "")


def read_lines(
    spark: SparkSession, options: TextOptions, paths: Sequence[str], separator: str | None = None, **reader: str
) -> DataFrame:
    """Return the lines of files, in `_scd_text`, with `_metadata`; `reader` are further options of Spark's reader."""
    lines = spark.read.format("text").options(**options.file_options()).options(**reader)
    if end := options.options.get("linesep", separator):
        lines = lines.option("lineSep", end)
    text = F.col("value")
    if options.has_single_bytes:
        text = options.decode(F.decode(text.cast("binary"), LATIN))
    return lines.load([escape_glob(path) for path in paths]).withColumn(TEXT, text)


def read_by_spark(
    reader: DataFrameReader, paths: Sequence[str], fields: Sequence[T.StructField], problem: str | Column
) -> DataFrame:
    """Return the rows as Spark's own reader parses them, in the columns of `with_problems`."""
    schema = T.StructType([*fields, T.StructField(LINE, T.StringType())])
    rows = reader.schema(schema).load([escape_glob(path) for path in paths])
    no_problem = F.lit(None).cast("string").alias(PROBLEM)
    rows = rows.select("*", no_problem, file_column(), row_order_column().alias(ROW_ORDER))
    return with_problems(rows.withColumn(TEXT, F.col(LINE)), [field.name for field in fields], problem)


def with_problems(rows: DataFrame, names: Sequence[str], problem: str | Column) -> DataFrame:
    """Return parsed rows in the columns of all text readers.

    Args:
        rows: The named columns, `_scd_text`, `_scd_problem` for text that was not parsed, `_scd_line` for text that
            does not parse, `_scd_file` and `_scd_row_order`.
        names: The names of the columns.
        problem: The problem of text that does not parse.

    Returns:
        The named columns, NULL in each row that was not parsed; its text in `_scd_line` and its problem in
        `_scd_problem`, both NULL in other rows; `_scd_file` and `_scd_row_order`.
    """
    is_rejected = F.col(PROBLEM).isNotNull()
    line = F.when(is_rejected, F.make_valid_utf8(TEXT)).otherwise(col(LINE))
    reason = F.when(is_rejected | col(LINE).isNotNull(), F.coalesce(PROBLEM, F.lit(problem)))
    rows = rows.withColumns({LINE: line, PROBLEM: reason})
    is_parsed = col(LINE).isNull()
    return rows.select(*[F.when(is_parsed, col(name)).alias(name) for name in names], LINE, PROBLEM, FILE, ROW_ORDER)
