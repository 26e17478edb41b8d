"""Frames as text: an aligned table, records, CSV or JSON.

Every value is turned into text by Spark, in UTC: no time zone of this process touches it, and the sentinel of an open
window can be shown, which some zones could not collect as a time.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from scd_pipeline.expressions import as_text_columns

if TYPE_CHECKING:
    from scd_pipeline.declaration import Dimension
    from scd_pipeline.load.run import LoadResult

NULL = "NULL"
Row = tuple["str | None", ...]


@dataclass(frozen=True, slots=True)
class Texts:
    """Rows as texts, None for NULL; `kinds` says of each column "number", "boolean" or "text"."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[Row, ...]
    more: bool = False

    def of(self, names: Sequence[str]) -> Texts:
        """The same with some of the columns."""
        places = [self.names.index(name) for name in names]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return Texts(tuple(names), tuple(self.kinds[place] for place in places), rows, self.more)

    def column(self, name: str) -> list[str | None]:
        """The values of one column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]


def collected(frame: DataFrame, limit: int = 0) -> Texts:
    """The rows of a frame, at most `limit` of them (0: all); columns may have the same name."""
    kinds = tuple(_kind(field.dataType) for field in frame.schema.fields)
    plain = frame.toDF(*[f"c{number}" for number in range(len(kinds))])
    texts = as_text_columns(plain) if kinds else plain
    rows = [tuple(row) for row in (texts.limit(limit + 1) if limit else texts).collect()]
    more = bool(limit) and len(rows) > limit
    return Texts(tuple(frame.columns), kinds, tuple(rows[:limit] if more else rows), more)


def _kind(data_type: T.DataType) -> str:
    if isinstance(data_type, T.NumericType):
        return "number"
    return "boolean" if isinstance(data_type, T.BooleanType) else "text"


def table(texts: Texts, indent: str = "") -> str:
    """An aligned table; numbers are to the right, NULL is shown."""
    rows = [[_cell(value) for value in row] for row in texts.rows]
    widths = [max(_width(cell) for cell in column) for column in zip(texts.names, *rows, strict=True)]
    lines = [_line(texts.names, widths, texts.kinds), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, texts.kinds) for row in rows]
    return "\n".join(f"{indent}{line.rstrip()}" for line in lines)


def table_width(texts: Texts) -> int:
    """How many columns of a terminal the table takes."""
    return max((_width(line) for line in table(texts).splitlines()), default=0)


def records(texts: Texts) -> str:
    """One line per value, for rows that are too wide for a table."""
    label = max((_width(name) for name in texts.names), default=0)
    blocks = []
    for number, row in enumerate(texts.rows, start=1):
        lines = [f"-- row {number} {'-' * max(0, label - 4)}"]
        lines += [f"{_pad(name, label)}  {_cell(v)}" for name, v in zip(texts.names, row, strict=True)]
        blocks.append("\n".join(lines))
    return "\n".join(blocks) or "(no rows)"


def comma_separated(texts: Texts) -> str:
    """CSV with a header; NULL is an empty field, and an empty text is quoted, so that they can be told apart."""
    return "\n".join(",".join(_field(value) for value in row) for row in (texts.names, *texts.rows))


def _field(value: str | None) -> str:
    if value is None:
        return ""
    quoted = value == "" or any(c in value for c in ',"\n\r')
    return '"' + value.replace('"', '""') + '"' if quoted else value


def json_lines(texts: Texts) -> str:
    """One JSON object per line; numbers and booleans as such, everything else as text."""
    lines = []
    for row in texts.rows:
        fields = [f"{json.dumps(n)}: {_json(v, k)}" for n, v, k in zip(texts.names, row, texts.kinds, strict=True)]
        lines.append("{" + ", ".join(fields) + "}")
    return "\n".join(lines)


def _json(value: str | None, kind: str) -> str:
    finite = kind == "number" and value is not None and Decimal(value).is_finite()
    if value is not None and (finite or kind == "boolean"):
        return value
    return json.dumps(value, ensure_ascii=False)


def _line(cells: Sequence[str], widths: Sequence[int], kinds: Sequence[str]) -> str:
    parts = zip(cells, widths, kinds, strict=True)
    return "  ".join(_pad(cell, width, right=kind == "number") for cell, width, kind in parts)


def _pad(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _cell(value: Any) -> str:
    """A value on one line."""
    if value is None:
        return NULL
    return "".join(repr(c)[1:-1] if unicodedata.category(c) == "Cc" else c for c in value)


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def summary(result: LoadResult) -> str:
    """What a load did, in one line."""
    outcomes = [batch.outcome for batch in result.batches]
    told = [
        f"{outcomes.count(o)} {o}"
        for o in ("accepted", "unchanged", "superseded", "missing", "rejected")
        if o in outcomes
    ]
    words = {"open": "opened", "close": "closed", "overwrite": "overwritten", "remove": "removed"}
    rows = [f"{count} {words.get(action, action)}" for action, count in result.rows.items() if count]
    return (
        f"{result.dimension}: deliveries: {', '.join(told) or 'none'}; "
        f"rows: {', '.join(rows) or 'none changed'}; table version {result.table_version}; {result.seconds:.1f} s"
    )


def telling(names: Sequence[str], dimension: Dimension) -> list[str]:
    """Of a row's columns those that tell what became of it: key, action, window, and what opens versions."""
    attributes = [attribute for attribute in dimension.attributes if attribute.opens_versions]
    shown = {attribute.name for attribute in attributes or dimension.attributes}
    shown |= {"_action", "version", "effective_from", "effective_to", *dimension.key_names}
    return [name for name in names if name in shown]


def differing(texts: Texts) -> list[str]:
    """The columns that do not have one value in all rows."""
    return [name for name in texts.names if len(set(texts.column(name))) > 1]
