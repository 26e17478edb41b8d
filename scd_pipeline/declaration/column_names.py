"""Names of the columns that the package generates in the table of a dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scd_pipeline.declaration.times import NULL_OPEN_END, OPEN_END

ColumnName: TypeAlias = "str | Literal[False]"
"""The name of a column, or False for a column that the table does not have."""

ROW_HASH = "row_hash"
"""A column that a table has only if a name is declared for it."""

VERSION_STATE = "version_state"
"""A column that a table has only if a name is declared for it: the last transition that opened or closed a version."""

OPT_IN_COLUMNS = (ROW_HASH, VERSION_STATE)
"""Columns that a table has only if a name is declared for them."""

IS_DELETED = "is_deleted"
"""A column of a table whose deletes open versions (`deleted_rows: new_version`)."""

WINDOW_COLUMNS = ("effective_from", "effective_to", "current_flag", "version", IS_DELETED, *OPT_IN_COLUMNS)
"""The generated columns of a table with windows only."""

TABLE_COLUMNS = (
    *WINDOW_COLUMNS,
    "change_reason",
    "change_source",
    "last_updated",
    "load_run_id",
    "deleted_at",
)
"""The generated columns of a table that can have other names."""

ATTRIBUTE_COLUMNS = ("previous", "changed_at", "current")
"""The generated columns of an attribute that can have other names (S9, S10)."""

OMITTABLE_COLUMNS = ("current_flag", "current")
"""The columns that a table need not have: `effective_to` shows what is current, and the last version what is latest."""

RESERVED_BY_DELTA = ("_metadata", "_change_type", "_commit_version", "_commit_timestamp")
"""The names that Delta uses in queries of a table."""


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How a table stores its generated columns: under which names, and with which open end.

    Attributes:
        names: The declared names, by the default names.
        open_end: The declared open end.
        has_windows: Whether the table has windows.
    """

    names: Mapping[str, ColumnName]
    open_end: str
    has_windows: bool

    @property
    def is_default(self) -> bool:
        """Whether the generated columns are stored under their default names and with a sentinel as the open end."""
        return not self.names and not self.has_null_end

    @property
    def has_null_end(self) -> bool:
        """Whether a current version has NULL in its column `effective_to`."""
        return self.open_end == NULL_OPEN_END

    @property
    def computed_open_end(self) -> str:
        """The `effective_to` of a current version wherever rows are computed: the default if the table has NULL."""
        return OPEN_END if self.has_null_end else self.open_end

    def name(self, column: str) -> str | None:
        """Return the name in the table of a generated column; None if the table does not have it."""
        return self.names.get(column, None if column in OPT_IN_COLUMNS else column) or None

    def required_name(self, column: str) -> str:
        """Return the name in the table of a generated column that it cannot lack."""
        return self.names.get(column) or column
