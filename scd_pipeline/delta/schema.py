"""Checks that existing tables fit the declaration, and the schema steps that adapt them (S20, S35).

A load executes those steps only if it writes rows; until then queries read the table by `to_declared_columns`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Attribute, Dimension
from scd_pipeline.declaration.change_types import CHANGE_TYPES
from scd_pipeline.declaration.column_names import ROW_HASH
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.tables import ARCHIVE_SUFFIX, LOG_SUFFIX
from scd_pipeline.declaration.types import is_wider, leaves, nested_columns, parse_type
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.generated_columns import computed_columns
from scd_pipeline.delta.stored_declaration import StoredAttribute, StoredDeclaration, stored_declaration
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError, SetupError, ValidationError
from scd_pipeline.expressions import col, widened, with_columns, without_blanks
from scd_pipeline.frames import column_types
from scd_pipeline.history.keys import RESERVED_KEYS, UNKNOWN_KEY
from scd_pipeline.history.schema import dimension_schema, stored_schema
from scd_pipeline.texts import pluralize

FORMAT = "scd_pipeline.format"
APPEND_ONLY_PROPERTY = "delta.appendOnly"
APPEND_ONLY_PROPERTIES = {APPEND_ONLY_PROPERTY: "true", "delta.enableDeletionVectors": "false"}
"""No row of such a table is deleted; with deletion vectors, planning a scan of it costs twice as much."""
KEY_CONSTRAINT = "scd_business_key"
"""The name of the CHECK constraint of `key_constraint`."""
_CONSTRAINT = "delta.constraints."
"""The beginning of the names of the properties of CHECK constraints; only CREATE TABLE can set them directly."""
_STATISTICS = "delta.dataSkippingStatsColumns"
_DEFAULT_STATISTICS = 32
"""The number of columns of which Delta stores the minimum and maximum by default."""
HIDDEN_VALUE = "*********(redacted)"
"""What Spark shows in place of a value that looks like a secret or an address, or whose name does."""
_STATISTICS_FINGERPRINT, _DECLARED_FINGERPRINT = "scd_pipeline.statistics", "scd_pipeline.table_properties"
"""Properties with the `_with_fingerprint` of others."""
_COLUMN_OF_FIELD = re.compile(r"`([^`]+)`|([^`.]+)")
_UNCHANGEABLE_OPTIONS = (
    "key",
    "row_entity",
    "surrogate_key",
    "key_salt",
    "open_end",
    "begin",
    "deleted_rows",
    "deleted_at",
    "existence_source",
    "column_names",
    "history_table",
    "history_columns",
    "change_types",
)
_ROW_ENTITIES = {"": "a key of entities", "whole_row": "whole rows as entities", "row_version": "`row_version: true`"}
_TYPES_WITH_STATISTICS = frozenset(
    [
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
    ]
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A schema step that creates a table; a column is (name, type, nullable)."""

    table: str
    columns: tuple[tuple[str, str, bool], ...]
    properties: Mapping[str, str]
    description: str

    def __str__(self) -> str:
        return f"create {self.table}: {pluralize(len(self.columns), 'column')}"


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A schema step that adds a nullable column."""

    table: str
    name: str
    type: str

    def __str__(self) -> str:
        return f"add column to {self.table}: {self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A schema step that renames a column."""

    table: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"rename column in {self.table}: {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A schema step that gives a column a type with further values; its stored values do not change."""

    table: str
    name: str
    old: str
    new: str

    @property
    def widened(self) -> dict[tuple[str, ...], str]:
        """The wider type of the column, or of each value inside of it that gets one, by its path."""
        old, new = (nested_columns(self.name, parse_type(ddl)) for ddl in (self.old, self.new))
        simple = {path: each for path, each in new.items() if leaves(each) == (each,)}
        return {path: each.ddl() for path, each in simple.items() if old.get(path, each) != each}

    @property
    def added(self) -> dict[tuple[str, ...], str]:
        """The type of each field that structs inside of the column get, by its path."""
        old, new = (nested_columns(self.name, parse_type(ddl)) for ddl in (self.old, self.new))
        return {path: each.ddl() for path, each in new.items() if path not in old and path[:-1] in old}

    def __str__(self) -> str:
        return f"widen column in {self.table}: {self.name} from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """A schema step that sets the comment of a column."""

    table: str
    name: str
    comment: str

    def __str__(self) -> str:
        return f"comment column in {self.table}: {self.name}, {self.comment or 'provided again'}"


@dataclass(frozen=True, slots=True)
class SetProperties:
    """A schema step that sets table properties, after the steps that change columns."""

    table: str
    properties: Mapping[str, str]

    def __str__(self) -> str:
        return f"set properties of {self.table}: {', '.join(self.properties)}"


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """A schema step that adds a CHECK constraint, which all existing rows satisfy."""

    table: str
    name: str
    condition: str

    def __str__(self) -> str:
        return f"add constraint to {self.table}: {self.name} CHECK ({self.condition})"


SchemaStep: TypeAlias = (
    CreateTable | AddColumn | RenameColumn | WidenColumn | CommentColumn | SetProperties | AddConstraint
)


def skipping_columns(columns: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the table property by which Delta stores the minimum and maximum of these columns alone for each file.

    Delta's default is the first 32 columns, whose aggregates cost more than a small commit itself.

    Args:
        columns: Name and type of the columns by which queries skip files; those of a type without an order are omitted.
    """
    names = [quote_name(name) for name, ddl in columns if has_statistics(ddl)]
    return {_STATISTICS: ",".join(names)}


def statistics_properties(dimension: Dimension, declared: Mapping[str, str]) -> dict[str, str]:
    """Return the table property by which Delta stores no minimum and maximum of personal attributes (S31).

    They would be readable in the transaction log. Without personal attributes there is no such property. With it is its
    fingerprint.

    Args:
        dimension: The declaration.
        declared: The declared properties of the table, which may name the columns.
    """
    personal = [attribute for attribute in dimension.attributes if attribute.personal]
    hidden = {name.casefold() for attribute in personal for name in (attribute.name, *attribute.generated_columns)}
    if not hidden:
        return {}
    listed = _by_folded_name(declared).get(_STATISTICS.casefold())
    if listed is None:
        names = [quote_name(name) for name, ddl, _ in stored_schema(dimension) if has_statistics(ddl)]
        names = names[:_DEFAULT_STATISTICS]
    else:
        names = [name.strip() for name in listed.split(",")]  # no name of a column or a field has a comma
    others = [name for name in names if _column_of_field(name).casefold() not in hidden]
    columns = {_STATISTICS: ",".join(others or [quote_name(dimension.surrogate_key)])}
    return _with_fingerprint(columns, _STATISTICS_FINGERPRINT)


def _column_of_field(name: str) -> str:
    """Return the column of a name in SQL, which may be that of a field in the column."""
    match = _COLUMN_OF_FIELD.match(name)
    return "".join(match.groups(default="")) if match else name


def key_constraint(dimension: Dimension) -> dict[str, str]:
    """Return the property of a table of versions by which only reserved members have no business key (S23, S26)."""
    keys = " AND ".join(f"{quote_name(name)} IS NOT NULL" for name in dimension.key_names)
    reserved = ", ".join(map(str, RESERVED_KEYS))
    return {_CONSTRAINT + KEY_CONSTRAINT: f"({keys}) OR {quote_name(dimension.surrogate_key)} IN ({reserved})"}


def has_statistics(ddl: str) -> bool:
    """Return whether Delta stores the minimum and maximum of a column of this type."""
    return ddl.partition("(")[0] in _TYPES_WITH_STATISTICS


def declaration_properties(dimension: Dimension) -> dict[str, str]:
    """Return the declared table properties, and those with the format of the table and its declaration."""
    declared = declared_properties(dimension, dimension.table_properties)
    return {**declared, FORMAT: "1", **StoredDeclaration.from_dimension(dimension).to_properties()}


def declared_properties(dimension: Dimension, declared: Mapping[str, str]) -> dict[str, str]:
    """Return the declared properties of a table and their fingerprint.

    The property that `statistics_properties` replaces is omitted.
    """
    replaced = {name.casefold() for name in statistics_properties(dimension, declared)}
    others = {name: value for name, value in declared.items() if name.casefold() not in replaced}
    return _with_fingerprint(others, _DECLARED_FINGERPRINT)


def _with_fingerprint(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """Return properties, if any, and under this name a hash of them by which `has_properties` compares hidden values.

    Its hexadecimal digits look like neither a secret nor an address.
    """
    text = json.dumps(sorted(_by_folded_name(properties).items()))
    return {**properties, name: hashlib.sha256(text.encode()).hexdigest()} if properties else {}


def has_properties(properties: Mapping[str, str], expected: Mapping[str, str]) -> bool:
    """Return whether a table has the expected properties; Delta ignores the case of their names.

    A value that Spark hides counts as the expected one; the fingerprint among the properties shows whether it is.
    """
    stored = _by_folded_name(properties)
    return all(stored.get(name) in (value, HIDDEN_VALUE) for name, value in _by_folded_name(expected).items())


def ensure_table(
    table: Table,
    last: PipelineCommit,
    columns: Sequence[tuple[str, str, bool]],
    properties: Mapping[str, str],
    description: str,
) -> None:
    """Create a table if it does not exist; if a plain write created it, set its properties.

    Args:
        table: The table.
        last: Its last pipeline commit.
        columns: Name, type and nullability of each column.
        properties: The properties.
        description: The description.
    """
    if not last.exists:
        table.create(columns, properties, description)
    elif lacks_properties(table, last, properties):
        table.set_properties(properties)


def missing_constraint(table: str, dimension: Dimension, properties: Mapping[str, str]) -> list[SchemaStep]:
    """Return the step that adds `key_constraint` to an existing table with these properties; none if it has it.

    The one of an earlier release names the unknown member alone. Spark may hide the text of a constraint.
    """
    ((name, condition),) = key_constraint(dimension).items()
    stored = _by_folded_name(properties).get(name)
    has_constraint = stored is not None and not without_blanks(stored).endswith(f"={UNKNOWN_KEY}")
    return [] if has_constraint else [AddConstraint(table, name.removeprefix(_CONSTRAINT), condition)]


def lacks_properties(table: Table, last: PipelineCommit, properties: Mapping[str, str]) -> bool:
    """Return whether a plain write created a table without its properties; mostly answered without a query."""
    return last.lacks_creation and not has_properties(table.properties(), properties)


def _by_folded_name(properties: Mapping[str, str]) -> dict[str, str]:
    return {name.casefold(): value for name, value in properties.items()}


def require_same_declaration(dimension: Dimension, stored: StoredDeclaration) -> None:
    """Check that the declaration does not differ from the one that the table was created with.

    Renamed attributes, removed former names, wider types and a new archive are allowed. A new attribute is allowed too,
    unless it needs windows and the table has none: rows of entities that no new delivery contains would have no window.

    Raises:
        DeclarationError: With every difference.
    """
    declared = StoredDeclaration.from_dimension(dimension)
    stored_names: dict[str, str] = {}
    errors = _option_differences(dimension, declared, stored)
    for name, attribute in stored.attributes.items():
        current = next((a for a in dimension.attributes if a.name == name or name in a.former_names), None)
        if current is None:
            errors.append(_undeclared_attribute(dimension, name, f"the table has attribute {name}"))
        elif (other := stored_names.setdefault(current.name, name)) != name:
            problem = f"the table has both {other} and {name}, each with values of its own"
            fix = "name neither in `former_names` of the other, and keep one with `retired: true`"
            errors.append(_error("TABLE_HAS_BOTH", dimension, f"attributes.{current.name}", problem, fix))
        elif (now := declared.attributes[current.name]) != attribute.widened(now.type):
            field = f"attributes.{current.name}"
            errors.append(_difference(dimension, field, attribute.to_list(), now.to_list()))
    if not stored.has_windows:
        declared_for_later = (dimension.mirror.attributes or ()) if dimension.mirror else ()
        new = [a for a in (*dimension.attributes, *declared_for_later) if a.name not in stored_names]
        errors += [_attribute_without_windows(dimension, attribute) for attribute in new if attribute.opens_versions]
    if errors:
        raise DeclarationError(errors)


def _option_differences(
    dimension: Dimension, declared: StoredDeclaration, stored: StoredDeclaration
) -> list[ValidationError]:
    """Return an error for each option that cannot change for an existing table, and differs."""
    errors = []
    for option in _UNCHANGEABLE_OPTIONS:
        before, now = getattr(stored, option), getattr(declared, option)
        if option == "begin" and before is not None:
            before = tuple(declared.former_names.get(text, text) for text in before)  # a renamed attribute
        if before != now:
            errors.append(_difference(dimension, option, before, now))
    return [*errors, *([_undeclared_archive(dimension)] if stored.archive and not declared.archive else [])]


def require_declared_attributes(dimension: Dimension, logged_attributes: Iterable[str]) -> None:
    """Check that each attribute with change records in the log is declared.

    A load would read the log as if it had no values for an undeclared one.

    Raises:
        DeclarationError: With every undeclared attribute.
    """
    undeclared = sorted(set(logged_attributes) - set(dimension.attribute_names))
    if undeclared:
        problem = "the change log has records of attribute {}"
        raise DeclarationError([_undeclared_attribute(dimension, name, problem.format(name)) for name in undeclared])


def _error(code: str, dimension: Dimension, field: str, problem: str, fix: str) -> ValidationError:
    return ValidationError(code, dimension.origin or dimension.name, field, problem, fix)


def _undeclared_attribute(dimension: Dimension, name: str, evidence: str) -> ValidationError:
    problem = f"{evidence}, which is not declared"
    if dimension.is_of_fact:
        tables = f"{dimension.name} and {dimension.name}{LOG_SUFFIX}"
        fix = f"declare the measure or the role again, or drop {tables} and load all deliveries"
        return _error("TABLE_HAS_ATTRIBUTE", dimension, "measures", problem, fix)
    fix = "keep it with `retired: true`, or name it in `former_names` of the attribute that replaces it"
    return _error("TABLE_HAS_ATTRIBUTE", dimension, f"attributes.{name}", problem, fix)


def _undeclared_archive(dimension: Dimension) -> ValidationError:
    archive = dimension.name + ARCHIVE_SUFFIX
    problem = f"the table has the archive {archive}, without which readers would lack versions"
    fix = f"declare it again; or drop {dimension.name} and {archive}: a load rebuilds one table with all versions"
    return _error("TABLE_DIFFERS", dimension, "archive_after_years", problem, fix)


def _attribute_without_windows(dimension: Dimension, attribute: Attribute) -> ValidationError:
    problem = f"the table was created without windows, and type {int(attribute.scd)} needs them"
    return _error(
        "TABLE_WITHOUT_WINDOWS",
        dimension,
        f"attributes.{attribute.name}",
        problem,
        "declare it with type 0, 1 or 3, or load into a new table",
    )


def _difference(dimension: Dimension, field: str, before: Any, declared: Any) -> ValidationError:
    before_text, declared_text = _display_field(field, before), _display_field(field, declared)
    problem = f"the table was created with {before_text}; the declaration has {declared_text}"
    fix = "restore the earlier declaration"
    if field == "change_types":  # labels may come from a profile, which had none when the table was created
        fix = f"declare `change_types: {json.dumps(_labels_to_restore(before, declared))}`"
    return _error("TABLE_DIFFERS", dimension, field, problem, f"{fix}, or load into a new table")


def _labels_to_restore(before: Mapping[str, str], declared: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of an existing audit for all change types that have a label there or in the declaration."""
    return {name: before.get(name, name) for name in CHANGE_TYPES if name in before or name in declared}


def _display_field(field: str, value: Any) -> str:
    """Return the value of a field of `StoredDeclaration` as text for a message."""
    if field.startswith("attributes."):
        attribute = StoredAttribute(*value)
        text = f"SCD type {attribute.scd} and type {attribute.type}"
        if attribute.previous:
            text += f" and `previous: {json.dumps(attribute.previous)}`"
        text += f" and the columns {json.dumps(attribute.column_names)}" if attribute.column_names else ""
        return text + (f" and `untracked: {attribute.untracked}`" if attribute.untracked else "")
    if field == "row_entity":
        return _ROW_ENTITIES[value]
    if field == "key":
        return "the columns " + ", ".join(f"{name} {ddl}" for name, ddl in value)
    return json.dumps(value)


def require_pipeline_tables(*tables: Table) -> None:
    """Check that this package created each of the tables that exists.

    It creates a table and its properties in one commit, so a table without them is foreign.

    Raises:
        SetupError: One of the tables was not created by this package.
    """
    properties = {table.name: table.properties() for table in tables}
    for table in tables:
        if properties[table.name] and FORMAT not in properties[table.name]:
            raise foreign_table_error(table, properties.get(table.name + LOG_SUFFIX, {}))


def foreign_table_error(table: Table, log_properties: Mapping[str, str]) -> SetupError:
    """Return the error about a table that this package did not create, or that another program replaced.

    Args:
        table: The table.
        log_properties: The properties of its change log; none without one.
    """
    details = {"table": table.identifier, "property": FORMAT}
    if FORMAT in log_properties:
        return SetupError("TABLE_REPLACED", f"table {table.name}", **details, log=table.name + LOG_SUFFIX)
    return SetupError("FOREIGN_TABLE", f"table {table.name}", **details)


def as_stored(dimension: Dimension, stored: StoredDeclaration | None) -> Dimension:
    """Return the declaration with what the table's stored declaration has of its attributes (S20, S36).

    Raises:
        DeclarationError: As `with_former_names`.
    """
    return with_stored_names(with_stored_attributes(dimension, stored), stored)


def with_stored_names(dimension: Dimension, stored: StoredDeclaration | None) -> Dimension:
    """Return the declaration with every name that its attributes ever had, and their names in the hash of a version.

    Raises:
        DeclarationError: As `with_former_names`.
    """
    return _with_hash_names(with_former_names(dimension, stored), stored)


def _with_hash_names(dimension: Dimension, stored: StoredDeclaration | None) -> Dimension:
    """Return the declaration with the names of renamed attributes in the hash of a version or a row, if there is one.

    An attribute that the table does not have yet has its first name there, as if it had been loaded before its renaming
    (S14).
    """
    if dimension.column_layout.name(ROW_HASH) is None and not dimension.is_whole_row:
        return dimension
    hash_names = {name: stored.hash_names.get(name, name) for name in stored.attributes} if stored else {}
    attributes = []
    for attribute in dimension.attributes:
        names = (attribute.name, *attribute.former_names)
        name = next((hash_names[each] for each in names if each in hash_names), names[-1])
        attributes.append(replace(attribute, hash_name="" if name == attribute.name else name))
    return replace(dimension, attributes=tuple(attributes))


def read_as_stored(warehouse: Warehouse, dimension: Dimension) -> Dimension:
    """Return a mirrored dimension with its stored attributes (S36); any other one unchanged, without a query."""
    return (
        dimension if dimension.mirror is None else as_stored(dimension, stored_declaration(warehouse, dimension.name))
    )


def with_stored_attributes(dimension: Dimension, stored: StoredDeclaration | None) -> Dimension:
    """Return the declaration with the stored attributes of a mirrored dimension, and since when attributes are retired.

    Without a table, a mirrored dimension has no attributes but those with a declared type.
    """
    if stored is None:
        return dimension.with_mirrored({})
    if dimension.mirror is None:
        times = retirement_times(dimension, stored)
        attributes = tuple(replace(a, retired_at=times.get(a.name, "")) for a in dimension.attributes)
        return replace(dimension, attributes=attributes) if times else dimension
    types = {name: attribute.type for name, attribute in stored.attributes.items()}
    mirror = dimension.mirror.with_former_names(stored.former_names)
    # A column of the source that appears later does not replace the hash that the table has.
    hash_name = {name: each for name, each in stored.column_names.items() if name == ROW_HASH}
    dimension = replace(dimension, mirror=mirror, column_names={**hash_name, **dimension.column_names})
    return dimension.with_mirrored(types, stored.retired_at)


def retirement_times(dimension: Dimension, stored: StoredDeclaration | None) -> dict[str, str]:
    """Return since when the stored attributes are retired, by their present names, for those that are."""
    current_names = renamed_columns(dimension.attributes, generated=False)
    times = stored.retired_at if stored else {}
    return {current_names.get(name, name): time for name, time in times.items()}


def with_former_names(dimension: Dimension, stored: StoredDeclaration | None) -> Dimension:
    """Return the declaration with every former name of its attributes that the table's stored declaration has (S20).

    The log and the audit store values under the name that an attribute had at that time, and are read by all names.

    Raises:
        DeclarationError: Another attribute now has one of those names, so that stored values could belong to either.
    """
    former_names = stored.former_names if stored else {}
    owners = {n.casefold(): a.name for a in dimension.attributes for n in (a.name, *a.former_names)}
    names = {a.name: a.former_names for a in dimension.attributes}
    errors = []
    for former, name in former_names.items():
        renamed, owner = owners.get(name.casefold()), owners.get(former.casefold())
        if renamed is not None and owner is None:
            names[renamed] += (former,)
        elif renamed is not None and owner != renamed:
            problem = f"attribute {renamed} had the name {former} before, and the change log has its values under it"
            errors.append(
                _error(
                    "NAME_IN_USE", dimension, f"attributes.{owner}", problem, "choose another name for this attribute"
                )
            )
    if errors:
        raise DeclarationError(errors)
    attributes = (replace(a, former_names=names[a.name]) for a in dimension.attributes)
    return replace(dimension, attributes=tuple(attributes))


def column_steps(
    table: str, existing: Mapping[str, str], expected: Sequence[tuple[str, str]], renamed: Mapping[str, str]
) -> list[SchemaStep]:
    """Return the steps that give an existing table the expected columns.

    Args:
        table: The name of the table.
        existing: The type of each of its columns by name.
        expected: Name and type of each column that it should have.
        renamed: Former column names, each with the name that replaces it.
    """
    steps: list[SchemaStep] = []
    types = {name.lower(): ddl for name, ddl in existing.items()}
    for old, new in renamed.items():
        if old.lower() in types and new.lower() not in types:
            steps.append(RenameColumn(table, old, new))
            types[new.lower()] = types.pop(old.lower())
    steps += [AddColumn(table, name, ddl) for name, ddl in expected if name.lower() not in types]
    pairs = [(name, types.get(name.lower(), ddl), ddl) for name, ddl in expected]
    steps += [WidenColumn(table, name, old, new) for name, old, new in pairs if is_widened(old, new)]
    return steps


def is_widened(stored: str, declared: str) -> bool:
    """Return whether the declared type of a column is wider than the stored one, which may be of another program."""
    if stored == declared:
        return False
    with suppress(DeclarationError):
        return is_wider(parse_type(declared), parse_type(stored))
    return False


def with_widened_columns(rows: DataFrame, stored: Mapping[str, str], dimension: Dimension) -> DataFrame:
    """Return rows of a table of versions with the declared types of the columns that the next load widens.

    Args:
        rows: The rows.
        stored: The type of each column by name.
        dimension: The declaration.
    """
    declared = {name: ddl for name, ddl, _ in stored_schema(dimension)}
    current_names = renamed_columns(dimension.attributes, generated=True)
    types = {name: declared.get(current_names.get(name, name), ddl) for name, ddl in stored.items()}
    wider = {name: ddl for name, ddl in types.items() if is_widened(stored[name], ddl)}
    return with_columns(rows, {name: altered_column(name, stored, ddl) for name, ddl in wider.items()})


def altered_column(name: str | None, stored: Mapping[str, str], ddl: str) -> Column:
    """Return a column of a table with its declared type, if that is wider.

    Args:
        name: The name that the column has in the table; None for one that it lacks, which is NULL.
        stored: The type of each column of the table by name.
        ddl: The declared type.
    """
    if name is None:
        return F.lit(None).cast(ddl)
    if not is_widened(stored[name], ddl):
        return col(name)
    return widened(col(name), parse_type(stored[name]), parse_type(ddl))


def renamed_columns(attributes: Sequence[Attribute], *, generated: bool) -> dict[str, str]:
    """Return the new column name for each former one, including generated columns if `generated`."""
    columns: dict[str, str] = {}
    for attribute in attributes:
        for former in attribute.former_names:
            columns[former] = attribute.name
            if generated:
                before = replace(attribute, name=former, former_names=())
                columns |= dict(zip(before.generated_columns, attribute.generated_columns, strict=True))
    return {old: new for old, new in columns.items() if old != new}


def declared_columns(dimension: Dimension, existing: Collection[str], *, alias: str = "") -> dict[str, str]:
    """Return an SQL expression for each column of `dimension_schema` over the columns of the dimension's table.

    A renamed column is read under its former name, and a column that does not exist yet is NULL. The open end is never
    NULL. The columns may also be those of `with_computed_columns`.

    Args:
        dimension: The declaration.
        existing: The columns that the table has.
        alias: The alias of the table in the query, if it has one.
    """
    renamed = renamed_columns(dimension.attributes, generated=True)
    former_names = {new: old for old, new in renamed.items() if old in existing}
    qualifier = f"{quote_name(alias)}." if alias else ""
    expressions = {}
    for name, ddl, _ in dimension_schema(dimension):
        physical = name if name in existing else former_names.get(name)
        expressions[name] = f"CAST(NULL AS {ddl})" if physical is None else qualifier + quote_name(physical)
    computed = computed_columns(dimension.column_layout, existing, qualifier)
    return {name: computed.get(name, expression) for name, expression in expressions.items()}


def to_declared_columns(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return rows of the dimension's table with the columns of `dimension_schema`."""
    expressions = declared_columns(dimension, rows.columns)
    return rows.select(*[F.expr(value).alias(name) for name, value in expressions.items()])


def with_altered_columns(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Return rows with the columns of another table or version that has been altered already.

    Columns are only added, renamed or widened. A column under a former name has its values, and an added one is NULL.
    """
    types, stored = column_types(others.schema), column_types(rows.schema)
    names = names_before(types, stored)
    return rows.select(*[altered_column(names[name], stored, ddl).alias(name) for name, ddl in types.items()])


def names_before(names: Collection[str], stored: Collection[str]) -> dict[str, str | None]:
    """Return the name that each column had before a table was altered; None for a column that was added.

    Columns are only added or renamed, and renamed ones keep their order.
    """
    missing = [name for name in names if name not in stored]
    former = dict(zip(missing, (name for name in stored if name not in names), strict=False))
    return {name: name if name in stored else former.get(name) for name in names}
