"""Whether the tables that are there fit the declaration, and the schema steps that make them fit (S20, S35).

A load takes those steps only where it writes something: until then readers see the table `as_declared`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Attribute, Dimension
from scd_pipeline.delta.table import Table
from scd_pipeline.errors import DeclarationError, SetupError, ValidationError
from scd_pipeline.expressions import quote_name
from scd_pipeline.history.schema import dimension_schema

FORMAT = "scd_pipeline.format"
DECLARATION = "scd_pipeline.declaration"


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A schema step that creates a table; a column is (name, type, nullable)."""

    table: str
    columns: tuple[tuple[str, str, bool], ...]
    properties: Mapping[str, str]
    description: str

    def __str__(self) -> str:
        return f"create {self.table}: {len(self.columns)} columns"


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


SchemaStep: TypeAlias = CreateTable | AddColumn | RenameColumn


def declaration_properties(dimension: Dimension) -> dict[str, str]:
    """The properties by which a table remembers its declaration; as hexadecimal digits, because Spark blanks out
    properties that look like a secret or an address."""
    text = json.dumps(declaration_fields(dimension), sort_keys=True)
    return {FORMAT: "1", DECLARATION: text.encode().hex()}


def declaration_fields(dimension: Dimension) -> dict[str, Any]:
    """What of a declaration a table holds fast: changing it is a redeclaration (S35)."""
    return {
        "key": [[key.name, key.type] for key in dimension.business_key],
        "attributes": {a.name: [int(a.scd), a.type, a.previous] for a in dimension.attributes},
        "former_names": {former: a.name for a in dimension.attributes for former in a.former_names},
        "surrogate_key": dimension.surrogate_key,
        "key_salt": dimension.key_salt,
        "open_end": dimension.open_end,
        "begin": [dimension.begin.at, dimension.begin.for_first_changes_until] if dimension.begin else None,
        "deleted_rows": dimension.deleted_rows,
        "deleted_at": dimension.deleted_at,
        "existence_source": dimension.existence_source.name,
    }


def require_same_declaration(dimension: Dimension, stored: Mapping[str, Any]) -> None:
    """Errors: DeclarationError with every point in which the declaration differs from what the table was made by.

    New names for attributes are no difference, nor is a former name that is no longer told; nor is a new attribute,
    unless the table has no windows and the attribute needs them: rows that no delivery speaks of would get none.
    """
    now, faults, heirs = declaration_fields(dimension), [], dict[str, str]()
    for field in [name for name in now if name not in ("attributes", "former_names")]:
        if stored.get(field) != now[field]:
            faults.append(_fault(dimension, field, stored.get(field), now[field]))
    for name, before in stored["attributes"].items():
        current = next((a for a in dimension.attributes if a.name == name or name in a.former_names), None)
        if current is None:
            faults.append(_unnamed(dimension, name, f"the table has attribute {name}"))
        elif (other := heirs.setdefault(current.name, name)) != name:
            wrong = f"the table has both {other} and {name}, each with values of its own"
            right = "name neither in `former_names` of the other, and keep one with `retired: true`"
            faults.append(
                ValidationError(dimension.origin or dimension.name, f"attributes.{current.name}", wrong, right)
            )
        elif now["attributes"][current.name] != before:
            faults.append(_fault(dimension, f"attributes.{current.name}", before, now["attributes"][current.name]))
    if not any(Attribute(scd).opens_versions for scd, _, _ in stored["attributes"].values()):
        new = [a for a in dimension.attributes if a.name not in heirs]
        faults += [_windowless(dimension, attribute) for attribute in new if attribute.opens_versions]
    if faults:
        raise DeclarationError(faults)


def require_declared_attributes(dimension: Dimension, stated: Iterable[str]) -> None:
    """Errors: DeclarationError with every attribute that the change log has statements of and that is not declared.

    The log would be read as if nothing had been stated of it.
    """
    unknown = sorted(set(stated) - set(dimension.attribute_names))
    if unknown:
        wrong = "the change log has statements of attribute {}"
        raise DeclarationError([_unnamed(dimension, name, wrong.format(name)) for name in unknown])


def _unnamed(dimension: Dimension, name: str, there: str) -> ValidationError:
    wrong = f"{there}, which the declaration does not name"
    right = "keep it with `retired: true`, or name it in `former_names` of the one that it became"
    return ValidationError(dimension.origin or dimension.name, f"attributes.{name}", wrong, right)


def _windowless(dimension: Dimension, attribute: Attribute) -> ValidationError:
    wrong = f"the table was made without windows, and type {int(attribute.scd)} needs them"
    right = "declare it with type 0, 1 or 3, or load into a new table"
    return ValidationError(dimension.origin or dimension.name, f"attributes.{attribute.name}", wrong, right)


def _fault(dimension: Dimension, field: str, before: object, now: object) -> ValidationError:
    wrong = f"the table was made with {json.dumps(before)}, the declaration says {json.dumps(now)}"
    return ValidationError(
        dimension.origin or dimension.name, field, wrong, "declare it as it was, or load into a new table"
    )


def require_own_tables(*tables: Table) -> set[str]:
    """Return the names of the tables that exist.

    Tables of ours are made with their properties in one commit: none is ever there without them.

    Raises:
        SetupError: One of the tables was not made by this package.
    """
    existing = set()
    for table in tables:
        properties = table.properties()
        if properties and FORMAT not in properties:
            raise SetupError("FOREIGN_TABLE", f"table {table.name}", table=table.identifier, property=FORMAT)
        if properties:
            existing.add(table.name)
    return existing


def stored_declaration(table: Table) -> dict[str, Any] | None:
    """What the table was made by; None if it is not one of ours."""
    text = table.properties().get(DECLARATION)
    return None if text is None else dict(json.loads(bytes.fromhex(text)))


def with_former_names(dimension: Dimension, stored: Mapping[str, Any] | None) -> Dimension:
    """The declaration with every name that its attributes ever had by what its table was made by, named or not (S20).

    The log and the audit keep what was told under the name of then, so that they are read by all of them.
    Errors: DeclarationError where another attribute has one of those names now: what is kept under it could be
    either's.
    """
    former_names = (stored or {}).get("former_names", {})
    owners = {n.casefold(): a.name for a in dimension.attributes for n in (a.name, *a.former_names)}
    names = {a.name: a.former_names for a in dimension.attributes}
    faults = []
    for former, name in former_names.items():
        heir, owner = owners.get(name.casefold()), owners.get(former.casefold())
        if heir is not None and owner is None:
            names[heir] += (former,)
        elif heir is not None and owner != heir:
            wrong = f"attribute {heir} had the name {former} before, and the change log has it under that name"
            right = "give this attribute another name"
            faults.append(ValidationError(dimension.origin or dimension.name, f"attributes.{owner}", wrong, right))
    if faults:
        raise DeclarationError(faults)
    attributes = (replace(a, former_names=names[a.name]) for a in dimension.attributes)
    return replace(dimension, attributes=tuple(attributes))


def column_steps(
    table: str, existing: Collection[str], expected: Sequence[tuple[str, str]], renamed: Mapping[str, str]
) -> list[SchemaStep]:
    """Return the steps that give an existing table the expected columns.

    Args:
        table: The name of the table.
        existing: The names of its columns.
        expected: Name and type of each column that it should have.
        renamed: Former column names, each with the name that replaces it.
    """
    steps: list[SchemaStep] = []
    names = {name.lower() for name in existing}
    for old, new in renamed.items():
        if old.lower() in names and new.lower() not in names:
            steps.append(RenameColumn(table, old, new))
            names = (names - {old.lower()}) | {new.lower()}
    steps += [AddColumn(table, name, ddl) for name, ddl in expected if name.lower() not in names]
    return steps


def renamed_columns(attributes: Sequence[Attribute], *, generated: bool) -> dict[str, str]:
    """Old column name to new one, for each attribute that had another name; with its generated columns if asked for."""
    found: dict[str, str] = {}
    for attribute in attributes:
        for former in attribute.former_names:
            found[former] = attribute.name
            if generated:
                before = replace(attribute, name=former, former_names=())
                found |= dict(zip(before.generated_columns, attribute.generated_columns, strict=True))
    return found


def declared_columns(dimension: Dimension, there: Collection[str], *, of: str = "") -> dict[str, str]:
    """Every column that the dimension's table should have, as SQL over those that are there.

    New ones are NULL, renamed ones are found under their former names. `of` is what SQL calls the table, if anything.
    """
    former = {new: old for old, new in renamed_columns(dimension.attributes, generated=True).items() if old in there}
    before = f"{quote_name(of)}." if of else ""
    found = {}
    for name, ddl, _ in dimension_schema(dimension):
        physical = name if name in there else former.get(name)
        found[name] = f"CAST(NULL AS {ddl})" if physical is None else before + quote_name(physical)
    return found


def to_declared_columns(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Rows of the dimension's table with the columns that it should have, as of `as_declared`."""
    found = declared_columns(dimension, rows.columns)
    return rows.select(*[F.expr(value).alias(name) for name, value in found.items()])
