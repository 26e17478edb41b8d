"""Checks of mirrored attributes (S36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.checks.attribute import check_scd
from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.frozen import FrozenMapping, set_frozen_fields
from scd_pipeline.declaration.mirror import Mirror
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, is_column_name
from scd_pipeline.declaration.yaml.options import MIRROR
from scd_pipeline.texts import short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

_FORMER_NAMES = "write a mapping of the present name to a former name, or to a list of them"


def valid_mirror(errors: ErrorCollector, mirror: Any) -> Mirror | None:
    """Return the valid part of a mirror, for later checks; None without one."""
    if mirror is None:
        return None
    if not isinstance(mirror, Mirror):
        errors.add("INVALID_KIND", "mirror", f"{short_repr(mirror)} is not a mirror", "give a Mirror")
        return None
    draft = errors.check_kinds("mirror", mirror, MIRROR)
    check_scd(errors, "mirror.scd", draft.scd)
    errors.unique("mirror.technical", draft.technical)
    set_frozen_fields(draft, former_names=_valid_former_names(errors, draft.former_names))
    return draft


def _valid_former_names(errors: ErrorCollector, declared: Any) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(declared, Mapping):
        problem = f"{short_repr(declared)} is not a mapping"
        errors.add("INVALID_KIND", "mirror.former_names", problem, _FORMER_NAMES)
        return FrozenMapping({})
    valid, owners = {}, dict[str, str]()
    for name, former_names in declared.items():
        field = field_path("mirror.former_names", name)
        names = (name, *former_names) if isinstance(former_names, tuple) else (name, former_names)
        if invalid := [each for each in names if not (isinstance(each, str) and is_column_name(each))]:
            errors.add("INVALID_NAME", field, f"{short_repr(invalid[0])} cannot be a name", COLUMN_NAME_RULE)
            continue
        for former in former_names:
            if (owner := owners.setdefault(former.casefold(), name)) != name:
                problem = f"{former} is a former name of {owner} too"
                errors.add("NAME_IN_USE", field, problem, "remove it from one of them")
        valid[name] = former_names
    return FrozenMapping(valid)


def check_mirror(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that there is one source whose columns are mirrored, and that no technical column has another meaning."""
    if draft.mirror is None:
        return
    if len(draft.sources) > 1:
        problem = f"the dimension has {len(draft.sources)} sources, of which each provides attributes of its own"
        errors.add("NOT_APPLICABLE", "mirror", problem, "declare the attributes, or one source")
    for source in draft.sources:
        if source.attributes is not None:
            problem = "all columns of the source are attributes"
            errors.add("NOT_APPLICABLE", f"sources.{source.name}.attributes", problem, "remove it")
    meanings = dict.fromkeys(draft.delivered_key_names, ("is in the business key", "remove it from one of them"))
    for attribute in draft.attributes:
        fix = f"declare the attribute with `retired: true`, so that {attribute.name} is not read, and remove it here"
        meanings[attribute.name] = ("is an attribute", fix)
    folded = {name.casefold(): meaning for name, meaning in meanings.items()}
    for name in draft.mirror.technical:
        if name.casefold() in folded:
            meaning, fix = folded[name.casefold()]
            errors.add("NAME_IN_USE", "mirror.technical", f"{name} {meaning}", fix)
