"""Collecting what is wrong in a declaration, so that all of it is told at once (S28)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.names import did_you_mean, display, is_text
from scd_pipeline.declaration.yaml.options import Kind, Options
from scd_pipeline.errors import DeclarationError, ValidationError

T = TypeVar("T")
_LONGEST_LABEL = 100


class ErrorCollector:
    """The faults found so far in one declaration."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.found: list[ValidationError] = []

    def add(self, field: str, problem: str, fix: str) -> None:
        self.found.append(ValidationError(self.location, field, problem, fix))

    def has(self, field: str) -> bool:
        """Return whether the field itself has a fault."""
        return any(validation_error.field == field for validation_error in self.found)

    def raise_if_any(self) -> None:
        if self.found:
            raise DeclarationError(self.found)

    def sound(self, path: str, part: T, options: Options) -> T:
        """Tell the fields of the wrong kind; the part without them, for the next checks."""
        draft = copy.copy(part)
        for field in dataclasses.fields(part):  # type: ignore[arg-type]
            option = field.name.rstrip("_")
            if option not in options or field.default is dataclasses.MISSING:
                continue
            unfit = _unfit(options[option], getattr(part, field.name), field.default)
            if unfit is not None:
                self.add(joined(path, option), *unfit)
                set_frozen_fields(draft, **{field.name: field.default})
        return draft

    def choice(self, field: str, value: str, allowed: Sequence[str]) -> None:
        """Tell a word that is none of the allowed ones."""
        if value not in allowed:
            self.add(field, f"{display(value)} is not allowed", did_you_mean(value, allowed))

    def unique(self, field: str, names: Sequence[str]) -> None:
        """Tell the names that a list has twice."""
        for name in dict.fromkeys(name for at, name in enumerate(names) if name in names[:at]):
            self.add(field, f"names {name} twice", "name it once")


def joined(path: str, option: object) -> str:
    """The field path one level deeper; a name that a line cannot show is escaped."""
    plain = isinstance(option, str) and option.isprintable() and 0 < len(option) <= _LONGEST_LABEL
    label = str(option) if plain else display(option)
    return f"{path}.{label}" if path else label


def _unfit(kind: Kind, value: Any, default: Any) -> tuple[str, str] | None:
    """What is wrong with the value, and what would be right; None for one that fits."""
    if value is None and default is None:
        return None
    if not kind.accepts(value):
        return f"{display(value)} is not {kind.value}", f"give {kind.value}"
    texts = value if isinstance(value, tuple) else (value,)
    for text in texts:
        if isinstance(text, str) and not is_text(text):
            return "has half of a surrogate pair", "write whole characters"
        if isinstance(text, str) and kind is not Kind.SCALAR and not text.strip() and default != "":
            return "is empty", f"give {kind.value}, or leave it out"
    return None
