"""Names: which ones a declaration may give, and which word was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from scd_pipeline.declaration.tables import SUFFIXES

FORBIDDEN_BY_DELTA = " ,;{}()="
"""What no column of a Delta table, and no part of one, may have in its name, beside control characters."""
_FORBIDDEN = FORBIDDEN_BY_DELTA + "`."
_FORBIDDEN_TEXT = " ".join(sorted(_FORBIDDEN.strip()))
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

COLUMN_NAME_RULE = (
    f"a name does not begin with `_`, and has no space, none of {_FORBIDDEN_TEXT} and no control character; "
    "where a source calls a column otherwise, say so under the source's `columns:`"
)
TABLE_NAME_RULE = (
    "write letters, digits and `_`, beginning with a letter, and not ending with _changes, _audit or _keys"
)


def is_text(value: str) -> bool:
    """Whether the text can be written to a file: half of a surrogate pair cannot."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_column_name(name: str) -> bool:
    """Whether an attribute, a key column, a source or a surrogate key may be called so."""
    return (
        bool(name)
        and not name.startswith("_")
        and not any(character in _FORBIDDEN or not character.isprintable() for character in name)
    )


def is_table_name(name: str) -> bool:
    """Whether a dimension or a fact may be called so: it names a folder, tables and views.

    The tables beside it have names of their own, which it must not take.
    """
    return _TABLE_NAME.fullmatch(name) is not None and not name.lower().endswith(SUFFIXES)


def default_surrogate_key(table: object) -> str:
    """The surrogate key's name where the declaration gives none: `customer_key` for `dim_customer`."""
    return f"{table.removeprefix('dim_')}_key" if isinstance(table, str) else ""


def display(value: object, limit: int = 60) -> str:
    """The value for a message: short, and safe for any value."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= limit else f"{text[:limit]}..."


def listed(options: Iterable[str]) -> str:
    """`a, b and c`."""
    *head, last = list(options)
    return f"{', '.join(head)} and {last}" if head else last


def did_you_mean(option: object, options: Iterable[str]) -> str:
    """A hint that ends in what is allowed, led by the nearest word where one is near."""
    known = list(options)
    near = nearest(option, known)
    allowed = f"allowed: {', '.join(known)}" if known else "nothing is allowed here"
    return f"did you mean {near}? {allowed}" if near else allowed


def nearest(option: object, options: Iterable[str]) -> str | None:
    """Return the word that is most likely meant, None if none is near."""
    near = difflib.get_close_matches(option[:100], list(options), n=1) if isinstance(option, str) else []
    return near[0] if near else None
