"""Collecting what is wrong in a declaration, so that all of it is told at once (S28)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.names import did_you_mean, is_text, shown
from scd_pipeline.declaration.yaml.options import Kind, Words
from scd_pipeline.errors import DeclarationError, Fault

T = TypeVar("T")
_LONGEST_LABEL = 100


class Faults:
    """The faults found so far in one declaration."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[Fault] = []

    def add(self, field: str, wrong: str, right: str) -> None:
        self.found.append(Fault(self.where, field, wrong, right))

    def has(self, field: str) -> bool:
        """Return whether the field itself has a fault."""
        return any(fault.field == field for fault in self.found)

    def raise_if_any(self) -> None:
        if self.found:
            raise DeclarationError(self.found)

    def sound(self, path: str, part: T, words: Words) -> T:
        """Tell the fields of the wrong kind; the part without them, for the next checks."""
        draft = copy.copy(part)
        for field in dataclasses.fields(part):  # type: ignore[arg-type]
            word = field.name.rstrip("_")
            if word not in words or field.default is dataclasses.MISSING:
                continue
            unfit = _unfit(words[word], getattr(part, field.name), field.default)
            if unfit is not None:
                self.add(joined(path, word), *unfit)
                set_frozen_fields(draft, **{field.name: field.default})
        return draft

    def choice(self, field: str, value: str, allowed: Sequence[str]) -> None:
        """Tell a word that is none of the allowed ones."""
        if value not in allowed:
            self.add(field, f"{shown(value)} is not a choice", did_you_mean(value, allowed))

    def unique(self, field: str, names: Sequence[str]) -> None:
        """Tell the names that a list has twice."""
        for name in dict.fromkeys(name for at, name in enumerate(names) if name in names[:at]):
            self.add(field, f"names {name} twice", "name it once")


def joined(path: str, word: object) -> str:
    """The field path one level deeper; a name that a line cannot show is escaped."""
    plain = isinstance(word, str) and word.isprintable() and 0 < len(word) <= _LONGEST_LABEL
    label = str(word) if plain else shown(word)
    return f"{path}.{label}" if path else label


def _unfit(kind: Kind, value: Any, default: Any) -> tuple[str, str] | None:
    """What is wrong with the value, and what would be right; None for one that fits."""
    if value is None and default is None:
        return None
    if not kind.accepts(value):
        return f"{shown(value)} is not {kind.value}", f"give {kind.value}"
    texts = value if isinstance(value, tuple) else (value,)
    for text in texts:
        if isinstance(text, str) and not is_text(text):
            return "has half of a surrogate pair", "write whole characters"
        if isinstance(text, str) and kind is not Kind.SCALAR and not text.strip() and default != "":
            return "is empty", f"give {kind.value}, or leave it out"
    return None
