"""Checks of single key columns and attributes."""

from __future__ import annotations

from typing import Any

from scd_pipeline.declaration.attribute import MISSING, ON_BAD_VALUE, PREVIOUS, UNTRACKED, Attribute, ScdType
from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.checks.column_names import check_attribute_names
from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.key import KeyColumn
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, is_column_name
from scd_pipeline.declaration.types import Decimal, Primitive, parse_type
from scd_pipeline.declaration.yaml.options import ATTRIBUTE
from scd_pipeline.errors import DeclarationError
from scd_pipeline.texts import did_you_mean, short_repr

_UNSUPPORTED_TYPES = {
    4: (
        "type 4 is the layout of a table (closed versions in a table of their own), not an SCD type of an attribute",
        "write 2 for an attribute that opens versions",
    ),
    5: (
        "type 5 is not supported",
        "write 6 for an attribute with its historical and its latest value in every version",
    ),
    7: (
        "type 7 is a kind of table that is not built, not an SCD type of an attribute",
        "write 2 or 6, and query the dimension as of a time",
    ),
}
_TYPES = "write 0, 1, 2, 3 or 6"
_MAPPING = "write a mapping of names to SCD types or attributes"
_OPTIONS_WITHOUT_TYPE = {
    option: kind for option, kind in ATTRIBUTE.items() if option != "type"
}  # `type` has a separate check


def check_key(errors: ErrorCollector, key: Any) -> tuple[KeyColumn, ...]:
    """Return the valid key columns, for later checks."""
    if key is None or key == ():
        errors.add("MISSING_VALUE", "business_key", "is missing", "name the columns that identify an entity")
        return ()
    if not isinstance(key, tuple):
        fix = "write a name, a list of names, or a mapping of names to types"
        errors.add("INVALID_KIND", "business_key", f"{short_repr(key)} is not a key", fix)
        return ()
    return tuple(column for column in key if _is_key_column(errors, column))


def _is_key_column(errors: ErrorCollector, column: Any) -> bool:
    if not isinstance(column, KeyColumn):
        fix = "write a name, a list of names, or a mapping of names to types"
        errors.add("INVALID_KIND", "business_key", f"{short_repr(column)} is not a key column", fix)
        return False
    if column.derived is None and not _is_name(errors, "business_key", column.name):
        return False
    path = f"business_key.{column.name}"
    if _is_type(errors, path, column.type) and not isinstance(parse_type(column.type), (Primitive, Decimal)):
        errors.add(
            "INVALID_TYPE", path, f"type {column.type} cannot be in a key", "write a type without parts, such as string"
        )
    return True


def check_attributes(errors: ErrorCollector, attributes: Any) -> tuple[Attribute, ...]:
    """Return the valid attributes, for later checks."""
    if not isinstance(attributes, tuple):
        errors.add("INVALID_KIND", "attributes", f"{short_repr(attributes)} is not a mapping", _MAPPING)
        return ()
    drafts = [_check_attribute(errors, attribute) for attribute in attributes]
    return tuple(draft for draft in drafts if draft is not None)


def _check_attribute(errors: ErrorCollector, attribute: Any) -> Attribute | None:
    if not isinstance(attribute, Attribute):
        errors.add("INVALID_KIND", "attributes", f"{short_repr(attribute)} is not an attribute", _MAPPING)
        return None
    if not _is_name(errors, "attributes", attribute.name):
        return None
    path = f"attributes.{attribute.name}"
    draft = errors.check_kinds(path, attribute, _OPTIONS_WITHOUT_TYPE)
    check_scd(errors, f"{path}.scd", draft.scd)
    _is_type(errors, f"{path}.type", draft.type)
    if draft.previous and isinstance(draft.scd, ScdType) and draft.scd != ScdType.HYBRID:
        problem = f"type {int(draft.scd)} does not allow `previous`"
        errors.add(
            "NOT_APPLICABLE",
            f"{path}.previous",
            problem,
            "write scd: 6, or remove it (type 3 always has its previous value)",
        )
    if isinstance(draft.previous, str) and draft.previous not in PREVIOUS:
        problem, allowed = f"{short_repr(draft.previous)} is not allowed", ("true", "false", *PREVIOUS)
        errors.add("NOT_ALLOWED", f"{path}.previous", problem, did_you_mean(draft.previous, allowed))
    if draft.untracked is not None:
        errors.choice(f"{path}.untracked", draft.untracked, UNTRACKED)
        if isinstance(draft.scd, ScdType) and draft.scd != ScdType.OVERWRITE:
            problem = f"type {int(draft.scd)} does not allow `untracked`"
            errors.add("NOT_APPLICABLE", f"{path}.untracked", problem, "write scd: 1, or remove it")
    set_frozen_fields(draft, column_names=check_attribute_names(errors, path, draft))
    _check_fallbacks(errors, path, draft)
    return draft


def _check_fallbacks(errors: ErrorCollector, path: str, draft: Attribute) -> None:
    """Check the options for a missing column and for a bad value."""
    declared = {"missing": (draft.missing, MISSING), "on_bad_value": (draft.on_bad_value, ON_BAD_VALUE)}
    for option, (choice, choices) in declared.items():
        field = f"{path}.{option}"
        errors.choice(field, choice, choices)
        if draft.retired and choice != choices[0]:
            errors.add(
                "CONFLICTING_OPTIONS",
                field,
                "a retired attribute is no longer read",
                f"remove either `{option}` or `retired`",
            )
        elif draft.required and choice == "null":
            errors.add(
                "CONFLICTING_OPTIONS",
                field,
                "a required attribute cannot become NULL",
                f"remove either `{option}` or `required`",
            )


def check_scd(errors: ErrorCollector, field: str, scd: Any) -> None:
    """Check the SCD type of an attribute."""
    if isinstance(scd, ScdType):
        return
    if scd is None:
        errors.add("MISSING_VALUE", field, "is missing", _TYPES)
        return
    is_number = isinstance(scd, int) and not isinstance(scd, bool)
    if is_number and scd in _UNSUPPORTED_TYPES:
        errors.add("INVALID_SCD_TYPE", field, *_UNSUPPORTED_TYPES[scd])
    else:
        errors.add("INVALID_SCD_TYPE", field, f"{short_repr(scd)} is not an SCD type", _TYPES)


def _is_name(errors: ErrorCollector, field: str, name: Any) -> bool:
    if isinstance(name, str) and is_column_name(name):
        return True
    errors.add("INVALID_NAME", field_path(field, name), f"{short_repr(name)} cannot be a name", COLUMN_NAME_RULE)
    return False


def _is_type(errors: ErrorCollector, field: str, text: Any) -> bool:
    try:
        parse_type(text)
    except DeclarationError as error:
        errors.add(error.errors[0].code, field, error.errors[0].problem, error.errors[0].fix)
        return False
    return True
