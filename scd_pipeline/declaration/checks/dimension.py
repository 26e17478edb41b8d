"""Checks of a dimension, its parts and the references between them (S28)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.batch_values import placeholder_names
from scd_pipeline.declaration.begin import Begin
from scd_pipeline.declaration.change_types import CHANGE_TYPES
from scd_pipeline.declaration.checks.attribute import check_attributes, check_key
from scd_pipeline.declaration.checks.child_tables import check_child_tables
from scd_pipeline.declaration.checks.collect import NO_VERSIONS, ErrorCollector, field_path, lacks_windows
from scd_pipeline.declaration.checks.column_names import check_table_names
from scd_pipeline.declaration.checks.control_totals import check_control_totals
from scd_pipeline.declaration.checks.governance import check_governance, check_table_properties
from scd_pipeline.declaration.checks.mirror import check_mirror, valid_mirror
from scd_pipeline.declaration.checks.row_entities import check_row_entities
from scd_pipeline.declaration.checks.source import check_sources
from scd_pipeline.declaration.column_names import IS_DELETED, ROW_HASH, VERSION_STATE, WINDOW_COLUMNS
from scd_pipeline.declaration.defaults import expected_default
from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.names import (
    COLUMN_NAME_RULE,
    TABLE_NAME_RULE,
    default_surrogate_key,
    is_column_name,
    is_table_name,
)
from scd_pipeline.declaration.patterns import zone_letters
from scd_pipeline.declaration.profiles import DEFAULT_PROFILE, PROFILES
from scd_pipeline.declaration.source import Column, Source
from scd_pipeline.declaration.tables import HIST_SUFFIX
from scd_pipeline.declaration.times import OPEN_END, TIME_FORM, parse_time
from scd_pipeline.declaration.types import DataType, Decimal, Primitive, leaves, parse_type
from scd_pipeline.declaration.yaml.options import DIMENSION
from scd_pipeline.errors import DeclarationError
from scd_pipeline.texts import did_you_mean, is_text, join_names, short_repr

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
    "effective_from",
)
"""The audit's columns, without the business key and the surrogate keys before and after a transition."""
_COMPUTED = ("effective_at", "sequence")
"""The options of a channel that take an expression in place of a column."""
_WITHOUT_WINDOWS = (ScdType.RETAIN_ORIGINAL, ScdType.OVERWRITE, ScdType.ADD_ATTRIBUTE)
_NOT_FOR_REGULATED = {
    ScdType.RETAIN_ORIGINAL: "refuses new values",
    ScdType.OVERWRITE: "overwrites old values",
    ScdType.ADD_ATTRIBUTE: "overwrites all values but the latest two",
    ScdType.HYBRID: "overwrites the latest value in stored versions",
}
_REJECTED_SURROGATES = {
    "monotonically_increasing_id": "gives other keys at each load, and keys that are assigned already",
    "row_number": "gives other keys when deliveries arrive in another order",
    "identity": "gives other keys after a rebuild, so facts would store keys that no longer exist",
}
_TIME_TYPES = ("date", "timestamp", "timestamp_ntz")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_NEVER_ROUNDED = {"boolean", "binary"}


def check_dimension(dimension: Dimension) -> None:
    """Raise one DeclarationError with all errors of the dimension and its parts, if there are any."""
    is_named = isinstance(dimension.name, str) and is_table_name(dimension.name)
    errors = ErrorCollector(dimension.name if is_named else f"dimension {short_repr(dimension.name)}")
    draft = errors.check_kinds("", dimension, DIMENSION)
    set_frozen_fields(draft, business_key=check_key(errors, dimension.business_key))
    set_frozen_fields(draft, attributes=check_attributes(errors, dimension.attributes))
    set_frozen_fields(draft, sources=check_sources(errors, dimension.sources))
    set_frozen_fields(draft, mirror=valid_mirror(errors, dimension.mirror))
    set_frozen_fields(draft, column_names=check_table_names(errors, dimension.column_names))
    errors.choice("profile", draft.profile, tuple(PROFILES))
    if draft.profile not in PROFILES:
        set_frozen_fields(draft, profile=DEFAULT_PROFILE)
    set_frozen_fields(draft, business_key=draft.named_key)
    for check in _CHECKS:
        check(errors, draft)
    errors.raise_if_any()


def _check_names(errors: ErrorCollector, draft: Dimension) -> None:
    table: Any = draft.name
    is_named = isinstance(table, str) and is_table_name(table)
    if table is None or table == "":
        errors.add("MISSING_VALUE", "name", "is missing", "give the table's name, such as dim_customer")
    elif not is_named:
        errors.add("INVALID_NAME", "name", f"{short_repr(table)} cannot be the name of a table", TABLE_NAME_RULE)
    key: Any = draft.surrogate_key
    reported = not is_named and key == default_surrogate_key(table)  # invalid only because the table's name is
    if not reported and not (isinstance(key, str) and is_column_name(key)):
        errors.add("INVALID_NAME", "surrogate_key", f"{short_repr(key)} cannot be a name", COLUMN_NAME_RULE)
    if draft.group and not re.fullmatch(r"[A-Za-z0-9_]+", draft.group):
        errors.add(
            "INVALID_NAME", "group", f"{short_repr(draft.group)} cannot be a group", "write letters, digits and `_`"
        )


def _check_former_name(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that only a history has a former name, and that this is the name of another history."""
    former = draft.former_name
    if not former or errors.has("name"):
        return
    if not is_table_name(former):
        problem = f"{short_repr(former)} cannot be the name of a table"
        errors.add("INVALID_NAME", "former_name", problem, TABLE_NAME_RULE)
    elif draft.name.casefold() == former.casefold():
        problem = f"{former} is the present name"
        errors.add("NAME_IN_USE", "former_name", problem, "write the one before it, or remove it")
    elif names := [name for name in (draft.name, former) if not name.lower().endswith(HIST_SUFFIX)]:
        problem = f"{names[0]} is not the name of a history, which ends in {HIST_SUFFIX}"
        fix = "remove it: the tables of a base or of another dimension are not copied; load the deliveries again"
        errors.add("NOT_APPLICABLE", "former_name", problem, fix)


def _check_columns(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that no two columns of the table have the same name; case is ignored, as in Delta."""
    optional = {IS_DELETED: draft.has_deleted_versions, VERSION_STATE: draft.has_version_state}
    technical = (*TECHNICAL_COLUMNS, *(column for column, exists in optional.items() if exists))
    used_names = dict.fromkeys(technical, "is reserved for a column that the package adds")

    def claim(column: str, field: str, meaning: str) -> None:
        name = column.casefold()
        if name in used_names:
            errors.add("NAME_IN_USE", field, f"column {column} {used_names[name]}", "choose another name")
        used_names.setdefault(name, meaning)

    for column in draft.business_key:
        claim(column.name, "business_key", f"is in the business key as {column.name}")
    for attribute in draft.attributes:
        if attribute.name in draft.key_names:
            _report_key_attribute(errors, attribute)
        else:
            claim(attribute.name, f"attributes.{attribute.name}", f"is attribute {attribute.name}")
    key: Any = draft.surrogate_key
    if isinstance(key, str) and key != "surrogate_key":  # another check reports what is not text
        claim(key, "surrogate_key", "is the surrogate key")
    for generated, field, meaning in _generated_columns(draft):
        claim(generated, field, meaning)
    _check_former_names(errors, draft, used_names)


def _generated_columns(draft: Dimension) -> Iterator[tuple[str, str, str]]:
    """Yield the columns that attributes add, and those with declared names: name, field and meaning."""
    for attribute in draft.attributes:
        for generated in attribute.generated_columns:
            yield generated, f"attributes.{attribute.name}", f"belongs to attribute {attribute.name}"
    for column, name in draft.column_layout.names.items():
        if name and (name != column or column == ROW_HASH):
            yield name, f"column_names.{column}", f"is the name of {column}"


def _check_key_names(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that no key column has the name of another column of the audit."""
    key: Any = draft.surrogate_key
    used_names = {name.casefold() for name in audit_columns(key if isinstance(key, str) else "")}
    for name in draft.key_names:
        if name.casefold() in used_names:
            problem = f"column {name} is one of the audit, which also has the business key"
            errors.add("NAME_IN_USE", "business_key", problem, "choose another name")


def audit_columns(surrogate_key: str) -> tuple[str, ...]:
    """Return the names of the audit's columns, except the business key."""
    return (*AUDIT_COLUMNS, surrogate_key + "_old", surrogate_key + "_new")


def _report_key_attribute(errors: ErrorCollector, attribute: Attribute) -> None:
    code, problem = "NAME_IN_USE", "is in the business key too"
    fix = "remove it from `attributes` or from `business_key`"
    if attribute.personal:
        code, problem = "PERSONAL_KEY", "is personal and in the business key"
        fix = "a key remains after an erasure: choose a key that is not personal, or remove `personal`"
    errors.add(code, f"attributes.{attribute.name}", problem, fix)


def _check_former_names(errors: ErrorCollector, draft: Dimension, used_names: dict[str, str]) -> None:
    owners: dict[str, str] = {}
    attribute_names = {attribute.name.casefold() for attribute in draft.attributes}
    for attribute in draft.attributes:
        field = f"attributes.{attribute.name}.former_names"
        errors.unique(field, attribute.former_names)
        for name in dict.fromkeys(attribute.former_names):
            folded = name.casefold()
            owner = owners.setdefault(folded, attribute.name)
            if not is_column_name(name):
                errors.add("INVALID_NAME", field, f"{short_repr(name)} cannot be a name", COLUMN_NAME_RULE)
            elif folded in used_names:
                errors.add(
                    "NAME_IN_USE", field, f"{name} {used_names[folded]}", "name only columns that no longer exist"
                )
            elif owner != attribute.name:
                problem = f"{name} is a former name of {owner} too"
                errors.add("NAME_IN_USE", field, problem, "remove it from `former_names` of one of them")
            for generated in replace(attribute, name=name).generated_columns:
                if generated not in attribute.generated_columns and generated.casefold() in attribute_names:
                    problem = f"attribute {generated} has the name of a column that was generated for {name}"
                    errors.add("NAME_IN_USE", field, problem, "choose another name for that attribute")


def _check_source_names(errors: ErrorCollector, draft: Dimension) -> None:
    seen: dict[str, str] = {}
    for source in draft.sources:
        name = source.name.casefold()
        if name in seen:
            problem = f"{seen[name]} is a source already"
            errors.add("NAME_IN_USE", f"sources.{source.name}", problem, "choose another name")
        seen.setdefault(name, source.name)


def _check_existence(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that there is exactly one existence source (S30)."""
    if len(draft.sources) == 1:
        if draft.sources[0].existence is False:
            problem = "the only source decides whether an entity exists"
            errors.add(
                "EXISTENCE_SOURCE", f"sources.{draft.sources[0].name}.existence", problem, "remove it, or write true"
            )
        return
    existence_sources = [source.name for source in draft.sources if source.existence]
    fix = "write `existence: true` at exactly one source"
    if draft.sources and not existence_sources:
        errors.add("EXISTENCE_SOURCE", "sources", "none of the sources decides whether an entity exists", fix)
    if len(existence_sources) > 1:
        errors.add(
            "EXISTENCE_SOURCE", "sources", f"{join_names(existence_sources)} each decide whether an entity exists", fix
        )


def _check_attribute_sources(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that each attribute that is not retired has exactly one source (S30)."""
    names = [source.name for source in draft.sources]
    for attribute in draft.attributes:
        field = f"attributes.{attribute.name}"
        if names and attribute.source is not None and attribute.source not in names:
            problem = f"{short_repr(attribute.source)} is not a source of this dimension"
            errors.add("UNKNOWN_NAME", f"{field}.source", problem, did_you_mean(attribute.source, names))
            continue
        providing = _providing_sources(draft, attribute)
        if len(providing) > 1:
            fix = "name only one of them, in `source` of the attribute or in `attributes` of a source"
            errors.add("ATTRIBUTE_SOURCE", field, f"is provided by {join_names(providing)}", fix)
        elif names and not providing and not attribute.retired:
            errors.add("ATTRIBUTE_SOURCE", field, "has no source", f"write `source:` with one of {', '.join(names)}")


def _providing_sources(draft: Dimension, attribute: Attribute) -> list[str]:
    alone = len(draft.sources) == 1 and draft.sources[0].attributes is None
    providing = [
        source.name
        for source in draft.sources
        if alone or source.name == attribute.source or attribute.name in (source.attributes or ())
    ]
    return list(dict.fromkeys(providing))


def _check_source_attributes(errors: ErrorCollector, draft: Dimension) -> None:
    names = draft.attribute_names
    for source in draft.sources:
        field = f"sources.{source.name}"
        for name in dict.fromkeys(source.attributes or ()):
            if name not in names:
                errors.add(
                    "UNKNOWN_NAME",
                    f"{field}.attributes",
                    f"{short_repr(name)} is not an attribute",
                    did_you_mean(name, names),
                )
        provides_any = any(source.name in _providing_sources(draft, attribute) for attribute in draft.attributes)
        if names and not provides_any and len(draft.sources) > 1 and not source.existence:
            problem = "provides no attribute and does not decide existence"
            errors.add("UNUSED_SOURCE", field, problem, "name its `attributes`, or remove the source")


def _check_scopes(errors: ErrorCollector, draft: Dimension) -> None:
    types = {column.name: column.type for column in draft.delivered_key}
    for source in draft.sources:
        field = f"sources.{source.name}.snapshot.scope"
        for name in source.snapshot.scope if source.snapshot else ():
            if draft.business_key and name not in types and not errors.has("attributes"):
                _check_scope_attribute(errors, field, name, source, draft)
            if types.get(name) == "binary":
                problem = f"{name} is binary, which has no text for a scope"
                errors.add("INVALID_TYPE", field, problem, "use other columns")


def _check_scope_attribute(errors: ErrorCollector, field: str, name: str, source: Source, draft: Dimension) -> None:
    """Check an attribute by which a source scopes its snapshots."""
    own = [each for each in draft.attributes if source.name in _providing_sources(draft, each)]
    attribute, snapshot = next((each for each in own if each.name == name), None), source.snapshot
    if attribute is None:
        problem = f"{short_repr(name)} is neither in the business key nor an attribute of {source.name}"
        names = (*draft.delivered_key_names, *(each.name for each in own))
        errors.add("UNKNOWN_NAME", field, problem, did_you_mean(name, names))
        return
    options = ("effective_at", *(() if draft.landing else ("deletes",)))
    excluding = [option for option in options if snapshot is not None and getattr(snapshot, option)]
    if excluding:
        problem = (
            f"{name} is an attribute, which not every row of a snapshot with `{excluding[0]}` provides at its time"
        )
        fix = f"remove `{excluding[0]}`, or use columns of the business key"
        errors.add("CONFLICTING_OPTIONS", field, problem, fix)
    elif attribute.personal:
        problem = f"{name} is personal, and the log stores the scope of each delivery"
        errors.add("PERSONAL_SCOPE", field, problem, "use other columns")
    elif attribute in draft.mirrored_attributes:
        errors.add("NOT_APPLICABLE", field, f"a delivery may lack {name}", "declare its `type`, or use other columns")
    elif attribute.retired or attribute.missing != "reject":
        problem = f"a delivery may lack {name}"
        errors.add("NOT_APPLICABLE", field, problem, "write `missing: reject`, or use other columns")
    elif not isinstance(attribute.data_type, Primitive) or attribute.type == "binary":
        problem = f"{name} is of type {attribute.type}, which has no text for a scope"
        errors.add("INVALID_TYPE", field, problem, "use other columns")


def _computed_fix(source: Source, name: str) -> str:
    """Return how to write an expression whose result only an option of a channel reads; empty if none reads it."""
    reads = [option for _, channel in source.channels for option in _COMPUTED if getattr(channel, option) == name]
    return f"move its expression to the channel: `{reads[0]}: {{expression: ...}}`" if reads else ""


def _check_timed_tables(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that the business key is that of each timed table: its rows follow from the rows of the table by key."""
    for source in draft.sources:
        field = f"sources.{source.name}.timed_table"
        if source.timed_table is None or errors.has(field):
            continue
        key = source.timed_table.business_key
        columns = [name for column in map(source.column, draft.key_names) for name in column.from_[:1]]
        if draft.key_names and {name.casefold() for name in columns} != {name.casefold() for name in key}:
            problem = f"its business key is {join_names(key)}, which is not that of the dimension"
            fix = "read the business key from these columns, in `columns` of the source if the names differ"
            errors.add("CONFLICTING_OPTIONS", field, problem, fix)


def _check_landing_tables(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that the business key is read from columns of each landing table that removes rows.

    The delete of a row that it removes has these columns, and no others.
    """
    for source in draft.sources:
        table, field = source.landing_table, f"sources.{source.name}.landing_table"
        if table is None or errors.has(field) or table.disposition == "append":
            continue
        for key in draft.business_key:
            column = source.column(key.name)
            is_column = len(column.from_) == 1 and "." not in column.from_[0] and not column.expression
            if key.derived is not None or not is_column:
                problem = (
                    f"{key.name} of the business key is not read from one of its columns, by which a row that it no "
                    "longer has is found"
                )
                fix = "declare a column of the landing table as the key, and compute others as attributes"
                errors.add("CONFLICTING_OPTIONS", field, problem, fix)


def _check_source_columns(errors: ErrorCollector, draft: Dimension) -> None:
    if not draft.business_key or errors.has("attributes"):  # the names cannot be resolved
        return
    types = _column_types(draft)
    for source in draft.sources:
        for name, column in source.columns.items():
            field = field_path(f"sources.{source.name}.columns", name)
            if name not in types:
                problem = f"{short_repr(name)} is neither an attribute nor in the business key"
                errors.add("UNKNOWN_NAME", field, problem, _computed_fix(source, name) or did_you_mean(name, types))
                continue
            _check_column_source(errors, field, source, name, draft)
            if column.not_provided_values and name in draft.key_names:
                problem = f"each row provides {name}, which is in the business key"
                errors.add("NOT_APPLICABLE", f"{field}.not_provided_values", problem, "remove it, or write null_values")
            _check_batch_values(errors, field, column, name, draft)
            data_type = types[name]
            if data_type is None:
                continue
            expected = None if column.default is None else expected_default(data_type, column.default)
            if expected is not None:
                problem = f"{short_repr(column.default)} does not fit type {data_type.ddl()}"
                errors.add("INVALID_DEFAULT", f"{field}.default", problem, f"give {expected}")
            _check_conversion(errors, field, column, name, data_type)
            _check_text_form(errors, field, column, name, data_type)


def _check_batch_values(errors: ErrorCollector, field: str, column: Column, name: str, draft: Dimension) -> None:
    """Check that no value that differs from delivery to delivery identifies an entity or opens a version (S13)."""
    opens = [attribute.name for attribute in draft.attributes if attribute.opens_versions or draft.is_whole_row]
    if name not in (*draft.key_names, *opens) or not placeholder_names(column.expression or ""):
        return
    problem = f"each delivery would open a version, as it has another value of {name}"
    fix = "remove the placeholder, or declare the attribute with type 0 or 1"
    if name in draft.key_names:
        problem, fix = f"each delivery has another value of {name}, which is in the business key", "use other columns"
    errors.add("NOT_APPLICABLE", f"{field}.expression", problem, fix)


def _check_conversion(errors: ErrorCollector, field: str, column: Column, name: str, data_type: DataType) -> None:
    """Check that a pattern or a unit reads a date or a time, and a zone only a type with a zone (S1)."""
    times = f"remove it, or declare {name} as {' or '.join(_TIME_TYPES)}"
    if column.format is not None and data_type.ddl() not in _TIME_TYPES:
        problem = f"a format reads text as a date or a time, and {name} is of type {data_type.ddl()}"
        errors.add("NOT_APPLICABLE", f"{field}.format", problem, times)
    elif data_type.ddl() == "timestamp_ntz" and (zone := zone_letters(column.format or "")):
        problem = f"{zone} reads a zone, and {name} is of type timestamp_ntz, which has none"
        errors.add("NOT_APPLICABLE", f"{field}.format", problem, f"omit it, or declare {name} as timestamp")
    names = {leaf.ddl() for leaf in leaves(data_type) if isinstance(leaf, Primitive)}
    if column.unit is not None and not names & set(_TIME_TYPES):
        errors.add(
            "NOT_APPLICABLE",
            f"{field}.unit",
            f"a unit reads a number as a time, and {name} is of type {data_type.ddl()}",
            times,
        )
    if column.round and not any(isinstance(leaf, Decimal) for leaf in leaves(data_type)) and names <= _NEVER_ROUNDED:
        problem = f"a value of type {data_type.ddl()} has no digits that could be rounded"
        errors.add(
            "NOT_APPLICABLE", f"{field}.round", problem, "remove it, or declare a number, a date, a time or text"
        )


def _check_text_form(errors: ErrorCollector, field: str, column: Column, name: str, data_type: DataType) -> None:
    """Check that separators read a number, and texts of flags a boolean."""
    has_separators = column.decimal != "." or column.grouping
    if has_separators and not isinstance(data_type, Decimal) and data_type.ddl() not in _NUMBERS:
        option = "grouping" if column.grouping else "decimal"
        problem = f"a separator is part of a number, and {name} is of type {data_type.ddl()}"
        errors.add("NOT_APPLICABLE", f"{field}.{option}", problem, f"remove it, or declare {name} as a number")
    if column.true_values and data_type.ddl() != "boolean":
        problem = f"the texts mean true, and {name} is of type {data_type.ddl()}"
        errors.add("NOT_APPLICABLE", f"{field}.true_values", problem, f"remove them, or declare {name} as boolean")


def _check_column_source(errors: ErrorCollector, field: str, source: Source, name: str, draft: Dimension) -> None:
    sources = {attribute.name: _providing_sources(draft, attribute) for attribute in draft.attributes}
    if sources.get(name) and source.name not in sources[name]:
        owner = sources[name][0]
        fix = f"move it to `sources.{owner}.columns`, or declare {source.name} as the source of {name}"
        errors.add("ATTRIBUTE_SOURCE", field, f"{name} belongs to source {owner}", fix)


def _column_types(draft: Dimension) -> dict[str, DataType | None]:
    texts = {key.name: key.type for key in draft.delivered_key}
    texts |= {attribute.name: attribute.type for attribute in draft.attributes if not attribute.derived}
    return {name: _type_or_none(text) for name, text in texts.items()}


def _type_or_none(text: Any) -> DataType | None:
    try:
        return parse_type(text)
    except DeclarationError:  # the check of the attribute reports it
        return None


def _check_column_names(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that the table has the generated columns whose names are declared."""
    is_without_windows = lacks_windows(errors, draft)
    for column in draft.column_names:
        field = f"column_names.{column}"
        if is_without_windows and column in WINDOW_COLUMNS:
            errors.add("NOT_APPLICABLE", field, f"{NO_VERSIONS}, and no such column", "remove it")
        elif column == IS_DELETED and not draft.has_deleted_versions:
            fix = "write `deleted_rows: new_version`, or remove it"
            errors.add("NOT_APPLICABLE", field, "the table has no such column", fix)
        elif column == "deleted_at" and not draft.deleted_at:
            errors.add(
                "NOT_APPLICABLE", field, "the table has no such column", "write `deleted_at: true`, or remove it"
            )


def _check_change_types(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that each change type has a label of its own, and each state of a version too."""
    declared: Any = draft.change_types
    if not isinstance(declared, Mapping):
        problem = f"{short_repr(declared)} is not a mapping"
        errors.add("INVALID_KIND", "change_types", problem, "write a mapping of change types to labels")
        return
    used_labels: dict[object, str] = {}
    for change_type in dict.fromkeys((*declared, *CHANGE_TYPES)):
        field, label = field_path("change_types", change_type), draft.audit_label(change_type)
        if change_type not in CHANGE_TYPES:
            problem = f"{short_repr(change_type)} is not a change type"
            errors.add("UNKNOWN_NAME", field, problem, did_you_mean(change_type, CHANGE_TYPES))
        elif not (isinstance(label, str) and is_text(label) and label.strip()):
            errors.add("INVALID_NAME", field, f"{short_repr(label)} cannot be a label", "write a text")
        elif (other := used_labels.setdefault(label, change_type)) != change_type:
            errors.add("NAME_IN_USE", field, f"{short_repr(label)} is the label of {other} too", "choose another label")
    states = draft.version_states if draft.has_version_state else {}
    for change_type, state in states.items():
        if change_type not in draft.audit_labels and used_labels.get(state) in states:
            problem = f"{short_repr(state)}, the version state of {change_type}, is the label of {used_labels[state]}"
            errors.add("NAME_IN_USE", field_path("change_types", change_type), problem, "declare a label for it")


def _check_surrogate(errors: ErrorCollector, draft: Dimension) -> None:
    if draft.surrogate in _REJECTED_SURROGATES:
        problem = f"{draft.surrogate} {_REJECTED_SURROGATES[draft.surrogate]}"
        errors.add("NOT_ALLOWED", "surrogate", problem, "write hash, or remove it")
    else:
        errors.choice("surrogate", draft.surrogate, ("hash",))


def _check_history_table(errors: ErrorCollector, draft: Dimension) -> None:
    if draft.history_table and lacks_windows(errors, draft):
        errors.add("NOT_APPLICABLE", "history_table", NO_VERSIONS, "remove it")


def _check_archive(errors: ErrorCollector, draft: Dimension) -> None:
    if draft.archive_after_years is None:
        return
    if lacks_windows(errors, draft):
        errors.add("NOT_APPLICABLE", "archive_after_years", NO_VERSIONS, "remove it")
    elif draft.history_table:
        problem = "the history table has every closed version already"
        fix = "remove it, or remove `history_table`, which only a new table can have"
        errors.add("CONFLICTING_OPTIONS", "archive_after_years", problem, fix)


def _check_history_columns(errors: ErrorCollector, draft: Dimension) -> None:
    errors.choice("history_columns", draft.history_columns, ("all", "changing"))
    if draft.history_columns != "changing" or errors.has("history_columns"):
        return
    if not draft.history_table:
        problem = "the dimension has no history table"
        errors.add("NOT_APPLICABLE", "history_columns", problem, "add `history_table: true`, or remove it")
    elif not errors.has("attributes") and not draft.common_columns:
        problem = "every attribute can have another value in each version"
        errors.add("NOT_APPLICABLE", "history_columns", problem, "remove it")


def _check_regulated(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that each value of a regulated attribute stays in the history."""
    if draft.regulated and draft.mirror is not None and draft.mirror.scd in _NOT_FOR_REGULATED:
        problem = (
            f"type {int(draft.mirror.scd)} {_NOT_FOR_REGULATED[draft.mirror.scd]}, and the attributes are regulated"
        )
        errors.add("INVALID_SCD_TYPE", "mirror.scd", problem, "write 2")
    for attribute in draft.attributes:
        if (draft.regulated or attribute.regulated) and attribute.scd in _NOT_FOR_REGULATED:
            problem = f"type {int(attribute.scd)} {_NOT_FOR_REGULATED[attribute.scd]}, and the attribute is regulated"
            errors.add("INVALID_SCD_TYPE", f"attributes.{attribute.name}.scd", problem, "write 2")


def _check_single_type(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that the attributes have one SCD type if it is stated that this is intended."""
    types = sorted({int(a.scd) for a in draft.attributes if isinstance(a.scd, ScdType) and not a.retired})
    if draft.single_scd_type and len(types) > 1:
        problem = f"the attributes have the types {join_names([str(scd) for scd in types])}"
        errors.add("NOT_APPLICABLE", "single_scd_type", problem, "remove it")


def _check_rapid_change_limit(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that the limit is a share, and that the table has versions."""
    limit = draft.rapid_change_limit
    if limit is None:
        return
    if not limit >= 0:
        problem = f"{short_repr(limit)} is not a share"
        errors.add("OUT_OF_RANGE", "rapid_change_limit", problem, "give a share, such as 0.5 for half of the entities")
    if not errors.has("attributes") and not draft.has_windows:
        errors.add("NOT_APPLICABLE", "rapid_change_limit", NO_VERSIONS, "remove it")


def _check_z_order(errors: ErrorCollector, draft: Dimension) -> None:
    errors.choice("z_order", draft.z_order, ("automatic", "always", "never"))


def _check_untracked(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that a table with values for each version has versions."""
    for attribute in draft.attributes if not draft.has_windows else ():
        if attribute.untracked is not None and attribute.scd is ScdType.OVERWRITE:
            errors.add("NOT_APPLICABLE", f"attributes.{attribute.name}.untracked", NO_VERSIONS, "remove it")


def _check_deletes(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that the options for rows of deleted entities fit a table with windows (S18), or one without (S33)."""
    errors.choice("deleted_rows", draft.deleted_rows, ("keep", "remove", "new_version"))
    values = {"deleted_rows": draft.deleted_rows == "remove", "deleted_at": draft.deleted_at}
    for option in (option for option, is_declared in values.items() if is_declared):
        if draft.has_windows:
            problem = "a table with attributes of type 2 or 6 closes the version of a deleted entity"
            errors.add("NOT_APPLICABLE", option, problem, "remove it: it is for tables with types 0, 1 and 3 only")
    if draft.deleted_rows == "new_version" and lacks_windows(errors, draft):
        errors.add("NOT_APPLICABLE", "deleted_rows", NO_VERSIONS, "write keep or remove")
    if draft.deleted_at and draft.deleted_rows == "remove":
        errors.add(
            "CONFLICTING_OPTIONS",
            "deleted_at",
            "the rows of deleted entities are removed",
            "write `deleted_rows: keep`, or remove it",
        )


def _check_times(errors: ErrorCollector, draft: Dimension) -> None:
    """Check the open end, and the start of histories (S29)."""
    open_end = parse_time(draft.computed_open_end)
    if open_end is None:
        errors.add("NO_ISO_TIME", "open_end", f"{short_repr(draft.open_end)} is not a time", TIME_FORM)
    begin: Any = draft.begin
    if begin is None:
        return
    is_without_windows = all(attribute.scd in _WITHOUT_WINDOWS for attribute in draft.attributes)
    if not errors.has("attributes") and is_without_windows and not draft.has_windows:
        problem = "without attributes of type 2 or 6 there are no windows: each row begins at 0001-01-01 already"
        errors.add("NOT_APPLICABLE", "begin", problem, "remove it")
        return
    if not isinstance(begin, Begin):
        errors.add(
            "INVALID_KIND",
            "begin",
            f"{short_repr(begin)} is not a beginning",
            "give `at` and `for_first_changes_until`, or `column`",
        )
        return
    if begin.column:
        _check_begin_column(errors, draft, begin)
        return
    at, until = parse_time(begin.at), parse_time(begin.for_first_changes_until)
    for option, text, time in (
        ("at", begin.at, at),
        ("for_first_changes_until", begin.for_first_changes_until, until),
    ):
        if time is None:
            errors.add("NO_ISO_TIME", f"begin.{option}", f"{short_repr(text)} is not a time", TIME_FORM)
    if at and open_end and at >= open_end:
        problem = f"{begin.at} is not before the open end {draft.computed_open_end}"
        errors.add("TIME_ORDER", "begin.at", problem, "give an earlier time")
    if at and until and until < at:
        problem = f"{begin.for_first_changes_until} is before the beginning {begin.at}"
        errors.add("TIME_ORDER", "begin.for_first_changes_until", problem, "give a time at or after `at`")


def _check_begin_column(errors: ErrorCollector, draft: Dimension, begin: Begin) -> None:
    """Check the attribute at whose value histories begin (S29)."""
    if begin.at or begin.for_first_changes_until != OPEN_END:
        problem = "each entity has a start of its own, and there is a fixed one too"
        errors.add("CONFLICTING_OPTIONS", "begin", problem, "give either `column`, or `at`")
    attribute = next((each for each in draft.attributes if each.name == begin.column), None)
    if errors.has("attributes"):
        return
    if attribute is None:
        problem = f"{short_repr(begin.column)} is not an attribute"
        fix = did_you_mean(begin.column, [each.name for each in draft.attributes]) or "declare it in `attributes`"
        errors.add("UNKNOWN_NAME", "begin.column", problem, fix)
    elif attribute.type not in _TIME_TYPES:
        problem = f"{attribute.name} is of type {attribute.type}"
        errors.add("INVALID_TYPE", "begin.column", problem, f"declare it as {' or '.join(_TIME_TYPES)}")
    elif attribute.personal:
        problem = f"{attribute.name} is personal, and the start of a history remains after an erasure"
        errors.add("PERSONAL_BEGIN", "begin.column", problem, "choose an attribute that is not personal")


_CHECKS: tuple[Callable[[ErrorCollector, Any], None], ...] = (
    _check_names,
    _check_former_name,
    _check_columns,
    _check_key_names,
    _check_source_names,
    _check_existence,
    _check_attribute_sources,
    check_mirror,
    check_row_entities,
    _check_source_attributes,
    _check_scopes,
    check_control_totals,
    _check_timed_tables,
    _check_landing_tables,
    _check_source_columns,
    _check_column_names,
    _check_change_types,
    _check_surrogate,
    _check_history_table,
    _check_history_columns,
    _check_archive,
    _check_regulated,
    _check_single_type,
    _check_rapid_change_limit,
    _check_z_order,
    _check_untracked,
    _check_deletes,
    _check_times,
    check_child_tables,
    check_governance,
    check_table_properties,
)
