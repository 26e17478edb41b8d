"""Checks of child tables (S40)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scd_pipeline.declaration.checks.collect import ErrorCollector
from scd_pipeline.declaration.child_tables import JOINED_WINDOW, ChildTable, child_name, child_tables, element_type
from scd_pipeline.declaration.names import TABLE_NAME_RULE, is_table_name
from scd_pipeline.texts import did_you_mean, short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.attribute import Attribute
    from scd_pipeline.declaration.dimension import Dimension

_OPTION = "child_tables"


def check_child_tables(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that each path leads to an array of structs, and that names of tables and columns are unique."""
    if errors.has("attributes") or errors.has("name"):
        return
    errors.unique(_OPTION, draft.child_tables)
    attributes = {attribute.name: attribute for attribute in draft.attributes}
    used_names: dict[str, str] = {}
    for path in dict.fromkeys(draft.child_tables):
        if (other := used_names.setdefault(child_name(draft.name, path).casefold(), path)) != path:
            problem = f"{path} and {other} would have the same table {child_name(draft.name, path)}"
            errors.add("NAME_IN_USE", _OPTION, problem, "remove one of them, or rename the attribute")
        if not _is_mirrored_later(draft, path.split(".")[0]):
            _check_path(errors, draft, path, attributes)
        if not is_table_name(child_name(draft.name, path)):
            problem = f"{short_repr(child_name(draft.name, path))} cannot be the name of a table"
            errors.add("INVALID_NAME", _OPTION, problem, f"{TABLE_NAME_RULE}; rename the attribute")
    if not errors.has(_OPTION):
        for child in child_tables(draft):
            _check_columns(errors, draft, child)


def _is_mirrored_later(draft: Dimension, attribute: str) -> bool:
    """Return whether an attribute may come with a delivery: its type is not declared (S36)."""
    return draft.mirror is not None and attribute not in draft.attribute_names


def _check_path(errors: ErrorCollector, draft: Dimension, path: str, attributes: dict[str, Attribute]) -> None:
    name, *fields = path.split(".")
    parent = path.rpartition(".")[0]
    if name not in attributes:
        problem = f"{short_repr(name)} is not an attribute"
        errors.add("UNKNOWN_NAME", _OPTION, problem, did_you_mean(name, list(attributes)))
    elif errors.has(f"attributes.{name}.type"):
        return
    elif element_type(attributes[name].data_type, fields) is None:
        problem = f"{path} is not an array of structs in type {attributes[name].type}"
        errors.add("INVALID_TYPE", _OPTION, problem, "name an array of structs, or a field of its elements that is one")
    elif parent and parent not in draft.child_tables:
        problem = f"{path} has no parent table: {parent} is not in the list"
        errors.add("MISSING_VALUE", _OPTION, problem, f"add {parent}")


def _check_columns(errors: ErrorCollector, draft: Dimension, child: ChildTable) -> None:
    """Check that no two columns of a child table have one name, nor a field that of a column of the window."""
    windows = [name for column in JOINED_WINDOW if (name := draft.column_layout.name(column))]
    used_names = {name.casefold() for name in windows} if draft.has_windows else set[str]()
    for name, _, _ in child.columns:
        if name.casefold() in used_names:
            problem = f"{child.name} would have two columns {name}"
            errors.add("NAME_IN_USE", _OPTION, problem, "rename the attribute or the field, or remove it from the list")
        used_names.add(name.casefold())
