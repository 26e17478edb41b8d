"""Mirrored attributes: all columns of a source as attributes, which it gains and loses (S36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scd_pipeline.declaration.attribute import Attribute, Missing, ScdType, scd_type
from scd_pipeline.declaration.frozen import (
    FrozenMapping,
    as_tuple,
    checked_arguments,
    frozen_mapping,
    set_frozen_fields,
)
from scd_pipeline.declaration.types import common_type, parse_type

MIRROR = "mirror"
"""The value of `attributes` that stands for a mirror with its defaults."""


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Mirror:
    """All columns of the source as attributes, with their types (S36).

    A column is not mirrored if it is in the business key, if the declaration of the source or of the channel reads it,
    or if it is technical. An attribute that `attributes` declares without a type is mirrored with its other options.

    - `scd`: the SCD type of the attributes that `attributes` does not declare
    - `technical`: columns that are not read, such as a load time or a hash of the source, in addition to those of the
      profile
    - `former_names`: for a renamed column, its former name or names by its present one; without it, a renamed column is
      one that disappears and another one that appears
    - `attributes`: the mirrored attributes that the dimension declares, which sets them
    - `missing`: the effect of a delivery that lacks the column of an attribute; the rows of a landing table have NULL
    """

    scd: ScdType = ScdType.ADD_ROW
    technical: tuple[str, ...] = ()
    former_names: Mapping[str, tuple[str, ...]] = FrozenMapping({})
    attributes: tuple[Attribute, ...] | None = None
    missing: Missing = "not_provided"

    def __init__(
        self,
        scd: ScdType | int = ScdType.ADD_ROW,
        technical: str | Sequence[str] = (),
        former_names: Mapping[str, str | Sequence[str]] | None = None,
        attributes: Sequence[Attribute] | None = None,
        missing: Missing = "not_provided",
    ) -> None:
        set_frozen_fields(self, scd=scd_type(scd), technical=as_tuple(technical), missing=missing)
        set_frozen_fields(self, former_names=_former_names(former_names))
        set_frozen_fields(self, attributes=None if attributes is None else tuple(attributes))

    @property
    def opens_versions(self) -> bool:
        """Whether a different value of a mirrored attribute would open a version, if the source has its column."""
        return any(attribute.opens_versions for attribute in (Attribute(self.scd), *(self.attributes or ())))

    def attribute(self, name: str, data_type: str, retired_at: str = "") -> Attribute:
        """Return the attribute of a column.

        A delivery may lack the column, unless the attribute is NULL then.

        Args:
            name: The present name of the column.
            data_type: Its type.
            retired_at: The time of the delivery since which the source lacks the column, if it does.
        """
        declared = {each.name.casefold(): each for each in self.attributes or ()}
        attribute = declared.get(name.casefold(), Attribute(self.scd, name=name))
        renamed = {new.casefold(): names for new, names in self.former_names.items()}
        former_names = dict.fromkeys((*attribute.former_names, *renamed.get(name.casefold(), ())))
        has_declared_rule = attribute.retired or attribute.missing == "null"
        missing: Missing = attribute.missing if has_declared_rule else self.missing
        attribute = replace(attribute, type=data_type, former_names=tuple(former_names))
        return replace(attribute, missing=missing, retired_at=retired_at)

    def with_former_names(self, names: Mapping[str, str]) -> Mirror:
        """Return the mirror with further former names, each with the name that replaced it."""
        added: dict[str, tuple[str, ...]] = dict(self.former_names)
        for former, name in names.items():
            present = self.current_name(name)
            is_former = former.casefold() != present.casefold()  # unless the column was renamed back
            if is_former and former not in added.get(present, ()):
                added[present] = (*added.get(present, ()), former)
        return replace(self, former_names=added)

    def current_name(self, name: str) -> str:
        """Return the present name of a column, which may be a former one."""
        declared = {former: each.name for each in self.attributes or () for former in each.former_names}
        renamed = {former: new for new, names in self.former_names.items() for former in names} | declared
        present = {new.casefold(): new for new in renamed.values()}
        present |= {former.casefold(): new for former, new in renamed.items()}
        return present.get(name.casefold(), name)

    def age_of_name(self, name: str) -> int:
        """Return how many names a column has had since this one: 0 for the present name."""
        present = self.current_name(name)
        names = (present, *self.attribute(present, "string").former_names)
        return [each.casefold() for each in names].index(name.casefold())


def mirrored_type(delivered: str) -> str:
    """Return the type of the attribute for a delivered type: the same, except that a double has all values of a float.

    A float is a double from the start, because the text of its values would be another one after a change to a double.

    Raises:
        DeclarationError: No attribute can have the type.
    """
    data_type = parse_type(delivered).ddl()
    return "double" if data_type == "float" else data_type


def merge_types(
    stored: Mapping[str, str], delivered: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Return the types of the mirrored columns after a delivery, and those that cannot be merged (`common_type`).

    Args:
        stored: The types of the columns before the delivery.
        delivered: The types of the columns of the delivery.

    Returns:
        The type of each column by its name, and the stored and the delivered type of each column without a common one.
    """
    names = {name.casefold(): name for name in stored}
    types, changed = dict(stored), dict[str, tuple[str, str]]()
    for name, data_type in delivered.items():
        present = names.get(name.casefold(), name)
        before = stored.get(present, data_type)
        merged = common_type(parse_type(before), parse_type(data_type))
        if merged is None:
            changed[name] = (before, data_type)
        else:
            types[present] = merged.ddl()
    return types, changed


def _former_names(declared: Any) -> Any:
    """Return the former names as tuples; anything else unchanged, for the checks to reject."""
    mapping = frozen_mapping(declared)
    if not isinstance(mapping, FrozenMapping):
        return mapping
    return FrozenMapping({name: as_tuple(names) for name, names in mapping.items()})
