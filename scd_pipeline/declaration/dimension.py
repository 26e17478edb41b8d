"""The declaration of a dimension: business key, attributes, sources and the start of histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.begin import Begin
from scd_pipeline.declaration.change_types import VERSION_STATES
from scd_pipeline.declaration.checks.dimension import check_dimension
from scd_pipeline.declaration.checks.warnings import dimension_warnings
from scd_pipeline.declaration.child_tables import child_name
from scd_pipeline.declaration.column_names import IS_DELETED, ROW_HASH, VERSION_STATE, ColumnLayout, ColumnName
from scd_pipeline.declaration.frozen import (
    FrozenMapping,
    as_tuple,
    checked_arguments,
    frozen_mapping,
    set_frozen_fields,
)
from scd_pipeline.declaration.governance import ExpectedValue, SignOff
from scd_pipeline.declaration.key import WHOLE_ROW, KeyColumn
from scd_pipeline.declaration.landing_rows import LandingRows
from scd_pipeline.declaration.mirror import MIRROR, Mirror
from scd_pipeline.declaration.names import default_surrogate_key
from scd_pipeline.declaration.profiles import DEFAULT_PROFILE, PROFILES, Profile
from scd_pipeline.declaration.source import Feed, Snapshot, Source
from scd_pipeline.declaration.table_properties import property_texts
from scd_pipeline.declaration.tables import LOG_SUFFIX, closed_suffix, table_names
from scd_pipeline.declaration.times import EARLIEST_TIME, NULL_OPEN_END, PROFILE_OPEN_END, canonical_time, to_datetime
from scd_pipeline.errors import DeclarationWarning

if TYPE_CHECKING:
    from scd_pipeline.declaration.landing_table import LandingTable
    from scd_pipeline.declaration.timed_table import TimedTable

HASH = "hash"
"""The only way to generate surrogate keys: each key follows from its version alone, in any order of the deliveries."""


DeletedRows: TypeAlias = Literal["keep", "remove", "new_version"]


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Dimension:
    """The valid declaration of one dimension.

    - `business_key`: a name, names, or names with types; stored as key columns. "whole_row" stands for the hash of all
      attributes of a row: each distinct row is an entity (S37)
    - `row_version`: whether the business key identifies a version of a row: then its presence opens a window, whatever
      the types of the attributes are (S37)
    - `attributes`: for each name an Attribute or the number of its SCD type; stored in declared order. "mirror" stands
      for all columns of the source
    - `mirror`: how all columns of the source become attributes; `attributes` then has those declared in addition, or
      with other options (S36)
    - `sources`: one or several
    - `surrogate_key`: by default the name without a leading `dim_`, and `_key`
    - `key_salt`: resolves a collision of surrogate keys (S14)
    - `open_end`: the `effective_to` of a current version; None or "null" for NULL; by default that of the profile
    - `regulated`: whether all attributes are regulated
    - `single_scd_type`: states that all attributes have one SCD type on purpose, which is a warning otherwise
    - `rapid_change_limit`: the largest share of the existing entities of which one delivery can open versions by new
      values of one attribute without a warning; by default half of them, if at least 20 entities exist
    - `z_order`: whether maintenance arranges the rows by the business key: "always", "never", or only
      in tables of a million rows or more ("automatic")
    - `surrogate`: how surrogate keys are generated: "hash", of the business key and `effective_from` (S14)
    - `profile`: a set of column names, open end and labels of change types, see `profiles.PROFILES`
    - `column_names`: other names of generated columns, by their default names; False for `current_flag` if the table
      has no such column; `row_hash` is a further column with a hash of the attributes of types 2 and 6
    - `change_types`: labels of the audit for its change types, such as "new" for "INSERT"
    - `begin`: an earlier start of the first versions: a fixed time, or the value of an attribute (S29)
    - `deleted_rows`: in a table with windows, "new_version" if a delete opens a version with `is_deleted` (S18); in one
      without windows, whether the row of a deleted entity is kept ("keep") or removed ("remove") (S33)
    - `deleted_at`: whether a table without windows has the time of the delete (S33)
    - `history_table`: whether closed versions are in a table of their own, `<name>_history` (S11)
    - `history_columns`: whether that table has all values ("all"), or those that the versions of an entity have in
      common only in the last version of an entity that no longer exists ("changing") (S11)
    - `archive_after_years`: after how many years closed versions may be moved to `<name>_archive`; None without an
      archive (S42)
    - `sign_offs`: who approved the declaration, by role: `business`, `compliance`
    - `audit_retention_years`: for how many years the audit must be retained; no row of it is ever deleted
    - `product_card`: the address of the page that describes the dimension to its users
    - `expected_values`: values that the history must have as of a time, by name; a check verifies them
    - `table_properties`: properties of the Delta table and its history table; values are stored as text
    - `history_table_properties`: properties of the history table, which override those of `table_properties`
    - `child_tables`: the attributes that are arrays of structs and have a table of their own; an array in the elements
      is named as `attribute.field` (S40)
    - `former_name`: the former name of a history, whose tables the next load copies if the history has none
    - `landing`: what a landing table declares about the rows of a delivery; None for any other dimension
    - `origin`: the file and line that it was read from; not compared

    Raises:
        DeclarationError: With every error of the declaration (S28).
    """

    name: str
    business_key: tuple[KeyColumn, ...]
    attributes: tuple[Attribute, ...]
    sources: tuple[Source, ...]
    surrogate_key: str
    key_salt: str = ""
    open_end: str = PROFILE_OPEN_END
    begin: Begin | None = None
    deleted_rows: DeletedRows = "keep"
    deleted_at: bool = False
    owner: str = ""
    description: str = ""
    group: str = ""
    origin: str = field(default="", compare=False)
    column_names: Mapping[str, ColumnName] = FrozenMapping({})
    profile: str = DEFAULT_PROFILE
    regulated: bool = False
    surrogate: str = HASH
    history_table: bool = False
    history_columns: Literal["all", "changing"] = "all"
    single_scd_type: bool = False
    rapid_change_limit: float | None = None
    z_order: Literal["automatic", "always", "never"] = "automatic"
    sign_offs: Mapping[str, SignOff] = FrozenMapping({})
    audit_retention_years: int | None = None
    product_card: str = ""
    expected_values: Mapping[str, ExpectedValue] = FrozenMapping({})
    table_properties: Mapping[str, str] = FrozenMapping({})
    change_types: Mapping[str, str] = FrozenMapping({})
    history_table_properties: Mapping[str, str] = FrozenMapping({})
    archive_after_years: int | None = None
    mirror: Mirror | None = None
    former_name: str = ""
    row_version: bool = False
    landing: LandingRows | None = None
    child_tables: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        business_key: str | Sequence[str | KeyColumn] | Mapping[str, str] = (),
        attributes: Mapping[str, Attribute | ScdType | int] | Sequence[Attribute] | Literal["mirror"] = (),
        sources: Source | Sequence[Source] = (),
        surrogate_key: str | None = None,
        key_salt: str = "",
        open_end: str | date | None = PROFILE_OPEN_END,
        begin: Begin | None = None,
        deleted_rows: DeletedRows = "keep",
        deleted_at: bool = False,
        owner: str = "",
        description: str = "",
        group: str = "",
        origin: str = "",
        column_names: Mapping[str, ColumnName] | None = None,
        profile: str = DEFAULT_PROFILE,
        regulated: bool = False,
        surrogate: str = HASH,
        history_table: bool = False,
        history_columns: Literal["all", "changing"] = "all",
        single_scd_type: bool = False,
        rapid_change_limit: float | None = None,
        z_order: Literal["automatic", "always", "never"] = "automatic",
        sign_offs: Mapping[str, SignOff] | None = None,
        audit_retention_years: int | None = None,
        product_card: str = "",
        expected_values: Mapping[str, ExpectedValue] | None = None,
        table_properties: Mapping[str, str | int | float | bool] | None = None,
        change_types: Mapping[str, str] | None = None,
        history_table_properties: Mapping[str, str | int | float | bool] | None = None,
        archive_after_years: int | None = None,
        mirror: Mirror | None = None,
        former_name: str = "",
        row_version: bool = False,
        landing: LandingRows | None = None,
        child_tables: str | Sequence[str] = (),
    ) -> None:
        if attributes == MIRROR:
            attributes, mirror = (), Mirror() if mirror is None else mirror
        set_frozen_fields(self, name=name, business_key=_key_columns(business_key), attributes=_named(attributes))
        set_frozen_fields(self, sources=_sources(sources), surrogate_key=default_surrogate_key(name))
        set_frozen_fields(self, mirror=mirror, landing=landing)
        if surrogate_key is not None:
            set_frozen_fields(self, surrogate_key=surrogate_key)
        end = NULL_OPEN_END if open_end is None else canonical_time(open_end)
        set_frozen_fields(self, key_salt=key_salt, open_end=end, begin=begin, origin=origin)
        set_frozen_fields(self, column_names=frozen_mapping(column_names), profile=profile)
        set_frozen_fields(self, deleted_rows=deleted_rows, deleted_at=deleted_at, row_version=row_version)
        set_frozen_fields(self, owner=owner, description=description, group=group)
        set_frozen_fields(self, regulated=regulated, surrogate=surrogate, history_table=history_table)
        set_frozen_fields(self, history_columns=history_columns, archive_after_years=archive_after_years)
        set_frozen_fields(self, z_order=z_order, former_name=former_name, child_tables=as_tuple(child_tables))
        set_frozen_fields(self, single_scd_type=single_scd_type, rapid_change_limit=rapid_change_limit)
        set_frozen_fields(self, sign_offs=frozen_mapping(sign_offs), audit_retention_years=audit_retention_years)
        set_frozen_fields(self, product_card=product_card, expected_values=frozen_mapping(expected_values))
        set_frozen_fields(self, table_properties=property_texts(table_properties))
        set_frozen_fields(self, history_table_properties=property_texts(history_table_properties))
        set_frozen_fields(self, change_types=frozen_mapping(change_types))
        check_dimension(self)
        set_frozen_fields(self, business_key=self.named_key)
        if self.mirror is not None and self.mirror.attributes is None:
            set_frozen_fields(self, mirror=replace(self.mirror, attributes=self.mirrored_attributes))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the business key's columns."""
        return tuple(column.name for column in self.business_key)

    @property
    def delivered_key(self) -> tuple[KeyColumn, ...]:
        """The columns of the business key that are read from deliveries: those whose values are not computed (S37)."""
        return tuple(column for column in self.business_key if column.derived is None)

    @property
    def delivered_key_names(self) -> tuple[str, ...]:
        """The names of the key columns that are read from deliveries."""
        return tuple(column.name for column in self.delivered_key)

    @property
    def named_key(self) -> tuple[KeyColumn, ...]:
        """The business key, in which the hash of a row has the name that the hash of a version would have."""
        declared = (names.get(ROW_HASH) for names in (self.column_names, PROFILES[self.profile].column_names))
        name = next((each for each in declared if each), ROW_HASH)
        return tuple(
            replace(column, name=name) if self.is_whole_row and column.derived else column
            for column in self.business_key
        )

    @property
    def is_whole_row(self) -> bool:
        """Whether the entity is the row itself, which the hash of its attributes identifies (S37)."""
        return self.has_row_identity and self.landing is None

    @property
    def has_row_entities(self) -> bool:
        """Whether the entity is a row or a version of one: its presence opens a window (S37)."""
        return self.is_whole_row or self.row_version

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of all attributes, including retired attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def mirrored_attributes(self) -> tuple[Attribute, ...]:
        """The attributes with the types of the source's columns: no type is declared, and no other column (S36).

        Without `with_mirrored` they are those that are declared with other options, of text.
        """
        if self.mirror is None:
            return ()
        mapped = {name for source in self.sources for name in source.columns}
        return tuple(each for each in self.attributes if each.has_source_type and each.name not in mapped)

    @property
    def technical_columns(self) -> frozenset[str]:
        """The columns of a mirrored source that are not attributes, in lower case: declared ones and the profile's."""
        if self.mirror is None:
            return frozenset()
        declared = {attribute.name.casefold() for attribute in self.mirror.attributes or ()}
        names = (*self.mirror.technical, *PROFILES[self.profile].technical)
        return frozenset(name.casefold() for name in names) - declared

    def with_mirrored(self, types: Mapping[str, str], retired_at: Mapping[str, str] | None = None) -> Dimension:
        """Return a mirrored dimension with the attributes of its source's columns; any other dimension unchanged.

        Args:
            types: The type of each column by its name, which may be a former one.
            retired_at: The time of the delivery since which the source lacks a column, by the names of such columns.

        Raises:
            DeclarationError: A column cannot be an attribute, for example because of its name.
        """
        if self.mirror is None:
            return self
        mirrored = {attribute.name for attribute in self.mirrored_attributes}
        declared = [attribute for attribute in self.attributes if attribute.name not in mirrored]
        names = {name.casefold() for attribute in declared for name in (attribute.name, *attribute.former_names)}
        current_types = {self.mirror.current_name(name): data_type for name, data_type in types.items()}
        times = {self.mirror.current_name(name): time for name, time in (retired_at or {}).items()}
        columns = {name: each for name, each in current_types.items() if name.casefold() not in names}
        hash_names = {attribute.name: attribute.hash_name for attribute in self.attributes}
        attributes = [
            replace(self.mirror.attribute(name, each, times.get(name, "")), hash_name=hash_names.get(name, ""))
            for name, each in columns.items()
        ]
        return replace(self, attributes=(*declared, *attributes))

    @property
    def table_names(self) -> tuple[str, ...]:
        """The names of its tables, its own first; that of a history table or an archive only if it has one."""
        if not self.has_audit:
            return (self.name, self.name + LOG_SUFFIX, *self.child_names)
        return (*table_names(self.name, [self.closed_suffix] if self.closed_suffix else []), *self.child_names)

    @property
    def child_names(self) -> tuple[str, ...]:
        """The names of its child tables (S40)."""
        return tuple(child_name(self.name, path) for path in self.child_tables)

    @property
    def closed_suffix(self) -> str:
        """The suffix of its history table or its archive; empty if it has neither."""
        return closed_suffix(history_table=self.history_table, archive=self.archive_after_years is not None)

    @property
    def common_columns(self) -> tuple[str, ...]:
        """The columns that have the same value in all versions of an entity."""
        return tuple(column for attribute in self.attributes for column in attribute.common_columns)

    @property
    def has_windows(self) -> bool:
        """Whether the table has windows: any attribute opens versions (S33), or would as a mirrored one (S36).

        The presence of a row that is an entity opens a window too (S37).
        """
        is_mirrored = self.mirror is not None and self.mirror.opens_versions
        return self.has_row_entities or is_mirrored or any(attribute.opens_versions for attribute in self.attributes)

    @property
    def column_layout(self) -> ColumnLayout:
        """How the table stores the generated columns, by its profile and the names that are declared in addition."""
        profile = self._effective_profile
        open_end = profile.open_end if self.open_end == PROFILE_OPEN_END else self.open_end
        names = {**profile.column_names, **self.column_names}
        attribute_names = {name.casefold() for name in self.attribute_names}
        if profile.column_names.get(ROW_HASH) in attribute_names and ROW_HASH not in self.column_names:
            del names[ROW_HASH]  # the attribute is the hash of the source
        if self.is_whole_row:
            names.pop(ROW_HASH, None)  # the business key is the hash
        if not self.has_deleted_versions:
            names.pop(IS_DELETED, None)
        return ColumnLayout(names, open_end, self.has_windows)

    @property
    def is_of_fact(self) -> bool:
        """Whether this is a fact as a dimension (`Fact.as_dimension`), which has derived attributes."""
        return any(attribute.derived for attribute in self.attributes)

    @property
    def has_audit(self) -> bool:
        """Whether the transitions of its entities are recorded: not those of the rows of a fact or a landing table."""
        return not self.is_of_fact and self.landing is None

    @property
    def is_deduplicated(self) -> bool:
        """Whether an order chooses between the rows of an entity in a delivery: `dedup_sort` of a landing table."""
        return self.landing is not None and self.landing.dedup_sort is not None

    @property
    def has_row_identity(self) -> bool:
        """Whether its entities are rows that their values identify: a landing table without a primary key (S38)."""
        return any(column.derived is not None for column in self.business_key)

    @property
    def has_deleted_versions(self) -> bool:
        """Whether a delete opens a version of its own (S18)."""
        return self.has_windows and self.deleted_rows == "new_version"

    @property
    def audit_labels(self) -> Mapping[str, str]:
        """The labels of the audit for its change types; a change type without one is its own label (S21)."""
        labels = {**self._effective_profile.change_types, **self.change_types}
        return {change_type: label for change_type, label in labels.items() if label != change_type}

    def audit_label(self, change_type: str) -> str:
        """Return the label of the audit for a change type: the change type itself if it has no other (S21)."""
        return self.audit_labels.get(change_type, change_type)

    @property
    def version_states(self) -> Mapping[str, str]:
        """The values of `version_state` by change type: the labels of the audit, otherwise new, changed and deleted."""
        return {change_type: self.audit_labels.get(change_type, state) for change_type, state in VERSION_STATES.items()}

    @property
    def has_version_state(self) -> bool:
        """Whether the table has the column `version_state`."""
        return self.column_layout.name(VERSION_STATE) is not None

    @property
    def _effective_profile(self) -> Profile:
        """The profile; a table without windows has the default one."""
        return PROFILES[self.profile] if self.has_windows else PROFILES[DEFAULT_PROFILE]

    @property
    def computed_open_end(self) -> str:
        """The `effective_to` of a current version wherever rows are computed: the default if the table has NULL."""
        return self.column_layout.computed_open_end

    @property
    def open_end_time(self) -> datetime:
        """`computed_open_end` as a time in UTC."""
        return to_datetime(self.computed_open_end)

    @property
    def earliest_time(self) -> str:
        """The time, as ISO text, before which a change is a bad row (S26, S29)."""
        return self.begin.at if self.begin is not None and self.begin.at else EARLIEST_TIME

    @property
    def stored_tables(self) -> tuple[TimedTable | LandingTable, ...]:
        """The timed tables and the landing tables that its sources read."""
        return tuple(table for source in self.sources for table in source.stored_tables.values())

    @property
    def has_own_deliveries(self) -> bool:
        """Whether one of its sources delivers: not if all of them are timed tables or landing tables."""
        return any(not source.stored_tables for source in self.sources)

    @property
    def existence_source(self) -> Source:
        """The one source that decides whether an entity exists (S30)."""
        declared = [source for source in self.sources if source.existence]
        return declared[0] if declared else self.sources[0]

    @property
    def has_regulated_attributes(self) -> bool:
        """Whether any attribute is regulated."""
        return self.regulated or any(attribute.regulated for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of this name.

        Raises:
            KeyError: The dimension has no such attribute.
        """
        return {attribute.name: attribute for attribute in self.attributes}[name]

    def source(self, name: str) -> Source:
        """Return the source of this name.

        Raises:
            KeyError: The dimension has no such source.
        """
        return {source.name: source for source in self.sources}[name]

    def has_deletes(self, channel: Snapshot | Feed) -> bool:
        """Return whether rows of the channel can delete: by its `deletes`, or by `hard_delete` of a landing table."""
        return channel.deletes is not None or (self.landing is not None and self.landing.hard_delete is not None)

    def deletes_by_key(self, channel: Snapshot | Feed) -> bool:
        """Return whether a row that deletes does so by the business key; else its entity counts as absent.

        In a snapshot whose scope is an attribute, the row of an entity that belongs to another scope must do so too. In
        a landing table with a primary key, a row deletes no other row of its merge key.
        """
        if isinstance(channel, Feed) or not set(channel.scope) <= set(self.key_names):
            return self.has_deletes(channel)
        has_primary_key = self.landing is not None and not self.has_row_identity
        return has_primary_key and bool(channel.scope) and self.has_deletes(channel)

    def of_type(self, *types: ScdType) -> tuple[Attribute, ...]:
        """Return the attributes of these SCD types, in declared order."""
        return tuple(attribute for attribute in self.attributes if attribute.scd in types)

    @property
    def warnings(self) -> tuple[DeclarationWarning, ...]:
        """The parts of this declaration that are valid but rarely intended."""
        return dimension_warnings(self)

    def source_attributes(self, source_name: str) -> tuple[Attribute, ...]:
        """Return the attributes of a source, in declared order, including retired attributes (S30)."""
        source = self.source(source_name)
        if len(self.sources) == 1:
            return self.attributes
        listed = source.attributes or ()
        return tuple(
            attribute for attribute in self.attributes if attribute.source == source.name or attribute.name in listed
        )


def _key_columns(key: Any) -> Any:
    """Return the key columns; anything else unchanged, for the checks to reject."""
    if key in (WHOLE_ROW, [WHOLE_ROW], (WHOLE_ROW,)):
        return (KeyColumn(WHOLE_ROW, derived="row_hash"),)
    if isinstance(key, str):
        return (KeyColumn(key),)
    if isinstance(key, Mapping):
        return tuple(KeyColumn(name, data_type) for name, data_type in key.items())
    if isinstance(key, (list, tuple)):
        return tuple(KeyColumn(column) if isinstance(column, str) else column for column in key)
    return key


def _named(attributes: Any) -> Any:
    """Return the attributes with their names; anything else unchanged, for the checks to reject."""
    if not isinstance(attributes, Mapping):
        return tuple(attributes) if isinstance(attributes, (list, tuple)) else attributes
    return tuple(
        replace(declared if isinstance(declared, Attribute) else Attribute(declared), name=name)
        for name, declared in attributes.items()
    )


def _sources(sources: Any) -> Any:
    if isinstance(sources, Source):
        return (sources,)
    return tuple(sources) if isinstance(sources, (list, tuple)) else sources
