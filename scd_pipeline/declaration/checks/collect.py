"""The collector of validation errors, so that all errors of a declaration are reported at once (S28)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.yaml.options import Kind, Options
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.texts import did_you_mean, is_text, short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

T = TypeVar("T")
_LONGEST_LABEL = 100

NO_VERSIONS = "a table without attributes of type 2 or 6 has no versions"
"""The problem of an option that only a table with windows can have."""


class ErrorCollector:
    """The validation errors of one declaration."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.collected: list[ValidationError] = []

    def add(self, code: str, field: str, problem: str, fix: str) -> None:
        self.collected.append(ValidationError(code, self.location, field, problem, fix))

    def has(self, field: str) -> bool:
        """Return whether an error was collected for this field."""
        return any(validation_error.field == field for validation_error in self.collected)

    def raise_if_any(self) -> None:
        if self.collected:
            raise DeclarationError(self.collected)

    def check_kinds(self, path: str, declared: T, options: Options) -> T:
        """Collect an error for each field of an invalid kind, and return a copy with its default in place of it."""
        draft = copy.copy(declared)
        for field in dataclasses.fields(declared):  # type: ignore[arg-type]
            option = field.name.rstrip("_")
            if option not in options or field.default is dataclasses.MISSING:
                continue
            error = _kind_error(options[option], getattr(declared, field.name), field.default)
            if error is not None:
                code, problem, fix = error
                self.add(code, field_path(path, option), problem, fix)
                set_frozen_fields(draft, **{field.name: field.default})
        return draft

    def choice(self, field: str, value: str, allowed: Sequence[str]) -> None:
        """Collect an error if the value is not allowed."""
        if value not in allowed:
            self.add("NOT_ALLOWED", field, f"{short_repr(value)} is not allowed", did_you_mean(value, allowed))

    def unique(self, field: str, names: Sequence[str]) -> None:
        """Collect an error for each name that a list contains twice."""
        for name in dict.fromkeys(name for index, name in enumerate(names) if name in names[:index]):
            self.add("NAMED_TWICE", field, f"names {name} twice", "name it once")


def field_path(path: str, option: object) -> str:
    """Return the path of a nested field; a name that cannot be printed on one line is escaped."""
    is_printable = isinstance(option, str) and option.isprintable() and 0 < len(option) <= _LONGEST_LABEL
    label = str(option) if is_printable else short_repr(option)
    return f"{path}.{label}" if path else label


def lacks_windows(errors: ErrorCollector, draft: Dimension) -> bool:
    """Return whether the attributes are valid, and none of them opens versions; False if there are none."""
    return bool(draft.attributes) and not errors.has("attributes") and not draft.has_windows


def _kind_error(kind: Kind, value: Any, default: Any) -> tuple[str, str, str] | None:
    """Return the code, the problem and the fix of a value of an invalid kind, None for a valid one."""
    if value is None and default is None:
        return None
    if not kind.accepts(value):
        return "INVALID_KIND", f"{short_repr(value)} is not {kind.value}", f"give {kind.value}"
    texts = value if isinstance(value, tuple) else (value,)
    for text in texts:
        if isinstance(text, str) and not is_text(text):
            return "INVALID_TEXT", "has an unpaired UTF-16 surrogate", "remove it"
        if isinstance(text, str) and kind not in (Kind.SCALAR, Kind.TEXTS) and not text.strip() and default != "":
            return "MISSING_VALUE", "is empty", f"give {kind.value}, or omit it"
    return None
