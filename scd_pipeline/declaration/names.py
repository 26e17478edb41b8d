"""Rules for the names in a declaration."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scd_pipeline.declaration.tables import SUFFIXES

FORBIDDEN_BY_DELTA = " ,;{}()="
"""The characters that Delta forbids in the names of columns and of struct fields, in addition to control characters."""
_FORBIDDEN = FORBIDDEN_BY_DELTA + "`."
_FORBIDDEN_TEXT = " ".join(sorted(_FORBIDDEN.strip()))
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

COLUMN_NAME_RULE = (
    f"a name does not begin with `_`, and has no space, none of {_FORBIDDEN_TEXT} and no control character; "
    "if a source has another name for the column, map it in `columns:` of the source"
)
TABLE_NAME_RULE = (
    f"write letters, digits and `_`, beginning with a letter, and not ending with {', '.join(SUFFIXES[:-1])} or "
    f"{SUFFIXES[-1]}"
)


def quote_name(name: str) -> str:
    """Return the name in backticks, so that Spark reads dots and blanks as part of it."""
    return "`" + name.replace("`", "``") + "`"


def quote_path(path: Sequence[str]) -> str:
    """Return the parts of a qualified name in backticks, such as a column and a field inside of it."""
    return ".".join(map(quote_name, path))


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
