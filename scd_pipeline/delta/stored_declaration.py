"""The part of a declaration that a table stores, because it cannot change for an existing table (S35)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scd_pipeline.declaration import Attribute, Begin, Dimension
from scd_pipeline.declaration.attribute import Previous, Untracked
from scd_pipeline.declaration.column_names import ColumnLayout, ColumnName
from scd_pipeline.declaration.key import WHOLE_ROW
from scd_pipeline.declaration.tables import closed_suffix
from scd_pipeline.declaration.types import is_wider, parse_type
from scd_pipeline.delta.warehouse import Warehouse

_PROPERTY = "scd_pipeline.declaration"
_ADDED_FIELDS = (
    "column_names",
    "history_table",
    "change_types",
    "archive",
    "mirror_opens_versions",
    "retired_at",
    "hash_names",
    "row_entity",
    "landing",
)
"""The fields that are stored only if they are not empty: they were added later."""


@dataclass(frozen=True, slots=True)
class StoredAttribute:
    """The part of an attribute that a table stores.

    Attributes:
        scd: The SCD type.
        type: The data type.
        previous: Whether the attribute has a `previous` column, and with which value.
        column_names: The declared names of its generated columns, by their default names.
        untracked: Which value each version has if the attribute is untracked; None if it is tracked.
    """

    scd: int
    type: str
    previous: bool | Previous
    column_names: Mapping[str, ColumnName] = field(default_factory=dict)
    untracked: Untracked | None = None

    @property
    def opens_versions(self) -> bool:
        """Whether a new value opens a version."""
        return Attribute(self.scd).opens_versions

    def common_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of the attribute, under this name, that all versions of an entity have in common."""
        attribute = Attribute(
            self.scd, name=name, previous=self.previous, untracked=self.untracked, column_names=self.column_names
        )
        return attribute.common_columns

    def widened(self, declared: str) -> StoredAttribute:
        """Return the attribute with the declared type if that is wider than the stored one, otherwise as it is."""
        return replace(self, type=declared) if is_wider(parse_type(declared), parse_type(self.type)) else self

    def to_list(self) -> list[Any]:
        """Return the fields as JSON stores them."""
        names = [dict(self.column_names)] if self.column_names or self.untracked else []
        untracked = [self.untracked] if self.untracked else []
        return [self.scd, self.type, self.previous, *names, *untracked]


@dataclass(frozen=True, slots=True)
class StoredDeclaration:
    """The stored part of a declaration.

    Attributes:
        key: Name and type of each column of the business key.
        attributes: The attributes by name.
        former_names: The current name of an attribute by each former name.
        begin: The two times of `Begin`, or its attribute alone; None if the histories have no declared begin.
        mirror_opens_versions: Whether a mirrored attribute that the table does not have yet can open versions (S36).
        retired_at: The time since which no delivery provides an attribute, by the names of such attributes.
        hash_names: The names of renamed attributes in the hash of a version, by their present names.
        row_entity: "whole_row" or "row_version" if the entity is a row or a version of one (S37); otherwise empty.
        landing: The options of a landing table, as JSON (S38); empty for any other table.
    """

    key: tuple[tuple[str, str], ...]
    attributes: Mapping[str, StoredAttribute]
    former_names: Mapping[str, str]
    surrogate_key: str
    key_salt: str
    open_end: str
    begin: tuple[str, ...] | None
    deleted_rows: str
    deleted_at: bool
    existence_source: str
    column_names: Mapping[str, ColumnName] = field(default_factory=dict)
    history_table: bool = False
    history_columns: str = "all"
    change_types: Mapping[str, str] = field(default_factory=dict)
    archive: bool = False
    mirror_opens_versions: bool = False
    retired_at: Mapping[str, str] = field(default_factory=dict)
    hash_names: Mapping[str, str] = field(default_factory=dict)
    row_entity: str = ""
    landing: str = ""

    @property
    def has_windows(self) -> bool:
        """Whether the table has windows."""
        opens_versions = any(each.opens_versions for each in self.attributes.values())
        return bool(self.row_entity) or self.mirror_opens_versions or opens_versions

    @property
    def column_layout(self) -> ColumnLayout:
        """How the table stores the generated columns."""
        return ColumnLayout(self.column_names, self.open_end, self.has_windows)

    @property
    def closed_suffix(self) -> str:
        """The suffix of the history table or the archive; empty if the dimension has neither."""
        return closed_suffix(history_table=self.history_table, archive=self.archive)

    @property
    def has_deleted_versions(self) -> bool:
        """Whether a delete opens a version of its own."""
        return self.deleted_rows == "new_version"

    def common_columns(self, existing: Collection[str]) -> list[str]:
        """Return the existing columns that all versions of an entity have in common.

        A column that is not renamed yet has a former name.
        """
        columns = {name: attribute.common_columns(name) for name, attribute in self.attributes.items()}
        renamed = [
            (old, new)
            for former, name in self.former_names.items()
            for old, new in zip(self.attributes[name].common_columns(former), columns[name], strict=True)
        ]
        present = [column for names in columns.values() for column in names if column in existing]
        return present + [old for old, new in renamed if new not in existing and old in existing]

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the business key's columns."""
        return tuple(name for name, _ in self.key)

    @classmethod
    def from_dimension(cls, dimension: Dimension) -> StoredDeclaration:
        """Return what a table stores of a declaration."""
        begin = dimension.begin
        return cls(
            key=tuple((key.name, key.type) for key in dimension.business_key),
            attributes={
                a.name: StoredAttribute(int(a.scd), a.type, a.previous, dict(a.column_names), a.untracked)
                for a in dimension.attributes
            },
            former_names={former: a.name for a in dimension.attributes for former in a.former_names},
            surrogate_key=dimension.surrogate_key,
            key_salt=dimension.key_salt,
            open_end=dimension.column_layout.open_end,
            begin=_begin_texts(begin) if begin else None,
            deleted_rows=dimension.deleted_rows,
            deleted_at=dimension.deleted_at,
            existence_source=dimension.existence_source.name,
            column_names=dict(dimension.column_layout.names),
            history_table=dimension.history_table,
            history_columns=dimension.history_columns,
            change_types=dict(dimension.audit_labels),
            archive=dimension.archive_after_years is not None,
            mirror_opens_versions=dimension.mirror is not None and dimension.mirror.opens_versions,
            retired_at={a.name: a.retired_at for a in dimension.attributes if a.retired_at},
            hash_names={a.name: a.hash_name for a in dimension.attributes if a.hash_name},
            row_entity=WHOLE_ROW if dimension.is_whole_row else "row_version" if dimension.row_version else "",
            landing=dimension.landing.options if dimension.landing else "",
        )

    @classmethod
    def from_json(cls, text: str) -> StoredDeclaration:
        """Return the declaration that `to_json` wrote."""
        values = json.loads(text)
        values["key"] = tuple((name, key_type) for name, key_type in values["key"])
        values["attributes"] = {name: StoredAttribute(*fields) for name, fields in values["attributes"].items()}
        values["begin"] = tuple(values["begin"]) if values["begin"] else None
        return cls(**values)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> StoredDeclaration | None:
        """Return the declaration in a table's properties, None if this package did not create the table."""
        digits = properties.get(_PROPERTY)
        return None if digits is None else cls.from_json(bytes.fromhex(digits).decode())

    def to_json(self) -> str:
        """Return the declaration as JSON; equal declarations have equal texts."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["attributes"] = {name: attribute.to_list() for name, attribute in self.attributes.items()}
        if self.history_columns == "all":
            del values["history_columns"]
        for added in _ADDED_FIELDS:
            if not values[added]:
                del values[added]
        return json.dumps(values, sort_keys=True)

    def to_properties(self) -> dict[str, str]:
        """Return the table property with the declaration.

        It contains hexadecimal digits, because Spark hides the value of a property that looks like a secret or an
        address.
        """
        return {_PROPERTY: self.to_json().encode().hex()}


def _begin_texts(begin: Begin) -> tuple[str, ...]:
    return (begin.column,) if begin.column else (begin.at, begin.for_first_changes_until)


def stored_declaration(warehouse: Warehouse, name: str) -> StoredDeclaration | None:
    """Return the declaration that a table stores; None if the table does not exist or stores none."""
    return StoredDeclaration.from_properties(warehouse.table(name).properties())
