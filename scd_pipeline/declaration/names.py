"""Rules for the names in a declaration."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from scd_pipeline.declaration.tables import SUFFIXES

FORBIDDEN_BY_DELTA = " ,;{}()="
"""The characters that Delta forbids in the names of columns and of struct fields, in addition to control characters."""
_FORBIDDEN = FORBIDDEN_BY_DELTA + "`."
_FORBIDDEN_TEXT = " ".join(sorted(_FORBIDDEN.strip()))
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

COLUMN_NAME_RULE = (
    f"a name does not begin with `_`, and has no space, none of {_FORBIDDEN_TEXT} and no control character; "
    "`_` stands for such characters of a column of a source, as in Order_ID for `Order ID`; map any other name in "
    "`columns:` of the source"
)
TABLE_NAME_RULE = (
    f"write letters, digits and `_`, beginning with a letter, and not ending with {', '.join(SUFFIXES[:-1])} or "
    f"{SUFFIXES[-1]}"
)


def quote_name(name: str) -> str:
    """Return the name in backticks, so that Spark reads dots and blanks as part of it."""
    return "`" + name.replace("`", "``") + "`"


def quote_if_needed(name: str) -> str:
    """Return the name, in backticks unless it has only letters, digits and `_`."""
    return name if _PLAIN_NAME.fullmatch(name) else quote_name(name)


def quote_path(path: Sequence[str]) -> str:
    """Return the parts of a qualified name in backticks, such as a column and a field inside of it."""
    return ".".join(map(quote_name, path))


def is_column_name(name: str) -> bool:
    """Return whether an attribute, a key column, a source or a surrogate key can have this name."""
    return bool(name) and not name.startswith("_") and not any(map(_is_forbidden, name))


def _is_forbidden(character: str) -> bool:
    return character in _FORBIDDEN or not character.isprintable()


def column_name(name: str) -> str:
    """Return the name with `_` in the place of the characters that a column name cannot have.

    One `_` stands for a sequence of them; at the beginning and at the end they are omitted.
    """
    return "_".join("".join(" " if _is_forbidden(character) else character for character in name).split())


def readable_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of delivered columns that a column cannot have, each with the name by which it is found (S20).

    A name is not among them if another column is found by the same name.
    """
    readable = {name: column_name(name) for name in names}
    counts = Counter(each.lower() for each in readable.values())
    return {name: each for name, each in readable.items() if name != each and counts[each.lower()] == 1}


def is_table_name(name: str) -> bool:
    """Return whether a dimension or a fact can have this name, which is also that of a folder, tables and views.

    The suffixes of its other tables are reserved.
    """
    return _TABLE_NAME.fullmatch(name) is not None and not name.lower().endswith(SUFFIXES)


def default_surrogate_key(table: object) -> str:
    """Return the default name of the surrogate key, such as `customer_key` for `dim_customer`."""
    return f"{table.removeprefix('dim_')}_key" if isinstance(table, str) else ""
