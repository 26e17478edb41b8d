"""Texts for messages: lists of names, numbers of things, short values, suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_LONGEST_NAME, _MOST_DIGITS = 64, 4
"""Limits of the names of columns that messages repeat."""


def is_text(value: str) -> bool:
    """Return whether the text can be encoded in UTF-8, as half of a surrogate pair cannot."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def short_repr(value: object, limit: int = 60) -> str:
    """Return the value as short text for a message; it works for any value."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= limit else f"{text[:limit]}..."


def join_names(names: Iterable[str]) -> str:
    """Return the names as text, such as `a, b and c`."""
    *head, last = list(names)
    return f"{', '.join(head)} and {last}" if head else last


def first_names(names: Sequence[str], limit: int = 5, separator: str = ", ") -> str:
    """Return the first names as text, and the number of the others, such as `a, b and 3 more`."""
    others = len(names) - limit
    return separator.join(names[:limit]) + (f" and {others} more" if others > 0 else "")


def may_be_value(name: str) -> bool:
    """Return whether the name of a column may be a value, as in a file without a header: an address, a number, a date.

    A name has letters, fewer than five digits, and no `@`; it is short, and on one line.
    """
    is_word = any(character.isalpha() for character in name) and name.isprintable() and "@" not in name
    return not is_word or len(name) > _LONGEST_NAME or sum(character.isdigit() for character in name) > _MOST_DIGITS


def name_columns(names: Sequence[str]) -> str:
    """Return the names of columns as text; of names that may be values, only their number and their lengths (S31)."""
    hidden = [name for name in names if may_be_value(name)]
    listed = first_names([name for name in names if not may_be_value(name)])
    lengths = first_names([str(len(name)) for name in hidden])
    counted = f"{len(hidden)} whose names may be values (characters: {lengths})" if hidden else ""
    return " and ".join(filter(None, (listed, counted)))


def pluralize(count: int, noun: str) -> str:
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


def readable_parts(text: str) -> str:
    """Return a text of several values (`expressions.text_of_parts`) for a message, such as `7/EU`."""
    parts = []
    while text:
        length, _, rest = ("", "", text[1:]) if text.startswith("-") else text.partition(":")
        parts.append(rest[: int(length)] if length else "NULL")
        text = rest[int(length) :] if length else rest
    return "/".join(parts)
