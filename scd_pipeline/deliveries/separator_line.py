"""The first line of a CSV file by which Excel learns its separator, such as `sep=;`. It is never a header."""

from __future__ import annotations

import re

_SEPARATOR_LINE = re.compile(r"\"?sep=(?P<separator>\\t|.)\"?", re.IGNORECASE)


def declared_separator(line: str) -> str:
    """Return the separator that a line declares; empty if it is another line."""
    match = _SEPARATOR_LINE.fullmatch(line)
    return match["separator"].replace("\\t", "\t") if match else ""
