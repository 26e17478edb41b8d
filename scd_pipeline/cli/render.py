"""Write rows as an aligned table, CSV, JSON or Parquet; the only renderer of the command line."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from scd_pipeline.cli.console import report
from scd_pipeline.cli.rows import Kind, Rows, collect, to_json_object
from scd_pipeline.errors import UsageError
from scd_pipeline.texts import pluralize

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

FORMATS = ("table", "csv", "json", "parquet")
NULL = "NULL"
_FORMAT_BY_SUFFIX = {"": "table", ".txt": "table", ".csv": "csv", ".json": "json", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes its rows, and as what.

    Attributes:
        format: One of `FORMATS`.
        file: The file to write; None for the standard output.
        limit: The number of rows to write at most; 0 for all.
        terminal_width: The width of the terminal that shows the standard output; None without one.
    """

    format: str = "table"
    file: Path | None = None
    limit: int = 0
    terminal_width: int | None = None

    @property
    def is_table(self) -> bool:
        """Whether people read the rows on the standard output."""
        return self.format == "table" and self.file is None

    def write_frame(self, frame: DataFrame) -> None:
        """Write the rows of a Spark DataFrame.

        Raises:
            UsageError: Two columns have one name, which JSON and Parquet do not allow.
        """
        if self.format != "parquet":
            self.write(collect(frame, self.limit))
            return
        self._require_unique(frame.columns)
        rows = (frame.limit(self.limit + 1) if self.limit else frame).toArrow()
        has_more = bool(self.limit) and rows.num_rows > self.limit
        self._write_parquet(rows.slice(0, self.limit) if has_more else rows)
        self._report_limit(has_more)

    def write_collected(self, frame: DataFrame, rows: Rows) -> None:
        """Write the collected rows of a frame; as Parquet the frame itself, whose columns have their types."""
        if self.format == "parquet":
            self.write_frame(frame)
        else:
            self.write(rows)

    def write(self, rows: Rows) -> None:
        """Write rows.

        Raises:
            UsageError: Two columns have one name, which JSON and Parquet do not allow; or the file cannot be written.
        """
        if self.format in ("json", "parquet"):
            self._require_unique(rows.names)
        if self.format == "parquet":
            self._write_parquet(_to_arrow(rows))
        elif self.file is not None:
            with self._writing(), self.file.open("w", encoding="utf-8", newline="") as stream:
                self._write_text(rows, stream)
        else:
            self._write_text(rows, sys.stdout)
        self._report_limit(rows.has_more)

    def _write_text(self, rows: Rows, stream: TextIO) -> None:
        if self.format == "csv":
            print(comma_separated(rows), file=stream)
        elif self.format == "json":
            print(json_array(rows), file=stream)
        elif rows.names:
            width = self.terminal_width if self.file is None else None
            print_table(rows, stream, width)

    def _write_parquet(self, rows: pyarrow.Table) -> None:
        import pyarrow.parquet

        with self._writing():
            pyarrow.parquet.write_table(rows, self.file)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an error of the file system into one that names the file.

        Raises:
            UsageError: The file cannot be written.
        """
        try:
            yield
        except OSError as error:
            raise UsageError("OUTPUT_FILE", str(self.file), reason=error.strerror or str(error)) from error

    def _require_unique(self, names: Sequence[str]) -> None:
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        if repeated:
            raise UsageError("DUPLICATE_OUTPUT_COLUMN", columns=", ".join(repeated), format=self.format)

    def _report_limit(self, has_more: bool) -> None:
        if has_more:
            report(f"these are the first {pluralize(self.limit, 'row')}; --limit 0 shows all")


def resolve_format(requested: str | None, file: Path | None) -> str:
    """Return the format of the output: the requested one, else that of the file's suffix, else a table.

    Raises:
        UsageError: Parquet is requested without a file, or the suffix of the file names no format.
    """
    suffix = file.suffix.lower() if file else ""
    if not requested and suffix not in _FORMAT_BY_SUFFIX:
        raise UsageError("OUTPUT_SUFFIX", str(file), suffix=suffix, suffixes=", ".join(filter(None, _FORMAT_BY_SUFFIX)))
    output_format = requested or _FORMAT_BY_SUFFIX[suffix]
    if output_format == "parquet" and file is None:
        raise UsageError("OUTPUT_FILE_REQUIRED")
    return output_format


def print_table(rows: Rows, stream: TextIO, terminal_width: int | None = None, indent: str = "") -> None:
    """Print an aligned table; on a terminal one with colours, or one value per line if the table is too wide."""
    if terminal_width is None:
        print(table(rows, indent), file=stream)
    elif table_width(rows) + len(indent) > terminal_width:
        print(records(rows), file=stream)
    else:
        _print_coloured(rows, stream, indent)


def _print_coloured(rows: Rows, stream: TextIO, indent: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name, kind in zip(rows.names, rows.kinds, strict=True):
        grid.add_column(Text(cell(name)), justify="right" if kind == "number" else "left", no_wrap=True)
    for row in rows.values:
        grid.add_row(*[Text(cell(value), style="dim" if value is None else "") for value in row])
    Console(file=stream, highlight=False).print(Padding(grid, (0, 0, 0, len(indent))))


def table(rows: Rows, indent: str = "") -> str:
    """Return an aligned table; numbers are to the right, NULL is shown."""
    cells = [[cell(value) for value in row] for row in rows.values]
    widths = [max(_width(text) for text in column) for column in zip(rows.names, *cells, strict=True)]
    lines = [_line(rows.names, widths, rows.kinds), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, rows.kinds) for row in cells]
    return "\n".join(f"{indent}{line.rstrip()}" for line in lines)


def table_width(rows: Rows) -> int:
    """Return the width of the table on a terminal."""
    return max((_width(line) for line in table(rows).splitlines()), default=0)


def records(rows: Rows) -> str:
    """Return one line per value, for rows that are too wide for a table."""
    label = max((_width(name) for name in rows.names), default=0)
    blocks = []
    for number, row in enumerate(rows.values, start=1):
        lines = [f"-- row {number} {'-' * max(0, label - 4)}"]
        lines += [f"{_pad(name, label)}  {cell(v)}" for name, v in zip(rows.names, row, strict=True)]
        blocks.append("\n".join(lines))
    return "\n".join(blocks) or "(no rows)"


def comma_separated(rows: Rows) -> str:
    """Return CSV with a header; NULL is an empty field and an empty text is quoted, so that they differ."""
    return "\n".join(",".join(_field(value) for value in row) for row in (rows.names, *rows.values))


def _field(value: str | None) -> str:
    if value is None:
        return ""
    quoted = value == "" or any(c in value for c in ',"\n\r')
    return '"' + value.replace('"', '""') + '"' if quoted else value


def json_array(rows: Rows) -> str:
    """Return one JSON array with an object per row, each on its own line.

    Numbers keep all of their digits, nested values stay nested, times are ISO 8601 in UTC, and what JSON does not have,
    as NaN, is text.
    """
    objects = [to_json_object(rows.names, rows.kinds, row) for row in rows.values]
    return "[\n" + ",\n".join(objects) + "\n]" if objects else "[]"


def _to_arrow(rows: Rows) -> pyarrow.Table:
    """Return the rows of a report with a type for each kind; its numbers are whole."""
    import pyarrow

    parsers: dict[Kind, Callable[[str], object]] = {"number": int, "boolean": lambda text: text == "true"}
    types = {"number": pyarrow.int64(), "boolean": pyarrow.bool_(), "instant": pyarrow.string()}
    columns = [
        pyarrow.array(
            [None if row[n] is None else parsers.get(kind, str)(str(row[n])) for row in rows.values],
            types.get(kind, pyarrow.string()),
        )
        for n, kind in enumerate(rows.kinds)
    ]
    return pyarrow.table(columns, names=list(rows.names))


def _line(cells: Sequence[str], widths: Sequence[int], kinds: Sequence[Kind]) -> str:
    padded = zip(cells, widths, kinds, strict=True)
    return "  ".join(_pad(text, width, right=kind == "number") for text, width, kind in padded)


def _pad(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def cell(value: str | None) -> str:
    """Return a value on one line."""
    if value is None:
        return NULL
    return "".join(repr(c)[1:-1] if unicodedata.category(c) == "Cc" else c for c in value)


def _width(text: str) -> int:
    """Return the columns that a text needs on a terminal."""
    from rich.cells import cell_len

    return cell_len(text)
