"""Rules for the names in a declaration, and suggestions for misspelt ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from scd_pipeline.declaration.tables import SUFFIXES

FORBIDDEN_BY_DELTA = " ,;{}()="
"""The characters that Delta forbids in the names of columns and of struct fields, in addition to control characters."""
_FORBIDDEN = FORBIDDEN_BY_DELTA + "`."
_FORBIDDEN_TEXT = " ".join(sorted(_FORBIDDEN.strip()))
_MAX_NAMES = 5
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

COLUMN_NAME_RULE = (
    f"a name does not begin with `_`, and has no space, none of {_FORBIDDEN_TEXT} and no control character; "
    "if a source has another name for the column, map it in `columns:` of the source"
)
TABLE_NAME_RULE = (
    f"write letters, digits and `_`, beginning with a letter, and not ending with {', '.join(SUFFIXES[:-1])} or "
    f"{SUFFIXES[-1]}"
)


def is_text(value: str) -> bool:
    """Return whether the text can be encoded in UTF-8, as half of a surrogate pair cannot."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_column_name(name: str) -> bool:
    """Return whether an attribute, a key column, a source or a surrogate key can have this name."""
    return (
        bool(name)
        and not name.startswith("_")
        and not any(character in _FORBIDDEN or not character.isprintable() for character in name)
    )


def is_table_name(name: str) -> bool:
    """Return whether a dimension or a fact can have this name, which is also that of a folder, tables and views.

    The suffixes of its other tables are reserved.
    """
    return _TABLE_NAME.fullmatch(name) is not None and not name.lower().endswith(SUFFIXES)


def default_surrogate_key(table: object) -> str:
    """Return the default name of the surrogate key, such as `customer_key` for `dim_customer`."""
    return f"{table.removeprefix('dim_')}_key" if isinstance(table, str) else ""


def display(value: object, limit: int = 60) -> str:
    """Return the value as short text for a message; it works for any value."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= limit else f"{text[:limit]}..."


def listed(options: Iterable[str]) -> str:
    """Return the options as text, such as `a, b and c`."""
    *head, last = list(options)
    return f"{', '.join(head)} and {last}" if head else last


def some_names(names: Sequence[str]) -> str:
    """Return the first names as text, and the number of the others."""
    others = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {others} more" if others > 0 else "")


def counted(count: int, noun: str) -> str:
    """Return a number of things as text, such as `1 row`, `2 deliveries` or `2 batches`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"


def did_you_mean(option: object, options: Iterable[str]) -> str:
    """Return a hint with the allowed options, and first the nearest one if one is similar."""
    names = list(options)
    near = nearest(option, names)
    allowed = f"allowed: {', '.join(names)}" if names else "nothing is allowed here"
    return f"did you mean {near}? {allowed}" if near else allowed


def nearest(option: object, options: Iterable[str]) -> str | None:
    """Return the most similar option, None if none is similar."""
    near = difflib.get_close_matches(option[:100], list(options), n=1) if isinstance(option, str) else []
    return near[0] if near else None
