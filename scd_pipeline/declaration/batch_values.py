"""Values of a batch in SQL expressions: `{{ load_timestamp }}` and `{{ load_run_id }}` (S14).

Both follow from the delivery and not from the clock, so that a retry and a rebuild compute the same values.
"""

from __future__ import annotations

import re

LOAD_TIMESTAMP = "load_timestamp"
BATCH_VALUES = {LOAD_TIMESTAMP: "_scd.at", "load_run_id": "regexp_replace(_scd.batch, '/[^/]*$', '')"}
"""The SQL of each value over the column that a load adds to delivered rows: the time of the delivery, and its source,
channel and name, which is the column `load_run_id` of the tables."""
_QUOTED = r"""(?i:r'[^']*'|r"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`"""
_PLACEHOLDER = r"\{\{\s*(?P<name>\w+)\s*\}\}"
_QUOTED_OR_PLACEHOLDER = re.compile(f"(?P<quoted>{_QUOTED})|{_PLACEHOLDER}", re.DOTALL)
_QUOTED_OR_BRACES = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<braces>\{{+[^{{}}]*\}}*|\}}+)", re.DOTALL)


def with_batch_values(expression: str) -> str:
    """Return an expression with the SQL of each placeholder in place of it; an unknown one is unchanged."""
    return _QUOTED_OR_PLACEHOLDER.sub(lambda match: BATCH_VALUES.get(match["name"], match[0]), expression)


def placeholder_names(expression: str) -> frozenset[str]:
    """Return the names of the placeholders of an expression."""
    return frozenset(match["name"] for match in _QUOTED_OR_PLACEHOLDER.finditer(expression) if match["name"])


def invalid_placeholders(expression: str) -> list[str]:
    """Return the texts of an expression in braces that are no placeholder, and the quoted ones that have one."""
    return [match[0] for match in _QUOTED_OR_BRACES.finditer(expression) if _is_invalid(match)]


def _is_invalid(match: re.Match[str]) -> bool:
    placeholder = re.search(_PLACEHOLDER, match[0])
    if match["quoted"]:
        return placeholder is not None
    return placeholder is None or placeholder["name"] not in BATCH_VALUES
