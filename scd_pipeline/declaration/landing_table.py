"""The declaration of a landing table: the rows that deliveries leave, without history (S38)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from scd_pipeline.declaration.attribute import Attribute, Missing, ScdType
from scd_pipeline.declaration.checks.landing_table import check_kinds, check_landing_table
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.frozen import as_tuple, checked_arguments, set_frozen_fields
from scd_pipeline.declaration.key import KeyColumn
from scd_pipeline.declaration.landing_rows import (
    ROW_DELIVERY,
    ROW_HASH,
    ROW_NUMBER,
    Disposition,
    LandingRows,
    SortOrder,
    Strategy,
)
from scd_pipeline.declaration.mirror import MIRROR, Mirror
from scd_pipeline.declaration.source import DEFAULT_RETIRE_GUARD, RetireGuard, Snapshot, Source

_ANY_LOSS = RetireGuard(1.0)


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class LandingTable:
    """A valid declaration of one landing table.

    - `disposition`: what a delivery does to the stored rows: "append" adds its rows, "replace" replaces all rows, and
      "merge" replaces those with its keys
    - `columns`: the columns with their types, or names of columns of text; "mirror" stands for all columns of the
      source
    - `source`: the source of the rows. Its channel is a feed, or a snapshot if its deliveries are complete: for
      "replace", and with a merge key
    - `strategy`: for "merge": "delete_insert", which is the default, or "upsert"
    - `primary_key`: the columns that identify a row: a name, names, or names with types
    - `merge_key`: the columns whose values a delivery replaces: stored rows with one of these values that it omits are
      removed
    - `dedup_sort`: the column by which one of several rows of a primary key remains, with "desc" for the row with the
      highest value or "asc" for that with the lowest
    - `hard_delete`: the column by which a row deletes: true if it is boolean, any value other than NULL if it is not;
      it deletes the row of its primary key, or without a primary key the rows of its merge key
    - `mirror`: how all columns of the source become columns of the table; `columns` then has those with declared types
    - `missing`: the effect of a delivery or a row without a column: it is rejected ("reject"), or the column is NULL
      ("null")
    - `row_key`: the key column of a row; by default the name and `_row`
    - `child_tables`: the columns that are arrays of structs and have a table of their own, as of a dimension (S40)

    Raises:
        DeclarationError: With every error of the declaration (S28).
    """

    name: str
    disposition: Disposition
    columns: tuple[tuple[str, str], ...]
    source: Source
    strategy: Strategy | None = None
    primary_key: tuple[KeyColumn, ...] = ()
    merge_key: tuple[KeyColumn, ...] = ()
    dedup_sort: tuple[str, SortOrder] | None = None
    hard_delete: str | None = None
    mirror: Mirror | None = None
    missing: Missing = "reject"
    row_key: str = ""
    child_tables: tuple[str, ...] = ()
    owner: str = ""
    description: str = ""
    group: str = ""
    origin: str = field(default="", compare=False)

    def __init__(
        self,
        name: str,
        disposition: Disposition,
        columns: Mapping[str, str] | Sequence[str] | Literal["mirror"],
        source: Source,
        strategy: Strategy | None = None,
        primary_key: str | Sequence[str] | Mapping[str, str] = (),
        merge_key: str | Sequence[str] | Mapping[str, str] = (),
        dedup_sort: Mapping[str, SortOrder] | None = None,
        hard_delete: str | None = None,
        mirror: Mirror | None = None,
        missing: Missing = "reject",
        row_key: str = "",
        child_tables: str | Sequence[str] = (),
        owner: str = "",
        description: str = "",
        group: str = "",
        origin: str = "",
    ) -> None:
        if columns == MIRROR:
            columns, mirror = {}, Mirror() if mirror is None else mirror
        check_kinds(str(origin or name), columns, source, primary_key, merge_key, dedup_sort, mirror)
        types = column_types(columns)
        set_frozen_fields(self, name=name, disposition=disposition, source=source, mirror=mirror, missing=missing)
        set_frozen_fields(self, columns=tuple(types.items()))
        set_frozen_fields(self, primary_key=_key(primary_key, types), merge_key=_key(merge_key, types))
        set_frozen_fields(self, strategy="delete_insert" if disposition == "merge" and strategy is None else strategy)
        set_frozen_fields(self, dedup_sort=next(iter(dedup_sort.items())) if dedup_sort else None)
        set_frozen_fields(self, hard_delete=hard_delete, row_key=row_key or f"{name}_row")
        set_frozen_fields(self, child_tables=as_tuple(child_tables))
        set_frozen_fields(self, owner=owner, description=description, group=group, origin=origin)
        check_landing_table(self)

    @property
    def business_key(self) -> tuple[KeyColumn, ...]:
        """The columns that identify a row of the table: the primary key, or those of the row itself."""
        if self.disposition == "append":
            return (ROW_DELIVERY, ROW_HASH, ROW_NUMBER)
        return self.primary_key or (*self.merge_key, ROW_HASH, ROW_NUMBER)

    @property
    def has_snapshots(self) -> bool:
        """Whether a delivery is complete: it removes the stored rows that it omits, all or those of its merge keys."""
        return self.disposition == "replace" or bool(self.merge_key)

    @property
    def options(self) -> dict[str, Any]:
        """What a load by the name of the table needs to know of its declaration, as JSON values."""
        keys = (*self.primary_key, *self.merge_key)
        return {
            "disposition": self.disposition,
            "strategy": self.strategy,
            "primary_key": {column.name: column.type for column in self.primary_key},
            "merge_key": {column.name: column.type for column in self.merge_key},
            "dedup_sort": dict([self.dedup_sort]) if self.dedup_sort else None,
            "hard_delete": self.hard_delete,
            "columns": {name: kind for name, kind in self.columns if name not in {column.name for column in keys}},
        }

    def as_dimension(self) -> Dimension:
        """Return a dimension whose entities are the table's rows, with the latest values only.

        It reads deliveries by the rules of dimensions for retries, revisions, withdrawals, late deliveries and bad
        rows. The dispositions differ in what identifies a row and in the channel.
        """
        mirror = None if self.mirror is None else replace(self.mirror, scd=ScdType.OVERWRITE, missing="null")
        return Dimension(
            self.name,
            self.business_key,
            self._attributes(),
            self._dimension_source(),
            surrogate_key=self.row_key,
            deleted_rows="remove",
            mirror=mirror,
            child_tables=self.child_tables,
            landing=LandingRows(self.dedup_sort, self.hard_delete, json.dumps(self.options, sort_keys=True)),
            owner=self.owner,
            description=self.description,
            group=self.group,
            origin=self.origin,
        )

    def _attributes(self) -> dict[str, Attribute]:
        """Return the columns that are not in the business key."""
        scopes = {column.name: column.type for column in self.merge_key}
        types = {**dict(self.columns), **scopes}
        # A row without the flag does not delete, and one without its merge key belongs to no scope.
        rules: dict[str, Missing] = {**dict.fromkeys(scopes, "reject"), str(self.hard_delete): "null"}
        return {
            name: Attribute(ScdType.OVERWRITE, data_type, missing=rules.get(name, self.missing))
            for name, data_type in types.items()
            if name not in {column.name for column in self.business_key}
        }

    def _dimension_source(self) -> Source:
        source = self.source
        if source.feed is not None:
            return source
        scope = tuple(column.name for column in self.merge_key)
        snapshot = replace(source.snapshot or Snapshot(), scope=scope)
        if not self.primary_key:
            # No stored row can be that of a row without a key: such a row does not leave the stored ones in place.
            snapshot = replace(snapshot, unreadable_keys="retire")
        guard = source.retire_guard
        if self.hard_delete and not self.primary_key and guard == DEFAULT_RETIRE_GUARD:
            guard = _ANY_LOSS  # rows that are deleted by their merge key are omitted on purpose
        return replace(source, snapshot=snapshot, retire_guard=guard)


def column_types(columns: Any) -> dict[str, str]:
    """Return the types of columns by name; the default is text."""
    return dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(as_tuple(columns), "string")


def _key(columns: Any, types: Mapping[str, str]) -> tuple[KeyColumn, ...]:
    """Return key columns with their types: their own, otherwise those among the columns of the table."""
    own = columns if isinstance(columns, Mapping) else {name: types.get(name, "string") for name in as_tuple(columns)}
    return tuple(KeyColumn(name, data_type) for name, data_type in own.items())
