"""Rows as text: parse a table, render rows as one, and compare two sets of rows with a readable difference.

    | id | city   | effective_from | effective_to | current_flag |
    | 1  | Bonn   | 2024-01-01     | 2024-06-01   | false        |
    | 1  | 'NULL' | 2024-06-01     | OPEN         | true         |

A cell is an integer, a decimal (`1.50`), `NaN`, `true` or `false`, a date, a timestamp (UTC), `OPEN`
(9999-12-31 23:59:59), NULL (`NULL` or nothing), or text; in quotes it is always text
(`''`, `'1'`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

OPEN = dt.datetime(9999, 12, 31, 23, 59, 59)
Rows = Sequence[Mapping[str, Any]]

_LITERALS = {"": None, "NULL": None, "true": True, "false": False, "OPEN": OPEN, "NaN": float("nan")}


def parse_cell(text: str) -> Any:
    """The value of one cell."""
    text = text.strip()
    if text in _LITERALS:
        return _LITERALS[text]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return Decimal(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return dt.date.fromisoformat(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?", text):
        return dt.datetime.fromisoformat(text)
    return text


def _cells(line: str) -> list[str]:
    return re.findall(r"""\s*('[^']*'|"[^"]*"|[^|]*?)\s*\|""", line.strip().removeprefix("|"))


def header(table: str) -> tuple[str, ...]:
    """The column names of a table."""
    return tuple(_cells(next(line for line in table.splitlines() if line.strip())))


def parse(table: str) -> list[dict[str, Any]]:
    """The rows of a table; a line of dashes under the header is skipped."""
    names = header(table)
    lines = [line for line in table.splitlines() if line.strip()][1:]
    rows = []
    for line in lines:
        if re.fullmatch(r"[\s|:-]*-[\s|:-]*", line):
            continue
        cells = _cells(line)
        if len(cells) != len(names):
            raise ValueError(f"{len(cells)} cells under {len(names)} columns {names}: {line.strip()}")
        rows.append({name: parse_cell(cell) for name, cell in zip(names, cells, strict=True)})
    return rows


def show_cell(value: Any) -> str:
    """A value as a cell that parses back to it, if a cell can represent it."""
    if isinstance(value, str):
        return value if value and parse_cell(value) == value and "|" not in value else repr(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return "OPEN" if value == OPEN else str(value)
    if isinstance(value, float) and value != value:
        return "NaN"
    return "NULL" if value is None else str(value)


def render(rows: Rows, columns: Iterable[str] | None = None, prefixes: Sequence[str] | None = None) -> str:
    """Rows as an aligned table; each line begins with its item of `prefixes`."""
    names = list(dict.fromkeys(name for row in rows for name in row) if columns is None else columns)
    lines = [names, *([show_cell(row[name]) if name in row else "?" for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    return "\n".join(
        f"{prefix}{text}" for prefix, text in zip(["  ", *(prefixes or ["  "] * len(rows))], texts, strict=True)
    )


def plain(value: Any) -> Any:
    """A form in which equal values compare equal and hash alike.

    A date is its midnight, an aware time its UTC one; a double is its shortest decimal, -0.0 is 0, NaN is
    NaN; arrays, structs (also Spark's Row) and maps are compared by content. A boolean is not a number.
    """
    if hasattr(value, "asDict"):
        value = value.asDict(recursive=True)
    match value:
        case bool():
            return ("boolean", value)
        case dt.datetime():
            return value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        case dt.date():
            return dt.datetime(value.year, value.month, value.day)
        case float():
            return Decimal(repr(value)) if isfinite(value) else ("double", str(value))
        case list() | tuple():
            return ("array", *map(plain, value))
        case dict():
            return ("entries", *sorted(((plain(k), plain(v)) for k, v in value.items()), key=repr))
    return value


def same_rows(expected: Rows, actual: Rows, columns: Iterable[str] | None = None) -> str:
    """The empty text if the rows agree in any order, else the difference: `-` missing, `+` not expected."""
    names = tuple(columns) if columns is not None else tuple(dict.fromkeys(n for row in expected for n in row))
    expected_rows, actual_rows = (
        Counter(_frozen(row, names) for row in expected),
        Counter(_frozen(row, names) for row in actual),
    )
    if expected_rows == actual_rows and (names or len(expected) == len(actual)):
        return ""
    if not names:
        return render(actual, prefixes=["+ "] * len(actual))
    lines = [(row, "  ") for row in (expected_rows & actual_rows).elements()]
    lines += [(row, "- ") for row in (expected_rows - actual_rows).elements()]
    lines += [(row, "+ ") for row in (actual_rows - expected_rows).elements()]
    lines.sort(key=lambda line: repr((line[0], line[1])))
    originals = {_frozen(row, names): row for row in (*actual, *expected)}
    return render([originals[row] for row, _ in lines], names, [prefix for _, prefix in lines])


def _frozen(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(plain(row[name]) if name in row else ("no column",) for name in names)


def assert_same_rows(expected: Rows | str, actual: Rows, columns: Iterable[str] | None = None) -> None:
    """Fail with the difference unless both have the same rows, in any order.

    `columns` are compared, by default the header of the expected table, or the columns of the expected rows.
    """
    if isinstance(expected, str):
        columns = header(expected) if columns is None else columns
        expected = parse(expected)
    difference = same_rows(expected, actual, columns)
    assert not difference, f"rows differ (- expected, + actual):\n{difference}"
