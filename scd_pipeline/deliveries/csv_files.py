"""Read CSV files; a record that is not a whole row of the header's columns becomes a bad row with its text.

A line ends at a CR, an LF or both. A record is a line, or several if a quoted field has line breaks, as in Python's csv
module. Header, scan and readers share this definition: Spark's own readers divide files into the same lines, and
`_records` composes records of lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, DataFrameReader, Row, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.declaration.names import quote_name
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
from scd_pipeline.deliveries.row_columns import ADDED, FILE, LINE, PROBLEM, ROW_ORDER
from scd_pipeline.deliveries.separator_line import declared_separator
from scd_pipeline.deliveries.text_files import (
    LATIN,
    TEXT,
    TextOptions,
    declared_options,
    is_blank,
    read_by_spark,
    read_lines,
    with_problems,
)
from scd_pipeline.expressions import col
from scd_pipeline.texts import pluralize

MAX_COLUMNS = 20_480
"""The number of columns that Spark's CSV reader accepts unless `maxColumns` is declared."""
_INVALID_QUOTES = "a quoted field {} is not closed, or a quote in it is not doubled"
_NO_HEADER = "`skip_lines` and `skip_footer` leave no line for a header"
_OTHER_SEPARATOR = "line {}: it declares the separator {!r}, but the channel declares {!r}"
_ESCAPED = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\\\": "\\", '\\"': '"', "\\'": "'", "\\u0000": "\0"}
# Characters that no text in ISO-8859-1 contains.
_NO_SEPARATOR, _NO_QUOTE = "\ue000", "\ue001"
_BYTE_ORDER_MARK = "\ufeff"
_BLOCK, _NUMBER, _PART, _BREAK, _LINE = "_block", "_number", "_part", "_break", "_line"
_FEWER, _MORE = "fewer", "more"
_ENDS = {
    _FEWER: " because the header ends with the separator {!r}; remove it there, or end each line with it too",
    _MORE: " because each of them ends with the separator {!r}; remove it there, or end the header with it too",
}
_EXAMPLES = 3
"""The number of lines that the summary of field counts names."""
# Kinds of lines that Spark's own reader may change or drop, by the sort of care that they need.
_PARTIAL, _DROPPED, _IRREGULAR = "partial", "dropped", "irregular"
# With another option Spark's reader and its parser of one record may differ.
_PLAIN_OPTIONS = {"sep", "delimiter", "header"}
# With these options Spark decides which quotes have a meaning.
_LENIENT = {"unescapedquotehandling", "chartoescapequoteescaping"}


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """The layout of a CSV file, or of several CSV files that are one delivery.

    Attributes:
        header: The first record as text.
        is_composed: Whether records are composed of sorted lines, so that the file cannot be split among tasks: a
            quoted field spans lines, lines are skipped, or a line of control characters alone would be dropped.
        is_plain: Whether Spark's own reader, which is faster, returns the same rows: no line has a quote, bytes that
            are not UTF-8, a byte order mark, or more fields than the parser accepts.
        separator: The separator that the file declares in its first line, as Excel's `sep=;`; otherwise empty.
        problem: The file, the line and the reason if the delivery cannot be read; otherwise empty.
    """

    header: str = ""
    is_composed: bool = False
    is_plain: bool = False
    separator: str = ""
    problem: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """A key that files have in common if one frame can read them."""
        return (self.header, str(self.is_composed), str(self.is_plain), self.separator)


@dataclass(frozen=True, slots=True)
class CsvDialect(TextOptions):
    """The dialect of a channel's CSV files: Spark's options; quotes are doubled by default (RFC 4180).

    Attributes:
        skip_lines: The number of lines before the header.
        skip_footer: The number of lines at the end that are not rows.
    """

    skip_lines: int = 0
    skip_footer: int = 0

    @classmethod
    def declared(cls, channel: Snapshot | Feed) -> CsvDialect:
        """Return the declared dialect of a channel."""
        return cls(declared_options(channel), channel.skip_lines, channel.skip_footer)

    def fitted(self, layout: CsvLayout) -> CsvDialect:
        """Return the dialect of a file whose first line declares its separator; otherwise this one."""
        if not layout.separator:
            return self
        return replace(self, options={**self.options, "sep": layout.separator}, skip_lines=self.skip_lines + 1)

    @property
    def declared_separator(self) -> str:
        """The separator that the channel declares; empty if it declares none."""
        declared = self.options.get("sep", self.options.get("delimiter", ""))
        return _ESCAPED.get(declared, declared)

    @property
    def separator(self) -> str:
        return self.declared_separator or ","

    @property
    def quote(self) -> str:
        """The quote character; empty if quotes have no meaning."""
        return "" if _LENIENT & self.options.keys() else self.options.get("quote", '"').strip("\0")

    @property
    def escape(self) -> str:
        declared = self.options.get("escape", self.quote)
        return _ESCAPED.get(declared, declared).strip("\0")

    @property
    def reader_defaults(self) -> dict[str, str]:
        """The options of Spark's readers that have other defaults here: a quote in a quoted field is doubled."""
        return {"escape": self.quote or '"'}

    @property
    def max_columns(self) -> int:
        return int(self.options.get("maxcolumns", MAX_COLUMNS))

    @property
    def skips_lines(self) -> bool:
        return bool(self.skip_lines or self.skip_footer)

    @property
    def joins_lines(self) -> bool:
        """Whether a quoted field may span lines."""
        return bool(self.quote) and self.options.get("multiline", "true").lower() == "true"

    def field_names(self, header: str) -> list[str]:
        """Return the fields of a header as it has them."""
        if _LENIENT & self.options.keys():
            strict = {name: value for name, value in self.options.items() if name not in _LENIENT}
            return replace(self, options=strict).field_names(header)
        quoted = rf"{self._blanks_before}{self._quoted_field}{self._rest_of_field}" if self.quote else r"(?!)"
        field = _python_pattern(rf"({quoted}|(?:(?!{self._separator}).)*+)({self._separator}|\Z)")
        names, begin, has_next = [], 0, True
        while has_next and (match := field.match(header, begin)):
            names.append(self._name(match[1]))
            begin, has_next = match.end(), bool(match[2])
        return names

    def _name(self, field: str) -> str:
        """Return a field of a header without its quotes."""
        if self.quote:
            match = _python_pattern(rf"{self._blanks_before}({self._quoted_field})(.*)\Z").match(field)
            if match:
                field = match[1][1:-1].replace(f"{self.escape}{self.quote}", self.quote) + match[2]
        field = field.lstrip() if self.is_on("ignoreleadingwhitespace") else field
        return field.rstrip() if self.is_on("ignoretrailingwhitespace") else field

    def column_names(self, header: str) -> list[str]:
        """Return the distinct names of the columns of a file, by Spark's rules: `_c1` for a column without a name.

        A column with a name of the reader's own columns is renamed as a repeated one is.
        """
        fields = self.field_names(header)
        names = fields if self.is_on("header", "true") else [""] * len(fields)
        counts = Counter(name.lower() for name in names)
        used = {name for name, count in counts.items() if count > 1}.union(ADDED)
        unnamed = ("", self.options.get("nullvalue", ""))
        changed = [
            f"_c{number}" if name in unnamed else f"{name}{number}" if name.lower() in used else ""
            for number, name in enumerate(names)
        ]
        in_use = {name.lower() for name, other in zip(names, changed, strict=True) if not other}
        return [_free_name(other, in_use) if other else name for name, other in zip(names, changed, strict=True)]

    def reserved_names(self, header: str) -> dict[str, str]:
        """Return the names of the reader's own columns that a header has, each with the column's distinct name."""
        if not self.is_on("header", "true"):
            return {}
        names = zip(self.field_names(header), self.column_names(header), strict=True)
        return {name: column_name for name, column_name in names if name.lower() in ADDED}

    # Patterns of Java. They never backtrack: a long field must not exhaust the stack.

    @property
    def _separator(self) -> str:
        return re.escape(self.separator)

    @property
    def _blanks_before(self) -> str:
        return r"[ \t]*+" if self.is_on("ignoreleadingwhitespace") else ""

    @property
    def _blanks_after(self) -> str:
        return r"[ \t]*+" if self.is_on("ignoretrailingwhitespace") else ""

    @property
    def _text_in_quotes(self) -> str:
        """The pattern of the text behind an opening quote, up to the closing one or to the end."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if not self.escape:
            return f"[^{quote}]*+"
        if self.escape == self.quote:
            return f"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
        return f"[^{quote}{escape}]*+(?:{escape}.[^{quote}{escape}]*+)*+"

    @property
    def _quoted_field(self) -> str:
        quote = re.escape(self.quote)
        return f"{quote}{self._text_in_quotes}{quote}"

    @property
    def _rest_of_field(self) -> str:
        """The pattern of text up to the next separator; behind a closing quote such text is invalid."""
        return rf"(?:(?!{self._separator})[^\r\n])*+"

    @property
    def _unquoted_field(self) -> str:
        return rf"(?!{self._blanks_before}{re.escape(self.quote)}){self._rest_of_field}"

    def is_whole(self, text: Column) -> Column:
        """Return whether a text is a whole record: quoted fields are closed, and quotes in them doubled or escaped."""
        if not self.quote:
            return F.lit(True)
        quoted = f"{self._blanks_before}{self._quoted_field}{self._blanks_after}"
        field = rf"(?:{quoted}|{self._unquoted_field})"
        record = rf"(?s)\A{field}(?:{self._separator}{field})*+\z"
        return (F.instr(text, self.quote) == 0) | text.rlike(record)

    def open_quotes(self, text: Column) -> tuple[Column, Column]:
        """Return whether a quoted field is open at the end of a line, if none or if one is open at its beginning."""
        if not self.joins_lines:
            return F.lit(False), F.lit(False)
        quote, has_quote = re.escape(self.quote), F.instr(text, self.quote) > 0
        escaped_break = f"(?:{re.escape(self.escape)})?" if self.escape not in ("", self.quote) else ""
        until_end = rf"{self._text_in_quotes}{escaped_break}\z"
        closed = rf"(?:{self._blanks_before}{self._quoted_field}{self._rest_of_field}|{self._unquoted_field})"
        open_field = rf"(?:{closed}{self._separator})*+{self._blanks_before}{quote}{until_end}"
        behind_quote = rf"{self._text_in_quotes}{quote}{self._rest_of_field}{self._separator}{open_field}"
        opens = ~self.is_comment(text) & has_quote & text.rlike(rf"(?s)\A{open_field}")
        return opens, ~has_quote | text.rlike(rf"(?s)\A(?:{until_end}|{behind_quote})")

    def is_plain(self, text: Column) -> Column:
        """Return whether Spark's own reader parses a line as it is."""
        if not self.quote or not self.options.keys() <= _PLAIN_OPTIONS | set(self.file_options()):
            return F.lit(False)
        has_few_fields = F.octet_length(text) < self.max_columns
        has_mark = text.startswith(_BYTE_ORDER_MARK)  # the parser of one record would drop it
        return (F.instr(text, self.quote) == 0) & has_few_fields & ~has_mark & F.is_valid_utf8(text)

    def may_span_lines(self, has_partial_line: bool) -> bool:
        """Return whether the records of a file have to be composed of lines, as declared or judged by its lines."""
        return self.is_on("multiline") or (has_partial_line and self.joins_lines)

    def count_fields(self, text: Column) -> Column:
        """Return the number of fields of a whole record."""
        if self.quote:
            unquoted = F.regexp_replace(text, F.lit(f"(?s){self._quoted_field}"), F.lit(""))
            text = F.when(F.instr(text, self.quote) > 0, unquoted).otherwise(text)
        without = F.length(F.replace(text, F.lit(self.separator), F.lit("")))
        return ((F.length(text) - without) / len(self.separator) + 1).cast("int")

    def field_count_problem(self, text: Column, columns: int) -> Column:
        """Return the problem of a record that does not have one field for each column."""
        fields = self.count_fields(text)
        relation = F.when(fields < columns, _FEWER).otherwise(_MORE)
        counts = F.concat(F.lit(" fields than the header ("), fields.cast("string"), F.lit(f", not {columns})"))
        return F.concat(F.lit("the line has "), relation, counts)

    def fits_parser(self, text: Column) -> Column:
        """Return whether a record has no more fields than Spark's parser accepts."""
        size = len(self.separator)
        return F.length(text) - F.length(F.replace(text, F.lit(self.separator), F.lit(""))) < self.max_columns * size

    def is_comment(self, text: Column) -> Column:
        comment = self.options.get("comment", "")
        return text.startswith(comment) if comment.strip("\0") else F.lit(False)

    def is_record(self, text: Column) -> Column:
        """Return whether a line is neither blank nor a comment."""
        return ~is_blank(text) & ~self.is_comment(text)

    def is_dropped(self, text: Column) -> Column:
        """Return whether Spark's own reader drops a line: it has control characters alone."""
        return (text < F.lit("!")) & text.rlike(r"\A[\x00-\x20]*+\z") & ~is_blank(text)


def _free_name(name: str, in_use: set[str]) -> str:
    """Return a name that no other column has, and add it to them."""
    while name.lower() in in_use:
        name = f"{name}_"
    in_use.add(name.lower())
    return name


def _python_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of Java. Python has possessive quantifiers since 3.11; here they only save time."""
    return re.compile(pattern.replace("*+", "*"), re.DOTALL)


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
    dialect = CsvDialect.declared(channel)
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
    dialect = CsvDialect.declared(channel).fitted(layout)
    names = dialect.field_names(layout.header) if dialect.is_on("header", "true") else []
    counts = Counter(name.casefold() for name in names)
    return [name for name in names if name and counts[name.casefold()] > 1]


def reserved_columns(channel: Snapshot | Feed, layout: CsvLayout) -> tuple[str, ...]:
    """Return the names of a header that the reader gives to its own columns; those columns are not read."""
    return tuple(CsvDialect.declared(channel).fitted(layout).reserved_names(layout.header))


def _owners(files: Iterable[str], paths: Sequence[str]) -> dict[str, str | None]:
    """Return the path that each file was read from; with one path, which may be a pattern, that one."""
    if len(paths) == 1:
        return dict.fromkeys(files, paths[0])
    by_path = {normalize_path(path): path for path in paths}
    return {file: owning_path(file, by_path) for file in files}


def _scan_files(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> dict[str, CsvLayout]:
    """Return the layout of each file."""
    scan = _scan_records if dialect.skips_lines else _scan_lines
    layouts = scan(spark, dialect, paths)
    by_separator: dict[str, list[str]] = {}
    for file, layout in layouts.items():
        if separator := declared_separator(layout.header):
            by_separator.setdefault(separator, []).append(file)
    for separator, files in by_separator.items():
        layouts |= _scan_below_separator(spark, dialect, separator, files)
    return layouts


def _scan_below_separator(
    spark: SparkSession, dialect: CsvDialect, separator: str, files: Sequence[str]
) -> dict[str, CsvLayout]:
    """Return the layouts of files whose first line declares this separator."""
    declared = dialect.declared_separator
    if declared and declared != separator:
        problem = _OTHER_SEPARATOR.format(dialect.skip_lines + 1, separator, declared)
        return dict.fromkeys(files, CsvLayout(problem=problem))
    fitted = dialect.fitted(CsvLayout(separator=separator))
    layouts = _scan_records(spark, fitted, [unquote(file) for file in files])
    return {file: replace(layouts.get(file, CsvLayout()), separator=separator) for file in files}


def _scan_lines(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> dict[str, CsvLayout]:
    """Return the layout of each file by its lines, and by its records where these may differ."""
    text = F.col(TEXT)
    first = F.min_by(TEXT, F.when(F.col(_BLOCK) == 0, F.col(_NUMBER)))
    # A set makes Spark aggregate by hash: text in `min_by` alone would make it sort all lines.
    kind = F.when(~dialect.is_whole(text), _PARTIAL).when(dialect.is_dropped(text), _DROPPED)
    kinds = F.collect_set(kind.when(~dialect.is_plain(text), _IRREGULAR))
    lines = _numbered_lines(spark, dialect, paths).where(dialect.is_record(text))
    rows = lines.groupBy(FILE).agg(*_header_columns(dialect, first), kinds.alias("kinds")).collect()
    layouts = {normalize_uri(row[FILE]): replace(_file_layout(dialect, row), is_plain=not row["kinds"]) for row in rows}
    files = [
        normalize_uri(row[FILE])
        for row in rows
        if _DROPPED in row["kinds"] or dialect.may_span_lines(_PARTIAL in row["kinds"])
    ]
    if files:
        layouts |= _scan_records(spark, dialect, [unquote(file) for file in files])
    return layouts


def _scan_records(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> dict[str, CsvLayout]:
    """Return the layouts of files of which a line may not be a record."""
    records, text = _records(spark, dialect, paths), F.col(TEXT)
    # Behind an invalid quote it is uncertain where its record ends, and what each later row contains.
    is_uncertain = ~dialect.is_whole(text) & ((F.col("_lines") > 1) | F.col("_is_open"))
    rows = records.groupBy(FILE).agg(
        *_header_columns(dialect, F.min_by(TEXT, _NUMBER)),
        F.max((F.col("_lines") > 1) | dialect.is_dropped(text)).alias("is_composed"),
        F.min(F.when(is_uncertain, F.col(_NUMBER))).alias("line"),
    )
    return {normalize_uri(row[FILE]): _record_layout(dialect, row) for row in rows.collect()}


def _record_layout(dialect: CsvDialect, row: Row) -> CsvLayout:
    layout = _file_layout(dialect, row)
    problem = f"line {row['line']}: {_INVALID_QUOTES.format('that begins here')}" if row["line"] else ""
    is_composed = dialect.is_on("multiline") or dialect.skips_lines or row["is_composed"]
    return replace(layout, is_composed=is_composed, problem=layout.problem or problem)


def _header_columns(dialect: CsvDialect, first: Column) -> tuple[Column, Column]:
    return F.make_valid_utf8(first).alias("header"), dialect.is_valid(first).alias("is_valid")


def _file_layout(dialect: CsvDialect, row: Row) -> CsvLayout:
    """Return the layout of one file, with a problem if its header is invalid."""
    header = row["header"] or ""
    columns = header.count(dialect.separator) + 1
    if not row["is_valid"]:
        return CsvLayout(header, problem=f"line 1: {dialect.invalid_bytes('header')}")
    if columns > dialect.max_columns:
        limit = f"expected at most {dialect.max_columns:,}; declare `maxColumns` in the channel's options"
        return CsvLayout(header, problem=f"line 1: its header has {columns:,} columns; {limit}")
    return CsvLayout(header)


def _delivery_layout(dialect: CsvDialect, files: Mapping[str, CsvLayout]) -> CsvLayout:
    """Return the layout of a delivery: one file, or several files with one header."""
    if not files:
        return CsvLayout(problem=_NO_HEADER if dialect.skips_lines else "")
    (first, layout), *others = files.items()
    problems = [f"{_display(file)}, {layout.problem}" for file, layout in files.items() if layout.problem]
    problems += [
        f"{_display(file)}, line 1: its line `sep=` is not that of {_display(first)}; expected the same in all files "
        "of a delivery"
        for file, other in others
        if other.separator != layout.separator
    ]
    if dialect.is_on("header", "true"):
        problems += [
            f"{_display(file)}, line 1: its header is not that of {_display(first)}; expected the same columns in the "
            "same order in all files of a delivery"
            for file, other in others
            if other.header != layout.header
        ]
    return CsvLayout(
        layout.header,
        is_composed=any(other.is_composed for other in files.values()),
        is_plain=all(other.is_plain for other in files.values()),
        separator=layout.separator,
        problem="".join(problems[:1]),
    )


def _display(file: str) -> str:
    return normalize_path(unquote(file))


def summarize_field_counts(spark: SparkSession, channel: Snapshot | Feed, path: str) -> str:
    """Return how many records of CSV files have fewer fields than the header and how many have more; empty if none.

    The text names the first of them, and the separator at the end of each, or of the header, if it is the reason. The
    files are read again, to explain the rejection of a delivery.
    """
    layout = scan_csv(spark, channel, [path])[path]
    dialect, text = CsvDialect.declared(channel).fitted(layout), F.col(TEXT)
    if dialect.is_wide:
        return ""
    columns, fields = len(dialect.field_names(layout.header)), dialect.count_fields(text)
    relation = F.when(fields < columns, _FEWER).when(fields > columns, _MORE)
    has_last_empty = text.endswith(dialect.separator) & (fields == columns + 1)
    lacks_last_empty = F.lit(layout.header.endswith(dialect.separator)) & (fields == columns - 1)
    records = _records(spark, dialect, [path]).where(dialect.is_whole(text))
    records = records.select(
        *(FILE, _NUMBER, fields.alias("fields"), relation.alias("relation")),
        (has_last_empty | lacks_last_empty).alias("differs_at_end"),
    ).where("relation IS NOT NULL")
    rank = F.row_number().over(Window.partitionBy("relation").orderBy(FILE, _NUMBER))
    example = F.when(rank <= _EXAMPLES, F.struct(FILE, _NUMBER, "fields"))
    rows = (
        records.withColumn("example", example)
        .groupBy("relation")
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.array_sort(F.collect_list("example")).alias("examples"),
            F.bool_and("differs_at_end").alias("differ_at_end"),
        )
        .orderBy("relation")
    )
    return ", and ".join(_field_count_summary(row, columns, dialect.separator, path) for row in rows.collect())


def _field_count_summary(row: Row, columns: int, separator: str, path: str) -> str:
    lines = f"{pluralize(row['lines'], 'line')} {'has' if row['lines'] == 1 else 'have'}"
    examples = [_field_count_example(example, path) for example in row["examples"]]
    examples += ["..."] if row["lines"] > len(examples) else []
    reason = _ENDS[row["relation"]].format(separator) if row["differ_at_end"] else ""
    return f"{lines} {row['relation']} than the {columns} fields of the header ({', '.join(examples)}){reason}"


def _field_count_example(example: Row, path: str) -> str:
    file = _display(normalize_uri(example[FILE]))
    line = f"line {example[_NUMBER]}" if file == normalize_path(path) else f"line {example[_NUMBER]} of {file}"
    return f"{line} has {example['fields']}"


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


def _physical_lines(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the lines of files with their number in the file, `_line`, and the line break before each, `_break`.

    A file is divided at each LF, and then each part at each CR that is not at its end: so CRLF stays one line break.
    """
    parts = _numbered_lines(spark, dialect, paths, separator="\n")
    line_break = F.lit(dialect.options.get("linesep", "\n"))
    if "linesep" in dialect.options:
        lines = parts.withColumns({_PART: F.lit(0), _BREAK: line_break})
    else:
        lines = parts.select(FILE, _BLOCK, _NUMBER, F.posexplode(_divide_at_returns(F.col(TEXT))).alias(_PART, TEXT))
        lines = lines.withColumn(_BREAK, F.when(F.col(_PART) == 0, line_break).otherwise(F.lit("\r")))
    lines = lines.withColumn(_LINE, F.row_number().over(_in_order()))
    if not dialect.skips_lines:
        return lines
    last = F.count(F.lit(1)).over(Window.partitionBy(FILE)) - dialect.skip_footer
    return lines.withColumn("_last", last).where(F.col(_LINE).between(dialect.skip_lines + 1, F.col("_last")))


def _in_order() -> WindowSpec:
    return Window.partitionBy(FILE).orderBy(_BLOCK, _NUMBER, _PART)


def _divide_at_returns(text: Column) -> Column:
    """Return the parts of a text between its CRs, except for one at its end; its bytes need not be UTF-8."""
    first = F.instr(text, "\r")
    parts = F.split(F.decode(text.cast("binary"), LATIN), r"\r(?!\z)", -1)
    parts = F.transform(parts, lambda part: F.encode(part, LATIN).cast("string"))
    return F.when((first == 0) | (first == F.length(text)), F.array(text)).otherwise(parts)


def _records(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the records of files whose quoted fields may span lines, without skipped lines and comments.

    A line begins a record if no quoted field is open before it. Whether one is open behind a line depends on the line
    alone, or the line leaves it as it is, or reverses it: only reversals have to be counted since a line of the first
    kind.

    Returns:
        The text, the file, `_number` of the first line, `_lines`, and `_is_open` if a quoted field is not closed.
    """
    opens, stays_open = dialect.open_quotes(F.col(TEXT))
    in_order = _in_order()
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    lines = _physical_lines(spark, dialect, paths).withColumns({"_opens": opens, "_stays": stays_open})
    is_reversal, is_fixed = F.col("_opens") & ~F.col("_stays"), F.col("_opens") == F.col("_stays")
    reversals = F.sum(is_reversal.cast("int")).over(so_far)
    fixed = F.last(F.when(is_fixed, F.col("_opens").cast("int") + F.col("_reversals")), ignorenulls=True).over(so_far)
    is_open = (F.coalesce(F.col("_fixed"), F.lit(0)) + F.col("_reversals")) % 2 == 1
    begins = ~F.lag("_is_open", 1, False).over(in_order)
    numbered = (
        lines.withColumn("_reversals", reversals)
        .withColumn("_fixed", fixed)
        .withColumn("_is_open", is_open)
        .withColumn("_begins", begins)
        .withColumn("_record", F.sum(F.col("_begins").cast("int")).over(so_far))
    )
    parts = F.array_sort(F.collect_list(F.struct(_LINE, _BREAK, TEXT)))
    text = F.array_join(F.transform(parts, _with_break_between), "")
    records = numbered.groupBy(FILE, "_record").agg(
        F.rtrim(text, F.lit("\r")).alias(TEXT),
        F.min(_LINE).alias(_NUMBER),
        F.count(F.lit(1)).alias("_lines"),
        F.max_by("_is_open", _LINE).alias("_is_open"),
    )
    return records.where(dialect.is_record(F.col(TEXT)))


def _with_break_between(part: Column, position: Column) -> Column:
    return F.when(position == 0, part[TEXT]).otherwise(F.concat(part[_BREAK], part[TEXT]))


# -- Rows


def read_csv(spark: SparkSession, channel: Snapshot | Feed, paths: Sequence[str], layout: CsvLayout) -> DataFrame:
    """Return the rows of CSV files of one layout, all columns text, in the columns of `with_problems`.

    Spark's own reader reads plain files. In others each record is checked as text before it is parsed.
    """
    dialect = CsvDialect.declared(channel).fitted(layout)
    reader = _spark_reader(spark, dialect)
    names, in_folders = _column_names(reader, dialect, paths, layout)
    reserved = dialect.reserved_names(layout.header).values()
    if not names or dialect.is_wide or layout.is_plain:
        fields = [T.StructField(name, T.StringType()) for name in names]
        rows = read_by_spark(reader, paths, fields, dialect.field_count_problem(F.col(LINE), len(names)))
        return rows.drop(*reserved)
    in_files = [name for name in names if name not in in_folders]
    rows = _parsed(_record_texts(spark, dialect, paths, layout), dialect, in_files).drop(*reserved)
    rows = with_folder_values(rows, in_folders)
    return rows.where(col(LINE).isNull()) if dialect.mode == "DROPMALFORMED" else rows


def _column_names(
    reader: DataFrameReader, dialect: CsvDialect, paths: Sequence[str], layout: CsvLayout
) -> tuple[list[str], list[str]]:
    """Return the names of all columns, and of those whose values are in the names of folders."""
    names = dialect.column_names(layout.header) if layout.header else []
    if names and all(Path(path).is_file() for path in paths):
        return names, []
    declared = reader.schema(T.StructType([T.StructField(name, T.StringType()) for name in names])) if names else reader
    first = declared.load(escape_glob(paths[0]))
    return [name for name in first.columns if name != LINE], folder_columns(first, paths[:1])


def _spark_reader(spark: SparkSession, dialect: CsvDialect) -> DataFrameReader:
    reader = spark.read.format("csv").options(header="true", inferSchema="false", mode="PERMISSIVE")
    reader = reader.options(**dialect.reader_defaults).options(multiLine=str(dialect.is_wide).lower())
    return reader.options(**dialect.spark_options).options(columnNameOfCorruptRecord=LINE)


def _parsed(texts: DataFrame, dialect: CsvDialect, names: Sequence[str]) -> DataFrame:
    """Parse each text as one record; one that is invalid is not parsed."""
    text = F.col(TEXT)
    field_count_problem = dialect.field_count_problem(text, len(names))
    problem = (
        F.when(~dialect.is_valid(text), F.lit(dialect.invalid_bytes("line")))
        .when(~dialect.is_whole(text), F.lit(_INVALID_QUOTES.format("of the line")))
        .when(~dialect.fits_parser(text), field_count_problem)
    )
    schema = ", ".join(f"{quote_name(name)} string" for name in (*names, LINE))
    parsed = F.from_csv(F.when(problem.isNull(), text), schema, {**dialect.reader_defaults, **dialect.parser_options()})
    rows = texts.select(FILE, ROW_ORDER, TEXT, problem.alias(PROBLEM), F.inline(F.array(parsed)))
    return with_problems(rows, names, field_count_problem)


def _record_texts(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str], layout: CsvLayout) -> DataFrame:
    """Return the records of files as text, without headers, blank lines and comments."""
    return _composed_texts(spark, dialect, paths) if layout.is_composed else _line_texts(spark, dialect, paths)


def _line_texts(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the lines of files; large files are split among tasks.

    Spark's CSV reader skips headers. It reads each line as one column, and ISO-8859-1 preserves every byte.
    """
    names = ("header", "comment", "linesep")
    declared = {name: dialect.options[name] for name in names if name in dialect.options}
    reader = spark.read.format("csv").options(**dialect.file_options()).options(**{"header": "true", **declared})
    reader = reader.options(sep=_NO_SEPARATOR, quote=_NO_QUOTE, escape=_NO_QUOTE, encoding=LATIN)
    reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=LINE).schema(f"{TEXT} string, {LINE} string")
    text = dialect.decode(F.coalesce(LINE, TEXT))
    lines = reader.load([escape_glob(path) for path in paths])
    return lines.select(text.alias(TEXT), file_column(), row_order_column().alias(ROW_ORDER))


def _composed_texts(spark: SparkSession, dialect: CsvDialect, paths: Sequence[str]) -> DataFrame:
    """Return the records of files that have to be composed of lines."""
    records = _records(spark, dialect, paths)
    if dialect.is_on("header", "true"):
        first = F.min(_NUMBER).over(Window.partitionBy(FILE))
        records = records.withColumn("_first", first).where(F.col(_NUMBER) > F.col("_first"))
    order = F.struct(F.lit(0).cast("bigint").alias("block"), F.col(_NUMBER).cast("bigint").alias("row"))
    return records.select(TEXT, normalized_file(F.col(FILE)), order.alias(ROW_ORDER))
