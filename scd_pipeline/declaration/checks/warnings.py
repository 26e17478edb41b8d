"""Warnings of valid declarations: what is allowed, but rarely intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scd_pipeline.declaration.attribute import ScdType
from scd_pipeline.declaration.profiles import PROFILES
from scd_pipeline.declaration.times import NULL_OPEN_END, OPEN_END
from scd_pipeline.errors import DeclarationWarning

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

_ALTERNATIVES = {
    ScdType.RETAIN_ORIGINAL: "declare 1 or 2 for attributes whose changes matter",
    ScdType.OVERWRITE: "declare 2 for attributes whose history reports need",
    ScdType.ADD_ROW: "declare 1 for attributes whose history no report needs, as each of their changes opens a version",
    ScdType.ADD_ATTRIBUTE: "declare 1 for attributes whose previous value no report needs",
    ScdType.HYBRID: "declare 1 or 2 for attributes of which reports need the latest or the historical value only",
}


def dimension_warnings(dimension: Dimension) -> tuple[DeclarationWarning, ...]:
    """Return the warnings of a valid dimension."""
    return (*_one_scd_type(dimension), *_null_open_end(dimension))


def _one_scd_type(dimension: Dimension) -> tuple[DeclarationWarning, ...]:
    """Return a warning if all attributes have one SCD type, which was probably not chosen for each of them.

    It was if `single_scd_type` states it, if the attributes are mirrored, if a row is the entity, if all of them are
    regulated (which leaves no choice), or if there is only one attribute.
    """
    attributes = [attribute for attribute in dimension.attributes if not attribute.retired]
    types = {attribute.scd for attribute in attributes}
    is_regulated = all(dimension.regulated or attribute.regulated for attribute in attributes)
    is_chosen = dimension.single_scd_type or dimension.mirror is not None or dimension.has_row_entities
    if len(attributes) < 2 or len(types) > 1 or is_regulated or is_chosen:
        return ()
    (scd,) = types
    problem = f"all {len(attributes)} attributes have SCD type {int(scd)}; expected a type chosen for each attribute"
    fix = f"{_ALTERNATIVES[scd]}, or write `single_scd_type: true`"
    location = dimension.origin or dimension.name
    return (DeclarationWarning("SINGLE_SCD_TYPE", location, "attributes", problem, fix),)


def _null_open_end(dimension: Dimension) -> tuple[DeclarationWarning, ...]:
    """Return a warning if the declaration itself makes the open end NULL, and not a profile for other tools."""
    if not dimension.has_windows or dimension.open_end != NULL_OPEN_END:
        return ()
    if PROFILES[dimension.profile].open_end == NULL_OPEN_END:
        return ()
    column = dimension.column_layout.required_name("effective_to")
    problem = f"`{column}` of a current version is NULL; expected a time, such as {OPEN_END}"
    fix = (
        f"remove it before the first load, because `{column} > t` is never true for NULL and views show NULL in any "
        "case, or declare the `profile` of a tool that needs it"
    )
    return (DeclarationWarning("NULL_OPEN_END", dimension.origin or dimension.name, "open_end", problem, fix),)
