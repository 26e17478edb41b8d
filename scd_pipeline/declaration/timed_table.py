"""The declaration of a timed table: a base, and a log of timed statements that a read applies (S12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from scd_pipeline.declaration.checks.timed_table import check_timed_table
from scd_pipeline.declaration.frozen import (
    FrozenMapping,
    as_tuple,
    checked_arguments,
    frozen_mapping,
    set_frozen_fields,
)
from scd_pipeline.declaration.source import format_of, is_address, without_file_scheme
from scd_pipeline.declaration.tables import BASE_SUFFIX, PRESENT_SUFFIX, UPDATES_SUFFIX
from scd_pipeline.declaration.types import DataType, parse_type

_UPDATES = ".updates"
"""The default name of the file of a log, in the folder of the base. Spark reads no files of such names as data."""


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class BaseColumn:
    """A column of a base.

    Args:
        type: The type.
        default: The value of the column in files without it; without a default, each file has the column.
    """

    type: str
    default: str | int | float | bool | None = None

    def __init__(self, type: str, default: str | int | float | bool | None = None) -> None:
        set_frozen_fields(self, type=type, default=default)


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Base:
    """The base of a timed table: files or a Delta table, which reads do not change.

    Args:
        path: A file, a folder of files, or a Delta table.
        columns: Types by column, or a BaseColumn; by default the columns of the base, if its format has types.
        format: `parquet`, `avro`, `delta`, `csv` or `json`; by default that of the suffix of the path.
        options: Options of Spark's reader of the format.
    """

    path: str
    columns: FrozenMapping[BaseColumn]
    format: str = ""
    options: FrozenMapping[str] = field(default_factory=lambda: FrozenMapping({}))

    def __init__(
        self,
        path: str,
        columns: Mapping[str, str | BaseColumn] | None = None,
        format: str = "",
        options: Mapping[str, str] | None = None,
    ) -> None:
        columns = columns or {}
        if isinstance(columns, Mapping):
            columns = {name: BaseColumn(each) if isinstance(each, str) else each for name, each in columns.items()}
        set_frozen_fields(self, path=path, columns=frozen_mapping(columns), format=format or base_format(path))
        set_frozen_fields(self, options=frozen_mapping(options))

    @property
    def types(self) -> dict[str, DataType]:
        """The declared type of each column."""
        return {name: parse_type(column.type) for name, column in self.columns.items()}


def base_format(path: object) -> str:
    """Return the format of the suffix of a base's path; empty if it has none."""
    is_avro = isinstance(path, str) and path.lower().endswith(".avro")
    return "avro" if is_avro else format_of(path) or ""


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class TimedTable:
    """A valid declaration of one timed table.

    - `base`: the base, or its path
    - `log`: "file", or "table" for the Delta table `<name>_updates` in the warehouse
    - `updates`: the path of the file of the log; by default `.updates` in the folder of the base
    - `timezone`: the time zone of times without an offset
    - `business_key`: the columns that identify an entity, if the table has such columns

    Raises:
        DeclarationError: With every error of the declaration (S28).
    """

    name: str
    base: Base
    log: Literal["file", "table"] = "file"
    updates: str = ""
    timezone: str = "UTC"
    business_key: tuple[str, ...] = ()
    owner: str = ""
    description: str = ""
    group: str = ""
    origin: str = field(default="", compare=False)

    def __init__(
        self,
        name: str,
        base: Base | str,
        log: Literal["file", "table"] = "file",
        updates: str = "",
        timezone: str = "UTC",
        business_key: str | Sequence[str] = (),
        owner: str = "",
        description: str = "",
        group: str = "",
        origin: str = "",
    ) -> None:
        set_frozen_fields(self, name=name, base=Base(base) if isinstance(base, str) else base, log=log)
        set_frozen_fields(self, updates=updates, timezone=timezone, business_key=as_tuple(business_key))
        set_frozen_fields(self, owner=owner, description=description, group=group, origin=origin)
        check_timed_table(self)

    @property
    def log_path(self) -> str:
        """The path of the file of its log: the declared one, or `.updates` in the folder of the base."""
        if self.updates:
            return self.updates
        path = self.base.path.rstrip("/")
        is_folder = Path(without_file_scheme(path)).is_dir() or (is_address(path) and format_of(path) is None)
        folder = path if is_folder else path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
        return f"{folder.rstrip('/')}/{_UPDATES}"

    @property
    def log_table(self) -> str:
        """The name of the Delta table of the log."""
        return self.name + UPDATES_SUFFIX

    @property
    def base_table(self) -> str:
        """The name of the Delta table into which the log is folded."""
        return self.name + BASE_SUFFIX

    @property
    def present_table(self) -> str:
        """The name of the Delta table that stores its rows as of now."""
        return self.name + PRESENT_SUFFIX

    @property
    def stored_tables(self) -> tuple[str, ...]:
        """The names of its Delta tables, each of which may exist."""
        return (self.log_table, self.base_table, self.present_table)
