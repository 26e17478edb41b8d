"""Attributes of a dimension and their SCD types (S6 to S10)."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from scd_pipeline.declaration.column_names import ColumnName
from scd_pipeline.declaration.frozen import (
    FrozenMapping,
    as_tuple,
    checked_arguments,
    frozen_mapping,
    set_frozen_fields,
)
from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.errors import DeclarationError

Missing = Literal["reject", "not_provided", "null"]
OnBadValue = Literal["quarantine", "null"]
Untracked = Literal["at_open", "latest_in_version"]
Previous = Literal["version_before", "last_different_value"]
UNTRACKED: tuple[str, ...] = get_args(Untracked)
PREVIOUS: tuple[str, ...] = get_args(Previous)
MISSING: tuple[str, ...] = get_args(Missing)
ON_BAD_VALUE: tuple[str, ...] = get_args(OnBadValue)


class ScdType(enum.IntEnum):
    """SCD type: what a change of an attribute does to the rows of its entity."""

    RETAIN_ORIGINAL = 0
    OVERWRITE = 1
    ADD_ROW = 2
    ADD_ATTRIBUTE = 3
    HYBRID = 6


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Attribute:
    """One attribute: its SCD type, its column type, and its source.

    The Dimension validates it, so that all errors of a declaration are reported at once.

    - `scd`: 0, 1, 2, 3 or 6 (S6 to S10)
    - `type`: the column type, stored in its canonical form
    - `source`: the source that provides it, if the dimension has several (S30)
    - `former_names`: its earlier names; its history continues under the new one (S20)
    - `retired`: no longer provided; it keeps its history and opens no version (S20)
    - `missing`: the effect of a delivery without the column: it is rejected ("reject"), the attribute is not provided
      ("not_provided"), or it is NULL ("null") (S20)
    - `on_bad_value`: the effect of a value that cannot be cast: its row is quarantined ("quarantine"), or the attribute
      is NULL in it ("null") (S26)
    - `required`: a row in which it is NULL is a bad row, unless its feed declares that NULL is not provided (S26, S30)
    - `personal`: messages and plans omit its values (S31)
    - `previous`: type 6 only: adds `previous_<name>`, the value of the preceding version (True or "version_before") or
      the last value before that differs ("last_different_value") (S10)
    - `untracked`: type 1 only: each version has a value of its own, the one at its start ("at_open") or the latest one
      before its end ("latest_in_version"), in place of the latest one of all (S7)
    - `regulated`: each of its values must stay in the history, and no stored one may change; only type 2 is accepted
    - `column_names`: names of the columns that types 3 and 6 add, by `previous`, `changed_at` and `current`; `current`
      can be False for no such column
    - `derived`: computed by the pipeline and never read from a delivery, such as the surrogate keys of a fact (S23);
      it cannot be declared
    - `has_source_type`: its type is not declared: in a mirrored dimension it is that of the source (S36)
    - `retired_at`: the time, as ISO text, since which the source lacks the column of a mirrored attribute, or since
      which deliveries are loaded that a retired one is not read from; it cannot be declared
    - `hash_name`: its name in the hash of a version: the first name that it had in the table, so that a rename changes
      no hash; it cannot be declared
    """

    scd: ScdType
    type: str = "string"
    source: str | None = None
    former_names: tuple[str, ...] = ()
    retired: bool = False
    missing: Missing = "reject"
    on_bad_value: OnBadValue = "quarantine"
    personal: bool = False
    previous: bool | Previous = False
    description: str = ""
    name: str = ""
    required: bool = False
    derived: bool = False
    column_names: Mapping[str, ColumnName] = FrozenMapping({})
    regulated: bool = False
    untracked: Untracked | None = None
    has_source_type: bool = field(default=False, compare=False)
    retired_at: str = ""
    hash_name: str = ""

    def __init__(
        self,
        scd: ScdType | int,
        type: str | None = None,
        source: str | None = None,
        former_names: str | Sequence[str] = (),
        retired: bool = False,
        missing: Missing = "reject",
        on_bad_value: OnBadValue = "quarantine",
        personal: bool = False,
        previous: bool | Previous = False,
        description: str = "",
        name: str = "",
        required: bool = False,
        derived: bool = False,
        column_names: Mapping[str, ColumnName] | None = None,
        regulated: bool = False,
        untracked: Untracked | None = None,
        has_source_type: bool = False,
        retired_at: str = "",
        hash_name: str = "",
    ) -> None:
        set_frozen_fields(self, scd=scd_type(scd), source=source, former_names=as_tuple(former_names))
        set_frozen_fields(self, type=_canonical("string" if type is None else type))
        set_frozen_fields(self, has_source_type=has_source_type or type is None, retired_at=retired_at)
        set_frozen_fields(self, hash_name=hash_name)
        set_frozen_fields(self, retired=retired, missing=missing, on_bad_value=on_bad_value, personal=personal)
        previous = True if previous == "version_before" else previous
        set_frozen_fields(
            self, previous=previous, description=description, name=name, required=required, derived=derived
        )
        set_frozen_fields(self, column_names=frozen_mapping(column_names), regulated=regulated, untracked=untracked)

    @property
    def data_type(self) -> DataType:
        """The column type as a tree."""
        return parse_type(self.type)

    @property
    def is_delivered(self) -> bool:
        """Whether a delivery may provide it: it is neither retired nor derived."""
        return not (self.retired or self.derived)

    @property
    def opens_versions(self) -> bool:
        """Whether a different value opens a version (S8, S10)."""
        return self.scd in (ScdType.ADD_ROW, ScdType.HYBRID)

    @property
    def has_last_different_value(self) -> bool:
        """Whether its previous value is the last value before that differs, not that of the version before (S10)."""
        return self.previous == "last_different_value"

    @property
    def is_common(self) -> bool:
        """Whether the versions of an entity have a value of it in common: the first or the latest one."""
        return self.current_column is not None or not (self.opens_versions or self.untracked)

    @property
    def common_columns(self) -> tuple[str, ...]:
        """The columns that have the same value in all versions of an entity (S6, S7, S9, S10)."""
        if self.opens_versions:
            return (self.current_column,) if self.current_column else ()
        return (self.name, *self.generated_columns) if self.is_common else ()

    @property
    def current_column(self) -> str | None:
        """The column with the latest value, in every version (S10); None if the table has none."""
        if self.scd != ScdType.HYBRID:
            return None
        return self.column_names.get("current", f"current_{self.name}") or None

    @property
    def previous_column(self) -> str | None:
        """The column with the value before (S9, S10); None if the table has none."""
        if self.scd == ScdType.ADD_ATTRIBUTE or (self.scd == ScdType.HYBRID and self.previous):
            return self.column_names.get("previous", f"previous_{self.name}") or None
        return None

    @property
    def changed_at_column(self) -> str | None:
        """The column with the time of the last change (S9); None if the table has none."""
        if self.scd != ScdType.ADD_ATTRIBUTE:
            return None
        return self.column_names.get("changed_at", f"{self.name}_changed_at") or None

    @property
    def generated_columns(self) -> tuple[str, ...]:
        """The further columns that this attribute adds to the table (S9, S10)."""
        columns = (self.current_column, self.previous_column, self.changed_at_column)
        return tuple(column for column in columns if column is not None)


def scd_type(number: Any) -> Any:
    """Return the SCD type of a number; anything else unchanged, for the checks to reject."""
    is_type = isinstance(number, int) and not isinstance(number, bool) and number in set(ScdType)
    return ScdType(number) if is_type else number


def _canonical(text: Any) -> Any:
    try:
        return parse_type(text).ddl()
    except DeclarationError:  # the checks report it with its location
        return text
