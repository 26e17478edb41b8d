"""What makes a dimension valid: its parts, and how they fit together (S28)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.begin import Begin
from scd_pipeline.declaration.checks.attribute import check_attributes, check_key
from scd_pipeline.declaration.checks.collect import Faults, joined
from scd_pipeline.declaration.checks.source import check_sources
from scd_pipeline.declaration.defaults import wanted_default
from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.names import (
    COLUMN_NAME_RULE,
    TABLE_NAME_RULE,
    default_surrogate_key,
    did_you_mean,
    is_column_name,
    is_table_name,
    listed,
    shown,
)
from scd_pipeline.declaration.patterns import zone_letters
from scd_pipeline.declaration.source import Column, Source
from scd_pipeline.declaration.times import TIME_FORM, parse_time
from scd_pipeline.declaration.types import DataType, Decimal, Primitive, leaves, parse_type
from scd_pipeline.declaration.yaml.options import DIMENSION
from scd_pipeline.errors import DeclarationError

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

TECHNICAL_COLUMNS = (
    "surrogate_key",
    "effective_from",
    "effective_to",
    "current_flag",
    "version",
    "change_reason",
    "change_source",
    "last_updated",
    "load_run_id",
    "deleted_at",
)
AUDIT_COLUMNS = (
    "audit_id",
    "change_type",
    "changed_columns",
    "old_values",
    "new_values",
    "change_ts",
    "actor",
    "reason",
    "source_batch_id",
    "correlation_id",
    "recorded_at",
    "recorded_version",
    "withdraws",
)
"""The audit's columns beside the business key, and the surrogate key before and after a transition."""
_WITHOUT_WINDOWS = (ScdType.RETAIN_ORIGINAL, ScdType.OVERWRITE, ScdType.ADD_ATTRIBUTE)
_TIMELY = ("date", "timestamp", "timestamp_ntz")
_NEVER_ROUNDED = {"string", "boolean", "binary"}


def check_dimension(dimension: Dimension) -> None:
    """Raise one DeclarationError with all faults of the dimension and its parts, if there are any."""
    named = isinstance(dimension.name, str) and is_table_name(dimension.name)
    faults = Faults(dimension.name if named else f"dimension {shown(dimension.name)}")
    draft = faults.sound("", dimension, DIMENSION)
    set_frozen_fields(draft, business_key=check_key(faults, dimension.business_key))
    set_frozen_fields(draft, attributes=check_attributes(faults, dimension.attributes))
    set_frozen_fields(draft, sources=check_sources(faults, dimension.sources))
    for check in _CHECKS:
        check(faults, draft)
    faults.raise_if_any()


def _check_names(faults: Faults, draft: Dimension) -> None:
    table: Any = draft.name
    named = isinstance(table, str) and is_table_name(table)
    if table is None or table == "":
        faults.add("name", "is missing", "give the table's name, as dim_customer")
    elif not named:
        faults.add("name", f"{shown(table)} cannot be the name of a table", TABLE_NAME_RULE)
    key: Any = draft.surrogate_key
    told = not named and key == default_surrogate_key(table)  # it is wrong because the table's name is
    if not told and not (isinstance(key, str) and is_column_name(key)):
        faults.add("surrogate_key", f"{shown(key)} cannot be a name", COLUMN_NAME_RULE)
    if draft.group and not re.fullmatch(r"[A-Za-z0-9_]+", draft.group):
        faults.add("group", f"{shown(draft.group)} cannot be a group", "write letters, digits and `_`")


def _check_columns(faults: Faults, draft: Dimension) -> None:
    """Each column of the table has one meaning; names are compared without case, as Delta does."""
    taken = dict.fromkeys(TECHNICAL_COLUMNS, "is a column that every dimension has")

    def take(column: str, field: str, meaning: str) -> None:
        name = column.casefold()
        if name in taken:
            faults.add(field, f"column {column} {taken[name]}", "choose another name")
        taken.setdefault(name, meaning)

    for column in draft.business_key:
        take(column.name, "business_key", f"is in the business key as {column.name}")
    for attribute in draft.attributes:
        if attribute.name in draft.key_names:
            _tell_key_attribute(faults, attribute)
        else:
            take(attribute.name, f"attributes.{attribute.name}", f"is attribute {attribute.name}")
    key: Any = draft.surrogate_key
    if isinstance(key, str) and key != "surrogate_key":  # what is no text was told
        take(key, "surrogate_key", "is the surrogate key")
    for attribute in draft.attributes:
        for generated in attribute.generated_columns:
            take(generated, f"attributes.{attribute.name}", f"belongs to attribute {attribute.name}")
    _check_former_names(faults, draft, taken)


def _check_key_names(faults: Faults, draft: Dimension) -> None:
    """The audit has the business key beside columns of its own."""
    key: Any = draft.surrogate_key
    taken = {name.casefold() for name in audit_columns(key if isinstance(key, str) else "")}
    for name in draft.key_names:
        if name.casefold() in taken:
            wrong = f"column {name} is one of the audit, which has the business key beside it"
            faults.add("business_key", wrong, "choose another name")


def audit_columns(surrogate_key: str) -> tuple[str, ...]:
    """The names of the audit's columns but for those of the business key."""
    return (*AUDIT_COLUMNS, surrogate_key + "_old", surrogate_key + "_new")


def _tell_key_attribute(faults: Faults, attribute: Attribute) -> None:
    wrong, right = "is in the business key too", "a business key is not an attribute: remove it here or there"
    if attribute.personal:
        wrong = "is personal and in the business key"
        right = "a key outlives an erasure: take a key that is not personal, or remove `personal`"
    faults.add(f"attributes.{attribute.name}", wrong, right)


def _check_former_names(faults: Faults, draft: Dimension, taken: dict[str, str]) -> None:
    owners: dict[str, str] = {}
    for attribute in draft.attributes:
        field = f"attributes.{attribute.name}.former_names"
        faults.unique(field, attribute.former_names)
        for name in dict.fromkeys(attribute.former_names):
            folded = name.casefold()
            owner = owners.setdefault(folded, attribute.name)
            if not is_column_name(name):
                faults.add(field, f"{shown(name)} cannot be a name", COLUMN_NAME_RULE)
            elif folded in taken:
                faults.add(field, f"{name} {taken[folded]}", "name only columns that are no longer there")
            elif owner != attribute.name:
                faults.add(field, f"{name} is a former name of {owner} too", "leave it with one of them")


def _check_source_names(faults: Faults, draft: Dimension) -> None:
    seen: dict[str, str] = {}
    for source in draft.sources:
        first = seen.setdefault(source.name.casefold(), source.name)
        if first is not source.name:
            faults.add(f"sources.{source.name}", f"{first} is a source already", "choose another name")


def _check_existence(faults: Faults, draft: Dimension) -> None:
    """Exactly one source decides whether an entity exists (S30)."""
    if len(draft.sources) == 1:
        if draft.sources[0].existence is False:
            wrong = "the only source decides whether an entity exists"
            faults.add(f"sources.{draft.sources[0].name}.existence", wrong, "remove it, or write true")
        return
    deciding = [source.name for source in draft.sources if source.existence]
    right = "write `existence: true` at exactly one source"
    if draft.sources and not deciding:
        faults.add("sources", "none of the sources decides whether an entity exists", right)
    if len(deciding) > 1:
        faults.add("sources", f"{listed(deciding)} each decide whether an entity exists", right)


def _check_owners(faults: Faults, draft: Dimension) -> None:
    """Each attribute that is stated has exactly one source (S30)."""
    names = [source.name for source in draft.sources]
    for attribute in draft.attributes:
        field = f"attributes.{attribute.name}"
        if names and attribute.source is not None and attribute.source not in names:
            wrong = f"{shown(attribute.source)} is not a source of this dimension"
            faults.add(f"{field}.source", wrong, did_you_mean(attribute.source, names))
            continue
        owners = _owners(draft, attribute)
        if len(owners) > 1:
            faults.add(field, f"is stated by {listed(owners)}", "leave it with one source")
        elif names and not owners and not attribute.retired:
            faults.add(field, "has no source", f"write `source:` with one of {', '.join(names)}")


def _owners(draft: Dimension, attribute: Attribute) -> list[str]:
    alone = len(draft.sources) == 1 and draft.sources[0].attributes is None
    owning = [
        source.name
        for source in draft.sources
        if alone or source.name == attribute.source or attribute.name in (source.attributes or ())
    ]
    return list(dict.fromkeys(owning))


def _check_source_attributes(faults: Faults, draft: Dimension) -> None:
    names = draft.attribute_names
    for source in draft.sources:
        field = f"sources.{source.name}"
        for name in dict.fromkeys(source.attributes or ()):
            if name not in names:
                faults.add(f"{field}.attributes", f"{shown(name)} is not an attribute", did_you_mean(name, names))
        owned = any(source.name in _owners(draft, attribute) for attribute in draft.attributes)
        if names and not owned and len(draft.sources) > 1 and not source.existence:
            wrong = "states no attribute, and does not decide existence"
            faults.add(field, wrong, "name its `attributes`, or remove the source")


def _check_scopes(faults: Faults, draft: Dimension) -> None:
    for source in draft.sources:
        for name in source.snapshot.scope if source.snapshot else ():
            if draft.key_names and name not in draft.key_names:
                field = f"sources.{source.name}.snapshot.scope"
                wrong = f"{shown(name)} is not in the business key"
                faults.add(field, wrong, did_you_mean(name, draft.key_names))


def _check_source_columns(faults: Faults, draft: Dimension) -> None:
    if not draft.business_key or faults.has("attributes"):  # the names cannot be resolved
        return
    types = _column_types(draft)
    for source in draft.sources:
        for name, column in source.columns.items():
            field = joined(f"sources.{source.name}.columns", name)
            if name not in types:
                wrong = f"{shown(name)} is neither an attribute nor in the business key"
                faults.add(field, wrong, did_you_mean(name, types))
                continue
            _check_owned(faults, field, source, name, draft)
            of = types[name]
            wanted = None if column.default is None or of is None else wanted_default(of, column.default)
            if wanted is not None and of is not None:
                wrong = f"{shown(column.default)} does not fit type {of.ddl()}"
                faults.add(f"{field}.default", wrong, f"give {wanted}")
            if of is not None:
                _check_read_as(faults, field, column, name, of)


def _check_read_as(faults: Faults, field: str, column: Column, name: str, of: DataType) -> None:
    """A pattern or a unit reads dates and times only; what has no zone is not read with one (S1)."""
    times = f"remove it, or declare {name} as {' or '.join(_TIMELY)}"
    if column.format is not None and of.ddl() not in _TIMELY:
        wrong = f"a format reads text as a date or a time, and {name} is of type {of.ddl()}"
        faults.add(f"{field}.format", wrong, times)
    elif of.ddl() == "timestamp_ntz" and (zone := zone_letters(column.format or "")):
        wrong = f"{zone} reads a zone, and {name} is of type timestamp_ntz, which has none"
        faults.add(f"{field}.format", wrong, f"leave it out, or declare {name} as timestamp")
    names = {leaf.ddl() for leaf in leaves(of) if isinstance(leaf, Primitive)}
    if column.unit is not None and not names & set(_TIMELY):
        faults.add(f"{field}.unit", f"a unit reads a number as a time, and {name} is of type {of.ddl()}", times)
    if column.round and not any(isinstance(leaf, Decimal) for leaf in leaves(of)) and names <= _NEVER_ROUNDED:
        wrong = f"a value of type {of.ddl()} has no digits that could be rounded"
        faults.add(f"{field}.round", wrong, "remove it, or declare a number, a date or a time")


def _check_owned(faults: Faults, field: str, source: Source, name: str, draft: Dimension) -> None:
    owners = {attribute.name: _owners(draft, attribute) for attribute in draft.attributes}
    if owners.get(name) and source.name not in owners[name]:
        wrong = f"{name} belongs to source {owners[name][0]}"
        faults.add(field, wrong, "declare the column there, or leave the attribute to this source")


def _column_types(draft: Dimension) -> dict[str, DataType | None]:
    texts = {key.name: key.type for key in draft.business_key}
    texts |= {attribute.name: attribute.type for attribute in draft.attributes if not attribute.derived}
    return {name: _type_or_none(text) for name, text in texts.items()}


def _type_or_none(text: Any) -> DataType | None:
    try:
        return parse_type(text)
    except DeclarationError:  # told where the type stands
        return None


def _check_deletes(faults: Faults, draft: Dimension) -> None:
    """What becomes of a deleted entity's row is asked only where there are no windows (S33)."""
    faults.choice("deleted_rows", draft.deleted_rows, ("keep", "remove"))
    given = {"deleted_rows": draft.deleted_rows != "keep", "deleted_at": draft.deleted_at}
    for word in (word for word, is_given in given.items() if is_given):
        if draft.has_windows:
            wrong = "a table with attributes of type 2 or 6 closes the version of a deleted entity"
            faults.add(word, wrong, "remove it: it is for tables with types 0, 1 and 3 only")
    if draft.deleted_at and draft.deleted_rows == "remove":
        faults.add(
            "deleted_at",
            "the rows of deleted entities are removed",
            "write `deleted_rows: keep`, or remove it",
        )


def _check_times(faults: Faults, draft: Dimension) -> None:
    """The open end, and where a history begins (S29)."""
    open_end = parse_time(draft.open_end)
    if open_end is None:
        faults.add("open_end", f"{shown(draft.open_end)} is not a time", TIME_FORM)
    begin: Any = draft.begin
    if begin is None:
        return
    if not faults.has("attributes") and all(attribute.scd in _WITHOUT_WINDOWS for attribute in draft.attributes):
        wrong = "without attributes of type 2 or 6 there are no windows: each row begins at 0001-01-01 already"
        faults.add("begin", wrong, "remove it")
        return
    if not isinstance(begin, Begin):
        faults.add("begin", f"{shown(begin)} is not a beginning", "give `at` and `for_first_changes_until`")
        return
    at, until = parse_time(begin.at), parse_time(begin.for_first_changes_until)
    for word, text, moment in (
        ("at", begin.at, at),
        ("for_first_changes_until", begin.for_first_changes_until, until),
    ):
        if moment is None:
            faults.add(f"begin.{word}", f"{shown(text)} is not a time", TIME_FORM)
    if at and open_end and at >= open_end:
        faults.add("begin.at", f"{begin.at} is not before the open end {draft.open_end}", "give an earlier time")
    if at and until and until < at:
        wrong = f"{begin.for_first_changes_until} is before the beginning {begin.at}"
        faults.add("begin.for_first_changes_until", wrong, "give a time at or after `at`")


_CHECKS: tuple[Callable[[Faults, Any], None], ...] = (
    _check_names,
    _check_columns,
    _check_key_names,
    _check_source_names,
    _check_existence,
    _check_owners,
    _check_source_attributes,
    _check_scopes,
    _check_source_columns,
    _check_deletes,
    _check_times,
)
